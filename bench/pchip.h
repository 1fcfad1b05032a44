/* A curve through measured caps: monotone cubic interpolation (PCHIP: Fritsch
 * and Butland 1984, with the end slopes of Fritsch and Carlson as SciPy and
 * MATLAB compute them) of log time and of mean power over the cap.  Energy is
 * power x time.  Pure.
 */
#ifndef BENCH_PCHIP_H
#define BENCH_PCHIP_H

#include <stddef.h>

#include "base/auto.h"
#include "underwatt/error.h"

/* Slopes at n >= 2 knots with x ascending strictly. */
void pchip_slopes(const double *x, const double *y, size_t n, double *ret_slope);
/* Value at `at`; the end values outside the knots. */
double pchip_value(const double *x, const double *y, const double *slope, size_t n,
                   double at);

struct curve_point {
    double cap_w, time_s, energy_j; /* of one unit of work, one GPU's energy */
};
struct curve_value {
    double time_s, power_w, energy_j;
};

enum { CURVE_POINTS_MAX = 4096 };
struct curve;

/* Any order of points.  -EINVAL with a text: fewer than 2 points, a cap given
 * twice, a value that is not finite and positive; -E2BIG; -ENOMEM.
 */
int curve_new(const struct curve_point *points, size_t n, struct curve **ret,
              uw_error *err);
void curve_free(struct curve *curve);
DEFINE_AUTO(struct curve *, curve_free);
/* Outside the measured caps: the nearest end's values. */
struct curve_value curve_at(const struct curve *curve, double cap_w);
double curve_min_w(const struct curve *curve);
double curve_max_w(const struct curve *curve);

#endif
