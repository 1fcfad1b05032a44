/* Noise of a simulated job that has a memory: log step time and log power follow
 * Ornstein-Uhlenbeck processes (AR(1) in discrete time) with the same memory.  Exact at
 * any spacing.
 */
#ifndef BENCH_NOISE_H
#define BENCH_NOISE_H

#include <stdbool.h>

#include "base/rng.h"

struct noise {
    double sd;          /* of log step time and of log power */
    double memory_s;    /* the autocorrelation falls to 1/e in this time; above 0 */
    double correlation; /* of log step time and log power */
    struct rng *rng;    /* borrowed */
    bool begun;
    double log_t, log_p; /* now */
};

/* Lets time pass; the first call draws from the stationary distribution. */
void noise_pass(struct noise *n, double seconds);

/* What a window of whole steps shows: means of the logarithms of time and energy per
 * step, and the standard errors that the scatter of its steps states (of independent
 * steps: scatter_rse() in core/progress/window.c).
 */
struct noise_window {
    double log_t, log_e, time_rse, energy_rse;
};
struct noise_window noise_window(struct noise *n, unsigned steps, double step_s);

#endif
