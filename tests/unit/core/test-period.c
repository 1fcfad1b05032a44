#include "core/progress/period.h"

#include <errno.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

/* A board's power at t, and what is known of it. */
struct signal {
    double period_s, second_s; /* 0: none */
    unsigned micro;            /* micro-batches in a period; 0: one block */
    double depth_w, noise_w, walk_w;
};

static double power_at(const struct signal *g, double t)
{
    double w = 300;

    if (g->period_s > 0) {
        double phase = t / g->period_s - floor(t / g->period_s);
        if (g->micro == 0) {
            w -= phase < 0.7 ? 0 : g->depth_w;
        } else {
            double each = 0.88 / g->micro, in = fmod(phase, each) / each;
            w -= phase > 0.88 ? g->depth_w : in > 0.8 ? 0.6 * g->depth_w : 0;
        }
    }
    if (g->second_s > 0)
        w -= fmod(t, g->second_s) < 0.5 * g->second_s ? 0 : g->depth_w;
    return w;
}

static void feed(struct period *p, unsigned board, const struct signal *g, double from_s,
                 double to_s, double rate_hz, struct rng *rng)
{
    double walk = 0;

    double t = from_s;

    while (t < to_s) {
        walk += g->walk_w * rng_normal(rng);
        struct activity a = {
            ns_of_s(t), power_at(g, t) + walk + g->noise_w * rng_normal(rng),
            NAN,        NAN,
            NAN,        NAN};
        period_feed(p, board, &a);
        t += (1 + 0.1 * (rng_uniform(rng) - 0.5)) / rate_hz;
    }
}

static struct period_found find(const struct signal *g, double s, double rate_hz,
                                uint64_t seed)
{
    struct period *p;
    struct period_found f;
    struct rng rng;

    rng_init(&rng, seed);
    if (period_new(1, &p) < 0)
        return (struct period_found){.why = PERIOD_FEW};
    feed(p, 0, g, 100, 100 + s, rate_hz, &rng);
    period_find(p, &f);
    period_free(p);
    return f;
}

static void known(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct signal g;
        double s, rate_hz;
    } cases[] = {
        {"1 s, twelve of them", {.period_s = 1, .depth_w = 100, .noise_w = 2}, 12, 10},
        {"7.3 s, four and a half", {.period_s = 7.3, .depth_w = 60, .noise_w = 2}, 33, 10},
        {"60 s, four and a bit", {.period_s = 60, .depth_w = 60, .noise_w = 3}, 255, 10},
        {"0.35 s at 10 Hz", {.period_s = 0.35, .depth_w = 100, .noise_w = 2}, 20, 10},
        {"a swing under the noise", {.period_s = 4.1, .depth_w = 6, .noise_w = 6}, 120, 10},
        {"4 micro-batches", {.period_s = 8, .micro = 4, .depth_w = 80, .noise_w = 2}, 45, 10},
        {"8 micro-batches", {.period_s = 12, .micro = 8, .depth_w = 80, .noise_w = 2}, 80, 10},
        {"at 1 Hz", {.period_s = 20, .depth_w = 80, .noise_w = 2}, 200, 1},
        {"at 50 Hz", {.period_s = 2.5, .depth_w = 80, .noise_w = 6}, 40, 50},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct period_found f = find(&cases[i].g, cases[i].s, cases[i].rate_hz, i + 1);
        ok(f.why == PERIOD_FOUND, "%s: found", cases[i].name);
        is_near(f.period_s, cases[i].g.period_s, 0.01 * cases[i].g.period_s,
                "%s: within 1 %%", cases[i].name);
        ok(f.confidence > 0.3 && f.rse < 0.015 && f.periods >= 2.8,
           "%s: confidence %.2f, error %.4f, %.1f periods", cases[i].name, f.confidence,
           f.rse, f.periods);
    }
}

static void unknown(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        struct signal g;
        double s;
        enum period_why why;
    } cases[] = {
        {"two periods are too few", {.period_s = 10, .depth_w = 60, .noise_w = 2}, 20, PERIOD_NONE},
        {"half a second", {.period_s = 1, .depth_w = 60}, 0.5, PERIOD_FEW},
        {"constant", {.depth_w = 0}, 60, PERIOD_FLAT},
        {"white noise", {.noise_w = 9}, 200, PERIOD_NONE},
        {"a random walk", {.walk_w = 3}, 200, PERIOD_NONE},
        {"two jobs", {.period_s = 3, .second_s = 4.5, .depth_w = 60, .noise_w = 1}, 60, PERIOD_MIXED},
        {"faster than the samples tell", {.period_s = 0.12, .depth_w = 60, .noise_w = 1}, 60, PERIOD_ALIAS},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct period_found f = find(&cases[i].g, cases[i].s, 10, i + 1);
        ok(f.period_s == 0 && f.confidence == 0, "%s: unknown (%g s)", cases[i].name,
           f.period_s);
        is_int(f.why, cases[i].why, "%s: why", cases[i].name);
    }
}

static void changes(void)
{
    struct signal g = {.period_s = 2, .depth_w = 80, .noise_w = 4};
    struct period_found before, after;
    struct period *p;
    struct rng rng;

    rng_init(&rng, 7);
    if (period_new(2, &p) < 0)
        return;
    for (unsigned b = 0; b < 2; b++) {
        g.period_s = 2;
        feed(p, b, &g, 100, 140, 10, &rng);
        g.period_s = 2.04;
        feed(p, b, &g, 140, 180, 10, &rng);
    }
    period_between(p, 100 * NS_PER_S, 140 * NS_PER_S, 1.6, 2.5, &before);
    period_between(p, 140 * NS_PER_S, 180 * NS_PER_S, 1.6, 2.5, &after);
    ok(before.why == PERIOD_FOUND && after.why == PERIOD_FOUND,
       "both spans have a period");
    is_near(after.period_s / before.period_s - 1, 0.02, 0.004, "2 %% slower is seen");
    ok(hypot(before.rse, after.rse) < 0.004, "with a small error");
    period_between(p, 150 * NS_PER_S, 152 * NS_PER_S, 1.6, 2.5, &after);
    ok(after.why != PERIOD_FOUND, "one cycle is none");

    struct period *copy;
    struct period_found a, b;
    if (period_copy(p, &copy) == 0) {
        period_find(p, &a);
        period_forget(p);
        period_find(copy, &b);
        ok(a.why == b.why && a.period_s == b.period_s && a.rse == b.rse &&
               a.confidence == b.confidence,
           "a copy answers the same");
        period_find(p, &b);
        ok(b.why == PERIOD_FEW, "what was forgotten is not known");
        period_free(copy);
    }
    period_free(p);
}

static void edges(void)
{
    struct period *p = NULL;
    struct activity a = {NS_PER_S, 100, 50, NAN, 1000, NAN};

    ok(period_new(0, &p) == -EINVAL && period_new(PERIOD_BOARDS + 1, &p) == -EINVAL,
       "no boards, too many");
    ok(period_new(1, &p) == 0, "one");
    ok(isnan(period_busy(p, 0, 9 * NS_PER_S)), "nothing seen: busy is unknown");
    period_feed(p, 0, &a);
    a.at_ns += NS_PER_S;
    a.sm_mhz = 2000;
    period_feed(p, 0, &a);
    is_near(period_busy(p, 0, 9 * NS_PER_S), 0.375, 1e-6,
            "half the time at 1 and 2 GHz of 2");
    period_free(p);
    period_free(NULL);
}

/* Where the period is known to lie: half of it is no answer, and twice neither. */
static void between(void)
{
    const struct signal g = {.period_s = 0.8, .depth_w = 120, .noise_w = 3};
    struct period_found f;
    struct period *p;
    struct rng rng;

    rng_init(&rng, 5);
    if (!ok(period_new(1, &p) == 0, "an estimator"))
        return;
    feed(p, 0, &g, 100, 130, 20, &rng);
    period_between(p, ns_of_s(110), ns_of_s(130), 0.6, 1.2, &f);
    ok(f.why == PERIOD_FOUND && fabs(f.period_s / 0.8 - 1) < 0.01 && f.confidence > 0.9,
       "0.8 s between 0.6 and 1.2: %g s, sure to %.2f", f.period_s, f.confidence);
    period_between(p, ns_of_s(110), ns_of_s(130), 0.3, 0.6, &f);
    ok(f.why != PERIOD_FOUND, "… between 0.3 and 0.6: unknown, not half of it");
    period_between(p, ns_of_s(110), ns_of_s(130), 1.2, 1.9, &f);
    ok(f.why != PERIOD_FOUND, "… between 1.2 and 1.9: unknown, not twice it");
    period_free(p);
}

/* Even cycles: 10 s of a pause in the middle. */
static void runs(void)
{
    const struct signal g = {.period_s = 0.8, .depth_w = 120, .noise_w = 3},
                        none = {.depth_w = 0, .noise_w = 3};
    uint64_t from = 7, to = 7;
    struct period *p;
    struct rng rng;

    rng_init(&rng, 6);
    if (!ok(period_new(1, &p) == 0, "an estimator"))
        return;
    ok(!period_run(p, ns_of_s(100), ns_of_s(120), 0.8, &from, &to) && from == 7 &&
           to == 7,
       "nothing was seen: no run, nothing written");
    feed(p, 0, &g, 100, 116, 10, &rng);
    feed(p, 0, &none, 116, 122, 10, &rng);
    feed(p, 0, &g, 122, 130, 10, &rng);
    ok(period_run(p, ns_of_s(100), ns_of_s(130), 0.8, &from, &to), "a run");
    ok(from >= ns_of_s(100) && from < ns_of_s(101) && to > ns_of_s(112) &&
           to < ns_of_s(117),
       "… before the level changed: %g to %g s", s_of_ns(from), s_of_ns(to));
    double cycles = s_between(from, to) / 0.8;
    ok(fabs(cycles - round(cycles)) < 1e-6, "… of whole cycles: %g", cycles);
    period_free(p);
}

/* What a sensor of 0.1 s makes of a load that draws most_w, and least_w in a third of its
 * time, on so many boards that it looks at late after each other, read as the daemon
 * does.
 */
struct load {
    double period_s, most_w, least_w;
    unsigned boards;
    bool apart;
    double counter_s; /* between updates of a counter that misses nothing; 0: none */
};

static double counted_j(const struct load *g, double t)
{
    double tick = g->counter_s > 0 ? floor(t / g->counter_s) * g->counter_s : 0;
    double n = floor(tick / g->period_s), rest = tick - n * g->period_s;
    double high = 0.67 * g->period_s;

    if (g->counter_s <= 0)
        return NAN;
    return g->least_w * tick + (g->most_w - g->least_w) * (n * high + fmin(rest, high));
}

static double shown_w(const struct load *g, double t, double window_s)
{
    double sum = 0;

    for (unsigned k = 0; k < 200; k++) {
        double phase = (t - window_s * k / 200) / g->period_s;
        sum += phase - floor(phase) < 0.67 ? g->most_w : g->least_w;
    }
    return sum / 200 + fmod(round(t * 10) * 7, 5) * 0.2;
}

static struct period_found through(const struct load *g, double window_s,
                                   const struct period_sensor *sensor)
{
    static const double late_s[4] = {0.005, 0.031, 0.048, 0.083};
    struct period_found f = {.why = PERIOD_FEW};
    struct period *p;
    struct rng rng;
    double at_s[4] = {0};

    rng_init(&rng, 11);
    if (period_new(g->boards, &p) < 0)
        return f;
    period_sensor(p, sensor);
    for (unsigned i = 0; i < 300 * g->boards; i++) {
        unsigned b = i % g->boards;
        at_s[b] += 0.06 + 0.08 * rng_uniform(&rng);
        double late = g->apart ? late_s[b] : late_s[0];
        double tick = floor((at_s[b] - late) / 0.1) * 0.1 + late;
        struct activity a = {
            ns_of_s(at_s[b] + 100), shown_w(g, tick, window_s), NAN, NAN, NAN,
            counted_j(g, at_s[b])};
        period_feed(p, b, &a);
    }
    period_find(p, &f);
    period_free(p);
    return f;
}

static void sensors(void)
{
    const struct period_sensor whole = {0.1, 0.1, 400}, part = {0.1, 0.025, 400};
    /* clang-format off */
    static const struct {
        const char *name;
        struct load load;
        bool in_part, sure;
    } cases[] = {
        {"8 looks a cycle, the whole time, 300 and 20 W", {0.783, 300, 20, 1, false, 0}, false, true},
        {"… and 300 and 235 W: more than a faster one could", {0.783, 300, 235, 1, false, 0}, false, true},
        {"… and 300 and 285 W", {0.783, 300, 285, 1, false, 0}, false, false},
        {"1.1 looks a cycle", {0.1132, 300, 20, 1, false, 0}, false, false},
        {"5.5 looks of a quarter of the time", {0.553, 300, 20, 1, false, 0}, true, false},
        {"17 looks", {1.71, 300, 20, 1, false, 0}, true, false},
        {"… with a counter", {1.71, 300, 20, 1, false, 0.1}, true, true},
        {"0.97 looks with a counter: seen as something of 3 s", {0.1034, 300, 20, 1, false, 0.1}, true, false},
        {"5.5 looks on four boards, at other moments", {0.553, 300, 20, 4, true, 0}, true, true},
        {"… at the same", {0.553, 300, 20, 4, false, 0}, true, false},
        {"3.6 looks, a swing of 15 W", {0.363, 300, 285, 4, true, 0}, true, true},
        {"0.86 looks a cycle, on four boards", {0.0863, 300, 20, 4, true, 0}, true, false},
        {"0.93 looks: seen as something of over a second", {0.0929, 300, 20, 4, true, 0}, true, false},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct load *g = &cases[i].load;
        const struct period_sensor *s = cases[i].in_part ? &part : &whole;
        struct period_found f = through(g, s->window_s, s);
        bool right = fabs(f.period_s / g->period_s - 1) < 0.02;
        ok(cases[i].sure ? right && f.confidence > 0.7 : f.confidence < 0.7,
           "%s: %g s, sure to %.2f", cases[i].name, f.period_s, f.confidence);
    }
}

/* A square wave as a sensor of which nothing is known shows it at this moment. */
struct reader {
    double hz, other_hz, jitter; /* of the second half, 0: as the first; of a gap */
    double counter_s;            /* between updates of the counter; 0: none is read */
    double begins_anew_s;        /* when its driver is loaded again; 0: never */
};

static struct period_found even(double period_s, const struct reader *r, uint64_t seed)
{
    struct period_found f = {.why = PERIOD_FEW};
    struct period *p;
    struct rng rng;

    rng_init(&rng, seed);
    if (period_new(1, &p) < 0)
        return f;
    for (double due = 0; due < 30;) {
        double rate = r->other_hz > 0 && due > 15 ? r->other_hz : r->hz;
        double at = due + r->jitter * (rng_uniform(&rng) - 0.5) / rate + 1;
        double turns = at / period_s, energy = NAN;
        if (r->counter_s > 0) {
            double tick = floor(at / r->counter_s) * r->counter_s, n = tick / period_s;
            energy =
                200 * tick + 100 * period_s * (0.6 * floor(n) + fmin(n - floor(n), 0.6));
            energy -= r->begins_anew_s > 0 && at > r->begins_anew_s
                          ? 260 * r->begins_anew_s
                          : 0;
        }
        struct activity a = {
            ns_of_s(at), (turns - floor(turns) < 0.6 ? 300 : 200) + rng_normal(&rng),
            NAN,         NAN,
            NAN,         energy};
        period_feed(p, 0, &a);
        due += 1 / rate;
    }
    period_find(p, &f);
    period_free(p);
    return f;
}

/* Readings at even times of a sensor that nothing is known of. */
static void evenly(void)
{
    const struct reader plain = {.hz = 50, .jitter = 0.02},
                        counter = {.hz = 50, .jitter = 0.02, .counter_s = 0.1},
                        anew = {.hz = 50, .counter_s = 0.1, .begins_anew_s = 20},
                        rates = {.hz = 50, .other_hz = 31},
                        twice = {.hz = 50, .other_hz = 25},
                        dither = {.hz = 50, .jitter = 0.8};
    unsigned seen = 0, sure = 0, sure_counter = 0, sure_rates = 0, right = 0, lost = 0;

    for (unsigned k = 0; k < 40; k++) {
        double period_s = 0.6 * pow(5, k / 40.0);
        double loop_s = 1 / ((1 + k % 6) * 50 + 1 / period_s);
        struct period_found f = even(loop_s, &plain, k);
        seen += f.why == PERIOD_FOUND;
        sure += f.confidence >= 0.7;
        sure_counter += even(loop_s, &counter, k).confidence >= 0.7;
        sure_rates += even(loop_s, &rates, k).confidence >= 0.7;
        f = even(period_s, &counter, k);
        lost += f.why == PERIOD_FOUND && f.confidence < 0.7;
        right += f.confidence >= 0.7 && fabs(f.period_s / period_s - 1) < 0.02;
    }
    ok(seen >= 5 && sure == 0, "%u fast loops of 40 look like slow ones, %u for sure",
       seen, sure);
    is_int(sure_counter, 0, "… none beside a counter");
    is_int(sure_rates, 0, "… nor at two rates");
    ok(right >= 30 && lost == 0,
       "periods that a counter shows, too: %u of 40 right, %u of others not sure", right,
       lost);
    struct period_found f = even(1.7, &plain, 1);
    ok(f.confidence < 0.7 && fabs(f.period_s / 1.7 - 1) < 0.02,
       "1.7 s, read evenly: sure to %.2f", f.confidence);
    ok(even(1.7, &anew, 1).confidence > 0.7, "… with a counter that begins anew");
    ok(even(1.7, &rates, 1).confidence > 0.7, "… at two rates");
    ok(even(1.7, &twice, 1).confidence < 0.7, "… at one and half of it: no other rate");
    ok(even(1.7, &dither, 1).confidence > 0.7, "… at uneven times");
}

int main(void)
{
    known();
    between();
    runs();
    sensors();
    evenly();
    unknown();
    changes();
    edges();
    return done();
}
