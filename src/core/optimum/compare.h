/* How much more time (or energy) per unit of work one setting of a job takes than
 * another, from its windows and their times, and a bound on it.  Pure.
 *
 * Step times of a job vary slowly (storage, network, heat), so that the scatter within a
 * window understates its error.  The noise is an AR(1) process of unknown size and memory
 * plus white noise as the windows state it: generalised least squares of one level for
 * each side, for each size and memory of a grid, weighted by the restricted likelihood.
 * Windows of sides that are interleaved (A B B A) tell the most: slow noise cancels, and
 * repeats show its size.
 */
#ifndef CORE_OPTIMUM_COMPARE_H
#define CORE_OPTIMUM_COMPARE_H

#include <stddef.h>

enum { COMPARE_SIDES = 24, COMPARE_WINDOWS = 64 };

struct compare_window {
    unsigned side;   /* below COMPARE_SIDES */
    double start_s;  /* on any clock */
    double lasted_s; /* above 0 */
    double log_v;    /* mean logarithm of the value per unit of work */
    double rse;      /* standard error that the scatter within it states */
};

struct compare_ratio {
    double log_ratio; /* B / A, expected */
    double most;      /* it is higher with probability `miss` */
};

/* The windows, at most COMPARE_WINDOWS, are in the order of time and do not overlap; a
 * and b are sides of some of them; miss is in 0..0.5, exclusive.  A lower bound is that
 * of the sides exchanged, negated.
 */
struct compare_ratio compare(const struct compare_window *w, size_t n, unsigned a,
                             unsigned b, double miss);

#endif
