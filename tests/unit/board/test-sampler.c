/* How often boards are read at each rate, and that energy stays right over changes. */
#include "board/sampler.h"

#include <stdlib.h>

#include "base/auto.h"
#include "base/names.h"
#include "base/units.h"
#include "tap.h"
#include "world.h"

static struct {
    struct world world;
    struct sampler *sampler;
    struct loop_child *child;
    struct sampler_window window;
    struct meter_result result;
} w;

static void wait_s(double s)
{
    world_wait_s(&w.world, s);
}

static int on_window(struct sampler *s, const struct sampler_window *window, void *user)
{
    (void)s;
    (void)user;
    w.window = *window;
    if (window->r == 0)
        w.result = window->board[0];
    loop_stop(w.world.loop, 0);
    return 0;
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    (void)child;
    (void)status;
    (void)user;
    return 0;
}

static bool begin(const char *model, double history_s)
{
    uw_error err = {{0}};

    memset(&w, 0, sizeof w);
    int r = world_new(&w.world, model, 1, 3, &err);
    if (r == 0)
        r = world_open_boards(&w.world, &err);
    struct board *b = w.world.boards ? boards_at(w.world.boards, 0) : NULL;
    struct sampler_opts opts = {.period_ns = 100 * NS_PER_MS, .history_s = history_s};
    if (r == 0)
        r = sampler_new(w.world.loop, &b, 1, &opts, &w.sampler, &err);
    return ok(r == 0, "%s: a board %s", model, err.text);
}

static void end(void)
{
    loop_child_free(w.child);
    sampler_free(w.sampler);
    world_close(&w.world);
}

static void train(void)
{
    const char *argv[] = {"underwatt-sim", "train", "--workload", "resnet50",
                          "--epochs",      "1000",  NULL};
    struct loop_child_opts opts = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    uw_error err = {{0}};

    ok(loop_child_new(w.world.loop, &opts, on_exit_of, NULL, &w.child, &err) == 0,
       "a job begins %s", err.text);
}

/* Samples a second over the next s seconds. */
static double count(double s)
{
    uint64_t before = sampler_calls(w.sampler);

    wait_s(s);
    return (double)(sampler_calls(w.sampler) - before) / s;
}

static double limits_age(void)
{
    return s_between(sampler_board(w.sampler, 0)->limits.at_ns,
                     loop_now_ns(w.world.loop));
}

struct heard {
    unsigned power, energy;
};

static void on_sample(size_t board, const struct gpu_sample *s, void *user)
{
    struct heard *h = user;
    (void)board;

    h->power += (s->has & (GPU_HAS_POWER | GPU_HAS_INSTANT)) != 0;
    h->energy += (s->has & GPU_HAS_ENERGY) != 0;
}

static void rates(const char *model, double allowed)
{
    double rest, job, search, age = 0;

    if (!begin(model, 180)) {
        end();
        return;
    }
    wait_s(10); /* it learns its sensors */
    sampler_rate(w.sampler, 0, SAMPLER_REST, false);
    wait_s(3);
    uint64_t from = loop_now_ns(w.world.loop);
    double true_j = virtual_world_true_j(w.world.sim, 0);
    rest = count(40);
    ok(rest >= 0.8 && rest <= 1.15, "%s: at rest %.2f samples a second", model, rest);
    for (int i = 0; i < 12; i++) {
        wait_s(1);
        age = fmax(age, limits_age());
    }
    ok(age > 5 && age < 12, "%s: limits are up to %.1f s old", model, age);
    sampler_rate(w.sampler, 0, SAMPLER_REST, true);
    wait_s(3);
    age = limits_age();
    wait_s(1);
    age = fmax(age, limits_age());
    ok(age < 3.6, "%s: … of a board that is capped %.1f s", model, age);
    const struct sampler_now *now = sampler_board(w.sampler, 0);
    ok(now->last.has & GPU_HAS_TEMP && now->last.has & GPU_HAS_POWER &&
           now->last.has & GPU_HAS_CLOCKS,
       "%s: what a round left out is known from before", model);

    train();
    sampler_rate(w.sampler, 0, SAMPLER_JOB, false);
    wait_s(10);
    job = count(20);
    ok(job >= 8.5 && job <= 14, "%s: with a job %.2f samples a second", model, job);
    ok(limits_age() < 2.6, "%s: limits are %.1f s old", model, limits_age());
    sampler_rate(w.sampler, 0, SAMPLER_SEARCH, false);
    search = count(20);
    ok(search >= 8.5 && search <= 14, "%s: in a search %.2f", model, search);
    (void)loop_child_kill(w.child, 15);
    wait_s(5);
    sampler_rate(w.sampler, 0, SAMPLER_REST, false);
    wait_s(10);
    uint64_t to = loop_now_ns(w.world.loop);
    true_j = virtual_world_true_j(w.world.sim, 0) - true_j;
    ok(sampler_window(w.sampler, from, to, on_window, NULL) == 0, "%s: a window", model);
    wait_s(10);
    ok(w.window.r == 0 && fabs(w.result.energy_j / true_j - 1) <= allowed,
       "%s: over all rates %.0f J of %.0f J (%+.2f %%, %s)", model, w.result.energy_j,
       true_j, 100 * (w.result.energy_j / true_j - 1),
       names_word(NAMES_METER_METHOD, w.result.method));
    ok(fabs(w.result.energy_j - true_j) <= w.result.half_j,
       "%s: the interval holds it (+- %.0f J)", model, w.result.half_j);
    end();
}

/* In a search a board whose power stands for steps is read more often. */
static void listens(const char *model)
{
    struct heard h = {0};
    struct sampler_ear ear = {.fn = on_sample, .user = &h};

    if (!begin(model, 180)) {
        end();
        return;
    }
    train();
    sampler_rate(w.sampler, 0, SAMPLER_SEARCH, false);
    wait_s(20);
    double before = count(20);
    sampler_hear(w.sampler, 0, &ear);
    double heard = count(20);
    sampler_listen(w.sampler, 0, &ear, true);
    h = (struct heard){0};
    wait_s(20);
    ok(h.power >= 18 * 20 && h.energy >= 18 * 20,
       "%s: while it is listened to, power is read %u and energy %u times in 20 s", model,
       h.power, h.energy);
    sampler_listen(w.sampler, 0, &ear, false);
    double after = count(20);
    ok(heard <= 14 && after <= 14 && before <= 14,
       "%s: %.2f a second before, %.2f overheard, %.2f after", model, before, heard,
       after);
    sampler_deaf(w.sampler, 0, &ear);
    end();
}

/* The error of windows of ten seconds with marks at their ends: root of the mean square,
 * as a part of the energy.
 */
static double measured(void)
{
    enum { WINDOWS = 20 };
    double sum2 = 0;

    for (int i = 0; i < WINDOWS; i++) {
        uint64_t from = loop_now_ns(w.world.loop);
        double true_j = virtual_world_true_j(w.world.sim, 0);
        sampler_mark(w.sampler, from);
        wait_s(10 + 0.037 * i);
        uint64_t to = loop_now_ns(w.world.loop);
        true_j = virtual_world_true_j(w.world.sim, 0) - true_j;
        sampler_mark(w.sampler, to);
        (void)sampler_window(w.sampler, from, to, on_window, NULL);
        wait_s(3);
        if (w.window.r < 0)
            return INFINITY;
        sum2 += pow(w.result.energy_j / true_j - 1, 2) / WINDOWS;
    }
    return sqrt(sum2);
}

/* A counter whose calls take milliseconds gets a fiftieth of the time. */
static void costly(const char *model)
{
    struct heard h = {0};
    struct sampler_ear ear = {.fn = on_sample, .user = &h, .overhears = true};

    if (!begin(model, 180)) {
        end();
        return;
    }
    train();
    sampler_rate(w.sampler, 0, SAMPLER_SEARCH, false);
    wait_s(60);
    double cheap = measured();
    virtual_world_set_counter_ns(w.world.sim, 4 * NS_PER_MS);
    wait_s(5);
    sampler_hear(w.sampler, 0, &ear);
    h = (struct heard){0};
    wait_s(100);
    ok(h.energy >= 300 && h.energy <= 500,
       "%s: a counter of 4 ms is read %u times in 100 s", model, h.energy);
    double dear = measured();
    ok(cheap < 0.002 && dear < 0.0025,
       "%s: windows with marks are off by %.3f %%, before %.3f %%", model, 100 * dear,
       100 * cheap);
    ear.overhears = false;
    sampler_listen(w.sampler, 0, &ear, true);
    wait_s(5);
    h = (struct heard){0};
    wait_s(40);
    ok(h.energy >= 120 && h.energy <= 200,
       "%s: with a listener the counter is read %u times in 40 s", model, h.energy);
    ok(h.power >= 16 * 40, "%s: and power %u times", model, h.power);
    virtual_world_set_counter_ns(w.world.sim, 0);
    wait_s(5);
    h = (struct heard){0};
    wait_s(20);
    ok(h.energy >= 18 * 20, "%s: a counter that costs nothing again: %u times in 20 s",
       model, h.energy);
    sampler_deaf(w.sampler, 0, &ear);
    end();
}

/* Several rounds are one call.  If one of them fails, those after it are not made: what
 * they were to read is read with the next round, a second later.
 */
static void fails(const char *model)
{
    struct sim_fault fault = {.kind = SIM_FAULT_K_LOST, .for_ns = 120 * NS_PER_MS};
    unsigned failures = 0;
    double age = 0;

    if (!begin(model, 0)) {
        end();
        return;
    }
    wait_s(10);
    sampler_rate(w.sampler, 0, SAMPLER_SEARCH, false);
    wait_s(10);
    for (int i = 0; i < 10; i++) {
        unsigned failed = 0;
        wait_s(fmax(0.001, 2.87 - limits_age())); /* the round before the limits' one */
        (void)virtual_world_fault(w.world.sim, &fault, NULL);
        for (int k = 0; k < 50; k++) {
            wait_s(0.1);
            age = fmax(age, limits_age());
            failed |= sampler_board(w.sampler, 0)->failures;
        }
        failures += failed > 0;
        wait_s(0.37);
    }
    ok(failures == 10, "%s: %u of 10 faults hit a round", model, failures);
    ok(age < 4.8, "%s: limits are %.1f s old at most, 3 s without a fault", model, age);
    end();
}

/* Commands see everything once a second, as ever. */
static void all(void)
{
    if (!begin("v100", 0)) {
        end();
        return;
    }
    wait_s(10);
    double n = count(20);
    ok(n > 15 && n < 60, "all: %.1f samples a second", n);
    ok(limits_age() < 1.3, "all: limits %.1f s old", limits_age());
    end();
}

int main(void)
{
    rates("v100", 0.005);
    rates("h100", 0.01);
    rates("rtx6000", 0.01);
    rates("a100", 0.03);
    listens("v100");
    listens("rtx6000");
    costly("h100");
    costly("v100");
    fails("v100");
    all();
    return done();
}
