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
    return l->on ? rate_settle_s(&l->first) : 0;
}

static const char *word_of(const struct launch_rate *l, const struct rate_found *f,
                           double util)
{
    switch (f->why) {
    case RATE_FOUND:
        if (!(util >= BUSY_LEAST))
            return "its boards wait between launches";
        return l->gone ? "it launches other kernels" : "its launches vary";
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

const struct progress_period_heard *launch_rate_hear(
    struct launch_rate *l, bool inferred, const struct progress_period_heard *h,
    struct progress_period_heard *own, bool *ret_other)
{
    struct rate *r = rate_of(l);
    struct rate_found f = {.why = RATE_NOBODY};

    *ret_other = false;
    l->gone = false;
    l->word = NULL;
    if (inferred && !l->on)
        return h;
    if (r)
        rate_find(r, l->from_ns, &f);
    *own = *h;
    own->known = false;
    bool sure = f.why == RATE_FOUND && f.confidence >= PROGRESS_PERIOD_SURE;
    if (inferred)
        l->gone = f.why == RATE_NOBODY || f.generation != l->first.generation ||
                  (sure && rate_apart(&f, &l->first) > MIX_MOST);
    if (f.why != RATE_NOBODY)
        l->word = word_of(l, &f, h->util);
    if (sure && h->util >= BUSY_LEAST && !l->gone) {
        if (!inferred)
            choose_unit(l, &f);
        tell(l, &f, own);
    }
    if (inferred)
        return own;
    bool on = is_better(own, h);
    *ret_other = on != l->on;
    l->on = on;
    if (on && rate_apart(&f, &l->first) > MIX_MOST) {
        l->unit = 0;
        choose_unit(l, &f);
        *ret_other = true;
        tell(l, &f, own);
    }
    return on ? own : h;
}

bool launch_rate_begin(struct launch_rate *l, bool inferred, bool *ret_changed)
{
    struct rate_found *of = &l->regime_of;
    bool same = l->on ? l->in_regime && of->generation == l->first.generation &&
                            rate_apart(of, &l->first) <= MIX_MOST
                      : inferred && !l->in_regime;

    *ret_changed = l->in_regime && l->on && !same;
    l->in_regime = l->on;
    *of = l->first;
    return same;
}
