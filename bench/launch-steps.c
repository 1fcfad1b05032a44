/* How well launches show steps: made-up processes that launch and wait, polled as a node
 * polls (its ticks late by up to a fifth), many seeds each.  Prints one JSON object: for
 * each manner of job the share of seeds in which steps were known at the end, how many
 * steps it took to know, and the error of a step's time over windows of 10 s (at least
 * five steps) thereafter, against the truth.  A manner that has no steps (`none`) is
 * right where nothing was known.
 *
 *     launch-steps [SEEDS]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/progress/launches.h"

struct manner {
    const char *name;
    double period_s, jitter; /* relative, uniform */
    unsigned launches;
    double busy;   /* share of an iteration with launches; 1: no rest */
    double spread; /* of the launches, relative, uniform */
    bool none;
};

static const struct manner manners[] = {
    {"0.1 s, waits half of it", 0.1, 0.02, 300, 0.5, 0, false},
    {"0.1 s, waits a fifth: too short to be seen", 0.1, 0.02, 300, 0.8, 0, true},
    {"46 ms, waits 32 ms: too short to be seen each time", 0.046, 0.02, 600, 0.3, 0,
     true},
    {"0.3 s", 0.3, 0.02, 900, 0.5, 0, false},
    {"0.3 s, jitter 20 %", 0.3, 0.2, 900, 0.5, 0, false},
    {"1 s", 1, 0.02, 3000, 0.5, 0, false},
    {"1 s, waits a twentieth", 1, 0.02, 3000, 0.95, 0, false},
    {"1 s, jitter 20 %", 1, 0.2, 3000, 0.5, 0, false},
    {"10 s", 10, 0.02, 20000, 0.7, 0, false},
    {"60 s", 60, 0.02, 90000, 0.8, 0, false},
    {"graphs, 12 launches", 0.3, 0.02, 12, 0.2, 0, false},
    {"never rests", 0.3, 0.02, 900, 1, 0, true},
    {"launches vary by 1 %", 0.3, 0.02, 900, 0.5, 0.01, true},
    {"launches vary by half", 0.3, 0.3, 900, 0.5, 0.5, true},
    {"a handful, at random", 0.2, 0.8, 3, 0.3, 0.9, true},
    {"one graph an iteration", 0.3, 0.02, 1, 0.2, 0, true},
};

struct run {
    const struct manner *m;
    struct rng rng;
    double begin, end;
    uint64_t base, here, done;
};

static uint64_t count_at(struct run *r, double t)
{
    const struct manner *m = r->m;

    while (t >= r->end) {
        r->base += r->here;
        r->done += r->here > 0;
        r->begin = r->end;
        double dt = 1 + m->jitter * (2 * rng_uniform(&r->rng) - 1);
        double n = 1 + m->spread * (2 * rng_uniform(&r->rng) - 1);
        r->end = r->begin + m->period_s * dt;
        r->here = (uint64_t)fmax(1, round(m->launches * n));
    }
    double part = (t - r->begin) / (r->end - r->begin) / m->busy;
    return r->base + (uint64_t)(fmin(part, 1) * (double)r->here);
}

struct told {
    double known_after; /* iterations; < 0: never */
    double error2, worst;
    unsigned windows;
};

/* The error of a window: step time by the slots, relative to the true mean. */
static void add_window(struct told *ret, const struct step_slot *a,
                       const struct step_slot *b, double truth_s)
{
    double s =
        s_between(a->last_step_ns, b->last_step_ns) / (double)(b->steps - a->steps);
    double error = fabs(s / truth_s - 1);

    ret->error2 += error * error;
    ret->worst = fmax(ret->worst, error);
    ret->windows++;
}

static double step_of(const struct launches *l)
{
    struct launches_found found;

    launches_state(l, &found);
    return (double)found.launches;
}

static void play(const struct manner *m, uint64_t seed, struct told *ret)
{
    auto_(launches_free) struct launches *l = NULL;
    struct launches_budget budget;
    struct step_slot slots[LAUNCHES_PROCESSES], from = {0};
    struct run r = {.m = m};
    double window_s = fmax(10, 5 * m->period_s), t = 1000, opened = 0;
    double over = t + fmax(120, 14 * m->period_s + 6 * window_s);
    double began = 0;
    uint64_t done = 0;

    ret->known_after = -1;
    r.begin = r.end = t;
    rng_init(&r.rng, seed);
    launches_budget_job(&budget, NULL);
    if (launches_new(&l) < 0)
        return;
    while (t < over) {
        const struct launch_count c = {10, 20, count_at(&r, t), true};
        launches_feed(l, &c, 1, ns_of_s(t), &budget);
        size_t n = launches_slots(l, slots);
        if (n > 0 && ret->known_after < 0)
            ret->known_after = (double)r.done;
        if (n > 0 && slots[0].phase != UW_PHASE_TRAIN)
            opened = 0; /* a pause: the window is discarded, as in the tuner */
        if (n > 0 && slots[0].phase == UW_PHASE_TRAIN && slots[0].steps != from.steps &&
            (opened <= 0 || t - opened >= window_s)) {
            /* a step has just ended: the true iterations since then are the reference */
            if (opened > 0 && r.base > done)
                add_window(ret, &from, &slots[0],
                           (r.begin - began) * step_of(l) / (double)(r.base - done));
            from = slots[0];
            opened = t;
            began = r.begin;
            done = r.base;
        }
        t += 1e-3 * LAUNCHES_POLL_MS * (1 + 0.2 * rng_uniform(&r.rng));
    }
}

static void table(const struct manner *m, unsigned seeds, const char *end)
{
    double after = 0, error2 = 0, worst = 0;
    unsigned known = 0, windows = 0;

    for (uint64_t s = 1; s <= seeds; s++) {
        struct told told = {0};
        play(m, s, &told);
        known += told.known_after >= 0;
        after += fmax(told.known_after, 0);
        error2 += told.error2;
        worst = fmax(worst, told.worst);
        windows += told.windows;
    }
    printf("  {\"job\": \"%s\", \"right\": %.3f, \"known\": %.3f", m->name,
           (double)(m->none ? seeds - known : known) / seeds, (double)known / seeds);
    if (known > 0)
        printf(", \"known_after_iterations\": %.1f", after / known);
    if (windows > 0 && !m->none)
        printf(", \"windows\": %u, \"rms_percent\": %.3f, \"worst_percent\": %.3f",
               windows, 100 * sqrt(error2 / windows), 100 * worst);
    printf("}%s\n", end);
}

int main(int argc, char **argv)
{
    uint64_t seeds = 20;
    uw_error err;

    if (argc > 1 &&
        (parse_u64(argv[1], &seeds, &err) < 0 || seeds == 0 || seeds > 100000)) {
        (void)fprintf(stderr, "launch-steps: '%s' is not 1..100000 seeds\n", argv[1]);
        return 2;
    }
    printf("{\"seeds\": %u, \"made_up\": true, \"jobs\": [\n", (unsigned)seeds);
    for (size_t i = 0; i < n_elements(manners); i++)
        table(&manners[i], (unsigned)seeds, i + 1 < n_elements(manners) ? "," : "");
    printf("]}\n");
    return 0;
}
