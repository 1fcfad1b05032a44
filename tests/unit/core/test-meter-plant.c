/* What the meter promises, on the sensors of simulated boards: a reduced set of what
 * bench/meter measures.  Square waves; gain and offset taken out.
 */
#include "base/names.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/meter/meter.h"
#include "gpu/nvml/nvml.h"
#include "plant/plant.h"
#include "tap.h"

struct world {
    struct plant_gpu *gpu;
    struct meter *m;
    struct plant_board board;
    double until_s, period_s, duty;
    bool high;
    uint64_t now;
};

static void advance(struct world *w, uint64_t to)
{
    while (ns_of_s(w->until_s) <= to) {
        plant_gpu_advance(w->gpu, ns_of_s(w->until_s));
        w->high = !w->high;
        struct plant_load l = {.activity = PLANT_HOLD, .hold_w = w->high ? 290 : 90};
        plant_gpu_set_load(w->gpu, &l);
        w->until_s += w->period_s * (w->high ? w->duty : 1 - w->duty);
    }
    plant_gpu_advance(w->gpu, to);
    w->now = to;
}

static int poll(struct world *w)
{
    struct meter_sample s = {.has = METER_HAS_POWER, .power_began_ns = w->now};
    struct plant_reading r;

    plant_gpu_read(w->gpu, &r);
    s.counter_began_ns = w->now;
    advance(w, w->now + 300 * NS_PER_US);
    s.power_at_ns = s.counter_at_ns = w->now;
    s.power_w = w_of_mw(r.power_mw);
    s.instant_w = w_of_mw(r.instant_mw);
    s.counter = r.energy_mj;
    if (w->board.sensor.has_instant)
        s.has |= METER_HAS_INSTANT;
    if (w->board.sensor.counter != PLANT_COUNTER_NONE)
        s.has |= METER_HAS_COUNTER;
    return meter_feed(w->m, &s, NULL);
}

static int world_init(struct world *w, const char *generation, unsigned arch,
                      const char *name, enum plant_counter counter, uint64_t seed)
{
    struct meter_opts opts = {.seed = seed};
    struct plant_gpu_opts plant = {.board = &w->board, .seed = seed};

    w->board = *plant_board_find("v100");
    w->board.sensor = *plant_sensor_generation(generation);
    w->board.sensor.counter = counter;
    w->until_s = 1;
    w->duty = 0.4;
    nvml_sensors(arch, name, &opts.model);
    int r = plant_gpu_new(&plant, &w->gpu, NULL);
    return r < 0 ? r : meter_new(&opts, &w->m, NULL);
}

/* Feeds up to to_s; *ret_j: the true energy there. */
static void run_until(struct world *w, double to_s, double *ret_j)
{
    while (w->now < ns_of_s(to_s)) {
        uint64_t next = meter_next(w->m, w->now);
        if (next > w->now)
            advance(w, next);
        (void)poll(w);
    }
    if (ret_j)
        *ret_j = plant_gpu_energy_at_j(w->gpu, ns_of_s(to_s));
}

static void check(struct world *w, const char *name, double from_j, double from,
                  double to, double worst)
{
    struct meter_result r = {0};
    const struct plant_sensor_error *s = plant_gpu_sensor_error(w->gpu);
    double want = plant_gpu_energy_at_j(w->gpu, ns_of_s(to)) - from_j;

    while (w->now < meter_ready(w->m, ns_of_s(to)))
        run_until(w, s_of_ns(w->now) + 0.02, NULL);
    int rc = meter_window(w->m, ns_of_s(from), ns_of_s(to), &r, NULL);
    is_int(rc, 0, "%s, period %g s: a window of %g s", name, w->period_s, to - from);
    want = want * s->gain + (r.method == METER_COUNTER ? 0 : s->offset_w * (to - from));
    is_near(r.energy_j / want, 1, worst, "its energy (%s)",
            names_word(NAMES_METER_METHOD, r.method));
    ok(fabs(r.energy_j - want) <= r.half_j, "within its interval");
    ok(r.half_j <= (to - from > 5 ? 0.03 : 0.06) * want,
       "which is no wider than promised");
}

static void one(const char *generation, unsigned arch, const char *name,
                enum plant_counter counter, double period)
{
    struct world w = {.period_s = period};
    double at_14, at_22;

    if (world_init(&w, generation, arch, name, counter, 11) < 0) {
        ok(false, "no memory");
        return;
    }
    run_until(&w, 14.137, &at_14);
    run_until(&w, 22.137, &at_22);
    run_until(&w, 24.137, NULL);
    if (counter != PLANT_COUNTER_SENSED || period < 1)
        check(&w, name, at_14, 14.137, 24.137, 0.01);
    check(&w, name, at_22, 22.137, 24.137, 0.03);
    plant_gpu_free(w.gpu);
    meter_free(w.m);
}

/* Inside the band, where the same part stays unseen for ever. */
static void band(void)
{
    struct world w = {.period_s = 0.3};
    struct meter_result r = {0};
    double at_14, want;

    if (world_init(&w, "ga100", 7, "NVIDIA A100", PLANT_COUNTER_SENSED, 5) < 0) {
        ok(false, "no memory");
        return;
    }
    run_until(&w, 14, &at_14);
    run_until(&w, 24, &want);
    want = (want - at_14) * plant_gpu_sensor_error(w.gpu)->gain;
    run_until(&w, 24.5, NULL);
    is_int(meter_window(w.m, ns_of_s(14), ns_of_s(24), &r, NULL), 0, "in the band");
    ok(r.why & METER_WHY_ALIAS, "aliasing is said");
    ok(r.half_j > 0.05 * r.energy_j, "the interval is wide: %.1f %%",
       100 * r.half_j / r.energy_j);
    ok(fabs(r.energy_j - want) <= r.half_j, "and holds the truth: %+.1f %%, period %g s",
       100 * (r.energy_j / want - 1), r.period_s);
    plant_gpu_free(w.gpu);
    meter_free(w.m);
}

/* Which steps a window of 20 s sees in part only. */
static void hides(const char *generation, unsigned arch, const char *name,
                  enum plant_counter counter, bool any)
{
    static const struct {
        double step_s;
        bool hidden;
    } steps[] = {{0.1, true},   {0.2, true},    {0.2003, true}, {0.4001, true},
                 {0.25, false}, {0.206, false}, {0.31, false},  {1.2, false}};
    struct world w = {.period_s = 0.47};

    if (world_init(&w, generation, arch, name, counter, 7) < 0) {
        ok(false, "no memory");
        return;
    }
    run_until(&w, 14, NULL);
    for (size_t i = 0; i < n_elements(steps); i++) {
        bool hidden = any && steps[i].hidden;
        ok(meter_hides(w.m, steps[i].step_s, 20) == hidden,
           "%s: steps of %g s are seen%s", name, steps[i].step_s,
           hidden ? " in part" : "");
    }
    plant_gpu_free(w.gpu);
    meter_free(w.m);
}

/* Windows of 2.5 s of loads near the counter's period and far below it: nothing tells
 * what the board did within the ticks at both ends, and the interval has to say so.  To a
 * sensor that looks part of the time such a load looks like a slow one.
 */
static void fast(const char *generation, unsigned arch, const char *name,
                 enum plant_counter counter, double period)
{
    enum { WINDOWS = 60 };
    struct world w = {.period_s = period};
    enum meter_method method = METER_COUNTER;
    double from_j[WINDOWS], half = 0, error = 0, length = 4 * 0.637;
    int held = 0, n = WINDOWS - 4;

    if (counter == PLANT_COUNTER_SENSED) { /* each window is folded: fewer of them */
        method = METER_FOLDED;
        n = 12;
    }
    if (world_init(&w, generation, arch, name, counter, 3) < 0) {
        ok(false, "no memory");
        return;
    }
    for (int i = 0; i < WINDOWS; i++)
        run_until(&w, 12 + 0.637 * i, &from_j[i]);
    const struct plant_sensor_error *s = plant_gpu_sensor_error(w.gpu);
    double offset_j = method == METER_COUNTER ? 0 : s->offset_w * length;
    for (int k = 0; k < n; k++) {
        int i = k * (WINDOWS - 4) / n;
        double from = 12 + 0.637 * i;
        double want = (from_j[i + 4] - from_j[i]) * s->gain + offset_j;
        struct meter_result r = {0};
        (void)meter_window(w.m, ns_of_s(from), ns_of_s(from + length), &r, NULL);
        held += r.method == method && fabs(r.energy_j - want) <= r.half_j;
        half += r.half_j / want / n;
        error += fabs(r.energy_j / want - 1) / n;
    }
    ok(held >= 0.95 * n && half < 0.03 && error < 0.01,
       "%s, period %g s: %d of %d windows (%s) hold the truth, half %.2f %%, error %.2f "
       "%%",
       name, period, held, n, names_word(NAMES_METER_METHOD, method), 100 * half,
       100 * error);
    plant_gpu_free(w.gpu);
    meter_free(w.m);
}

int main(void)
{
    static const double fast_s[] = {0.031, 0.073, 0.107, 0.131};

    for (size_t i = 0; i < n_elements(fast_s); i++) {
        fast("volta", 5, "Tesla V100", PLANT_COUNTER_TRUE, fast_s[i]);
        fast("turing", 6, "Quadro RTX 6000", PLANT_COUNTER_TRUE, fast_s[i]);
        fast("hopper", 9, "NVIDIA H100", PLANT_COUNTER_TRUE, fast_s[i]);
        fast("ga100", 7, "NVIDIA A100", PLANT_COUNTER_SENSED, fast_s[i]);
    }
    one("kepler", 2, "Tesla K40m", PLANT_COUNTER_NONE, 0.71);
    one("volta", 5, "Tesla V100", PLANT_COUNTER_TRUE, 0.33);
    one("turing", 6, "Quadro RTX 6000", PLANT_COUNTER_TRUE, 1.27);
    one("ampere", 7, "NVIDIA GeForce RTX 3090", PLANT_COUNTER_NONE, 0.47);
    one("hopper", 9, "NVIDIA H100", PLANT_COUNTER_TRUE, 0.19);
    one("ga100", 7, "NVIDIA A100", PLANT_COUNTER_SENSED, 0.47);
    one("ga100", 7, "NVIDIA A100", PLANT_COUNTER_TRUE, 0.47);
    band();
    hides("ga100", 7, "NVIDIA A100", PLANT_COUNTER_SENSED, true);
    hides("ga100", 7, "NVIDIA A100", PLANT_COUNTER_TRUE, false);
    hides("volta", 5, "Tesla V100", PLANT_COUNTER_TRUE, false);
    return done();
}
