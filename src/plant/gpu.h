/* One simulated board over time.
 *
 * True power is piecewise constant: each segment of time has a step's waveform (gap,
 * burst, compensation, compute, wait), a clock and a temperature that tends to its steady
 * value; values within a segment are closed-form.  A new segment begins when the load,
 * the cap, the clock lock or the temperature (in steps of one or two kelvin) changes.
 * Results do not depend on how often plant_gpu_advance() is called.
 *
 * Response to a cap (V100, one 80 W step each way): down, the power is below the new cap
 * 50 ms after the request, 7 % under it, settled by 110 ms; up, in steps at 110 and 280
 * ms, settled by 340 ms.  When a load starts, and at the start of each step's compute
 * after a gap, power bursts to as much as 143 % of the cap for up to 30 ms and is
 * compensated at once, so that the average keeps the cap.
 */
#ifndef PLANT_GPU_H
#define PLANT_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "plant/board.h"
#include "plant/sensor.h"
#include "plant/workload.h"
#include "underwatt/error.h"

struct plant_gpu;

/* Differences between boards of one model and one job; 0: no difference. */
struct plant_trait {
    double power; /* factor of power at the same clock: silicon, a hot slot */
    double work;  /* relative work of a step, 1: equal; a pipeline's stage */
    /* if > 0, kernels spin while waiting for other boards: utilisation is 100 %, power is
     * static power plus this share of dynamic power; 0: waits at the workload's gap_w
     */
    double spin;
};

struct plant_gpu_opts {
    const struct plant_board *board; /* copied */
    uint64_t seed;                   /* source of gain, offset, phases and noise */
    uint64_t start_ns;
    double noise_sd;       /* > 0: relative random variation of speed, each second */
    double noise_memory_s; /* > 0: it forgets exponentially with this time constant */
    /* caps act at once, no bursts, no effect of temperature on power: for long
     * simulations
     */
    bool coarse;
    bool ideal;  /* the sensor has no gain error, offset or noise */
    double gain; /* > 0: the sensor's gain, instead of a random one */
    struct plant_trait trait;
};

int plant_gpu_new(const struct plant_gpu_opts *opts, struct plant_gpu **ret,
                  uw_error *err);
void plant_gpu_free(struct plant_gpu *gpu);
DEFINE_AUTO(struct plant_gpu *, plant_gpu_free);

/* Borrowed; the board's own copy of opts->board. */
const struct plant_board *plant_gpu_board(const struct plant_gpu *gpu);

/* ---- time ---- */

/* Advances to to_ns; an earlier time is ignored.  A board of a job advances the job and
 * its other boards as well.
 */
void plant_gpu_advance(struct plant_gpu *gpu, uint64_t to_ns);
uint64_t plant_gpu_now_ns(const struct plant_gpu *gpu);
/* When its speed or power next changes without a call; UINT64_MAX: never. */
uint64_t plant_gpu_next_ns(const struct plant_gpu *gpu);

/* ---- changes, at plant_gpu_now_ns() ---- */

/* Takes effect as after a driver's request: plant_gpu_cap_mw() shows it at once.  The
 * caller models the duration of the driver's call (board->set_limit_ns).
 */
void plant_gpu_set_cap(struct plant_gpu *gpu, uint32_t mw);
uint32_t plant_gpu_cap_mw(const struct plant_gpu *gpu);
/* Range of SM clocks as the driver reports them; 0, 0 removes the lock. */
void plant_gpu_lock_clocks(struct plant_gpu *gpu, uint32_t min_mhz, uint32_t max_mhz);
/* Changes slot temperature or share of work. */
void plant_gpu_set_trait(struct plant_gpu *gpu, const struct plant_trait *trait);
/* Reloads the driver: default cap, no lock, counter at 0. */
void plant_gpu_reload(struct plant_gpu *gpu);
/* Stops the energy counter, or lets it continue with the value that it would have. */
void plant_gpu_stick_counter(struct plant_gpu *gpu, bool stuck);
void plant_gpu_set_ambient(struct plant_gpu *gpu, double ambient_c);

enum plant_activity {
    PLANT_IDLE, /* board->idle_w */
    PLANT_HOLD, /* a program is on it but computes nothing: hold_w */
    PLANT_RUN,  /* steps of a workload */
};

struct plant_load {
    enum plant_activity activity;
    double hold_w;                     /* PLANT_HOLD */
    const struct plant_workload *work; /* PLANT_RUN; outlives the load */
    double gap_s, tc_s, tm_s;          /* PLANT_RUN: of one step */
    double d_scale;                    /* PLANT_RUN: factor of work->d_w */
    /* a step takes at least this long: the slowest board sets the pace, the others wait;
     * 0: the board's own pace
     */
    double pace_s;
};

/* One step of the workload's training loop on one board. */
struct plant_load plant_load_train(const struct plant_workload *work);
/* Counts its steps from 0. */
void plant_gpu_set_load(struct plant_gpu *gpu, const struct plant_load *load);
/* The same load with another pace or cost; the count of steps continues. */
void plant_gpu_change_load(struct plant_gpu *gpu, const struct plant_load *load);
const struct plant_load *plant_gpu_load(const struct plant_gpu *gpu);

/* ---- true values at plant_gpu_now_ns() ---- */

double plant_gpu_energy_j(const struct plant_gpu *gpu); /* since start_ns */
double plant_gpu_power_w(const struct plant_gpu *gpu);  /* at this instant */
double plant_gpu_mean_w(const struct plant_gpu *gpu);   /* mean of the current step */
double plant_gpu_temp_c(const struct plant_gpu *gpu);
double plant_gpu_clock(const struct plant_gpu *gpu); /* the model's x; 0: not running */
/* Steps done since the load was set, with the fraction of the current one; and steps a
 * second now (0: not running).  Steps are always the integral of the rate.
 */
double plant_gpu_steps(const struct plant_gpu *gpu);
double plant_gpu_rate(const struct plant_gpu *gpu);
/* Seconds of a step at the board's own pace; 0: not running. */
double plant_gpu_own_step_s(const struct plant_gpu *gpu);

/* Energy from start_ns to any time within the last 1.5 s, J. */
double plant_gpu_energy_at_j(const struct plant_gpu *gpu, uint64_t at_ns);

/* ---- readings of the driver at plant_gpu_now_ns() ---- */

/* Clock-event reasons, NVML's bits. */
enum { PLANT_REASON_IDLE = 1u << 0, PLANT_REASON_POWER_CAP = 1u << 2 };

struct plant_reading {
    uint32_t power_mw;   /* the plain reading: instant or average by generation */
    uint32_t instant_mw; /* field 186, where sensor.has_instant */
    uint32_t average_mw; /* field 185, where sensor.has_average */
    uint64_t energy_mj;  /* where sensor.counter; since the driver's load */
    int32_t temp_c;
    uint32_t sm_mhz, mem_mhz;
    uint32_t util_gpu, util_mem; /* percent */
    uint64_t reasons;
    uint64_t capped_ns; /* time slowed by the cap since the driver's load */
};

void plant_gpu_read(struct plant_gpu *gpu, struct plant_reading *ret);
/* Only the counter; only the plain power: faster. */
uint64_t plant_gpu_read_energy_mj(struct plant_gpu *gpu);
uint32_t plant_gpu_read_power_mw(struct plant_gpu *gpu);
const struct plant_sensor_error *plant_gpu_sensor_error(const struct plant_gpu *gpu);

#endif
