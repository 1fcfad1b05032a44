#include "core/optimum/compare.h"

#include <assert.h>
#include <math.h>

#define EXACT_VAR 1e-10 /* least variance of a window */
enum { HALVINGS = 60, NO_COLUMN = COMPARE_SIDES };

/* The grid of the AR(1) process: memories, and standard deviations besides 0. */
static const double memories_s[] = {1, 5, 20, 80, 320};
static const double sds[] = {0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064};
enum { MEMORIES = 5, SDS = 8, FITS = 1 + MEMORIES * SDS };

/* The windows as a linear model with a column for each side that has windows. */
struct problem {
    const struct compare_window *w;
    size_t n;
    unsigned columns, column[COMPARE_SIDES];
};

/* Least squares for one point of the grid: the normal equations over the innovations of
 * the columns (of the values: the last), then the posterior of the levels.
 */
struct fit {
    double log_like;
    double sum[COMPARE_SIDES + 1][COMPARE_SIDES + 1]; /* later its Cholesky factor */
    double level[COMPARE_SIDES];
};

static void set_columns(struct problem *p)
{
    for (unsigned i = 0; i < COMPARE_SIDES; i++)
        p->column[i] = NO_COLUMN;
    for (size_t i = 0; i < p->n; i++) {
        assert(p->w[i].side < COMPARE_SIDES && p->w[i].lasted_s > 0);
        unsigned *c = &p->column[p->w[i].side];
        if (*c == NO_COLUMN)
            *c = p->columns++;
    }
}

/* Kalman filter of the process at the windows' ends.  A window shows its mean over the
 * window, whose moments given the process at the start are exact.
 */
static void filter(const struct problem *p, double memory_s, double sd, struct fit *f)
{
    unsigned k = p->columns;
    double x[COMPARE_SIDES + 1] = {0}, v[COMPARE_SIDES + 1];
    double all = sd * sd, state = all, at_s = p->w->start_s;

    for (size_t i = 0; i < p->n; i++) {
        const struct compare_window *w = &p->w[i];
        double gone = exp(-fmax(w->start_s - at_s, 0) / memory_s);
        double len = w->lasted_s / memory_s, keep = exp(-len);
        double from = -expm1(-len) / len, mean_var = 2 / len * (1 - from);
        state = gone * gone * state + (1 - gone * gone) * all;
        double var = from * from * state + (mean_var - from * from) * all +
                     fmax(w->rse * w->rse, EXACT_VAR);
        double cov = keep * from * state + from * (1 - keep) * all;
        for (unsigned c = 0; c <= k; c++) {
            double seen = c == k ? w->log_v - p->w->log_v : c == p->column[w->side];
            v[c] = seen - from * gone * x[c];
            x[c] = keep * gone * x[c] + cov / var * v[c];
            for (unsigned d = 0; d <= c; d++)
                f->sum[c][d] += v[c] * v[d] / var;
        }
        state = keep * keep * state + (1 - keep * keep) * all - cov * cov / var;
        at_s = w->start_s + w->lasted_s;
        f->log_like -= log(var) / 2;
    }
}

/* Cholesky factor of the sums; its last row is the whitened right side. */
static void solve(struct fit *f, unsigned k)
{
    for (unsigned c = 0; c <= k; c++)
        for (unsigned d = 0; d <= c; d++) {
            for (unsigned e = 0; e < d; e++)
                f->sum[c][d] -= f->sum[c][e] * f->sum[d][e];
            if (d == k)
                f->log_like -= f->sum[k][k] / 2;
            else
                f->sum[c][d] = c == d ? sqrt(f->sum[c][c]) : f->sum[c][d] / f->sum[d][d];
        }
    for (unsigned c = k; c-- > 0;) {
        f->log_like -= log(f->sum[c][c]);
        f->level[c] = f->sum[k][c];
        for (unsigned d = c + 1; d < k; d++)
            f->level[c] -= f->sum[d][c] * f->level[d];
        f->level[c] /= f->sum[c][c];
    }
}

/* The variance of level b - level a. */
static double var_of(const struct fit *f, unsigned k, unsigned a, unsigned b)
{
    double v[COMPARE_SIDES], sum = 0;

    for (unsigned c = 0; c < k; c++) {
        v[c] = (double)(c == b) - (double)(c == a);
        for (unsigned d = 0; d < c; d++)
            v[c] -= f->sum[c][d] * v[d];
        v[c] /= f->sum[c][c];
        sum += v[c] * v[c];
    }
    return sum;
}

/* Normal posteriors of one ratio, and their weights. */
struct mixture {
    double mean[FITS], var[FITS], weight[FITS];
};

/* The value that the mixture exceeds with probability miss. */
static double quantile(const struct mixture *m, double miss)
{
    double lo = INFINITY, hi = -INFINITY;

    for (size_t i = 0; i < FITS; i++) {
        lo = fmin(lo, m->mean[i]);
        hi = fmax(hi, m->mean[i] + sqrt(m->var[i] / miss)); /* Chebyshev */
    }
    for (int k = 0; k < HALVINGS; k++) {
        double mid = (lo + hi) / 2, above = 0;
        for (size_t i = 0; i < FITS; i++)
            above += m->weight[i] * erfc((mid - m->mean[i]) / sqrt(2 * m->var[i])) / 2;
        if (above > miss)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}

/* Turns log likelihoods into weights that sum up to 1. */
static void normalise(double *weight)
{
    double best = weight[0], total = 0;

    for (size_t i = 1; i < FITS; i++)
        best = fmax(best, weight[i]);
    for (size_t i = 0; i < FITS; i++)
        total += weight[i] = exp(weight[i] - best);
    for (size_t i = 0; i < FITS; i++)
        weight[i] /= total;
}

struct compare_ratio compare(const struct compare_window *w, size_t n, unsigned a,
                             unsigned b, double miss)
{
    struct problem p = {.w = w, .n = n};
    struct compare_ratio out = {0};
    struct mixture m;

    assert(n <= COMPARE_WINDOWS && a < COMPARE_SIDES && b < COMPARE_SIDES && a != b);
    set_columns(&p);
    a = p.column[a];
    b = p.column[b];
    assert(a != NO_COLUMN && b != NO_COLUMN);
    for (size_t i = 0; i < FITS; i++) {
        struct fit f = {0};
        size_t k = i > 0 ? i - 1 : 0;
        filter(&p, memories_s[k / SDS], i > 0 ? sds[k % SDS] : 0, &f);
        solve(&f, p.columns);
        m.mean[i] = f.level[b] - f.level[a];
        m.var[i] = var_of(&f, p.columns, a, b);
        m.weight[i] = f.log_like;
    }
    normalise(m.weight);
    for (size_t i = 0; i < FITS; i++)
        out.log_ratio += m.weight[i] * m.mean[i];
    out.most = quantile(&m, miss);
    return out;
}
