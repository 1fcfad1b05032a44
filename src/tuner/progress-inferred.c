/* Windows of inferred steps (of launches and of periods): decides when the analyses
 * suffice to close a window, and books the resulting stretches of steps.
 */
#include <math.h>

#include "base/units.h"
#include "tuner/progress-source.h"

enum {
    POLL_S = 5,          /* interval of analyses */
    MISSED_LEAST_S = 60, /* least time until a window without a period is given up */
    MISSED_MOST_S = 900, /* longest such time */
    MISSED_PERIODS = 12, /* the same, in periods */
};
#define TARGET_RSE 0.003
#define COARSE_RSE 0.01
#define FASTER 0.985  /* least ratio of periods when the cap is lowered */
#define NEAR 1.15     /* largest ratio of two periods at the same cap */
#define SLOWER 1.3    /* largest slowdown beyond proportion to the cap */
#define GAP_ALIKE 0.2 /* tolerance of power in the stretch before a window */

void progress_inferred_begin(struct progress *p)
{
    p->inferred.period_s = p->found.period_s;
    p->inferred.at_mw = board_caps_in_force_mw(p->caps);
    p->inferred.booked_ns = p->found.from_ns;
    p->inferred.missed = 0;
    progress_sure(p);
}

bool progress_inferred_bounds(const struct progress *p, double *ret_least_s,
                              double *ret_most_s)
{
    const struct progress_inferred *i = &p->inferred;
    uint32_t mw = board_caps_in_force_mw(p->caps), below_mw = 0, above_mw = UINT32_MAX;

    if (i->at_mw == mw && i->period_s > 0) {
        *ret_least_s = i->period_s / NEAR;
        *ret_most_s = i->period_s * NEAR;
        return true;
    }
    for (size_t k = 0; k < p->regimes->n_caps; k++) {
        const struct tuner_cap *c = &p->regimes->cap[k];
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

void progress_inferred_ask(struct progress *p, double settle_s)
{
    uint64_t now = loop_now_ns(p->loop);
    struct progress_period_want want = {
        .from_ns = now + ns_of_s(fmax(p->window.rule.settle_s, settle_s)),
        .first_s = fmax(p->window_s, 3 * p->inferred.period_s),
        .every_s = POLL_S,
        .fn = p->on_power,
        .user = p->user,
    };

    want.anew = !progress_inferred_bounds(p, &want.least_s, &want.most_s);
    p->from_ns = want.from_ns;
    progress_period_listen(p->power, &want);
}

static bool is_enough(const struct progress_period_heard *h, double window_s,
                      double listened_s)
{
    if (!h->known || s_between(h->from_ns, h->to_ns) < 0.7 * window_s)
        return false;
    return h->rse <= TARGET_RSE || listened_s >= 6 * window_s ||
           (listened_s >= 3 * window_s && h->rse <= COARSE_RSE);
}

/* Books the window's stretch, and the stretch before it if its power is plausible for the
 * job.
 */
static void book(struct progress *p)
{
    const struct progress_period_heard *h = &p->found;
    const struct progress_inferred *i = &p->inferred;
    uint64_t from_ns = h->from_ns > i->booked_ns ? h->from_ns : i->booked_ns;
    double share = board_caps_in_force_mw(p->caps) / fmax(1, i->reference_mw);
    struct stretch_done d = {.kind = p->regimes->stretch.kind};

    if (i->booked_ns && h->from_ns > i->booked_ns && i->full_w > 0) {
        d.begin_ns = i->booked_ns;
        d.end_ns = h->from_ns;
        d.steps =
            s_between(d.begin_ns, d.end_ns) * (1 / i->period_s + 1 / h->period_s) / 2;
        regimes_book(p->regimes, &d, (1 - GAP_ALIKE) * fmin(1, share) * i->full_w,
                     (1 + GAP_ALIKE) * i->full_w);
    }
    if (h->to_ns <= from_ns)
        return;
    d.begin_ns = from_ns;
    d.end_ns = h->to_ns;
    d.steps = s_between(from_ns, h->to_ns) / h->period_s;
    regimes_book(p->regimes, &d, 0, 0);
}

static void close_window(struct progress *p)
{
    const struct progress_period_heard *h = &p->found;
    struct window *w = &p->window;

    progress_period_rest(p->power);
    book(p);
    p->inferred.booked_ns = h->to_ns;
    p->inferred.missed = 0;
    p->inferred.period_s = h->period_s;
    p->inferred.at_mw = board_caps_in_force_mw(p->caps);
    w->state = WINDOW_CLOSED;
    w->n_pieces = 1;
    w->piece[0] = (struct window_piece){
        {.steps = 1, .at_ns = h->from_ns},
        {.steps = 1 + (uint64_t)h->cycles, .at_ns = h->to_ns},
    };
    w->steps = h->cycles;
    w->time_s = h->period_s;
    w->time_rse = h->rse;
}

enum progress_news progress_inferred_judge(struct progress *p, bool usable,
                                           const char *why)
{
    struct progress_inferred *i = &p->inferred;
    double window_s = p->window_s;
    double most_s =
        fmax(MISSED_LEAST_S, fmax(7 * window_s, MISSED_PERIODS * i->period_s));
    double listened_s = s_between(p->from_ns, p->found.at_ns);

    if (usable && is_enough(&p->found, window_s, listened_s)) {
        progress_sure(p);
        close_window(p);
        return PROGRESS_WINDOW;
    }
    if (listened_s < fmin(most_s, MISSED_MOST_S))
        return PROGRESS_GOES_ON;
    progress_unsure(p, why, NULL);
    i->missed++;
    i->booked_ns = 0; /* steps since then are unknown */
    return PROGRESS_DEAF;
}
