/* The measured levels of a search, and the scene (job, caps, levels) that a proposal is
 * made from: plain values.
 */
#ifndef CORE_OPTIMUM_LEVEL_H
#define CORE_OPTIMUM_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/optimum/compare.h"
#include "core/optimum/goal.h"

enum { LEVELS_MAX = 24 };
#define EXACT_VAR 1e-8 /* least variance of a window and of a level [no row] */
#define EXACT 1e-7     /* variances up to this are those of exact windows [no row] */
/* Standard errors: 99 % confidence, and more for repeated choices, which favour caps that
 * err to the fast side [recorded, slowdown:1.02: caps]
 */
#define SURE 2.33

/* All windows at one cap, combined. */
struct level {
    double cap_w;
    double log_t, log_e; /* of time and energy per unit of work; energy of one GPU */
    double var_t, var_e; /* variances of these means */
    unsigned windows;    /* sum of their lengths, in ordinary windows */
    bool stale;          /* of an earlier regime or run: only the curve's shape is used */
    double demand_w;     /* stale: the demand at that time */
    unsigned side;       /* in struct noise, + 1; 0: none, the variances above count */
};

/* Adds other's windows to those of l. */
void level_join(struct level *l, const struct level *other);
/* Copies the levels that are not stale, returns their number.  *reference: an index among
 * all, then among the copies.
 */
size_t levels_fresh(const struct level *all, size_t n, struct level *ret,
                    size_t *reference);
/* Moves the reference to a lower cap, and its level takes in those between the two, both
 * included.  Returns the number of levels.
 */
size_t levels_move_reference(struct level *all, size_t n, size_t *reference,
                             double cap_w);

/* The first level that is not stale within near_w of this cap; NULL: none. */
struct level *levels_near(const struct level *all, size_t n, double cap_w, double near_w);

struct prior;

/* What the windows show of the noise: covariances of the errors of the levels' log time
 * and log power.
 */
struct noise {
    struct compare_levels t, p;
};

struct scene {
    const struct prior *prior; /* NULL: prior_recorded */
    struct goal goal;
    double pmax_w;     /* highest cap of one GPU */
    double peak_w;     /* observed at the reference; 0: unknown */
    double lo_w, hi_w; /* range of caps allowed now, multiples of grain_w */
    double grain_w;
    const struct level *levels;
    size_t n;
    size_t reference; /* index of the reference; not stale */
    bool earlier;     /* stale levels are of an earlier run, perhaps of another job */
    bool again;       /* a look: the held cap is chosen again */
    unsigned windows_left;
    const struct noise *noise; /* NULL: the levels' own variances */
};

#endif
