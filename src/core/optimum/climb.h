/* Hill climbing over the SM clock: which lock to measure next instead of a held cap.  A
 * pure function; lock.c applies the rules.
 *
 * Time is modelled as a / clock + b.  Initially a and b follow from the time at the
 * highest clock and from the assumption that a lock near the mean clock under the held
 * cap takes about as long as the cap; measured locks refine them.  The goal's value is
 * only assumed to have a single minimum.
 */
#ifndef CORE_OPTIMUM_CLIMB_H
#define CORE_OPTIMUM_CLIMB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIMB_POINTS_MAX = 8 };

/* A lock.  log_t, log_g: logarithms of the ratios to the held cap alone, of time and of
 * the goal's value.
 */
struct climb_point {
    double mhz;
    double log_t, log_g;
    double var_t; /* of log_t */
};

struct climb {
    uint32_t min_mhz, max_mhz, step_mhz; /* clocks that can be locked: max - k x step */
    double seen_mhz;                     /* mean under the held cap */
    double most_log_t;                   /* upper limit of log_t; INFINITY: none */
    double least_gain;                   /* of log_g, that justifies a measurement */
    struct climb_point top;              /* no lock, at the cap used with the locks */
    const struct climb_point *point;     /* measured locks */
    size_t n;
};

/* The clock to measure next; 0: none. */
uint32_t climb_next(const struct climb *c);

#endif
