/* The meter where samples come late: a job on a simulated board whose reader pauses,
 * whose driver tells old values for a while, or whose calls take long, at any place of
 * the window and of any length.  The interval may be wide; it has to hold the truth.
 *
 * Usage: test-meter-late [SEEDS [-v]]
 */
#include <stdlib.h>

#include "base/names.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/meter/state.h"
#include "gpu/nvml/nvml.h"
#include "plant/plant.h"
#include "tap.h"

#define SETTLE_S 5.0 /* after the window, until it is asked for at last */

enum { STALLS = 16 };

enum kind { READER, SOURCE, CALL, MIXED, KINDS };
static const char *const kinds[] = {"the reader pauses", "old values are told",
                                    "calls take long", "all of these"};

static const struct sensors {
    const char *generation, *name;
    unsigned arch;
    enum plant_counter counter;
    int seeds; /* folding takes long */
} sensors[] = {
    {"volta", "Tesla V100", 5, PLANT_COUNTER_TRUE, 24},
    {"turing", "Quadro RTX 6000", 6, PLANT_COUNTER_TRUE, 24},
    {"ampere", "NVIDIA GeForce RTX 3090", 7, PLANT_COUNTER_NONE, 16},
    {"pascal", "Tesla P100", 4, PLANT_COUNTER_NONE, 2},
};

struct world {
    struct plant_gpu *gpu;
    struct meter *m;
    struct plant_board board;
    struct rng rng;
    uint64_t now;
    double begin, end; /* of the job */
    double begin_j, end_j;
    double period, duty, low, high;
    double next; /* change of the load */
    bool is_high;
    struct stall {
        double t0, t1;
        enum kind kind;
    } stall[STALLS];
    size_t n;
    struct plant_reading old; /* what was told last */
};

static double between(struct world *w, double lo, double hi)
{
    return lo + (hi - lo) * rng_uniform(&w->rng);
}

static void advance(struct world *w, uint64_t to)
{
    while (ns_of_s(w->next) <= to) {
        bool works = w->next >= w->begin && w->next < w->end;
        struct plant_load l = {.activity = PLANT_IDLE};

        plant_gpu_advance(w->gpu, ns_of_s(w->next));
        if (w->next <= w->begin)
            w->begin_j = plant_gpu_energy_j(w->gpu);
        w->end_j = plant_gpu_energy_j(w->gpu);
        w->is_high = works && !w->is_high;
        if (works)
            l = (struct plant_load){.activity = PLANT_HOLD,
                                    .hold_w = w->is_high ? w->high : w->low};
        plant_gpu_set_load(w->gpu, &l);
        if (works)
            w->next =
                fmin(w->next + w->period * (w->is_high ? w->duty : 1 - w->duty), w->end);
        else
            w->next = w->next < w->begin ? w->begin : 1e6;
    }
    plant_gpu_advance(w->gpu, to);
    w->now = to;
}

static const struct stall *stall_at(const struct world *w)
{
    double t = s_of_ns(w->now);

    for (size_t i = 0; i < w->n; i++)
        if (t >= w->stall[i].t0 && t < w->stall[i].t1)
            return &w->stall[i];
    return NULL;
}

static void poll(struct world *w)
{
    const struct stall *stall = stall_at(w);
    struct meter_sample s = {.has = METER_HAS_POWER};

    if (stall && stall->kind == READER) {
        advance(w, ns_of_s(stall->t1));
        stall = NULL;
    }
    s.power_began_ns = s.counter_began_ns = w->now;
    if (stall && stall->kind == CALL) /* its value is from anywhere within the call */
        advance(w, ns_of_s(between(w, s_of_ns(w->now), stall->t1)));
    if (!stall || stall->kind != SOURCE)
        plant_gpu_read(w->gpu, &w->old);
    if (stall && stall->kind == CALL)
        advance(w, ns_of_s(stall->t1));
    advance(w, w->now + 300 * NS_PER_US);
    s.power_at_ns = s.counter_at_ns = w->now;
    s.power_w = w_of_mw(w->old.power_mw);
    s.instant_w = w_of_mw(w->old.instant_mw);
    s.counter = w->old.energy_mj;
    if (w->board.sensor.has_instant)
        s.has |= METER_HAS_INSTANT;
    if (w->board.sensor.counter != PLANT_COUNTER_NONE)
        s.has |= METER_HAS_COUNTER;
    (void)meter_feed(w->m, &s, NULL);
}

static void run_until(struct world *w, double to_s)
{
    while (w->now < ns_of_s(to_s)) {
        uint64_t next = meter_next(w->m, w->now);
        if (next > w->now)
            advance(w, next);
        poll(w);
    }
}

/* Stalls of any length, one of them at an end of the window where where says so. */
static void stalls(struct world *w, enum kind kind)
{
    double length = w->end - w->begin, longest = fmin(0.5 * length, 20);
    size_t many = (size_t)between(w, 1, 9), where = (size_t)between(w, 0, 4);

    for (size_t i = 0; i < many; i++) {
        double lasts = 0.1 * pow(longest / 0.1, rng_uniform(&w->rng));
        double at = between(w, w->begin - 1, w->end);
        if (i == 0 && where < 2)
            at = (where ? w->end : w->begin) - between(w, 0, lasts);
        w->stall[w->n++] = (struct stall){
            at, at + lasts, kind == MIXED ? (enum kind)between(w, 0, 3) : kind};
    }
}

static int world_init(struct world *w, const struct sensors *s, enum kind kind,
                      uint64_t seed)
{
    struct meter_opts opts = {.seed = seed};
    struct plant_gpu_opts plant = {.board = &w->board, .seed = seed, .ideal = true};

    rng_init(&w->rng, seed * 1000 + kind);
    w->board = *plant_board_find("v100");
    w->board.sensor = *plant_sensor_generation(s->generation);
    w->board.sensor.counter = s->counter;
    w->begin = between(w, 4, 16);
    w->end = w->begin + 5 * pow(60, rng_uniform(&w->rng));
    w->period = 0.15 * pow(30, rng_uniform(&w->rng));
    w->duty = between(w, 0.25, 0.75);
    w->low = between(w, 60, 120);
    w->high = between(w, 200, 295);
    stalls(w, kind);
    nvml_sensors(s->arch, s->name, &opts.model);
    int r = plant_gpu_new(&plant, &w->gpu, NULL);
    return r < 0 ? r : meter_new(&opts, &w->m, NULL);
}

/* 1: the interval holds the truth; 0: it does not; -1: no energy is told. */
static int one(const struct sensors *s, enum kind kind, uint64_t seed, bool verbose,
               double *ret_half)
{
    struct world w = {.n = 0};
    struct meter_result r = {0};

    if (world_init(&w, s, kind, seed) < 0)
        return -1;
    run_until(&w, w.begin);
    meter_mark(w.m, ns_of_s(w.begin));
    run_until(&w, w.end);
    meter_mark(w.m, ns_of_s(w.end));
    run_until(&w, w.end + SETTLE_S);
    double true_j = w.end_j - w.begin_j;
    int rc = meter_window(w.m, ns_of_s(w.begin), ns_of_s(w.end), &r, NULL);
    bool holds = rc == 0 && fabs(r.energy_j - true_j) <= r.half_j;
    if (verbose && !holds)
        printf(
            "# %s, %s, seed %d: %.0f of %.0f J (%+.2f %%), +- %.2f %%, %.1f s, %s 0x%x\n",
            s->generation, kinds[kind], (int)seed, r.energy_j, true_j,
            100 * (r.energy_j / true_j - 1), 100 * r.half_j / true_j, w.end - w.begin,
            names_word(NAMES_METER_METHOD, r.method), r.why);
    *ret_half = r.half_j / true_j;
    plant_gpu_free(w.gpu);
    meter_free(w.m);
    return rc < 0 ? -1 : holds;
}

static void coverage(const struct sensors *s, enum kind kind, int seeds, bool verbose,
                     bool judged)
{
    int n[3] = {0};
    double half, sum = 0;

    for (int seed = 1; seed <= seeds; seed++) {
        n[one(s, kind, (uint64_t)seed, verbose, &half) + 1]++;
        sum += half;
    }
    ok(!judged || (n[2] >= 0.95 * (n[1] + n[2]) && n[0] <= 0.1 * seeds),
       "%s, %s: %d of %d intervals hold the truth, %d are none, mean half %.1f %%",
       s->generation, kinds[kind], n[2], n[1] + n[2], n[0], 100 * sum / seeds);
}

int main(int argc, char **argv)
{
    bool sanitized = getenv("UNDERWATT_SANITIZED") && !getenv("UNDERWATT_SOAK");
    int seeds = argc > 1 ? atoi(argv[1]) : 0;

    for (size_t i = 0; i < n_elements(sensors); i++)
        for (int kind = 0; kind < KINDS; kind++) {
            /* A reading alone does not show that it is old until it has been so for long.
             */
            bool known = sensors[i].counter || kind == READER || kind == CALL;
            int many = sensors[i].seeds;
            if (sanitized) /* it looks at memory: too few to judge a share of them */
                many = 1 + many / 8;
            if (known)
                coverage(&sensors[i], (enum kind)kind, seeds ? seeds : many, argc > 2,
                         seeds || !sanitized);
        }
    return done();
}
