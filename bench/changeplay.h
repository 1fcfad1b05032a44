/* A job that changes, from its first search to the hold after its last, in virtual time:
 * the core's search and the core's detector of changes, fed as the tuner feeds them.
 */
#ifndef BENCH_CHANGEPLAY_H
#define BENCH_CHANGEPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "regimes.h"

enum answer {
    ANSWER_KNOWN, /* a change begins a search from what is known: the product */
    ANSWER_ANEW,  /* … a search that knows nothing */
    ANSWER_NONE,  /* the old cap is kept */
    ANSWERS,
};

struct changeplay {
    enum answer answer;
    struct goal goal;
    double noise, told; /* of each window; what the search is told of it */
    uint64_t seed;
    double end_s;   /* of the job */
    unsigned looks; /* out of the hold (core/optimum/gap-probe.h) */
    FILE *trace;
};

/* One search, the way to each of its caps with it. */
struct searched {
    double began_s, took_s; /* from there until it held */
    unsigned caps, windows; /* windows: of ordinary length */
    double cap_w;           /* held then */
    double cost;     /* over having held that all the time, in percent/100 of an hour */
    double regret;   /* of that cap, then */
    double slowdown; /* there */
};

enum { SEARCHED_MAX = 64 };

struct played {
    struct searched first, again[SEARCHED_MAX];
    unsigned n_again;  /* searches that a change began; more are counted alone */
    double old_regret; /* at the end, of the cap that was held before the change */
    double end_regret; /* … and of the one that is held then */
    double end_slowdown, old_slowdown;
    double lost;    /* mean regret from the change on, searches and all */
    double again_s; /* in searches, from then on */
    double since_s; /* of how long that is */
    double found_s; /* from the change until a search begins; INFINITY: never */
    unsigned found_windows;
};

/* The change is at r->turn_s[0] (INFINITY: none, and counting begins with the hold). */
int changeplay(struct regimes *r, const struct changeplay *p, struct played *ret,
               uw_error *err);

#endif
