/* No unit of work is known yet: looks for one, in launches or in the period of power. */
#include <math.h>

#include "base/units.h"
#include "tuner/progress-source.h"

enum {
    POLL_S = 10,      /* interval of analyses */
    POLL_SAFE_S = 30, /* the same while the safe cap is held */
    UNKNOWN_S = 120,  /* without a result for this time, progress is unknown */
};
#define LONG_S 10.0 /* above this period, the rate allows shorter windows */
#define SAME 0.02   /* largest relative difference of two analyses that agree */
#define NEAR 1.15   /* largest ratio of two periods at the same cap */

void progress_listen(struct progress *p, const struct progress_listen *how)
{
    uint64_t now = loop_now_ns(p->loop);
    double every_s = how->safe ? POLL_SAFE_S : POLL_S;
    bool later = how->anew || how->hold_s > 0;
    struct progress_period_want want = {
        .from_ns = later ? now : 0,
        .least_s = how->hold_s / NEAR,
        .most_s = how->hold_s * NEAR,
        .anew = how->anew,
        .first_s = later ? every_s : 0,
        .every_s = every_s,
        .fn = p->on_power,
        .user = p->user,
    };

    p->none.sure_ns = how->sure_ns;
    p->none.due_ns = how->safe ? UINT64_MAX : now + ns_of_s(UNKNOWN_S);
    p->none.candidate_s = 0;
    p->from_ns = want.from_ns;
    progress_period_listen(p->power, &want);
}

/* The safe cap is in force: a window ends only when a unit is found. */
static void ask(struct progress *p)
{
    progress_listen(p, &(struct progress_listen){.anew = true, .safe = true});
}

/* Whether the rate is preferred: the period is unknown, long or less certain. */
static bool is_better(const struct progress_period_heard *rate,
                      const struct progress_period_heard *period)
{
    return rate->known && (!period->known || period->period_s > LONG_S ||
                           rate->confidence >= period->confidence);
}

/* Chooses between rate and period. */
static void choose(struct progress *p, const struct progress_period_heard *h)
{
    struct progress_period_heard rate;
    enum tuner_by was = p->none.likely;

    progress_launches_look(p, h, &rate);
    p->none.likely = is_better(&rate, h) ? TUNER_BY_LAUNCHES : TUNER_BY_PERIOD;
    bool launches = p->none.likely == TUNER_BY_LAUNCHES;
    bool other = launches && progress_launches_anew(p, &rate);
    if (other || p->none.likely != was) /* the last result has another unit */
        p->none.candidate_s = 0;
    p->found = launches ? rate : *h;
}

/* Whether the last analysis found the same. */
static bool agrees(struct progress *p)
{
    const struct progress_period_heard *h = &p->found;
    double was_s = p->none.candidate_s;

    if (was_s > 0 && fabs(h->period_s / was_s - 1) <= SAME + 3 * h->rse)
        return true;
    p->none.candidate_s = h->period_s;
    return false;
}

static enum progress_news on_power(struct progress *p,
                                   const struct progress_period_heard *h)
{
    choose(p, h);
    if (!p->found.known) {
        p->none.candidate_s = 0;
        progress_unsure(p, progress_period_why(h), p->launches.word);
        return h->at_ns < p->none.due_ns ? PROGRESS_GOES_ON : PROGRESS_UNKNOWN;
    }
    bool may = loop_now_ns(p->loop) >= p->none.sure_ns;
    return may && agrees(p) ? PROGRESS_SURE : PROGRESS_GOES_ON;
}

const struct progress_source progress_by_nothing = {
    .missing = "progress",
    .lost = "progress is no longer seen",
    .found = "progress is seen now",
    .on_power = on_power,
    .ask = ask,
};
