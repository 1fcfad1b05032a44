/* Energy between two moments, from values of a counter that are thinned out with age. */
#include "base/array.h"
#include "base/auto.h"
#include "base/units.h"
#include "core/meter/points.h"
#include "tap.h"

#define S(s) ((uint64_t)((s)*1e9))

static void few(void)
{
    static struct points p;
    double j = -1, half = -1;

    ok(!points_between(&p, S(1), S(2), 0, S(5), &j, &half), "no value: not known");
    points_add(&p, S(10), 100);
    ok(!points_between(&p, S(10), S(11), 0, S(5), &j, &half), "nor with one");
    points_add(&p, S(12), 180);
    points_add(&p, S(12), 500);
    points_add(&p, S(11), 500);
    points_add(&p, S(14), 200);
    is_int(p.n, 3, "a value that is not later is left out");
    ok(j < 0 && half < 0, "nothing is written on failure");

    /* clang-format off */
    static const struct {
        const char *name;
        double begin, end, step, j, half;
    } cases[] = {
        {"at values", 10, 14, 0, 100, 0},
        {"from a value to the middle of two", 10, 13, 0, 90, 10},
        {"within two values", 10.5, 11.5, 0, 40, 60},
        {"of whole joules", 10, 12, 1, 80, 1},
        {"a moment after the last", 12, 15, 0, 30, 10},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(cases); i++) {
        ok(points_between(&p, S(cases[i].begin), S(cases[i].end), cases[i].step, S(5), &j,
                          &half),
           "%s: known", cases[i].name);
        is_near(j, cases[i].j, 1e-9, "%s: its energy", cases[i].name);
        is_near(half, cases[i].half, 1e-9, "%s: its half width", cases[i].name);
    }
    ok(!points_between(&p, S(9.9), S(12), 0, S(5), &j, &half), "before the first");
    ok(!points_between(&p, S(10), S(19.1), 0, S(5), &j, &half), "long after the last");
}

/* A day of values a second at 100 W. */
static void day(void)
{
    static struct points p;
    double j, half;

    for (unsigned i = 0; i <= 86400; i++)
        points_add(&p, S(1000 + i), 100.0 * i);
    ok(p.n > POINTS_MAX / 4 && p.n <= POINTS_MAX, "%zu values of a day are kept", p.n);
    ok(points_between(&p, S(1000), S(87400), 0, 0, &j, &half) && fabs(j - 8640000) < 1e-3,
       "its energy");
    ok(points_between(&p, S(87350.5), S(87399.5), 0, 0, &j, &half) &&
           fabs(j - 4900) < 1e-3 && half <= 100 + 1e-6,
       "of its last minute, as exact as ever");
    ok(points_between(&p, S(20000.5), S(87400), 0, 0, &j, &half) && half < 0.02 * j,
       "of most of it, within 2 %%");
}

int main(void)
{
    few();
    day();
    return done();
}
