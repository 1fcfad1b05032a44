/* The meter against the true energy of simulated boards, for every generation of
 * sensors: error, what its 95 % interval holds, and how wide that is.
 *
 *     build/bench/meter [--seeds N] [--only ROW] [--jitter SHARE] [--json FILE|-]
 *
 * Loads are square waves with periods of 0.15 to 5 s, evenly in their logarithm.
 * "in band": the period is within 2 % of a multiple of the sensor's, where a sensor
 * that looks part of the time may miss the same part for ever.  Gain and offset of
 * the board's sensor, which nobody can see from within, are taken out.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/meter/meter.h"
#include "gpu/nvml/nvml.h"
#include "plant/plant.h"

enum { SEEDS_MAX = 4000 };

static FILE *table; /* stdout, or stderr where that carries the JSON */

struct row {
    const char *name, *generation, *board_name;
    unsigned arch;
    enum plant_counter counter;
};

static const struct row rows[] = {
    {"kepler", "kepler", "Tesla K40m", 2, PLANT_COUNTER_NONE},
    {"pascal", "pascal", "Tesla P100", 4, PLANT_COUNTER_NONE},
    {"volta", "volta", "Tesla V100", 5, PLANT_COUNTER_TRUE},
    {"volta-sensed", "volta", "Tesla V100", 5, PLANT_COUNTER_SENSED},
    {"turing", "turing", "Quadro RTX 6000", 6, PLANT_COUNTER_TRUE},
    {"turing-none", "turing", "Quadro RTX 6000", 6, PLANT_COUNTER_NONE},
    {"ga100", "ga100", "NVIDIA A100", 7, PLANT_COUNTER_SENSED},
    {"ga100-true", "ga100", "NVIDIA A100", 7, PLANT_COUNTER_TRUE},
    {"ampere", "ampere", "NVIDIA GeForce RTX 3090", 7, PLANT_COUNTER_TRUE},
    {"ampere-none", "ampere", "NVIDIA GeForce RTX 3090", 7, PLANT_COUNTER_NONE},
    {"hopper", "hopper", "NVIDIA H100", 9, PLANT_COUNTER_TRUE},
    {"hopper-sensed", "hopper", "NVIDIA H100", 9, PLANT_COUNTER_SENSED},
    {"blackwell", "blackwell", "NVIDIA B200", 10, PLANT_COUNTER_TRUE},
};

struct options {
    unsigned seeds;
    const char *only, *json;
    double jitter;
    bool verbose;
};

struct load {
    double period_s, duty, low_w, high_w, jitter;
    double until_s; /* of the level now on */
    bool high;
};

struct world {
    struct plant_gpu *gpu;
    struct meter *meter;
    struct plant_board board;
    struct load load;
    struct rng rng;
    uint64_t now_ns;
};

/* Errors and half widths of the windows of one kind, as shares of the truth. */
struct tally {
    double error[SEEDS_MAX], half[SEEDS_MAX];
    unsigned n, held, alias;
};

struct window {
    double begin_s, length_s;
    double from_j, true_j;
    bool begun, ended, told;
};

static void hold(struct world *w, double watts)
{
    struct plant_load load = {.activity = PLANT_HOLD, .hold_w = watts};
    plant_gpu_set_load(w->gpu, &load);
}

static void advance(struct world *w, uint64_t to_ns)
{
    while (ns_of_s(w->load.until_s) <= to_ns) {
        struct load *l = &w->load;
        double share = l->high ? 1 - l->duty : l->duty;
        plant_gpu_advance(w->gpu, ns_of_s(l->until_s));
        l->high = !l->high;
        hold(w, l->high ? l->high_w : l->low_w);
        l->until_s +=
            l->period_s * share * fmax(1 + l->jitter * rng_normal(&w->rng), 0.2);
    }
    plant_gpu_advance(w->gpu, to_ns);
    w->now_ns = to_ns;
}

static int sample(struct world *w)
{
    struct meter_sample s = {.has = METER_HAS_POWER, .power_began_ns = w->now_ns};
    struct plant_reading r;

    advance(w, w->now_ns + 200 * NS_PER_US);
    plant_gpu_read(w->gpu, &r);
    advance(w, w->now_ns + 160 * NS_PER_US);
    s.power_at_ns = s.counter_at_ns = w->now_ns;
    s.counter_began_ns = s.power_began_ns;
    s.power_w = w_of_mw(r.power_mw);
    s.instant_w = w_of_mw(r.instant_mw);
    s.average_w = w_of_mw(r.average_mw);
    s.counter = r.energy_mj;
    if (w->board.sensor.has_instant)
        s.has |= METER_HAS_INSTANT;
    if (w->board.sensor.has_average)
        s.has |= METER_HAS_AVERAGE;
    if (w->board.sensor.counter != PLANT_COUNTER_NONE)
        s.has |= METER_HAS_COUNTER;
    return meter_feed(w->meter, &s, NULL);
}

static int world_init(struct world *w, const struct row *row, uint64_t seed,
                      const struct options *o)
{
    struct meter_opts opts = {.seed = seed};
    struct plant_gpu_opts plant = {.board = &w->board, .seed = seed};
    uw_error err;

    *w = (struct world){.board = *plant_board_find("v100")};
    rng_init(&w->rng, seed);
    w->board.sensor = *plant_sensor_generation(row->generation);
    w->board.sensor.counter = row->counter;
    if (row->counter != PLANT_COUNTER_NONE && !w->board.sensor.counter_period_ns)
        w->board.sensor.counter_period_ns = 100 * NS_PER_MS;
    nvml_sensors(row->arch, row->board_name, &opts.model);
    w->load = (struct load){
        .period_s = 0.15 * pow(5 / 0.15, rng_uniform(&w->rng)),
        .duty = 0.25 + 0.5 * rng_uniform(&w->rng),
        .low_w = 60 + 60 * rng_uniform(&w->rng),
        .high_w = 200 + 150 * rng_uniform(&w->rng),
        .until_s = 1 + rng_uniform(&w->rng),
        .jitter = o->jitter,
    };
    int r = plant_gpu_new(&plant, &w->gpu, &err);
    if (r == 0)
        r = meter_new(&opts, &w->meter, &err);
    return r;
}

static void world_fini(struct world *w)
{
    plant_gpu_free(w->gpu);
    meter_free(w->meter);
}

static bool in_band(const struct world *w)
{
    double t = s_of_ns(w->board.sensor.period_ns), k = round(w->load.period_s / t);
    return fabs(w->load.period_s - k * t) <= 0.02 * k * t;
}

/* What the board's sensor would show of e joules in so many seconds. */
static double apparent(const struct world *w, double e, double seconds,
                       enum meter_method method)
{
    const struct plant_sensor_error *s = plant_gpu_sensor_error(w->gpu);
    return e * s->gain + (method == METER_COUNTER ? 0 : s->offset_w * seconds);
}

static void count(struct tally *t, double error, double half, uint32_t why)
{
    if (t->n == SEEDS_MAX)
        return;
    t->error[t->n] = fabs(error);
    t->half[t->n] = half;
    t->n++;
    t->held += fabs(error) <= half;
    t->alias += (why & METER_WHY_ALIAS) != 0;
}

static int ask(struct world *w, struct window *v, struct tally *t,
               const struct options *o, unsigned seed)
{
    struct meter_result r;
    char text[128];
    uint64_t a = ns_of_s(v->begin_s), b = ns_of_s(v->begin_s + v->length_s);

    if (w->now_ns < meter_ready(w->meter, b))
        return 0;
    v->told = true;
    int rc = meter_window(w->meter, a, b, &r, NULL);
    if (rc < 0)
        return rc;
    double want = apparent(w, v->true_j, v->length_s, r.method);
    double error = r.energy_j / want - 1, half = r.half_j / want;
    count(&t[in_band(w)], error, half, r.why);
    if (o->verbose)
        (void)fprintf(
            table, "%4u %4.0f s L=%.4f found %.4f %s error %+.2f%% half %.2f%% %s%s%s\n",
            seed, v->length_s, w->load.period_s, r.period_s,
            names_word(NAMES_METER_METHOD, r.method), 100 * error, 100 * half,
            meter_why_text(r.why, text, sizeof text), in_band(w) ? " (in band)" : "",
            fabs(error) > half ? " MISSED" : "");
    return 0;
}

/* The truth at the window's ends as they go by. */
static void follow(struct world *w, struct window *v)
{
    uint64_t a = ns_of_s(v->begin_s), b = ns_of_s(v->begin_s + v->length_s);

    if (!v->begun && w->now_ns >= a) {
        v->begun = true;
        v->from_j = plant_gpu_energy_at_j(w->gpu, a);
        meter_mark(w->meter, a);
    }
    if (!v->ended && w->now_ns >= b) {
        v->ended = true;
        v->true_j = plant_gpu_energy_at_j(w->gpu, b) - v->from_j;
        meter_mark(w->meter, b);
    }
}

/* tallies: [2 s, 10 s] x [out of band, in band] */
static int run(const struct row *row, unsigned seed, const struct options *o,
               struct tally tallies[2][2])
{
    struct world w;
    int r = world_init(&w, row, 7919 * (uint64_t)seed + 1, o);
    struct window v[2] = {{.length_s = 2}, {.length_s = 10}};

    v[0].begin_s = 16 + 10 * rng_uniform(&w.rng);
    v[1].begin_s = 14 + 4 * rng_uniform(&w.rng);
    while (r == 0 && !(v[0].told && v[1].told)) {
        uint64_t next = meter_next(w.meter, w.now_ns);
        if (next > w.now_ns)
            advance(&w, next);
        r = sample(&w);
        for (int i = 0; i < 2 && r == 0; i++) {
            follow(&w, &v[i]);
            if (v[i].ended && !v[i].told)
                r = ask(&w, &v[i], tallies[i], o, seed);
        }
    }
    world_fini(&w);
    return r;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct stats {
    double mean, p95, max;
};

static struct stats stats_of(double *v, unsigned n)
{
    struct stats s = {0};

    qsort(v, n, sizeof *v, ascending);
    for (unsigned i = 0; i < n; i++)
        s.mean += v[i] / n;
    if (n) {
        s.p95 = v[(n - 1) * 95 / 100];
        s.max = v[n - 1];
    }
    return s;
}

static void print_tally(FILE *json, const char *row, double length_s, bool band,
                        struct tally *t, bool first)
{
    struct stats e = stats_of(t->error, t->n), h = stats_of(t->half, t->n);
    double held = t->n ? (double)t->held / t->n : 0;

    if (t->n == 0)
        return;
    (void)fprintf(
        table, "%-14s %3.0f s %-4s %5u %7.2f %6.2f %6.2f %9.1f %7.2f %6.2f %6.2f %7.0f\n",
        row, length_s, band ? "in" : "out", t->n, 100 * e.mean, 100 * e.p95, 100 * e.max,
        100 * held, 100 * h.mean, 100 * h.p95, 100 * h.max, 100.0 * t->alias / t->n);
    if (json)
        (void)fprintf(
            json,
            "%s\n{\"sensor\":\"%s\",\"window_s\":%g,\"in_band\":%s,\"n\":%u,"
            "\"error\":{\"mean\":%.6f,\"p95\":%.6f,\"max\":%.6f},"
            "\"coverage\":%.4f,\"half\":{\"mean\":%.6f,\"p95\":%.6f,\"max\":%.6f},"
            "\"alias\":%.4f}",
            first ? "" : ",", row, length_s, band ? "true" : "false", t->n, e.mean, e.p95,
            e.max, held, h.mean, h.p95, h.max, (double)t->alias / t->n);
}

static int run_row(const struct row *row, const struct options *o, FILE *json,
                   bool *p_first)
{
    static struct tally tallies[2][2];

    memset(tallies, 0, sizeof tallies);
    for (unsigned seed = 0; seed < o->seeds; seed++) {
        int r = run(row, seed, o, tallies);
        if (r != 0) {
            (void)fprintf(stderr, "meter: %s, seed %u: %s\n", row->name, seed,
                          strerror(-r));
            return 1;
        }
    }
    for (int i = 0; i < 2; i++)
        for (int band = 0; band < 2; band++) {
            print_tally(json, row->name, i ? 10 : 2, band, &tallies[i][band], *p_first);
            *p_first = *p_first && tallies[i][band].n == 0;
        }
    (void)fflush(table);
    return 0;
}

static int parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        uint64_t n;
        if (strcmp(argv[i], "-v") == 0) {
            o->verbose = true;
        } else if (i + 1 == argc) {
            return -EINVAL;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            if (parse_u64(argv[++i], &n, NULL) < 0 || n < 1 || n > SEEDS_MAX)
                return -EINVAL;
            o->seeds = (unsigned)n;
        } else if (strcmp(argv[i], "--only") == 0) {
            o->only = argv[++i];
        } else if (strcmp(argv[i], "--json") == 0) {
            o->json = argv[++i];
        } else if (strcmp(argv[i], "--jitter") == 0) {
            if (parse_double(argv[++i], &o->jitter, NULL) < 0)
                return -EINVAL;
        } else {
            return -EINVAL;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.seeds = 100};
    FILE *json = NULL;
    bool first = true;
    int r = 0;

    table = stdout;
    if (parse(argc, argv, &o) < 0) {
        (void)fprintf(stderr, "usage: meter [--seeds N] [--only ROW] [--jitter SHARE] "
                              "[--json FILE|-] [-v]\n");
        return 2;
    }
    if (o.json) {
        json = strcmp(o.json, "-") == 0 ? stdout : fopen(o.json, "we");
        if (!json) {
            (void)fprintf(stderr, "meter: %s: %s\n", o.json, strerror(errno));
            return 1;
        }
        (void)fprintf(json, "[");
    }
    if (json == stdout)
        table = stderr;
    (void)fprintf(
        table,
        "sensor         window band     n   error %%: mean, p95, max  held %%  half "
        "%%: mean, p95, max alias %%\n");
    for (size_t i = 0; i < n_elements(rows) && r == 0; i++) {
        if (o.only && strcmp(o.only, rows[i].name) != 0)
            continue;
        r = run_row(&rows[i], &o, json, &first);
    }
    if (json) {
        (void)fprintf(json, "\n]\n");
        if (json != stdout && fclose(json) != 0)
            r = 1;
    }
    return r;
}
