/* The stretch of a forecast with the lowest mean: a table, and random forecasts against
 * every second.
 */
#include "core/carbon/stretch.h"

#include <stdint.h>

#include "base/rng.h"
#include "tap.h"

#define H 3600

static const struct stretch_point day[] = {{0, H, 300},
                                           {H, 2 * H, 200},
                                           {2 * H, 3 * H, 100},
                                           {3 * H, 4 * H, 400},
                                           /* none from here … */ {5 * H, 6 * H, -50},
                                           {6 * H, 7 * H, 150}};
enum { N = sizeof day / sizeof *day };

static void means(void)
{
    double v = 7;

    ok(stretch_mean(day, N, 0, 2 * H, &v) && v == 250, "two whole hours: 250");
    ok(stretch_mean(day, N, H / 2, 3 * H / 2, &v) && v == 250,
       "halves of two hours: 250");
    v = 7;
    ok(!stretch_mean(day, N, 3 * H, 6 * H, &v) && v == 7, "a gap: unknown");
    ok(!stretch_mean(day, N, -1, H, &v) && v == 7, "it begins before the forecast");
    ok(!stretch_mean(day, N, 6 * H, 7 * H + 1, &v) && v == 7, "it ends behind it");
    ok(!stretch_mean(day, N, H, H, &v) && v == 7, "no length: unknown");
    ok(!stretch_mean(NULL, 0, 0, H, &v) && v == 7, "no forecast");
}

static void lowest(void)
{
    static const struct {
        const char *name;
        int64_t from, length, begin;
        bool has;
        double mean;
    } cases[] = {
        {"an hour", 0, H, 5 * H, true, -50},
        {"two hours", 0, 2 * H, 5 * H, true, 50},
        {"three hours", 0, 3 * H, 0, true, 200},
        {"longer than any stretch with values", 0, 5 * H, 7, false, 7},
        {"not before now", 5 * H + 1800, H, 5 * H + 1800, true, 50},
        {"it begins in the middle of an hour", 600, 3 * H, 600, true, 1850.0 / 9},
        {"all is over", 7 * H, 60, 7, false, 7},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t begin = 7;
        double mean = 7;
        bool has = stretch_lowest(day, N, cases[i].from, cases[i].length, &begin, &mean);
        ok(has == cases[i].has && begin == cases[i].begin &&
               fabs(mean - cases[i].mean) < 1e-9,
           "%s: at %jd, %g", cases[i].name, (intmax_t)begin, mean);
    }
    const struct stretch_point flat[] = {{0, H, 5}, {H, 2 * H, 5}};
    int64_t begin = 7;
    double mean = 7;
    ok(stretch_lowest(flat, 2, 10, H / 2, &begin, &mean) && begin == 10,
       "of equal ones the first");
    const struct stretch_point hill[] = {
        {0, H, 100}, {H, 2 * H, 50}, {2 * H, 3 * H, 300}};
    ok(stretch_lowest(hill, 3, 0, 3 * H / 2, &begin, &mean) && begin == H / 2,
       "it ends with an hour");
}

/* Every second is tried: nothing is lower than what was found. */
static void random_forecasts(void)
{
    struct rng r;
    bool good = true;

    rng_init(&r, 20261126);
    for (int round = 0; round < 200; round++) {
        struct stretch_point p[8];
        int64_t at = 0, length = 1 + (int64_t)rng_below(&r, 40), begin = -1;
        double mean = 0, v, best = INFINITY;
        for (int i = 0; i < 8; i++) {
            at += rng_below(&r, 4) == 0 ? 3 : 0;
            p[i] = (struct stretch_point){at, at + 1 + (int64_t)rng_below(&r, 20),
                                          (double)rng_below(&r, 9) - 4};
            at = p[i].to_utc_s;
        }
        int64_t from = (int64_t)rng_below(&r, 10);
        bool has = stretch_lowest(p, 8, from, length, &begin, &mean), any = false;
        for (int64_t s = from; s < at; s++)
            if (stretch_mean(p, 8, s, s + length, &v)) {
                any = true;
                best = v < best ? v : best;
            }
        good =
            good && has == any && (!has || (fabs(mean - best) < 1e-9 && begin >= from));
    }
    ok(good, "200 random forecasts, seed 20261126");
}

int main(void)
{
    means();
    lowest();
    random_forecasts();
    return done();
}
