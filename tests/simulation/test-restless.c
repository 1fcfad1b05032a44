/* `underwatt run --count-launches` of jobs that tell of no steps and whose launches never
 * rest, in virtual time: what their rate leads to, against the oracle that knows their
 * training loop.
 *
 * Usage: test-restless [BOARD [WORKLOAD [GOAL]]]: those of run-scene.h without.
 */
#include "run-scene.h"

static unsigned runs, by_launches, good, alarms;

static void judge_run(const struct world *w, const char *board, const char *workload,
                      const struct goal *goal)
{
    const struct tuner_report *t = w->result.tuner;
    char name[GOAL_TEXT_MAX];
    uint32_t mw = t->holding ? t->held_mw : t->original_mw;
    struct verdict v = judge(board, workload, goal, mw);

    (void)goal_text(goal, name);
    by_launches++;
    good += t->holding && v.regret <= 0.02;
    ok(t->holding && v.regret <= 0.04,
       "%s %s %s: within 4 %% of the oracle (%.0f W, oracle %.0f W, regret %.2f %%)",
       board, workload, name, t->held_mw * 1e-3, v.oracle_mw * 1e-3, 100 * v.regret);
    if (goal->kind == GOAL_SLOWDOWN)
        ok(v.slowdown <= goal->param * 1.002, "%s %s %s: the bound holds (time x %.4f)",
           board, workload, name, v.slowdown);
    if (t->changes || t->stalls)
        printf("# %s %s %s: a false alarm in %.0f s\n", board, workload, name,
               w->result.time_s);
    alarms += t->changes || t->stalls;
    ok(t->saved.known, "%s %s %s: what it saved is known: %.1f +- %.1f %%", board,
       workload, name, 100 * t->saved.fraction, 100 * t->saved.half);
}

static void one(struct world *w, const char *board, const char *workload,
                const char *goal_text)
{
    struct goal goal;
    w->looks = -1;
    bool ran = run_for(w, board, workload, goal_text, NULL, JOB_S);

    (void)goal_parse(goal_text, &goal, NULL);
    runs++;
    if (!ok(ran, "%s %s %s: runs to its end", board, workload, goal_text)) {
        printf("# %s\n", w->result.error.text);
    } else {
        const struct tuner_report *t = w->result.tuner;
        ok(t->restored, "… the original limit is back");
        if (t->by == TUNER_BY_LAUNCHES)
            judge_run(w, board, workload, &goal);
        else /* its boards wait for half of the time */
            ok(strcmp(workload, "alexnet") == 0, "… not by its launches (%s)",
               t->unknown);
        if (verbose)
            printf("# caps %zu windows %u saved %.2f +- %.2f %% search %.0f s\n",
                   t->n_caps, t->windows, 100 * t->saved.fraction, 100 * t->saved.half,
                   t->saved.search_s);
    }
    close_world(w);
}

int main(int argc, char **argv)
{
    struct world w = {.inject = VIRTUAL_LAUNCHES "=1000:40", .blur_s = 10};

    verbose = argc > 1;
    if (!open_dir(&w))
        return skip_all("no folder in memory");
    one_by_one(&w, argc, argv, one);
    printf("# %u runs, %u by their launches: %u within 2 %%, %u with a false alarm\n",
           runs, by_launches, good, alarms);
    if (argc == 1)
        ok(good * 20 >= by_launches * 19, "95 %% of them are within 2 %%");
    if (argc == 1 && !getenv("UNDERWATT_SANITIZED"))
        ok(by_launches * 12 >= runs * 10 && alarms * 10 <= by_launches,
           "ten of twelve workloads, and a false alarm in a tenth of their runs at most");
    (void)rmdir(w.dir);
    return done();
}
