/* A job begins under a node's budget, which is lifted while its cap is held: a search
 * measures the reference again, and the saving of a cap by name becomes unknown.
 *
 * Usage: test-lifted
 */
#include <errno.h>

#include "simulation/tuning-scene.h"
#include "verdict.h"

#define SHARE_MW 180000u
#define BOUND 1.05

static const struct play searched = {
    .workload = "resnet50", .boards = "0,1", .goal = "slowdown:1.05", .seconds = 6000};

static const struct play named = {
    .workload = "resnet50", .boards = "0,1", .cap = "220", .seconds = 6000};

static double slowdown_at(uint32_t mw)
{
    const struct goal goal = {.kind = GOAL_SLOWDOWN, .param = BOUND};

    return judge("v100", searched.workload, &goal, mw).slowdown;
}

/* A job that holds its cap for hold_s, under the budget; false: there is none. */
static bool begin_under_budget(struct scene *s, const struct play *p, double hold_s)
{
    budget_mw = BOARDS * SHARE_MW;
    if (!scene_begin(s, p))
        return false;
    wait_for_hold(s, 0);
    pass(s, hold_s);
    return true;
}

static void budget_becomes(struct scene *s, uint32_t mw)
{
    budget_mw = mw;
    budget_configure(s->budget, mw);
}

static void search_is_held(void)
{
    struct caps_view v;
    struct scene s;

    if (!begin_under_budget(&s, &searched, 60))
        return;
    const struct tuner_report *t = report_of(&s, 0);
    uint32_t under_mw = t->held_mw;
    double demand_w = t->demand_w;
    ok(t->reference_mw == SHARE_MW && in_force(&s, 0) == under_mw && under_mw < SHARE_MW,
       "under a budget: %.0f W, reference at %.0f W", w_of_mw(under_mw),
       w_of_mw(t->reference_mw));
    budget_becomes(&s, 0);
    pass(&s, 5);
    ok(in_force(&s, 0) == 300000, "as soon as it ends: %.0f W, %s",
       w_of_mw(in_force(&s, 0)), s.said);
    pass(&s, 900);
    t = report_of(&s, 0);
    caps_look(s.caps, 0, &v);
    ok(t->reference_mw == 300000 && in_force(&s, 0) == t->held_mw &&
           slowdown_at(t->held_mw) <= BOUND * 1.002,
       "15 minutes later: %.0f W, %.4f of the time at the original",
       w_of_mw(in_force(&s, 0)), slowdown_at(t->held_mw));
    ok(t->demand_w > 1.2 * demand_w &&
           fabs(w_of_mw(v.bounds.floor_mw) - t->demand_w / 2) < 1,
       "the soft floor is half of what the job draws without the budget: %.1f W of "
       "%.1f W (%.1f W under it)",
       w_of_mw(v.bounds.floor_mw), t->demand_w, demand_w);
    scene_close(&s);
}

static void cap_is_held(void)
{
    struct scene s;

    if (!begin_under_budget(&s, &named, 120))
        return;
    const struct tuner_report *t = report_of(&s, 0);
    ok(t->reference_mw == SHARE_MW && t->allowed_mw == SHARE_MW && t->saved.known &&
           t->lifted_mw == 0 && in_force(&s, 0) == SHARE_MW,
       "a cap of 220 W under a budget: %.0f W, %.4f saved, %s", w_of_mw(in_force(&s, 0)),
       t->saved.fraction, s.said);
    budget_becomes(&s, 0);
    pass(&s, 300);
    t = report_of(&s, 0);
    ok(in_force(&s, 0) == 220000 && t->lifted_mw == 300000 && !t->saved.known &&
           !(t->saved.held_slowdown > 0),
       "without it: %.0f W, %s", w_of_mw(in_force(&s, 0)), s.said);
    ok(strstr(s.said, "the saving is unknown: other claims allow 300 W now, and allowed "
                      "180 W when the reference was measured") != NULL,
       "which is said");
    budget_becomes(&s, BOARDS * SHARE_MW);
    pass(&s, 300);
    t = report_of(&s, 0);
    ok(t->lifted_mw == 300000 && !t->saved.known && in_force(&s, 0) == SHARE_MW,
       "it stays unknown under the budget again");
    scene_close(&s);
}

int main(void)
{
    struct statfs fs;

    if (statfs("/dev/shm", &fs) < 0 || fs.f_type != 0x01021994)
        return skip_all("/dev/shm is no tmpfs");
    search_is_held();
    cap_is_held();
    return done();
}
