/* The meter on sensors written here by hand: order, wrap, reset, gap, stuck, marks,
 * levels.  How well it does on the simulated boards' sensors is test-meter-plant.c.
 */
#include <errno.h>

#include "base/names.h"
#include "base/units.h"
#include "core/meter/state.h"
#include "gpu/nvml/nvml.h"
#include "tap.h"

#define START (1000 * NS_PER_S)

/* A board whose power is a function of time and whose counter is exact. */
struct bench {
    struct meter *m;
    uint64_t now;
    double low, high, period; /* a square wave, high first; period 0: high */
    uint64_t wrap, base;      /* counts; base is added to the counter */
    bool no_power, no_counter, counter_stuck, power_stuck;
    uint64_t stuck_at;
    double stuck_w, unit_j;
    double update_s; /* of its power readings */
};

static double energy(const struct bench *b, double t)
{
    if (b->period <= 0)
        return b->high * t;
    double n = floor(t / b->period), rest = t - n * b->period;
    double half = b->period / 2;
    return n * half * (b->high + b->low) +
           (rest < half ? rest * b->high : half * b->high + (rest - half) * b->low);
}

static double between(const struct bench *b, double from, double to)
{
    return energy(b, to) - energy(b, from);
}

static uint64_t counter(const struct bench *b, double t)
{
    double edge = floor(t / 0.1) * 0.1;
    uint64_t counts = (uint64_t)(energy(b, edge) / b->unit_j) + b->base;
    return b->wrap ? counts % b->wrap : counts;
}

static double power(const struct bench *b, double t)
{
    double T = b->update_s, edge = floor((t - 0.013) / T) * T + 0.013;
    if (edge < T)
        return b->high;
    return between(b, edge - T, edge) / T + 0.05 * sin(edge * 977);
}

static int poll(struct bench *b)
{
    double t = s_of_ns(b->now - START);
    struct meter_sample s = {
        .has = (b->no_power ? 0 : (unsigned)METER_HAS_POWER) |
               (b->no_counter ? 0 : (unsigned)METER_HAS_COUNTER),
        .power_began_ns = b->now - 100000,
        .power_at_ns = b->now + 100000,
        .counter_began_ns = b->now - 100000,
        .counter_at_ns = b->now + 100000,
        .power_w = b->power_stuck ? b->stuck_w : power(b, t),
        .counter = b->counter_stuck ? b->stuck_at : counter(b, t),
    };
    return meter_feed(b->m, &s, NULL);
}

static void run_until(struct bench *b, double t)
{
    uint64_t end = START + ns_of_s(t);

    while (b->now < end) {
        (void)poll(b);
        uint64_t next = meter_next(b->m, b->now);
        b->now = next > b->now + 200001 ? next : b->now + 200001;
    }
}

static struct bench bench_new(bool has_counter)
{
    struct bench b = {.now = START + 1000000,
                      .low = 100,
                      .high = 250,
                      .period = 0.7,
                      .base = 5000000,
                      .unit_j = 1e-3,
                      .update_s = 0.1};
    struct meter_opts opts = {.seed = 3};

    nvml_sensors(6, "Quadro RTX 6000", &opts.model);
    opts.model.power.lag_s = 0;
    if (!has_counter) {
        opts.model.counter_update_s = 0;
        b.no_counter = true;
    }
    uw_error err;
    if (meter_new(&opts, &b.m, &err) < 0)
        b.m = NULL;
    return b;
}

static struct meter_result window(struct bench *b, double from, double to)
{
    struct meter_result r = {.energy_j = -1};
    uw_error err = {0};

    if (meter_window(b->m, START + ns_of_s(from), START + ns_of_s(to), &r, &err) < 0)
        printf("# %s\n", err.text);
    return r;
}

static void check(struct bench *b, double from, double to, double tolerance,
                  enum meter_method method, uint32_t why, const char *name)
{
    struct meter_result r = window(b, from, to);
    char text[128];
    double want = between(b, from, to);

    is_near(r.energy_j / want, 1, tolerance, "%s: energy", name);
    ok(fabs(r.energy_j - want) <= r.half_j, "%s: the interval holds it", name);
    is_str(names_word(NAMES_METER_METHOD, r.method),
           names_word(NAMES_METER_METHOD, method), name);
    if (!ok((r.why & ~(unsigned)METER_WHY_EARLY) == why, "%s: why", name))
        printf("# got: %s\n", meter_why_text(r.why, text, sizeof text));
}

static void test_plain(void)
{
    struct bench b = bench_new(true);
    struct meter_state s;

    run_until(&b, 20);
    check(&b, 5, 15, 0.01, METER_COUNTER, 0, "ten seconds");
    check(&b, 7.33, 9.33, 0.03, METER_COUNTER, 0, "two seconds");
    check(&b, 7.33, 7.83, 0.12, METER_COUNTER, METER_WHY_SHORT, "half a second");
    meter_state(b.m, &s);
    ok(s.counter_proved && !s.counter_fed && !s.counter_stuck, "the counter is proved");
    is_near(s.counter_update_s, 0.1, 0.002, "its period is found");
    is_near(s.mismatch, 0, 0.03, "counter and readings agree");
    meter_free(b.m);

    b = bench_new(false);
    run_until(&b, 20);
    check(&b, 5, 15, 0.01, METER_INTEGRATED, 0, "no counter, ten seconds");
    check(&b, 7.33, 9.33, 0.03, METER_INTEGRATED, 0, "no counter, two seconds");
    meter_free(b.m);
}

static void test_order(void)
{
    struct bench b = bench_new(true);
    struct meter_state before, after;
    struct meter_sample s = {.has = METER_HAS_POWER, .power_w = 200};
    struct meter_result r = {.energy_j = -7};
    uw_error err;

    is_int(meter_window(b.m, START, START + NS_PER_S, &r, &err), -ENODATA,
           "nothing fed: no energy");
    run_until(&b, 5);
    meter_state(b.m, &before);
    s.power_began_ns = before.last_ns - 2000000;
    s.power_at_ns = before.last_ns - 1000000;
    is_int(meter_feed(b.m, &s, &err), METER_E_OLD, "an old sample is refused");
    s.power_began_ns = before.last_ns + 2000000;
    s.power_at_ns = before.last_ns + 1000000;
    is_int(meter_feed(b.m, &s, &err), METER_E_OLD,
           "so is one that ends before it begins");
    meter_state(b.m, &after);
    is_int(after.last_ns, before.last_ns, "neither changed anything");
    is_int(after.refused, 2, "both are counted");

    s.power_at_ns = s.power_began_ns + 1000;
    s.power_w = NAN;
    is_int(meter_feed(b.m, &s, &err), METER_E_BAD, "NaN is no power");
    s.power_began_ns = s.power_at_ns += NS_PER_MS;
    s.power_w = -3;
    is_int(meter_feed(b.m, &s, &err), METER_E_BAD, "nor is less than none");
    b.now = s.power_at_ns + 50 * NS_PER_MS;
    run_until(&b, 12);
    check(&b, 2, 12, 0.01, METER_COUNTER, 0, "refused samples leave no trace");

    is_int(meter_window(b.m, START + NS_PER_S, START, &r, &err), -EINVAL, "end first");
    is_int(meter_window(b.m, START, START + 20 * NS_PER_S, &r, &err), -ENODATA,
           "a window that is not over");
    is_near(r.energy_j, -7, 0, "failures write nothing");
    meter_free(b.m);
}

static void test_wrap_reset(void)
{
    struct meter_state s;
    struct bench b = bench_new(true);
    struct meter_opts opts = {.seed = 5};
    uw_error err;

    b.base = UINT64_MAX - 1000000; /* 1 kJ below the end of 64 bits */
    run_until(&b, 20);
    check(&b, 3, 17, 0.01, METER_COUNTER, 0, "64 bits wrap");
    meter_state(b.m, &s);
    is_int(s.wraps, 1, "one wrap");
    meter_free(b.m);

    b = bench_new(true);
    meter_free(b.m);
    opts.model = (struct sensor_model){
        .counter_update_s = 0.1, .counter_unit_j = 15.3e-6, .counter_true = true};
    b.unit_j = 15.3e-6;
    b.no_power = true;
    b.wrap = opts.model.counter_wrap = 1ull << 27; /* about 2 kJ */
    if (meter_new(&opts, &b.m, &err) < 0)
        return;
    run_until(&b, 60);
    check(&b, 3, 57, 0.01, METER_COUNTER, 0, "a short counter wraps and wraps");
    meter_state(b.m, &s);
    ok(s.wraps >= 4 && s.resets == 0, "%d wraps", (int)s.wraps);
    meter_free(b.m);

    b = bench_new(true);
    meter_free(b.m);
    b.unit_j = 15.3e-6;
    b.no_power = true;
    b.wrap = opts.model.counter_wrap;
    if (meter_new(&opts, &b.m, &err) < 0)
        return;
    run_until(&b, 2);
    b.base = 0 - (uint64_t)(energy(&b, 2) / b.unit_j);
    run_until(&b, 4);
    meter_state(b.m, &s);
    ok(s.wraps == 0 && s.resets == 1, "a short counter begins anew: no wrap");
    meter_free(b.m);

    b = bench_new(true);
    run_until(&b, 9);
    b.base = 0 - (uint64_t)(energy(&b, 9) * 1e3); /* the driver is loaded anew */
    run_until(&b, 20);
    check(&b, 4, 14, 0.02, METER_COUNTER, METER_WHY_RESET, "reset");
    check(&b, 10, 20, 0.01, METER_COUNTER, 0, "after the reset");
    meter_state(b.m, &s);
    is_int(s.resets, 1, "one reset");
    meter_free(b.m);
}

/* A counter that begins anew while a call of a second reads it: at which of the edges is
 * unknown.
 */
static void test_reset_in_call(void)
{
    struct bench b = bench_new(true);

    b.period = 0;
    run_until(&b, 9);
    b.base = 0 - (uint64_t)(energy(&b, 9.5) * 1e3);
    const struct meter_sample s = {.has = METER_HAS_COUNTER,
                                   .counter_began_ns = b.now,
                                   .counter_at_ns = b.now + NS_PER_S,
                                   .counter = counter(&b, 9.7)};
    is_int(meter_feed(b.m, &s, NULL), 0, "a call of a second");
    double at = b.m->c.last.t, own = b.m->c.last.own;
    ok(at > 9 && at < 10 && own > 0.2, "the reset was at %.2f s, +- %.2f s", at, own);
    b.now = s.counter_at_ns + 200000;
    run_until(&b, 20);
    struct meter_result r = window(&b, at, 15);
    is_near(r.energy_j, between(&b, at, 15), r.half_j, "the interval holds the energy");
    ok(r.half_j >= 1.96 * 0.2 * b.high, "… and knows the doubt: %.0f J", r.half_j);
    meter_free(b.m);
}

static void test_gap(void)
{
    struct bench b = bench_new(true);

    run_until(&b, 10);
    b.now += 4 * NS_PER_S;
    run_until(&b, 24);
    check(&b, 5, 20, 0.01, METER_COUNTER, 0, "a counter bridges a gap");
    check(&b, 5, 12, 0.3, METER_COUNTER, METER_WHY_GAP, "a window that ends in it");
    meter_free(b.m);

    b = bench_new(false);
    run_until(&b, 10);
    b.now += 4 * NS_PER_S;
    run_until(&b, 24);
    check(&b, 5, 20, 0.2, METER_INTEGRATED, METER_WHY_GAP, "readings with a gap");
    meter_free(b.m);
}

/* A part-time sensor whose readings stop for so long that parts of a window, and whole
 * chunks once the readings are settled, have none within FOLD_AROUND_S.
 */
static void test_long_gap(void)
{
    struct bench b = bench_new(false);
    struct meter_opts opts = {.seed = 3};

    meter_free(b.m);
    nvml_sensors(6, "Quadro RTX 6000", &opts.model);
    opts.model.counter_update_s = 0;
    opts.model.power.lag_s = 0;
    opts.model.power.update_s = b.update_s = 0.5; /* few readings: folding them is slow */
    opts.model.power.window_s = opts.model.power.update_s / 2;
    if (meter_new(&opts, &b.m, NULL) < 0)
        b.m = NULL;
    run_until(&b, 12);
    b.now += ns_of_s(75);
    run_until(&b, 110);
    for (int settled = 0; settled < 2; settled++) {
        struct meter_result r = window(&b, 5, 100);
        double want = between(&b, 5, 100);
        ok(r.why & METER_WHY_GAP, "a gap of 75 s is told");
        ok(fabs(r.energy_j - want) <= r.half_j, "the interval holds the energy");
        ok(r.half_j > 0.02 * want && r.half_j < 0.9 * want,
           "and is wide, within reason: %.2f", r.half_j / want);
        is_near(r.energy_j / want, 1, 0.25, "the readings round it fill it");
        run_until(&b, 2240);
    }
    ok(b.m->n_chunks > 0 && b.m->chunks[b.m->n_chunks - 1].t1 >= 100, "it was settled");
    meter_free(b.m);
}

static void test_stuck(void)
{
    struct meter_state s;
    struct bench b = bench_new(true);

    run_until(&b, 10);
    b.counter_stuck = true;
    b.stuck_at = counter(&b, 9.9);
    run_until(&b, 16);
    meter_state(b.m, &s);
    ok(s.counter_stuck, "a counter that stands still is seen");
    check(&b, 4, 14, 0.03, METER_COUNTER, METER_WHY_STUCK, "stuck counter");
    b.counter_stuck = false;
    run_until(&b, 30);
    meter_state(b.m, &s);
    ok(!s.counter_stuck, "that it goes on, too");
    check(&b, 4, 24, 0.03, METER_COUNTER, METER_WHY_STUCK, "it goes on");
    check(&b, 18, 28, 0.01, METER_COUNTER, 0, "all is well again");
    meter_free(b.m);

    b = bench_new(false);
    run_until(&b, 12);
    b.power_stuck = true;
    b.stuck_w = power(&b, 11.95);
    run_until(&b, 30);
    meter_state(b.m, &s);
    ok(s.sensor_stuck, "a sensor that stands still is seen");
    struct meter_result r = window(&b, 15, 25);
    ok(r.why & METER_WHY_STUCK, "and said");
    ok(r.half_j > 0.3 * r.energy_j, "nobody is sure of it");
    b.power_stuck = false;
    run_until(&b, 45);
    check(&b, 33, 43, 0.01, METER_INTEGRATED, 0, "it moves again");
    meter_free(b.m);
}

/* A counter beside a part-time sensor counts for minutes and then loses its proof: what
 * it had counted until then is not lost with it.
 */
static void test_unproved_late(void)
{
    struct bench b = bench_new(true);
    struct meter_opts opts = {.seed = 3};
    struct meter_state s;

    meter_free(b.m);
    nvml_sensors(6, "Quadro RTX 6000", &opts.model);
    opts.model.power.lag_s = 0;
    opts.model.power.window_s = opts.model.power.update_s / 2;
    opts.model.counter_true = true;
    if (meter_new(&opts, &b.m, NULL) < 0)
        b.m = NULL;
    run_until(&b, 33.4);
    meter_mark(b.m, b.now);
    double from = s_of_ns(b.now - START);
    run_until(&b, 560);
    meter_state(b.m, &s);
    ok(s.counter_used, "the counter is used");
    double j = energy(&b, 560);
    b.base += (uint64_t)(j / b.unit_j) - (uint64_t)(4 * j / b.unit_j);
    b.unit_j /= 4; /* it runs away */
    run_until(&b, 570);
    meter_state(b.m, &s);
    ok(!s.counter_used, "and then no more");
    double starts[] = {from, 44.3};
    for (size_t i = 0; i < n_elements(starts); i++) {
        struct meter_result r = window(&b, starts[i], 120);
        double want = between(&b, starts[i], 120);
        ok(r.method != METER_COUNTER && fabs(r.energy_j - want) <= r.half_j,
           "from %.1f s on: %.0f of %.0f J, +- %.0f", starts[i], r.energy_j, want,
           r.half_j);
        ok(r.half_j < 0.1 * want, "the interval is narrow");
    }
    meter_free(b.m);
}

/* A driver that tells old values for a while, counter and reading, and then the new ones:
 * the counter is right about that time, the readings know nothing.
 */
static void test_old_values(void)
{
    for (int many = 0; many < 2; many++) {
        struct bench b = bench_new(true);
        double t = 14;

        b.period = 6;
        run_until(&b, t);
        for (int i = 0; i < (many ? 80 : 1); i++) { /* more than there are events */
            b.counter_stuck = b.power_stuck = true;
            b.stuck_at = counter(&b, t);
            b.stuck_w = power(&b, t);
            run_until(&b, t + 8.3);
            b.counter_stuck = b.power_stuck = false;
            run_until(&b, t += 10.1);
        }
        check(&b, 5, t - 1, 0.005, METER_COUNTER, 0, "old values for a while");
        struct meter_result r = window(&b, 5, t - 5);
        double want = between(&b, 5, t - 5);
        ok(r.why & METER_WHY_GAP && fabs(r.energy_j - want) <= r.half_j,
           "a window that ends in it: %.0f of %.0f J, +- %.0f", r.energy_j, want,
           r.half_j);
        meter_free(b.m);
    }
}

/* Values that are old from the first poll on: nobody knows since when. */
static void test_old_at_first(void)
{
    for (int since = 1; since < 8; since++) {
        struct bench b = bench_new(true);
        struct meter_result r;

        b.counter_stuck = b.power_stuck = true;
        b.stuck_at = counter(&b, 10 - since);
        b.stuck_w = power(&b, 10 - since);
        b.now = START + ns_of_s(10);
        run_until(&b, 17);
        b.counter_stuck = b.power_stuck = false;
        run_until(&b, 60);
        r = window(&b, 10.3, 55);
        double want = between(&b, 10.3, 55);
        ok(r.method == METER_COUNTER && fabs(r.energy_j - want) <= r.half_j,
           "old for %d s at first: %.0f of %.0f J, +- %.0f", since, r.energy_j, want,
           r.half_j);
        meter_free(b.m);
    }
}

static void test_old(void)
{
    struct bench b = bench_new(true);

    run_until(&b, 20);
    meter_mark(b.m, START + ns_of_s(20.03));
    for (int i = 1; i <= 80; i++) { /* more than are kept */
        run_until(&b, 20 + 18 * i);
        meter_mark(b.m, b.now);
    }
    run_until(&b, 1500);
    check(&b, 20.03, 1480, 0.001, METER_COUNTER, 0, "a marked beginning stays exact");
    struct meter_result r = window(&b, 33.3, 1480);
    is_near(r.energy_j / between(&b, 33.3, 1480), 1, 0.01, "an unmarked one fades");
    ok(r.why & METER_WHY_COARSE, "and it is said");
    meter_free(b.m);
}

static void test_levels(void)
{
    struct bench b = bench_new(true);
    double w = 0;
    uw_error err;

    b.period = 4;
    run_until(&b, 20);
    is_int(meter_peak(b.m, START, START + 18 * NS_PER_S, &w, &err), 0, "peak");
    is_near(w, 250, 1, "the observed peak");
    is_int(meter_quantile(b.m, START, START + 18 * NS_PER_S, 0.02, &w, &err), 0,
           "quantile");
    is_near(w, 100, 1, "and the other end");
    is_int(meter_quantile(b.m, START, START, 0.5, &w, &err), -EINVAL, "no window");
    is_int(meter_quantile(b.m, START + NS_PER_S, START + NS_PER_S + 1, 0.5, &w, &err),
           -ENODATA, "nothing in it");
    meter_free(b.m);
}

/* W at t.  A part-time sensor looks at the last 25 of 100 ms.  Until 40.2 s it always
 * sees 200 W while the ticks differ, or sees differences that the rest of each tick makes
 * up for.
 */
static double blinked_w(double t, bool seen)
{
    double k = floor(t * 10), odd = fmod(k, 2), in = t * 10 - k;

    if (t >= 40.2)
        return 320;
    if (in < 0.75)
        return seen ? 500.0 / 3 + odd * 200 / 3 : 300 - 200 * odd;
    return seen ? 300 - 200 * odd : 200;
}

/* Up to 30 s only ticks, or only readings, tell that the counter is not fed by the
 * sensor. When both change there are too few of them to find out.
 */
static void test_blink(bool seen)
{
    struct meter_opts opts = {.seed = 1};
    struct meter *m = NULL;
    struct meter_state s;
    double e = 0, shown_j = 0, shown_w = 200;
    unsigned lost = 0;

    opts.model.power = (struct sensor){.update_s = 0.1, .window_s = 0.025, .lag_s = 0.02};
    opts.model.counter_update_s = 0.1;
    opts.model.counter_unit_j = 1e-3;
    if (!ok(meter_new(&opts, &m, NULL) == 0, "a meter"))
        return;
    for (int ms = 0; ms < 50000; ms++) {
        double t = ms * 1e-3;
        if (ms % 100 == 0)
            shown_j = e;
        if (ms % 100 == 20)
            shown_w = blinked_w(t - 0.03, seen) + ms / 100 % 2;
        e += blinked_w(t + 0.5e-3, seen) * 1e-3;
        if (ms % 10)
            continue;
        uint32_t read = t < 30 || ms % 400 == 0 ? METER_HAS_POWER : 0;
        struct meter_sample sample = {.has = METER_HAS_COUNTER | read,
                                      .power_began_ns = START + ns_of_s(t),
                                      .power_at_ns = START + ns_of_s(t + 1e-4),
                                      .power_w = shown_w,
                                      .counter_began_ns = START + ns_of_s(t),
                                      .counter_at_ns = START + ns_of_s(t + 1e-4),
                                      .counter = (uint64_t)(shown_j * 1e3)};
        (void)meter_feed(m, &sample, NULL);
        meter_state(m, &s);
        lost += t >= 20 && !s.counter_used;
    }
    ok(s.counter_proved && !s.counter_fed, "the counter is proved, and not fed");
    is_int(lost, 0, "%s that differ tell what it sums: it is used throughout",
           seen ? "readings" : "ticks");
    meter_free(m);
}

static void test_model(void)
{
    struct meter_opts opts = {.seed = 1};
    struct meter *m = NULL;
    char text[64];
    uw_error err;

    is_int(meter_new(&opts, &m, &err), -EINVAL, "a model of nothing is refused");
    ok(m == NULL, "and nothing is made");
    nvml_sensors(7, "NVIDIA A100-SXM4-80GB", &opts.model);
    is_near(opts.model.power.window_s, 0.025, 0, "an A100 looks 25 of 100 ms");
    nvml_sensors(7, "NVIDIA GeForce RTX 3090", &opts.model);
    is_near(opts.model.power.window_s, 0.1, 0, "its cousin all of them");
    opts.model.counter_unit_j = 0;
    is_int(meter_new(&opts, &m, &err), -EINVAL, "a counter without a unit");
    is_str(meter_why_text(METER_WHY_GAP | METER_WHY_STUCK, text, sizeof text),
           "gap, stuck", "flags by name");
    is_str(meter_why_text(0, text, sizeof text), "", "no flags");
    for (uint32_t why = METER_WHY_ALIAS; why <= METER_WHY_COARSE; why <<= 1)
        ok(meter_why_words(why) && strlen(meter_why_words(why)) < 78 &&
               meter_why_text(why, text, sizeof text)[0],
           "%s: %s", text, meter_why_words(why));
    ok(strstr(meter_why_words(METER_WHY_STUCK | METER_WHY_COARSE), "was stuck"),
       "of two the lower one's words");
    ok(!meter_why_words(0) && !meter_why_words(METER_WHY_COARSE << 1), "no other flag");
}

/* A short history says the same of what lies within it, forgets the rest, and keeps
 * little.
 */
static void test_history(void)
{
    struct bench b = bench_new(true), all = bench_new(true);
    struct meter_opts opts = {.seed = 3, .history_s = 60};
    static const double from[] = {545, 560, 595}, to[] = {590, 599, 598.5};

    meter_free(b.m);
    nvml_sensors(6, "Quadro RTX 6000", &opts.model);
    opts.model.power.lag_s = 0;
    if (meter_new(&opts, &b.m, NULL) < 0)
        b.m = NULL;
    run_until(&b, 600);
    run_until(&all, 600);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        struct meter_result r = window(&b, from[i], to[i]),
                            s = window(&all, from[i], to[i]);
        ok(r.energy_j > 0 && fabs(r.energy_j / s.energy_j - 1) < 1e-9 &&
               fabs(r.half_j / s.half_j - 1) < 1e-9,
           "a history of 60 s: %.1f s within it are the same", to[i] - from[i]);
    }
    ok(window(&b, 10, 50).energy_j < 0, "a history of 60 s: what is older is forgotten");
    check(&all, 10, 50, 0.01, METER_COUNTER, METER_WHY_COARSE, "a long history: is not");
    ok(b.m->c.at.room <= 2048 && b.m->at.room <= 2048 && b.m->chunks_room <= 64,
       "a history of 60 s: %zu points, %zu chunks are kept", b.m->c.at.room,
       b.m->chunks_room);
    struct meter *copy = meter_clone(b.m), *kept = b.m;
    double energy_j = window(&b, 560, 599).energy_j;
    b.m = copy;
    ok(copy && window(&b, 560, 599).energy_j == energy_j, "a clone says the same");
    b.m = kept;
    run_until(&b, 650);
    b.m = copy;
    ok(window(&b, 560, 599).energy_j == energy_j, "  whatever becomes of the other");
    meter_free(copy);
    b.m = kept;

    /* at rest, then quick again: the room grows back */
    meter_pace(b.m, 2 * NS_PER_S);
    run_until(&b, 1000);
    meter_pace(b.m, 50000000);
    run_until(&b, 1100);
    check(&b, 1045, 1095, 0.01, METER_COUNTER, 0, "after a rest");
    meter_free(b.m);
    meter_free(all.m);
}

/* The window's power over time: its sum, and at which times it was high. */
static void check_powers(struct bench *b, double from, double to, size_t room,
                         const char *name)
{
    struct meter_power p[2048];
    struct meter_result w = window(b, from, to);
    double j = 0, at = 0;
    size_t n = 0;
    bool touch = true;
    int r =
        meter_powers(b->m, START + ns_of_s(from), START + ns_of_s(to), p, room, &n, NULL);

    for (size_t i = 0; r == 0 && i < n; i++) {
        touch &= fabs(p[i].end_s - p[i].over_s - at) < 1e-6;
        at = p[i].end_s;
        j += p[i].power_w * p[i].over_s;
    }
    ok(r == 0 && n > 0 && n <= room, "%s: %zu means of %zu at most", name, n, room);
    ok(touch && fabs(at - (to - from)) < 1e-6, "%s: they follow each other", name);
    is_near(j / w.energy_j, 1, 1e-6, "%s: their sum", name);
}

static void test_powers(void)
{
    struct bench b = bench_new(true);
    struct meter_power p[64];
    size_t n = 0;
    double worst = 0;

    b.period = 4;
    is_int(meter_powers(b.m, START, START + 1, p, 64, &n, NULL), -ENODATA, "no sample");
    run_until(&b, 20);
    check_powers(&b, 5, 15, 2048, "10 s");
    check_powers(&b, 5.03, 5.77, 2048, "less than a second");
    check_powers(&b, 5, 15, 7, "seven");
    check_powers(&b, 5, 15, 1, "one");
    is_int(meter_powers(b.m, START, START + ns_of_s(90), p, 64, &n, NULL), -ENODATA,
           "beyond the samples");
    is_int(meter_powers(b.m, START + 5, START + 5, p, 64, &n, NULL), -EINVAL, "no time");
    is_int(meter_powers(b.m, START, START + 5, p, 0, &n, NULL), -EINVAL, "no room");
    is_int(meter_powers(b.m, START + ns_of_s(9), START + ns_of_s(13), p, 64, &n, NULL), 0,
           "a period of the load");
    for (size_t i = 0; i < n; i++) {
        double mid = fmod(9 + p[i].end_s - p[i].over_s / 2, b.period), edge = 2 - mid;
        double want = edge > 0 ? b.high : b.low;
        if (fabs(edge) > p[i].over_s && mid > p[i].over_s && b.period - mid > p[i].over_s)
            worst = fmax(worst, fabs(p[i].power_w - want));
    }
    ok(n >= 35 && worst < 20, "%zu means, off by %.0f W at most, of 250 and 100", n,
       worst);
    run_until(&b, 1200);
    check_powers(&b, 5, 1195, 2048, "20 min");
    check_powers(&b, 5, 300, 2048, "what is kept by chunks alone");
    check_powers(&b, 5, 1195, 40, "forty of 20 min");
    ok(meter_since(b.m) < START + ns_of_s(5), "all of it is known");
    meter_free(b.m);

    b = bench_new(false);
    run_until(&b, 20);
    check_powers(&b, 5, 15, 2048, "by readings");
    meter_free(b.m);
}

int main(void)
{
    test_blink(false);
    test_blink(true);
    test_model();
    test_history();
    test_plain();
    test_powers();
    test_order();
    test_wrap_reset();
    test_reset_in_call();
    test_gap();
    test_long_gap();
    test_stuck();
    test_unproved_late();
    test_old_values();
    test_old_at_first();
    test_old();
    test_levels();
    return done();
}
