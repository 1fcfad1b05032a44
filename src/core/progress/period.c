#include "core/progress/period.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/progress/repeat.h"

enum { LEVELS = 7, WINDOWS = 32, FAST_SAMPLES = 96 };
#define SHRINK 0.7        /* each span against the one before */
#define MOST_CYCLES 100.0 /* in the finest level's spans; a level up … */
#define MOST_CYCLES_UP 45.0
#define REPEATED_S 0.09
#define ALIAS_SAMPLES 8.0
#define ALIAS_TRUST 0.65
#define MOST_READING 1e6
#define CLOSEST_S 0.01 /* samples closer than this are left out */

struct sample {
    uint64_t at_ns;
    float power, sm, mem, busy; /* NAN unknown */
};

/* Level 0 holds samples as they came, each further one means of two of the one before. */
struct level {
    struct sample ring[FOLD_MOST];
    unsigned first, n;
    struct sample half;
    bool has_half;
    double gap_s; /* smoothed */
};

struct period {
    unsigned boards;
    double mhz_most;
    struct level level[][LEVELS]; /* of each board */
};

int period_new(unsigned boards, struct period **ret)
{
    if (boards < 1 || boards > PERIOD_BOARDS)
        return -EINVAL;
    struct period *p = calloc(1, sizeof *p + boards * sizeof *p->level);
    if (!p)
        return -ENOMEM;
    p->boards = boards;
    *ret = p;
    return 0;
}

int period_copy(const struct period *p, struct period **ret)
{
    size_t size = sizeof *p + p->boards * sizeof *p->level;
    struct period *copy = malloc(size);

    if (!copy)
        return -ENOMEM;
    memcpy(copy, p, size);
    *ret = copy;
    return 0;
}

void period_free(struct period *p)
{
    free(p);
}

void period_forget(struct period *p)
{
    memset(p->level, 0, p->boards * sizeof *p->level);
    p->mhz_most = 0;
}

/* ---- samples ---- */

static const struct sample *sample_at(const struct level *l, unsigned i)
{
    return &l->ring[(l->first + i) % FOLD_MOST];
}

static float mean_of(float a, float b)
{
    return isnan(a) ? b : isnan(b) ? a : (a + b) / 2;
}

static void push(struct level *l, const struct sample *s)
{
    if (l->n > 0) {
        double gap = s_between(sample_at(l, l->n - 1)->at_ns, s->at_ns);
        l->gap_s =
            l->n == 1 ? gap : l->gap_s + 0.1 * (fmin(gap, 4 * l->gap_s) - l->gap_s);
    }
    if (l->n == FOLD_MOST)
        l->first = (l->first + 1) % FOLD_MOST;
    else
        l->n++;
    l->ring[(l->first + l->n - 1) % FOLD_MOST] = *s;
}

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* The sensor has nothing new yet (the slowest have after 100 ms). */
static bool is_repeated(const struct sample *last, const struct sample *s)
{
    return s_between(last->at_ns, s->at_ns) < REPEATED_S && same(last->power, s->power) &&
           same(last->sm, s->sm) && same(last->mem, s->mem);
}

/* As a float; NAN where it is no reading of a board. */
static float believable(double x)
{
    return x >= 0 && x <= MOST_READING ? (float)x : NAN;
}

void period_feed(struct period *p, unsigned board, const struct activity *a)
{
    struct level *l = p->level[board];

    if (l->n > 0 && s_between(sample_at(l, l->n - 1)->at_ns, a->at_ns) < CLOSEST_S)
        return;
    p->mhz_most = fmax(p->mhz_most, a->sm_mhz);
    struct sample s = {a->at_ns, believable(a->power_w), believable(a->sm_util),
                       believable(a->mem_util), believable(a->sm_util / 100 * a->sm_mhz)};
    if (l->n > 0 && is_repeated(sample_at(l, l->n - 1), &s))
        return;
    push(l, &s);
    for (unsigned k = 1; k < LEVELS; k++, l++) {
        struct sample half = l->half;
        if (!l->has_half) {
            l->half = s;
            l->has_half = true;
            return;
        }
        if (s_between(half.at_ns, s.at_ns) > 3 * l->gap_s) {
            /* a gap lies between: each stays by itself */
            l->half = s;
            s = half;
        } else {
            l->has_half = false;
            s = (struct sample){half.at_ns + (s.at_ns - half.at_ns) / 2,
                                mean_of(half.power, s.power), mean_of(half.sm, s.sm),
                                mean_of(half.mem, s.mem), mean_of(half.busy, s.busy)};
        }
        push(l + 1, &s);
    }
}

/* ---- views ---- */

static float signal_of(const struct sample *s, unsigned signal)
{
    return signal == 0 ? s->power : signal == 1 ? s->sm : s->mem;
}

/* One signal of one board; false: too few samples or it does not move. */
static bool gather(const struct level *l, unsigned signal, uint64_t from_ns,
                   uint64_t to_ns, struct series *ret)
{
    double sum = 0, sq = 0;

    ret->n = 0;
    for (unsigned i = 0; i < l->n; i++) {
        const struct sample *s = sample_at(l, i);
        float x = signal_of(s, signal);
        if (s->at_ns < from_ns || s->at_ns > to_ns || isnan(x))
            continue;
        ret->t[ret->n] = s->at_ns - from_ns;
        ret->x[ret->n++] = x;
        sum += x;
    }
    if (ret->n < VIEW_LEAST)
        return false;
    double mean = sum / (double)ret->n;
    for (size_t i = 0; i < ret->n; i++) {
        ret->x[i] -= (float)mean;
        sq += (double)ret->x[i] * ret->x[i];
    }
    double rms = sqrt(sq / (double)ret->n);
    return signal == 0 ? rms > fmax(0.3, 0.001 * mean) : rms > 0.5;
}

/* Power of as many boards as there is room for, then utilisation. */
static void view_of(const struct period *p, unsigned level, uint64_t from_ns,
                    uint64_t to_ns, struct view *v)
{
    v->n = 0;
    for (unsigned signal = 0; signal < 3; signal++)
        for (unsigned b = 0; b < p->boards && v->n < VIEW_SERIES - (signal == 0 ? 2 : 0);
             b++)
            if (gather(&p->level[b][level], signal, from_ns, to_ns, &v->s[v->n]))
                v->n++;
    view_finish(v);
}

struct span {
    unsigned level;
    uint64_t from_ns, to_ns;
    double most_hz;
};

/* Spans to look at, the longest first; they end now. */
static unsigned spans(const struct period *p, struct span *ret)
{
    const struct level *all = p->level[0];
    unsigned n = 0;

    for (unsigned k = LEVELS; k-- > 0;) {
        const struct level *l = &all[k];
        if (l->n < VIEW_LEAST || (k > 0 && all[k - 1].n < FOLD_MOST))
            continue;
        uint64_t to = all[0].ring[(all[0].first + all[0].n - 1) % FOLD_MOST].at_ns;
        double s = s_between(sample_at(l, 0)->at_ns, to);
        if (k > 0 && s_between(sample_at(&all[k - 1], 0)->at_ns, to) > PERIOD_MOST_S * 4)
            continue;
        double shorter = k > 0 ? s_between(sample_at(&all[k - 1], 0)->at_ns, to) : 0;
        double least = VIEW_LEAST * fmax(l->gap_s, 1e-3);
        while (n < WINDOWS && s > least && s > shorter * 1.1) {
            ret[n++] = (struct span){k, to - ns_of_s(s), to,
                                     (k > 0 ? MOST_CYCLES_UP : MOST_CYCLES) / s};
            s *= SHRINK;
        }
    }
    return n;
}

/* ---- findings ---- */

/* Fitted by eye to bench/period --self, whose table says how often it is right. */
static double confidence_of(const struct repeat *r)
{
    double sure = 1 - exp(-(r->surprise - 3) / 4);
    double enough = 1 - exp(-(r->cycles - 1) / 1.1);
    double sharp = exp(-pow(r->rse / 0.025, 2));

    return fmax(0.05, fmin(0.99, sure * enough * sharp));
}

static void tell(const struct repeat *r, const struct span *s, struct period_found *ret)
{
    *ret = (struct period_found){.why = r->why, .from_ns = s->from_ns, .to_ns = s->to_ns};
    if (r->why != PERIOD_FOUND)
        return;
    ret->period_s = 1 / r->hz;
    ret->rse = r->rse;
    ret->confidence = confidence_of(r);
    ret->periods = r->cycles;
}

/* Of the spans in which a period was found, the longest first: the longest whose pattern
 * is as clean as in the shorter ones; where it is less so and the period nearly the same,
 * cycles slip against each other in it.
 */
static unsigned choose(const struct repeat *r, unsigned n)
{
    unsigned at = 0;

    while (r[at].why != PERIOD_FOUND)
        at++;
    for (unsigned i = at + 1; i < n; i++) {
        if (r[i].why != PERIOD_FOUND || r[i].cycles < 5 || r[i].surprise < 9)
            continue;
        double ratio = r[i].hz / r[at].hz;
        double left = 1 - r[at].explained, better = 1 - r[i].explained;
        if ((ratio < 1.2 || ratio > PERIOD_PARTS + 0.7) && left > 2 * better + 0.05)
            at = i;
    }
    return at;
}

/* What the newest samples, as they came, say against a period. */
static bool is_too_fast(const struct period *p, const struct span *span, double hz)
{
    const struct level *l = p->level[0];
    unsigned n = l->n < FAST_SAMPLES ? l->n : FAST_SAMPLES;
    uint64_t newest = sample_at(l, l->n - 1)->at_ns;
    struct view v;

    if (n < FAST_SAMPLES / 4)
        return false;
    view_of(p, 0, sample_at(l, l->n - n)->at_ns, newest, &v);
    if (v.n > 0 && v.span_s < 4 * n * v.dt_s && repeat_is_too_fast(&v))
        return true;
    if (span->level == 0)
        return false;
    view_of(p, 0, sample_at(l, 0)->at_ns, newest, &v);
    return v.n > 0 && v.span_s * hz > 3 && repeat_has_fraction(&v, hz);
}

void period_find(const struct period *p, struct period_found *ret)
{
    struct span span[WINDOWS];
    struct repeat r[WINDOWS];
    unsigned n = spans(p, span), found = 0;
    struct view v;

    *ret = (struct period_found){.why = PERIOD_FEW};
    for (unsigned i = 0; i < n; i++) {
        r[i] = (struct repeat){.why = PERIOD_FLAT};
        view_of(p, span[i].level, span[i].from_ns, span[i].to_ns, &v);
        if (v.n > 0)
            repeat_find(&v, 1 / PERIOD_MOST_S, fmin(span[i].most_hz, 1 / PERIOD_LEAST_S),
                        &r[i]);
        found += r[i].why == PERIOD_FOUND;
        if (i == 0)
            ret->why = r[i].why;
    }
    if (found == 0)
        return;
    unsigned at = choose(r, n);
    view_of(p, span[at].level, span[at].from_ns, span[at].to_ns, &v);
    if (is_too_fast(p, &span[at], r[at].hz) || repeat_is_alias(&v, r[at].hz))
        r[at].why = PERIOD_ALIAS;
    else if (repeat_is_mixture(&v, r[at].hz))
        r[at].why = PERIOD_MIXED;
    tell(&r[at], &span[at], ret);
    /* A sensor that looks at fixed moments shows what is far faster as this, however the
     * reader's times jitter: the more often the fewer samples a cycle has.
     */
    if (ret->period_s > 0 && ret->period_s < ALIAS_SAMPLES * v.dt_s)
        ret->confidence *= ALIAS_TRUST;
}

void period_near(const struct period *p, uint64_t from_ns, uint64_t to_ns, double near_s,
                 struct period_found *ret)
{
    const struct level *all = p->level[0];
    struct span span = {0, from_ns, to_ns, 0};
    struct view v;
    struct repeat r;

    while (span.level + 1 < LEVELS && all[span.level].n == FOLD_MOST &&
           sample_at(&all[span.level], 0)->at_ns > from_ns)
        span.level++;
    view_of(p, span.level, from_ns, to_ns, &v);
    repeat_find(&v, 0.8 / near_s, 1.25 / near_s, &r);
    tell(&r, &span, ret);
}

bool period_change(const struct period_found *before, const struct period_found *after,
                   double *ret_change, double *ret_se)
{
    if (before->why != PERIOD_FOUND || after->why != PERIOD_FOUND)
        return false;
    double ratio = after->period_s / before->period_s;
    if (ratio < 0.67 || ratio > 1.5)
        return false;
    *ret_change = ratio - 1;
    *ret_se = ratio * hypot(before->rse, after->rse);
    return true;
}

double period_busy(const struct period *p, uint64_t from_ns, uint64_t to_ns)
{
    double sum = 0;
    unsigned n = 0;

    for (unsigned b = 0; b < p->boards; b++) {
        unsigned k = 0;
        while (k + 1 < LEVELS && p->level[b][k].n == FOLD_MOST &&
               sample_at(&p->level[b][k], 0)->at_ns > from_ns)
            k++;
        const struct level *l = &p->level[b][k];
        for (unsigned i = 0; i < l->n; i++) {
            const struct sample *s = sample_at(l, i);
            if (s->at_ns < from_ns || s->at_ns > to_ns || isnan(s->busy))
                continue;
            sum += s->busy;
            n++;
        }
    }
    return n > 0 && p->mhz_most > 0 ? sum / n / p->mhz_most : NAN;
}
