/* The search's judgement apart from its state: given what was measured, where to
 * look next, or which cap to keep.  A function of its argument: no memory, no
 * chance.  search.c turns it into steps and keeps the safety rules.
 */
#ifndef CORE_OPTIMUM_PROPOSE_H
#define CORE_OPTIMUM_PROPOSE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/optimum/goal.h"

enum { LEVELS_MAX = 24, PROPOSE_WHY_MAX = 160 };
enum { PROPOSE_LENGTH_MAX = 4 };

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

struct proposal {
    bool hold;
    double cap_w;        /* measure here, or keep this */
    unsigned length;     /* … by a window so many times the ordinary length */
    double best_w;       /* what would be kept now … */
    double log_t, log_e; /* … and what is expected there */
    char why[PROPOSE_WHY_MAX];
};

/* windows_left == 0 or lo_w == hi_w measured: always a hold. */
struct outlook; /* room for the work, kept by the caller; no memory in it */
void propose(const struct scene *scene, struct outlook *room, struct proposal *ret);

#endif
