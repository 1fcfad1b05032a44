/* Looks at the reference cap out of a hold (core/optimum/counterfactual.h): when one is
 * due, what it takes, and what its window is worth.
 */
#include <math.h>

#include "tuner/tuner-inside.h"

enum { VISIT_STEPS = 2 };
#define QUICK_SETTLE_S 4.0
#define VISIT_MOST 2 /* times what a visit should take, then it is given up */
#define COLD 0.8     /* part of its power that a board at rest draws less */

/* To the reference cap and back: raised at once. */
struct search_step reference_check_step(const struct tuner *t)
{
    return (struct search_step){
        .kind = SEARCH_MEASURE,
        .cap_mw = tuner_reference_mw(t),
        .settle_s = t->quick ? QUICK_SETTLE_S : REFERENCE_CHECK_SETTLE_S,
        .settle_steps = VISIT_STEPS,
        .why = "what is saved: the reference once more",
    };
}

void reference_check_over(struct tuner *t)
{
    if (!t->visiting)
        return;
    t->visiting = false;
    t->warm = true;
    visits_made(&t->report.visits, s_between(t->visit_ns, loop_now_ns(t->o.loop)));
}

/* A look at the reference takes this long: a quick one has no longer window than it must
 * have, the others one like the hold's last.
 */
static double visit_takes_s(const struct tuner *t)
{
    double step_s = savings_mean_time(&t->regime[t->report.n_regimes - 1].hold);
    double window_s = t->o.window_s > 0 ? t->o.window_s : 10;

    window_s = fmax(window_s, LEAST_STEPS * step_s) + (VISIT_STEPS + 2) * step_s;
    if (t->quick)
        return QUICK_SETTLE_S + window_s;
    return REFERENCE_CHECK_SETTLE_S + fmax(window_s, t->closed.kept_s);
}

/* One that waits for the boards to be warm; until a job is long enough for that, a quick
 * one, once.
 */
static bool visit_due(struct tuner *t)
{
    const struct visits *v = &t->report.visits;
    double trained_s = 0;

    for (size_t i = 0; i < t->report.n_regimes; i++)
        trained_s += savings_time_s(&t->regime[i]);
    t->quick = false;
    if (visits_due(v, trained_s, visit_takes_s(t)))
        return true;
    t->quick = v->n == 0;
    return t->quick && visits_due(v, trained_s, visit_takes_s(t));
}

int reference_check(struct tuner *t)
{
    if (!t->search || tuner_slack_measures(t) || tuner_lock_measures(t) ||
        tuner_reference_mw(t) < t->report.held_mw + MW_PER_W ||
        tuner_reference_mw(t) + MW_PER_W < t->report.reference_mw)
        return 0;
    if (!visit_due(t))
        return 0;
    t->visiting = true;
    t->visit_takes_s = visit_takes_s(t);
    t->visit_ns = loop_now_ns(t->o.loop);
    return tuner_next(t);
}

bool reference_check_is_late(const struct tuner *t, uint64_t now)
{
    return t->visiting && s_between(t->visit_ns, now) > VISIT_MOST * t->visit_takes_s;
}

struct pair_seen tuner_seen(const struct tuner *t, const struct search_window *w)
{
    double now_s = s_between(0, loop_now_ns(t->o.loop));

    return (struct pair_seen){now_s, w->time_s, w->energy_j, w->time_rse, w->energy_rse};
}

struct pair_seen tuner_seen_warming(const struct tuner *t, const struct search_window *w)
{
    const struct savings *a = &t->regime[t->report.n_regimes - 1];
    struct pair_seen seen = tuner_seen(t, w);
    double half_s = t->closed.kept_s / 2, lower = COLD;
    uint64_t from_ns = t->begun_ns;

    if (a->hold.windows == 0 && t->report.n_regimes > 1)
        a--; /* what was held before the job changed */
    if (a->hold.windows > 0) {
        double held_w = savings_mean_energy(&a->hold) / savings_mean_time(&a->hold);
        lower = 1 - held_w * w->time_s / w->energy_j;
        from_ns = t->closed.armed_ns;
    }
    double since_s = s_between(from_ns, loop_now_ns(t->o.loop)) - half_s;
    seen.energy_rse = hypot(seen.energy_rse, counterfactual_cool_rse(lower, since_s));
    return seen;
}
