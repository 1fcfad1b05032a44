/* Simulated telemetry of jobs whose period is known: a pattern of power, what a
 * generation's sensor makes of it (src/plant), and how it was read.
 */
#ifndef BENCH_SCENES_H
#define BENCH_SCENES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/progress/activity.h"
#include "core/progress/period.h"
#include "underwatt/error.h"

enum shape {
    SHAPE_STEP,   /* compute, gap */
    SHAPE_THREE,  /* forward, backward, optimiser: three levels */
    SHAPE_ACCUM4, /* gradient accumulation: micro-batches, then the optimiser */
    SHAPE_ACCUM8,
    SHAPE_PAIR,   /* long and short steps in turn */
    SHAPE_HICCUP, /* a stall of the input every 12 steps */
    SHAPE_STALLS, /* … now and then */
    SHAPE_DRIFT,  /* power drifts by 10 % over the trace */
    SHAPE_PAUSES, /* a checkpoint after every 25 steps */
    SHAPE_START,  /* two periods and 3 s of low power first */
    SHAPE_SINE,   /* smooth */
    SHAPES_KNOWN,
    /* and without a period that could be told: */
    SHAPE_CONSTANT = SHAPES_KNOWN,
    SHAPE_WHITE,
    SHAPE_WALK,
    SHAPE_RED,    /* first-order noise, 2 s */
    SHAPE_BURSTS, /* work that comes at random */
    SHAPE_TWO_JOBS,
    SHAPE_FAST, /* a period of 0.03 to 0.17 s */
    SHAPES,
};

struct scene {
    enum shape shape;
    const char *generation; /* see plant_sensor_generation(); "hopper-instant" too */
    double period_s;
    double length_s;
    double depth;           /* of the swing, relative to the high level */
    double noise;           /* of a reading, relative to the mean */
    double wander;          /* of a step's time, relative */
    double rate_hz, jitter; /* of reading; jitter relative to the time between */
    bool whole_watts;
    double slower,
        slower_at_s; /* from then on cycles take so much longer, at less power */
    uint64_t seed;
    bool held;      /* the noise is the sensor's: what is read twice is the same */
    unsigned board; /* of a job: another sensor and reader, the same work … */
    double late_s;  /* … so much later */
};

struct scene_trace {
    struct activity *items;
    size_t n;
    double truth_s;              /* the mean time of the pattern; 0: none could be told */
    struct period_sensor sensor; /* that it was read from */
    double other_s;              /* SHAPE_TWO_JOBS: either is right; 0 */
};

const char *shape_name(enum shape shape);
/* -ENOMEM, -EINVAL (no such generation). */
int scene_play(const struct scene *s, struct scene_trace *ret, uw_error *err);
void scene_trace_free(struct scene_trace *t);

#endif
