/* The meter against the true energy of simulated boards, for every generation of
 * sensors: error, what its 95 % interval holds, and how wide that is.
 *
 *     build/bench/meter [--seeds N] [--only ROW] [--jitter SHARE] [--json FILE|-] [-v]
 *
 * Loads are square waves, N in each band of periods, evenly in the period's logarithm.
 * A sensor that looks part of the time and whose counter is no better has a band more:
 * periods within 2 % of a multiple of the sensor's, of which it may miss the same part
 * for ever.  Each load is measured over windows of four lengths, at random times ("any")
 * and of whole steps of the load ("steps").  "plain" is the difference of the counter
 * itself, on a straight line between its true updates.  Gain and offset of the board's
 * sensor, which nobody can see from within, are taken out.
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

enum { SEEDS_MAX = 4000, LENGTHS = 4, KINDS = 2, BANDS = 5, IN = BANDS, IN_MOST = 25 };

#define MOST_W 330 /* 1.1 times the limit of the simulated board */

static const double lengths_s[LENGTHS] = {0.3, 1, 2, 10};
static const char *const kinds[KINDS] = {"any", "steps"};
static const double band_s[BANDS + 1] = {0.02, 0.05, 0.1, 0.115, 0.15, 5};
static const char *const bands[BANDS + 1] = {"0.02-0.05",  "0.05-0.1", "0.1-0.115",
                                             "0.115-0.15", "0.15-5",   "multiple"};

static FILE *table; /* stdout, or stderr if stdout carries the JSON */

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
    double from_s;  /* the first rise */
    double until_s; /* end of the current level */
    bool high;
};

/* Energy at one end of a window, true and by linear interpolation of the counter. */
struct end {
    double at_s, true_j, plain_j;
    bool passed, known;
};

struct window {
    unsigned length, kind;
    struct end begin, end;
    bool told;
};

struct world {
    struct plant_gpu *gpu;
    struct meter *meter;
    struct plant_board board;
    struct load load;
    struct rng rng;
    uint64_t now_ns;
    struct window window[LENGTHS * KINDS];
};

/* Errors and half widths of the windows of one kind, relative to the truth. */
struct tally {
    double error[SEEDS_MAX], plain[SEEDS_MAX], half[SEEDS_MAX];
    unsigned n, held, alias, open; /* open: neither held nor reported as an alias */
};
typedef struct tally tallies[LENGTHS][KINDS][BANDS + 1];

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

static bool part_time(const struct world *w)
{
    const struct plant_sensor_spec *s = &w->board.sensor;
    return s->counter != PLANT_COUNTER_TRUE && s->log_tau_s <= 0 &&
           s->window_ns < s->period_ns;
}

static unsigned band_of(const struct world *w, unsigned drawn)
{
    double t = s_of_ns(w->board.sensor.period_ns), k = round(w->load.period_s / t);
    bool in = k >= 1 && k < IN_MOST && fabs(w->load.period_s - k * t) <= 0.02 * k * t;

    return part_time(w) && in ? IN : drawn;
}

/* All windows begin after 14 to 20 s: a load must be seen before it is known. */
static void plan(struct world *w)
{
    const struct load *l = &w->load;

    for (unsigned i = 0; i < LENGTHS * KINDS; i++) {
        struct window *v = &w->window[i];
        double begin = 14 + 6 * rng_uniform(&w->rng), length = lengths_s[i / KINDS];

        *v = (struct window){.length = i / KINDS, .kind = i % KINDS};
        if (v->kind == 1) { /* from one rise to another */
            double steps = fmax(round(length / l->period_s), 1);
            begin = l->from_s + ceil((begin - l->from_s) / l->period_s) * l->period_s;
            v->told = steps * l->period_s > 2 * length;
            length = steps * l->period_s;
        }
        v->begin.at_s = begin;
        v->end.at_s = begin + length;
    }
}

static int world_init(struct world *w, const struct row *row, unsigned band,
                      uint64_t seed, const struct options *o)
{
    struct meter_opts opts = {.seed = seed, .most_w = MOST_W};
    struct plant_gpu_opts plant = {.board = &w->board, .seed = seed};
    double from = band_s[band], to = band_s[band + 1];
    uw_error err;

    *w = (struct world){.board = *plant_board_find("v100")};
    rng_init(&w->rng, seed);
    w->board.sensor = *plant_sensor_generation(row->generation);
    w->board.sensor.counter = row->counter;
    if (row->counter != PLANT_COUNTER_NONE && !w->board.sensor.counter_period_ns)
        w->board.sensor.counter_period_ns = 100 * NS_PER_MS;
    nvml_sensors(row->arch, row->board_name, &opts.model);
    double rise = 1 + rng_uniform(&w->rng);
    w->load = (struct load){
        .period_s = from * pow(to / from, rng_uniform(&w->rng)),
        .duty = 0.25 + 0.5 * rng_uniform(&w->rng),
        .low_w = 60 + 60 * rng_uniform(&w->rng),
        .high_w = 200 + (MOST_W - 200) * rng_uniform(&w->rng),
        .from_s = rise,
        .until_s = rise,
        .jitter = o->jitter,
    };
    plan(w);
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

/* The energy that the board's sensor would show for e joules in this time. */
static double apparent(const struct world *w, double e, double seconds,
                       enum meter_method method)
{
    const struct plant_sensor_error *s = plant_gpu_sensor_error(w->gpu);
    return e * s->gain + (method == METER_COUNTER ? 0 : s->offset_w * seconds);
}

static void count(struct tally *t, double error, double plain, double half, uint32_t why)
{
    bool held = fabs(error) <= half, alias = why & METER_WHY_ALIAS;

    if (t->n == SEEDS_MAX)
        return;
    t->error[t->n] = fabs(error);
    t->plain[t->n] = fabs(plain);
    t->half[t->n++] = half;
    t->held += held;
    t->alias += alias;
    t->open += !held && !alias;
}

static int ask(struct world *w, struct window *v, struct tally *t,
               const struct options *o, unsigned seed)
{
    struct meter_result r;
    char text[128];
    double length = v->end.at_s - v->begin.at_s, true_j = v->end.true_j - v->begin.true_j;
    int rc =
        meter_window(w->meter, ns_of_s(v->begin.at_s), ns_of_s(v->end.at_s), &r, NULL);

    v->told = true;
    if (rc < 0)
        return rc;
    double want = apparent(w, true_j, length, r.method);
    double error = r.energy_j / want - 1, half = r.half_j / want;
    count(t, error, (v->end.plain_j - v->begin.plain_j) / true_j - 1, half, r.why);
    if (o->verbose)
        (void)fprintf(table,
                      "%4u %4.1f s %-5s L=%.4f found %.4f %s error %+.2f%% half %.2f%% "
                      "%s%s\n",
                      seed, length, kinds[v->kind], w->load.period_s, r.period_s,
                      names_word(NAMES_METER_METHOD, r.method), 100 * error, 100 * half,
                      meter_why_text(r.why, text, sizeof text),
                      fabs(error) > half ? " MISSED" : "");
    return 0;
}

/* Records the truth when the end passes, and the line when the counter has moved on. */
static void follow(struct world *w, struct end *e)
{
    uint64_t at = ns_of_s(e->at_s), tick = w->board.sensor.counter_period_ns;
    uint64_t phase = plant_gpu_sensor_error(w->gpu)->counter_phase_ns;

    if (!e->passed && w->now_ns >= at) {
        e->passed = true;
        e->true_j = e->plain_j = plant_gpu_energy_at_j(w->gpu, at);
        meter_mark(w->meter, at);
    }
    tick = tick ? tick : 1;
    uint64_t from = phase + (at - phase) / tick * tick;
    if (e->known || w->now_ns < from + tick)
        return;
    e->known = true;
    if (tick == 1)
        return;
    double a = plant_gpu_energy_at_j(w->gpu, from);
    double b = plant_gpu_energy_at_j(w->gpu, from + tick);
    e->plain_j = a + (b - a) * (double)(at - from) / (double)tick;
}

static int run(const struct row *row, unsigned band, unsigned seed,
               const struct options *o, tallies t)
{
    struct world w;
    unsigned left = 1;
    int r = world_init(&w, row, band, 7919 * (uint64_t)(seed * BANDS + band) + 1, o);

    while (r == 0 && left > 0) {
        uint64_t next = meter_next(w.meter, w.now_ns);
        if (next > w.now_ns)
            advance(&w, next);
        r = sample(&w);
        left = 0;
        for (unsigned i = 0; i < LENGTHS * KINDS && r == 0; i++) {
            struct window *v = &w.window[i];
            if (v->told)
                continue;
            left++;
            follow(&w, &v->begin);
            follow(&w, &v->end);
            if (v->end.known && w.now_ns >= meter_ready(w.meter, ns_of_s(v->end.at_s)))
                r = ask(&w, v, &t[v->length][v->kind][band_of(&w, band)], o, seed);
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
    double mean, rms, p95, max;
};

static struct stats stats_of(double *v, unsigned n)
{
    struct stats s = {0};

    qsort(v, n, sizeof *v, ascending);
    for (unsigned i = 0; i < n; i++) {
        s.mean += v[i] / n;
        s.rms += v[i] * v[i] / n;
    }
    s.rms = sqrt(s.rms);
    if (n) {
        s.p95 = v[(n - 1) * 95 / 100];
        s.max = v[n - 1];
    }
    return s;
}

static void print_tally(FILE *json, const char *row, unsigned length, unsigned kind,
                        unsigned band, struct tally *t, bool *p_first)
{
    struct stats e = stats_of(t->error, t->n), h = stats_of(t->half, t->n);
    struct stats p = stats_of(t->plain, t->n);

    if (t->n == 0)
        return;
    double held = (double)t->held / t->n, open = (double)t->open / t->n;
    (void)fprintf(table,
                  "%-13s %4g s %-5s %-10s %4u %6.1f %5.1f %6.2f %5.2f %6.2f %5.2f %5.2f "
                  "%6.2f %5.2f %4.0f\n",
                  row, lengths_s[length], kinds[kind], bands[band], t->n, 100 * held,
                  100 * open, 100 * h.mean, 100 * h.p95, 100 * e.rms, 100 * e.p95,
                  100 * e.max, 100 * p.rms, 100 * p.p95, 100.0 * t->alias / t->n);
    if (json)
        (void)fprintf(
            json,
            "%s\n{\"sensor\":\"%s\",\"window_s\":%g,\"kind\":\"%s\",\"band\":\"%s\","
            "\"n\":%u,\"coverage\":%.4f,\"open\":%.4f,"
            "\"half\":{\"mean\":%.6f,\"p95\":%.6f,\"max\":%.6f},"
            "\"error\":{\"rms\":%.6f,\"p95\":%.6f,\"max\":%.6f},"
            "\"plain\":{\"rms\":%.6f,\"p95\":%.6f},\"alias\":%.4f}",
            *p_first ? "" : ",", row, lengths_s[length], kinds[kind], bands[band], t->n,
            held, open, h.mean, h.p95, h.max, e.rms, e.p95, e.max, p.rms, p.p95,
            (double)t->alias / t->n);
    *p_first = false;
}

static int run_row(const struct row *row, const struct options *o, FILE *json,
                   bool *p_first)
{
    static tallies t;

    memset(t, 0, sizeof t);
    for (unsigned band = 0; band < BANDS; band++)
        for (unsigned seed = 0; seed < o->seeds; seed++) {
            int r = run(row, band, seed, o, t);
            if (r != 0) {
                (void)fprintf(stderr, "meter: %s, seed %u: %s\n", row->name, seed,
                              strerror(-r));
                return 1;
            }
        }
    for (unsigned i = 0; i < LENGTHS * KINDS; i++)
        for (unsigned band = 0; band <= BANDS; band++)
            print_tally(json, row->name, i / KINDS, i % KINDS, band,
                        &t[i / KINDS][i % KINDS][band], p_first);
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
        "sensor        window       period s      n held %% open %%  half %%: mean, p95  "
        "error %%: rms, p95, max  plain %%: rms, p95  alias %%\n");
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
