/* Internal to plant/: a board's state and its history of segments. */
#ifndef PLANT_STATE_H
#define PLANT_STATE_H

#include "base/rng.h"
#include "plant/gpu.h"
#include "plant/wave.h"

/* Calls from a board to the job that holds it. */
struct plant_job;
struct job_calls {
    /* advances all boards of the job */
    void (*advance)(struct plant_job *job, uint64_t to_ns);
    /* a board of the job was changed: segments and pace are computed by catch_up() */
    void (*changed)(struct plant_job *job);
    void (*catch_up)(struct plant_job *job);
};

enum { SEGMENTS = 128, STAGES = 4 };

/* A limit in force from at_ns on, during the transition to a new cap. */
struct stage {
    uint64_t at_ns;
    double limit_w;
};

struct plant_gpu {
    struct plant_board board;
    uint64_t seed, start_ns, now_ns, end_ns; /* end_ns: of the current segment */
    double noise_sd, noise_keeps;            /* AR(1), a step a second */
    double noise;                            /* this second's, in standard deviations */
    bool coarse, ideal;
    double gain;              /* > 0: set by the caller */
    struct plant_trait trait; /* without zeros, except spin */
    struct rng rng;
    double wander; /* this second's factor of the step time */
    uint64_t wander_ns;

    uint32_t cap_mw;
    double limit_w; /* in force now */
    struct stage stage[STAGES];
    unsigned n_stages;
    uint32_t lock_max_mhz, lock_min_mhz;
    double ambient_c;

    struct plant_load load;
    double steps; /* at the current segment's start */
    double x;
    double share; /* of dynamic power at x, for the reported clock */
    double active_w, own_step_s, leak_w;
    bool bound;         /* the cap slows the board */
    uint64_t capped_ns; /* until the current segment's start */

    struct segment ring[SEGMENTS];
    unsigned first, n; /* index of the oldest; number */
    /* exp(-faded_s / tau_s): spans are often as long as the one before */
    double faded_s, fade;
    bool stale; /* changed at now_ns, and no segment shows it yet */

    struct plant_sensor_error error;
    double base_j; /* counter value at the driver's load */
    double seen_j; /* PLANT_COUNTER_SENSED: sum through window seen_k */
    int64_t seen_k;
    bool counter_stuck;
    uint64_t stuck_mj;

    struct plant_job *job; /* NULL: no job */
    const struct job_calls *calls;
};

/* gpu.c */
struct segment *gpu_last(const struct plant_gpu *gpu);
/* Changes at one time are computed together, when somebody looks or time passes: begins
 * the segment that shows those of the board and of its job.
 */
void gpu_catch_up(const struct plant_gpu *gpu);
/* plant_gpu_advance() without the job. */
void gpu_advance_alone(struct plant_gpu *gpu, uint64_t to_ns);
/* What is due at now_ns (= end_ns) of a job's board; it is stale then. */
void gpu_pass_event(struct plant_gpu *gpu);
/* A stale board's speed: begins a segment, to which gpu_set_pace() gives its wave. */
void gpu_set_speed(struct plant_gpu *gpu);
/* The segment at the pace of the job's slowest board, 0: at that of the load. */
void gpu_set_pace(struct plant_gpu *gpu, double pace_s);

/* read.c */
void gpu_sensor_init(struct plant_gpu *gpu);
/* Sums the windows that end by at_ns, before their history is dropped. */
void gpu_see_until(struct plant_gpu *gpu, uint64_t at_ns);
double gpu_counted_j(struct plant_gpu *gpu, uint64_t at_ns);

#endif
