#include "core/optimum/compare.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define SMOOTH 4.0      /* by this factor noise may be lower within windows */
#define EXACT_VAR 1e-10 /* least variance of a window */
enum { NO_COLUMN = COMPARE_SIDES };

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

/* Log likelihood of the scatter within windows, given that all but the process is free:
 * less than 0 where the process alone scatters more.  A window counts as one degree of
 * freedom.
 */
static double within(const struct problem *p, double memory_s, double sd)
{
    double seen = 0, made = 0;
    unsigned n = 0;

    for (size_t i = 0; i < p->n; i++) {
        const struct compare_window *w = &p->w[i];
        double len = w->lasted_s / memory_s;
        if (w->parts == 0)
            continue;
        seen += w->rse * w->rse * w->parts;
        made += sd * sd * (1 - 2 / len * (1 + expm1(-len) / len));
        n++;
    }
    double part = made > 0 ? fmax(SMOOTH * seen / made, 1e-6) : 1;
    return part < 1 ? n / 2.0 * (1 - part + log(part)) : 0;
}

/* Fits point i of the grid: point 0 has white noise alone. */
static void fit_at(const struct problem *p, size_t i, struct fit *ret)
{
    size_t k = i > 0 ? i - 1 : 0;

    *ret = (struct fit){0};
    filter(p, memories_s[k / SDS], i > 0 ? sds[k % SDS] : 0, ret);
    solve(ret, p->columns);
    if (i > 0)
        ret->log_like += within(p, memories_s[k / SDS], sds[k % SDS]);
}

/* The inverse of the Cholesky factor, in its place. */
static void invert(struct fit *f, unsigned k)
{
    for (unsigned c = 0; c < k; c++) {
        for (unsigned d = 0; d < c; d++) {
            double sum = 0;
            for (unsigned e = d; e < c; e++)
                sum -= f->sum[c][e] * f->sum[e][d];
            f->sum[c][d] = sum / f->sum[c][c];
        }
        f->sum[c][c] = 1 / f->sum[c][c];
    }
}

/* Half the variance of the difference of two adjacent windows, `windows` times as long as
 * the shortest.
 */
static double again_var(const struct problem *p, size_t i, unsigned windows)
{
    double len_s = INFINITY, white = 0;

    for (size_t k = 0; k < p->n; k++)
        len_s = fmin(len_s, p->w[k].lasted_s);
    for (size_t k = 0; k < p->n; k++)
        white +=
            p->w[k].rse * p->w[k].rse * p->w[k].lasted_s / len_s / (double)p->n / windows;
    if (i == 0)
        return white;
    double len = windows * len_s / memories_s[(i - 1) / SDS], from = -expm1(-len) / len;
    double sd = sds[(i - 1) % SDS];
    return white + sd * sd * (2 / len * (1 - from) - from * from);
}

/* Moments of a mixture about its first fit, with weights relative to the best so far. */
struct moments {
    double best, total, again[COMPARE_LENGTHS];
    double first[COMPARE_SIDES], mean[COMPARE_SIDES];
    double square[COMPARE_SIDES][COMPARE_SIDES];
};

static void rescale(struct moments *m, unsigned k, double by)
{
    m->total *= by;
    for (unsigned c = 0; c < COMPARE_LENGTHS; c++)
        m->again[c] *= by;
    for (unsigned c = 0; c < k; c++) {
        m->mean[c] *= by;
        for (unsigned d = 0; d <= c; d++)
            m->square[c][d] *= by;
    }
}

static void add_fit(struct moments *m, struct fit *f, unsigned k, const double *again)
{
    if (m->total == 0) {
        m->best = f->log_like;
        memcpy(m->first, f->level, sizeof m->first);
    }
    if (f->log_like > m->best) {
        rescale(m, k, exp(m->best - f->log_like));
        m->best = f->log_like;
    }
    double weight = exp(f->log_like - m->best);
    invert(f, k);
    m->total += weight;
    for (unsigned c = 0; c < COMPARE_LENGTHS; c++)
        m->again[c] += weight * again[c];
    for (unsigned c = 0; c < k; c++) {
        double off = f->level[c] - m->first[c];
        m->mean[c] += weight * off;
        for (unsigned d = 0; d <= c; d++) {
            double sum = off * (f->level[d] - m->first[d]);
            for (unsigned e = c; e < k; e++)
                sum += f->sum[e][c] * f->sum[e][d];
            m->square[c][d] += weight * sum;
        }
    }
}

/* Subtracts the error that all levels share: the variance of their best weighted mean. */
static double shared_var(const struct moments *m, unsigned k)
{
    struct fit f = {0};
    double sum = 0;

    for (unsigned c = 0; c < k; c++) {
        memcpy(f.sum[c], m->square[c], sizeof m->square[c]);
        f.sum[k][c] = 1;
    }
    solve(&f, k);
    for (unsigned c = 0; c < k; c++)
        sum += f.sum[k][c] * f.sum[k][c];
    return 1 / sum;
}

void compare_levels(const struct compare_window *w, size_t n, struct compare_levels *ret)
{
    struct problem p = {.w = w, .n = n};
    struct moments m = {0};
    unsigned k;

    assert(n > 0 && n <= COMPARE_WINDOWS);
    set_columns(&p);
    k = p.columns;
    for (size_t i = 0; i < FITS; i++) {
        struct fit f;
        double again[COMPARE_LENGTHS];
        for (unsigned c = 0; c < COMPARE_LENGTHS; c++)
            again[c] = again_var(&p, i, 1u << c);
        fit_at(&p, i, &f);
        add_fit(&m, &f, k, again);
    }
    rescale(&m, k, 1 / m.total);
    for (unsigned c = 0; c < k; c++)
        for (unsigned d = 0; d <= c; d++)
            m.square[c][d] -= m.mean[c] * m.mean[d];
    double shared = shared_var(&m, k);
    *ret = (struct compare_levels){0};
    memcpy(ret->again_var, m.again, sizeof m.again);
    for (unsigned i = 0; i < COMPARE_SIDES; i++) {
        unsigned c = p.column[i];
        if (c == NO_COLUMN)
            continue;
        ret->level[i] = w->log_v + m.first[c] + m.mean[c];
        for (unsigned j = 0; j < COMPARE_SIDES; j++) {
            unsigned d = p.column[j];
            if (d != NO_COLUMN)
                ret->cov[i][j] = (d <= c ? m.square[c][d] : m.square[d][c]) - shared;
        }
    }
}
