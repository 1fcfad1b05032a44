/* `underwatt run` of jobs that tell of no steps, in virtual time: what the period of
 * their boards' power leads to, against the oracle that knows their training loop.  One
 * run in twenty may lose its period, take a multiple for it, or end in a window whose
 * period is off by more than 2 % (docs/design/period.md).
 *
 * Usage: test-unseen [BOARD [WORKLOAD [GOAL]]]: those of run-scene.h without; test-unseen
 * change.
 */
#include "run-scene.h"

/* Is it the step's time at the cap held, or that of a whole epoch (the least unit that
 * sensors show where steps are shorter than they can)?
 */
static bool is_unit(const struct plant_workload *work, double step_s, double period_s)
{
    return fabs(period_s / step_s - 1) <= 0.02 ||
           (period_s > 0.95 * work->steps * step_s &&
            period_s < 1.3 * work->steps * step_s);
}

/* seen: runs in which a step's period was; of these: */
static unsigned runs, seen, good, alarms, off;

static void by_period(const struct world *w, const char *board, const char *workload,
                      const struct goal *goal)
{
    const struct tuner_report *t = w->result.tuner;
    const struct plant_board *b = plant_board_find(board);
    const struct plant_workload *work = plant_workload_find(b, workload);
    char name[GOAL_TEXT_MAX];
    uint32_t mw = t->holding ? t->held_mw : t->original_mw;
    double step_s = plant_steady_step(b, work, mw).time_s;
    struct verdict v = judge(board, workload, goal, mw);

    (void)goal_text(goal, name);
    bool right = is_unit(work, step_s, t->period_s) || !t->holding;
    off += !right;
    printf("# %s %s %s: the period %.4g s is %s (a step takes %.4g s)\n", board, workload,
           name, t->period_s, right ? "right" : "off", step_s);
    if (t->period_s > 10 * step_s) { /* windows of minutes: the job is too short */
        ok(v.slowdown <= 1.002 || t->holding, "%s %s %s: no harm", board, workload, name);
        return;
    }
    bool near = t->holding && v.regret <= 0.02, alarm = t->changes || t->stalls;
    good += near;
    alarms += alarm;
    if (!near)
        printf("# %s %s %s: %.0f W, oracle %.0f W, regret %.2f %%\n", board, workload,
               name, t->held_mw * 1e-3, v.oracle_mw * 1e-3, 100 * v.regret);
    if (alarm)
        printf("# %s %s %s: a false alarm in %.0f s\n", board, workload, name,
               w->result.time_s);
    if (goal->kind == GOAL_SLOWDOWN)
        ok(v.slowdown <= goal->param * 1.002, "%s %s %s: the bound holds (time x %.4f)",
           board, workload, name, v.slowdown);
    ok(t->saved.known, "%s %s %s: what it saved is known: %.1f +- %.1f %%", board,
       workload, name, 100 * t->saved.fraction, 100 * t->saved.half);
}

static void by_nothing(const struct world *w, const char *board, const char *workload,
                       const struct goal *goal)
{
    const struct tuner_report *t = w->result.tuner;
    const struct plant_board *b = plant_board_find(board);
    char name[GOAL_TEXT_MAX];

    (void)goal_text(goal, name);
    ok(t->unknown[0] != '\0', "%s %s %s: no period: %s", board, workload, name,
       t->unknown);
    if (goal->kind == GOAL_SLOWDOWN)
        ok(!t->holding, "… and a bound that cannot be kept in view: no cap");
    else
        ok(t->holding && t->held_mw >= 0.8 * b->default_mw && strstr(t->why, "safe"),
           "… the safe cap: %.0f W, %s", t->held_mw * 1e-3, t->why);
    ok(!t->saved.known, "… nothing is claimed to be saved");
}

static void one(struct world *w, const char *board, const char *workload,
                const char *goal_text)
{
    struct goal goal;
    w->looks = -1; /* it may end in one: the period told is of the cap held */
    bool ran = run_for(w, board, workload, goal_text, NULL, JOB_S);

    (void)goal_parse(goal_text, &goal, NULL);
    runs++;
    if (!ok(ran, "%s %s %s: runs to its end", board, workload, goal_text)) {
        printf("# %s\n", w->result.error.text);
    } else {
        const struct tuner_report *t = w->result.tuner;
        ok(t->restored, "%s %s %s: the original limit is back", board, workload,
           goal_text);
        if (t->by == TUNER_BY_PERIOD)
            by_period(w, board, workload, &goal);
        else
            by_nothing(w, board, workload, &goal);
        seen += t->by == TUNER_BY_PERIOD && t->period_s < 10;
        if (verbose)
            printf("# caps %zu windows %u saved %.2f +- %.2f %% search %.0f s\n",
                   t->n_caps, t->windows, 100 * t->saved.fraction, 100 * t->saved.half,
                   t->saved.search_s);
    }
    close_world(w);
}

/* A step that takes other time for good from the middle of the job on. */
static void changes(struct world *w, const char *change, unsigned at_least,
                    unsigned at_most)
{
    bool ran = run_for(w, "v100", "resnet50", "edp", change, JOB_S);
    const struct tuner_report *t = w->result.tuner;

    if (ok(ran, "a change of %s: runs to its end", change)) {
        ok(t->changes >= at_least && t->changes <= at_most, "… looked again %u times",
           t->changes);
        ok(t->holding && t->by == TUNER_BY_PERIOD,
           "… and holds a cap at the end: %.0f W, by the period", t->held_mw * 1e-3);
    }
    close_world(w);
}

int main(int argc, char **argv)
{
    struct world w = {.mute = true};

    verbose = argc > 1;
    if (!open_dir(&w))
        return skip_all("no folder in memory");
    one_by_one(&w, argc, argv, one);
    if (argc == 1 || strcmp(argv[1], "change") == 0) {
        changes(&w, "2000:1.08:1", 1, 1);
        changes(&w, "2000:2:1", 1, 1);
        changes(&w, "2000:1.015:1", 0, 0);
    }
    if (argc == 1 && !getenv("UNDERWATT_SANITIZED"))
        ok(seen * 12 == runs * 10,
           "ten of twelve workloads: %u of %u runs by their steps' period", seen, runs);
    ok(good * 20 >= seen * 19 && alarms * 20 <= seen,
       "%u of %u runs within 2 %% of the oracle, %u with a false alarm", good, seen,
       alarms);
    ok(off * 20 <= runs, "%u of %u runs end with a period that is off", off, runs);
    (void)remove(w.dir);
    return done();
}
