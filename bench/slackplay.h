/* The product's slack (core/slack) played on a world of boards that wait for each other,
 * and what could be had by somebody who sees the world without noise.
 */
#ifndef BENCH_SLACKPLAY_H
#define BENCH_SLACKPLAY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/slack/slack.h"

struct slack_world {
    size_t n;
    uint32_t least_mw[SLACK_BOARDS_MAX], most_mw[SLACK_BOARDS_MAX];
    /* Time of a unit of work under these caps, and each board's energy in it. */
    double (*run)(void *of, const uint32_t *cap_mw, double *ret_energy_j);
    void *of;
};

struct slack_play {
    uint32_t start_mw[SLACK_BOARDS_MAX];
    double allowance;
    uint64_t budget_mw; /* 0: none */
    double noise;       /* of each window's time and of each board's power */
    unsigned windows;   /* the job's length, a unit of work each */
    uint64_t seed;
    FILE *trace; /* or NULL */
};

/* Ratios to the same units of work at the first caps, without noise. */
struct slack_score {
    double time, energy;           /* the whole job, with its search */
    double held_time, held_energy; /* at the caps kept at the end */
    double worst_time;             /* of all caps that were ever kept */
    struct slack_result result;
};

int slack_play(const struct slack_world *w, const struct slack_play *p,
               struct slack_score *ret, uw_error *err);

struct slack_best {
    double time, energy; /* ratios, as above */
    uint32_t cap_mw[SLACK_BOARDS_MAX];
};
/* Least energy within the allowance: one cap for all, in whole watts … */
void slack_uniform(const struct slack_world *w, const struct slack_play *p,
                   struct slack_best *ret);
/* … and one for each board: the best that going down in ever smaller steps, board by
 * board in several orders, has found.
 */
void slack_oracle(const struct slack_world *w, const struct slack_play *p,
                  struct slack_best *ret);

#endif
