/* A board under a limit on its temperature while the air becomes 10 K warmer and cooler
 * again: what the board and the limit's cap do, as a picture (an SVG), and the most by
 * which the temperature went above the limit.
 *
 *     limits FILE [BOARD] [LIMIT_C]        v100, 65
 *
 * Simulated: the board's model, and the controller of core/policy/heat.h, which reads
 * whole degrees each second.  docs/limits.svg is made by it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "chart/chart.h"
#include "core/policy/heat.h"
#include "plant/plant.h"

enum { SECONDS = 7200, WARM_FROM = 1800, WARM_TO = 5400, EACH = 5 };
#define WORKLOAD "resnet50"
#define WARMER_K 10.0

struct trace {
    const struct plant_board *board;
    double limit_c;
    double temp_c[SECONDS], cap_w[SECONDS], air_c[SECONDS];
    double over_k;
};

static bool play(struct trace *t)
{
    auto_(plant_gpu_free) struct plant_gpu *gpu = NULL;
    const struct plant_board *b = t->board;
    struct plant_gpu_opts opts = {.board = b, .seed = 1, .start_ns = NS_PER_S};
    struct plant_load load = plant_load_train(plant_workload_find(b, WORKLOAD));
    struct heat heat = {0};

    if (plant_gpu_new(&opts, &gpu, NULL) < 0)
        return false;
    plant_gpu_set_load(gpu, &load);
    t->over_k = -99;
    for (unsigned s = 0; s < SECONDS; s++) {
        uint64_t now_ns = NS_PER_S * (s + 2);
        double was_j = plant_gpu_energy_j(gpu);
        struct plant_reading r;
        t->air_c[s] = b->ambient_c + (s >= WARM_FROM && s < WARM_TO ? WARMER_K : 0);
        plant_gpu_set_ambient(gpu, t->air_c[s]);
        plant_gpu_advance(gpu, now_ns);
        plant_gpu_read(gpu, &r);
        struct heat_now now = {.known = true,
                               .temp_c = r.temp_c,
                               .limit_c = t->limit_c,
                               .power_w = plant_gpu_energy_j(gpu) - was_j,
                               .slowed = r.reasons & PLANT_REASON_POWER_CAP,
                               .in_force_mw = plant_gpu_cap_mw(gpu),
                               .min_mw = b->min_mw,
                               .default_mw = b->default_mw,
                               .top_mw = b->default_mw,
                               .open_mw = b->default_mw};
        (void)heat_step(&heat, &now, now_ns);
        plant_gpu_set_cap(gpu, heat.cap_mw ? heat.cap_mw : b->default_mw);
        t->temp_c[s] = plant_gpu_temp_c(gpu);
        t->cap_w[s] = w_of_mw(plant_gpu_cap_mw(gpu));
        t->over_k = fmax(t->over_k, t->temp_c[s] - t->limit_c);
    }
    return true;
}

static void curve(struct canvas *c, const struct frame *f, const double *value,
                  struct pen pen)
{
    for (unsigned s = 0; s < SECONDS; s += EACH)
        canvas_to(c, frame_spot(f, s / 60.0, value[s]));
    canvas_stroke(c, false, pen);
}

static void draw(struct canvas *c, const void *user)
{
    const struct trace *t = user;
    const struct plant_board *b = t->board;
    char title[120];
    struct frame f = {.box = {70, 50, 660, 190},
                      .x = axis_over(0, SECONDS / 60.0, 8, true),
                      .y = axis_over(b->ambient_c, t->limit_c + 5, 6, false),
                      .title = title,
                      .y_name = "°C"};
    const struct pen temp = pen_line(INK_EDS15, 1.8), air = pen_line(INK_ENERGY, 1.4),
                     cap = pen_line(INK_EDP, 1.8);
    struct pen limit = pen_line(INK_TEXT, 1.2);

    limit.dash = 5;
    canvas_box(c, (struct box){0, 0, canvas_width(c), 540}, 0, pen_fill(INK_PAPER));
    (void)snprintf(title, sizeof title, "%s under %g °C (simulated)", b->name,
                   t->limit_c);
    frame_draw(c, &f);
    curve(c, &f, t->air_c, air);
    canvas_line(c, frame_spot(&f, 0, t->limit_c),
                frame_spot(&f, SECONDS / 60.0, t->limit_c), limit);
    curve(c, &f, t->temp_c, temp);
    double x = f.box.x + 30;
    const struct key keys[] = {{"board", KEY_LINE, temp},
                               {"the limit", KEY_LINE, limit},
                               {"air", KEY_LINE, air},
                               {"power limit in force", KEY_LINE, cap}};
    f = (struct frame){
        .box = {70, 290, 660, 170},
        .x = axis_over(0, SECONDS / 60.0, 8, true),
        .y = axis_over(w_of_mw(b->min_mw), w_of_mw(b->default_mw), 5, false),
        .x_name = "minutes",
        .y_name = "W",
        .x_ticks = true};
    frame_draw(c, &f);
    curve(c, &f, t->cap_w, cap);
    for (size_t i = 0; i < n_elements(keys); i++)
        x = chart_key(c, x, 520, &keys[i]) + 50;
}

int main(int argc, char **argv)
{
    static struct trace t;
    const struct sheet sheet = {CANVAS_SVG, 760, 540, "A board under a limit"};
    uw_error err = {""};

    t.board = plant_board_find(argc > 2 ? argv[2] : "v100");
    t.limit_c = 65;
    if (argc < 2 || !t.board ||
        (argc > 3 && parse_double(argv[3], &t.limit_c, &err) < 0)) {
        (void)fprintf(stderr, "limits FILE [BOARD] [LIMIT_C] %s\n", err.text);
        return 2;
    }
    FILE *to = play(&t) ? fopen(argv[1], "we") : NULL;
    int r = to ? canvas_write(to, &sheet, draw, &t, &err) : -EIO;
    if (to && fclose(to) != 0)
        r = -EIO;
    canvas_forget_fonts();
    if (r < 0) {
        (void)fprintf(stderr, "limits: %s: %s\n", argv[1], err.text);
        return 1;
    }
    printf("%s: %+.2f K above %g C at most\n", t.board->key, t.over_k, t.limit_c);
    return 0;
}
