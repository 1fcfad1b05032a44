#include "../../../bench/pchip.h"

#include <errno.h>
#include <float.h>

#include "base/auto.h"
#include "base/rng.h"
#include "tap.h"

/* Slopes and values of SciPy 1.11's PchipInterpolator on the same knots, worked
 * out by its formulas: harmonic mean inside, three-point ends.
 */
static void test_known(void)
{
    static const double x[] = {0, 1, 3, 4}, y[] = {0, 1, 2, 2};
    double d[4];
    pchip_slopes(x, y, 4, d);
    /* h = 1, 2, 1; secants 1, 0.5, 0 */
    is_near(d[1], 9.0 / (5 / 1.0 + 4 / 0.5), 1e-12,
            "inner slope: weighted harmonic mean");
    is_near(d[2], 0, 0, "flat on one side: slope 0");
    is_near(d[0], ((2 + 2) * 1.0 - 1 * 0.5) / 3, 1e-12, "first end: three points");
    is_near(d[3], 0, 0, "last end beside a flat: 0");
    is_near(pchip_value(x, y, d, 4, 0.5), 0.5 + 0.125 * (d[0] - d[1]), 1e-12,
            "Hermite in the middle");
    is_near(pchip_value(x, y, d, 4, -1), 0, 0, "before the first: its value");
    is_near(pchip_value(x, y, d, 4, 9), 2, 0, "after the last: its value");
    is_near(pchip_value(x, y, d, 4, 3), 2, 1e-15, "at a knot: its value");
}

static void test_line(void)
{
    static const double x[] = {0, 1}, y[] = {0, 1};
    double d[2];
    pchip_slopes(x, y, 2, d);
    is_near(pchip_value(x, y, d, 2, 0.25), 0.25, 1e-15, "two knots: a line");
}

/* Never outside the two knots beside it, whatever the data. */
static void test_monotone(void)
{
    struct rng g;
    bool within = true;
    rng_init(&g, 7);
    for (int k = 0; k < 200; k++) {
        double x[8], y[8], d[8];
        for (int i = 0; i < 8; i++) {
            x[i] = (i ? x[i - 1] : 0) + 0.05 + rng_uniform(&g);
            y[i] = rng_normal(&g);
        }
        pchip_slopes(x, y, 8, d);
        for (int i = 0; i < 7; i++)
            for (int f = 0; f <= 20; f++) {
                double at = x[i] + 0.05 * f * (x[i + 1] - x[i]);
                double v = pchip_value(x, y, d, 8, at);
                within &= v >= fmin(y[i], y[i + 1]) - 1e-12;
                within &= v <= fmax(y[i], y[i + 1]) + 1e-12;
            }
    }
    ok(within, "200 random curves: between the neighbours everywhere");
}

static void test_curve(void)
{
    static const struct curve_point points[] = {
        {250, 10, 2000}, {150, 12, 1680}, {200, 10.5, 1890}};
    auto_(curve_free) struct curve *c = NULL;
    uw_error err = {""};
    ok(curve_new(points, 3, &c, &err) == 0, "a curve from rows in any order");
    is_near(curve_min_w(c), 150, 0, "lowest cap");
    is_near(curve_max_w(c), 250, 0, "highest cap");
    for (size_t i = 0; i < 3; i++) {
        struct curve_value v = curve_at(c, points[i].cap_w);
        is_near(v.time_s, points[i].time_s, 1e-9, "time at a row");
        is_near(v.energy_j, points[i].energy_j, 1e-6, "energy at a row");
    }
}

static void test_between(void)
{
    static const struct curve_point points[] = {
        {250, 10, 2000}, {150, 12, 1680}, {200, 10.5, 1890}};
    auto_(curve_free) struct curve *c = NULL;
    ok(curve_new(points, 3, &c, NULL) == 0, "the same curve");
    struct curve_value v = curve_at(c, 175);
    ok(v.time_s > 10.5 && v.time_s < 12, "time between rows");
    is_near(v.energy_j, v.time_s * v.power_w, 1e-9, "energy is power x time");
    is_near(curve_at(c, 100).time_s, 12, 1e-9, "below: the lowest row's");
    is_near(curve_at(c, 999).time_s, 10, 1e-9, "above: the highest row's");
}

static void test_refusals(void)
{
    static const struct {
        struct curve_point p[3];
        size_t n;
        int r;
        const char *words;
    } cases[] = {
        {{{100, 1, 1}}, 1, -EINVAL, "2 at least"},
        {{{100, 1, 1}, {100, 2, 2}}, 2, -EINVAL, "100 W is given twice"},
        {{{100, 1, 1}, {200, 0, 2}}, 2, -EINVAL, "must be > 0"},
        {{{100, 1, 1}, {200, 1, -2}}, 2, -EINVAL, "must be > 0"},
        {{{100, 1, 1}, {200, 1, NAN}}, 2, -EINVAL, "must be > 0"},
        {{{INFINITY, 1, 1}, {200, 1, 1}}, 2, -EINVAL, "must be > 0"},
        {{{1, 1, 1}}, CURVE_POINTS_MAX + 1, -E2BIG, "at most"},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct curve *c = NULL;
        uw_error err = {""};
        is_int(curve_new(cases[i].p, cases[i].n, &c, &err), cases[i].r, "refused: %s",
               cases[i].words);
        ok(strstr(err.text, cases[i].words) && !c, "says: %s", err.text);
    }
}

int main(void)
{
    test_known();
    test_line();
    test_monotone();
    test_curve();
    test_between();
    test_refusals();
    return done();
}
