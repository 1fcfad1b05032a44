/* The rate of launches as progress: what is known, how surely, and what is not. */
#include "core/progress/rate.h"

#include <math.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define POLL_S 0.025

struct job {
    struct rate *rate;
    struct rng rng;
    double t, per_s, graphs, noise; /* the share of graphs; relative, of each poll */
    double count[2];                /* kernels, graphs */
    unsigned processes;
    uint64_t since_ns;
};

static void fresh(struct job *j, double per_s)
{
    rate_free(j->rate);
    *j = (struct job){.t = 1000, .per_s = per_s, .processes = 1, .since_ns = 7};
    rng_init(&j->rng, 1);
    ok(rate_new(&j->rate) == 0, "(a new job, %.0f launches a second)", per_s);
}

static void go(struct job *j, double seconds)
{
    for (double end = j->t + seconds; j->t < end; j->t += POLL_S) {
        struct rate_process p[2] = {{0}, {0}};
        double n = j->per_s * POLL_S * fmax(0, 1 + j->noise * rng_normal(&j->rng));
        j->count[0] += n * (1 - j->graphs);
        j->count[1] += n * j->graphs;
        for (unsigned i = 0; i < j->processes; i++) {
            p[i].pid = 10 + i;
            p[i].since_ns = j->since_ns;
            p[i].kind[0] = (uint64_t)j->count[0];
            p[i].kind[RATE_STREAMS] = (uint64_t)j->count[1];
        }
        rate_feed(j->rate, p, j->processes, ns_of_s(j->t));
    }
}

static struct rate_found look(const struct job *j, double from)
{
    struct rate_found f;

    rate_find(j->rate, ns_of_s(from), &f);
    return f;
}

static bool within(const struct rate_found *f, double per_s)
{
    return f->why == RATE_FOUND && fabs(f->per_s / per_s - 1) <= 2.6 * f->rse + 1e-4;
}

static void known(struct job *j)
{
    struct rate_found f;

    fresh(j, 3000);
    f = look(j, 0);
    ok(f.why == RATE_NOBODY && f.processes == 0, "nobody launches: unknown");
    go(j, 5);
    ok(look(j, 0).why == RATE_FEW, "five seconds are too few");
    go(j, 25);
    f = look(j, 0);
    ok(within(&f, 3000) && f.rse < 1e-3, "an even rate is known: %.1f, rse %.5f", f.per_s,
       f.rse);
    ok(f.confidence > 0.9 && f.confidence <= 0.95, "… and sure: %.3f", f.confidence);
    ok(f.mix[0] > 0.999 && f.processes == 1, "… of kernels alone, of one process");
    ok(f.from_ns >= ns_of_s(1000) && f.to_ns <= ns_of_s(1030) && f.to_ns > f.from_ns,
       "… over what was heard");
    ok(look(j, 1024).why == RATE_FEW, "six seconds from a later moment are too few");
    ok(fabs(rate_settle_s(&f) - 1024.0 / 3000) < 0.01, "its queue is empty after %.2f s",
       rate_settle_s(&f));
}

static void noisy(struct job *j)
{
    struct rate_found a, b;

    fresh(j, 1000);
    j->noise = 0.3;
    go(j, 20);
    a = look(j, 0);
    ok(a.why == RATE_UNEVEN ? isfinite(a.rse) : within(&a, 1000),
       "much noise: rse %.4f after 20 s", a.rse);
    ok(a.needs_s > 20, "… that needs %.0f s for RATE_RSE_GOOD", a.needs_s);
    go(j, 160);
    b = look(j, 0);
    ok(within(&b, 1000) && b.rse < a.rse, "… rse %.4f after 180 s", b.rse);
    fresh(j, 1000);
    j->noise = 3;
    go(j, 60);
    ok(look(j, 0).why == RATE_UNEVEN, "noise without end: unknown");
}

/* Noise that stays alike for seconds is worth few samples. */
static void red(struct job *j)
{
    struct rate_found white, slow;
    double at = 0;

    fresh(j, 1000);
    for (int i = 0; i < 240; i++) {
        j->per_s = 1000 * (1 + 0.03 * rng_normal(&j->rng));
        go(j, 0.5);
    }
    white = look(j, 0);
    fresh(j, 1000);
    for (int i = 0; i < 240; i++) {
        at = 0.9 * at + sqrt(1 - 0.81) * 0.03 * rng_normal(&j->rng);
        j->per_s = 1000 * (1 + at);
        go(j, 0.5);
    }
    slow = look(j, 0);
    ok(within(&white, 1000) && isfinite(slow.rse) && slow.rse > 2 * white.rse,
       "the same noise, slower: rse %.4f is more than %.4f", slow.rse, white.rse);
}

static void change(struct job *j)
{
    struct rate_found a, b;

    fresh(j, 3000);
    j->noise = 0.1;
    go(j, 40);
    a = look(j, 0);
    rate_moved(j->rate, ns_of_s(j->t), 0.9);
    double moved = j->t;
    j->per_s = 3000 / 1.02;
    go(j, 40);
    b = look(j, moved + 3);
    ok(within(&a, 3000) && within(&b, 3000 / 1.02), "2 %% less under a new cap: %.4f",
       a.per_s / b.per_s);
    ok(a.per_s / b.per_s - 1 > 3 * hypot(a.rse, b.rse), "… is seen");
    ok(a.generation == b.generation, "… of one and the same job");
    rate_moved(j->rate, ns_of_s(j->t), 0.85);
    moved = j->t;
    j->per_s = 2000;
    go(j, 30);
    b = look(j, moved + 3);
    ok(within(&b, 2000) && b.generation == a.generation,
       "a third less, told beforehand, is the same job");
    rate_moved(j->rate, ns_of_s(j->t), 0.95);
    moved = j->t;
    j->per_s = 1300;
    go(j, 30);
    ok(look(j, moved + 3).why == RATE_OTHER, "less than a cap can do is another phase");
}

static void phases(struct job *j)
{
    struct rate_found f, g;

    fresh(j, 3000);
    j->noise = 0.1;
    go(j, 60);
    g = look(j, 0);
    double from = j->t;
    j->per_s = 3600;
    go(j, 30); /* a validation: as long as a window */
    f = look(j, from);
    ok(f.why == RATE_OTHER, "a level that jumped tells nothing of the job");
    f = look(j, 0);
    ok(within(&f, 3000), "… what was before it does");
    j->per_s = 3000;
    go(j, 30);
    f = look(j, from);
    ok(within(&f, 3000) && f.from_ns > ns_of_s(from + 28),
       "back at it the rate is known again, from then on");
    ok(f.generation == g.generation, "… of the same job");
    from = j->t;
    j->per_s = 0;
    go(j, 10);
    j->per_s = 3000;
    go(j, 30);
    f = look(j, from);
    ok(within(&f, 3000), "a pause without launches is left out");
    j->per_s = 1500;
    go(j, 100);
    ok(look(j, 0).generation == g.generation, "half of it for 100 s: another phase");
    go(j, 60);
    f = look(j, 0);
    ok(f.generation != g.generation && within(&f, 1500), "… for longer: another job");
}

/* A pause in a ramp of the cap, which moves the level meanwhile by more than a jump. */
static void pause_in_a_ramp(struct job *j, double begin_s)
{
    struct rate_found f;

    fresh(j, 3000);
    go(j, 60);
    for (double s = 0; s < 20; s += 0.5) {
        rate_moved(j->rate, ns_of_s(j->t), 0.99);
        j->per_s = s >= begin_s && s < begin_s + 4 ? 0 : 3000 * (1 - 0.1 * s / 20);
        go(j, 0.5);
    }
    double from = j->t;
    j->per_s = 2700;
    go(j, 30);
    f = look(j, from);
    ok(within(&f, 2700), "a pause %.1f s after a ramp's begin: known again after it",
       begin_s);
}

static void not_one(struct job *j)
{
    struct rate_found f;
    double begin;

    fresh(j, 3000);
    begin = j->t;
    for (int i = 0; i < 120; i++, go(j, 0.5))
        j->per_s = 3000 * (1 - 0.1 * (j->t - begin) / 60);
    f = look(j, 0);
    ok(f.why == RATE_DRIFTS, "10 %% less a minute is no rate");
    fresh(j, 3000); /* in two states, 1.9 s each: too short to be told apart */
    for (int i = 0; i < 40; i++, go(j, 1.9))
        j->per_s = i % 2 ? 2400 : 3600;
    f = look(j, 0);
    ok(f.why != RATE_FOUND || fabs(f.per_s / 3000 - 1) <= 2 * f.rse,
       "two states in turn: their mean (%.0f) or nothing", f.per_s);
}

static void others(struct job *j)
{
    struct rate_found a, b;

    fresh(j, 3000);
    go(j, 20);
    a = look(j, 0);
    j->processes = 2;
    go(j, 20);
    b = look(j, 0);
    ok(b.generation != a.generation && within(&b, 6000) && b.processes == 2,
       "another process: another job, of both");
    j->since_ns = 8;
    go(j, 20);
    ok(look(j, 0).generation != b.generation, "other processes of the same pids, too");
    a = look(j, 0);
    j->count[0] = 5;
    go(j, 1);
    ok(look(j, 0).generation != a.generation, "counts that go back, too");
    go(j, 20);
    a = look(j, 0);
    ok(within(&a, 6000), "(known again)");
    j->graphs = 0.1;
    double from = j->t;
    go(j, 20);
    b = look(j, from);
    ok(b.generation == a.generation && within(&b, 6000) &&
           fabs(rate_apart(&a, &b) - 0.1) < 0.005,
       "a tenth as graphs now: the same rate, the mix is %.3f apart", rate_apart(&a, &b));
    j->t += 5;
    from = j->t;
    go(j, 3);
    j->processes = 0;
    go(j, 1);
    ok(look(j, 0).why == RATE_NOBODY, "nobody is left: unknown");
}

int main(void)
{
    struct job j = {0};

    known(&j);
    noisy(&j);
    red(&j);
    change(&j);
    phases(&j);
    for (double s = 8; s < 12; s += 0.5)
        pause_in_a_ramp(&j, s);
    not_one(&j);
    others(&j);
    rate_free(j.rate);
    return done();
}
