/* Readings of the driver.  All are functions of the true energy at a few times, so the
 * cost of a reading does not depend on the time since the last one.
 */
#include <math.h>

#include "base/units.h"
#include "plant/state.h"

enum {
    LOG_PARTS = 50,    /* spans in which log_w() sums the last LOG_TAUS time constants */
    SEEN_EXACT = 6000, /* windows summed one by one, at most */
    SEEN_SAMPLED = 1000, /* of more windows, evenly spread */
};
#define LOG_TAUS 6.0
#define CLOCK_POWER 3.5

static struct rng rng_for(const struct plant_gpu *gpu, uint64_t what)
{
    struct rng g;
    rng_init(&g, gpu->seed * 0x9e3779b97f4a7c15ull + what);
    return g;
}

void gpu_sensor_init(struct plant_gpu *gpu)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;
    struct plant_sensor_error *e = &gpu->error;
    struct rng g = rng_for(gpu, UINT64_MAX);

    double gain = rng_normal(&g), offset = rng_normal(&g);
    e->phase_ns = s->period_ns ? rng_below(&g, s->period_ns) : 0;
    e->counter_phase_ns = s->counter_period_ns ? rng_below(&g, s->counter_period_ns) : 0;
    e->gain = gpu->ideal ? 1 : 1 + s->gain_sd * fmin(fmax(gain, -2.5), 2.5);
    if (gpu->gain > 0)
        e->gain = gpu->gain;
    e->offset_w = gpu->ideal ? 0 : s->offset_sd_w * fmin(fmax(offset, -2.5), 2.5);
    gpu->seen_k = -1;
}

/* ---- power ---- */

/* Index of the last time phase + k x period, k >= 0, not after at_ns (both since the
 * start); -1: none yet.
 */
static int64_t tick_at(uint64_t at_ns, uint64_t phase_ns, uint64_t period_ns)
{
    return at_ns < phase_ns ? -1 : (int64_t)((at_ns - phase_ns) / period_ns);
}

/* Mean power of the span that ends at at_ns; time before the start counts as idle. */
static double mean_w(const struct plant_gpu *gpu, uint64_t at_ns, uint64_t span_ns)
{
    double e = plant_gpu_energy_at_j(gpu, at_ns);
    uint64_t from = at_ns > span_ns ? at_ns - span_ns : 0;
    double missing = s_of_ns(span_ns - (at_ns - from)) * gpu->board.idle_w;
    return (e - plant_gpu_energy_at_j(gpu, from) + missing) / s_of_ns(span_ns);
}

/* First-order response: means of short spans, weighted by age. */
static double log_w(const struct plant_gpu *gpu, uint64_t at_ns, double tau_s)
{
    uint64_t part = ns_of_s(LOG_TAUS * tau_s / LOG_PARTS);
    double fade = exp(-LOG_TAUS / LOG_PARTS), weight = 1, sum = 0, total = 0;

    for (int i = 0; i < LOG_PARTS && at_ns > part; i++, at_ns -= part) {
        sum += weight * mean_w(gpu, at_ns, part);
        total += weight;
        weight *= fade;
    }
    return total > 0 ? sum / total : gpu->board.idle_w;
}

/* The time that the current reading describes; false: no reading yet. */
static bool shown(const struct plant_gpu *gpu, int64_t *ret_k, uint64_t *ret_ns)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;
    uint64_t since = gpu->now_ns - gpu->start_ns;
    int64_t k = since < s->lag_ns
                    ? -1
                    : tick_at(since - s->lag_ns, gpu->error.phase_ns, s->period_ns);

    *ret_k = k;
    *ret_ns =
        gpu->start_ns + gpu->error.phase_ns + (uint64_t)(k < 0 ? 0 : k) * s->period_ns;
    return k >= 0;
}

static uint32_t as_read(const struct plant_gpu *gpu, double w, int64_t k, unsigned which)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;

    w = w * gpu->error.gain + gpu->error.offset_w;
    if (!gpu->ideal && s->noise_w > 0) {
        struct rng g = rng_for(gpu, (uint64_t)k * 4 + which);
        double noise = which ? s->noise_w / 3 : s->noise_w;
        w += noise * rng_normal(&g);
    }
    return mw_of_w(w);
}

static uint32_t instant_mw(const struct plant_gpu *gpu)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;
    uint64_t at_ns;
    int64_t k;

    if (!shown(gpu, &k, &at_ns))
        return as_read(gpu, gpu->board.idle_w, k, 0);
    double w = s->log_tau_s > 0 ? log_w(gpu, at_ns, s->log_tau_s)
                                : mean_w(gpu, at_ns, s->window_ns);
    return as_read(gpu, w, k, 0);
}

static uint32_t average_mw(const struct plant_gpu *gpu)
{
    uint64_t at_ns;
    int64_t k;

    if (!shown(gpu, &k, &at_ns))
        return as_read(gpu, gpu->board.idle_w, k, 1);
    return as_read(gpu, mean_w(gpu, at_ns, gpu->board.sensor.average_ns), k, 1);
}

uint32_t plant_gpu_read_power_mw(struct plant_gpu *gpu)
{
    return gpu->board.sensor.plain == PLANT_PLAIN_AVERAGE ? average_mw(gpu)
                                                          : instant_mw(gpu);
}

/* ---- the counter ---- */

/* Sum of the means of windows from + 1 to `to`. */
static double seen_means(const struct plant_gpu *gpu, int64_t from, int64_t to)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;
    uint64_t zero = gpu->start_ns + gpu->error.phase_ns;
    int64_t n = to - from, take_n = n > SEEN_EXACT ? SEEN_SAMPLED : n;
    double sum = 0;

    for (int64_t i = 1; i <= take_n; i++) {
        int64_t k = from + (int64_t)((double)i * (double)n / (double)take_n);
        sum += mean_w(gpu, zero + (uint64_t)k * s->period_ns, s->window_ns);
    }
    return take_n > 0 ? sum * (double)n / (double)take_n : 0;
}

void gpu_see_until(struct plant_gpu *gpu, uint64_t at_ns)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;

    if (s->counter != PLANT_COUNTER_SENSED)
        return;
    int64_t k = tick_at(at_ns - gpu->start_ns, gpu->error.phase_ns, s->period_ns);
    if (k <= gpu->seen_k)
        return;
    gpu->seen_j += seen_means(gpu, gpu->seen_k, k) * s_of_ns(s->period_ns);
    gpu->seen_k = k;
}

/* Energy integrated by the counter's last update, without the gain error. */
double gpu_counted_j(struct plant_gpu *gpu, uint64_t at_ns)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;

    if (s->counter == PLANT_COUNTER_NONE)
        return 0;
    int64_t k =
        tick_at(at_ns - gpu->start_ns, gpu->error.counter_phase_ns, s->counter_period_ns);
    if (k < 0)
        return 0;
    uint64_t at =
        gpu->start_ns + gpu->error.counter_phase_ns + (uint64_t)k * s->counter_period_ns;
    if (s->counter == PLANT_COUNTER_TRUE)
        return plant_gpu_energy_at_j(gpu, at);
    gpu_see_until(gpu, at);
    return gpu->seen_j;
}

static uint64_t counter_mj(struct plant_gpu *gpu)
{
    double j = gpu_counted_j(gpu, gpu->now_ns) - gpu->base_j;
    uint32_t step = gpu->board.sensor.counter_step_mj;

    if (j <= 0 || step == 0)
        return 0;
    return (uint64_t)(j * gpu->error.gain * 1e3 / step) * step;
}

uint64_t plant_gpu_read_energy_mj(struct plant_gpu *gpu)
{
    return gpu->counter_stuck ? gpu->stuck_mj : counter_mj(gpu);
}

/* ---- clock, utilisation, all readings ---- */

static uint32_t clock_mhz(const struct plant_gpu *gpu)
{
    const struct plant_board *b = &gpu->board;
    double mhz = b->sm_min_mhz;

    /* For calibrated boards, a clock that fits the power, as on a V100: the model's x is
     * not a clock.
     */
    if (gpu->load.activity == PLANT_RUN && !b->calibrated)
        mhz = b->sm_max_mhz * gpu->x;
    else if (gpu->load.activity == PLANT_RUN)
        mhz = b->sm_max_mhz * pow(gpu->share, 1 / CLOCK_POWER);
    else if (gpu->load.activity == PLANT_HOLD)
        mhz = b->sm_max_mhz * 0.9;
    if (gpu->lock_max_mhz)
        mhz = fmin(fmax(mhz, gpu->lock_min_mhz), gpu->lock_max_mhz);
    mhz = fmin(fmax(mhz, b->sm_min_mhz), b->sm_max_mhz);
    uint32_t steps = (uint32_t)((mhz - b->sm_min_mhz) / b->sm_step_mhz + 0.5);
    return b->sm_min_mhz + steps * b->sm_step_mhz;
}

/* Share of a step in which only the kernel that waits for other boards runs. */
static double spins(const struct plant_gpu *gpu)
{
    double step_s = gpu_last(gpu)->wave.step_s;
    return gpu->trait.spin > 0 ? fmax(0, step_s - gpu->own_step_s) / step_s : 0;
}

static void utilisation(const struct plant_gpu *gpu, struct plant_reading *ret)
{
    const struct plant_load *l = &gpu->load;

    if (l->activity != PLANT_RUN)
        return;
    double busy = (gpu->own_step_s - l->gap_s) / gpu_last(gpu)->wave.step_s;
    double memory = busy * 0.8 * l->tm_s / (l->tm_s + l->tc_s / gpu->x);
    ret->util_gpu = (uint32_t)(100 * (busy + spins(gpu)) + 0.5);
    ret->util_mem = (uint32_t)(100 * memory + 0.5);
}

static uint64_t capped_ns(const struct plant_gpu *gpu)
{
    return gpu->capped_ns + (gpu->bound ? gpu->now_ns - gpu_last(gpu)->start_ns : 0);
}

void plant_gpu_read(struct plant_gpu *gpu, struct plant_reading *ret)
{
    const struct plant_sensor_spec *s = &gpu->board.sensor;

    gpu_catch_up(gpu);
    *ret = (struct plant_reading){0};
    ret->instant_mw = s->has_instant ? instant_mw(gpu) : 0;
    ret->average_mw = s->has_average ? average_mw(gpu) : 0;
    if (s->plain == PLANT_PLAIN_AVERAGE)
        ret->power_mw = s->has_average ? ret->average_mw : average_mw(gpu);
    else
        ret->power_mw = s->has_instant ? ret->instant_mw : instant_mw(gpu);
    ret->energy_mj = plant_gpu_read_energy_mj(gpu);
    ret->temp_c = (int32_t)lround(plant_gpu_temp_c(gpu));
    ret->sm_mhz = clock_mhz(gpu);
    ret->mem_mhz = gpu->board.mem_mhz;
    utilisation(gpu, ret);
    if (gpu->load.activity == PLANT_IDLE)
        ret->reasons |= PLANT_REASON_IDLE;
    if (gpu->bound)
        ret->reasons |= PLANT_REASON_POWER_CAP;
    ret->capped_ns = capped_ns(gpu);
}

void plant_gpu_stick_counter(struct plant_gpu *gpu, bool stuck)
{
    if (stuck && !gpu->counter_stuck)
        gpu->stuck_mj = counter_mj(gpu);
    gpu->counter_stuck = stuck;
}

const struct plant_sensor_error *plant_gpu_sensor_error(const struct plant_gpu *gpu)
{
    return &gpu->error;
}
