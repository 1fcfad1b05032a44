/* What is remembered of a job's phases. */
#include "core/policy/phase-book.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "core/policy/phase-cost.h"
#include "core/policy/phase-curve.h"
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

/* ---- returns ---- */

static void come_back(struct phase_returns *r, double took_s, double at_s)
{
    const struct phase_return one = {took_s, 0.4, PHASE_LATENCY_DEFAULT};

    phase_returned(r, &one, at(at_s));
}

static void test_returns(void)
{
    struct phase_returns r = {.began_ns = at(100)};

    for (unsigned i = 0; i < 100; i++)
        come_back(&r, 0.05, 100 + 6 * i);
    ok(!r.off && r.n == 100 && r.late == 0 && phase_returns_lost(&r, at(700)) < 0.01,
       "one each 6 s: %.2f %% of the time", 100 * phase_returns_lost(&r, at(700)));
    come_back(&r, 0.14, 701);
    ok(!r.off && r.late == 1, "one that is late");
    for (unsigned i = 0; i < 8; i++)
        come_back(&r, 0.05, 710 + 6 * i);
    come_back(&r, 0.14, 760);
    ok(!r.off && r.late == 2, "another one, long after");
    come_back(&r, 0.14, 770);
    ok(r.off, "two of the last eight: no more caps of phases");
    come_back(&r, 0.05, 100000);
    ok(r.off, "for good");

    r = (struct phase_returns){.began_ns = at(100)};
    come_back(&r, 0.05, 100.5);
    ok(!r.off, "the first one may come soon");
    unsigned n = 1;
    while (!r.off && n < 100)
        come_back(&r, 0.05, 100.5 + 2 * n++);
    ok(r.off && n > 10 && r.late == 0,
       "one each 2 s costs more than 1 %% of the time, said after %u", n);
}

/* ---- against a static cap ---- */

/* A phase whose power is its cap, and whose speed goes with cap^power. */
static void play_curve(struct phase_curve *c, double power, double unit_s, double units,
                       double ruled_w)
{
    for (double cap_w = 150; cap_w <= 300; cap_w += 15) {
        double s = unit_s * pow(300 / cap_w, power);
        phase_curve_add(c, &(struct phase_stretch){.cap_w = cap_w,
                                                   .power_w = cap_w,
                                                   .time_s = s * units,
                                                   .units = units,
                                                   .by_steps = true,
                                                   .whole = true});
    }
    if (ruled_w > 0)
        phase_curve_add(c, &(struct phase_stretch){
                               .cap_w = ruled_w,
                               .power_w = ruled_w,
                               .time_s = unit_s * pow(300 / ruled_w, power) * units,
                               .units = units,
                               .by_steps = true,
                               .ruled = true,
                               .whole = true});
}

static void test_compare(void)
{
    struct phase_curve c[BOOK_PHASES] = {{.n = 0}};
    struct phase_compared got;

    phase_compare(c, BOOK_PHASES, 0, &got);
    ok(!got.known, "nothing is measured: unknown");

    play_curve(&c[UW_PHASE_TRAIN], 0.3, 1, 100, 0);
    phase_compare(c, BOOK_PHASES, 0, &got);
    ok(!got.known, "no rule caps a phase: unknown");
    play_curve(&c[UW_PHASE_VALIDATE], 0, 1, 20, 180);
    phase_compare(c, BOOK_PHASES, 0, &got);
    ok(got.known && got.saved > 0.03,
       "a phase that a cap does not slow: saves %.1f %% against %.0f W", 100 * got.saved,
       got.static_w);
    double saved = got.saved;
    phase_compare(c, BOOK_PHASES, 30, &got);
    ok(got.known && got.saved < saved && got.static_w < 300,
       "time that returns lose lets the static cap be lower: %.0f W", got.static_w);

    memset(&c[UW_PHASE_VALIDATE], 0, sizeof c[0]);
    play_curve(&c[UW_PHASE_VALIDATE], 0.3, 1, 20, 180);
    phase_compare(c, BOOK_PHASES, 0, &got);
    ok(got.known && got.saved < 0, "a phase as training is: costs %.1f %% against %.0f W",
       -100 * got.saved, got.static_w);

    memset(&c[UW_PHASE_VALIDATE], 0, sizeof c[0]);
    play_curve(&c[UW_PHASE_VALIDATE], 0.6, 1, 20, 180);
    memset(&c[UW_PHASE_TRAIN], 0, sizeof c[0]);
    for (unsigned i = 0; i < 2; i++)
        phase_curve_add(&c[UW_PHASE_TRAIN],
                        &(struct phase_stretch){.cap_w = i ? 300 : 295,
                                                .power_w = 295,
                                                .time_s = 100,
                                                .units = 100,
                                                .by_steps = true,
                                                .whole = true});
    phase_compare(c, BOOK_PHASES, 0, &got);
    ok(!got.known, "training was never capped so low: unknown");
}

/* Each cap's power is the mean of seconds, off by up to 4 %; the truth is that of a phase
 * as training is.
 */
static void test_noisy_points(void)
{
    struct phase_curve exact[BOOK_PHASES] = {{.n = 0}};
    struct phase_compared truth, got;
    double worst = 0;

    play_curve(&exact[UW_PHASE_TRAIN], 0.3, 1, 100, 0);
    play_curve(&exact[UW_PHASE_VALIDATE], 0.3, 1, 20, 180);
    phase_compare(exact, BOOK_PHASES, 0, &truth);
    for (unsigned shift = 0; shift < 5; shift++) {
        struct phase_curve c[BOOK_PHASES];
        memcpy(c, exact, sizeof c);
        for (size_t i = 0; i < c[UW_PHASE_TRAIN].n; i++)
            c[UW_PHASE_TRAIN].point[i].power_w *=
                1 + 0.02 * ((double)(2 * (i + shift) % 5) - 2);
        phase_compare(c, BOOK_PHASES, 0, &got);
        worst = fmax(worst, fabs(got.saved - truth.saved));
    }
    ok(worst < 0.03, "points that are off by up to 4 %%: the saving is off by %.2f %%",
       100 * worst);
}

static bool after(struct phase_gain *g, double saved, unsigned n)
{
    const struct phase_compared c = {.known = saved == saved, .saved = saved};

    while (n-- > 0)
        phase_gain_step(g, &c);
    return g->none;
}

static void test_gain(void)
{
    struct phase_gain g = {.none = false};

    ok(!after(&g, 0.02, 9), "caps of phases save 2 %%");
    ok(!after(&g, -0.01, 2) && !after(&g, 0.001, 1) && !after(&g, -0.01, 2),
       "two comparisons in a row that find no gain end nothing");
    ok(!after(&g, NAN, 5) && after(&g, -0.01, 1), "the third one does");
    ok(after(&g, 0.004, 9), "0.4 %% begin nothing");
    ok(after(&g, 0.006, 2) && !after(&g, 0.006, 1), "0.6 %% do, three times");
}

static void test_curve(void)
{
    struct phase_curve c = {.n = 0};
    struct phase_stretch s = {.cap_w = 200,
                              .power_w = 190,
                              .time_s = 10,
                              .units = 1,
                              .whole = true,
                              .ruled = true};

    for (unsigned i = 0; i < 3 * CURVE_POINTS; i++) {
        s.cap_w = 100 + 5 * (i * 7 % 50);
        phase_curve_add(&c, &s);
    }
    bool sorted = c.n <= CURVE_POINTS;
    for (size_t i = 1; i < c.n; i++)
        sorted &= c.point[i - 1].cap_w < c.point[i].cap_w;
    ok(sorted && c.n > 8, "%zu points, by cap", c.n);
    s.ruled = false;
    s.barred = true;
    phase_curve_add(&c, &s);
    ok(c.ruled_w > 0, "the rule's cap stays known while the rule may not act");
    s.barred = false;
    phase_curve_add(&c, &s);
    ok(c.ruled_w <= 0, "… and not once no rule caps the phase");
    s.by_steps = true;
    phase_curve_add(&c, &s);
    ok(c.by_steps && c.n == 1, "steps that become known begin a curve anew");
    s.by_steps = false;
    phase_curve_add(&c, &s);
    ok(c.n == 1 && c.units <= 1, "steps and whole phases are not added");
}

int main(void)
{
    test_ran();
    test_length();
    test_break_even();
    test_lags();
    test_settling();
    test_returns();
    test_compare();
    test_noisy_points();
    test_gain();
    test_curve();
    return done();
}
