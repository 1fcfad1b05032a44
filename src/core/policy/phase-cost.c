#include "core/policy/phase-cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* For a cap of 60 % during a tenth to a fifth of a job's time, on the simulated boards:
 * SLOW is the part of training's speed that is lost while the cap is still in force.
 * GAIN is the energy that the phase saves, minus the cost of its longer time at the
 * job's mean power (EDP's price of time), as a part of that power.
 */
#define SLOW 0.12
#define GAIN 0.126

double phase_break_even_s(const struct phase_latency *l, double notice_s)
{
    double late_s = notice_s + l->call_s;
    double lost_s = SLOW * (late_s + l->up_s / 2);

    return late_s + l->down_s / 2 + lost_s / GAIN;
}

/* ---- returns ---- */

#define SLOW_BY_DEPTH 0.3 /* 0.12 at a cap of 60 % */
#define LEAST_S 60.0
enum { LATELY = 8, LATE_MOST = 2 };

double phase_returns_lost(const struct phase_returns *r, uint64_t now_ns)
{
    return r->lost_s / fmax(s_between(r->began_ns, now_ns), LEAST_S);
}

void phase_returned(struct phase_returns *r, const struct phase_return *one,
                    uint64_t now_ns)
{
    bool late = one->took_s > one->l.call_s + PHASE_LATE_S;

    r->n++;
    r->late += late;
    r->lately = (r->lately << 1 | late) & ((1u << LATELY) - 1);
    r->lost_s += SLOW_BY_DEPTH * one->depth * (one->took_s + one->l.up_s / 2);
    r->worst_s = fmax(r->worst_s, one->took_s);
    r->off = r->off || __builtin_popcount(r->lately) >= LATE_MOST ||
             phase_returns_lost(r, now_ns) > PHASE_LOST_MOST;
}

/* ---- lags ---- */

void phase_lag_add(struct phase_lag *lag, double s)
{
    lag->s[lag->n++ % PHASE_LAGS] = s;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double phase_lag_s(const struct phase_lag *lag, double unknown_s)
{
    size_t n = lag->n < PHASE_LAGS ? lag->n : PHASE_LAGS;
    double sorted[PHASE_LAGS];

    if (n == 0)
        return unknown_s;
    memcpy(sorted, lag->s, n * sizeof sorted[0]);
    qsort(sorted, n, sizeof sorted[0], by_size);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

/* ---- settling ---- */

#define BEFORE_S 1.5 /* length of the time before the change */
#define WITHIN_S 0.8 /* time within which the power settles */
#define AFTER_S 2.0  /* the power after the change is the mean from WITHIN_S to this */
#define LEAST 0.1    /* least change of power that exceeds its scatter */
#define LEAST_CAP 0.05
enum { SAMPLES_LEAST = 5 };

/* The mean of the samples from from_s to to_s after the change; false: too few. */
static bool mean_of(const struct phase_settling *s, double from_s, double to_s,
                    double *ret)
{
    unsigned n = s->n < PHASE_SAMPLES ? s->n : PHASE_SAMPLES, used = 0;
    double sum = 0;

    for (unsigned i = 0; i < n; i++) {
        double at_s = s_between(s->changed_ns, s->sample[i].at_ns);
        if (at_s < from_s || at_s > to_s)
            continue;
        sum += s->sample[i].w;
        used++;
    }
    if (used < SAMPLES_LEAST)
        return false;
    *ret = sum / used;
    return true;
}

/* The energy missing compared with a power that settles at once, in seconds of the
 * change.
 */
static double missing_s(const struct phase_settling *s, double before_w, double after_w)
{
    unsigned first = s->n < PHASE_SAMPLES ? 0 : s->n - PHASE_SAMPLES;
    double area = 0, from_s = 0, w = before_w;

    for (unsigned i = first; i < s->n && from_s < WITHIN_S; i++) {
        double at_s = s_between(s->changed_ns, s->sample[i % PHASE_SAMPLES].at_ns);
        double to_s = fmin(at_s, WITHIN_S);
        double next_w = s->sample[i % PHASE_SAMPLES].w;
        if (at_s <= 0)
            continue;
        area += (to_s - from_s) * (after_w - (w + next_w) / 2);
        from_s = to_s;
        w = next_w;
    }
    return area / (after_w - before_w);
}

/* A linear change of power misses half of its time. */
static void judge(struct phase_settling *s)
{
    double before_w, after_w;

    s->open = false;
    if (!mean_of(s, -BEFORE_S, 0, &before_w) || !mean_of(s, WITHIN_S, AFTER_S, &after_w))
        return;
    double way_w = after_w - before_w;
    if ((way_w > 0) != s->up || fabs(way_w) < LEAST * before_w)
        return;
    double settled_s = fmin(fmax(2 * missing_s(s, before_w, after_w), 0), 2 * WITHIN_S);
    phase_lag_add(s->up ? &s->up_lag : &s->down_lag, settled_s);
}

void phase_settling_sample(struct phase_settling *s, uint64_t at_ns, double w)
{
    unsigned at = s->n++ % PHASE_SAMPLES;

    s->sample[at].at_ns = at_ns;
    s->sample[at].w = w;
    if (s->open && s_between(s->changed_ns, at_ns) > AFTER_S)
        judge(s);
}

void phase_settling_cap(struct phase_settling *s, uint32_t was_mw, uint32_t mw,
                        double call_s, uint64_t now_ns)
{
    bool alone = !s->open && s_between(s->changed_ns, now_ns) > AFTER_S;
    double way = fabs((double)mw - (double)was_mw);

    if (call_s > 0)
        phase_lag_add(&s->call, call_s);
    s->open = alone && way >= LEAST_CAP * (double)was_mw;
    s->up = mw > was_mw;
    s->changed_ns = now_ns;
}

void phase_settling_latency(const struct phase_settling *s, struct phase_latency *ret)
{
    const struct phase_latency unknown = PHASE_LATENCY_DEFAULT;

    *ret = (struct phase_latency){
        .call_s = phase_lag_s(&s->call, unknown.call_s),
        .down_s = phase_lag_s(&s->down_lag, unknown.down_s),
        .up_s = phase_lag_s(&s->up_lag, unknown.up_s),
    };
}
