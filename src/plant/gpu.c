#include "plant/gpu.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"
#include "plant/state.h"

/* Times after the request, from a V100's response to one 80 W step each way. */
enum {
    DOWN_HALF_MS = 25,
    DOWN_UNDER_MS = 48,
    DOWN_RETURN_MS = 80,
    DOWN_SETTLED_MS = 110,
    UP_FIRST_MS = 110,
    UP_SECOND_MS = 280,
    UP_SETTLED_MS = 340,
    ONSET_MS = 30,  /* length of a burst */
    REPAY_MS = 200, /* time in which it is compensated */
};
#define UNDERSHOOT 0.93
#define BURST 1.43      /* of the cap, from a B300 under a 500 ms square wave */
#define HEAT_STEP_C 2.0 /* power follows the temperature in steps of this size */
#define CLOCK_POWER 3.5 /* exponent of dynamic power over a V100's clock */

struct segment *gpu_last(const struct plant_gpu *gpu)
{
    return (struct segment *)&gpu->ring[(gpu->first + gpu->n - 1) % SEGMENTS];
}

/* ---- power and speed under the load ---- */

static double full_w(const struct plant_gpu *gpu)
{
    const struct plant_load *l = &gpu->load;
    return gpu->trait.power * (l->work->ps_w + l->work->d_w * l->d_scale);
}

/* Share of dynamic power that the clock lock allows. */
static double lock_share(const struct plant_gpu *gpu)
{
    if (gpu->lock_max_mhz == 0 || gpu->lock_max_mhz >= gpu->board.sm_max_mhz)
        return 1;
    const struct plant_workload *w = gpu->load.work;
    double x = (double)gpu->lock_max_mhz / gpu->board.sm_max_mhz;
    return gpu->board.calibrated ? pow(x, CLOCK_POWER) : plant_share(w, x);
}

/* Sets clock, power and step time at limit_w, with leak_w on top. */
static void settle(struct plant_gpu *gpu, double limit_w, double leak_w)
{
    const struct plant_load *l = &gpu->load;
    const struct plant_workload *w = l->work;
    double ps_w = gpu->trait.power * w->ps_w;
    double d = gpu->trait.power * w->d_w * l->d_scale;
    double locked = lock_share(gpu);
    double allowed = (w->eta * limit_w - leak_w - ps_w) / d;

    gpu->bound = allowed < locked;
    gpu->x = plant_share_clock(w, gpu->board.xmin, lesser(allowed, locked));
    gpu->share = plant_share(w, gpu->x);
    gpu->active_w = ps_w + d * gpu->share + leak_w;
    gpu->own_step_s =
        l->gap_s + (l->tc_s / gpu->x + l->tm_s) * gpu->wander * gpu->trait.work;
}

/* Compute with a burst at its start that is compensated within it. */
static void add_compute(const struct plant_gpu *gpu, struct wave *wave, double s,
                        double leak_w)
{
    bool bursts = gpu->bound && !gpu->coarse && gpu->n_stages == 0 &&
                  gpu->load.gap_s > 1e-3 && lock_share(gpu) >= 1;
    double high = bursts ? lesser(BURST * gpu->cap_mw * 1e-3, full_w(gpu) + leak_w) : 0;

    if (high > gpu->active_w) {
        double burst = lesser(ONSET_MS * 1e-3, 0.12 * s);
        double repay = lesser(REPAY_MS * 1e-3, s - burst);
        wave_add(wave, burst, high);
        wave_add(wave, repay, gpu->active_w - (high - gpu->active_w) * burst / repay);
        s = greater(0, s - (burst + repay));
    }
    wave_add(wave, s, gpu->active_w);
}

/* Power while waiting for other boards; the cap holds then as well. */
static double waiting_w(const struct plant_gpu *gpu, double leak_w)
{
    const struct plant_workload *w = gpu->load.work;
    double spins = gpu->trait.power * (w->ps_w + gpu->trait.spin * w->d_w) + leak_w;

    return gpu->trait.spin > 0 ? lesser(spins, gpu->active_w) : w->gap_w + leak_w;
}

/* The step at the pace of the job, of a board that is settled with this leakage. */
static void shape_wave(const struct plant_gpu *gpu, double leak_w, struct wave *ret)
{
    const struct plant_load *l = &gpu->load;

    ret->n = 0;
    ret->step_s = ret->step_j = 0;
    if (l->activity != PLANT_RUN) {
        wave_add(ret, 1, gpu->active_w);
        return;
    }
    if (l->gap_s > 0)
        wave_add(ret, l->gap_s, l->work->gap_w + leak_w);
    add_compute(gpu, ret, gpu->own_step_s - l->gap_s, leak_w);
    if (l->pace_s > 0) /* the slowest board waits for 0 s */
        wave_add(ret, greater(0, l->pace_s - gpu->own_step_s), waiting_w(gpu, leak_w));
}

/* Clock, power and step time under the load and this leakage. */
static void find_speed(struct plant_gpu *gpu, double leak_w)
{
    const struct plant_load *l = &gpu->load;

    if (l->activity == PLANT_RUN) {
        settle(gpu, gpu->limit_w, leak_w);
        return;
    }
    gpu->bound = false;
    gpu->x = gpu->own_step_s = 0;
    gpu->active_w = (l->activity == PLANT_IDLE ? gpu->board.idle_w : l->hold_w) + leak_w;
}

/* ---- segments ---- */

static double static_w(const struct plant_gpu *gpu)
{
    if (gpu->load.activity == PLANT_RUN)
        return gpu->trait.power * gpu->load.work->ps_w;
    return gpu->board.idle_w / 2;
}

/* Leakage relative to the steady temperature of this load and cap (calibrated figures are
 * those of the steady state), and when to update it.
 */
static double leak(struct plant_gpu *gpu, double temp_c, uint64_t *ret_end_ns)
{
    const struct plant_board *b = &gpu->board;
    struct wave nominal;

    *ret_end_ns = UINT64_MAX;
    if (gpu->coarse)
        return 0;
    find_speed(gpu, 0);
    shape_wave(gpu, 0, &nominal);
    double rise = b->resistance_kpw * nominal.step_j / nominal.step_s;
    double target = gpu->ambient_c + rise;
    double ahead = target - temp_c;
    double felt = target;
    if (fabs(ahead) > HEAT_STEP_C) {
        felt = temp_c + copysign(HEAT_STEP_C / 2, ahead);
        double s = b->tau_s * log(fabs(ahead) / (fabs(ahead) - HEAT_STEP_C));
        *ret_end_ns = gpu->now_ns + ns_of_s(fmin(s, 3 * b->tau_s));
    } else if (fabs(ahead) > HEAT_STEP_C / 2) {
        felt = temp_c + ahead / 2;
        *ret_end_ns = gpu->now_ns + ns_of_s(b->tau_s);
    }
    return static_w(gpu) * b->leak_per_k * (felt - (b->ambient_c + rise));
}

/* A place for another segment of the history. */
static struct segment *push(struct plant_gpu *gpu)
{
    if (++gpu->n > SEGMENTS) {
        gpu->n--;
        gpu_see_until(gpu, gpu->ring[(gpu->first + 1) % SEGMENTS].start_ns);
        gpu->first = (gpu->first + 1) % SEGMENTS;
    }
    return gpu_last(gpu);
}

/* The segment that begins at now_ns, where the last one ends; only its wave is missing.
 * A segment of zero length is used again.
 */
static struct segment *next_segment(struct plant_gpu *gpu, double temp_c, bool was_bound)
{
    double start_j = 0;

    if (gpu->n > 0) {
        struct segment *last = gpu_last(gpu);
        if (last->start_ns == gpu->now_ns)
            return last;
        start_j = segment_energy_j(last, gpu->now_ns);
        gpu->steps += last->rate * s_between(last->start_ns, gpu->now_ns);
        gpu->capped_ns += was_bound ? gpu->now_ns - last->start_ns : 0;
    }
    struct segment *next = push(gpu);
    next->start_ns = gpu->now_ns;
    next->start_j = start_j;
    next->start_c = temp_c;
    return next;
}

/* The wave of the segment at now_ns, and the values derived from it. */
static void give_wave(struct plant_gpu *gpu, struct segment *s)
{
    shape_wave(gpu, gpu->leak_w, &s->wave);
    double rate = 1 / s->wave.step_s;

    s->start_pos = gpu->steps - whole_of(gpu->steps);
    s->step_to_j = wave_energy_j(&s->wave, s->start_pos * s->wave.step_s);
    s->rate = gpu->load.activity == PLANT_RUN ? rate : 0;
    s->target_c = gpu->ambient_c + gpu->board.resistance_kpw * s->wave.step_j * rate;
    gpu->stale = false;
}

void gpu_set_speed(struct plant_gpu *gpu)
{
    bool was_bound = gpu->bound;
    double temp_c = plant_gpu_temp_c(gpu);

    gpu->leak_w = leak(gpu, temp_c, &gpu->end_ns);
    (void)next_segment(gpu, temp_c, was_bound);
    find_speed(gpu, gpu->leak_w);
    if (gpu->n_stages > 0 && gpu->stage[0].at_ns < gpu->end_ns)
        gpu->end_ns = gpu->stage[0].at_ns;
    if (gpu->wander_ns < gpu->end_ns)
        gpu->end_ns = gpu->wander_ns;
}

/* Begins a segment at now_ns, with new leakage and end. */
static void renew(struct plant_gpu *gpu)
{
    gpu_set_speed(gpu);
    give_wave(gpu, gpu_last(gpu));
}

/* Called after an external change, which may be one of several. */
static void changed(struct plant_gpu *gpu)
{
    gpu->stale = true;
    if (gpu->job)
        gpu->calls->changed(gpu->job);
}

void gpu_catch_up(const struct plant_gpu *gpu)
{
    if (gpu->job)
        gpu->calls->catch_up(gpu->job);
    else if (gpu->stale)
        renew((struct plant_gpu *)gpu);
}

static void next_wander(struct plant_gpu *gpu)
{
    double keep = gpu->noise_keeps;

    gpu->noise = keep * gpu->noise + sqrt(1 - keep * keep) * rng_normal(&gpu->rng);
    gpu->wander = fmax(0.5, 1 + gpu->noise_sd * gpu->noise);
    gpu->wander_ns += NS_PER_S;
}

void gpu_pass_event(struct plant_gpu *gpu)
{
    while (gpu->n_stages > 0 && gpu->stage[0].at_ns <= gpu->now_ns) {
        gpu->limit_w = gpu->stage[0].limit_w;
        gpu->n_stages--;
        for (unsigned i = 0; i < gpu->n_stages; i++)
            gpu->stage[i] = gpu->stage[i + 1];
    }
    if (gpu->wander_ns <= gpu->now_ns)
        next_wander(gpu);
    gpu->stale = true;
}

void gpu_advance_alone(struct plant_gpu *gpu, uint64_t to_ns)
{
    if (gpu->stale)
        renew(gpu);
    while (gpu->end_ns <= to_ns) {
        gpu->now_ns = gpu->end_ns;
        gpu_pass_event(gpu);
        renew(gpu);
    }
    if (to_ns > gpu->now_ns)
        gpu->now_ns = to_ns;
}

void plant_gpu_advance(struct plant_gpu *gpu, uint64_t to_ns)
{
    if (gpu->job)
        gpu->calls->advance(gpu->job, to_ns);
    else
        gpu_advance_alone(gpu, to_ns);
}

/* ---- life ---- */

static struct plant_trait trait_of(const struct plant_trait *t)
{
    return (struct plant_trait){
        .power = t->power > 0 ? t->power : 1,
        .work = t->work > 0 ? t->work : 1,
        .spin = fmax(0, t->spin),
    };
}

int plant_gpu_new(const struct plant_gpu_opts *opts, struct plant_gpu **ret,
                  uw_error *err)
{
    auto_(plant_gpu_free) struct plant_gpu *gpu = calloc(1, sizeof *gpu);

    if (!gpu)
        return fail(err, -ENOMEM, "no memory for a simulated board");
    gpu->board = *opts->board;
    gpu->seed = opts->seed;
    gpu->start_ns = gpu->now_ns = opts->start_ns;
    gpu->noise_sd = opts->noise_sd;
    gpu->coarse = opts->coarse;
    gpu->ideal = opts->ideal;
    gpu->gain = opts->gain;
    gpu->trait = trait_of(&opts->trait);
    rng_init(&gpu->rng, opts->seed);
    gpu->wander = gpu->fade = 1;
    gpu->wander_ns = opts->noise_sd > 0 ? opts->start_ns : UINT64_MAX;
    gpu->cap_mw = gpu->board.default_mw;
    gpu->limit_w = w_of_mw(gpu->cap_mw);
    gpu->ambient_c = gpu->board.ambient_c;
    gpu_sensor_init(gpu);
    if (gpu->noise_sd > 0)
        next_wander(gpu);
    if (opts->noise_memory_s > 0)
        gpu->noise_keeps = exp(-1 / opts->noise_memory_s);
    renew(gpu);
    *ret = take(gpu);
    return 0;
}

void plant_gpu_free(struct plant_gpu *gpu)
{
    free(gpu);
}

const struct plant_board *plant_gpu_board(const struct plant_gpu *gpu)
{
    return &gpu->board;
}

uint64_t plant_gpu_now_ns(const struct plant_gpu *gpu)
{
    return gpu->now_ns;
}

uint64_t plant_gpu_next_ns(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    return gpu->end_ns;
}

/* ---- caps ---- */

static void add_stage(struct plant_gpu *gpu, unsigned after_ms, double limit_w)
{
    gpu->stage[gpu->n_stages++] =
        (struct stage){gpu->now_ns + after_ms * NS_PER_MS, limit_w};
}

void plant_gpu_set_cap(struct plant_gpu *gpu, uint32_t mw)
{
    double to = w_of_mw(mw), from = gpu->limit_w;

    if (mw == gpu->cap_mw)
        return;
    gpu->cap_mw = mw;
    gpu->n_stages = 0;
    if (gpu->coarse || gpu->load.activity != PLANT_RUN) {
        gpu->limit_w = to;
        changed(gpu);
        return;
    }
    /* only the range of limits that the load can reach counts */
    double full = full_w(gpu) / gpu->load.work->eta;
    from = fmin(from, full);
    if (to >= full && from >= full) {
        gpu->limit_w = to;
    } else if (to < from) {
        add_stage(gpu, DOWN_HALF_MS, (from + to) / 2);
        add_stage(gpu, DOWN_UNDER_MS, UNDERSHOOT * to);
        add_stage(gpu, DOWN_RETURN_MS, (1 + UNDERSHOOT) / 2 * to);
        add_stage(gpu, DOWN_SETTLED_MS, to);
    } else {
        double way = fmin(to, full) - from;
        add_stage(gpu, UP_FIRST_MS, from + 0.5 * way);
        add_stage(gpu, UP_SECOND_MS, from + 0.95 * way);
        add_stage(gpu, UP_SETTLED_MS, to);
    }
    changed(gpu);
}

uint32_t plant_gpu_cap_mw(const struct plant_gpu *gpu)
{
    return gpu->cap_mw;
}

void plant_gpu_lock_clocks(struct plant_gpu *gpu, uint32_t min_mhz, uint32_t max_mhz)
{
    gpu->lock_min_mhz = min_mhz;
    gpu->lock_max_mhz = max_mhz;
    changed(gpu);
}

void plant_gpu_set_ambient(struct plant_gpu *gpu, double ambient_c)
{
    gpu->ambient_c = ambient_c;
    changed(gpu);
}

void plant_gpu_set_trait(struct plant_gpu *gpu, const struct plant_trait *trait)
{
    gpu->trait = trait_of(trait);
    changed(gpu);
}

void plant_gpu_reload(struct plant_gpu *gpu)
{
    plant_gpu_set_cap(gpu, gpu->board.default_mw);
    plant_gpu_lock_clocks(gpu, 0, 0);
    gpu_catch_up(gpu);
    gpu->base_j = gpu_counted_j(gpu, gpu->now_ns);
    gpu->counter_stuck = false;
    gpu->capped_ns = 0;
}

/* ---- loads ---- */

struct plant_load plant_load_train(const struct plant_workload *work)
{
    double n = work->steps;
    return (struct plant_load){.activity = PLANT_RUN,
                               .work = work,
                               .gap_s = work->gap_s / n,
                               .tc_s = work->tc_s / n,
                               .tm_s = work->tm_s / n,
                               .d_scale = 1};
}

/* The controller sees only the average: a load that starts exceeds the cap for a moment,
 * and is then held below it until the average is right.
 */
static void onset(struct plant_gpu *gpu)
{
    double cap = w_of_mw(gpu->cap_mw);
    double full = full_w(gpu) / gpu->load.work->eta;
    double over = fmin(BURST * cap, full) - cap;

    if (gpu->coarse || gpu->n_stages > 0 || over <= 0)
        return;
    gpu->limit_w = cap + over;
    add_stage(gpu, ONSET_MS, cap - over * ONSET_MS / REPAY_MS);
    add_stage(gpu, ONSET_MS + REPAY_MS, cap);
}

void plant_gpu_set_load(struct plant_gpu *gpu, const struct plant_load *load)
{
    bool ran = gpu->load.activity == PLANT_RUN;

    /* close the old load's segment before its steps are reset */
    renew(gpu);
    gpu->load = *load;
    gpu->steps = 0;
    if (load->activity != PLANT_RUN) {
        gpu->n_stages = 0;
        gpu->limit_w = w_of_mw(gpu->cap_mw);
    } else if (!ran) {
        onset(gpu);
    }
    changed(gpu);
}

void plant_gpu_change_load(struct plant_gpu *gpu, const struct plant_load *load)
{
    gpu->load = *load;
    changed(gpu);
}

void gpu_set_pace(struct plant_gpu *gpu, double pace_s)
{
    const struct segment *last = gpu_last(gpu);
    double step_s =
        gpu->stale ? greater(gpu->own_step_s, gpu->load.pace_s) : last->wave.step_s;
    bool other = pace_s > 0 && fabs(step_s - pace_s) > 1e-12 * pace_s;

    if (other)
        gpu->load.pace_s = pace_s;
    if (gpu->stale)
        give_wave(gpu, gpu_last(gpu));
    else if (other)
        give_wave(gpu, next_segment(gpu, plant_gpu_temp_c(gpu), gpu->bound));
}

const struct plant_load *plant_gpu_load(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    return &gpu->load;
}

/* ---- the truth ---- */

double plant_gpu_energy_at_j(const struct plant_gpu *gpu, uint64_t at_ns)
{
    unsigned low = 0, high = gpu->n;

    while (high - low > 1) {
        unsigned mid = (low + high) / 2;
        if (gpu->ring[(gpu->first + mid) % SEGMENTS].start_ns <= at_ns)
            low = mid;
        else
            high = mid;
    }
    const struct segment *s = &gpu->ring[(gpu->first + low) % SEGMENTS];
    if (s->start_ns > at_ns) /* before the oldest segment: extrapolate its first power */
        return s->start_j - s->wave.w[0] * s_between(at_ns, s->start_ns);
    return segment_energy_j(s, at_ns);
}

double plant_gpu_energy_j(const struct plant_gpu *gpu)
{
    return segment_energy_j(gpu_last(gpu), gpu->now_ns);
}

double plant_gpu_power_w(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    return segment_power_w(gpu_last(gpu), gpu->now_ns);
}

double plant_gpu_mean_w(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    const struct wave *w = &gpu_last(gpu)->wave;
    return w->step_j / w->step_s;
}

static double fade(const struct plant_gpu *gpu, double s)
{
    struct plant_gpu *memo = (struct plant_gpu *)gpu;

    if (s != memo->faded_s) {
        memo->fade = exp(-s / gpu->board.tau_s);
        memo->faded_s = s;
    }
    return memo->fade;
}

double plant_gpu_temp_c(const struct plant_gpu *gpu)
{
    if (gpu->n == 0) /* idle since long ago */
        return gpu->board.ambient_c + gpu->board.resistance_kpw * gpu->board.idle_w;
    const struct segment *s = gpu_last(gpu);
    double dt = s_between(s->start_ns, gpu->now_ns);
    return s->target_c + (s->start_c - s->target_c) * fade(gpu, dt);
}

double plant_gpu_clock(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    return gpu->x;
}

double plant_gpu_steps(const struct plant_gpu *gpu)
{
    const struct segment *s = gpu_last(gpu);
    return gpu->steps + s->rate * s_between(s->start_ns, gpu->now_ns);
}

double plant_gpu_rate(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    return gpu_last(gpu)->rate;
}

double plant_gpu_own_step_s(const struct plant_gpu *gpu)
{
    gpu_catch_up(gpu);
    return gpu->own_step_s;
}
