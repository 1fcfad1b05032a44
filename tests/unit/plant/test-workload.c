/* Tables 2 and 3 of Krzywaniak, Czarnul, Proficz, "GPU power capping for
 * energy-performance trade-offs in training of deep convolutional neural networks
 * for image recognition", ICCS 2022: cap, energy and time of each row.
 */
#include "plant/workload.h"

#include <math.h>

#include "base/auto.h"
#include "tap.h"

enum target { REF, E, EDP, EDS20, EDS15, TARGETS };
static const char *const names[] = {"default", "E", "EDP", "EDS(2)", "EDS(1.5)"};

struct row {
    unsigned cap_w;
    double energy_kj, time_s;
};

/* clang-format off */
static const struct {
    const char *board, *name;
    struct row row[TARGETS];
} sweeps[] = {
    {"rtx6000", "alexnet",
     {{260, 3.288, 28.2}, {120, 2.336, 32.5}, {140, 2.427, 30.5}, {140, 2.427, 30.5},
      {140, 2.427, 30.5}}},
    {"rtx6000", "vgg19",
     {{260, 51.516, 220.5}, {135, 36.342, 286.4}, {165, 38.646, 251.2},
      {175, 39.734, 244.5}, {205, 43.686, 231.8}}},
    {"rtx6000", "inception3",
     {{260, 41.382, 184.4}, {125, 28.157, 244.9}, {155, 29.720, 212.6},
      {175, 31.668, 202.2}, {190, 33.346, 197.0}}},
    {"rtx6000", "inception4",
     {{260, 82.316, 348.9}, {125, 56.450, 474.0}, {160, 60.360, 402.6},
      {165, 61.202, 397.3}, {215, 71.921, 362.4}}},
    {"rtx6000", "resnet50",
     {{260, 27.068, 125.4}, {130, 18.264, 159.1}, {155, 19.323, 143.7},
      {160, 19.683, 141.2}, {200, 22.445, 132.1}}},
    {"rtx6000", "resnet152",
     {{260, 64.522, 280.2}, {130, 43.839, 362.0}, {170, 47.958, 309.2},
      {180, 49.471, 302.4}, {205, 53.645, 292.7}}},
    {"v100", "alexnet",
     {{300, 7.206, 39.7}, {150, 5.425, 45.4}, {155, 5.477, 44.9}, {165, 5.603, 43.9},
      {195, 6.091, 41.9}}},
    {"v100", "vgg19",
     {{300, 130.369, 492.5}, {150, 94.703, 658.6}, {180, 99.494, 583.5},
      {200, 105.181, 553.8}, {275, 122.194, 503.1}}},
    {"v100", "inception3",
     {{300, 104.941, 394.8}, {170, 75.608, 470.0}, {170, 75.608, 470.0},
      {210, 83.257, 427.0}, {245, 90.106, 410.2}}},
    {"v100", "inception4",
     {{300, 230.8, 845.1}, {150, 157.5, 1098.5}, {170, 166.602, 1024.4},
      {200, 181.532, 950.7}, {270, 213.249, 867.4}}},
    {"v100", "resnet50",
     {{300, 69.886, 266.4}, {150, 47.866, 339.0}, {180, 51.431, 308.4},
      {190, 53.430, 300.8}, {260, 63.002, 274.5}}},
    {"v100", "resnet152",
     {{300, 186.948, 683.0}, {150, 125.352, 875.3}, {185, 137.879, 782.1},
      {185, 137.879, 782.1}, {255, 165.032, 706.2}}},
};
/* clang-format on */

static double metric(enum target t, const struct plant_steady *at,
                     const struct plant_steady *ref)
{
    double e = at->energy_j / ref->energy_j, s = at->time_s / ref->time_s;
    double k = t == EDS20 ? 2 : 1.5;

    if (t == E)
        return e;
    return t == EDP ? e * s : (k - 1) / k * e + 1 / k * s;
}

static void sweep(size_t i)
{
    const struct plant_board *b = plant_board_find(sweeps[i].board);
    const struct plant_workload *w = plant_workload_find(b, sweeps[i].name);
    if (!ok(w && b->calibrated, "%s %s is there", sweeps[i].board, sweeps[i].name))
        return;
    struct plant_steady ref = plant_steady(b, w, b->default_mw);

    for (int t = REF; t < TARGETS; t++) {
        const struct row *row = &sweeps[i].row[t];
        struct plant_steady at = plant_steady(b, w, row->cap_w * 1000);
        const char *pair = sweeps[i].name;
        is_near(at.time_s / row->time_s, 1, 0.015, "%s %s, %s: time at %u W", b->key,
                pair, names[t], row->cap_w);
        is_near(at.energy_j / (row->energy_kj * 1e3), 1, 0.015,
                "%s %s, %s: energy at %u W", b->key, pair, names[t], row->cap_w);
        if (t == REF)
            continue;
        double best = INFINITY;
        for (uint32_t mw = b->min_mw; mw <= b->max_mw; mw += 5000) {
            struct plant_steady s = plant_steady(b, w, mw);
            best = fmin(best, metric((enum target)t, &s, &ref));
        }
        ok(metric((enum target)t, &at, &ref) / best <= 1.01,
           "%s %s: our own optimum of %s is no more than 1 %% better", b->key, pair,
           names[t]);
    }
}

static void curve(const struct plant_board *b)
{
    const struct plant_workload *w;
    size_t n = 0;

    for (; (w = plant_workload_at(b, n)); n++) {
        bool falls = true, meets = true, peaks = true;
        double before = INFINITY;
        for (uint32_t mw = b->min_mw; mw <= b->max_mw; mw += 5000) {
            struct plant_steady s = plant_steady(b, w, mw);
            falls = falls && s.time_s <= before;
            before = s.time_s;
            meets = meets && (s.active_w <= mw * 1e-3 || s.x <= b->xmin);
            peaks = peaks && s.power_w <= fmax(s.active_w, w->gap_w) + 1e-9;
        }
        ok(falls, "%s %s: more watts never cost time", b->key, w->name);
        ok(meets, "%s %s: the cap holds or the clock is at its floor", b->key, w->name);
        ok(peaks, "%s %s: the mean is not above the peak", b->key, w->name);
        struct plant_steady all = plant_steady(b, w, b->min_mw);
        struct plant_steady one = plant_steady_step(b, w, b->min_mw);
        is_near(one.time_s * w->steps, all.time_s, 1e-9 * all.time_s,
                "%s %s: an epoch is its steps, time", b->key, w->name);
        is_near(one.energy_j * w->steps, all.energy_j, 1e-9 * all.energy_j,
                "%s %s: an epoch is its steps, energy", b->key, w->name);
        ok(one.power_w == all.power_w, "%s %s: … and the same power", b->key, w->name);
    }
    is_int(n, 6, "%s has six workloads", b->key);
}

static void clock_floor(void)
{
    const struct plant_board *b = plant_board_find("v100");
    const struct plant_workload *w = plant_workload_find(b, "resnet50");

    ok(plant_clock_at(b, w, 1000) == 1, "power to spare: the highest clock");
    ok(plant_clock_at(b, w, 1) == b->xmin, "a cap under the floor: the lowest clock");
    ok(plant_active_w(w, b->xmin) > 1, "… and that cap is not obeyed");
    for (int i = 3; i < 20; i++) {
        double x = i / 20.0;
        is_near(plant_clock_at(b, w, plant_active_w(w, x)), x, 1e-9,
                "power of clock %.2f leads back to it", x);
    }
}

int main(void)
{
    size_t n;
    const struct plant_board *all = plant_boards(&n);

    is_int(n_elements(sweeps), 12, "twelve sweeps");
    for (size_t i = 0; i < n_elements(sweeps); i++)
        sweep(i);
    for (size_t i = 0; i < n; i++)
        curve(&all[i]);
    clock_floor();
    ok(!plant_board_find("v101"), "no such board");
    ok(!plant_workload_find(&all[0], "resnet51"), "no such workload");
    ok(plant_board_find("a100") && !plant_board_find("a100")->calibrated &&
           !plant_board_find("h100")->calibrated && !plant_board_find("b200")->calibrated,
       "boards without a published sweep are marked uncalibrated");
    ok(plant_sensor_generation("kepler") && !plant_sensor_generation("keppler"),
       "sensor generations have names");
    return done();
}
