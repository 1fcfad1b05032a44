#include "core/optimum/change.h"

#include "base/auto.h"
#include "base/rng.h"
#include "tap.h"

enum { TRIALS = 4000, WINDOWS_AN_HOUR = 720 /* of 5 s */ };

struct world {
    struct rng rng;
    double time, energy, noise;
};

static int feed(struct change *c, struct world *w)
{
    return change_on_window(c, w->time * (1 + w->noise * rng_normal(&w->rng)),
                            w->energy * (1 + w->noise * rng_normal(&w->rng)));
}

/* False alarms in an hour of windows of 5 s at this noise. */
static double false_alarms(double noise)
{
    enum { HOURS = 40 };
    struct world w = {.time = 1.3, .energy = 210, .noise = noise};
    struct change c;
    int n = 0;
    rng_init(&w.rng, 11);
    for (int h = 0; h < HOURS; h++) {
        change_init(&c, 0);
        for (int i = 0; i < WINDOWS_AN_HOUR; i++)
            n += feed(&c, &w) != CHANGE_NONE;
    }
    return (double)n / HOURS;
}

/* Share of changes by these factors noticed within 3 windows. */
static double noticed(double noise, double time, double energy, int what)
{
    struct world w = {.noise = noise};
    int n = 0;
    rng_init(&w.rng, 12);
    for (int k = 0; k < TRIALS; k++) {
        struct change c;
        int got = 0;
        bool early = false;
        change_init(&c, 0);
        w.time = 0.4;
        w.energy = 90;
        for (int i = 0; i < 30; i++)
            early |= feed(&c, &w) != CHANGE_NONE;
        w.time *= time;
        w.energy *= energy;
        for (int i = 0; i < 3 && !got; i++)
            got = feed(&c, &w);
        n += (got & what) != 0 && !early;
    }
    return (double)n / TRIALS;
}

static void test_rates(void)
{
    static const double noises[] = {0, 0.002, 0.005, 0.01, 0.0125};
    struct change c;
    change_init(&c, 0);
    is_near(change_needs_rse(&c), 0.0125, 1e-12,
            "a window's error must be below 1.25 %%");
    for (size_t i = 0; i < n_elements(noises); i++) {
        double s = noises[i], most = false_alarms(s);
        ok(most <= 1, "noise %g: %.2f false alarms an hour", s, most);
        double least = s > 0.0101 ? 0.9 : 0.95;
        double up = noticed(s, 1.06, 1, CHANGE_TIME);
        double down = noticed(s, 1, 0.94, CHANGE_ENERGY);
        ok(up >= least, "noise %g: time +6 %%: %.3f within 3 windows", s, up);
        ok(down >= least, "noise %g: energy -6 %%: %.3f within 3 windows", s, down);
        if (s <= 0.0051) {
            double five = noticed(s, 1.05, 1.05, CHANGE_TIME | CHANGE_ENERGY);
            ok(five >= 0.99, "noise %g: both +5 %%: %.3f within 3 windows", s, five);
        }
    }
}

static void test_calm(void)
{
    struct change c;
    int what = 0;
    change_init(&c, 0);
    for (int i = 0; i < 50; i++)
        what |= change_on_window(&c, i % 9 == 8 ? 1.4 : 1, i % 9 == 8 ? 80 : 100);
    is_int(what, CHANGE_NONE, "single odd windows are no change");

    change_init(&c, 0);
    for (int i = 0; i < 200; i++)
        what |= change_on_window(&c, i < 100 ? 1 : 1.02, 100);
    is_int(what, CHANGE_NONE, "2 %% is no change");

    change_init(&c, 0);
    for (int i = 0; i < 6; i++)
        what |= change_on_window(&c, i < 3 ? 1 : 2, 100);
    is_int(what, CHANGE_NONE, "nothing is noticed before there is a baseline");
    what |= change_on_window(&c, NAN, 100) | change_on_window(&c, 0, 100) |
            change_on_window(&c, 1, -1) | change_on_window(&c, 1, INFINITY);
    is_int(what, CHANGE_NONE, "windows without sense are ignored");
}

static void test_again(void)
{
    struct change c;
    int n = 0, first = 0, both = 0;
    change_init(&c, 0.2);
    is_near(change_needs_rse(&c), 0.05, 1e-12, "a larger change asks for less");
    for (int i = 0; i < 60; i++) {
        double level = i < 20 ? 1 : i < 40 ? 1.25 : 0.9;
        int what = change_on_window(&c, level, 100 * level);
        if (what && !first)
            first = i;
        n += what != 0;
        both += what == (CHANGE_TIME | CHANGE_ENERGY);
    }
    is_int(n, 2, "each of two changes is told once");
    is_int(both, 2, "in time and in energy");
    ok(first >= 20 && first < 23, "the first in window %d of 20..22", first);
}

/* Windows of 3 %: alone they are no news, together they are. */
static void test_unsure(void)
{
    struct world w = {.time = 1, .energy = 100, .noise = 0.03};
    struct change c;
    int early = 0, what = 0, n = 0;

    rng_init(&w.rng, 13);
    change_init(&c, 0);
    for (int i = 0; i < 360 + 60 && !what; i++) {
        w.time = i < 360 ? 1 : 1.1;
        double t = w.time * (1 + w.noise * rng_normal(&w.rng));
        int is = change_on_unsure(&c, t, 100, w.noise, 0.5);
        early |= i < 360 ? is : 0;
        what = i < 360 ? 0 : is;
        n += i >= 360;
    }
    is_int(early, CHANGE_NONE, "an hour of windows of 3 %%: no change");
    is_int(what, CHANGE_TIME,
           "10 %% more time is one, and energy that is unsure is none");
    ok(n <= 3 * 6 + 6, "… after %d windows", n);
    is_int(change_on_unsure(&c, 1, 100, NAN, 0.01), CHANGE_NONE, "no error: ignored");

    change_init(&c, 0);
    for (int i = 0, k = 0; i < 40; i++) {
        k = change_on_unsure(&c, i < 30 ? 1 : 1.1, 100, 0.01, 0.01);
        if (k) {
            is_int(i, 31, "sure windows count one by one");
            break;
        }
    }
}

int main(void)
{
    test_unsure();
    test_rates();
    test_calm();
    test_again();
    return done();
}
