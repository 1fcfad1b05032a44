/* How much time (or energy) per unit of work each setting of a job takes, from its
 * windows and their times, and how surely one takes more than another.  Pure.
 *
 * Step times of a job vary slowly (storage, network, heat), so that the scatter within a
 * window understates its error.  The noise is an AR(1) process of unknown size and memory
 * plus white noise as the windows state it: generalised least squares of one level for
 * each side, for each size and memory of a grid, weighted by the restricted likelihood.
 * The scatter within windows limits the process from above: one that wanders from window
 * to window wanders within them.
 * Windows of sides that are interleaved (A B B A) tell the most: slow noise cancels, and
 * repeats show its size.
 */
#ifndef CORE_OPTIMUM_COMPARE_H
#define CORE_OPTIMUM_COMPARE_H

#include <stddef.h>

enum { COMPARE_SIDES = 24, COMPARE_WINDOWS = 64, COMPARE_LENGTHS = 3 };

struct compare_window {
    unsigned side;   /* below COMPARE_SIDES */
    double start_s;  /* on any clock */
    double lasted_s; /* above 0 */
    double log_v;    /* mean logarithm of the value per unit of work */
    double rse;      /* standard error that the scatter within it states */
    unsigned parts;  /* that scatter; 0: unknown */
};

/* The levels of all sides.  The error that they share, which no ratio has, is taken off
 * the covariances.
 */
struct compare_levels {
    double level[COMPARE_SIDES]; /* of log_v; 0 for a side without windows, as … */
    double cov[COMPARE_SIDES][COMPARE_SIDES]; /* … are its covariances */
    /* Half the variance of the difference of adjacent windows of one side, 1, 2 and 4
     * times as long as the shortest.
     */
    double again_var[COMPARE_LENGTHS];
};
/* The windows, 1 to COMPARE_WINDOWS, are in the order of time and do not overlap. */
void compare_levels(const struct compare_window *w, size_t n, struct compare_levels *ret);

#endif
