/* One simulated board in time.
 *
 * True power is piecewise constant: each segment of time has a step's waveform
 * (gap, burst, pay-back, compute, wait), a clock and a temperature that tends to
 * its steady value; what happens within it is closed-form.  Segments change when
 * the load, the cap, the clock lock or the temperature (in steps of a kelvin or
 * two) does.  Results do not depend on how often plant_gpu_advance() is called.
 *
 * How caps act (V100, one 80 W step each way): down, the power is below the new
 * cap 50 ms after the request, 7 % under it, settled by 110 ms; up, stairs at
 * 110 and 280 ms, settled by 340 ms.  When a load starts, and at the beginning of
 * each step's compute after a gap, power bursts to as much as 143 % of the cap
 * for up to 30 ms and is paid back at once, so that the average holds.
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

/* What sets boards of one model and one job apart; 0: as the tables have it. */
struct plant_trait {
    double power; /* draws so many times as much at the same clock: silicon, a hot slot */
    double work;  /* share of the job's work a step, 1 each: a pipeline's stage */
    double spin;  /* while it waits for others its kernels spin: utilisation 100 %, and
                   * this share of dynamic power on top of static power; 0: it waits
                   * asleep, at the workload's gap_w */
};

struct plant_gpu_opts {
    const struct plant_board *board; /* copied */
    uint64_t seed;                   /* gain, offset, phases, noise follow from it */
    uint64_t start_ns;
    double noise_sd; /* > 0: speed wanders by this share from second to second */
    bool coarse;     /* caps act at once, no bursts, no heat on power: for years */
    bool ideal;      /* the sensor has no gain error, offset or noise */
    double gain;     /* > 0: the sensor's gain is this, not drawn */
    struct plant_trait trait;
};

int plant_gpu_new(const struct plant_gpu_opts *opts, struct plant_gpu **ret,
                  uw_error *err);
void plant_gpu_free(struct plant_gpu *gpu);
DEFINE_AUTO(struct plant_gpu *, plant_gpu_free);

/* Borrowed; its own copy, with whatever the caller changed of the catalogue's. */
const struct plant_board *plant_gpu_board(const struct plant_gpu *gpu);

/* ---- time ---- */

/* Let everything happen until to_ns (earlier than now: nothing).  A board that a
 * job holds takes the job and its other boards along.
 */
void plant_gpu_advance(struct plant_gpu *gpu, uint64_t to_ns);
uint64_t plant_gpu_now_ns(const struct plant_gpu *gpu);
/* When its speed or power next changes by itself; UINT64_MAX: never. */
uint64_t plant_gpu_next_ns(const struct plant_gpu *gpu);

/* ---- what is done to it; all of this happens now ---- */

/* The request as it begins.  plant_gpu_cap_mw() shows it at once; the caller
 * models the time that the driver's call takes (board->set_limit_ns).
 */
void plant_gpu_set_cap(struct plant_gpu *gpu, uint32_t mw);
uint32_t plant_gpu_cap_mw(const struct plant_gpu *gpu);
/* SM clocks as the driver reports them; 0, 0 takes the lock away. */
void plant_gpu_lock_clocks(struct plant_gpu *gpu, uint32_t min_mhz, uint32_t max_mhz);
/* Another hot slot, another split of the work. */
void plant_gpu_set_trait(struct plant_gpu *gpu, const struct plant_trait *trait);
/* The driver is loaded anew: default cap, no lock, counter at 0. */
void plant_gpu_reload(struct plant_gpu *gpu);
/* The energy counter stands still, or goes on from where it belongs. */
void plant_gpu_stick_counter(struct plant_gpu *gpu, bool stuck);
void plant_gpu_set_ambient(struct plant_gpu *gpu, double ambient_c);

enum plant_activity {
    PLANT_IDLE, /* board->idle_w */
    PLANT_HOLD, /* a program is on it and computes nothing: hold_w */
    PLANT_RUN,  /* steps of a workload */
};

struct plant_load {
    enum plant_activity activity;
    double hold_w;                     /* PLANT_HOLD */
    const struct plant_workload *work; /* PLANT_RUN; outlives the load */
    double gap_s, tc_s, tm_s;          /* PLANT_RUN: of one step */
    double d_scale;                    /* PLANT_RUN: dynamic power against work->d_w */
    double pace_s; /* a step takes at least this long: the slowest board sets the
                      pace, the others wait at work->gap_w; 0: its own pace */
};

/* One step of the workload's training loop on one board. */
struct plant_load plant_load_train(const struct plant_workload *work);
/* Counts its steps from 0. */
void plant_gpu_set_load(struct plant_gpu *gpu, const struct plant_load *load);
/* The same load at another pace or price; its steps go on. */
void plant_gpu_change_load(struct plant_gpu *gpu, const struct plant_load *load);
const struct plant_load *plant_gpu_load(const struct plant_gpu *gpu);

/* ---- the truth at plant_gpu_now_ns() ---- */

double plant_gpu_energy_j(const struct plant_gpu *gpu); /* since start_ns */
double plant_gpu_power_w(const struct plant_gpu *gpu);  /* this instant's */
double plant_gpu_mean_w(const struct plant_gpu *gpu);   /* of a step as it goes now */
double plant_gpu_temp_c(const struct plant_gpu *gpu);
double plant_gpu_clock(const struct plant_gpu *gpu); /* the model's x; 0 not running */
/* Steps done since the load was set, with the fraction of the one under way, and
 * steps a second now (0 not running).  Steps are what rate sums to, always.
 */
double plant_gpu_steps(const struct plant_gpu *gpu);
double plant_gpu_rate(const struct plant_gpu *gpu);
/* Seconds a step would take at its own pace now; 0 not running. */
double plant_gpu_own_step_s(const struct plant_gpu *gpu);

/* Energy between start_ns and any moment of the last second and a half, J. */
double plant_gpu_energy_at_j(const struct plant_gpu *gpu, uint64_t at_ns);

/* ---- what the driver shows at plant_gpu_now_ns() ---- */

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
    uint64_t capped_ns; /* how long the cap has slowed it since the driver's load */
};

void plant_gpu_read(struct plant_gpu *gpu, struct plant_reading *ret);
/* Only the counter, only the plain power: cheaper. */
uint64_t plant_gpu_read_energy_mj(struct plant_gpu *gpu);
uint32_t plant_gpu_read_power_mw(struct plant_gpu *gpu);
const struct plant_sensor_error *plant_gpu_sensor_error(const struct plant_gpu *gpu);

#endif
