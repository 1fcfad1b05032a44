#include "scenes.h"

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

#define HIGH_W 300.0

const char *shape_name(enum shape shape)
{
    static const char *const names[SHAPES] = {
        "step",   "three", "accum-4", "accum-8", "pair",     "hiccup",
        "stalls", "drift", "pauses",  "start",   "sine",     "constant",
        "white",  "walk",  "red",     "bursts",  "two-jobs", "fast"};
    return names[shape];
}

void scene_trace_free(struct scene_trace *t)
{
    free(t->items);
    *t = (struct scene_trace){0};
}

enum { PIECES = 64 };
/* One cycle: shares of the period and levels (0 low, 1 high). */
struct cycle {
    unsigned n;
    double share[PIECES], level[PIECES];
};

static void piece(struct cycle *c, double share, double level)
{
    c->share[c->n] = share;
    c->level[c->n++] = level;
}

static void accumulate(struct cycle *c, unsigned micro)
{
    double each = 0.88 / micro;

    for (unsigned i = 0; i < micro; i++) {
        piece(c, each * 0.4, 0.85);
        piece(c, each * 0.45, 1);
        piece(c, each * 0.15, 0.35);
    }
    piece(c, 0.12, 0.1);
}

/* The k-th cycle of a job. */
static void cycle_of(const struct scene *s, unsigned k, struct rng *g, struct cycle *c)
{
    c->n = 0;
    switch (s->shape) {
    case SHAPE_THREE:
        piece(c, 0.3, 0.7);
        piece(c, 0.55, 1);
        piece(c, 0.15, 0);
        break;
    case SHAPE_ACCUM4:
        accumulate(c, 4);
        break;
    case SHAPE_ACCUM8:
        accumulate(c, 8);
        break;
    case SHAPE_PAIR:
        piece(c, 0.45, 1);
        piece(c, 0.12, 0);
        piece(c, 0.31, 1);
        piece(c, 0.12, 0);
        break;
    case SHAPE_SINE:
        for (int i = 0; i < 24; i++)
            piece(c, 1 / 24.0, 0.5 + 0.5 * sin(2 * M_PI * i / 24));
        break;
    case SHAPE_HICCUP:
    case SHAPE_STALLS:
    case SHAPE_PAUSES:
    default:
        piece(c, 0.72, 1);
        piece(c, 0.28, 0);
        break;
    }
    if (s->shape == SHAPE_HICCUP && k % 12 == 11)
        piece(c, 0.4, 0);
    if (s->shape == SHAPE_STALLS && rng_uniform(g) < 0.06)
        piece(c, rng_uniform(g), 0);
    if (s->shape == SHAPE_PAUSES && k % 25 == 24)
        piece(c, 4, -0.5);
}

struct player {
    const struct scene *s;
    struct plant_gpu *gpu;
    struct rng work, reader;
    double next_read_s, mean_w;
    double walk, red;
    bool counts;       /* a counter of true power */
    uint32_t shown_mw; /* last reading, and its noise */
    double deviate;
    struct scene_trace *out;
    size_t cap;
};

static int read_board(struct player *p)
{
    const struct scene *s = p->s;
    struct plant_reading r;
    double t = p->next_read_s;

    plant_gpu_read(p->gpu, &r);
    double w = r.power_mw * 1e-3;
    if (strcmp(s->generation, "hopper-instant") == 0)
        w = r.instant_mw * 1e-3;
    double n = s->noise * HIGH_W * 0.8;
    double fade = exp(-1 / s->rate_hz / 2);
    p->walk += rng_normal(&p->reader) * HIGH_W * 0.05 / sqrt(s->rate_hz);
    p->red = p->red * fade + sqrt(1 - fade * fade) * rng_normal(&p->reader);
    if (s->shape == SHAPE_WALK)
        w += p->walk;
    if (s->shape == SHAPE_RED)
        w += p->red * HIGH_W * 0.1;
    if (s->shape == SHAPE_WHITE)
        n = HIGH_W * fmax(0.02, s->noise * 3);
    if (s->shape == SHAPE_DRIFT)
        w *= 1 + 0.1 * t / s->length_s;
    if (!s->held || r.power_mw != p->shown_mw)
        p->deviate = rng_normal(&p->reader);
    p->shown_mw = r.power_mw;
    w = fmax(0, w + n * p->deviate);
    if (s->whole_watts)
        w = round(w);
    int err = array_grow(&p->out->items, &p->cap, p->out->n, 1000000);
    if (err < 0)
        return err;
    p->out->items[p->out->n++] = (struct activity){
        ns_of_s(t), w, NAN, NAN, NAN, p->counts ? (double)r.energy_mj * 1e-3 : NAN};
    double gap = 1 / s->rate_hz;
    double base = round(t / gap) * gap;
    p->next_read_s = base + gap * (1 + s->jitter * (rng_uniform(&p->reader) - 0.5));
    if (p->next_read_s <= t)
        p->next_read_s = t + 0.1 * gap;
    return 0;
}

/* Holds power at w from now to to_s. */
static int hold(struct player *p, double w, double to_s)
{
    struct plant_load load = {.activity = PLANT_HOLD, .hold_w = fmax(10, w)};
    int r = 0;

    plant_gpu_set_load(p->gpu, &load);
    while (r == 0 && p->next_read_s < to_s) {
        plant_gpu_advance(p->gpu, NS_PER_S * 100 + ns_of_s(p->next_read_s));
        r = read_board(p);
    }
    plant_gpu_advance(p->gpu, NS_PER_S * 100 + ns_of_s(to_s));
    return r;
}

static double level_w(const struct scene *s, double level)
{
    return HIGH_W * (1 - s->depth * (1 - level));
}

/* The cycles of one job until the end; returns the mean time of a cycle. */
static int play_cycles(struct player *p, double from_s, double *ret_mean_s)
{
    const struct scene *s = p->s;
    double t = from_s, plain_s = 0;
    unsigned k = 0;
    int r = 0;

    for (; r == 0 && t < s->length_s; k++) {
        struct cycle c;
        double scale = s->period_s * fmax(0.5, 1 + s->wander * rng_normal(&p->work));
        bool slow = s->slower_at_s > 0 && t >= s->slower_at_s;
        scale *= slow ? 1 + s->slower : 1;
        cycle_of(s, k, &p->work, &c);
        double began = t;
        for (unsigned i = 0; r == 0 && i < c.n; i++) {
            t += c.share[i] * scale;
            r = hold(p, level_w(s, c.level[i]) * (slow ? 0.9 : 1), t);
        }
        plain_s +=
            s->shape >= SHAPE_HICCUP && s->shape <= SHAPE_PAUSES ? scale : t - began;
    }
    *ret_mean_s = plain_s / k;
    return r;
}

static int play_noise(struct player *p)
{
    const struct scene *s = p->s;
    double t = 0;
    int r = 0;

    if (s->shape != SHAPE_BURSTS)
        return hold(p, HIGH_W * 0.8, s->length_s);
    while (r == 0 && t < s->length_s) {
        double a = -log(1 - rng_uniform(&p->work)) * s->period_s * 0.6;
        r = hold(p, level_w(s, 1), t += 0.1 + a);
        a = -log(1 - rng_uniform(&p->work)) * s->period_s * 0.4;
        if (r == 0)
            r = hold(p, level_w(s, 0), t += 0.05 + a);
    }
    return r;
}

/* Square waves of two jobs on one board. */
static int play_two(struct player *p)
{
    const struct scene *s = p->s;
    double one = s->period_s, two = s->period_s * (0.35 + 0.5 * rng_uniform(&p->work));
    double next1 = one * 0.6, next2 = two * 0.6, t = 0;
    bool on1 = true, on2 = true;
    int r = 0;

    p->out->other_s = two;
    while (r == 0 && t < s->length_s) {
        t = fmin(next1, next2);
        r = hold(p, level_w(s, 0.6 * on1 + 0.4 * on2), t);
        if (next1 <= next2) {
            on1 = !on1;
            next1 += one * (on1 ? 0.6 : 0.4);
        } else {
            on2 = !on2;
            next2 += two * (on2 ? 0.6 : 0.4);
        }
    }
    return r;
}

static int play_shape(struct player *p)
{
    const struct scene *s = p->s;
    double start = 0, mean;
    int r = 0;

    if (s->shape == SHAPE_TWO_JOBS)
        return play_two(p);
    if (s->shape >= SHAPES_KNOWN && s->shape != SHAPE_FAST)
        return play_noise(p);
    if (s->shape == SHAPE_START) {
        start = 2 * s->period_s + 3;
        r = hold(p, HIGH_W * 0.25, start);
    }
    if (r == 0 && s->late_s > 0)
        r = hold(p, HIGH_W * 0.5, start += s->late_s);
    if (r == 0)
        r = play_cycles(p, start, &mean);
    if (r == 0 && (s->shape != SHAPE_FAST || s->period_s > 0.1))
        p->out->truth_s = mean;
    return r;
}

int scene_play(const struct scene *s, struct scene_trace *ret, uw_error *err)
{
    const char *generation =
        strcmp(s->generation, "hopper-instant") == 0 ? "hopper" : s->generation;
    const struct plant_sensor_spec *sensor = plant_sensor_generation(generation);
    struct plant_board board = *plant_board_find("a100");
    auto_(plant_gpu_free) struct plant_gpu *gpu = NULL;
    struct player p = {.s = s, .out = ret};

    *ret = (struct scene_trace){0};
    if (!sensor)
        return fail(err, -EINVAL, "no sensor generation '%s'", generation);
    board.sensor = *sensor;
    p.counts = sensor->counter == PLANT_COUNTER_TRUE;
    bool mean = sensor->plain == PLANT_PLAIN_AVERAGE && generation == s->generation;
    ret->sensor = (struct period_sensor){
        s_of_ns(sensor->period_ns),
        sensor->log_tau_s > 0 ? 0
                              : s_of_ns(mean ? sensor->average_ns : sensor->window_ns),
        w_of_mw(board.max_mw)};
    struct plant_gpu_opts opts = {.board = &board,
                                  .seed = s->seed + 1009ull * s->board,
                                  .start_ns = 99 * NS_PER_S,
                                  .coarse = true};
    int r = plant_gpu_new(&opts, &gpu, err);
    if (r < 0)
        return r;
    p.gpu = gpu;
    rng_init(&p.work, s->seed * 2 + 1);
    rng_init(&p.reader, s->seed * 2 + 2 + 7001ull * s->board);
    plant_gpu_advance(gpu, 100 * NS_PER_S);
    r = play_shape(&p);
    if (r < 0) {
        scene_trace_free(ret);
        return fail(err, r, "a scene of %zu samples", ret->n);
    }
    return 0;
}
