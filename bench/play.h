/* Methods of choosing a cap played on a recorded curve, and how well they did. */
#ifndef BENCH_PLAY_H
#define BENCH_PLAY_H

#include <stdint.h>
#include <stdio.h>

#include "core/optimum/binding.h"
#include "core/optimum/goal.h"
#include "core/optimum/prior.h"
#include "curves.h"

enum method {
    METHOD_SEARCH,
    METHOD_STATIC,      /* a fixed share of the highest cap */
    METHOD_SCAN,        /* every 25 W from the highest, the best measured */
    METHOD_GOLDEN,      /* golden section to 1/25 of the range, the best measured */
    METHOD_GOLDEN_NEAR, /* the same between 0.5 and 1.02 x demand */
    METHOD_CLIMB,       /* hill climb from 1.02 x demand, the best measured */
};

struct play {
    enum method method;
    double share; /* METHOD_STATIC */
    struct goal goal;
    double noise; /* without memory: of each window's time and energy, independently;
                     with: of step time and power at any moment */
    double memory_s, correlation; /* of the noise (noise.h); 0: without memory */
    double headroom;      /* the highest cap is at least so many times the power at the
                             reference; 0: the highest one recorded */
    enum binding binding; /* told of a cap without effect (record_binds()) */
    uint64_t seed;
    unsigned
        looks; /* out of the hold in the first hour, at most (core/optimum/gap-probe.h) */
    FILE *trace;               /* each step of the search in words; NULL: none */
    const struct prior *prior; /* of the search; NULL: the built-in one */
    /* A search of this curve, with other noise, came before, and its windows are told;
     * NULL: none.  It may be another job's curve: what is remembered may be wrong.
     */
    const struct record *earlier;
};

struct score {
    double cap_w;
    double regret;                /* fraction above the oracle, on the noiseless curve;
                                     where the bound is broken: excess */
    double regret_allowed;        /* the same, of an oracle that keeps the soft floor */
    double slowdown;              /* time over the reference's */
    double saving, oracle_saving; /* energy, fractions of the reference's */
    bool broken;                  /* slowdown:F: the bound was exceeded, … */
    double excess;                /* … by this fraction of it */
    double cost; /* of the windows, 10 s each (a long one by its length), over the kept
                    cap: share of an hour's */
    unsigned caps, windows;             /* of the search and its looks, … */
    unsigned caps_first, windows_first; /* … and those until it held first, … */
    double first_s; /* … and how long that took, ways down and all */
};

/* The curve's best whole watt between from_w and its highest cap. */
double play_oracle_w(const struct record *rec, const struct goal *goal, double from_w);
/* 0, or a failure of the method (its text in err). */
int play(const struct record *rec, const struct play *p, struct score *ret,
         uw_error *err);

#endif
