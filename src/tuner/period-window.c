#include "tuner/period-window.h"

#include <math.h>

#include "base/units.h"

enum {
    MISSED_LEAST_S = 60, /* least time until a window without a period is given up */
    MISSED_MOST_S = 900, /* longest time */
    MISSED_PERIODS = 12, /* the same in periods */
};
#define SAME 0.02 /* largest relative difference of two analyses that agree */
#define TARGET_RSE 0.003
#define COARSE_RSE 0.01
#define FASTER 0.985 /* least ratio of periods when the cap is lowered */
#define NEAR 1.15    /* largest ratio of two periods at the same cap */
#define SLOWER 1.3   /* largest slowdown beyond proportion to the cap */

bool period_window_agrees(struct period_window *p, const struct progress_period_heard *h)
{
    if (p->candidate_s > 0 && fabs(h->period_s / p->candidate_s - 1) <= SAME + 3 * h->rse)
        return true;
    p->candidate_s = h->period_s;
    return false;
}

bool period_window_bounds(const struct period_window *p, const struct regimes *measured,
                          uint32_t mw, double *ret_least_s, double *ret_most_s)
{
    uint32_t below_mw = 0, above_mw = UINT32_MAX;

    if (p->at_mw == mw && p->period_s > 0) {
        *ret_least_s = p->period_s / NEAR;
        *ret_most_s = p->period_s * NEAR;
        return true;
    }
    for (size_t i = 0; i < measured->n_caps; i++) {
        const struct tuner_cap *c = &measured->cap[i];
        double s = savings_mean_time(&c->mean);
        if (c->cap_mw + MW_PER_W >= mw && c->cap_mw < above_mw) {
            above_mw = c->cap_mw;
            *ret_least_s = s * FASTER;
        }
        if (c->cap_mw <= mw + MW_PER_W && c->cap_mw > below_mw) {
            below_mw = c->cap_mw;
            *ret_most_s = s / FASTER;
        }
    }
    if (above_mw == UINT32_MAX && below_mw == 0)
        return false;
    if (above_mw == UINT32_MAX) /* above all measured caps: the reverse of SLOWER */
        *ret_least_s = *ret_most_s / SLOWER * below_mw / mw;
    if (below_mw == 0)
        *ret_most_s = *ret_least_s / FASTER * SLOWER * above_mw / mw;
    return true;
}

static bool is_enough(const struct progress_period_heard *h, double window_s,
                      double listened_s)
{
    if (!h->known || s_between(h->from_ns, h->to_ns) < 0.7 * window_s)
        return false;
    return h->rse <= TARGET_RSE || listened_s >= 6 * window_s ||
           (listened_s >= 3 * window_s && h->rse <= COARSE_RSE);
}

enum period_window_verdict period_window_judge(const struct period_window *p,
                                               const struct progress_period_heard *h,
                                               bool usable, double window_s)
{
    double most_s =
        fmax(MISSED_LEAST_S, fmax(7 * window_s, MISSED_PERIODS * p->period_s));
    double listened_s = s_between(p->since_ns, h->at_ns);

    if (usable && is_enough(h, window_s, listened_s))
        return PERIOD_WINDOW_ENOUGH;
    return listened_s >= fmin(most_s, MISSED_MOST_S) ? PERIOD_WINDOW_MISSED
                                                     : PERIOD_WINDOW_GOES_ON;
}

void period_window_close(struct period_window *p, const struct progress_period_heard *h,
                         uint32_t mw, struct stretch_done ret[2])
{
    uint64_t from_ns = h->from_ns > p->booked_ns ? h->from_ns : p->booked_ns;

    ret[0] = ret[1] = (struct stretch_done){0};
    if (p->booked_ns && h->from_ns > p->booked_ns) {
        ret[0].begin_ns = p->booked_ns;
        ret[0].end_ns = h->from_ns;
        ret[0].steps =
            s_between(p->booked_ns, h->from_ns) * (1 / p->period_s + 1 / h->period_s) / 2;
    }
    if (h->to_ns > from_ns) {
        ret[1].begin_ns = from_ns;
        ret[1].end_ns = h->to_ns;
        ret[1].steps = s_between(from_ns, h->to_ns) / h->period_s;
    }
    p->booked_ns = h->to_ns;
    p->missed = 0;
    p->period_s = h->period_s;
    p->at_mw = mw;
}
