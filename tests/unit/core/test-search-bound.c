/* The search where the bound of the whole job leaves no time for a cap. */
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "core/optimum/search.h"
#include "search-job.h"
#include "tap.h"

#define NOTHING 0.5 /* x the reference's time: no cap below it can be paid */
#define ANYTHING 10
enum { WINDOWS = 24, WAIT = WINDOWS - 4 }; /* max_windows unless set, and fewer */

static void tell(struct search *s, const struct job *j)
{
    struct job exact = *j;
    struct search_window w = window_at(&exact, search_step(s)->cap_mw);

    (void)search_on_window(s, &w, NULL);
}

static bool was_measured(const struct search *s, uint32_t cap_mw)
{
    struct search_window known[SEARCH_WINDOWS_MAX];
    size_t n = search_known(s, known, n_elements(known));

    for (size_t i = 0; i < n; i++)
        if (known[i].cap_mw == cap_mw)
            return true;
    return false;
}

/* While the bound leaves no time for a cap the job waits at the reference: for as long as
 * it takes, unless steps there save up none.
 */
static void test_waits(double bound, enum search_kind kind)
{
    struct search_setup u = v100;

    u.goal = (struct goal){GOAL_SLOWDOWN, bound};
    auto_(search_free) struct search *s = search_of(&u);
    unsigned below = 0;
    for (int i = 0; i < 60; i++) {
        tell(s, &plain);
        search_afford(s, NOTHING);
        below += search_step(s)->cap_mw < u.original_mw;
    }
    ok(search_step(s)->kind == kind && below == 0,
       "F = %g, 60 windows at the reference: %s", bound,
       kind == SEARCH_HOLD ? "over" : "waits on");
}

/* Where a measured cap meets the bound it is held meanwhile, and then the search goes on
 * as if it had not waited.
 */
static void test_wait_holds(double bound)
{
    struct search_setup u = v100;
    unsigned waits = 0, ended = 0, unmeasured = 0, over = 0, n = 0;

    u.goal = (struct goal){GOAL_SLOWDOWN, bound};
    auto_(search_free) struct search *at_once = search_of(&u), *s = search_of(&u);
    struct job j = plain;
    (void)run(at_once, &j);
    for (; search_step(s)->kind == SEARCH_MEASURE && n < 60; n++) {
        tell(s, &plain);
        search_afford(s, NOTHING);
        for (int i = 0; search_waits(s) && i < WAIT; i++) {
            uint32_t mw = search_step(s)->cap_mw;
            waits++;
            ended += search_is_over(s) || search_probe_gap(s, 1);
            unmeasured += !was_measured(s, mw) || mw >= u.original_mw;
            over += true_time(&plain, w_of_mw(mw)) >
                    bound * 1.0001 * true_time(&plain, w_of_mw(u.original_mw));
            tell(s, &plain);
            search_go_on(s);
            search_afford(s, i < WAIT - 1 ? NOTHING : ANYTHING);
        }
        while (search_step(s)->kind == SEARCH_MEASURE &&
               search_step(s)->cap_mw >= u.original_mw && n++ < 60) {
            tell(s, &plain); /* it has waited at the reference */
            search_afford(s, ANYTHING);
        }
    }
    ok(waits >= WAIT && ended == 0 && unmeasured == 0 && over == 0,
       "F = %g: %u windows in holds of measured caps within the bound", bound, waits);
    ok(search_is_over(s) && search_step(s)->cap_mw == search_step(at_once)->cap_mw,
       "... then the search ends as it would have without: %.0f W, %.0f W",
       w_of_mw(search_step(s)->cap_mw), w_of_mw(search_step(at_once)->cap_mw));
    ok(!strstr(search_step(s)->why, "not tried"), "... and every cap was tried: %s",
       search_step(s)->why);
}

/* Measures until a measured cap within the bound is held for want of time. */
static void until_it_waits(struct search *s)
{
    tell(s, &plain);
    for (int i = 0; i < WINDOWS && !search_waits(s); i++) {
        bool waited = search_step(s)->cap_mw >= v100.original_mw;
        tell(s, &plain);
        search_afford(s, waited ? ANYTHING : NOTHING);
    }
}

/* A wait in a hold ends the search when it has taken as many windows as the search may.
 */
static void test_wait_ends(double bound)
{
    struct search_setup u = v100;
    unsigned n = 0;

    u.goal = (struct goal){GOAL_SLOWDOWN, bound};
    auto_(search_free) struct search *s = search_of(&u);
    until_it_waits(s);
    bool waits = search_waits(s);
    for (; search_waits(s) && n < 10 * WINDOWS; n++) {
        tell(s, &plain);
        search_go_on(s);
        search_afford(s, NOTHING);
    }
    uint32_t mw = search_step(s)->cap_mw;
    ok(waits && search_is_over(s) && n == WINDOWS && was_measured(s, mw) &&
           mw < u.original_mw &&
           true_time(&plain, w_of_mw(mw)) <=
               bound * 1.002 * true_time(&plain, w_of_mw(u.original_mw)),
       "F = %g: %.0f W is held for good after %u windows: %s", bound, w_of_mw(mw), n,
       search_step(s)->why);
    ok(strstr(search_step(s)->why, " W not tried: the bound left no time for it"),
       "... and says what was not tried");
}

static void tell_known(struct search *s, const struct job *j, uint32_t cap_mw)
{
    struct job exact = *j;
    struct search_window w = window_at(&exact, cap_mw);

    w.known = true;
    (void)search_on_window(s, &w, NULL);
}

/* Where the caps above one that took too long were measured, nothing is waited for. */
static void test_spent_ends(void)
{
    struct search_setup u = v100;
    unsigned n = 0, below = 0, over = 0;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.05};
    for (uint32_t mw = 200000; mw < u.original_mw; mw += 1000) {
        auto_(search_free) struct search *s = search_of(&u);
        tell_known(s, &plain, u.original_mw);
        tell_known(s, &plain, mw);
        search_on_spent(s);
        search_afford(s, ANYTHING);
        const struct search_step *t = search_step(s);
        if (t->kind == SEARCH_MEASURE && t->cap_mw < u.original_mw)
            continue; /* there is a new cap */
        n++;
        below += t->cap_mw < u.original_mw;
        over += search_is_over(s);
    }
    ok(n > 0 && below > 0 && over == n,
       "no new cap above one that took too long: %u of %u searches are over, %u with a "
       "cap",
       over, n, below);
}

/* With F = 1 a hold saves up no time: a cap as fast as the reference is held for good. */
static void test_no_wait(void)
{
    struct search_setup u = v100;
    struct job fast = plain;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1};
    fast.dip_w = 250; /* faster there */
    auto_(search_free) struct search *s = search_of(&u);
    tell_known(s, &fast, u.original_mw);
    tell_known(s, &fast, 250000);
    bool tries = search_step(s)->kind == SEARCH_MEASURE;
    search_afford(s, NOTHING);
    ok(tries && search_is_over(s) && search_step(s)->cap_mw == 250000,
       "F = 1: %.0f W is held, and the search is %s", w_of_mw(search_step(s)->cap_mw),
       search_is_over(s) ? "over" : "not over");
    ok(strstr(search_step(s)->why, "the bound leaves no time to try ") &&
           strcmp(search_last_why(s), search_step(s)->why) == 0,
       "... for a reason that promises nothing: %s", search_step(s)->why);
}

/* A cap that the job stalled at is not held for want of time to try another. */
static void test_stall(void)
{
    struct search_setup u = v100;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.1};
    auto_(search_free) struct search *s = search_of(&u);
    tell_known(s, &plain, u.original_mw);
    tell_known(s, &plain, 285000);
    tell_known(s, &plain, 250000);
    search_afford(s, NOTHING);
    bool waits = search_waits(s) && search_step(s)->cap_mw == 250000;
    search_on_stall(s, 250000);
    search_afford(s, NOTHING);
    ok(waits && search_step(s)->cap_mw == 285000,
       "a stall at 250 W, where it waited: %.0f W instead",
       w_of_mw(search_step(s)->cap_mw));
}

/* A cap that took too long is not tried again before another new one. */
static void test_spent(void)
{
    struct search_setup u = v100;
    unsigned low = 0, again = 0, tried = 0;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.02};
    auto_(search_free) struct search *s = search_of(&u);
    tell(s, &plain);
    for (int i = 0; i < 6; i++) {
        uint32_t mw = search_step(s)->cap_mw;
        search_on_spent(s);
        search_afford(s, ANYTHING);
        const struct search_step *t = search_step(s);
        if (t->kind == SEARCH_HOLD || mw >= u.original_mw)
            break;
        low += t->cap_mw <= mw + (u.original_mw - mw) / 4;
        again += t->cap_mw < u.original_mw && was_measured(s, t->cap_mw);
        tried += t->cap_mw < u.original_mw;
        tell(s, &plain);
        search_afford(s, ANYTHING);
    }
    ok(tried > 1 && low == 0 && again == 0,
       "caps that took too long: %u times a new one a quarter of the way up", tried);
}

/* A look that cannot be paid ends: the hold goes on. */
static void test_look_unpaid(void)
{
    struct search_setup u = v100;
    struct job j = plain;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.05};
    auto_(search_free) struct search *s = search_of(&u);
    (void)run(s, &j);
    uint32_t held_mw = search_step(s)->cap_mw;
    for (int i = 0; i < 10; i++)
        tell(s, &plain);
    bool looks = search_probe_gap(s, 1) && search_step(s)->kind == SEARCH_MEASURE;
    search_afford(s, NOTHING);
    ok(looks && search_step(s)->kind == SEARCH_HOLD &&
           search_step(s)->cap_mw == held_mw && search_is_over(s) && !search_waits(s),
       "a look that cannot be paid ends, and the hold goes on");
}

/* A look tries a cap again that took too long before the hold saved time. */
static void test_look_after_spent(void)
{
    struct search_setup u = v100;
    struct job j = plain;
    uint32_t mw[2] = {0, 0};
    bool looks = true;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.05};
    auto_(search_free) struct search *s = search_of(&u);
    (void)run(s, &j);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 10; k++)
            tell(s, &plain);
        looks &= search_probe_gap(s, 1);
        search_afford(s, ANYTHING);
        looks &= search_step(s)->kind == SEARCH_MEASURE;
        mw[i] = search_step(s)->cap_mw;
        search_on_spent(s);
        search_end_look(s);
    }
    ok(looks && mw[1] == mw[0], "looks at %.0f W, then at %.0f W", w_of_mw(mw[0]),
       w_of_mw(mw[1]));
}

/* A hard limit below what the bound allows ends the search at it.  When the limit ends,
 * the search decides again.
 */
static void test_limit_lifted(double bound)
{
    struct search_setup u = v100;
    struct job j = plain;

    u.goal = (struct goal){GOAL_SLOWDOWN, bound};
    auto_(search_free) struct search *s = search_of(&u);
    tell(s, &plain);
    search_on_hard_limit(s, 180000);
    (void)run(s, &j);
    uint32_t under_mw = search_step(s)->cap_mw;
    bool over = search_is_over(s);
    search_on_hard_limit(s, SEARCH_NO_LIMIT);
    search_afford(s, NOTHING);
    ok(over && under_mw == 180000 && search_step(s)->cap_mw == u.original_mw,
       "F = %g: %.0f W under a limit, %.0f W as soon as it ends", bound,
       w_of_mw(under_mw), w_of_mw(search_step(s)->cap_mw));
    (void)run(s, &j);
    ok(true_time(&plain, w_of_mw(search_step(s)->cap_mw)) <=
               bound * 1.002 * true_time(&plain, w_of_mw(u.original_mw)) &&
           search_step(s)->cap_mw < u.original_mw,
       "... then %.0f W, within the bound", w_of_mw(search_step(s)->cap_mw));
}

/* A reference measured under a limit says nothing of the job without it. */
static void test_reference_rises(const char *goal)
{
    struct job j = plain;
    struct search_setup u = v100;
    struct search_result r;
    u.hard_mw = 180000;
    (void)goal_parse(goal, &u.goal, NULL);
    auto_(search_free) struct search *s = search_of(&u);
    (void)run(s, &j);
    uint32_t under_mw = search_step(s)->cap_mw;

    search_on_hard_limit(s, 185000);
    ok(search_step(s)->kind == SEARCH_HOLD, "%s: a limit 3 %% higher changes nothing",
       goal);
    search_on_hard_limit(s, SEARCH_NO_LIMIT);
    ok(search_step(s)->kind == SEARCH_MEASURE && search_step(s)->cap_mw == u.original_mw,
       "%s: reference at %.0f W, then without the limit: \"%s\"", goal, 180.0,
       search_step(s)->why);
    search_on_hard_limit(s, 180000);
    ok(search_step(s)->kind == SEARCH_HOLD && search_step(s)->cap_mw == under_mw,
       "%s: the limit is back before the measurement: holds %.0f W", goal,
       w_of_mw(search_step(s)->cap_mw));
    search_on_hard_limit(s, SEARCH_NO_LIMIT);
    (void)run(s, &j);
    search_result(s, &r);
    is_int(r.reference_mw, u.original_mw, "%s: the new reference", goal);
    double whole_w = true_energy(&plain, 300) / true_time(&plain, 300);
    ok(fabs(r.demand_w / whole_w - 1) < 0.01, "%s: demand %.1f W, it is %.1f", goal,
       r.demand_w, whole_w);
    double kept_w = w_of_mw(search_step(s)->cap_mw);
    ok(search_step(s)->kind == SEARCH_HOLD && kept_w < 300 &&
           (u.goal.kind != GOAL_SLOWDOWN ||
            true_time(&plain, kept_w) <= 1.05 * 1.002 * true_time(&plain, 300)),
       "%s: holds %.0f W (%.0f W under the limit), %.4f of the time at 300 W", goal,
       kept_w, w_of_mw(under_mw), true_time(&plain, kept_w) / true_time(&plain, 300));
}

/* An earlier search measured its reference under a limit that is gone, which a check of
 * the reference finds.
 */
static void test_window_above(void)
{
    static const uint32_t caps[] = {180000, 174000, 170000, 165000};
    struct search_setup u = v100;
    struct search_result r;
    struct job j = plain;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.05};
    auto_(search_free) struct search *s = search_of(&u);
    for (size_t i = 0; i < n_elements(caps); i++)
        tell_known(s, &plain, caps[i]);
    search_on_found(s, 174000);
    struct search_window w = window_at(&j, 300000);
    (void)search_on_window(s, &w, NULL);
    search_result(s, &r);
    is_int(r.reference_mw, 300000, "a window above the reference is the new one");
    (void)run(s, &j);
    double kept_w = w_of_mw(search_step(s)->cap_mw);
    ok(kept_w < 300 && true_time(&plain, kept_w) <= 1.05 * 1.002 * true_time(&plain, 300),
       "... then %.0f W, within the bound", kept_w);
}

/* What an earlier search measured is no answer to a step of this one, and ends nothing.
 */
static void test_known(void)
{
    static const uint32_t caps[] = {300000, 291000, 285000, 280000, 275000};
    struct search_setup u = v100;

    u.goal = (struct goal){GOAL_SLOWDOWN, 1.05};
    auto_(search_free) struct search *s = search_of(&u);
    for (size_t i = 0; i < n_elements(caps); i++)
        tell_known(s, &plain, caps[i]);
    ok(!search_is_over(s) && search_step(s)->cap_mw < 275000,
       "a search taken over goes on: %.0f W, %s", w_of_mw(search_step(s)->cap_mw),
       search_step(s)->why);
}

/* The part of the energy that a cap saves. */
static double saved(const struct job *j, uint32_t cap_mw)
{
    return 1 - true_energy(j, w_of_mw(cap_mw)) / true_energy(j, w_of_mw(300000));
}

/* A new cap in a look costs no more than its windows: four looks bring the held cap near
 * the best one within the bound, under noise, too.
 */
static void test_looks(double bound, double least)
{
    struct search_setup u = v100;
    double first = 0, then = 0, best = 0;
    unsigned over = 0;

    u.goal = (struct goal){GOAL_SLOWDOWN, bound};
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct job j = plain;
        j.noise = 0.003;
        rng_init(&j.rng, seed);
        auto_(search_free) struct search *s = search_of(&u);
        (void)run(s, &j);
        first += saved(&j, search_step(s)->cap_mw);
        for (unsigned look = 0; look < 4; look++) {
            for (unsigned i = 0; i < 60; i++) {
                struct search_window w = window_at(&j, search_step(s)->cap_mw);
                (void)search_on_window(s, &w, NULL);
            }
            if (search_probe_gap(s, 0.1))
                (void)run(s, &j);
        }
        then += saved(&j, search_step(s)->cap_mw);
        over += true_time(&j, w_of_mw(search_step(s)->cap_mw)) >
                1.002 * bound * true_time(&j, w_of_mw(300000));
        uint32_t mw = 300000;
        while (true_time(&j, w_of_mw(mw - 1000)) <=
               bound * true_time(&j, w_of_mw(300000)))
            mw -= 1000;
        best += saved(&j, mw);
    }
    ok(then >= least * best && over == 0,
       "F = %g, four looks: %.3f of what the best cap saves (%.3f before), at least %.3f",
       bound, then / best, first / best, least);
}

/* A job whose steps hardly vary, though the first windows took a little less time: few
 * windows at one cap, and the cap that is held takes most of what the bound allows.
 */
static void test_quiet(void)
{
    struct search_setup u = v100;
    unsigned most_windows = 0, most_again = 0;
    double least = INFINITY, most = 0;

    for (int i = 0; i < 20; i++) {
        u.goal = (struct goal){GOAL_SLOWDOWN, 1.02 + 0.004 * i};
        auto_(search_free) struct search *s = search_of(&u);
        struct job j = plain;
        unsigned n = 0, again = 0;
        uint32_t last_mw = 0;
        for (; search_step(s)->kind == SEARCH_MEASURE && n < 60; n++) {
            struct search_window w = window_at(&j, search_step(s)->cap_mw);
            w.time_s *= n < 2 ? 0.9985 + 0.001 * n : 1;
            w.time_rse = w.energy_rse = n < 2 ? 1e-4 : 1e-9;
            w.parts = 20;
            again = w.cap_mw == last_mw && last_mw < u.original_mw ? again + 1 : 0;
            most_again = again > most_again ? again : most_again;
            last_mw = w.cap_mw;
            (void)search_on_window(s, &w, NULL);
        }
        double part = log(true_time(&j, w_of_mw(search_step(s)->cap_mw)) /
                          true_time(&j, w_of_mw(u.original_mw))) /
                      log(u.goal.param);
        most_windows = n > most_windows ? n : most_windows;
        least = fmin(least, part);
        most = fmax(most, part);
    }
    ok(most_windows <= 12 && most_again <= 3,
       "a quiet job: at most %u windows, %u more at one cap in a row", most_windows,
       most_again);
    ok(least > 0.85 && most <= 1, "... takes %.3f to %.3f of the log time allowed", least,
       most);
}

int main(void)
{
    test_looks(1.02, 0.95);
    test_looks(1.05, 0.965);
    test_quiet();
    test_limit_lifted(1.02);
    test_limit_lifted(1.1);
    test_reference_rises("edp");
    test_reference_rises("slowdown:1.05");
    test_window_above();
    test_known();
    test_waits(1, SEARCH_HOLD);
    test_waits(1.02, SEARCH_MEASURE);
    test_wait_holds(1.02);
    test_wait_holds(1.1);
    test_wait_ends(1.02);
    test_wait_ends(1.1);
    test_no_wait();
    test_stall();
    test_spent();
    test_spent_ends();
    test_look_unpaid();
    test_look_after_spent();
    return done();
}
