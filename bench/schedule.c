#include "schedule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "plant/plant.h"

#define BEFORE_S 100.0 /* of the plant's clock, before the start of the trace */
#define STEADY_S 3600.0

const char *plot_name(enum plot plot)
{
    static const char *const names[PLOTS] = {
        "job",       "power-5", "power-10", "power-30", "period-5", "period-10",
        "period-30", "steady",  "slow",     "warming",  "constant", "idle"};
    return names[plot];
}

void schedule_trace_free(struct schedule_trace *t)
{
    free(t->items);
    truths_free(&t->truths);
    *t = (struct schedule_trace){0};
}

/* Pattern of a phase: the share `duty` of each period at high, the rest at low. */
struct pattern {
    double period_s, duty, high_w, low_w;
    double high_sm, low_sm, mem;
};

struct stage {
    const struct schedule *s;
    struct plant_gpu *gpu;
    struct rng work, reader;
    double now_s, next_read_s, sm, mem;
    double sm_seen; /* the driver's utilisation: a mean over a quarter of a second */
    struct schedule_trace *out;
};

static int read_board(struct stage *p)
{
    const struct schedule *s = p->s;
    struct plant_reading r;
    double t = p->next_read_s, gap = 1 / s->rate_hz;

    plant_gpu_read(p->gpu, &r);
    double w =
        (strcmp(s->generation, "hopper-instant") == 0 ? r.instant_mw : r.power_mw) * 1e-3;
    if (s->plot == PLOT_WARMING)
        w *= 1 + 0.06 * (1 - exp(-t / 600));
    w = fmax(0, w * (1 + s->noise * rng_normal(&p->reader)));
    p->sm_seen += (p->sm - p->sm_seen) * fmin(1, gap / 0.25);
    int err = array_grow(&p->out->items, &p->out->cap, p->out->n, 4000000);
    if (err < 0)
        return err;
    struct activity a = {ns_of_s(t), w, NAN, NAN, NAN, NAN};
    if (s->has_util) {
        a.sm_util = round(fmin(100, fmax(0, p->sm_seen + rng_normal(&p->reader))));
        a.mem_util = round(fmin(100, fmax(0, p->mem + rng_normal(&p->reader))));
    }
    p->out->items[p->out->n++] = a;
    p->next_read_s = (round(t / gap) + 1 + 0.3 * (rng_uniform(&p->reader) - 0.5)) * gap;
    return 0;
}

static int hold(struct stage *p, double w, double sm, double mem, double to_s)
{
    struct plant_load load = {.activity = PLANT_HOLD, .hold_w = fmax(10, w)};
    int r = 0;

    plant_gpu_set_load(p->gpu, &load);
    p->sm = sm;
    p->mem = mem;
    while (r == 0 && p->next_read_s < to_s) {
        plant_gpu_advance(p->gpu, ns_of_s(BEFORE_S + p->next_read_s));
        r = read_board(p);
    }
    plant_gpu_advance(p->gpu, ns_of_s(BEFORE_S + to_s));
    p->now_s = to_s;
    return r;
}

/* Plays the pattern for length_s; the last period is cut off. */
static int play_pattern(struct stage *p, enum phase_kind kind, const struct pattern *c,
                        double length_s)
{
    double end = p->now_s + length_s;
    int r =
        array_grow(&p->out->truths.items, &p->out->truths.cap, p->out->truths.n, 100000);

    if (r < 0)
        return r;
    p->out->truths.items[p->out->truths.n++] = (struct truth){p->now_s, kind};
    while (r == 0 && p->now_s < end) {
        double scale = fmax(0.5, 1 + p->s->wander * rng_normal(&p->work));
        double span = c->period_s > 0 ? c->period_s * scale : end - p->now_s;
        double high_end = p->now_s + span * (c->period_s > 0 ? c->duty : 1),
               all = p->now_s + span;
        r = hold(p, c->high_w, c->high_sm, c->mem, fmin(high_end, end));
        if (r == 0 && high_end < end)
            r = hold(p, c->low_w, c->low_sm, c->mem, fmin(all, end));
    }
    return r;
}

static double between(struct stage *p, double low, double high)
{
    return low + (high - low) * rng_uniform(&p->work);
}

static struct pattern flat(double w, double sm, double mem)
{
    return (struct pattern){0, 1, w, w, sm, sm, mem};
}

/* One random pause or validation. */
static int play_pause(struct stage *p, const struct pattern *train)
{
    const struct schedule *s = p->s;
    double mean = train->duty * train->high_w + (1 - train->duty) * train->low_w;

    switch (rng_below(&p->work, 4)) {
    case 0: {
        struct pattern c = flat(s->idle_w + between(p, 0, 0.05) * mean, 1, 6);
        return play_pattern(p, PHASE_CHECKPOINT, &c, between(p, 2, 15));
    }
    case 1: {
        struct pattern c = flat(s->idle_w + between(p, 0.1, 0.22) * mean, 15, 8);
        return play_pattern(p, PHASE_LOAD, &c, between(p, 2, 25));
    }
    case 2: {
        struct pattern c = flat(s->idle_w + 2, 0, 0);
        return play_pattern(p, PHASE_IDLE, &c, between(p, 60, 200));
    }
    default: {
        struct pattern c = *train;
        c.period_s = fmin(train->period_s * between(p, 0.3, 0.6), 20);
        c.high_w = s->idle_w + (train->high_w - s->idle_w) * between(p, 0.55, 0.85);
        c.low_w = fmin(c.low_w, c.high_w);
        c.high_sm = 70;
        return play_pattern(p, PHASE_VALIDATE, &c,
                            fmax(6 * c.period_s, between(p, 10, 90)));
    }
    }
}

static int play_job(struct stage *p, const struct pattern *train)
{
    const struct schedule *s = p->s;
    struct pattern start = flat(s->idle_w + between(p, 5, 20), 2, 2);
    int r = play_pattern(p, PHASE_STARTUP, &start, between(p, 8, 60));

    for (int i = 0; r == 0 && i < 5; i++) {
        r = play_pattern(p, PHASE_TRAIN, train,
                         fmax(8 * train->period_s, between(p, 40, 300)));
        if (r == 0)
            r = play_pause(p, train);
    }
    return r;
}

static int play_change(struct stage *p, const struct pattern *train)
{
    static const double by[PLOTS] = {
        [PLOT_POWER_5] = 0.05,  [PLOT_POWER_10] = 0.10,  [PLOT_POWER_30] = 0.30,
        [PLOT_PERIOD_5] = 0.05, [PLOT_PERIOD_10] = 0.10, [PLOT_PERIOD_30] = 0.30};
    double factor = 1 + by[p->s->plot] * (rng_below(&p->work, 2) ? 1 : -1);
    struct pattern other = *train;
    double length = fmax(12 * train->period_s, between(p, 60, 300));
    int r = play_pattern(p, PHASE_TRAIN, train, length);

    if (p->s->plot >= PLOT_PERIOD_5) {
        other.period_s *= factor;
    } else {
        other.high_w *= factor;
        other.low_w *= factor;
    }
    return r < 0 ? r : play_pattern(p, PHASE_CHANGE, &other, length);
}

static int play_plot(struct stage *p)
{
    const struct schedule *s = p->s;
    struct pattern train = {
        s->period_s, between(p, 0.5, 0.85), s->high_w, s->low_w, 98, 10, 40};
    struct pattern level = flat(s->high_w, 97, 30), idle = flat(s->idle_w, 0, 0);

    switch (s->plot) {
    case PLOT_JOB:
        return play_job(p, &train);
    case PLOT_STEADY:
    case PLOT_SLOW:
    case PLOT_WARMING:
        return play_pattern(p, PHASE_TRAIN, &train, STEADY_S);
    case PLOT_CONSTANT:
        return play_pattern(p, PHASE_TRAIN, &level, STEADY_S);
    case PLOT_IDLE:
        return play_pattern(p, PHASE_IDLE, &idle, STEADY_S);
    default:
        return play_change(p, &train);
    }
}

struct schedule schedule_draw(enum plot plot, const char *generation, uint64_t seed)
{
    static const double rates[] = {1, 2, 5, 10, 10, 10, 20, 50};
    struct rng g;
    rng_init(&g, seed * 104729 + (uint64_t)plot * 613 + 11);
    struct schedule s = {.plot = plot, .generation = generation, .seed = seed};

    s.period_s = 0.3 * pow(plot == PLOT_JOB ? 40 : 200, rng_uniform(&g));
    if (plot == PLOT_SLOW)
        s.period_s = 10 + 50 * rng_uniform(&g);
    s.high_w = 180 + 160 * rng_uniform(&g);
    s.idle_w = 35 + 35 * rng_uniform(&g);
    s.low_w = s.idle_w + 10 + (s.high_w - s.idle_w - 10) * 0.9 * rng_uniform(&g);
    s.noise = 0.01 + 0.02 * rng_uniform(&g);
    s.wander = 0.02 * rng_uniform(&g);
    s.rate_hz = rates[rng_below(&g, n_elements(rates))];
    s.has_util = rng_below(&g, 2);
    return s;
}

int schedule_play(const struct schedule *s, struct schedule_trace *ret, uw_error *err)
{
    const char *generation =
        strcmp(s->generation, "hopper-instant") == 0 ? "hopper" : s->generation;
    const struct plant_sensor_spec *sensor = plant_sensor_generation(generation);
    struct plant_board board = *plant_board_find("a100");
    auto_(plant_gpu_free) struct plant_gpu *gpu = NULL;
    struct stage p = {.s = s, .out = ret};

    *ret = (struct schedule_trace){0};
    if (!sensor)
        return fail(err, -EINVAL, "no sensor generation '%s'", generation);
    board.sensor = *sensor;
    struct plant_gpu_opts opts = {.board = &board,
                                  .seed = s->seed,
                                  .start_ns = ns_of_s(BEFORE_S - 1),
                                  .coarse = true};
    int r = plant_gpu_new(&opts, &gpu, err);
    if (r < 0)
        return r;
    p.gpu = gpu;
    rng_init(&p.work, s->seed * 2 + 1);
    rng_init(&p.reader, s->seed * 2 + 2);
    struct plant_load load = {.activity = PLANT_HOLD, .hold_w = s->idle_w};
    plant_gpu_set_load(gpu, &load);
    plant_gpu_advance(gpu, ns_of_s(BEFORE_S));
    r = play_plot(&p);
    if (r < 0) {
        schedule_trace_free(ret);
        return fail(err, r, "a simulated trace");
    }
    return 0;
}
