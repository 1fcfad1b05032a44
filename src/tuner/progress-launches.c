/* A job that launches without pauses: a fixed number of launches stands for a step
 * (core/progress/rate.h).
 */
#include <math.h>

#include "base/units.h"
#include "tuner/progress-source.h"

#define BUSY_LEAST 0.7 /* least utilisation at which boards limit the rate */
#define MIX_MOST 0.03  /* largest part of launches that may be other kernels */

static struct rate *rate_of(const struct progress_launches *l)
{
    return l->rate ? l->rate(l->rate_of) : NULL;
}

void progress_moved(struct progress *p, uint32_t from_mw, uint32_t to_mw)
{
    struct rate *r = rate_of(&p->launches);

    if (r && from_mw && to_mw && from_mw != to_mw)
        rate_moved(r, loop_now_ns(p->loop), (double)to_mw / from_mw);
}

static const char *word_of(const struct rate_found *f, bool gone, double util)
{
    switch (f->why) {
    case RATE_NOBODY:
        return NULL;
    case RATE_FOUND:
        if (!(util >= BUSY_LEAST))
            return "its boards wait between launches";
        return gone ? "the job launches other kernels" : "its launches vary";
    case RATE_OTHER:
        return "its launches pause";
    case RATE_DRIFTS:
        return "its launches drift";
    case RATE_UNEVEN:
        return "its launches vary";
    default:
        return "too few launches yet";
    }
}

/* Chooses a power of ten, so that a step initially takes 0.1 to 1 s. */
static void choose_unit(struct progress_launches *l)
{
    if (l->unit > 0 && l->first.generation == l->now.generation)
        return;
    l->unit = pow(10, floor(log10(l->now.per_s)));
    l->first = l->now;
}

static void tell(const struct progress_launches *l, struct progress_period_heard *ret)
{
    const struct rate_found *f = &l->now;

    ret->known = true;
    ret->period_s = l->unit / f->per_s;
    ret->rse = f->rse;
    ret->confidence = f->confidence;
    ret->from_ns = f->from_ns;
    ret->to_ns = f->to_ns;
    ret->cycles = f->per_s * s_between(f->from_ns, f->to_ns) / l->unit;
}

/* Whether the rate is certain. */
static bool find(struct progress *p)
{
    struct progress_launches *l = &p->launches;
    struct rate *r = rate_of(l);

    l->now = (struct rate_found){.why = RATE_NOBODY};
    if (r)
        rate_find(r, p->from_ns, &l->now);
    return l->now.why == RATE_FOUND && l->now.confidence >= PROGRESS_PERIOD_SURE;
}

void progress_launches_look(struct progress *p, const struct progress_period_heard *h,
                            struct progress_period_heard *ret)
{
    struct progress_launches *l = &p->launches;
    bool sure = find(p);

    l->word = word_of(&l->now, false, h->util);
    *ret = *h;
    ret->known = false;
    if (!sure || !(h->util >= BUSY_LEAST))
        return;
    choose_unit(l);
    tell(l, ret);
}

bool progress_launches_anew(struct progress *p, struct progress_period_heard *ret)
{
    struct progress_launches *l = &p->launches;

    if (rate_apart(&l->now, &l->first) <= MIX_MOST)
        return false;
    l->unit = 0;
    choose_unit(l);
    tell(l, ret);
    return true;
}

/* Whether the time per step differs by more than a cap can cause, so that the launches
 * may be other work.
 */
static bool is_other_work(const struct progress *p)
{
    double least_s, most_s;

    return p->found.known && progress_inferred_bounds(p, &least_s, &most_s) &&
           (p->found.period_s < least_s || p->found.period_s > most_s);
}

static enum progress_news on_power(struct progress *p,
                                   const struct progress_period_heard *h)
{
    struct progress_launches *l = &p->launches;
    bool sure = find(p);
    bool gone = l->now.why == RATE_NOBODY || l->now.generation != l->first.generation ||
                (sure && rate_apart(&l->now, &l->first) > MIX_MOST);

    l->word = word_of(&l->now, gone, h->util);
    p->found = *h;
    p->found.known = false;
    if (sure && h->util >= BUSY_LEAST && !gone)
        tell(l, &p->found);
    const char *why = l->word ? l->word : "the job launches nothing";
    if (!gone)
        return progress_inferred_judge(p, !is_other_work(p), why);
    progress_unsure(p, why, NULL);
    return PROGRESS_LOST;
}

/* Launches follow the boards' pace only some time after a cap has come into force. */
static void ask(struct progress *p)
{
    progress_inferred_ask(p, rate_settle_s(&p->launches.first));
}

static bool same(const struct progress *p)
{
    const struct progress_launches *l = &p->launches;

    return l->regime_of.generation == l->first.generation &&
           rate_apart(&l->regime_of, &l->first) <= MIX_MOST;
}

static void begin(struct progress *p)
{
    tuner_note(p->notes, true,
               "the job reports no steps and launches without a pause: %.0f launches, "
               "%.3g s, stand for a step (confidence %.2f)",
               p->launches.unit, p->found.period_s, p->found.confidence);
    p->launches.regime_of = p->launches.first;
    steps_init(&p->steps); /* ignores estimated steps from now on */
    progress_inferred_begin(p);
}

const struct progress_source progress_by_launches = {
    .inferred = true,
    .missing = "even launches",
    .lost = "launches are no longer regular",
    .found = "launches are regular now",
    .on_power = on_power,
    .ask = ask,
    .same = same,
    .begin = begin,
    .check_s = 10,
};
