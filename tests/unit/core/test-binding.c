/* Caps without effect: what the counter of a board tells, and a search on a board whose
 * limit is far above what the job draws.
 */
#include "core/optimum/binding.h"

#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "core/optimum/search.h"
#include "search-job.h"
#include "tap.h"

#define S NS_PER_S

static void test_log(void)
{
    struct binding_log log = {0};

    ok(binding_within(&log, 0, 10 * S) == BINDING_UNKNOWN, "no readings: unknown");
    for (unsigned i = 0; i < 200; i++)
        binding_add(&log, i * S, i < 150 ? 7 : 7 + (i - 149) * 1000);
    ok(binding_within(&log, 140 * S, 149 * S) == BINDING_NONE, "the counter stands");
    ok(binding_within(&log, 145 * S, 152 * S) == BINDING_SEEN, "the counter moves");
    ok(binding_within(&log, 149 * S, 150 * S) == BINDING_SEEN, "in the last second");
    ok(binding_within(&log, 100 * S, 120 * S) == BINDING_UNKNOWN, "readings are lost");
    ok(binding_within(&log, 110 * S, 149 * S) == BINDING_UNKNOWN,
       "readings of less than half of the window");
    ok(binding_within(&log, 136 * S, 149 * S) == BINDING_NONE, "readings of all of it");
    ok(binding_within(&log, 140 * S, 140 * S) == BINDING_UNKNOWN, "one reading");
}

static void test_both(void)
{
    ok(binding_both(BINDING_NONE, BINDING_NONE) == BINDING_NONE &&
           binding_both(BINDING_NONE, BINDING_UNKNOWN) == BINDING_UNKNOWN &&
           binding_both(BINDING_SEEN, BINDING_UNKNOWN) == BINDING_SEEN &&
           binding_both(BINDING_NONE, BINDING_SEEN) == BINDING_SEEN,
       "two boards: no effect only where neither has one");
}

#define BOUND 1.1

struct seen {
    uint32_t lowest_unbound_mw; /* of the windows; 0: none */
    unsigned above;             /* windows above it, after it */
    double saved;               /* share of the best that the bound allows */
};

static enum binding told(const struct job *j, uint32_t mw)
{
    return power_at(j, 1) <= w_of_mw(mw) ? BINDING_NONE : BINDING_SEEN;
}

static double best_energy(const struct job *j, double bound, double from_w)
{
    double ref_t = true_time(j, 300), least = true_energy(j, 300);

    for (double w = from_w; w <= 300; w++)
        if (true_time(j, w) <= bound * ref_t)
            least = fmin(least, true_energy(j, w));
    return least;
}

/* A search until it holds; its board has `limit_w` in force. */
static struct seen play(double limit_w, double wait, bool tells, uint64_t seed)
{
    struct search_setup u = {.goal = {GOAL_SLOWDOWN, BOUND},
                             .min_mw = 20 * MW_PER_W,
                             .max_mw = mw_of_w(limit_w),
                             .default_mw = mw_of_w(limit_w),
                             .original_mw = mw_of_w(limit_w)};
    struct job j = {.power_w = wait > 0 ? 160 : 63,
                    .clocked = 0.6,
                    .noise = 0.003,
                    .gpus = 1,
                    .change = 1,
                    .wait = wait};
    auto_(search_free) struct search *s = NULL;
    struct seen ret = {0};

    rng_init(&j.rng, seed);
    if (search_new(&u, &s, NULL) < 0)
        return ret;
    for (int i = 0; i < 64 && search_step(s)->kind == SEARCH_MEASURE; i++) {
        uint32_t mw = search_step(s)->cap_mw;
        struct search_window w = window_at(&j, mw);
        w.binding = tells ? told(&j, mw) : BINDING_UNKNOWN;
        ret.above += ret.lowest_unbound_mw && mw > ret.lowest_unbound_mw;
        if (i > 0 && w.binding == BINDING_NONE)
            ret.lowest_unbound_mw = mw;
        if (search_on_window(s, &w, NULL) < 0)
            break;
    }
    double ref = true_energy(&j, 300), held_w = w_of_mw(search_step(s)->cap_mw);
    ret.saved = (ref - true_energy(&j, held_w)) / (ref - best_energy(&j, BOUND, 20));
    return ret;
}

/* A job of 63 W, and one that waits two thirds of its time: 80 W, 160 W while it works.
 */
static void test_limit_far_above(double wait, double demand_w)
{
    static const double limits[] = {2.5, 3.5, 4.76};
    enum { RUNS = 40 };
    double near = 0;

    for (uint64_t seed = 1; seed <= RUNS; seed++)
        near +=
            play(1.3 * fmax(demand_w, wait > 0 ? 160 : 0), wait, true, seed).saved / RUNS;
    for (size_t k = 0; k < n_elements(limits); k++) {
        double saved = 0;
        unsigned above = 0;
        for (uint64_t seed = 1; seed <= RUNS; seed++) {
            struct seen r = play(demand_w * limits[k], wait, true, seed);
            saved += r.saved / RUNS;
            above += r.above;
        }
        ok(saved > near - 0.02, "limit %.3g x %g W: %.3f saved; 1.3 x: %.3f", limits[k],
           demand_w, saved, near);
        ok(above == 0, "no cap above one without effect is measured");
    }
}

/* A window that is slower, or whose power is near the cap, is not believed. */
static void test_doubt(void)
{
    struct search_setup u = {.goal = {.kind = GOAL_ENERGY},
                             .min_mw = 50 * MW_PER_W,
                             .max_mw = 300 * MW_PER_W,
                             .default_mw = 300 * MW_PER_W,
                             .original_mw = 300 * MW_PER_W};
    static const struct {
        double time_s, power_w;
        enum binding binding;
        unsigned caps;
        const char *what;
    } rows[] = {
        {1, 150, BINDING_NONE, 1, "no effect"},
        {1, 150, BINDING_SEEN, 2, "the driver says that it has one"},
        {1, 150, BINDING_UNKNOWN, 2, "the driver does not say, power near the cap"},
        {1, 100, BINDING_UNKNOWN, 1, "the driver does not say, power far below"},
        {1.02, 150, BINDING_NONE, 2, "slower, whatever the driver says"},
        {1, 195, BINDING_NONE, 2, "power at the cap, whatever the driver says"},
    };

    for (size_t i = 0; i < n_elements(rows); i++) {
        auto_(search_free) struct search *s = NULL;
        struct search_result r;
        double ref_w = rows[i].power_w;
        struct search_window w = {
            .cap_mw = 300 * MW_PER_W, .time_s = 1, .energy_j = ref_w};
        if (!ok(search_new(&u, &s, NULL) == 0 && search_on_window(s, &w, NULL) == 0,
                "a reference"))
            continue;
        w = (struct search_window){.cap_mw = 200 * MW_PER_W,
                                   .time_s = rows[i].time_s,
                                   .energy_j = rows[i].time_s * ref_w,
                                   .binding = rows[i].binding};
        ok(search_on_window(s, &w, NULL) == 0, "a window at 200 W");
        search_result(s, &r);
        ok(r.caps == rows[i].caps && r.reference_mw == 300 * MW_PER_W,
           "%s: %u caps, reference %u mW", rows[i].what, r.caps, r.reference_mw);
    }
}

/* A stall at a cap that seemed to have no effect raises it. */
static void test_stall(void)
{
    struct search_setup u = {.goal = {.kind = GOAL_ENERGY},
                             .min_mw = 50 * MW_PER_W,
                             .max_mw = 300 * MW_PER_W,
                             .default_mw = 300 * MW_PER_W,
                             .original_mw = 300 * MW_PER_W};
    auto_(search_free) struct search *s = NULL;
    struct search_window w = {
        .cap_mw = 300 * MW_PER_W, .time_s = 1, .energy_j = 100, .binding = BINDING_NONE};

    if (!ok(search_new(&u, &s, NULL) == 0 && search_on_window(s, &w, NULL) == 0,
            "a reference"))
        return;
    w.cap_mw = 200 * MW_PER_W;
    ok(search_on_window(s, &w, NULL) == 0, "200 W has no effect");
    search_on_stall(s, 200 * MW_PER_W);
    ok(search_step(s)->cap_mw == 300 * MW_PER_W, "a stall there: %u mW",
       search_step(s)->cap_mw);
}

int main(void)
{
    test_log();
    test_both();
    test_limit_far_above(0, 63);
    test_limit_far_above(2, 80);
    test_doubt();
    test_stall();
    return done();
}
