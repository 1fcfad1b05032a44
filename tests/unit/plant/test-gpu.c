/* A board in time: caps, bursts, heat, work; against the measured times of a
 * V100's answer to one 80 W step each way and against sums done by hand.
 */
#include "plant/gpu.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define START (1000 * NS_PER_S)
#define AT(s) (START + ns_of_s(s))

static struct plant_gpu *board_of(const char *key, struct plant_gpu_opts o)
{
    struct plant_gpu *g = NULL;

    o.board = plant_board_find(key);
    o.start_ns = START;
    (void)plant_gpu_new(&o, &g, NULL);
    return g;
}

static const struct plant_workload *work_of(const struct plant_gpu *g, const char *name)
{
    return plant_workload_find(plant_gpu_board(g), name);
}

static void train(struct plant_gpu *g, const char *name)
{
    struct plant_load l = plant_load_train(work_of(g, name));
    plant_gpu_set_load(g, &l);
}

/* Compute without gaps: its power is the cap. */
static void busy(struct plant_gpu *g)
{
    struct plant_load l = plant_load_train(work_of(g, "resnet50"));
    l.gap_s = 0;
    plant_gpu_set_load(g, &l);
}

static double power_at(struct plant_gpu *g, double s)
{
    plant_gpu_advance(g, AT(s));
    return plant_gpu_power_w(g);
}

static double mean_over(struct plant_gpu *g, double from, double to)
{
    plant_gpu_advance(g, AT(from));
    double e = plant_gpu_energy_j(g);
    plant_gpu_advance(g, AT(to));
    return (plant_gpu_energy_j(g) - e) / (to - from);
}

static void caps_down(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("v100", (struct plant_gpu_opts){0});
    double eta = work_of(g, "resnet50")->eta, low = INFINITY;

    busy(g);
    plant_gpu_set_cap(g, 280000);
    plant_gpu_advance(g, AT(400));
    is_near(plant_gpu_power_w(g),
            fmin(280 * eta, plant_active_w(work_of(g, "resnet50"), 1)), 1,
            "a V100 at 280 W");
    plant_gpu_set_cap(g, 200000);
    is_int(plant_gpu_cap_mw(g), 200000, "the request shows at once");
    ok(power_at(g, 400.020) > 250, "20 ms later nothing has happened");
    ok(power_at(g, 400.045) > 200, "45 ms: still above the new cap");
    ok(power_at(g, 400.055) < 200, "55 ms: below it");
    for (int ms = 45; ms <= 130; ms++)
        low = fmin(low, power_at(g, 400 + ms * 1e-3));
    is_near(low / (200 * eta), 0.93, 0.005, "undershoots by 7 %%");
    is_near(power_at(g, 400.140), 200 * eta, 0.1, "settled by 110 ms");
    is_near(mean_over(g, 401, 500), 200 * eta, 0.1, "… and stays");
}

static void caps_up(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("v100", (struct plant_gpu_opts){0});
    double eta = work_of(g, "resnet50")->eta;
    double was = 0, jumps[8] = {0};
    int n = 0;

    busy(g);
    plant_gpu_set_cap(g, 170000);
    plant_gpu_advance(g, AT(400));
    plant_gpu_set_cap(g, 250000);
    was = plant_gpu_power_w(g);
    is_near(was, 170 * eta, 0.1, "a V100 at 170 W");
    for (int ms = 1; ms <= 400 && n < 8; ms++) {
        double now = power_at(g, 400 + ms * 1e-3);
        if (now > was + 1)
            jumps[n++] = ms;
        was = now;
    }
    is_int(n, 3, "three stairs up");
    is_near(jumps[0], 110, 1, "the first at 110 ms");
    is_near(jumps[1], 280, 1, "the second at 280 ms");
    ok(jumps[2] <= 341, "settled by 340 ms");
    is_near(was, 250 * eta, 0.1, "… at the new cap");
    ok(mean_over(g, 400.110, 400.280) < 250 * eta, "never above it on the way");
}

static void redirected(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("v100", (struct plant_gpu_opts){0});
    double eta = work_of(g, "resnet50")->eta;

    busy(g);
    plant_gpu_set_cap(g, 250000);
    plant_gpu_advance(g, AT(300));
    plant_gpu_set_cap(g, 160000);
    plant_gpu_advance(g, AT(300.050));
    plant_gpu_set_cap(g, 220000);
    double early = power_at(g, 300.1);
    ok(early < 165, "a cap that changes its mind stays low until the first stair");
    is_near(power_at(g, 300.5), 220 * eta, 1, "… and ends at the last request");
    plant_gpu_set_cap(g, 220000);
    is_near(power_at(g, 300.51), 220 * eta, 1, "the same cap again changes nothing");
}

static void bursts(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("v100", (struct plant_gpu_opts){0});
    double peak = 0;

    plant_gpu_set_cap(g, 150000);
    plant_gpu_advance(g, AT(10));
    is_near(plant_gpu_power_w(g), 42, 1e-9, "an idle V100");
    busy(g);
    for (int ms = 1; ms < 30; ms++)
        peak = fmax(peak, power_at(g, 10 + ms * 1e-3));
    ok(peak > 1.2 * 150 && peak <= 1.43 * 150 + 1,
       "a load's onset bursts: %.0f W at 150 W", peak);
    ok(power_at(g, 10.031) < 150, "… for 30 ms");
    is_near(mean_over(g, 10.030, 10.230) * 0.2 + peak * 0.03,
            0.23 * 150 * work_of(g, "resnet50")->eta, 1, "… and is paid back in 200 ms");
}

static void burst_limit(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("h100", (struct plant_gpu_opts){0});

    plant_gpu_set_cap(g, 200000);
    busy(g);
    is_near(power_at(g, 0.01), 1.43 * 200 * work_of(g, "resnet50")->eta, 0.1,
            "a burst is 143 %% of the cap where the load could use more");
}

/* Whatever the bursts, the steady state is that of the tables. */
static void steady(const char *key, const char *name, uint32_t cap_mw)
{
    auto_(plant_gpu_free) struct plant_gpu *g = board_of(key, (struct plant_gpu_opts){0});
    const struct plant_workload *w = work_of(g, name);
    struct plant_steady want = plant_steady_step(plant_gpu_board(g), w, cap_mw);

    train(g, name);
    plant_gpu_set_cap(g, cap_mw);
    plant_gpu_advance(g, AT(600));
    double steps = plant_gpu_steps(g), energy = plant_gpu_energy_j(g);
    double peak = 0;
    for (int ms = 0; ms < 3000; ms++)
        peak = fmax(peak, power_at(g, 600 + ms * 1e-3));
    plant_gpu_advance(g, AT(1600));
    steps = plant_gpu_steps(g) - steps;
    energy = plant_gpu_energy_j(g) - energy;
    is_near(1000 / steps / want.time_s, 1, 0.001, "%s %s at %u mW: steady time", key,
            name, cap_mw);
    is_near(energy / steps / want.energy_j, 1, 0.002, "%s %s at %u mW: steady energy",
            key, name, cap_mw);
    if (want.x < 1)
        ok(peak > 1.02 * cap_mw * 1e-3, "… with bursts above the cap: %.0f W", peak);
}

/* Advancing in a thousand parts is advancing once, to the last joule. */
static void parts(double noise_sd)
{
    struct plant_gpu_opts o = {.seed = 7, .noise_sd = noise_sd};
    auto_(plant_gpu_free) struct plant_gpu *a = board_of("v100", o);
    auto_(plant_gpu_free) struct plant_gpu *b = board_of("v100", o);
    struct rng rng;
    double t = 0, rated = 0;

    rng_init(&rng, 11);
    train(a, "vgg19");
    train(b, "vgg19");
    while (t < 200) {
        uint32_t cap = 150000 + (uint32_t)rng_below(&rng, 150) * 1000;
        double until = t + 0.05 + 3 * rng_uniform(&rng);
        plant_gpu_set_cap(a, cap);
        plant_gpu_set_cap(b, cap);
        plant_gpu_advance(a, AT(until));
        while (plant_gpu_now_ns(b) < AT(until)) {
            uint64_t from = plant_gpu_now_ns(b), to = from + rng_below(&rng, 40000000);
            uint64_t next = plant_gpu_next_ns(b);
            to = to > AT(until) ? AT(until) : to;
            to = to > next ? next : to;
            rated += plant_gpu_rate(b) * s_between(from, to);
            plant_gpu_advance(b, to);
        }
        t = until;
    }
    ok(plant_gpu_energy_j(a) == plant_gpu_energy_j(b), "energy: one jump or many parts");
    ok(plant_gpu_steps(a) == plant_gpu_steps(b), "work: one jump or many parts");
    ok(plant_gpu_temp_c(a) == plant_gpu_temp_c(b), "heat: one jump or many parts");
    is_near(rated, plant_gpu_steps(b), 1e-6, "steps are what the rate sums to");
}

static void energy_sums(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("rtx6000", (struct plant_gpu_opts){0});
    double sum = 0, before, worst = 0;

    train(g, "resnet50");
    plant_gpu_advance(g, AT(5));
    plant_gpu_set_cap(g, 150000);
    before = plant_gpu_energy_j(g);
    /* 20 us steps, trapezoid-free: power is piecewise constant. */
    for (int i = 1; i <= 50000; i++) {
        plant_gpu_advance(g, AT(5) + (uint64_t)i * 20000 - 10000);
        sum += plant_gpu_power_w(g) * 20e-6;
        plant_gpu_advance(g, AT(5) + (uint64_t)i * 20000);
        worst = fmax(worst, fabs(plant_gpu_energy_j(g) - before - sum));
    }
    is_near(sum, plant_gpu_energy_j(g) - before, 0.1,
            "the integral of power is the energy");
    ok(worst < 0.1, "… at each moment");
    double now = plant_gpu_energy_j(g);
    is_near(plant_gpu_energy_at_j(g, AT(5)), before, 1e-6, "energy a second ago");
    ok(plant_gpu_energy_at_j(g, AT(6)) == now, "energy now");
}

/* Whatever ends a segment in the middle of a step, the step goes on. */
static void mid_step(void)
{
    struct plant_gpu_opts o = {.coarse = true};
    auto_(plant_gpu_free) struct plant_gpu *a = board_of("v100", o);
    auto_(plant_gpu_free) struct plant_gpu *b = board_of("v100", o);
    double worst = 0;

    train(a, "alexnet");
    train(b, "alexnet");
    for (int i = 1; i < 500; i++) {
        plant_gpu_advance(a, AT(i * 0.0137));
        plant_gpu_advance(b, AT(i * 0.0137));
        plant_gpu_set_ambient(b, 30); /* as it was */
        worst = fmax(worst, fabs(plant_gpu_energy_j(a) - plant_gpu_energy_j(b)));
    }
    ok(worst < 1e-6, "a segment that ends within a step loses nothing of it");
}

static void heat(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("v100", (struct plant_gpu_opts){0});
    const struct plant_board *b = plant_gpu_board(g);
    double eta = work_of(g, "vgg19")->eta;
    struct plant_load l = plant_load_train(work_of(g, "vgg19"));

    is_near(plant_gpu_temp_c(g), b->ambient_c + b->resistance_kpw * b->idle_w, 1e-9,
            "an idle board is as warm as its idle power makes it");
    l.gap_s = 0;
    plant_gpu_set_load(g, &l);
    plant_gpu_set_cap(g, 200000);
    plant_gpu_advance(g, AT(1));
    double cold_rate = plant_gpu_rate(g);
    plant_gpu_advance(g, AT(600));
    is_near(plant_gpu_temp_c(g), b->ambient_c + b->resistance_kpw * 200 * eta, 1,
            "steady temperature is ambient + R x power");
    ok(plant_gpu_rate(g) < cold_rate, "a cold board is faster under the same cap");
    ok(plant_gpu_rate(g) > 0.9 * cold_rate, "… a little");
    double rate = plant_gpu_rate(g);
    plant_gpu_set_ambient(g, b->ambient_c + 15);
    plant_gpu_advance(g, AT(1200));
    ok(plant_gpu_rate(g) < rate, "a warm room costs speed under a cap");
    is_near(plant_gpu_mean_w(g), 200 * eta, 0.1, "… not power");
    double t0 = plant_gpu_temp_c(g);
    plant_gpu_set_load(g, &(struct plant_load){.activity = PLANT_IDLE});
    plant_gpu_advance(g, AT(1200 + b->tau_s));
    double end = b->ambient_c + 15 + b->resistance_kpw * b->idle_w;
    is_near((plant_gpu_temp_c(g) - end) / (t0 - end), exp(-1), 0.02,
            "cools with its time constant");
}

static void locks(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("v100", (struct plant_gpu_opts){.ideal = true});
    struct plant_reading r;

    busy(g);
    plant_gpu_advance(g, AT(400));
    plant_gpu_read(g, &r);
    double rate = plant_gpu_rate(g), power = plant_gpu_mean_w(g);
    ok(r.sm_mhz > 1200 && r.sm_mhz <= 1530, "clock under load: %u MHz", r.sm_mhz);
    plant_gpu_lock_clocks(g, 900, 900);
    plant_gpu_read(g, &r);
    is_near(r.sm_mhz, 900, 15, "locked clocks show under load");
    ok(plant_gpu_rate(g) < rate && plant_gpu_mean_w(g) < power, "… and cost and save");
    ok(!(r.reasons & PLANT_REASON_POWER_CAP), "… and it is not the cap that binds");
    plant_gpu_lock_clocks(g, 0, 0);
    plant_gpu_advance(g, AT(1000));
    is_near(plant_gpu_rate(g), rate, 1e-3 * rate, "without the lock as before");
    plant_gpu_set_cap(g, 150000);
    plant_gpu_advance(g, AT(1001));
    plant_gpu_read(g, &r);
    ok(r.reasons & PLANT_REASON_POWER_CAP, "the reason says that the cap binds");
    uint64_t capped = r.capped_ns;
    plant_gpu_advance(g, AT(1003));
    plant_gpu_read(g, &r);
    is_near(s_of_ns(r.capped_ns - capped), 2, 1e-6, "… and for how long");
}

static void lock_power(void)
{
    struct plant_gpu_opts o = {.coarse = true};
    auto_(plant_gpu_free) struct plant_gpu *g = board_of("v100", o);
    const struct plant_workload *w = work_of(g, "resnet50");

    busy(g);
    plant_gpu_lock_clocks(g, 900, 900);
    is_near(plant_gpu_power_w(g), w->ps_w + pow(900.0 / 1530, 3.5) * w->d_w, 0.1,
            "dynamic power goes with the locked clock to the 3.5");
}

/* On boards that are not calibrated the clock that shows is the model's. */
static void lock_speed(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("a100", (struct plant_gpu_opts){.coarse = true, .ideal = true});
    const struct plant_workload *w = work_of(g, "resnet50");
    const struct plant_load *l = plant_gpu_load(g);
    struct plant_reading r;

    busy(g);
    plant_gpu_lock_clocks(g, 210, 1005);
    plant_gpu_read(g, &r);
    is_int((int)r.sm_mhz, 1005, "the lock shows");
    double x = 1005.0 / 1410;
    is_near(plant_gpu_clock(g), x, 1e-9, "… is the model's clock");
    is_near(plant_gpu_own_step_s(g), l->gap_s + l->tc_s / x + l->tm_s, 1e-9,
            "… and sets the speed of clock-bound work");
    is_near(plant_gpu_power_w(g), plant_active_w(w, x), 1e-6, "… and power by voltage");
    plant_gpu_set_cap(g, (uint32_t)(1000 * (plant_active_w(w, 0.6) / w->eta)));
    plant_gpu_read(g, &r);
    is_near(r.sm_mhz, 0.6 * 1410, 8, "a cap that wants less than the lock goes on down");
    ok(r.reasons & PLANT_REASON_POWER_CAP, "… and says so");
}

static void seeds(void)
{
    struct plant_gpu_opts o = {.seed = 3, .noise_sd = 0.01};
    auto_(plant_gpu_free) struct plant_gpu *a = board_of("v100", o);
    auto_(plant_gpu_free) struct plant_gpu *b = board_of("v100", o);
    o.seed = 4;
    auto_(plant_gpu_free) struct plant_gpu *c = board_of("v100", o);

    train(a, "resnet50");
    train(b, "resnet50");
    train(c, "resnet50");
    plant_gpu_advance(a, AT(100));
    plant_gpu_advance(b, AT(100));
    plant_gpu_advance(c, AT(100));
    o.gain = 1.03;
    auto_(plant_gpu_free) struct plant_gpu *d = board_of("v100", o);
    ok(plant_gpu_sensor_error(d)->gain == 1.03, "a gain that is given is not drawn");
    ok(plant_gpu_steps(a) == plant_gpu_steps(b), "the same seed, the same work");
    ok(plant_gpu_steps(a) != plant_gpu_steps(c), "another seed, other work");
    ok(plant_gpu_read_power_mw(a) == plant_gpu_read_power_mw(b), "… and readings");
    is_near(plant_gpu_steps(c) / plant_gpu_steps(a), 1, 0.01, "… not by much");
}

/* Part of 2,000 pairs of seconds that follow each other whose speeds lie on one side of
 * the mean.
 */
static double alike(double memory_s)
{
    enum { SECONDS = 2001 };
    struct plant_gpu_opts o = {.seed = 9, .noise_sd = 0.01, .noise_memory_s = memory_s};
    auto_(plant_gpu_free) struct plant_gpu *g = board_of("v100", o);
    double mean = 0, before = 0, at = 0;
    double speed[SECONDS];
    unsigned n = 0;

    train(g, "resnet50");
    plant_gpu_advance(g, AT(100));
    for (size_t i = 0; i < SECONDS; i++) {
        before = plant_gpu_steps(g);
        plant_gpu_advance(g, AT(101 + (double)i));
        at = plant_gpu_steps(g);
        speed[i] = at - before;
        mean += speed[i] / SECONDS;
    }
    for (size_t i = 1; i < SECONDS; i++)
        n += (speed[i] > mean) == (speed[i - 1] > mean);
    return (double)n / (SECONDS - 1);
}

static void memory(void)
{
    /* Of an AR(1) process 1/2 + asin(r)/pi, r: its correlation a second. */
    is_near(alike(0), 0.5, 0.1, "noise without memory: the next second is on any side");
    is_near(alike(20), 0.5 + asin(exp(-1.0 / 20)) / 3.14159265, 0.05,
            "… with a memory of 20 s mostly on the same");
}

static void coarse(void)
{
    struct plant_gpu_opts o = {.coarse = true};
    auto_(plant_gpu_free) struct plant_gpu *g = board_of("v100", o);
    const struct plant_workload *w = work_of(g, "resnet152");

    train(g, "resnet152");
    plant_gpu_set_cap(g, 150000);
    struct plant_steady want = plant_steady_step(plant_gpu_board(g), w, 150000);
    is_near(1 / plant_gpu_rate(g), want.time_s, 1e-9, "coarse: a cap acts at once");
    ok(plant_gpu_next_ns(g) == UINT64_MAX, "… and nothing happens by itself");
    plant_gpu_advance(g, START + 365ull * 86400 * NS_PER_S);
    is_near(plant_gpu_energy_j(g) / plant_gpu_steps(g) / want.energy_j, 1, 1e-9,
            "a year's energy is its steps'");
}

int main(void)
{
    caps_down();
    caps_up();
    redirected();
    bursts();
    burst_limit();
    steady("v100", "resnet152", 150000);
    steady("v100", "alexnet", 200000);
    steady("rtx6000", "resnet50", 155000);
    steady("rtx6000", "inception4", 260000);
    steady("h100", "vgg19", 400000);
    parts(0);
    parts(0.01);
    energy_sums();
    mid_step();
    heat();
    locks();
    lock_power();
    lock_speed();
    seeds();
    memory();
    coarse();
    return done();
}
