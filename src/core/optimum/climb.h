/* Which lock of the SM clock to measure next, in a held cap's place: a climb over the
 * clock, with what is known of its ends.  A function of its argument; lock.c keeps the
 * rules.
 *
 * Time goes with a / clock + b.  It is known at the highest clock, and a lock near the
 * mean clock that is seen under the held cap takes about as long as the cap does: those
 * two say a and b until locks were measured.  Of the goal's value nothing is assumed but
 * that it has one valley.
 */
#ifndef CORE_OPTIMUM_CLIMB_H
#define CORE_OPTIMUM_CLIMB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CLIMB_POINTS_MAX = 8 };

/* A lock; time and the goal's value as logarithms of what they are over what they are
 * under the held cap alone.
 */
struct climb_point {
    double mhz;
    double log_t, log_g;
    double var_t; /* of log_t */
};

struct climb {
    uint32_t min_mhz, max_mhz, step_mhz; /* clocks that may be locked: max - k x step */
    double seen_mhz;                     /* mean under the held cap */
    double most_log_t;                   /* slower is not allowed; INFINITY: any */
    double least_gain;                   /* of the goal's value, that is worth a look */
    struct climb_point top;              /* without a lock, at the cap of the locks */
    const struct climb_point *point;     /* measured */
    size_t n;
};

/* The clock to measure next; 0: none is worth it. */
uint32_t climb_next(const struct climb *c);

#endif
