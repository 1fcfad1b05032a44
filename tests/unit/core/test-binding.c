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

static void add_count(struct binding_log *log, uint64_t at_ns, uint64_t limited_ns)
{
    binding_add(log, &(struct binding_read){
                         .at_ns = at_ns, .counts = true, .limited_ns = limited_ns});
}

static void test_log(void)
{
    struct binding_log log = {0};

    ok(binding_within(&log, 0, 10 * S) == BINDING_UNKNOWN, "no readings: unknown");
    for (unsigned i = 0; i < 200; i++)
        add_count(&log, i * S, i < 150 ? 7 : 7 + (i - 149) * 1000);
    ok(binding_within(&log, 140 * S, 149 * S) == BINDING_NONE, "the counter stands");
    ok(binding_within(&log, 145 * S, 152 * S) == BINDING_SEEN, "the counter moves");
    ok(binding_within(&log, 149 * S, 150 * S) == BINDING_SEEN, "in the last second");
    ok(binding_within(&log, 100 * S, 120 * S) == BINDING_UNKNOWN, "readings are lost");
    ok(binding_within(&log, 110 * S, 149 * S) == BINDING_UNKNOWN,
       "readings of less than half of the window");
    ok(binding_within(&log, 136 * S, 149 * S) == BINDING_NONE, "readings of all of it");
    ok(binding_within(&log, 140 * S, 140 * S) == BINDING_UNKNOWN, "one reading");
}

/* Reasons, read ten times a second, without a counter: power is one of them in one read,
 * 20 s from the start.
 */
static void test_reasons(void)
{
    struct binding_log log = {0};

    for (unsigned i = 0; i < 300; i++)
        binding_add(&log, &(struct binding_read){
                              .at_ns = i * S / 10, .reasons = true, .limited = i == 200});
    ok(binding_within(&log, 5 * S, 15 * S) == BINDING_CLEAR, "power is no reason");
    ok(binding_within(&log, 5 * S, 9 * S) == BINDING_UNKNOWN, "too few reads");
    ok(binding_within(&log, 15 * S, 25 * S) == BINDING_SEEN, "it is one in one read");
    ok(binding_within(&log, 22 * S, 29 * S) == BINDING_CLEAR, "after it, it is none");
}

/* A counter that stands while power is a reason is not believed. */
static void test_dead_counter(void)
{
    struct binding_log log = {0};

    for (unsigned i = 0; i < 20; i++)
        binding_add(&log, &(struct binding_read){.at_ns = i * 3 * S,
                                                 .counts = true,
                                                 .reasons = true,
                                                 .limited = i == 15});
    ok(binding_within(&log, 10 * S, 40 * S) == BINDING_NONE, "the counter stands");
    ok(binding_within(&log, 40 * S, 50 * S) == BINDING_SEEN, "the reason contradicts it");
}

static void test_both(void)
{
    ok(binding_both(BINDING_NONE, BINDING_NONE) == BINDING_NONE &&
           binding_both(BINDING_NONE, BINDING_UNKNOWN) == BINDING_UNKNOWN &&
           binding_both(BINDING_SEEN, BINDING_UNKNOWN) == BINDING_SEEN &&
           binding_both(BINDING_CLEAR, BINDING_UNKNOWN) == BINDING_UNKNOWN &&
           binding_both(BINDING_NONE, BINDING_CLEAR) == BINDING_CLEAR &&
           binding_both(BINDING_CLEAR, BINDING_SEEN) == BINDING_SEEN &&
           binding_both(BINDING_NONE, BINDING_SEEN) == BINDING_SEEN,
       "two boards: no effect only where neither has one");
}

#define BOUND 1.1

struct seen {
    uint32_t lowest_unbound_mw; /* of the windows; 0: none */
    unsigned above;             /* windows above it, after it */
    double saved;               /* share of the best that the bound allows */
};

static enum binding told(const struct job *j, uint32_t mw, enum binding word)
{
    return power_at(j, 1) <= w_of_mw(mw) ? word : BINDING_SEEN;
}

static double best_energy(const struct job *j, double bound, double from_w)
{
    double ref_t = true_time(j, 300), least = true_energy(j, 300);

    for (double w = from_w; w <= 300; w++)
        if (true_time(j, w) <= bound * ref_t)
            least = fmin(least, true_energy(j, w));
    return least;
}

/* A search until it holds; its board has `limit_w` in force.  word: of a cap without
 * effect.
 */
static struct seen play(double limit_w, double wait, enum binding word, uint64_t seed)
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
        w.binding = told(&j, mw, word);
        ret.above += ret.lowest_unbound_mw && mw > ret.lowest_unbound_mw;
        if (i > 0 && w.binding == word)
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
static void test_limit_far_above(double wait, double demand_w, enum binding word)
{
    static const double limits[] = {2.5, 3.5, 4.76};
    enum { RUNS = 40 };
    double near = 0;

    for (uint64_t seed = 1; seed <= RUNS; seed++)
        near +=
            play(1.3 * fmax(demand_w, wait > 0 ? 160 : 0), wait, word, seed).saved / RUNS;
    for (size_t k = 0; k < n_elements(limits); k++) {
        double saved = 0;
        unsigned above = 0;
        for (uint64_t seed = 1; seed <= RUNS; seed++) {
            struct seen r = play(demand_w * limits[k], wait, word, seed);
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

static struct search_window window_of_40_w(uint32_t w, enum binding binding)
{
    return (struct search_window){
        .cap_mw = w * MW_PER_W, .time_s = 1, .energy_j = 40, .binding = binding};
}

static struct search *search_at(unsigned max_windows)
{
    struct search_setup u = {.goal = {.kind = GOAL_ENERGY},
                             .min_mw = 50 * MW_PER_W,
                             .max_mw = 300 * MW_PER_W,
                             .default_mw = 300 * MW_PER_W,
                             .original_mw = 300 * MW_PER_W,
                             .max_windows = max_windows};
    struct search_window w = window_of_40_w(300, BINDING_NONE);
    struct search *s = NULL;

    ok(search_new(&u, &s, NULL) == 0 && search_on_window(s, &w, NULL) == 0,
       "a reference");
    return s;
}

/* Without a counter a second window at the same cap has to agree. */
static void test_two_windows(void)
{
    static const enum binding seconds[] = {BINDING_CLEAR, BINDING_SEEN, BINDING_UNKNOWN};
    struct search_result r;

    for (size_t i = 0; i < n_elements(seconds); i++) {
        auto_(search_free) struct search *s = search_at(0);
        uint32_t cap_mw = search_step(s)->cap_mw;
        struct search_window w = window_of_40_w(cap_mw / MW_PER_W, BINDING_CLEAR);
        ok(search_on_window(s, &w, NULL) == 0 && search_step(s)->cap_mw == cap_mw &&
               search_step(s)->kind == SEARCH_MEASURE,
           "a window without effect, by the reasons: another one at %u mW", cap_mw);
        search_result(s, &r);
        ok(r.caps == 2, "… it is not one of the reference yet");
        w.binding = seconds[i];
        ok(search_on_window(s, &w, NULL) == 0, "the other one");
        search_result(s, &r);
        ok(r.caps == (seconds[i] == BINDING_CLEAR ? 1u : 2u), "… %u caps", r.caps);
    }
    auto_(search_free) struct search *s = search_at(0);
    struct search_window w = window_of_40_w(200, BINDING_CLEAR);
    w.length = 2;
    ok(search_on_window(s, &w, NULL) == 0, "a window twice as long");
    search_result(s, &r);
    ok(r.caps == 1, "… is as good as two");
}

/* Noise that remembers makes windows differ by more than their scatter states.  With the
 * driver's word a window counts as one of the reference as far as the noise of the
 * windows so far allows; without times no such noise is known.
 */
static void test_noise(void)
{
    static const struct {
        double time_s, lasted_s;
        enum binding binding;
        unsigned caps;
        const char *what;
    } rows[] = {
        {1.013, 10, BINDING_NONE, 1, "slower by 1.3 %"},
        {1.013, 0, BINDING_NONE, 2, "the same, noise unknown"},
        {1.013, 10, BINDING_UNKNOWN, 2, "the same, the driver does not say"},
        {1.08, 10, BINDING_NONE, 2, "slower by 8 %"},
    };
    struct search_setup u = {.goal = {GOAL_SLOWDOWN, BOUND},
                             .min_mw = 50 * MW_PER_W,
                             .max_mw = 300 * MW_PER_W,
                             .default_mw = 300 * MW_PER_W,
                             .original_mw = 300 * MW_PER_W};

    for (size_t i = 0; i < n_elements(rows); i++) {
        auto_(search_free) struct search *s = NULL;
        struct search_result r;
        if (!ok(search_new(&u, &s, NULL) == 0, "a search"))
            continue;
        for (unsigned k = 0; k < 2; k++) {
            struct search_window w = window_of_40_w(k ? 200 : 300, rows[i].binding);
            w.time_s = k ? rows[i].time_s : 1;
            w.energy_j = 40 * w.time_s;
            w.time_rse = w.energy_rse = 0.001;
            w.start_s = 12 * k;
            w.lasted_s = rows[i].lasted_s;
            w.parts = 10;
            ok(search_on_window(s, &w, NULL) == 0, "a window");
        }
        search_result(s, &r);
        ok(r.caps == rows[i].caps, "%s: %u caps", rows[i].what, r.caps);
    }
}

/* Windows without effect cost the job nothing: they are not counted, up to as many as the
 * search has of others.
 */
static void test_uncounted(void)
{
    auto_(search_free) struct search *s = search_at(3);

    for (uint32_t watts = 290; watts >= 260; watts -= 10) {
        struct search_window w = window_of_40_w(watts, BINDING_NONE);
        bool used = watts == 260;
        w.known = true; /* no cap that was asked for */
        ok(search_on_window(s, &w, NULL) == 0 &&
               (strcmp(search_step(s)->why, "all windows are used") == 0) == used,
           "%u W has no effect: %s", watts, search_step(s)->why);
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
    test_reasons();
    test_dead_counter();
    test_both();
    test_limit_far_above(0, 63, BINDING_NONE);
    test_limit_far_above(2, 80, BINDING_NONE);
    test_limit_far_above(0, 63, BINDING_CLEAR);
    test_limit_far_above(2, 80, BINDING_CLEAR);
    test_doubt();
    test_two_windows();
    test_noise();
    test_uncounted();
    test_stall();
    return done();
}
