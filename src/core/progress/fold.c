#include "core/progress/fold.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

/* Turns a nanosecond in units of 2^-64, so that t x step wraps around as phases do. */
static uint64_t step_of(double hz)
{
    return (uint64_t)(hz * 18446744073.709551616);
}

double series_total(const struct series *s)
{
    double sum = 0, sq = 0;

    for (size_t i = 0; i < s->n; i++) {
        sum += s->x[i];
        sq += (double)s->x[i] * s->x[i];
    }
    return s->n > 0 ? sq - sum * sum / (double)s->n : 0;
}

void series_detrend(const struct series *s, double width_s, struct series *out)
{
    uint64_t width = ns_of_s(width_s), end = s->n > 0 ? s->t[s->n - 1] : 0;
    size_t from = 0, to = 0;
    double sum = 0;

    out->n = s->n;
    memcpy(out->t, s->t, s->n * sizeof *s->t);
    for (size_t i = 0; i < s->n; i++) {
        uint64_t left = s->t[i] > width / 2 ? s->t[i] - width / 2 : 0;
        if (left + width > end)
            left = end > width ? end - width : 0;
        while (to < s->n && s->t[to] <= left + width)
            sum += s->x[to++];
        while (s->t[from] < left)
            sum -= s->x[from++];
        out->x[i] = (float)(s->x[i] - sum / (double)(to - from));
    }
}

double fold_scan(const struct series *s, double hz, unsigned bins, double total)
{
    float sum[FOLD_KNOTS] = {0}, count[FOLD_KNOTS] = {0};
    uint64_t step = step_of(hz);
    double between = 0, all = 0;
    unsigned filled = 0;

    for (size_t i = 0; i < s->n; i++) {
        uint64_t b = ((s->t[i] * step) >> 32) * bins >> 32;
        sum[b] += s->x[i];
        count[b] += 1;
    }
    for (unsigned b = 0; b < bins; b++)
        if (count[b] > 0) {
            between += (double)sum[b] * sum[b] / count[b];
            all += sum[b];
            filled++;
        }
    double n = (double)s->n;
    if (n <= filled + 1 || total <= 0)
        return 1;
    between -= all * all / n;
    return fmax(1e-6, (1 - between / total) * (n - 1) / (n - filled));
}

/* ---- the piecewise linear profile ---- */

/* Solve the cyclic tridiagonal system diag, next (k to k + 1), n >= 3; rhs becomes the
 * solution (Sherman and Morrison's formula around the corner).
 */
static void solve_cyclic(unsigned n, const double *diag, const double *next, double *rhs)
{
    double corner = next[n - 1], gamma = -diag[0];
    double d[FOLD_KNOTS] = {0}, u[FOLD_KNOTS] = {0};

    for (unsigned k = 0; k < n; k++)
        d[k] = diag[k];
    d[0] -= gamma;
    d[n - 1] -= corner * corner / gamma;
    u[0] = gamma;
    u[n - 1] = corner;
    for (unsigned k = 1; k < n; k++) {
        double m = next[k - 1] / d[k - 1];
        d[k] -= m * next[k - 1];
        rhs[k] -= m * rhs[k - 1];
        u[k] -= m * u[k - 1];
    }
    rhs[n - 1] /= d[n - 1];
    u[n - 1] /= d[n - 1];
    for (unsigned k = n - 1; k-- > 0;) {
        rhs[k] = (rhs[k] - next[k] * rhs[k + 1]) / d[k];
        u[k] = (u[k] - next[k] * u[k + 1]) / d[k];
    }
    double v = corner / gamma;
    double share = (rhs[0] + v * rhs[n - 1]) / (1 + u[0] + v * u[n - 1]);
    for (unsigned k = 0; k < n; k++)
        rhs[k] -= share * u[k];
}

struct place {
    unsigned k, next;
    double frac;
};

static struct place place_of(uint64_t t_ns, uint64_t step, unsigned knots)
{
    uint64_t scaled = ((t_ns * step) >> 32) * knots;
    unsigned k = (unsigned)(scaled >> 32);

    return (struct place){k, k + 1 == knots ? 0 : k + 1,
                          (double)(uint32_t)scaled * 0x1p-32};
}

void fold_fit(const struct series *s, double hz, unsigned knots, struct fold *ret)
{
    double diag[FOLD_KNOTS] = {0}, next[FOLD_KNOTS] = {0}, rhs[FOLD_KNOTS] = {0};
    double d[FOLD_KNOTS] = {0}, e[FOLD_KNOTS] = {0};
    uint64_t step = step_of(hz);
    double sum = 0, sq = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct place p = place_of(s->t[i], step, knots);
        double x = s->x[i], left = 1 - p.frac;
        diag[p.k] += left * left;
        diag[p.next] += p.frac * p.frac;
        next[p.k] += left * p.frac;
        rhs[p.k] += left * x;
        rhs[p.next] += p.frac * x;
        sum += x;
        sq += x * x;
    }
    *ret = (struct fold){.hz = hz,
                         .knots = knots,
                         .within = sq,
                         .total = s->n > 0 ? sq - sum * sum / (double)s->n : 0,
                         .freedom = knots - 1,
                         .rest = (double)s->n - knots};
    /* a small stiffness interpolates over knots without samples */
    double stiff = 1e-3 * (double)s->n / knots + 1e-9;
    for (unsigned k = 0; k < knots; k++) {
        d[k] = diag[k] + 2 * stiff + 1e-9;
        e[k] = next[k] - stiff;
        ret->w[k] = rhs[k];
    }
    solve_cyclic(knots, d, e, ret->w);
    for (unsigned k = 0; k < knots; k++) {
        double w = ret->w[k], after = ret->w[k + 1 < knots ? k + 1 : 0];
        ret->within += w * (diag[k] * w + 2 * next[k] * after - 2 * rhs[k]);
    }
    ret->within = fmax(ret->within, 1e-9 * sq);
}

double fold_at(const struct fold *f, uint64_t t_ns)
{
    struct place p = place_of(t_ns, step_of(f->hz), f->knots);

    return f->w[p.k] * (1 - p.frac) + f->w[p.next] * p.frac;
}

double fold_unexplained(const struct fold *f)
{
    if (f->total <= 0 || f->rest <= 0)
        return 1;
    return f->within / f->total * (f->rest + f->freedom) / f->rest;
}

/* Correlation length of the residual, in samples: 1 + 2 x the sum of its autocorrelations
 * until they vanish.
 */
static double run_of(const float *e, size_t n, double sq)
{
    double run = 1;

    if (sq <= 0)
        return 1;
    for (size_t lag = 1; lag < n / 3; lag++) {
        double r = 0;
        for (size_t i = lag; i < n; i++)
            r += (double)e[i] * e[i - lag];
        r /= sq;
        if (r < 2 / sqrt((double)n) && r < 0.1)
            break;
        run += 2 * r;
    }
    return run;
}

void fold_judge(const struct series *s, double hz, unsigned knots, double samples,
                struct fold *ret)
{
    float e[FOLD_MOST];

    fold_fit(s, hz, knots, ret);
    for (size_t i = 0; i < s->n; i++)
        e[i] = (float)(s->x[i] - fold_at(ret, s->t[i]));
    ret->run = run_of(e, s->n, ret->within);
    ret->freedom = fmin(ret->freedom, fmax(2, samples / ret->run));
    ret->rest = (double)s->n / ret->run - ret->freedom - 1;
    if (ret->rest < 1 || ret->within <= 0 || ret->total <= ret->within)
        return;
    double f = (ret->total - ret->within) / ret->within * ret->rest / ret->freedom;
    ret->surprise = fold_surprise(f, ret->freedom, ret->rest);
}

double fold_surprise(double f, double d1, double d2)
{
    double a = 2 / (9 * d1), b = 2 / (9 * d2), root = cbrt(f);
    double z = ((1 - b) * root - (1 - a)) / sqrt(b * root * root + a);

    if (z < 0)
        return 0;
    if (z < 4)
        return -log10(0.5 * erfc(z / M_SQRT2));
    return z * z / 2 * M_LOG10E + log10(z * sqrt(2 * M_PI));
}

/* ---- parts ---- */

/* Slope of the profile per turn, over half a knot to either side. */
static double slope_at(const struct fold *f, uint64_t t_ns)
{
    uint64_t half = ns_of_s(0.5 / f->hz / f->knots);
    uint64_t back = t_ns + ns_of_s(1 / f->hz) - half;

    return (fold_at(f, t_ns + half) - fold_at(f, back)) * f->knots;
}

void fold_parts(const struct series *s, const struct fold *f, unsigned parts,
                struct fold_parts *ret)
{
    double xg[FOLD_PARTS] = {0}, gg[FOLD_PARTS] = {0}, xd[FOLD_PARTS] = {0},
           dd[FOLD_PARTS] = {0};
    uint64_t end = s->t[s->n - 1] + 1, begin = s->t[0];
    double noise = f->within / fmax(1, (double)s->n - f->knots);

    *ret = (struct fold_parts){.n = parts};
    for (unsigned k = 0; k <= parts; k++)
        ret->from_ns[k] = begin + (end - begin) / parts * k;
    ret->from_ns[parts] = end;
    unsigned k = 0;
    for (size_t i = 0; i < s->n; i++) {
        while (s->t[i] >= ret->from_ns[k + 1])
            k++;
        double g = fold_at(f, s->t[i]), d = slope_at(f, s->t[i]);
        xg[k] += s->x[i] * g;
        gg[k] += g * g;
        xd[k] += (s->x[i] - g) * d;
        dd[k] += d * d;
    }
    for (k = 0; k < parts; k++) {
        ret->at_s[k] = s_between(0, (ret->from_ns[k] + ret->from_ns[k + 1]) / 2);
        if (gg[k] <= 0 || dd[k] <= 0) {
            ret->amp_se[k] = ret->turn_se[k] = INFINITY;
            continue;
        }
        ret->amp[k] = xg[k] / gg[k];
        ret->amp_se[k] = sqrt(noise * f->run / gg[k]);
        /* a part late by turn: x(t) = g(t - turn) */
        ret->turn[k] = -xd[k] / dd[k];
        ret->turn_se[k] = sqrt(noise * f->run / dd[k]);
    }
}
