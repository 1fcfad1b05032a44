/* What fixed moments of looking hide, and what they do not: core/progress/alias.h,
 * ticks.h.
 */
#include "core/progress/alias.h"

#include <math.h>
#include <time.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/progress/ticks.h"
#include "tap.h"

#define TICK_S 0.1
enum { SAMPLES = 200 };

/* Boards that are in step at true_hz, as their moments show it at hz. */
static enum alias said(double true_hz, double hz, const double *late, unsigned n,
                       const double *behind, double error)
{
    struct tone_board board[8];

    for (unsigned b = 0; b < n; b++) {
        struct series s = {.n = SAMPLES};
        for (unsigned i = 0; i < SAMPLES; i++) {
            double t = TICK_S * (i + late[b]);
            s.t[i] = ns_of_s(t);
            s.x[i] = (float)cos(2 * M_PI * true_hz * (t - (behind ? behind[b] : 0)));
        }
        board[b] = (struct tone_board){tone_of(&s, hz), late[b], error};
    }
    return alias_of(board, n);
}

static void boards(void)
{
    static const double late[8] = {0.05, 0.31, 0.48, 0.83, 0.62, 0.11, 0.94, 0.4},
                        same[4] = {0.3, 0.3, 0.31, 0.3}, behind[4] = {0, 0.11, 0.2, 0.04};

    is_int(said(2.6, 2.6, late, 4, NULL, 0.02), ALIAS_EXCLUDED, "four boards, 2.6 Hz");
    is_int(said(7.4, 2.6, late, 4, NULL, 0.02), ALIAS_SEEN, "… 7.4 Hz, seen at 2.6");
    is_int(said(12.6, 2.6, late, 4, NULL, 0.02), ALIAS_SEEN, "… 12.6 Hz");
    is_int(said(17.4, 2.6, late, 4, NULL, 0.02), ALIAS_SEEN, "… 17.4 Hz");
    ok(said(32.6, 2.6, late, 4, NULL, 0.02) != ALIAS_EXCLUDED, "… 32.6 Hz");
    is_int(said(2.6, 2.6, late, 8, NULL, 0.04), ALIAS_EXCLUDED, "eight boards");
    is_int(said(2.6, 2.6, late, 1, NULL, 0.02), ALIAS_OPEN, "one board cannot tell");
    is_int(said(2.6, 2.6, same, 4, NULL, 0.02), ALIAS_OPEN,
           "nor can four that look at the same moments");
    is_int(said(7.4, 2.6, same, 4, NULL, 0.02), ALIAS_OPEN, "… of 7.4 Hz neither");
    is_int(said(2.6, 2.6, late, 4, NULL, 0.2), ALIAS_OPEN,
           "nor four whose moments are hardly known");
    is_int(said(2.6, 2.6, late, 4, behind, 0.02), ALIAS_OPEN, "nor four out of step");
}

/* The window's means of a square wave are within reach, and some come near its ends. */
static void reaches(void)
{
    static const double hz[] = {6.67, 8.3, 9.4, 11.2, 14, 23};

    for (size_t k = 0; k < n_elements(hz); k++) {
        double over = 0, under = 0, mean_w = 240, top_w = 400;
        struct reach r = reach_of(hz[k], TICK_S, mean_w, top_w);
        for (unsigned i = 0; i < 200; i++) {
            double sum = 0;
            for (unsigned j = 0; j < 500; j++) {
                double phase = hz[k] * (i * 0.0137 + TICK_S * (j + 0.5) / 500);
                sum += phase - floor(phase) < mean_w / top_w ? top_w : 0;
            }
            over = fmax(over, sum / 500 - mean_w);
            under = fmax(under, mean_w - sum / 500);
        }
        ok(over <= r.over_w + 1 && over > r.over_w - 8 && under <= r.under_w + 1 &&
               under > r.under_w - 8,
           "%g Hz: means are up to %.1f over and %.1f W under, %.1f and %.1f are the "
           "most",
           hz[k], over, under, r.over_w, r.under_w);
    }
}

/* Readings every 60 to 140 ms of values published each 100.4 ms. */
static void moments(void)
{
    const double tick_s = 0.1004;
    struct rng g;
    struct ticks t;
    double at_s = 5000, last_s = 0;
    unsigned off = 0, n = 0;

    rng_init(&g, 3);
    ticks_init(&t, TICK_S);
    ok(!t.known, "nothing is known yet");
    for (; n < 1300; n++, at_s += TICK_S * (0.6 + 0.8 * rng_uniform(&g))) {
        double tick = floor((at_s - 0.037) / tick_s);
        last_s = tick * tick_s + 0.037;
        ticks_see(&t, ns_of_s(at_s), 200 + fmod(tick * 7.31, 5));
        if (n >= 300)
            off += fabs(ticks_before(&t, at_s) - last_s) > 0.01;
    }
    ok(t.known && fabs(t.period_s / tick_s - 1) < 5e-4, "the moments are known: %.4f s",
       t.period_s);
    ok(fabs(ticks_late(&t, last_s)) < 0.04, "… and where they are");
    ok(off < 40, "of 1000 readings %u are taken for those of another tick", off);
    uint64_t read_ns = t.read_ns;
    ticks_see(&t, read_ns - 1, 1);
    ticks_see(&t, read_ns + NS_PER_S, NAN);
    ok(t.read_ns == read_ns, "what is of the past, or no value, does not count");
    for (n = 0; n < 300; n++) /* a value that changes at each reading */
        ticks_see(&t, read_ns + 2 * NS_PER_S + ns_of_s(0.03 * n), n);
    ok(!t.known, "what changes at any time has no moments");
}

/* Values published each 100 ms and read from then on each 30 to 80 ms, n times. */
static void read_on(struct ticks *t, struct rng *g, double from_s, unsigned n)
{
    for (unsigned i = 0; i < n; i++, from_s += 0.03 + 0.05 * rng_uniform(g))
        ticks_see(t, ns_of_s(from_s), fmod(floor(from_s / TICK_S) * 7.31, 5));
}

/* A look at moments that lie months apart takes no longer: the daemon's loop waits for
 * it. */
static void long_ago(void)
{
    struct ticks t;
    struct rng g;

    rng_init(&g, 5);
    ticks_init(&t, TICK_S);
    read_on(&t, &g, 1000, 600);
    ok(t.known, "half a minute of readings tells the moments");
    ticks_see(&t, ns_of_s(1300), 1);
    ok(!t.known, "minutes without any they are not known: clocks drift");
    clock_t began = clock();
    double from_s = 2000;
    for (unsigned i = 0; i < 40; i++, from_s += 86400 * 5)
        read_on(&t, &g, from_s, 16);
    double took_s = (double)(clock() - began) / CLOCKS_PER_SEC;
    ok(took_s < 1, "readings of 200 days, 16 at a time, take %.3f s", took_s);
    ok(!t.known, "… and tell no moments");
    read_on(&t, &g, from_s, 600);
    ok(t.known, "half a minute later they are known again");
}

int main(void)
{
    boards();
    reaches();
    moments();
    long_ago();
    return done();
}
