#include "tuner/savings.h"
#include "tuner/whole-job.h"

#include "base/units.h"
#include "tap.h"

#define S(x) ((uint64_t)((x)*1e9))

static void feed(struct steps *s, uint64_t steps, double at, uint32_t phase, double now)
{
    struct step_slot slot = {3, steps, S(at), phase, true};
    (void)steps_feed(s, &slot, 1, S(now));
}

static void on_hold(struct savings *a, double at_s, double time_s, double energy_j,
                    double rse)
{
    struct pair_seen seen = {at_s, time_s, energy_j, rse, rse};
    (void)counterfactual_on_hold(&a->pairs, &seen);
}

static void on_reference(struct savings *a, double at_s, double time_s, double energy_j,
                         double rse)
{
    struct pair_seen seen = {at_s, time_s, energy_j, rse, rse};
    counterfactual_on_reference(&a->pairs, &seen);
}

static void stretches(void)
{
    struct steps s;
    struct stretch st = {0};
    struct stretch_done d;

    steps_init(&s);
    feed(&s, 1, 1.0, UW_PHASE_TRAIN, 1.1);
    ok(!stretch_feed(&st, &s, &d) && !st.open,
       "the first step may hold start-up: not counted");
    feed(&s, 2, 2.0, UW_PHASE_TRAIN, 2.1);
    ok(!stretch_feed(&st, &s, &d) && st.open, "a stretch opens at a step's end");
    feed(&s, 5, 5.0, UW_PHASE_TRAIN, 5.1);
    ok(!stretch_feed(&st, &s, &d), "goes on");
    ok(stretch_turn(&st, STRETCH_SEARCH, &d) && d.kind == STRETCH_REFERENCE &&
           d.steps == 3 && d.begin_ns == S(2) && d.end_ns == S(5),
       "ends where the tuner turns");
    feed(&s, 8, 8.0, UW_PHASE_TRAIN, 8.1);
    ok(!stretch_feed(&st, &s, &d), "and the next begins there");
    feed(&s, 8, 8.0, UW_PHASE_VALIDATE, 9);
    ok(stretch_feed(&st, &s, &d) && d.kind == STRETCH_SEARCH && d.steps == 3 &&
           d.end_ns == S(8),
       "a pause ends it at the last step");
    feed(&s, 9, 21.0, UW_PHASE_TRAIN, 20.5);
    feed(&s, 9, 20.4, UW_PHASE_TRAIN, 20.6);
    (void)stretch_feed(&st, &s, &d);
    feed(&s, 10, 22.0, UW_PHASE_TRAIN, 22.1);
    (void)stretch_feed(&st, &s, &d);
    ok(st.open && st.from.at_ns >= S(20),
       "after it, it opens at a step that holds no pause");
    bool closed = false;
    for (unsigned i = 0; i < 40 && !closed; i++) {
        feed(&s, 11 + i, 23.0 + i, UW_PHASE_TRAIN, 23.1 + i);
        closed = stretch_feed(&st, &s, &d);
    }
    ok(closed && s_between(d.begin_ns, d.end_ns) >= STRETCH_MOST_S && st.open,
       "long ones are cut and go on");
    feed(&s, 53, 45.0, UW_PHASE_TRAIN, 45.1);
    (void)stretch_feed(&st, &s, &d);
    ok(stretch_end(&st, &d) && d.end_ns == S(45) && !st.open && !stretch_end(&st, &d),
       "one ends where the job is stopped, and no other begins there");
}

static void saved(void)
{
    struct savings a = {0};
    struct savings_saved s;

    savings_saved(&a, 1, &s);
    ok(!s.known && s.steps == 0, "nothing known of nothing");
    savings_mean_add(&a.reference, 1.0, 100, 0, 0);
    savings_mean_add(&a.reference, 1.0, 102, 0, 0);
    is_near(savings_mean_energy(&a.reference), 101, 1e-9, "the mean of two windows");
    is_near(savings_mean_energy_rse(&a.reference), 0.0099, 1e-4, "their scatter counts");
    is_near(savings_mean_time_rse(&a.reference), 0.001 / sqrt(2), 1e-6,
            "or what they claim");
    struct savings_mean mean = {0};
    savings_mean_add(&mean, 1.0, 100, 0.01, 0.002);
    savings_mean_add(&mean, 1.0, 100, 0.01, 0.002);
    is_near(savings_mean_time_rse(&mean), 0.01 / sqrt(2), 1e-12, "time and ...");
    is_near(savings_mean_energy_rse(&mean), 0.002 / sqrt(2), 1e-12,
            "... energy have errors of their own");
    a.sum[STRETCH_REFERENCE] = (struct savings_sum){10, 10, 1010, 0};
    a.sum[STRETCH_SEARCH] = (struct savings_sum){10, 11, 900, 0};
    a.sum[STRETCH_HOLD] = (struct savings_sum){80, 88, 6400, 25};
    savings_mean_add(&a.hold, 1.1, 80, 0.001, 0.001);
    savings_saved(&a, 1, &s);
    ok(s.known && s.steps == 100, "all steps are compared");
    is_near(s.energy_j, 100 * 101 - 8310, 1e-9, "saved against the same steps");
    is_near(s.fraction, 1790 / 10100.0, 1e-12, "as a fraction");
    is_near(s.slowdown, 1.09, 1e-12, "slowdown");
    is_near(s.held_slowdown, 1.1, 1e-12, "of the cap held alone");
    ok(s.half_j > 190 && s.half_j < 210, "the interval holds the reference's error: %.1f",
       s.half_j);
    ok(s.cost_known, "the search's own cost");
    is_near(s.cost_j, 1910 - 20 * 80, 1e-9, "in J");
    is_near(s.cost_s, 21 - 22, 1e-9, "in s");

    struct savings two[2] = {a, a};
    two[1] = (struct savings){0};
    savings_mean_add(&two[1].reference, 2.0, 50, 0, 0);
    two[1].sum[STRETCH_HOLD] = (struct savings_sum){10, 20, 400, 0};
    savings_saved(two, 2, &s);
    is_near(s.energy_j, 1790 + 100, 1e-9, "each regime against its own reference");
    is_near(s.slowdown, (109 + 20) / (100 + 20.0), 1e-12, "in time too");
    two[1].reference = (struct savings_mean){0};
    savings_saved(two, 2, &s);
    ok(s.steps == 100, "a regime without a reference is not compared");
}

/* A job whose steps grow dearer: what was measured at its start says too little. */
static void measured_again(void)
{
    struct savings a = {0};
    struct savings_saved s;
    double level = 1, spent_j = 0, would_j = 0;

    for (unsigned i = 0; i < 2; i++)
        savings_mean_add(&a.reference, 1.0, 100, 0.001, 0.001);
    a.sum[STRETCH_REFERENCE] = (struct savings_sum){20, 20, 2000, 0};
    for (unsigned i = 0; i < 100; i++) {
        level *= 1.002;
        if (i % 20 == 10) {
            on_reference(&a, 10 * i, level, 100 * level, 0.001);
            a.sum[STRETCH_REFERENCE_CHECK].steps += 10;
            a.sum[STRETCH_REFERENCE_CHECK].time_s += 10 * level;
            a.sum[STRETCH_REFERENCE_CHECK].energy_j += 1000 * level;
            continue;
        }
        on_hold(&a, 10 * i, 1.1 * level, 80 * level, 0.001);
        savings_mean_add(&a.hold, 1.1 * level, 80 * level, 0.001, 0.001);
        a.sum[STRETCH_HOLD].steps += 10;
        a.sum[STRETCH_HOLD].time_s += 11 * level;
        a.sum[STRETCH_HOLD].energy_j += 800 * level;
        spent_j += 800 * level;
        would_j += 1000 * level;
    }
    savings_saved(&a, 1, &s);
    is_int(s.pairs, 5, "five windows at the reference cap, out of the hold");
    is_near(s.energy_j, would_j - spent_j, s.half_j,
            "what was saved lies within: %.0f +- %.0f", s.energy_j, s.half_j);
    ok(s.half_j < 0.01 * would_j && s.half_j > 0, "and is well known");
    ok(fabs(960 * 100 - spent_j - s.energy_j) > 5 * s.half_j,
       "the start's windows alone would be far off");
    is_near(s.visits_s, a.sum[STRETCH_REFERENCE_CHECK].time_s, 1e-9,
            "time at the reference is told");
    ok(s.visits_cost_j > 0, "and what it cost");

    double before_j = s.energy_j;
    savings_hold_anew(&a);
    savings_saved(&a, 1, &s);
    is_near(s.energy_j, before_j, 1e-6, "another cap: what was saved before stays");
    ok(s.pairs == 5 && a.pairs.pairs == 0,
       "and nothing of it is compared with the new cap");
    a.sum[STRETCH_HOLD] = (struct savings_sum){10, 12, 700, 0};
    savings_saved(&a, 1, &s);
    is_near(s.energy_j, before_j + 10 * 100 - 700, 1e-6,
            "until then the mean of the reference serves");
    savings_reference_anew(&a);
    savings_saved(&a, 1, &s);
    ok(!s.known, "without a reference nothing is told");
    savings_mean_add(&a.reference, 1.0, 90, 0, 0);
    savings_saved(&a, 1, &s);
    is_near(s.energy_j, before_j + 10 * 100 - 700 - 20 * 10, 1e-6,
            "holds of before stay as they were compared");
}

/* A search that never came to hold anything, and one that left its hold for a while. */
static void on_the_way(void)
{
    struct savings a = {.sum = {[STRETCH_REFERENCE] = {10, 10, 1000, 0},
                                [STRETCH_SEARCH] = {10, 11, 900, 0}}};
    struct savings_saved s;

    savings_mean_add(&a.reference, 1.0, 100, 0.001, 0.001);
    savings_saved(&a, 1, &s);
    ok(!s.known && s.half_j == 0, "ended before it held a cap: unknown, not 0 +- 0");
    savings_mean_add(&a.hold, 2.2, 160, 0.001, 0.001);
    on_reference(&a, 0, 1, 100, 0.001);
    for (unsigned i = 0; i < 8; i++)
        on_hold(&a, 100 + 10 * i, 2.2, 160, 0.001);
    a.sum[STRETCH_HOLD] = (struct savings_sum){40, 88, 6400, 0};
    savings_saved(&a, 1, &s);
    ok(s.known, "a window of a hold: known");
    is_near(s.energy_j, (2000 - 1900) + (6400 / 1.6 - 6400), 1e-6,
            "steps that are twice as dear by then cost that without a cap, too");
    double half_j = s.half_j, before_j = s.energy_j;
    a.sum[STRETCH_SEARCH_AGAIN] = (struct savings_sum){20, 30, 3000, 0};
    savings_saved(&a, 1, &s);
    is_near(s.energy_j - before_j, 20 * 6400 / 1.6 / 40 - 3000, 1e-6,
            "out of the hold as well, and not what they did at the start");
    ok(s.half_j > half_j && s.search_s == 51 && s.steps == 80,
       "which is search, and not for sure");
    a.sum[STRETCH_BACK] = (struct savings_sum){10, 15, 1500, 0};
    savings_saved(&a, 1, &s);
    is_near(s.energy_j - before_j, 30 * 6400 / 1.6 / 40 - 4500, 1e-6,
            "the way back to the hold after a stop is compared with the holds, too");
    ok(s.search_s == 51 && s.back_s == 15 && s.steps == 90, "… and is no search");
}

/* Regimes as a job has them, no two alike: some without a reference, some without a hold,
 * some with pairs.
 */
static void make_regimes(struct savings *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        double x = 1 + 0.1 * i;
        a[i] = (struct savings){.sum = {{10 * x, 11, 1000 * x, 4},
                                        {5 * x, 6, 450, 3},
                                        {70 * x, 80, 6000 + 10 * x, 9},
                                        {3 * x, 3, 300, 1},
                                        {2 * x, 3, 250, 1},
                                        {x, 2, 125, 1}}};
        if (i % 4 == 3)
            continue;
        savings_mean_add(&a[i].reference, x, 100 * x, 0.002, 0.003);
        savings_mean_add(&a[i].reference, 1.01 * x, 101 * x, 0.002, 0.003);
        if (i % 4 == 2)
            continue;
        savings_mean_add(&a[i].hold, 1.1 * x, 80 * x, 0.001, 0.001);
        if (i % 4 == 1)
            continue;
        on_hold(&a[i], 0, 1.1 * x, 80 * x, 0.002);
        on_reference(&a[i], 10, x, 100 * x, 0.004);
        on_hold(&a[i], 20, 1.1 * x, 80 * x, 0.002);
        savings_hold_anew(&a[i]);
        a[i].sum[STRETCH_HOLD] = (struct savings_sum){20, 25, 1700, 2};
        savings_mean_add(&a[i].hold, 1.2 * x, 85 * x, 0.001, 0.001);
    }
}

static void is_like(double got, double want, const char *what)
{
    is_near(got, want, 1e-12 * fabs(want), "… %s: %g", what, want);
}

/* A job that changes more often than there is room for. */
static void merged(void)
{
    enum { REGIMES = 9 };
    struct savings a[REGIMES];
    struct savings_saved want, is;
    double booked_s = 0, is_s = 0;

    make_regimes(a, REGIMES);
    savings_saved(a, REGIMES, &want);
    for (size_t i = 0; i < REGIMES; i++)
        booked_s += savings_time_s(&a[i], 1);
    for (size_t n = REGIMES; n > 2; n--)
        savings_merge(a, n);
    savings_saved(a, 2, &is);
    ok(want.known && is.known && want.cost_known && is.cost_known &&
           is.pairs == want.pairs && want.pairs == 3,
       "nine regimes in the room of two, three pairs with them");
    ok(a[0].older.regimes == 7 && a[0].older.compared == 6 && a[0].older.held == 4 &&
           a[1].older.regimes == 0,
       "… seven of them older ones");
    is_like(is.steps, want.steps, "steps");
    is_like(is.energy_j, want.energy_j, "J saved");
    is_like(is.half_j, want.half_j, "J of them not known");
    is_like(is.fraction, want.fraction, "as a part");
    is_like(is.slowdown, want.slowdown, "slowdown");
    is_like(is.slowdown_half, want.slowdown_half, "± that");
    is_like(is.search_s, want.search_s, "s of search");
    is_like(is.search_steps, want.search_steps, "steps of it");
    is_like(is.cost_j, want.cost_j, "J for it");
    is_like(is.cost_s, want.cost_s, "s for it");
    is_like(is.visits_s, want.visits_s, "s of visits");
    is_like(is.back_s, want.back_s, "s of ways back");
    is_like(is.visits_cost_j, want.visits_cost_j, "J for them");
    for (size_t i = 0; i < 2; i++)
        is_s += savings_time_s(&a[i], 1);
    is_like(is_s, booked_s, "s booked");

    a[1].sum[STRETCH_HOLD].energy_j += 100;
    savings_saved(a, 2, &is);
    is_near(is.energy_j, want.energy_j - 100, 1e-6, "the last one goes on");
}

/* A regime whose reference no longer holds: the others are compared as before. */
static void reference_lost(void)
{
    struct savings a[2];
    struct savings_saved want, is;

    make_regimes(a, 2);
    double booked_s = savings_time_s(a, 2);
    savings_saved(a + 1, 1, &want);
    savings_reference_lost(a);
    savings_mean_add(&a->hold, 1.3, 95, 0.001, 0.001); /* its hold goes on */
    a->sum[STRETCH_HOLD] = (struct savings_sum){10, 13, 950, 2};
    savings_saved(a, 2, &is);
    ok(want.known && is.known && is.steps == want.steps, "one of two regimes: %g steps",
       is.steps);
    is_like(is.energy_j, want.energy_j, "J saved");
    is_like(is.half_j, want.half_j, "J of them not known");
    is_like(is.slowdown, want.slowdown, "slowdown");
    is_near(savings_time_s(a, 2), booked_s + 13, 1e-9, "the time of all steps stays");
    savings_reference_lost(a); /* the other claim allows still more */
    savings_reference_lost(a + 1);
    savings_saved(a, 2, &is);
    ok(!is.known && is.held_slowdown == 0, "both: nothing is told");
}

static void whole_job(void)
{
    struct savings a = {0};
    struct whole_job_more more = {0};

    is_near(whole_job_left_s(&a, 1, &more, 1.05), 0, 1e-12, "nothing has run");
    more.own_s = 20;
    is_near(whole_job_left_s(&a, 1, &more, 1.05), 1, 1e-12,
            "20 s at the original cap earn 1 s");
    a.sum[STRETCH_REFERENCE] = (struct savings_sum){20, 20, 2000, 0};
    more = (struct whole_job_more){.time_s = 12, .steps = 10};
    is_near(whole_job_left_s(&a, 1, &more, 1.05), 1, 1e-12,
            "steps elsewhere do not count before a reference");
    savings_mean_add(&a.reference, 1.0, 100, 0, 0);
    is_near(whole_job_left_s(&a, 1, &more, 1.05), 1 + 1.05 * 10 - 12, 0.025,
            "10 steps that took 12 s cost 1.5 s");
    a.sum[STRETCH_SEARCH] = (struct savings_sum){10, 12, 900, 0};
    more = (struct whole_job_more){0};
    is_near(whole_job_left_s(&a, 1, &more, 1.05), 1 + 1.05 * 10 - 12, 0.025,
            "the same once their energy is known");
    struct savings noisy = a;
    noisy.reference = (struct savings_mean){0};
    savings_mean_add(&noisy.reference, 1.0, 100, 0.01, 0.01);
    is_near(whole_job_left_s(&a, 1, &more, 1.05) -
                whole_job_left_s(&noisy, 1, &more, 1.05),
            1.05 * 10 * 1.96 * 0.009, 1e-6,
            "by the lower limit of what is known of the reference; its own steps are "
            "exact");
    noisy.reference = (struct savings_mean){0};
    savings_mean_add(&noisy.reference, 1.0, 100, 0, 0.02);
    is_near(whole_job_left_s(&noisy, 1, &more, 1.05),
            whole_job_left_s(&a, 1, &more, 1.05), 1e-12,
            "whatever the error of its energy");
    is_near(whole_job_most(1.05, 1, 10), 1.05 * 1.07, 1e-12,
            "10 s may cost 0.7 of what is left");
    is_near(whole_job_most(1.05, -3, 10), 1.05, 1e-12, "nothing is left: the bound");
}

int main(void)
{
    whole_job();
    stretches();
    saved();
    measured_again();
    on_the_way();
    merged();
    reference_lost();
    return done();
}
