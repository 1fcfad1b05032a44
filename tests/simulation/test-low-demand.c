/* A job of 63 W on a board with a limit of 300 W, in virtual time: most caps of the range
 * have no effect, and what the best one saves is found all the same, on boards that count
 * the time for which their limit held them down and on boards that only tell the reasons
 * for their clock.
 *
 * Usage: test-low-demand [CASE]: all without.
 */
#include <math.h>
#include <string.h>

#include "tuning-scene.h"

#define POWER 0.25 /* of the workload's */
#define BOUND 1.1
#define WORKLOAD "alexnet"
static const uint32_t limit_mw = 300000;

static struct plant_steady steady(uint32_t mw)
{
    const struct plant_board *b = plant_board_find("v100");
    struct plant_workload w = *plant_workload_find(b, WORKLOAD);

    w.ps_w *= POWER;
    w.d_w *= POWER;
    return plant_steady_step(b, &w, mw);
}

static double saved_at(uint32_t mw)
{
    return 1 - steady(mw).energy_j / steady(limit_mw).energy_j;
}

/* The best cap that the bound and the soft floor allow. */
static double most_saved(double bound)
{
    struct plant_steady ref = steady(limit_mw);
    double most = 0;

    for (uint32_t mw = (uint32_t)(500 * ref.power_w); mw <= limit_mw; mw += 100)
        if (steady(mw).time_s <= bound * ref.time_s)
            most = fmax(most, saved_at(mw));
    return most;
}

static unsigned caps_without_effect(const struct tuner_report *t)
{
    unsigned n = 0;

    for (size_t i = 0; i < t->n_caps; i++)
        if (t->cap[i].cap_mw < limit_mw &&
            steady(t->cap[i].cap_mw).time_s <= steady(limit_mw).time_s * 1.0001)
            n++;
    return n;
}

static void play_goal(const char *goal, double bound)
{
    const struct play play = {
        .workload = WORKLOAD, .boards = "0", .goal = goal, .seconds = 1500};
    struct plant_trait trait[BOARDS] = {0};
    struct scene s;

    for (size_t i = 0; i < BOARDS; i++)
        trait[i].power = POWER;
    traits = trait;
    least_mw = 20000;
    speed_noise = 0.005;
    if (scene_begin(&s, &play)) {
        sampler_rate(s.sampler[0], 0, SAMPLER_SEARCH, true);
        wait_for_hold(&s, 0);
        const struct tuner_report *t = report_of(&s, 0);
        double saved = saved_at(t->held_mw), most = most_saved(bound);
        ok(t->demand_w > 55 && t->demand_w < 70, "%s: the job draws %.0f W of %.0f W",
           goal, t->demand_w, w_of_mw(limit_mw));
        ok(t->holding && saved >= 0.9 * most,
           "... holds %.0f W: saves %.1f %%, the best cap %.1f %%", w_of_mw(t->held_mw),
           100 * saved, 100 * most);
        ok(steady(t->held_mw).time_s <= bound * 1.002 * steady(limit_mw).time_s,
           "... time x %.4f", steady(t->held_mw).time_s / steady(limit_mw).time_s);
        ok(caps_without_effect(t) <= 2, "... %u of %zu caps without effect",
           caps_without_effect(t), t->n_caps);
        if (bound < INFINITY)
            ok((strstr(s.said, "again: no effect") != NULL) == uncounted, "... %s",
               uncounted ? "each in two windows" : "each in one window");
        scene_close(&s);
    }
    traits = NULL;
}

static void counted(void)
{
    play_goal("energy", INFINITY);
    play_goal("slowdown:1.1", BOUND);
}

static void by_reasons(void)
{
    uncounted = true;
    play_goal("energy", INFINITY);
    play_goal("slowdown:1.1", BOUND);
    uncounted = false;
}

int main(int argc, char **argv)
{
    static const struct scene_case cases[] = {
        {"counter", counted},
        {"reasons", by_reasons},
    };

    return play_cases(cases, n_elements(cases), argc, argv);
}
