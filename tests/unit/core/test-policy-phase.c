/* What is remembered of a job's phases. */
#include "core/policy/phase-book.h"

#include <math.h>

#include "base/rng.h"
#include "core/policy/phase-cost.h"
#include "tap.h"

#define W(w) ((uint32_t)(w)*1000u)

static uint64_t at(double s)
{
    return ns_of_s(s);
}

/* Training of 60 s, validation of length_s under cap_mw, and training again. */
static double cycle(struct phase_book *b, double from_s, double length_s, uint32_t cap_mw)
{
    (void)phase_book_phase(b, UW_PHASE_TRAIN, at(from_s));
    phase_book_cap(b, 0, W(300), at(from_s + 0.05));
    (void)phase_book_phase(b, UW_PHASE_VALIDATE, at(from_s + 60));
    phase_book_cap(b, 0, cap_mw, at(from_s + 60.05));
    return from_s + 60 + length_s;
}

static void test_ran(void)
{
    struct phase_book b = {.phase = UW_PHASE_UNKNOWN};

    phase_book_cap(&b, 0, W(300), at(1));
    double s = cycle(&b, 10, 5, W(250));
    is_int(phase_book_ran(&b, 0), 0,
           "a phase that has not come before has run under none");
    phase_book_cap(&b, 0, W(240), at(s - 1));
    is_int(phase_book_ran(&b, 0), 0, "what it runs under counts from its end on");
    s = cycle(&b, s, 5, W(270));
    is_int(phase_book_ran(&b, 0), W(240), "the lowest cap of the time before");
    is_int(phase_book_ran(&b, 1), 0, "of that board");
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s));
    is_int(phase_book_ran(&b, 0), W(300),
           "training: not the cap that its begin found and that was lifted at once");
    phase_book_cap(&b, 0, W(300), at(s + 2));
    (void)phase_book_phase(&b, UW_PHASE_VALIDATE, at(s + 4));
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s + 8));
    is_int(phase_book_ran(&b, 0), W(270), "… but one that stayed longer");
    (void)phase_book_phase(&b, UW_PHASE_LOAD, at(s + 9));
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s + 9.5));
    (void)phase_book_phase(&b, UW_PHASE_LOAD, at(s + 10));
    is_int(phase_book_ran(&b, 0), W(300), "a phase in which no limit changed");
    (void)phase_book_phase(&b, UW_PHASE_UNKNOWN, at(s + 11));
    is_int(phase_book_ran(&b, 0), 0, "an unknown phase has run under none");
    (void)phase_book_phase(&b, 99, at(s + 12));
    ok(b.phase == UW_PHASE_UNKNOWN, "a phase that there is not is unknown");
}

static void test_length(void)
{
    struct phase_book b = {.phase = UW_PHASE_UNKNOWN};
    double s = 1;

    (void)phase_book_phase(&b, UW_PHASE_VALIDATE, at(0));
    (void)phase_book_phase(&b, UW_PHASE_TRAIN, at(s));
    (void)phase_book_phase(&b, UW_PHASE_VALIDATE, at(s + 1));
    ok(!phase_book_length(&b).known, "a phase whose begin was not seen has no length");
    ok(!phase_book_phase(&b, UW_PHASE_VALIDATE, at(s + 2)) && b.since_ns == at(s + 1),
       "the same phase again is no change");
    s = cycle(&b, s + 5, 7, W(300));
    ok(phase_book_length(&b).known && fabs(phase_book_length(&b).v - 4) < 1e-9,
       "the time from its begin to its end");
    s = cycle(&b, s, 40, W(300));
    s = cycle(&b, s, 8, W(300));
    ok(fabs(phase_book_length(&b).v - 7) < 1e-9, "the median: %.1f s",
       phase_book_length(&b).v);
    for (unsigned i = 0; i < 20; i++)
        s = cycle(&b, s, 2, W(300));
    ok(fabs(phase_book_length(&b).v - 2) < 1e-9, "of the last ones");
}

/* ---- what a change of cap costs ---- */

static void test_break_even(void)
{
    const struct phase_latency v100 = PHASE_LATENCY_DEFAULT;
    const struct phase_latency fast = {0.005, 0.02, 0.05}, slow = {1, 0.05, 0.34};
    double told_s = phase_break_even_s(&v100, 0.02);

    ok(told_s > 0.2 && told_s < 0.4, "of phases that are told at once: %.3f s", told_s);
    ok(phase_break_even_s(&v100, 0.5) > 0.6 && phase_break_even_s(&v100, 0.5) < 1.5,
       "… half a second late: %.3f s", phase_break_even_s(&v100, 0.5));
    ok(phase_break_even_s(&fast, 0.02) < told_s / 2, "of a fast board: %.3f s",
       phase_break_even_s(&fast, 0.02));
    ok(phase_break_even_s(&slow, 0.02) > 1.5, "of a slow call: %.3f s",
       phase_break_even_s(&slow, 0.02));
}

static void test_lags(void)
{
    struct phase_lag lag = {.n = 0};

    ok(phase_lag_s(&lag, 0.3) == 0.3, "no lag is known");
    phase_lag_add(&lag, 0.1);
    phase_lag_add(&lag, 9);
    phase_lag_add(&lag, 0.2);
    ok(phase_lag_s(&lag, 0.3) == 0.2, "one that was late does not count");
    for (unsigned i = 0; i < PHASE_LAGS; i++)
        phase_lag_add(&lag, 0.5);
    ok(phase_lag_s(&lag, 0.3) == 0.5, "the last ones count");
}

/* A board that goes from one power to another in settle_s, with steps of 0.13 s in which
 * its power swings; samples of 100 ms at uneven times.
 */
static void play(struct phase_settling *s, struct rng *g, double change_s, double from_w,
                 double to_w, double settle_s)
{
    bool told = false;

    for (double t = change_s - 3; t < change_s + 3; t += 0.07 + 0.06 * rng_uniform(g)) {
        if (!told && t >= change_s)
            phase_settling_cap(s, W(from_w), W(to_w), 0.04, at(change_s));
        told = t >= change_s;
        double done = fmin(fmax((t - change_s) / settle_s, 0), 1);
        double w = from_w + done * (to_w - from_w);
        phase_settling_sample(s, at(t), w * (fmod(t, 0.13) < 0.03 ? 0.8 : 1.05));
    }
}

static void test_settling(void)
{
    struct phase_settling s = {.n = 0};
    struct phase_latency l;
    struct rng g;

    rng_init(&g, 1);
    phase_settling_latency(&s, &l);
    ok(l.call_s == 0.032 && l.down_s == 0.05 && l.up_s == 0.34,
       "nothing is measured yet");
    for (unsigned i = 0; i < 8; i++) {
        play(&s, &g, 10 + 20 * i, 180, 300, 0.4);
        play(&s, &g, 20 + 20 * i, 300, 180, 0.15);
    }
    phase_settling_latency(&s, &l);
    ok(l.call_s == 0.04, "the call: %.3f s", l.call_s);
    ok(fabs(l.up_s - 0.4) < 0.12, "upwards in 0.4 s: %.3f s", l.up_s);
    ok(fabs(l.down_s - 0.15) < 0.12, "downwards in 0.15 s: %.3f s", l.down_s);
    unsigned n = s.up_lag.n + s.down_lag.n;
    play(&s, &g, 200, 180, 185, 0.4);
    play(&s, &g, 210, 180, 180, 0.4);
    phase_settling_cap(&s, W(180), W(250), 0.04, at(220));
    play(&s, &g, 221, 250, 300, 0.4);
    ok(s.up_lag.n + s.down_lag.n == n,
       "a small change, one that changes nothing, and two at once say nothing");
}

int main(void)
{
    test_ran();
    test_length();
    test_break_even();
    test_lags();
    test_settling();
    return done();
}
