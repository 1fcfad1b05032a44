/* Progress of a job whose launches never rest: so many of them stand for a step
 * (core/progress/rate.h).  They tell as a period does, look by look.
 */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-inside.h"

#define BUSY_LEAST 0.7 /* of the time: else they come at another's pace */
#define MIX_MOST 0.03  /* of the launches may be other kernels */
#define LONG_S 10.0    /* a period, against which the rate's windows are short */

static struct rate *rate_of(const struct tuner *t)
{
    return t->o.rate ? t->o.rate(t->o.rate_of) : NULL;
}

void tuner_rate_moves(struct tuner *t, uint32_t from_mw, uint32_t to_mw)
{
    struct rate *r = rate_of(t);

    if (r && from_mw && to_mw && from_mw != to_mw)
        rate_moved(r, loop_now_ns(t->o.loop), (double)to_mw / from_mw);
}

bool tuner_rate_beats(const struct tuner *t, const struct steps *steps)
{
    return t->beat && t->rate.on && steps->guessed;
}

double tuner_rate_settle_s(const struct tuner *t)
{
    return t->beat && t->rate.on ? rate_settle_s(&t->rate.first) : 0;
}

static const char *word_of(const struct tuner *t, const struct rate_found *f, double util)
{
    switch (f->why) {
    case RATE_FOUND:
        if (!(util >= BUSY_LEAST))
            return "its boards wait between launches";
        return t->rate.gone ? "it launches other kernels" : "its launches vary";
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

/* A power of ten, so that a step is of 0.1 to 1 s at first. */
static void choose_unit(struct tuner *t, const struct rate_found *f)
{
    if (t->rate.unit > 0 && t->rate.first.generation == f->generation)
        return;
    t->rate.unit = pow(10, floor(log10(f->per_s)));
    t->rate.first = *f;
}

static void tell(const struct tuner *t, const struct rate_found *f,
                 struct progress_period_heard *ret)
{
    ret->known = true;
    ret->period_s = t->rate.unit / f->per_s;
    ret->rse = f->rse;
    ret->confidence = f->confidence;
    ret->from_ns = f->from_ns;
    ret->to_ns = f->to_ns;
    ret->cycles = f->per_s * s_between(f->from_ns, f->to_ns) / t->rate.unit;
}

/* Of the two, where nothing was chosen yet: the surer, or whose windows are shorter. */
static bool is_better(const struct progress_period_heard *rate,
                      const struct progress_period_heard *period)
{
    return rate->known && (!period->known || period->period_s > LONG_S ||
                           rate->confidence >= period->confidence);
}

const struct progress_period_heard *tuner_rate_hear(struct tuner *t,
                                                    const struct progress_period_heard *h,
                                                    struct progress_period_heard *own)
{
    struct rate *r = rate_of(t);
    struct rate_found f = {.why = RATE_NOBODY};

    t->rate.gone = false;
    t->rate.word = NULL;
    if (t->beat && !t->rate.on)
        return h;
    if (r)
        rate_find(r, t->rate.from_ns, &f);
    *own = *h;
    own->known = false;
    bool sure = f.why == RATE_FOUND && f.confidence >= PROGRESS_PERIOD_SURE;
    if (t->beat)
        t->rate.gone = f.why == RATE_NOBODY || f.generation != t->rate.first.generation ||
                       (sure && rate_apart(&f, &t->rate.first) > MIX_MOST);
    if (f.why != RATE_NOBODY)
        t->rate.word = word_of(t, &f, h->util);
    if (sure && h->util >= BUSY_LEAST && !t->rate.gone) {
        if (!t->beat)
            choose_unit(t, &f);
        tell(t, &f, own);
    }
    if (t->beat)
        return own;
    bool on = is_better(own, h);
    if (on != t->rate.on) /* what was heard before is of other units */
        t->heard_s = 0;
    t->rate.on = on;
    if (on && rate_apart(&f, &t->rate.first) > MIX_MOST) {
        t->rate.unit = 0;
        choose_unit(t, &f);
        t->heard_s = 0;
        tell(t, &f, own);
    }
    return on ? own : h;
}

bool tuner_rate_begins(struct tuner *t)
{
    struct rate_found *of = &t->rate.regime_of;
    bool same = t->rate.on
                    ? t->rate.in_regime && of->generation == t->rate.first.generation &&
                          rate_apart(of, &t->rate.first) <= MIX_MOST
                    : t->known_by_period && !t->rate.in_regime;

    if (t->rate.in_regime && t->rate.on && !same)
        t->report.changes++;
    t->rate.in_regime = t->rate.on;
    *of = t->rate.first;
    return same;
}
