#include "tuner/launch-rate.h"

#include <math.h>
#include <stddef.h>

#include "base/units.h"

#define BUSY_LEAST 0.7 /* least utilisation: else the boards do not set the pace */
#define MIX_MOST 0.03  /* largest part of launches that may be other kernels */
#define LONG_S 10.0    /* above this period, the rate allows shorter windows */

static struct rate *rate_of(const struct launch_rate *l)
{
    return l->rate ? l->rate(l->rate_of) : NULL;
}

void launch_rate_moved(struct launch_rate *l, uint32_t from_mw, uint32_t to_mw,
                       uint64_t now_ns)
{
    struct rate *r = rate_of(l);

    if (r && from_mw && to_mw && from_mw != to_mw)
        rate_moved(r, now_ns, (double)to_mw / from_mw);
}

double launch_rate_settle_s(const struct launch_rate *l)
{
    return rate_settle_s(&l->first);
}

static const char *word_of(const struct rate_found *f, bool gone, double util)
{
    switch (f->why) {
    case RATE_FOUND:
        if (!(util >= BUSY_LEAST))
            return "its boards wait between launches";
        return gone ? "it launches other kernels" : "its launches vary";
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
static void choose_unit(struct launch_rate *l, const struct rate_found *f)
{
    if (l->unit > 0 && l->first.generation == f->generation)
        return;
    l->unit = pow(10, floor(log10(f->per_s)));
    l->first = *f;
}

static void tell(const struct launch_rate *l, const struct rate_found *f,
                 struct progress_period_heard *ret)
{
    ret->known = true;
    ret->period_s = l->unit / f->per_s;
    ret->rse = f->rse;
    ret->confidence = f->confidence;
    ret->from_ns = f->from_ns;
    ret->to_ns = f->to_ns;
    ret->cycles = f->per_s * s_between(f->from_ns, f->to_ns) / l->unit;
}

/* Whether the rate is preferred: the period is unknown, long or less certain. */
static bool is_better(const struct progress_period_heard *rate,
                      const struct progress_period_heard *period)
{
    return rate->known && (!period->known || period->period_s > LONG_S ||
                           rate->confidence >= period->confidence);
}

/* Chooses between rate and period, before a search. */
static enum launch_rate_news choose(struct launch_rate *l, const struct rate_found *f,
                                    const struct progress_period_heard *h,
                                    struct progress_period_heard *own)
{
    enum tuner_by was = l->likely;

    l->likely = is_better(own, h) ? TUNER_BY_LAUNCHES : TUNER_BY_PERIOD;
    if (l->likely == TUNER_BY_LAUNCHES && rate_apart(f, &l->first) > MIX_MOST) {
        l->unit = 0;
        choose_unit(l, f);
        tell(l, f, own);
        return LAUNCH_RATE_OTHER_UNIT;
    }
    return l->likely == was ? LAUNCH_RATE_SAME : LAUNCH_RATE_OTHER_UNIT;
}

const struct progress_period_heard *launch_rate_hear(
    struct launch_rate *l, enum tuner_by source, const struct progress_period_heard *h,
    struct progress_period_heard *own, enum launch_rate_news *ret)
{
    struct rate *r = rate_of(l);
    struct rate_found f = {.why = RATE_NOBODY};
    bool inferred = source == TUNER_BY_LAUNCHES, gone = false;

    *ret = LAUNCH_RATE_SAME;
    l->word = NULL;
    if (source == TUNER_BY_PERIOD)
        return h;
    if (r)
        rate_find(r, l->from_ns, &f);
    *own = *h;
    own->known = false;
    bool sure = f.why == RATE_FOUND && f.confidence >= PROGRESS_PERIOD_SURE;
    if (inferred)
        gone = f.why == RATE_NOBODY || f.generation != l->first.generation ||
               (sure && rate_apart(&f, &l->first) > MIX_MOST);
    if (f.why != RATE_NOBODY)
        l->word = word_of(&f, gone, h->util);
    if (sure && h->util >= BUSY_LEAST && !gone) {
        if (!inferred)
            choose_unit(l, &f);
        tell(l, &f, own);
    }
    if (gone)
        *ret = LAUNCH_RATE_GONE;
    if (inferred)
        return own;
    *ret = choose(l, &f, h, own);
    return l->likely == TUNER_BY_LAUNCHES ? own : h;
}

bool launch_rate_begin(struct launch_rate *l, enum tuner_by unit, bool *ret_changed)
{
    struct rate_found *of = &l->regime_of;
    bool same = l->likely == unit;

    if (unit == TUNER_BY_LAUNCHES)
        same = same && of->generation == l->first.generation &&
               rate_apart(of, &l->first) <= MIX_MOST;
    *ret_changed = unit == TUNER_BY_LAUNCHES && l->likely == TUNER_BY_LAUNCHES && !same;
    *of = l->first;
    return same;
}
