#include "pchip.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/error.h"

static bool same_sign(double a, double b)
{
    return (a > 0 && b > 0) || (a < 0 && b < 0);
}

/* One-sided three-point slope, kept monotone: at the end whose step is h0 with
 * secant d0; h1 and d1 are the next.
 */
static double end_slope(double h0, double h1, double d0, double d1)
{
    double s = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1);

    if (!same_sign(s, d0))
        return 0;
    if (!same_sign(d0, d1) && fabs(s) > 3 * fabs(d0))
        return 3 * d0;
    return s;
}

void pchip_slopes(const double *x, const double *y, size_t n, double *ret_slope)
{
    assert(n >= 2);
    if (n == 2) {
        ret_slope[0] = ret_slope[1] = (y[1] - y[0]) / (x[1] - x[0]);
        return;
    }
    for (size_t i = 1; i + 1 < n; i++) {
        double h0 = x[i] - x[i - 1], h1 = x[i + 1] - x[i];
        double d0 = (y[i] - y[i - 1]) / h0, d1 = (y[i + 1] - y[i]) / h1;
        double w0 = 2 * h1 + h0, w1 = h1 + 2 * h0;
        ret_slope[i] = same_sign(d0, d1) ? (w0 + w1) / (w0 / d0 + w1 / d1) : 0;
    }
    ret_slope[0] = end_slope(x[1] - x[0], x[2] - x[1], (y[1] - y[0]) / (x[1] - x[0]),
                             (y[2] - y[1]) / (x[2] - x[1]));
    ret_slope[n - 1] = end_slope(x[n - 1] - x[n - 2], x[n - 2] - x[n - 3],
                                 (y[n - 1] - y[n - 2]) / (x[n - 1] - x[n - 2]),
                                 (y[n - 2] - y[n - 3]) / (x[n - 2] - x[n - 3]));
}

double pchip_value(const double *x, const double *y, const double *slope, size_t n,
                   double at)
{
    if (at <= x[0])
        return y[0];
    if (at >= x[n - 1])
        return y[n - 1];

    size_t lo = 0, hi = n - 1;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (x[mid] <= at)
            lo = mid;
        else
            hi = mid;
    }
    double h = x[hi] - x[lo], t = (at - x[lo]) / h, u = 1 - t;
    return y[lo] * (1 + 2 * t) * u * u + slope[lo] * h * t * u * u +
           y[hi] * t * t * (3 - 2 * t) - slope[hi] * h * t * t * u;
}

struct curve {
    size_t n;
    double *cap_w, *log_time, *power_w, *slope_time, *slope_power;
    double values[]; /* the five above, n each */
};

void curve_free(struct curve *curve)
{
    free(curve);
}

static bool good(double v)
{
    return isfinite(v) && v > 0;
}

static int by_cap(const void *a, const void *b)
{
    const struct curve_point *p = a, *q = b;
    return (p->cap_w > q->cap_w) - (p->cap_w < q->cap_w);
}

static int check_points(const struct curve_point *sorted, size_t n, uw_error *err)
{
    for (size_t i = 0; i < n; i++) {
        const struct curve_point *p = &sorted[i];
        if (!good(p->cap_w) || !good(p->time_s) || !good(p->energy_j))
            return fail(err, -EINVAL, "cap %g W: time %g s and energy %g J must be > 0",
                        p->cap_w, p->time_s, p->energy_j);
        if (i > 0 && p->cap_w <= p[-1].cap_w)
            return fail(err, -EINVAL, "cap %g W is given twice", p->cap_w);
    }
    return 0;
}

int curve_new(const struct curve_point *points, size_t n, struct curve **ret,
              uw_error *err)
{
    if (n < 2)
        return fail(err, -EINVAL, "a curve of %zu points: 2 at least", n);
    if (n > CURVE_POINTS_MAX)
        return fail(err, -E2BIG, "a curve of %zu points: %d at most", n,
                    CURVE_POINTS_MAX);

    auto_(mem_free) struct curve_point *p = malloc(n * sizeof *p);
    auto_(curve_free) struct curve *c = malloc(sizeof *c + 5 * n * sizeof *c->values);
    if (!p || !c)
        return fail(err, -ENOMEM, "no memory for a curve of %zu points", n);
    for (size_t i = 0; i < n; i++)
        p[i] = points[i];
    qsort(p, n, sizeof *p, by_cap);
    int r = check_points(p, n, err);
    if (r < 0)
        return r;

    c->n = n;
    c->cap_w = c->values;
    c->log_time = c->values + n;
    c->power_w = c->values + 2 * n;
    c->slope_time = c->values + 3 * n;
    c->slope_power = c->values + 4 * n;
    for (size_t i = 0; i < n; i++) {
        c->cap_w[i] = p[i].cap_w;
        c->log_time[i] = log(p[i].time_s);
        c->power_w[i] = p[i].energy_j / p[i].time_s;
    }
    pchip_slopes(c->cap_w, c->log_time, n, c->slope_time);
    pchip_slopes(c->cap_w, c->power_w, n, c->slope_power);
    *ret = take(c);
    return 0;
}

struct curve_value curve_at(const struct curve *curve, double cap_w)
{
    struct curve_value v = {
        .time_s = exp(pchip_value(curve->cap_w, curve->log_time, curve->slope_time,
                                  curve->n, cap_w)),
        .power_w = pchip_value(curve->cap_w, curve->power_w, curve->slope_power, curve->n,
                               cap_w),
    };
    v.energy_j = v.time_s * v.power_w;
    return v;
}

double curve_min_w(const struct curve *curve)
{
    return curve->cap_w[0];
}

double curve_max_w(const struct curve *curve)
{
    return curve->cap_w[curve->n - 1];
}
