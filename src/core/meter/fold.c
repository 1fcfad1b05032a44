#include "core/meter/fold.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GRID 0.0025     /* s: about the grid to which the edges of boxes are rounded */
#define FASTEST_HZ 50.0 /* loads that a sensor shows as slower ones, at most */

enum { SPAN_MAX = 40000, PEAKS = 6 };

struct fold {
    size_t n;
    struct fold_obs obs[FOLD_MAX];
    double y[FOLD_MAX], alpha[FOLD_MAX], cov[FOLD_MAX];
    double origin, mean, var, span;
    double tick_s; /* 0: none */
    double cell;   /* s: of the grid, a whole number of cells a tick */
    double *table; /* second antidifference of the kernel, by lag in cells */
    size_t n_table;
    double *k; /* covariance, lower triangle; then its Cholesky factor */
    uint64_t key[FOLD_MAX];
};

void fold_free(struct fold *f)
{
    if (f) {
        free(f->table);
        free(f->k);
    }
    free(f);
}

int fold_new(const struct fold_obs *obs, size_t n, double tick_s, struct fold **ret)
{
    if (n == 0 || n > FOLD_MAX)
        return -EINVAL;

    auto_(fold_free) struct fold *f = calloc(1, sizeof *f);
    if (!f)
        return -ENOMEM;
    f->k = calloc(n * (n + 1) / 2, sizeof *f->k);
    if (!f->k)
        return -ENOMEM;

    memcpy(f->obs, obs, n * sizeof *obs);
    f->n = n;
    f->tick_s = tick_s;
    f->cell = tick_s > 0 ? tick_s / fmax(round(tick_s / GRID), 1) : GRID;
    f->origin = obs[0].t0;
    for (size_t i = 0; i < n; i++)
        f->mean += obs[i].mean_w / (double)n;
    for (size_t i = 0; i < n; i++) {
        f->y[i] = obs[i].mean_w - f->mean;
        f->var += f->y[i] * f->y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++)
        f->span = fmax(f->span, obs[i].t1 + (obs[i].n - 1) * obs[i].step - f->origin);
    *ret = take(f);
    return 0;
}

/* Covariance of the periodic Brownian bridge, 6 x^2 - 6 |x| + 1, x in cycles from -1/2 to
 * 1/2, blurred by the phase drift from the load's jitter: normal with standard deviation
 * s.
 */
static double bridge(double x, double s)
{
    double sum = 0;

    x = fabs(x - round(x));
    if (s < 0.12 && x > 6 * s)
        return 6 * (x * x + s * s - x) + 1;
    if (s < 0.12)
        return 6 * (x * x + s * s - x * erf(x * M_SQRT1_2 / s) -
                    s * sqrt(2 / M_PI) * exp(-x * x / (2 * s * s))) +
               1;
    for (int m = 1; m <= 7; m++)
        sum += exp(-2 * M_PI * M_PI * s * s * m * m) * cos(2 * M_PI * m * x) / (m * m);
    return sum * 6 / (M_PI * M_PI);
}

static double kernel(const struct fold_fit *fit, double tau, double cell)
{
    double k = fit->wander * exp(-tau / fit->wander_s);

    if (fit->period_s > 0) {
        double cycles = tau / fit->period_s, across = cell / fit->period_s;
        k += bridge(cycles,
                    sqrt(fit->jitter * fit->jitter * cycles + across * across / 6));
    }
    return k;
}

/* Two consecutive values. */
typedef double pair
    __attribute__((vector_size(2 * sizeof(double)), aligned(8), may_alias));

/* Four partial sums, two at a time, because each addition to a single sum would wait for
 * the one before.  Most of a fold's time is spent here.
 */
static double dot(const double *a, const double *b, size_t n)
{
    pair s = {0}, t = {0};
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        const pair *p = (const pair *)(a + i), *q = (const pair *)(b + i);
        s += p[0] * q[0];
        t += p[1] * q[1];
    }
    for (; i < n; i++)
        s[0] += a[i] * b[i];
    return s[0] + s[1] + (t[0] + t[1]);
}

/* F with F[n+1] - 2 F[n] + F[n-1] = k[n]: the covariance of two boxes is a sum of four F.
 */
static int fill_table(struct fold *f, const struct fold_fit *fit, double span)
{
    size_t n = (size_t)(span / f->cell) + 4;

    if (n > SPAN_MAX)
        return -E2BIG;
    if (n > f->n_table) {
        double *t = realloc(f->table, n * sizeof *t);
        if (!t)
            return -ENOMEM;
        f->table = t;
        f->n_table = n;
    }
    f->table[0] = 0;
    f->table[1] = kernel(fit, 0, f->cell) / 2;
    for (size_t i = 1; i + 1 < n; i++)
        f->table[i + 1] =
            2 * f->table[i] - f->table[i - 1] + kernel(fit, (double)i * f->cell, f->cell);
    return 0;
}

static long grid(const struct fold *f, double t)
{
    return lround((t - f->origin) / f->cell);
}

static inline double at(const struct fold *f, long d)
{
    return f->table[d < 0 ? -d : d];
}

/* Covariance of the sums over grid cells [a0, a1) and [b0, b1). */
static inline double boxes(const struct fold *f, long a0, long a1, long b0, long b1)
{
    return at(f, a1 - b0) - at(f, a1 - b1) - at(f, a0 - b0) + at(f, a0 - b1);
}

struct comb {
    long a[8], w;
    unsigned n;
};

static struct comb comb_of(const struct fold *f, const struct fold_obs *o)
{
    struct comb c = {.n = o->n > 8 ? 8 : o->n};

    c.w = lround((o->t1 - o->t0) / f->cell);
    if (c.w < 1)
        c.w = 1;
    for (unsigned i = 0; i < c.n; i++)
        c.a[i] = grid(f, o->t0 + i * o->step);
    return c;
}

static double covariance(const struct fold *f, const struct comb *p, const struct comb *q)
{
    double sum = 0;

    for (unsigned i = 0; i < p->n; i++)
        for (unsigned j = 0; j < q->n; j++)
            sum += boxes(f, p->a[i], p->a[i] + p->w, q->a[j], q->a[j] + q->w);
    return sum / ((double)p->n * (double)p->w * (double)q->n * (double)q->w);
}

/* Prior variance of the mean level, far above the varying part's: the level is nearly
 * free.
 */
#define LEVEL 100.0
#define TEMPER 0.2
#define SAME_TURNS 0.1 /* over the span: two periods are one */

static int factor(struct fold *f, double noise, double *ret_logdet)
{
    double logdet = 0;

    for (size_t i = 0; i < f->n; i++) {
        double *row = f->k + i * (i + 1) / 2;

        row[i] += noise;
        for (size_t j = 0; j <= i; j++) {
            const double *other = f->k + j * (j + 1) / 2;
            double s = row[j] - dot(row, other, j);
            if (j < i) {
                row[j] = s / other[j];
            } else if (s <= 0) {
                return -EDOM;
            } else {
                row[i] = sqrt(s);
                logdet += log(s);
            }
        }
    }
    *ret_logdet = logdet;
    return 0;
}

/* x := L^-1 x */
static void forward(const struct fold *f, double *x)
{
    for (size_t i = 0; i < f->n; i++) {
        const double *row = f->k + i * (i + 1) / 2;
        x[i] = (x[i] - dot(row, x, i)) / row[i];
    }
}

/* Builds and factors the covariance; sets fit->loglik and fit->scale. */
static int evaluate(struct fold *f, struct fold_fit *fit, double span)
{
    struct comb combs[FOLD_MAX];
    double logdet, square = 0;

    int r = fill_table(f, fit, span);
    if (r < 0)
        return r;
    for (size_t i = 0; i < f->n; i++)
        combs[i] = comb_of(f, &f->obs[i]);
    for (size_t i = 0; i < f->n; i++)
        for (size_t j = 0; j <= i; j++)
            f->k[i * (i + 1) / 2 + j] = LEVEL + covariance(f, &combs[i], &combs[j]);
    r = factor(f, fit->noise, &logdet);
    if (r < 0) {
        fit->loglik = -HUGE_VAL;
        return r == -EDOM ? 0 : r;
    }
    memcpy(f->alpha, f->y, f->n * sizeof *f->y);
    forward(f, f->alpha);
    for (size_t i = 0; i < f->n; i++)
        square += f->alpha[i] * f->alpha[i];
    fit->scale = square / (double)f->n;
    fit->loglik = -0.5 * ((double)f->n * log(fit->scale + 1e-9) + logdet);
    double beyond = log((fit->scale + 1e-9) / (2 * f->var + 1e-9));
    if (beyond > 0) /* penalty on swings larger than any reading shows */
        fit->loglik -= 20 * beyond * beyond;
    return 0;
}

int fold_energy(struct fold *f, const struct fold_fit *fit, double a, double b,
                double *ret_j, double *ret_sd)
{
    struct fold_fit copy = *fit;
    double lo = fmin(a, f->origin), hi = fmax(b, f->origin + f->span), e = 0, v = 0;

    int r = evaluate(f, &copy, hi - lo + 8 * f->cell);
    if (r < 0)
        return r;
    struct comb t = {.n = 1, .a = {grid(f, a)}, .w = lround((b - a) / f->cell)};
    if (t.w < 1)
        t.w = 1;
    for (size_t i = 0; i < f->n; i++) {
        struct comb c = comb_of(f, &f->obs[i]);
        f->cov[i] = LEVEL + covariance(f, &t, &c);
    }
    forward(f, f->cov);
    for (size_t i = 0; i < f->n; i++) {
        e += f->cov[i] * f->alpha[i];
        v += f->cov[i] * f->cov[i];
    }
    v = LEVEL + covariance(f, &t, &t) - v;
    *ret_j = (f->mean + e) * (b - a);
    *ret_sd = sqrt(fmax(v, 0) * copy.scale) * (b - a);
    return 0;
}

/* ---- the load's period ---- */

static void sort(uint64_t *v, size_t n)
{
    static const size_t gaps[] = {132, 57, 23, 10, 4, 1};

    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (size_t i = gaps[g]; i < n; i++) {
            uint64_t x = v[i];
            size_t j = i;
            for (; j >= gaps[g] && v[j - gaps[g]] > x; j -= gaps[g])
                v[j] = v[j - gaps[g]];
            v[j] = x;
        }
}

/* Lafler and Kinman's (1965) statistic: how rough the readings are in the order of
 * phase; 1 for no order, near 0 for a period.
 */
static double roughness(struct fold *f, double hz)
{
    double sum = 0, last;

    for (size_t i = 0; i < f->n; i++) {
        double x = ((f->obs[i].t0 + f->obs[i].t1) / 2 - f->origin) * hz;
        f->key[i] = (uint64_t)((x - floor(x)) * 1e9) << 10 | i;
    }
    sort(f->key, f->n);
    last = f->y[f->key[f->n - 1] & 1023];
    for (size_t i = 0; i < f->n; i++) {
        double y = f->y[f->key[i] & 1023];
        sum += (y - last) * (y - last);
        last = y;
    }
    return sum / (2 * f->var * (double)f->n);
}

struct peak {
    double hz, rough;
};

static void keep_peak(struct peak *peaks, struct peak p)
{
    size_t worst = 0;

    for (size_t i = 1; i < PEAKS; i++)
        if (peaks[i].rough > peaks[worst].rough)
            worst = i;
    if (p.rough < peaks[worst].rough)
        peaks[worst] = p;
}

/* Middle of the smoothest range of frequencies around a peak. */
static struct peak refine(struct fold *f, struct peak p, double step)
{
    double best = p.rough, from = p.hz, to = p.hz;

    for (int s = -15; s <= 15; s++) {
        double hz = p.hz + s * step / 12, rough = roughness(f, hz);
        if (rough < 0.999 * best) {
            best = rough;
            from = to = hz;
        } else if (rough < 1.02 * best) {
            to = hz;
        }
    }
    return (struct peak){(from + to) / 2, best};
}

static void find_peaks(struct fold *f, struct peak *peaks)
{
    double step = 1 / (8 * f->span), top = 7.0, r[3] = {2, 2, 2};

    if (f->tick_s > 0)
        top = fmin(top, 0.5 / f->tick_s);
    for (size_t i = 0; i < PEAKS; i++)
        peaks[i] = (struct peak){0, 2};
    for (size_t i = 12; (double)i * step <= top + step;
         i++) { /* from 1.5 cycles in the span */
        r[0] = r[1];
        r[1] = r[2];
        r[2] = roughness(f, (double)i * step);
        if (r[1] <= r[0] && r[1] < r[2])
            keep_peak(peaks, (struct peak){(double)(i - 1) * step, r[1]});
    }
    for (size_t i = 0; i < PEAKS; i++)
        if (peaks[i].hz > 0)
            peaks[i] = refine(f, peaks[i], step);
}

static int try_fit(struct fold *f, struct fold_fit trial, struct fold_fit *best)
{
    int r = evaluate(f, &trial, f->span + 8 * f->cell);

    if (r < 0)
        return r;
    if (trial.loglik > best->loglik)
        *best = trial;
    return 0;
}

static int try_each(struct fold *f, struct fold_fit *best, double *field,
                    const double *values, size_t n)
{
    struct fold_fit start = *best;
    size_t offset = (size_t)((char *)field - (char *)best);
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++) {
        struct fold_fit t = start;
        memcpy((char *)&t + offset, &values[i], sizeof values[i]);
        r = try_fit(f, t, best);
    }
    return r;
}

/* Optimises each parameter of the fit in turn. */
static int improve(struct fold *f, struct fold_fit *best)
{
    static const double noises[] = {1e-6, 1e-5, 1e-4, 1e-2, 1e-1, 1},
                        wanders[] = {1e-5, 1e-3, 1e-1, 0.5}, times[] = {0.05, 0.2, 5, 20},
                        jitters[] = {0.001, 0.003, 0.01, 0.03, 0.1};
    int r = 0;

    if (best->period_s > 0)
        r = try_each(f, best, &best->jitter, jitters, 5);
    if (r == 0 && best->period_s > 0)
        r = try_each(f, best, &best->wander, wanders, 4);
    if (r == 0)
        r = try_each(f, best, &best->noise, noises, 6);
    if (r == 0)
        r = try_each(f, best, &best->wander_s, times, 4);
    return r;
}

/* The fit of the same period: phases differ by little over the span. */
static struct fold_fit *same_as(struct fold_set *set, const struct fold_fit *fit,
                                double span)
{
    for (size_t i = 0; i < set->n && fit->period_s > 0; i++)
        if (set->fits[i].period_s > 0 &&
            fabs(1 / set->fits[i].period_s - 1 / fit->period_s) * span < SAME_TURNS)
            return &set->fits[i];
    return NULL;
}

static void take_in(struct fold_set *set, const struct fold_fit *fit, double span)
{
    struct fold_fit *same = same_as(set, fit, span);
    size_t worst = 0;

    if (same) {
        if (fit->loglik > same->loglik)
            *same = *fit;
        return;
    }
    if (set->n < FOLD_FITS) {
        set->fits[set->n++] = *fit;
        return;
    }
    for (size_t i = 1; i < set->n; i++)
        if (set->fits[i].loglik < set->fits[worst].loglik)
            worst = i;
    if (fit->loglik > set->fits[worst].loglik)
        set->fits[worst] = *fit;
}

/* Hill climbing along the frequency; the step is halved when neither side is better. */
static int sharpen(struct fold *f, struct fold_fit *best, double step, int halvings)
{
    int r = 0;

    for (int i = 0; i < halvings && r == 0; i++) {
        double hz = 1 / best->period_s, before = best->loglik;
        for (int sign = -1; sign <= 1 && r == 0; sign += 2) {
            struct fold_fit t = *best;
            t.period_s = 1 / (hz + sign * step);
            if (t.period_s > 0)
                r = try_fit(f, t, best);
        }
        if (best->loglik <= before)
            step /= 2;
    }
    return r;
}

static int start_at(struct fold *f, double period_s, struct fold_set *set)
{
    struct fold_fit best = {.loglik = -HUGE_VAL}, t = {.period_s = period_s,
                                                       .wander = 1e-2,
                                                       .wander_s = 1,
                                                       .noise = 1e-3};

    int r = try_fit(f, t, &best);
    if (r == 0 && best.loglik > -HUGE_VAL)
        take_in(set, &best, f->span);
    return r;
}

static int periods(struct fold *f, double hint_s, struct fold_set *set)
{
    struct peak peaks[PEAKS];
    int r = hint_s > 0 ? start_at(f, hint_s, set) : 0;

    find_peaks(f, peaks);
    for (size_t i = 0; i < PEAKS && r == 0; i++) {
        if (peaks[i].hz <= 0)
            continue;
        r = start_at(f, 1 / peaks[i].hz, set);
        double other = f->tick_s > 0 ? 1 / f->tick_s - peaks[i].hz : 0;
        if (r == 0 && other > peaks[i].hz && other < 7)
            r = start_at(f, 1 / other, set);
    }
    return r;
}

static size_t likeliest(const struct fold_set *set)
{
    size_t best = 0;

    for (size_t i = 1; i < set->n; i++)
        if (set->fits[i].loglik > set->fits[best].loglik)
            best = i;
    return best;
}

/* A sensor cannot distinguish frequencies that differ by whole turns a tick, except by
 * the attenuation of its window: tries those of the likeliest fit.
 */
static int images(struct fold *f, struct fold_set *set)
{
    int r = 0;

    if (set->n == 0 || f->tick_s <= 0)
        return 0;
    double hz = 1 / set->fits[likeliest(set)].period_s;
    double slow = fabs(hz - round(hz * f->tick_s) / f->tick_s);
    for (int k = 0; k / f->tick_s - slow < FASTEST_HZ && r == 0; k++)
        for (int sign = -1; sign <= 1 && r == 0; sign += 2) {
            double other = k / f->tick_s + sign * slow;
            if (other > 0 && other < FASTEST_HZ && fabs(other - hz) > 1e-6 * hz)
                r = start_at(f, 1 / other, set);
        }
    return r;
}

/* A fit at a multiple of the true period is as smooth but predicts less: try fractions
 * too.
 */
static int shorter(struct fold *f, struct fold_set *set)
{
    double step = 1 / (48 * f->span), top = f->tick_s > 0 ? 1 / f->tick_s : 7;

    if (set->n == 0)
        return 0;
    double hz = 1 / set->fits[likeliest(set)].period_s;
    for (int k = 2; k <= 10 && k * hz < fmin(top, 7); k++) {
        struct peak p = refine(f, (struct peak){k * hz, 2}, step);
        int r = p.rough < 0.5 ? start_at(f, 1 / p.hz, set) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static void weigh(struct fold_set *set)
{
    double best = -HUGE_VAL, sum = 0;

    for (size_t i = 0; i < set->n; i++)
        best = fmax(best, set->fits[i].loglik);
    for (size_t i = 0; i < set->n; i++)
        sum += set->fits[i].weight = exp((set->fits[i].loglik - best) * TEMPER);
    for (size_t i = 0; i < set->n; i++)
        set->fits[i].weight /= sum;
}

int fold_find(struct fold *f, double hint_s, struct fold_set *ret)
{
    struct fold_fit plain = {.wander = 1, .wander_s = 1, .noise = 1e-3},
                    best = {.loglik = -HUGE_VAL};
    struct fold_set set = {0}, out = {0};

    int r = try_fit(f, plain, &best);
    if (r == 0)
        r = improve(f, &best);
    if (r == 0 && f->n >= 12 && f->var > 1e-6 * f->mean * f->mean)
        r = periods(f, hint_s, &set);
    if (r == 0)
        r = shorter(f, &set);
    if (r == 0)
        r = images(f, &set);
    for (size_t i = 0; r == 0 && i < set.n; i++) {
        struct fold_fit *fit = &set.fits[i];
        r = sharpen(f, fit, 1 / (16 * f->span), 6);
        if (r == 0)
            r = improve(f, fit);
        if (r == 0)
            r = sharpen(f, fit, 1 / (64 * f->span), 8);
        take_in(&out, fit, f->span);
    }
    if (r < 0)
        return r;
    take_in(&out, &best, f->span);
    weigh(&out);
    *ret = out;
    return 0;
}

int fold_mixed(struct fold *f, const struct fold_set *set, double a, double b,
               double *ret_j, double *ret_sd)
{
    double mean = 0, var = 0, sum = 0;

    for (size_t i = 0; i < set->n; i++) {
        double e, sd, w = set->fits[i].weight;
        if (w < 0.01)
            continue;
        int r = fold_energy(f, &set->fits[i], a, b, &e, &sd);
        if (r < 0)
            return r;
        sum += w;
        mean += w * e;
        var += w * (sd * sd + e * e);
    }
    mean /= sum;
    *ret_j = mean;
    *ret_sd = sqrt(fmax(var / sum - mean * mean, 0));
    return 0;
}
