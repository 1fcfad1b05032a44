/* Inside plant/: a board's state and its history of segments. */
#ifndef PLANT_STATE_H
#define PLANT_STATE_H

#include "base/rng.h"
#include "plant/gpu.h"

/* What a job that holds boards does for one of them. */
struct plant_job;
struct job_calls {
    void (*advance)(struct plant_job *job, uint64_t to_ns); /* all of its boards */
    void (*pace)(struct plant_job *job); /* one of them has become faster or slower */
};

enum { PIECES = 5, SEGMENTS = 128, STAGES = 4 };

/* A step's power over its share of time; one piece where nothing runs. */
struct wave {
    unsigned n;
    double until[PIECES]; /* share of the step at which the piece ends */
    double w[PIECES];
    double step_s, step_j;
};

/* Time in which nothing changes but what is closed-form. */
struct segment {
    uint64_t start_ns;
    double start_j;   /* true energy since the board's start */
    double start_pos; /* where in a step, [0, 1) */
    double rate;      /* steps a second; 0 not running */
    struct wave wave;
    double start_c, target_c; /* temperature and where it tends */
};

/* Limits in force from at_ns on, on the way to a new cap. */
struct stage {
    uint64_t at_ns;
    double limit_w;
};

struct plant_gpu {
    struct plant_board board;
    uint64_t seed, start_ns, now_ns, end_ns; /* end_ns: of the current segment */
    double noise_sd;
    bool coarse, ideal;
    double gain;              /* > 0: given */
    struct plant_trait trait; /* without zeros but in spin */
    struct rng rng;
    double wander; /* this second's factor on time */
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
    double share; /* of dynamic power at x, for the clock to be shown */
    double active_w, own_step_s, leak_w;
    bool bound;         /* the cap slows it */
    uint64_t capped_ns; /* until the current segment's start */

    struct segment ring[SEGMENTS];
    unsigned first, n; /* the oldest; how many */

    struct plant_sensor_error error;
    double base_j; /* what the counter had at the driver's load */
    double seen_j; /* PLANT_COUNTER_SENSED: sum up to and with window seen_k */
    int64_t seen_k;
    bool counter_stuck;
    uint64_t stuck_mj;

    struct plant_job *job; /* NULL: none holds it */
    const struct job_calls *calls;
};

/* wave.c */
double wave_energy_j(const struct wave *wave, double pos); /* of [0, pos), pos <= 1 */
void wave_finish(struct wave *wave); /* from pieces in seconds to shares */
double segment_energy_j(const struct segment *s, uint64_t at_ns);
double segment_power_w(const struct segment *s, uint64_t at_ns);
double segment_temp_c(const struct segment *s, uint64_t at_ns, double tau_s);

/* gpu.c */
struct segment *gpu_last(const struct plant_gpu *gpu);
/* plant_gpu_advance() for a board alone. */
void gpu_advance_alone(struct plant_gpu *gpu, uint64_t to_ns);
/* Others are slower than they were: nothing changes but how long it waits. */
void gpu_set_pace(struct plant_gpu *gpu, double pace_s);

/* read.c */
void gpu_sensor_init(struct plant_gpu *gpu);
/* Take account of the windows that end by at_ns before history forgets them. */
void gpu_see_until(struct plant_gpu *gpu, uint64_t at_ns);
double gpu_counted_j(struct plant_gpu *gpu, uint64_t at_ns);

#endif
