/* Learns the prior of the search (src/core/optimum/prior.c) from recorded curves.
 *
 *   learn-prior --curves FILE.csv              -> numbers, one a line
 *   learn-prior --curves FILE.csv --source     -> the table as C
 *
 * Maximum likelihood of the recorded points of every curve, its level left free.
 * `tools/bench BUILD search-left-out` learns from some of the curves and plays the
 * others.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/optimum/prior.h"
#include "curves.h"
#include "minimum.h"

enum { POINTS_MAX = 64, CURVES_USED_MAX = 2000, PARAMS = PRIOR_AMPS + 9 };
#define LEVEL_VAR 4.0 /* variance of a curve's free level, in squared logarithms */
#define JITTER 1e-8

struct points { /* one side of one curve */
    size_t n;
    double x[POINTS_MAX], y[POINTS_MAX];
};

struct job {
    const struct points *curves;
    size_t n;
    struct prior_side side;
};

/* The side for the minimiser's parameters; the mean is unchanged. */
static void side_of(const double *v, struct prior_side *s)
{
    for (int i = 0; i < PRIOR_AMPS; i++)
        s->log_amp[i] = v[i];
    v += PRIOR_AMPS;
    s->len_long = exp(v[0]);
    s->len_mid = exp(v[1]);
    s->len_short = exp(v[2]);
    s->share = exp(v[3]);
    s->rough[0] = exp(v[4]);
    s->rough[1] = s->rough[0] * exp(fabs(v[5]));
    s->rough[2] = s->rough[1] * exp(fabs(v[6]));
    double a = exp(v[7]), b = exp(v[8]), sum = 1 + a + b;
    s->weight[0] = 1 / sum;
    s->weight[1] = a / sum;
    s->weight[2] = b / sum;
}

/* Lower triangle in place; returns the log of the determinant, NAN if not positive. */
static double cholesky(double *a, size_t n)
{
    double logdet = 0;
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double v = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                v -= a[i * n + k] * a[j * n + k];
            if (i == j && v <= 0)
                return NAN;
            a[i * n + j] = i == j ? sqrt(v) : v / a[j * n + j];
        }
        logdet += 2 * log(a[j * n + j]);
    }
    return logdet;
}

static void forward(const double *a, size_t n, double *v)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            v[i] -= a[i * n + k] * v[k];
        v[i] /= a[i * n + i];
    }
}

static double factor(const struct points *c, const struct prior_side *s, double rough,
                     double *a)
{
    struct prior_spot spot[POINTS_MAX];
    for (size_t i = 0; i < c->n; i++)
        spot[i] = prior_spot(s, c->x[i]);
    for (size_t i = 0; i < c->n; i++)
        for (size_t j = 0; j < c->n; j++)
            a[i * c->n + j] = prior_cov(s, rough, &spot[i], &spot[j]) + LEVEL_VAR +
                              (i == j ? JITTER : 0);
    return cholesky(a, c->n);
}

/* Log likelihood of a curve, mixed over the roughnesses; *ret_rough: the most likely
 * one.
 */
static double likelihood(const struct points *c, const struct prior_side *s,
                         int *ret_rough)
{
    double l[PRIOR_ROUGHS], most = -INFINITY, sum = 0;
    static double a[POINTS_MAX * POINTS_MAX];
    for (int k = 0; k < PRIOR_ROUGHS; k++) {
        double v[POINTS_MAX], q = 0, logdet = factor(c, s, s->rough[k], a);
        for (size_t i = 0; i < c->n; i++)
            v[i] = c->y[i] - prior_mean(s, c->x[i]);
        forward(a, c->n, v);
        for (size_t i = 0; i < c->n; i++)
            q += v[i] * v[i];
        l[k] = log(s->weight[k]) - 0.5 * (logdet + q);
        if (l[k] > most) {
            most = l[k];
            *ret_rough = k;
        }
    }
    for (int k = 0; k < PRIOR_ROUGHS; k++)
        sum += exp(l[k] - most);
    return most + log(sum);
}

/* Weak penalties that keep parameters reasonable where the data do not determine them. */
static double penalty(const double *v)
{
    const double *w = v + PRIOR_AMPS;
    double p = 0;
    for (int i = 0; i + 1 < PRIOR_AMPS; i++)
        p += 0.5 * pow((v[i] - v[i + 1]) / 1.5, 2);
    p += 0.5 * pow((w[0] - log(0.7)) / 0.5, 2) + 0.5 * pow((w[1] - log(0.25)) / 0.4, 2) +
         0.5 * pow((w[2] - log(0.08)) / 0.2, 2) + 0.5 * pow((w[3] - log(0.2)) / 1.0, 2);
    p += 0.5 * pow(w[7] / 2, 2) + 0.5 * pow((w[8] + 1) / 2, 2);
    return p;
}

static double cost(const double *v, void *user)
{
    struct job *j = user;
    double sum = penalty(v);
    int k;

    side_of(v, &j->side);
    for (size_t i = 0; i < j->n; i++)
        sum -= likelihood(&j->curves[i], &j->side, &k);
    return isfinite(sum) ? sum : 1e300;
}

/* Generalised least squares for the knots of the mean, smoothed where data are sparse. */
static void fit_mean(struct job *j)
{
    enum { M = PRIOR_MEANS };
    static double a[POINTS_MAX * POINTS_MAX];
    double n[M * M] = {0}, b[M] = {0};

    for (size_t c = 0; c < j->n; c++) {
        const struct points *p = &j->curves[c];
        double w[M][POINTS_MAX], y[POINTS_MAX], at[M];
        int k = 0;
        (void)likelihood(p, &j->side, &k);
        (void)factor(p, &j->side, j->side.rough[k], a);
        for (size_t i = 0; i < p->n; i++) {
            prior_mean_weights(p->x[i], at);
            for (int m = 0; m < M; m++)
                w[m][i] = at[m];
            y[i] = p->y[i];
        }
        forward(a, p->n, y);
        for (int m = 0; m < M; m++)
            forward(a, p->n, w[m]);
        for (int m = 0; m < M; m++)
            for (size_t i = 0; i < p->n; i++) {
                b[m] += w[m][i] * y[i];
                for (int o = 0; o < M; o++)
                    n[m * M + o] += w[m][i] * w[o][i];
            }
    }
    for (int m = 1; m + 1 < M; m++) /* second differences of about 0.1 */
        for (int o = 0; o < 9; o++) {
            static const double d[3] = {1, -2, 1};
            n[(m - 1 + o / 3) * M + m - 1 + o % 3] += 100 * d[o / 3] * d[o % 3];
        }
    for (int m = 0; m < M; m++)
        n[m * M + m] += 1e-3;
    (void)cholesky(n, M);
    forward(n, M, b);
    for (int i = M - 1; i >= 0; i--) {
        for (int k = i + 1; k < M; k++)
            b[i] -= n[k * M + i] * b[k];
        b[i] /= n[i * M + i];
    }
    memcpy(j->side.mean, b, sizeof b);
}

static int learn(struct job *j, uw_error *err)
{
    double v[PARAMS] = {-1,        -2,       -3,         -3, -3, log(0.7), log(0.25),
                        log(0.08), log(0.2), log(0.004), 1,  1,  0,        -1};
    int r = 0;

    side_of(v, &j->side);
    for (int round = 0; round < 6 && r == 0; round++) {
        fit_mean(j);
        r = minimum(cost, j, v, PARAMS, 0.3, 4000);
        side_of(v, &j->side);
        (void)fprintf(stderr, "round %d: %.2f\n", round, cost(v, j));
    }
    return r < 0 ? fail(err, r, "no memory") : 0;
}

static int take_points(const struct records *recs, const char *path, struct points *t,
                       struct points *p, size_t *ret_n, uw_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < recs->n; i++) {
        const struct record *rec = &recs->items[i];
        if (n == CURVES_USED_MAX || rec->n > POINTS_MAX)
            return fail(err, -E2BIG, "%s: too many curves or points", path);
        t[n].n = p[n].n = rec->n;
        for (size_t k = 0; k < rec->n; k++) {
            struct curve_value v = curve_at(rec->curve, rec->cap_w[k]);
            t[n].x[k] = p[n].x[k] = rec->cap_w[k] / rec->reference.power_w;
            t[n].y[k] = log(v.time_s / rec->reference.time_s);
            p[n].y[k] = log(v.power_w / rec->reference.power_w);
        }
        n++;
    }
    *ret_n = n;
    return n ? 0 : fail(err, -EINVAL, "%s: no curve left", path);
}

static void print_row(const char *name, const double *v, int n, bool source)
{
    (void)printf(source ? "            .%s = {" : "%s", name);
    for (int i = 0; i < n; i++)
        (void)printf(source ? (i ? ", %.5g" : "%.5g") : " %.6g", v[i]);
    (void)printf(source ? "},\n" : "\n");
}

static void print_side(const char *name, const struct prior_side *s, bool source)
{
    if (source)
        (void)printf("    .%s =\n        {\n", name);
    print_row("mean", s->mean, PRIOR_MEANS, source);
    print_row("log_amp", s->log_amp, PRIOR_AMPS, source);
    if (source)
        (void)printf("            .len_long = %.5g,\n            .len_mid = %.5g,\n"
                     "            .len_short = %.5g,\n            .share = %.5g,\n",
                     s->len_long, s->len_mid, s->len_short, s->share);
    else
        (void)printf("scales %.6g %.6g %.6g %.6g\n", s->len_long, s->len_mid,
                     s->len_short, s->share);
    print_row("rough", s->rough, PRIOR_ROUGHS, source);
    print_row("weight", s->weight, PRIOR_ROUGHS, source);
    if (source)
        (void)printf("        },\n");
}

static int run(const char *path, bool source, uw_error *err)
{
    auto_(records_fini) struct records recs = {0};
    auto_(mem_free) struct points *t = calloc(CURVES_USED_MAX, sizeof *t);
    auto_(mem_free) struct points *p = calloc(CURVES_USED_MAX, sizeof *p);
    size_t n;
    if (!t || !p)
        return fail(err, -ENOMEM, "no memory");

    int r = records_read(path, &recs, err);
    if (r == 0)
        r = take_points(&recs, path, t, p, &n, err);
    if (r < 0)
        return r;
    struct job jobs[] = {{.curves = t, .n = n}, {.curves = p, .n = n}};
    for (int i = 0; i < 2; i++) {
        r = learn(&jobs[i], err);
        if (r < 0)
            return r;
        print_side(i ? "p" : "t", &jobs[i].side, source);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"curves", required_argument, NULL, 'c'},
                                          {"source", no_argument, NULL, 's'},
                                          {0}};
    const char *curves = NULL;
    bool source = false, good = true;
    uw_error err = {""};
    int c;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
        good &= c != '?';
        if (c == 'c')
            curves = optarg;
        source |= c == 's';
    }
    if (!good || !curves || optind < argc) {
        (void)fputs("usage: learn-prior --curves FILE.csv [--source]\n", stderr);
        return 2;
    }
    if (run(curves, source, &err) < 0) {
        (void)fprintf(stderr, "learn-prior: %s\n", err.text);
        return 1;
    }
    return 0;
}
