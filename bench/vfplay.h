/* The product's search for a cap and, in its hold, its choice of a lock (core/optimum:
 * search.h, lock.h) played on a simulated board with believable clocks (plant/vf.h).
 */
#ifndef BENCH_VFPLAY_H
#define BENCH_VFPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/optimum/goal.h"
#include "underwatt/error.h"
#include "virtual/vf.h"

struct vfplay {
    const struct plant_vf *vf;
    double min_w, max_w; /* the board's; the highest is the original cap */
    struct goal goal;
    double noise; /* of each window's time and energy, independently; told */
    uint64_t seed;
    FILE *trace; /* each step in words; NULL: none */
};

/* What is in force, and what it is worth. */
struct vfplay_kept {
    uint32_t cap_mw, mhz; /* 0: no lock */
    double value;         /* the goal's over that at the original, its bound left out */
    double time;          /* over the original's */
};

struct vfplay_score {
    struct vfplay_kept cap;  /* what the search held … */
    struct vfplay_kept end;  /* … and what was in force after an hour more of windows */
    bool ever;               /* a lock was held at some time */
    unsigned search_windows; /* until the search held … */
    unsigned windows;        /* … and from then until the lock was decided on */
    unsigned checks;         /* in the hold */
    double cost; /* of windows at tried settings that are worse than the cap, share of an
                    hour, 10 s a window */
};

/* A setting's worth, without noise. */
struct vfplay_kept vfplay_worth(const struct vfplay *p, uint32_t cap_mw, uint32_t mhz);
int vfplay(const struct vfplay *p, struct vfplay_score *ret, uw_error *err);

#endif
