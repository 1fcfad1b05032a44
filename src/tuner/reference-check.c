#include "tuner/reference-check.h"

#include <math.h>

#include "base/units.h"
#include "tuner/activity.h"

enum { SETTLE_STEPS = 2, MOST_WINDOWS = 3 };
#define BRIEF_SETTLE_S 4.0
#define TAKES_MOST 2 /* a check is given up after this multiple of its duration */
#define COLD 0.8     /* part of its power by which a board draws less when idle */

/* The duration of a check.  A brief check has the shortest window, other checks a window
 * as long as the last one of the hold.
 */
static double takes_s(double settle_s, const struct activity_now *now)
{
    double step_s = savings_mean_time(&now->savings->hold);
    double window_s = now->window_s + (SETTLE_STEPS + 2) * step_s;

    if (settle_s < REFERENCE_CHECK_SETTLE_S)
        return settle_s + window_s;
    return settle_s + fmax(window_s, now->energy->window.kept_s);
}

/* Whether the reference can be measured now, and differs from the hold. */
static bool can_check(const struct activity_now *now)
{
    return now->search && !now->measures &&
           now->reference_mw >= now->held_mw + MW_PER_W &&
           now->reference_mw + MW_PER_W >= now->measured_mw &&
           now->rules_mw >= now->reference_mw;
}

/* A check waits until the boards are warm.  If the job has not run long enough for that,
 * one brief check is made.
 */
static enum activity_verdict on_hold(void *self, const struct activity_now *now)
{
    struct reference_check *c = self;
    const struct reference_checks *v = &c->checks;
    double settle_s = REFERENCE_CHECK_SETTLE_S;

    if (!can_check(now))
        return ACTIVITY_STAYS;
    bool due = reference_checks_due(v, now->trained_s, takes_s(settle_s, now));
    if (!due) {
        settle_s = BRIEF_SETTLE_S;
        due =
            v->n == 0 && reference_checks_due(v, now->trained_s, takes_s(settle_s, now));
    }
    if (!due)
        return ACTIVITY_STAYS;
    c->settle_s = settle_s;
    c->most_windows = settle_s < REFERENCE_CHECK_SETTLE_S ? 1 : MOST_WINDOWS;
    c->takes_s = takes_s(settle_s, now);
    c->since_ns = now->now_ns;
    return ACTIVITY_BEGINS;
}

/* Claims the reference cap, without a ramp. */
static void want(const void *self, const struct activity_now *now,
                 struct search_step *ret)
{
    const struct reference_check *c = self;

    *ret = (struct search_step){
        .kind = SEARCH_MEASURE,
        .cap_mw = now->reference_mw,
        .settle_s = c->settle_s,
        .settle_steps = SETTLE_STEPS,
        .why = "reference check, to measure the saving",
    };
}

uint64_t reference_check_late_ns(const struct reference_check *c)
{
    return c->since_ns + ns_of_s(TAKES_MOST * c->takes_s);
}

void reference_check_end(struct reference_check *c, uint64_t now_ns)
{
    visits_made(&c->checks, s_between(c->since_ns, now_ns));
}

struct pair_seen reference_check_hold_seen(const struct search_window *w, uint64_t now_ns)
{
    return (struct pair_seen){s_between(0, now_ns), w->time_s, w->energy_j, w->time_rse,
                              w->energy_rse};
}

struct pair_seen reference_check_seen(const struct savings *held, uint64_t trains_ns,
                                      const struct window *closed,
                                      const struct search_window *w, uint64_t now_ns)
{
    struct pair_seen seen = reference_check_hold_seen(w, now_ns);
    double half_s = closed->kept_s / 2, lower = COLD;
    uint64_t from_ns = trains_ns;

    if (held) {
        double held_w = savings_mean_energy(&held->hold) / savings_mean_time(&held->hold);
        lower = 1 - held_w * w->time_s / w->energy_j;
        from_ns = closed->armed_ns;
    }
    double since_s = s_between(from_ns, now_ns) - half_s;
    seen.energy_rse = hypot(seen.energy_rse, counterfactual_cool_rse(lower, since_s));
    return seen;
}

static const struct saved_field saved[] = {
    {"visits", COUNT, .at = offsetof(struct activity_kept, checks.n), "visits"},
    {"visits_s", NUMBER, .at = offsetof(struct activity_kept, checks.spent_s), "visits"},
    {"visit_s", NUMBER, .at = offsetof(struct activity_kept, checks.last_s), "visits"},
};

const struct tuner_activity activity_check = {
    .name = "check",
    .on_hold = on_hold,
    .want = want,
    .saved = saved,
    .n_saved = n_elements(saved),
};
