/* What a search has measured, and the job and the caps that it is about: plain values. */
#ifndef CORE_OPTIMUM_LEVEL_H
#define CORE_OPTIMUM_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/optimum/goal.h"

enum { LEVELS_MAX = 24 };

/* All windows at one cap, put together. */
struct level {
    double cap_w;
    double log_t, log_e; /* of time and energy a unit of work; energy of one GPU */
    double var_t, var_e; /* variances of these means */
    unsigned windows;    /* of ordinary length: a long one counts for so many */
    bool stale;          /* from before the job changed: tells the shape, not the level */
    double demand_w;     /* stale: the demand of its time */
};

struct prior;

struct scene {
    const struct prior *prior; /* NULL: prior_recorded */
    struct goal goal;
    double pmax_w;     /* one GPU's highest cap */
    double peak_w;     /* observed at the reference; 0 unknown */
    double lo_w, hi_w; /* caps allowed now, multiples of grain_w */
    double grain_w;
    const struct level *levels;
    size_t n;
    size_t reference; /* index of the reference; not stale */
    bool earlier; /* the stale ones are of an earlier run, which may be another job's */
    bool again;   /* a look: what is kept was chosen before, and is chosen anew */
    unsigned windows_left;
};

#endif
