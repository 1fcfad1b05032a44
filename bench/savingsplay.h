/* A whole job under the daemon's own tuner (tuner/tuner.h), in virtual time, in a world
 * whose truth is known: what each of its steps costs at any cap comes from a curve.  The
 * tuner schedules its windows, its visits to the reference and its books itself; made up
 * are the job's steps, the cap (in force at once) and the meter (errors at a window's
 * ends, as large as it claims).
 */
#ifndef BENCH_SAVINGSPLAY_H
#define BENCH_SAVINGSPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/optimum/goal.h"
#include "curves.h"

/* What sets a job's steps apart from each other: the same factors at every cap, or, where
 * it says so, other ones.  Relative; "over the job" is from its first step to its last.
 */
struct savings_job {
    double noise;    /* of a step's time and energy, independently: sd over 10 s … */
    double memory_s; /* … and how long it stays about the same; 0: white */
    double energy_noise;             /* of the energy alone, with this memory as well */
    double drift_time, drift_energy; /* grow evenly over the job by this */
    double warm_energy;              /* energy grows by this in the first half hour */
    double jump;                     /* time and energy: half way */
    double shape; /* what a cap does to both: its logarithm grows by this */
    double cool;  /* a board that drew less leaks less for a while: by this part of it;
                     at the job's start it was at rest */
    double meter; /* standard error of the energy of 10 s */
};

struct savings_play {
    const struct record *rec;
    struct savings_job job;
    struct goal goal;
    double length_s;     /* at the original cap */
    double checks_share; /* as tuner_opts has it */
    uint64_t seed;
    FILE *trace; /* what the tuner says; NULL: none */
};

/* A part of the energy (the time) at the original cap. */
struct savings_word {
    bool known;
    double value, half; /* half: 95 %; 0 where none is given */
};

struct savings_score {
    struct savings_word saved, slower; /* the tuner's own report: what was measured */
    struct savings_word start_saved;   /* by the windows at the job's start alone */
    struct savings_word model_saved;   /* what the search's model says of the cap held */
    double true_saved, true_slower;    /* of the same steps */
    double job_s;
    double visits_s, start_s; /* at the reference: out of holds; at the start */
    unsigned visits;
    double used_j, would_j; /* what it used, and would have at the original cap */
    double told_part; /* steps compared, of those after the first 10 s of warming up */
};

/* 0, or a failure with its text. */
int savings_play(const struct savings_play *p, struct savings_score *ret, uw_error *err);

#endif
