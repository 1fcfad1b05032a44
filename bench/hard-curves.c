/* Curves that are hard to search, generated: for bench/search, on stdout.
 *
 *   hard-curves [--seed S] [--each N] [--class NAME]
 *
 * A job is c of its time on a clock f and 1 - c off it (memory, network), with
 * power idle + dynamic f^a, and the board takes the highest clock whose power the
 * cap allows; caps below the lowest clock's power change nothing.  Ranges are
 * those of boards of 200 to 1,800 W.  Classes (N curves each, 20 unless told):
 *
 *   plain    nothing else
 *   flat     caps hardly bite: 2 to 20 % of the time is on the clock
 *   steep    all of it is, and most of the power is static
 *   pauses   10 to 40 % of the time between steps, at low power
 *   knee     time rises like a cliff below some cap
 *   deaf     the board obeys no cap below some, high, cap
 *   jump     another regime below some cap: time and power jump
 *   dip      time is 2 to 8 % longer or shorter about one cap
 *   grain    limits come in steps of 5, 10 or 25 W: the curve is a stair
 *   rough    8 to 12 rows, each off by about 1.5 %, as old recordings are
 *
 * Of a dip or rough rows nothing else tells: what a search of few caps can reach
 * there is a matter of luck, too.  Other seeds give other curves.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"

enum { ROWS = 60, EACH_MAX = 900 };

struct job {
    double min_w, max_w;
    double demand_w;     /* at the highest clock, during work */
    double fixed, power; /* static share of demand_w; exponent of the rest */
    double clocked;      /* share of the time that depends on the clock */
    double least_clock;
    double pause, pause_power; /* share of the time; share of demand_w */
    double at_w, by;           /* knee, jump, dip: position and size */
    double by_power, wide_w;
    double grain_w;
    double scatter;
    int rows;
};

static double between(struct rng *g, double lo, double hi)
{
    return lo + (hi - lo) * rng_uniform(g);
}

static void draw_plain(struct job *j, struct rng *g)
{
    static const double tops[] = {200, 250, 300, 350,  400,  450,  575,
                                  600, 700, 750, 1000, 1200, 1400, 1800};
    j->max_w = tops[rng_below(g, n_elements(tops))];
    j->min_w = round(j->max_w * between(g, 0.2, 0.5));
    j->demand_w = j->max_w * between(g, 0.72, 1.15);
    j->fixed = between(g, 0.15, 0.4);
    j->power = between(g, 1.8, 3);
    j->clocked = between(g, 0.3, 0.95);
    j->least_clock = between(g, 0.1, 0.35);
    j->pause = between(g, 0, 0.05);
    j->pause_power = between(g, 0.2, 0.5);
    j->rows = ROWS;
}

static void draw_flat(struct job *j, struct rng *g)
{
    j->clocked = between(g, 0.02, 0.2);
    j->demand_w = j->max_w * between(g, 0.4, 0.9);
}

static void draw_steep(struct job *j, struct rng *g)
{
    j->clocked = between(g, 0.9, 1);
    j->fixed = between(g, 0.45, 0.65);
    j->power = between(g, 1.2, 1.8);
}

static void draw_pauses(struct job *j, struct rng *g)
{
    j->pause = between(g, 0.1, 0.4);
}

static double busy_w(const struct job *j)
{
    return fmin(j->demand_w, j->max_w);
}

static void draw_knee(struct job *j, struct rng *g)
{
    j->at_w = busy_w(j) * between(g, 0.55, 0.85);
    j->by = between(g, 1, 8);
}

static void draw_deaf(struct job *j, struct rng *g)
{
    j->least_clock = between(g, 0.5, 0.85);
}

static void draw_jump(struct job *j, struct rng *g)
{
    j->at_w = busy_w(j) * between(g, 0.5, 0.95);
    j->by = between(g, -0.06, 0.16);
    j->by_power = between(g, -0.05, 0.05);
}

static void draw_dip(struct job *j, struct rng *g)
{
    j->at_w = busy_w(j) * between(g, 0.55, 1);
    j->by = between(g, 0.02, 0.08) * (rng_below(g, 2) ? 1 : -1);
    j->wide_w = busy_w(j) * between(g, 0.03, 0.08);
}

static void draw_grain(struct job *j, struct rng *g)
{
    static const double grains[] = {5, 10, 25};
    j->grain_w = grains[rng_below(g, n_elements(grains))];
    j->rows = 240;
}

static void draw_rough(struct job *j, struct rng *g)
{
    j->scatter = between(g, 0.01, 0.02);
    j->rows = 8 + (int)rng_below(g, 5);
}

static const struct class
{
    const char *name;
    void (*draw)(struct job *j, struct rng *g);
} classes[] = {
    {"plain", NULL},         {"flat", draw_flat}, {"steep", draw_steep},
    {"pauses", draw_pauses}, {"knee", draw_knee}, {"deaf", draw_deaf},
    {"jump", draw_jump},     {"dip", draw_dip},   {"grain", draw_grain},
    {"rough", draw_rough},
};

static double power_at(const struct job *j, double clock)
{
    return j->demand_w * (j->fixed + (1 - j->fixed) * pow(clock, j->power));
}

static double clock_at(const struct job *j, double cap_w)
{
    double rest = (cap_w / j->demand_w - j->fixed) / (1 - j->fixed);
    return fmin(fmax(pow(fmax(rest, 1e-6), 1 / j->power), j->least_clock), 1);
}

/* Time and energy of a step that takes 1 s at the highest clock. */
static void values(const struct job *j, double cap_w, double *ret_t, double *ret_e)
{
    double cap = j->grain_w > 0 ? floor(cap_w / j->grain_w + 1e-9) * j->grain_w : cap_w;
    double f = clock_at(j, cap), p = power_at(j, f);
    double t = (1 - j->pause) * (1 - j->clocked + j->clocked / f);

    if (j->wide_w > 0)
        t *= 1 + j->by * exp(-0.5 * pow((cap - j->at_w) / j->wide_w, 2));
    else if (j->by_power < 0 || j->by_power > 0)
        t *= cap < j->at_w ? 1 + j->by : 1;
    else if (j->at_w > 0)
        t *= 1 + j->by * pow(fmax(0, j->at_w - cap) / j->at_w, 1.5);
    if (cap < j->at_w)
        p *= 1 + j->by_power;
    *ret_t = t + j->pause;
    *ret_e = t * p + j->pause * fmin(j->pause_power * j->demand_w, p);
}

static void print_curve(const struct class *c, unsigned no, struct rng *g)
{
    struct job j = {0};
    double last = 0;

    draw_plain(&j, g);
    if (c->draw)
        c->draw(&j, g);
    for (int i = 0; i < j.rows; i++) {
        double t, e;
        double cap = round(j.max_w - i * (j.max_w - j.min_w) / (j.rows - 1));
        if (i > 0 && cap > last - 0.5)
            continue;
        last = cap;
        values(&j, cap, &t, &e);
        t *= 1 + j.scatter * rng_normal(g);
        e *= 1 + j.scatter * rng_normal(g);
        (void)printf("hard/%s/%u,%g,%.9g,%.9g\n", c->name, no, cap, t, e);
    }
}

static int usage(const uw_error *err)
{
    (void)fprintf(stderr,
                  "hard-curves: %s\n"
                  "usage: hard-curves [--seed S] [--each N] [--class NAME]\n",
                  err->text);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {{"seed", required_argument, NULL, 's'},
                                          {"each", required_argument, NULL, 'n'},
                                          {"class", required_argument, NULL, 'c'},
                                          {0}};
    uint64_t seed = 1, each = 20;
    const char *only = NULL;
    uw_error err = {""};
    int c, r = 0;

    while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0 && r == 0) {
        if (c == 's')
            r = parse_u64(optarg, &seed, &err);
        else if (c == 'n')
            r = parse_u64(optarg, &each, &err);
        else if (c == 'c')
            only = optarg;
        else
            r = fail(&err, -EINVAL, "see the usage");
    }
    if (r == 0 && (optind < argc || each < 1 || each > EACH_MAX))
        r = fail(&err, -EINVAL,
                 "--each %" PRIu64 " is outside 1..%d, or an argument too many", each,
                 EACH_MAX);
    if (r < 0)
        return usage(&err);

    (void)puts("curve,cap_w,time_s,energy_j");
    for (size_t k = 0; k < n_elements(classes); k++)
        for (unsigned i = 0; i < each; i++) {
            struct rng g;
            if (only && strcmp(only, classes[k].name) != 0)
                continue;
            rng_init(&g, seed * 1000003 + k * 1000 + i);
            print_curve(&classes[k], i, &g);
        }
    return fflush(stdout) == 0 ? 0 : 1;
}
