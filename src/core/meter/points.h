/* A counter's values over a long time, thinned out with age, and its energy between any
 * two moments by interpolation.  Pure.
 */
#ifndef CORE_METER_POINTS_H
#define CORE_METER_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POINTS_OLD = 512, POINTS_NEW = 256, POINTS_MAX = POINTS_OLD + POINTS_NEW };

struct points {
    struct {
        uint64_t at_ns;
        double j;
    } at[POINTS_MAX];
    size_t n, n_old; /* the first n_old are thinned out: one in … */
    uint64_t stride, passed;
};

/* Adds a value; ignored if not later than the last one. */
void points_add(struct points *p, uint64_t at_ns, double j);

/* Energy from begin_ns to end_ns, and the half width of its interval: the uncertainty at
 * both ends, and step_j, the counter's smallest difference.  After the last value its
 * last power is extended for fresh_ns.  false: unknown.
 */
bool points_between(const struct points *p, uint64_t begin_ns, uint64_t end_ns,
                    double step_j, uint64_t fresh_ns, double *ret_j, double *ret_half_j);

#endif
