/* The way down to a claim: whose rate counts, and what ends a stop at a first cap.
 *
 * Usage: test-core-way [SEED [WALKS]]
 */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/cap/arbiter.h"
#include "core/cap/stop.h"
#include "tap.h"

#define S(x) ((uint64_t)((x)*1e9))
#define W(x) ((uint32_t)((x)*MW_PER_W))

/* A board of 300 W: original and default limit; its class goes down by 1.5 W a second. */
struct board {
    struct claims claims;
    struct cap_bounds bounds;
    struct cap_class cls;
    struct cap_verdict verdict;
    struct ramp ramp;
    struct cap_stop stop;
    uint32_t peak_mw;
    bool counted; /* somebody counts the steps of the board's job */
};

static struct board board_at_300(void)
{
    struct board b = {.bounds = {W(300), W(100), 0, 0}, .cls = CAP_CLASS_DEFAULT};

    ramp_init(&b.ramp, W(300), 1000, 0);
    return b;
}

static void put(struct board *b, uint64_t id, double w, struct claim_way way)
{
    const struct claim claim = {
        .id = id, .kind = CLAIM_NAMED, .mw = W(w), .until_ns = CLAIM_FOREVER, .way = way};
    uw_error err = {""};

    if (claims_put(&b->claims, &claim, &err) < 0)
        ok(false, "%s", err.text);
}

static bool is_timed(const struct board *b)
{
    return !b->verdict.way.own && !b->counted;
}

static uint32_t walk(struct board *b, uint64_t now)
{
    cap_decide(&b->claims, &b->bounds, &b->verdict);
    (void)cap_walk(&b->ramp, &b->verdict, &b->cls, W(300), b->peak_mw, now);
    cap_stop_step(&b->stop, &b->ramp, b->verdict.claim, is_timed(b), now);
    return b->ramp.at_mw;
}

static void is_at(struct board *b, double s, double w, const char *name)
{
    is_int(walk(b, S(s)), W(w), "%s", name);
}

/* Work is counted for the claim that wins alone. */
static void units(struct board *b, uint64_t claim, unsigned n, double s)
{
    if (claim == b->verdict.claim)
        cap_stop_units(&b->stop, &b->ramp, &b->verdict.way, n, S(s));
}

/* ---- one claim ---- */

static void test_rates(void)
{
    struct board b = board_at_300();
    struct claims none = {.n = 0};
    struct claim bad = {.id = 1,
                        .kind = CLAIM_SOFT,
                        .mw = 1,
                        .until_ns = CLAIM_FOREVER,
                        .way = {.own = true, .rate_mw_s = NAN}};
    uw_error err = {""};

    b.peak_mw = W(200);
    put(&b, 1, 200, (struct claim_way){.own = true, .rate_mw_s = W(4)});
    is_at(&b, 0, 300, "a rate of its own: no first cap but its own");
    is_at(&b, 10, 260, "4 W a second, whatever the class says");
    put(&b, 1, 280, (struct claim_way){.own = true, .rate_mw_s = W(4)});
    is_at(&b, 10, 280, "up at once");
    put(&b, 1, 200, CLAIM_AT_ONCE);
    is_at(&b, 10, 200, "no rate: at once");
    put(&b, 1, 150, (struct claim_way){.own = true, .rate_mw_s = W(0.5)});
    is_at(&b, 10, 200, "another rate");
    is_at(&b, 20, 195, "0.5 W a second");
    ok(claims_put(&none, &bad, &err) < 0 && none.n == 0, "no rate at all: %s", err.text);
    bad.way.rate_mw_s = -1;
    ok(claims_put(&none, &bad, &err) < 0 && none.n == 0, "up on the way down: %s",
       err.text);
}

static void test_stop(void)
{
    const struct claim_way way = {
        .own = true, .rate_mw_s = W(2), .first_mw = W(250), .check_units = 3};
    struct board b = board_at_300();

    b.peak_mw = W(200);
    put(&b, 1, 200, way);
    is_at(&b, 0, 250, "down to its own first cap at once");
    is_at(&b, 100, 250, "a stop there, for as long as nothing is done");
    units(&b, 1, 2, 100);
    is_at(&b, 110, 250, "two units of three");
    ok(cap_stop_next_ns(&b.stop, is_timed(&b)) == UINT64_MAX, "no end by time");
    units(&b, 1, 1, 110);
    is_at(&b, 115, 240, "the third ends it");
    units(&b, 1, 5, 115);
    is_at(&b, 120, 230, "more change nothing");
    is_at(&b, 200, 200, "there");
    put(&b, 1, 150, way);
    is_at(&b, 210, 200, "under its first cap there is no stop");

    b = board_at_300();
    put(&b, 1, 200,
        (struct claim_way){.own = true, .rate_mw_s = W(2), .first_mw = W(250)});
    is_at(&b, 0, 250, "nothing to check: to the first cap at once");
    is_at(&b, 10, 230, "… and on, without a stop");
    b = board_at_300();
    put(&b, 1, 260, way);
    is_at(&b, 0, 260, "a first cap under the target is none");
}

/* A claim without a way of its own: steps that are seen, or 30 s. */
static void test_class(void)
{
    struct board b = board_at_300();

    b.peak_mw = W(200);
    put(&b, 1, 120, (struct claim_way){.check_units = 99});
    is_at(&b, 1, 180, "the class's first cap");
    ok(cap_stop_next_ns(&b.stop, is_timed(&b)) == S(31), "it names the end of the stop");
    is_at(&b, 30.9, 180, "nobody counts: 30 s");
    is_at(&b, 31, 180, "… are over");
    is_at(&b, 41, 165, "and down by the class's rate");
    b = board_at_300();
    b.peak_mw = W(200);
    b.counted = true;
    put(&b, 1, 120, (struct claim_way){.own = false});
    is_at(&b, 0, 180, "counted");
    is_at(&b, 100, 180, "has no end by time");
    units(&b, 1, 0, 100);
    is_at(&b, 110, 165, "a step that is seen ends it");
}

/* ---- another claim wins on the way ---- */

static void test_winners(void)
{
    const struct claim_way fast = {.own = true, .rate_mw_s = W(4)};
    const struct claim_way stops = {
        .own = true, .rate_mw_s = W(4), .first_mw = W(250), .check_units = 2};
    struct board b = board_at_300();

    put(&b, 1, 200, fast);
    (void)walk(&b, 0);
    is_at(&b, 10, 260, "the first claim's rate");
    put(&b, 2, 150, (struct claim_way){.own = false});
    is_at(&b, 10, 260, "another wins: from where the ramp is");
    is_at(&b, 20, 245, "at its rate");
    (void)claims_drop(&b.claims, 2);
    is_at(&b, 20, 245, "it goes: the ramp to the first one goes on");
    is_at(&b, 25, 225, "… at that one's rate");
    put(&b, 3, 215, CLAIM_AT_ONCE);
    is_at(&b, 25, 215, "one at once that does not win bounds the ramp");
    is_at(&b, 26, 211, "which goes on");

    b = board_at_300();
    put(&b, 1, 200, stops);
    is_at(&b, 0, 250, "a stop");
    units(&b, 1, 1, 1);
    put(&b, 2, 180, stops);
    is_at(&b, 2, 250, "another wins: the stop goes on");
    units(&b, 1, 9, 3);
    units(&b, 2, 1, 3);
    is_at(&b, 13, 250, "and counts its work alone, from there on");
    units(&b, 2, 1, 13);
    is_at(&b, 18, 230, "until it is done");
    put(&b, 3, 160,
        (struct claim_way){.own = true, .rate_mw_s = W(1), .first_mw = W(210)});
    is_at(&b, 18, 230, "a third wins below its stop");
    is_at(&b, 28, 220, "one way down has one stop");

    b = board_at_300();
    put(&b, 1, 200, stops);
    (void)walk(&b, S(1));
    put(&b, 2, 180, (struct claim_way){.own = false});
    is_at(&b, 10, 250, "a claim of the class's way wins during a stop");
    is_at(&b, 31, 250, "30 s since the stop began");
    is_at(&b, 41, 235, "end it, as nobody counts");
    b = board_at_300();
    put(&b, 1, 200, stops);
    (void)walk(&b, 0);
    put(&b, 2, 180, fast);
    is_at(&b, 10, 250, "one that checks nothing wins");
    is_at(&b, 15, 230, "and the stop is over");
}

/* ---- properties ---- */

enum { N_PROPERTIES = 4 };
static const char *const property[N_PROPERTIES] = {
    "is between the target and the lowest claim at once",
    "falls no faster than the winner's rate",
    "falls at once to a first cap or to a claim at once alone",
    "leaves a stop of its own only by units",
};

static struct claim_way random_way(struct rng *g)
{
    struct claim_way way = {.own = rng_below(g, 3) > 0};

    if (way.own && rng_below(g, 4)) {
        way.rate_mw_s = 200 + 4000 * rng_uniform(g);
        way.first_mw = rng_below(g, 2) ? W(120 + rng_below(g, 180)) : 0;
        way.check_units = (unsigned)rng_below(g, 4);
    }
    return way;
}

static void change(struct rng *g, struct board *b)
{
    uint64_t id = 1 + rng_below(g, 4);

    if (rng_below(g, 3) == 0)
        (void)claims_drop(&b->claims, id);
    else
        put(b, id, 80 + (double)rng_below(g, 240), random_way(g));
    if (rng_below(g, 8) == 0)
        b->peak_mw = rng_below(g, 3) ? W(100 + rng_below(g, 200)) : 0;
}

static double rate_of(const struct board *b)
{
    const struct claim_way *way = &b->verdict.way;

    return way->own ? way->rate_mw_s : b->cls.rate * W(300);
}

static uint32_t first_of(const struct board *b)
{
    const struct claim_way *way = &b->verdict.way;

    return way->own ? way->first_mw : (uint32_t)lround(b->cls.first * b->peak_mw);
}

/* Time passes, and nothing else. */
static void pass(struct rng *g, struct board *b, uint64_t *now, bool good[N_PROPERTIES])
{
    uint32_t was = b->ramp.at_mw;
    bool waits = b->ramp.waiting && b->verdict.way.own;
    uint64_t ns = rng_below(g, S(20));

    *now += ns;
    uint32_t at = walk(b, *now);
    good[0] &= at >= b->verdict.target_mw && at <= b->verdict.at_once_mw;
    good[1] &= at <= was && was - at <= rate_of(b) * s_of_ns(ns) + 1000 + 1;
    good[3] &= !waits || (b->ramp.waiting && at == was);
}

static void play(struct rng *g, bool good[N_PROPERTIES])
{
    struct board b = board_at_300();
    uint64_t now = 0;

    for (int i = 0; i < 12; i++) {
        (void)ramp_at(&b.ramp, now);
        uint32_t was = b.ramp.at_mw;
        change(g, &b);
        uint32_t at = walk(&b, now);
        good[0] &= at >= b.verdict.target_mw && at <= b.verdict.at_once_mw;
        good[2] &= at >= was || at == b.verdict.at_once_mw || at == first_of(&b) ||
                   (at == b.verdict.target_mw && first_of(&b) >= 1 && at >= first_of(&b));
        pass(g, &b, &now, good);
        unsigned most = b.verdict.way.check_units, done_units = b.stop.units;
        if (b.ramp.waiting && b.verdict.way.own && done_units < most) {
            cap_stop_units(&b.stop, &b.ramp, &b.verdict.way, most - done_units - 1, now);
            good[3] &= b.ramp.waiting;
            if (rng_below(g, 2)) {
                cap_stop_units(&b.stop, &b.ramp, &b.verdict.way, 1, now);
                good[3] &= !b.ramp.waiting;
            }
        }
        pass(g, &b, &now, good);
    }
}

static void test_properties(uint64_t seed, unsigned long walks)
{
    unsigned long bad[N_PROPERTIES] = {0};
    struct rng g;

    rng_init(&g, seed);
    for (unsigned long i = 0; i < walks; i++) {
        bool good[N_PROPERTIES] = {true, true, true, true};
        play(&g, good);
        for (int k = 0; k < N_PROPERTIES; k++)
            bad[k] += !good[k];
    }
    for (int k = 0; k < N_PROPERTIES; k++)
        ok(bad[k] == 0, "seed %llu, %lu walks: the cap %s (%lu do not)",
           (unsigned long long)seed, walks, property[k], bad[k]);
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)time(NULL), walks = 20000;

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        walks = strtoull(argv[2], NULL, 10);
    test_rates();
    test_stop();
    test_class();
    test_winners();
    test_properties(seed, walks);
    return done();
}
