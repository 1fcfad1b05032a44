/* Readings and counters against values worked out by hand from the phase. */
#include "plant/sensor.h"

#include <math.h>
#include <stdlib.h>

#include "base/units.h"
#include "plant/gpu.h"
#include "tap.h"

#define START (50 * NS_PER_S)
#define AT(s) (START + ns_of_s(s))

/* A board whose heat and caps stay out of it. */
static struct plant_gpu *board_of(const char *generation, struct plant_gpu_opts o)
{
    struct plant_board b = *plant_board_find("v100");
    struct plant_gpu *g = NULL;

    b.sensor = *plant_sensor_generation(generation);
    b.leak_per_k = 0;
    o.board = &b;
    o.start_ns = START;
    (void)plant_gpu_new(&o, &g, NULL);
    return g;
}

static void hold(struct plant_gpu *g, double w)
{
    plant_gpu_set_load(g, &(struct plant_load){.activity = PLANT_HOLD, .hold_w = w});
}

static double instant(struct plant_gpu *g)
{
    struct plant_reading r;
    plant_gpu_read(g, &r);
    return (plant_gpu_board(g)->sensor.has_instant ? r.instant_mw : r.power_mw) * 1e-3;
}

/* 100 W, and from the middle of a window on 300 W. */
static void window(const char *generation)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of(generation, (struct plant_gpu_opts){.ideal = true, .seed = 5});
    const struct plant_sensor_spec *s = &plant_gpu_board(g)->sensor;
    const struct plant_sensor_error *e = plant_gpu_sensor_error(g);

    hold(g, 100);
    uint64_t end = START + e->phase_ns + 60 * s->period_ns;
    plant_gpu_advance(g, end - s->window_ns / 4);
    hold(g, 300);
    plant_gpu_advance(g, end + s->lag_ns - 1);
    is_near(instant(g), 100, 0.01, "%s: just before the update: the old power",
            generation);
    plant_gpu_advance(g, end + s->lag_ns);
    is_near(instant(g), 150, 0.01, "%s: a quarter of the window at 300 W", generation);
    plant_gpu_advance(g, end + s->lag_ns + s->period_ns - 1);
    is_near(instant(g), 150, 0.01, "%s: … until the next update", generation);
    plant_gpu_advance(g, end + s->lag_ns + s->period_ns);
    is_near(instant(g), 300, 0.01, "%s: then the new power", generation);
    if (!s->has_average)
        return;
    struct plant_reading r;
    plant_gpu_read(g, &r);
    double share = s_of_ns(s->window_ns / 4 + s->period_ns);
    is_near(r.average_mw * 1e-3, 100 + 200 * share, 0.01, "%s: the second's average",
            generation);
    ok(r.power_mw == (s->plain == PLANT_PLAIN_AVERAGE ? r.average_mw : r.instant_mw),
       "%s: the plain reading is the one of the generation", generation);
}

static void unseen(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("ga100", (struct plant_gpu_opts){.ideal = true, .seed = 9});
    const struct plant_sensor_error *e = plant_gpu_sensor_error(g);
    uint64_t end = START + e->phase_ns + 2000 * NS_PER_MS;

    /* 300 W between the windows, 100 W within them. */
    for (int k = 0; k < 20; k++) {
        plant_gpu_advance(g, end);
        hold(g, 300);
        plant_gpu_advance(g, end + 75 * NS_PER_MS);
        hold(g, 100);
        end += 100 * NS_PER_MS;
    }
    plant_gpu_advance(g, end + 50 * NS_PER_MS);
    is_near(instant(g), 100, 0.01, "power between the windows is not seen");
    uint64_t mj = plant_gpu_read_energy_mj(g);
    plant_gpu_advance(g, end + 5050 * NS_PER_MS);
    is_near((double)(plant_gpu_read_energy_mj(g) - mj) * 1e-3, 500, 0.01,
            "the counter of what was seen: 5 s at 100 W");
    double seen = (double)mj * 1e-3, idle = plant_gpu_board(g)->idle_w;
    double before = s_of_ns(e->phase_ns + 2100 * NS_PER_MS) * idle;
    is_near(seen, before + 20 * 10, 0.1 * idle + 10,
            "… and twenty times 0.1 s at 100 W, true were 250 W");
    ok(plant_gpu_energy_j(g) > seen + 500 + 250, "… which the truth is not");
}

static void log_response(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("kepler", (struct plant_gpu_opts){.ideal = true});

    hold(g, 100);
    plant_gpu_advance(g, AT(10));
    hold(g, 300);
    plant_gpu_advance(g, AT(10.02 + 0.2));
    double w = instant(g);
    ok(w > 100 + 200 * (1 - exp(-0.170 / 0.2)) - 4 &&
           w < 100 + 200 * (1 - exp(-0.210 / 0.2)) + 4,
       "Kepler: 63 %% of a step after 200 ms: %.0f W", w);
    plant_gpu_advance(g, AT(12));
    is_near(instant(g), 300, 0.5, "… all of it in the end");
}

/* The true counter, wherever one looks between its edges. */
static void counter(const char *generation)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of(generation, (struct plant_gpu_opts){.seed = 21});
    const struct plant_sensor_spec *s = &plant_gpu_board(g)->sensor;
    const struct plant_sensor_error *e = plant_gpu_sensor_error(g);
    struct plant_load l =
        plant_load_train(plant_workload_find(plant_gpu_board(g), "resnet50"));
    uint64_t edges = 0, last = 0, wrong = 0;

    plant_gpu_set_load(g, &l);
    for (uint64_t ms = 1000; ms <= 3000; ms++) {
        uint64_t at = START + ms * NS_PER_MS;
        plant_gpu_advance(g, at);
        uint64_t mj = plant_gpu_read_energy_mj(g);
        uint64_t k = (at - START - e->counter_phase_ns) / s->counter_period_ns;
        uint64_t edge = START + e->counter_phase_ns + k * s->counter_period_ns;
        double want = plant_gpu_energy_at_j(g, edge) * e->gain * 1e3;
        wrong += fabs((double)mj - want) > 1;
        edges += mj != last && ms > 1000;
        last = mj;
    }
    is_int(wrong, 0, "%s: the counter is gain x true energy at its last edge",
           generation);
    is_near((double)edges, 2000.0 * NS_PER_MS / (double)s->counter_period_ns, 1,
            "%s: it moves once a period", generation);
}

static void counter_faults(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("volta", (struct plant_gpu_opts){.ideal = true});

    hold(g, 200);
    plant_gpu_set_cap(g, 200000);
    plant_gpu_advance(g, AT(10));
    plant_gpu_stick_counter(g, true);
    uint64_t stuck = plant_gpu_read_energy_mj(g);
    plant_gpu_advance(g, AT(15));
    ok(plant_gpu_read_energy_mj(g) == stuck, "a stuck counter stands still");
    plant_gpu_stick_counter(g, false);
    is_near((double)plant_gpu_read_energy_mj(g), 3000e3, 21e3,
            "… and jumps to where it belongs");
    hold(g, 100);
    plant_gpu_advance(g, AT(16));

    plant_gpu_reload(g);
    is_int(plant_gpu_cap_mw(g), 300000, "a reload forgets the cap");
    ok(plant_gpu_read_energy_mj(g) == 0, "… and the counter");
    plant_gpu_advance(g, AT(26));
    is_near((double)plant_gpu_read_energy_mj(g), 1000e3, 11e3, "… which begins anew");
    is_near(plant_gpu_energy_j(g), 15 * 200 + 11 * 100, 1e-6,
            "the truth knows no reload");
}

static void no_counter(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("pascal", (struct plant_gpu_opts){0});
    plant_gpu_advance(g, AT(10));
    ok(plant_gpu_read_energy_mj(g) == 0, "Pascal has no counter");
}

static void gains(void)
{
    double sum = 0, squares = 0, worst = 0;
    enum { N = 400 };

    for (uint64_t seed = 0; seed < N; seed++) {
        auto_(plant_gpu_free) struct plant_gpu *g =
            board_of("turing", (struct plant_gpu_opts){.seed = seed});
        const struct plant_sensor_error *e = plant_gpu_sensor_error(g);
        sum += e->gain - 1;
        squares += (e->gain - 1) * (e->gain - 1);
        worst = fmax(worst, fabs(e->gain - 1));
        if (seed)
            continue;
        hold(g, 200);
        double readings = 0;
        for (int k = 0; k < 500; k++) {
            plant_gpu_advance(g, AT(1 + k * 0.1));
            readings += plant_gpu_read_power_mw(g) * 1e-3 / 500;
        }
        is_near(readings, 200 * e->gain + e->offset_w, 0.1,
                "noise averages out to gain x truth + offset");
        uint32_t a = plant_gpu_read_power_mw(g);
        plant_gpu_advance(g, AT(1 + 500 * 0.1));
        ok(plant_gpu_read_power_mw(g) != a, "… but each reading has its own");
    }
    is_near(sum / N, 0, 0.003, "gains are right on average");
    is_near(sqrt(squares / N), 0.02, 0.003, "… spread by 2 %%");
    ok(worst <= 0.05 + 1e-12, "… and within 5 %%");
}

/* A year that nobody looked at costs what a second does, and sums up. */
static void long_blind(void)
{
    auto_(plant_gpu_free) struct plant_gpu *g =
        board_of("ga100", (struct plant_gpu_opts){.ideal = true, .coarse = true});
    struct plant_load l =
        plant_load_train(plant_workload_find(plant_gpu_board(g), "vgg19"));

    plant_gpu_set_load(g, &l);
    plant_gpu_advance(g, START + 30ull * 86400 * NS_PER_S);
    is_near((double)plant_gpu_read_energy_mj(g) * 1e-3 / plant_gpu_energy_j(g), 1, 0.01,
            "a month unseen: the part-time counter is right on average");
}

int main(void)
{
    static const char *const boxcars[] = {"volta", "turing", "ga100", "ampere", "hopper"};

    for (size_t i = 0; i < n_elements(boxcars); i++)
        window(boxcars[i]);
    unseen();
    log_response();
    counter("volta");
    counter("turing");
    counter_faults();
    no_counter();
    gains();
    long_blind();
    return done();
}
