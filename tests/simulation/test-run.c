/* `underwatt run` on a private node in virtual time (run-scene.h).  For each workload and
 * goal the cap it holds is compared with the oracle of that workload's training loop
 * (0.1 W grid over what the search may use).
 *
 * Usage: test-run [BOARD [WORKLOAD [GOAL]]]: those of run-scene.h without.
 */
#include <signal.h>
#include <sys/resource.h>

#include "run-scene.h"
#include "underwatt/launches.h"

static bool run(struct world *w, const char *board, const char *workload,
                const char *goal_text, const char *change)
{
    return run_for(w, board, workload, goal_text, change, JOB_S);
}

static void one(struct world *w, const char *board, const char *workload,
                const char *goal_text)
{
    struct goal goal;
    bool ran = run(w, board, workload, goal_text, NULL);

    (void)goal_parse(goal_text, &goal, NULL);
    if (!ok(ran, "%s %s %s: runs to its end", board, workload, goal_text)) {
        printf("# %s\n", w->result.error.text);
    } else {
        const struct tuner_report *t = w->result.tuner;
        struct verdict v = judge(board, workload, &goal, t->held_mw);
        ok(t->holding && v.regret <= 0.01,
           "%s %s %s: within 1 %% of the oracle (%.0f W, oracle %.0f W, regret %.2f %%)",
           board, workload, goal_text, t->held_mw * 1e-3, v.oracle_mw * 1e-3,
           100 * v.regret);
        if (goal.kind == GOAL_SLOWDOWN)
            ok(v.slowdown <= goal.param * 1.002,
               "%s %s %s: the bound holds (time x %.4f)", board, workload, goal_text,
               v.slowdown);
        ok(t->changes == 0 && t->stalls == 0, "%s %s %s: no false alarm in %.0f s", board,
           workload, goal_text, w->result.time_s);
        ok(t->restored, "%s %s %s: the original limit is back", board, workload,
           goal_text);
        if (verbose)
            printf(
                "# caps %zu windows %u changes %u saved %.2f +- %.2f %% search %.0f s\n",
                t->n_caps, t->windows, t->changes, 100 * t->saved.fraction,
                100 * t->saved.half, t->saved.search_s);
    }
    close_world(w);
}

/* A step that costs differently for good from the middle of the job on, minutes after a
 * cap was held anew: windows from before the change are what it is told from.
 */
static void changes(struct world *w, const char *change, unsigned at_least,
                    unsigned at_most)
{
    bool ran = run(w, "v100", "resnet50", "edp", change);
    const struct tuner_report *t = w->result.tuner;

    if (ok(ran, "a change of %s: runs to its end", change)) {
        ok(t->changes >= at_least && t->changes <= at_most, "… looked again %u times",
           t->changes);
        ok(t->holding, "… and holds a cap at the end: %.0f W", t->held_mw * 1e-3);
        ok(t->saved.known && t->saved.fraction > 0.1 && t->saved.slowdown > 1,
           "… what it saved is told against each regime's own reference: %.1f %%, time x "
           "%.3f",
           100 * t->saved.fraction, t->saved.slowdown);
    }
    close_world(w);
}

/* A job of hours, twice: the reference is measured again and again for little of its
 * time, and says what the same job uses and takes without a cap.  Steps cost 1.2 % more
 * from step 9000 on: too little for a new search, and unknown to windows at the start.
 */
static void long_job(struct world *w)
{
    enum { HOURS = 3 };
    static const char change[] = "9000:1.012:1.012";
    const double share = 0.02;

    bool ran = run_for(w, "v100", "resnet50", "time", change, HOURS * 3600.0);
    double true_j = w->result.energy_j, true_s = w->result.time_s;
    ok(ran && w->result.tuner->held_mw == w->result.tuner->original_mw,
       "%d hours at the original cap", HOURS);
    close_world(w);
    w->checks_share = share;
    ran = run_for(w, "v100", "resnet50", "edp", change, HOURS * 3600.0);
    w->checks_share = 0;
    const struct tuner_report *t = w->result.tuner;

    if (ok(ran && t->saved.known, "the same job under a search")) {
        const struct savings_saved *s = &t->saved;
        double would_j = w->result.energy_j + s->energy_j;
        double trained_s = savings_time_s(&t->account[0], 1);
        double would_s = w->result.time_s - trained_s + trained_s / s->slowdown;

        is_int(t->changes, 0, "… no change that asks for a new search");
        ok(t->checks.n >= 2 && s->pairs == t->checks.n,
           "… the reference was measured %u times more", t->checks.n);
        ok(t->checks.spent_s <= share * w->result.time_s, "… in %.0f of %.0f s",
           t->checks.spent_s, w->result.time_s);
        ok(s->visits_cost_j < 0.3 * share * would_j, "… for %.2f %% of its energy",
           100 * s->visits_cost_j / would_j);
        is_near(would_j, true_j, fmin(s->half_j, 0.01 * true_j),
                "… what it uses without a cap is known: %.5g +- %.2g of %.5g J", would_j,
                s->half_j, true_j);
        is_near(would_s, true_s, 0.003 * true_s,
                "… and how long it takes: %.0f of %.0f s", would_s, true_s);
        ok(t->modelled && fabs(t->model_saving - s->fraction) < 0.02,
           "… the model's word lies near: %.1f against %.1f %% measured",
           100 * t->model_saving, 100 * s->fraction);
    }
    close_world(w);
}

/* The same job twice, without looks into gaps and with them: they find nothing better on
 * a smooth curve, and cost next to nothing.
 */
static void looks(struct world *w)
{
    const double job_s = 4500;

    w->looks = -1;
    bool ran = run_for(w, "v100", "resnet50", "edp", NULL, job_s);
    const struct tuner_report *t = w->result.tuner;
    double without = w->result.energy_j * w->result.time_s;
    ok(ran && t->gap_checks.n == 0, "no looks where none are wanted");
    size_t caps = t ? t->n_caps : 0;
    uint32_t held_mw = t ? t->held_mw : 0;
    close_world(w);

    w->looks = 0;
    ran = run_for(w, "v100", "resnet50", "edp", NULL, job_s);
    t = w->result.tuner;
    if (ok(ran && t->gap_checks.n > 0 && t->gap_checks.n <= GAP_PROBES_EVEN + 1 &&
               t->n_caps > caps,
           "%u looks into gaps: %zu caps for %zu", t->gap_checks.n, t->n_caps, caps)) {
        double with = w->result.energy_j * w->result.time_s;
        ok(t->holding && t->changes == 0 && t->stalls == 0,
           "… holds %.0f W at the end, %.0f W without looks", t->held_mw * 1e-3,
           held_mw * 1e-3);
        ok(with < without * (1 + t->gap_checks.n * GAP_PROBES_SHARE),
           "… for %+.3f %% of the job's EDP", 100 * (with / without - 1));
        ok(t->saved.known && t->saved.fraction > 0.1,
           "… and what it saved is known: %.1f %%", 100 * t->saved.fraction);
    }
    close_world(w);
}

/* Steps that are seen no more at a cap that only looks: the bound is not held blind. */
static void dark(struct world *w)
{
    static const char goal_text[] = "slowdown:1.2";
    struct goal goal;

    w->dark_s = 40;
    bool ran = run(w, "v100", "resnet50", goal_text, NULL);
    const struct tuner_report *t = w->result.tuner;

    (void)goal_parse(goal_text, &goal, NULL);
    if (ok(ran && t->holding && t->by == TUNER_BY_PERIOD,
           "steps are lost: its period stands for them")) {
        struct verdict v = judge("v100", "resnet50", &goal, t->held_mw);
        ok(strstr(
               w->noted,
               "the job's steps can no longer be followed: restoring the original cap"),
           "… and that is told");
        ok(v.slowdown <= goal.param * 1.002, "… the bound holds (time x %.4f)",
           v.slowdown);
    }
    close_world(w);
    w->dark_s = 0;
}

/* No place to count launches in: the page itself is whole, and CMD runs. */
static void uncounted(struct world *w)
{
    struct rlimit was, least;

    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &was);
    least = (struct rlimit){UW_LAUNCHES_AT, was.rlim_max};
    w->inject = "CUDA_INJECTION64_PATH=/nowhere";
    (void)setrlimit(RLIMIT_FSIZE, &least);
    bool ran = run_for(w, "v100", "resnet50", "edp", NULL, 300);
    (void)setrlimit(RLIMIT_FSIZE, &was);
    ok(ran && w->result.tuner->by == TUNER_BY_STEPS && w->result.tuner->holding,
       "no place for launches: the run goes on by its steps %s", w->result.error.text);
    ok(strstr(w->noted, "no place to count launches"), "… and that is told");
    w->inject = NULL;
    close_world(w);
}

int main(int argc, char **argv)
{
    struct world w = {0};

    verbose = argc > 1;
    if (!open_dir(&w))
        return skip_all("no folder in memory");
    one_by_one(&w, argc, argv, one);
    if (argc == 1 || strcmp(argv[1], "change") == 0) {
        changes(&w, "2600:1.08:1", 1, 1);
        changes(&w, "2600:1:1.12", 1, 1);
        changes(&w, "2600:0.9:1", 1, 1);
        changes(&w, "2600:1.015:1", 0, 0);
        long_job(&w);
    }
    if (argc == 1 || strcmp(argv[1], "looks") == 0)
        looks(&w);
    if (argc == 1 || strcmp(argv[1], "dark") == 0) {
        dark(&w);
        uncounted(&w);
    }
    (void)remove(w.dir);
    return done();
}
