#include "core/progress/tempo.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/progress/phases.h"
#include "tap.h"

/* A board whose power is a square wave, with noise of 1.5 % and steps that vary by 1 %.
 */
struct bench {
    struct tempo *t;
    struct phases *p; /* NULL: not asked */
    struct rng rng;
    double now_s, rate_hz, step_s, step_at_s, step_end_s;
    unsigned changes;
    struct tempo_change last;
    double told_s; /* when it was */
};

static void begin(struct bench *b, double rate_hz)
{
    *b = (struct bench){.rate_hz = rate_hz};
    rng_init(&b->rng, 5);
    if (tempo_new(&b->t) < 0)
        abort();
    tempo_begin(b->t, 0);
}

/* Steps of so long for so long; the mean power is the same whatever they are. */
static void run(struct bench *b, double step_s, double seconds)
{
    double end_s = b->now_s + seconds;

    b->step_at_s = b->now_s;
    b->step_end_s = b->now_s + step_s;
    for (; b->now_s < end_s; b->now_s += 1 / b->rate_hz) {
        while (b->now_s >= b->step_end_s) {
            b->step_at_s = b->step_end_s;
            b->step_end_s += step_s * (1 + 0.01 * rng_normal(&b->rng));
        }
        double part = (b->now_s - b->step_at_s) / (b->step_end_s - b->step_at_s);
        double w = (part < 0.7 ? 300 : 180) * (1 + 0.015 * rng_normal(&b->rng));
        struct activity a = {ns_of_s(b->now_s) + 1, w, NAN, NAN, NAN};
        if (b->p)
            (void)phases_feed(b->p, &a, 0);
        tempo_feed(b->t, &a);
        if (!tempo_look(b->t, a.at_ns, &b->last))
            continue;
        b->changes++;
        b->told_s = b->now_s;
        if (b->p)
            ok(phases_tempo(b->p, b->last.onset_ns), "the phases take it");
    }
}

static void test_changes(void)
{
    static const struct {
        double rate_hz, was_s, is_s, within_s;
    } t[] = {{10, 1.0, 1.3, 0.25}, {10, 1.0, 0.7, 0.25}, {10, 2.0, 2.2, 2.1},
             {50, 0.5, 0.6, 0.35}, {5, 12.0, 9.0, 1.1},  {5, 30.0, 36.0, 1.5}};

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct bench b;
        begin(&b, t[i].rate_hz);
        run(&b, t[i].was_s, fmax(60, 15 * t[i].was_s));
        is_int(b.changes, 0, "steps of %.1f s: no change", t[i].was_s);
        is_near(tempo_period_s(b.t), t[i].was_s, 0.02 * t[i].was_s, "… and known");
        double at_s = b.now_s;
        run(&b, t[i].is_s, fmax(60, 15 * t[i].is_s));
        ok(b.changes >= 1, "then of %.1f s: seen", t[i].is_s);
        is_near(s_of_ns(b.last.onset_ns), at_s, t[i].within_s, "… where they began");
        is_near(b.last.is_s, t[i].is_s, 0.02 * t[i].is_s, "… how long they are");
        is_near(b.last.was_s, t[i].was_s, 0.02 * t[i].was_s, "… and were");
        ok(b.told_s - at_s <= fmax(20, 9 * t[i].is_s), "… after %.1f s", b.told_s - at_s);
        tempo_free(b.t);
    }
}

static void test_steady(void)
{
    static const double steps[] = {0.35, 0.8, 3, 17};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct bench b;
        begin(&b, 10);
        run(&b, steps[i], 1800);
        is_int(b.changes, 0, "half an hour of steps of %.2f s: no change", steps[i]);
        tempo_free(b.t);
    }
}

/* What was before is not compared with; nothing is said of what cannot be known. */
static void test_begins(void)
{
    struct bench b;
    struct tempo_change c;

    begin(&b, 10);
    ok(!tempo_look(b.t, NS_PER_S, &c), "nothing was fed");
    tempo_feed(b.t, &(struct activity){1, NAN, NAN, NAN, NAN});
    ok(!tempo_look(b.t, 2 * NS_PER_S, &c), "no power");
    run(&b, 1, 60);
    tempo_begin(b.t, ns_of_s(b.now_s));
    ok(tempo_period_s(b.t) == 0, "it begins anew: not known");
    run(&b, 2, 60);
    is_int(b.changes, 0, "another pace than before that is no change");
    is_near(tempo_period_s(b.t), 2, 0.04, "known again");
    tempo_free(b.t);
}

static void test_phases(void)
{
    struct bench b;

    begin(&b, 10);
    if (phases_new(&b.p) < 0)
        abort();
    ok(!phases_tempo(b.p, NS_PER_S), "phases that were fed nothing take nothing");
    run(&b, 1, 60);
    uint64_t before = phases_events(b.p);
    run(&b, 1.3, 60);
    is_int((long long)phases_events(b.p), (long long)before + 1, "one event");
    const struct phase_event *e = phases_event(b.p, before);
    is_str(phase_kind_name(e->kind), "change", "a lasting change of training");
    is_near(s_of_ns(e->onset_ns), 60, 0.3, "… where it began");
    is_str(phase_kind_name(phases_now(b.p)), "change", "… which it still is");
    ok(!phases_tempo(b.p, ns_of_s(30)),
       "one from before the present pattern is not taken");
    phases_free(b.p);
    tempo_free(b.t);
}

int main(void)
{
    test_changes();
    test_steady();
    test_begins();
    test_phases();
    return done();
}
