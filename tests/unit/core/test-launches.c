/* Steps from counts of launches: jobs of every manner, polled as a node polls. */
#include "core/progress/launches.h"

#include <errno.h>

#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

/* A job's process: an iteration launches its work in the first part of its time (or of
 * each half of it) and waits for the rest.
 */
struct job {
    const char *name;
    double period_s, jitter; /* relative, of each iteration */
    unsigned launches;
    double first;       /* share of them before a wait in the middle; 0: there is none */
    double busy;        /* share of the time in which it launches; 1: never rests */
    unsigned spread;    /* more launches an iteration, at random */
    unsigned log_every; /* iterations; then log_launches more */
    unsigned log_launches;
    unsigned val_every, val_batches, val_launches; /* validation */
    double val_s;                                  /* a batch of it */
    double learn_s;                                /* 0: a minute */
    enum launches_why why;                         /* expected */
    double steps;                                  /* expected an iteration; 0: one */
};

static struct rng rng;

/* The count at each poll, and the truth: iterations done. */
struct world {
    const struct job *job;
    double t;            /* of the iteration under way: its begin */
    double end;          /* … and its end */
    uint64_t done;       /* iterations */
    unsigned val;        /* batches of validation to come */
    uint64_t base, here; /* launches before it, of it */
    bool validates;
};

static void next_iteration(struct world *w)
{
    const struct job *j = w->job;

    if (w->here > 0 && !w->validates)
        w->done++;
    w->base += w->here;
    w->t = w->end;
    if (w->val == 0 && !w->validates && j->val_every && w->done > 0 &&
        w->done % j->val_every == 0)
        w->val = j->val_batches;
    w->validates = w->val > 0;
    if (w->validates) {
        w->val--;
        w->here = j->val_launches;
        w->end = w->t + j->val_s;
        return;
    }
    w->here = j->launches + (j->spread ? rng_below(&rng, j->spread) : 0);
    if (j->log_every && w->done % j->log_every == j->log_every - 1)
        w->here += j->log_launches;
    w->end = w->t + j->period_s * (1 + j->jitter * (2 * rng_uniform(&rng) - 1));
}

static uint64_t count_at(struct world *w, double t)
{
    while (t >= w->end)
        next_iteration(w);
    double part = (t - w->t) / (w->end - w->t), first = w->validates ? 0 : w->job->first;
    double done = 0;
    if (first > 0) { /* of the launches in the first half, the others in the second */
        double in = fmod(2 * part, 1) / w->job->busy;
        done = part < 0.5 ? first * fmin(in, 1) : first + (1 - first) * fmin(in, 1);
    } else {
        done = fmin(part / w->job->busy, 1);
    }
    return w->base + (uint64_t)(done * (double)w->here);
}

struct seen {
    struct launches_found found;
    struct step_slot slot;
    size_t n;
};

/* Polls from t to t + s; the state at the end. */
static void watch(struct launches *l, struct world *w, double from_s, double s,
                  struct seen *ret)
{
    struct step_slot slots[LAUNCHES_PROCESSES];

    double t = from_s;
    while (t < from_s + s) {
        const struct launch_count c = {10, 20, count_at(w, t), true};
        launches_feed(l, &c, 1, ns_of_s(t));
        t += 1e-3 * LAUNCHES_POLL_MS * (1 + 0.2 * rng_uniform(&rng));
    }
    launches_state(l, &ret->found);
    ret->n = launches_slots(l, slots);
    ret->slot = slots[0];
}

static void manner(const struct job *j)
{
    auto_(launches_free) struct launches *l = NULL;
    struct world w = {.job = j, .t = 100, .end = 100};
    struct seen first, last;

    rng_init(&rng, 7);
    if (launches_new(&l) < 0)
        return;
    double learn_s = j->learn_s > 0 ? j->learn_s : 60;
    watch(l, &w, 100, learn_s, &first);
    is_int(first.found.why, j->why, "%s: %s", j->name,
           j->why == LAUNCHES_FOUND ? "known" : "not known");
    if (j->why != LAUNCHES_FOUND) {
        is_int(first.n, 0, "… no slot");
        return;
    }
    uint64_t done = w.done;
    watch(l, &w, 100 + learn_s, 120, &last);
    double per = j->steps > 0 ? j->steps : 1;
    double steps = (double)(last.slot.steps - first.slot.steps) / per;
    double s = s_between(first.slot.last_step_ns, last.slot.last_step_ns);
    is_near(steps, (double)(w.done - done),
            2.5 + 0.02 * (double)(w.done - done) * (j->val_every > 0),
            "… as many steps as iterations");
    if (j->val_every == 0)
        is_near(s / steps, j->period_s, 0.004 * j->period_s, "… of their time");
    ok(last.found.confidence > 0.6, "… confidence %.2f", last.found.confidence);
}

static void manners(void)
{
    /* clang-format off */
    static const struct job jobs[] = {
        {.name = "1 s, one wait", .period_s = 1, .launches = 1200, .busy = 0.6},
        {.name = "0.1 s, half of it waiting", .period_s = 0.1, .launches = 400, .busy = 0.4},
        {.name = "20 s", .period_s = 20, .launches = 30000, .busy = 0.7,
         .learn_s = 260},
        {.name = "times that vary by a tenth", .period_s = 0.8, .jitter = 0.1, .launches = 900, .busy = 0.5},
        {.name = "two waits an iteration", .period_s = 1, .launches = 1200, .first = 0.3, .busy = 0.6},
        {.name = "two equal halves", .period_s = 1, .launches = 1200, .first = 0.5, .busy = 0.6, .steps = 2},
        {.name = "graphs: 12 launches", .period_s = 0.4, .launches = 12, .busy = 0.2},
        {.name = "a log each tenth iteration", .period_s = 0.5, .launches = 800, .busy = 0.5,
         .log_every = 10, .log_launches = 60},
        {.name = "a validation now and then", .period_s = 0.5, .launches = 900, .busy = 0.5,
         .val_every = 60, .val_batches = 25, .val_launches = 300, .val_s = 0.2},
        {.name = "never rests", .period_s = 0.5, .launches = 900, .busy = 1, .why = LAUNCHES_RESTLESS},
        {.name = "other numbers each time", .period_s = 0.5, .launches = 700, .spread = 300,
         .busy = 0.5, .why = LAUNCHES_UNEVEN},
        {.name = "few launches, at random", .period_s = 0.2, .launches = 1, .spread = 5,
         .busy = 0.3, .why = LAUNCHES_UNEVEN},
        {.name = "one graph an iteration", .period_s = 0.4, .launches = 1, .busy = 0.2,
         .why = LAUNCHES_UNEVEN},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(jobs); i++)
        manner(&jobs[i]);
}

static double time_of_step(const struct seen *from, const struct seen *to)
{
    return s_between(from->slot.last_step_ns, to->slot.last_step_ns) /
           (double)(to->slot.steps - from->slot.steps);
}

/* A cap that costs 2 % of the speed. */
static void slower(void)
{
    auto_(launches_free) struct launches *l = NULL;
    struct job j = {.period_s = 0.5, .launches = 900, .busy = 0.5, .jitter = 0.02};
    struct world w = {.job = &j, .t = 100, .end = 100};
    struct seen begin, middle, capped, end;

    rng_init(&rng, 3);
    if (launches_new(&l) < 0)
        return;
    watch(l, &w, 100, 30, &begin);
    watch(l, &w, 130, 20, &middle);
    j.period_s *= 1.02;
    watch(l, &w, 150, 5, &capped);
    watch(l, &w, 155, 20, &end);
    is_near(time_of_step(&capped, &end) / time_of_step(&begin, &middle), 1.02, 0.005,
            "2 %% slower: seen in 20 s");
}

/* A validation is told as one, and training as training. */
static void phases(void)
{
    auto_(launches_free) struct launches *l = NULL;
    struct job j = {.period_s = 0.5, .launches = 900, .busy = 0.5};
    struct world w = {.job = &j, .t = 100, .end = 100};
    struct seen s;

    rng_init(&rng, 3);
    if (launches_new(&l) < 0)
        return;
    watch(l, &w, 100, 20, &s);
    is_int(s.slot.phase, UW_PHASE_TRAIN, "training");
    w.val = 100;
    j.val_launches = 300; /* three of them are as many launches as an iteration's */
    j.val_s = 0.2;
    watch(l, &w, 120, 15, &s);
    uint64_t steps = s.slot.steps;
    is_int(s.slot.phase, UW_PHASE_VALIDATE, "a validation");
    watch(l, &w, 135, 3, &s);
    ok(s.slot.steps == steps, "… has no steps");
    watch(l, &w, 138, 10, &s);
    ok(s.slot.phase == UW_PHASE_TRAIN && s.slot.steps > steps, "training again");
    j.launches = 650; /* half of the layers are frozen */
    watch(l, &w, 148, 300, &s);
    ok(s.found.why == LAUNCHES_FOUND && s.found.launches == 650 && s.n == 1,
       "another number of launches for good: found anew");
}

static void processes(void)
{
    auto_(launches_free) struct launches *l = NULL;
    const struct job j = {.period_s = 0.5, .launches = 900, .busy = 0.5};
    const struct job slow = {.period_s = 0.7, .launches = 500, .busy = 0.5};
    struct world w = {.job = &j, .t = 100, .end = 100};
    struct world v = {.job = &slow, .t = 100, .end = 100};
    struct launches_found found;
    struct step_slot slots[LAUNCHES_PROCESSES];

    rng_init(&rng, 5);
    if (launches_new(&l) < 0)
        return;
    launches_state(l, &found);
    is_int(found.why, LAUNCHES_NOBODY, "nobody counts");
    double t = 100;
    while (t < 140) {
        const struct launch_count c[] = {{10, 1, count_at(&w, t), true},
                                         {11, 2, count_at(&v, t), true},
                                         {12, 3, 5, true}};
        launches_feed(l, c, 3, ns_of_s(t));
        t += 0.025;
    }
    launches_state(l, &found);
    ok(found.processes == 3 && found.found == 2 && found.launches == 900,
       "two of three processes step");
    is_int(launches_slots(l, slots), 2, "… two slots");
    ok(slots[0].pid == 10 && slots[1].pid == 11, "… theirs");
    is_near((double)slots[0].steps / (double)slots[1].steps, 1.4, 0.15,
            "… each with its own steps");
    /* another program in the process of 10; 11 ends */
    const struct launch_count c[] = {{10, 99, 900, true}};
    launches_feed(l, c, 1, ns_of_s(t));
    is_int(launches_slots(l, slots), 0, "an exec and an end: no slot");
    launches_feed(l, NULL, 0, ns_of_s(t + 1));
    launches_state(l, &found);
    is_int(found.why, LAUNCHES_NOBODY, "nobody counts any more");
}

/* Counts that make no sense hurt nothing. */
static void lies(void)
{
    auto_(launches_free) struct launches *l = NULL;
    struct step_slot slots[LAUNCHES_PROCESSES];
    struct launch_count c[LAUNCHES_PROCESSES];
    struct launches_found found;

    rng_init(&rng, 11);
    if (launches_new(&l) < 0)
        return;
    for (uint64_t i = 0; i < 4000000; i += 1000) {
        size_t n = rng_u64(&rng) % (LAUNCHES_PROCESSES + 1);
        for (size_t k = 0; k < n; k++)
            c[k] = (struct launch_count){rng_u64(&rng) % 80, rng_u64(&rng) % 2,
                                         rng_u64(&rng) >> (rng_u64(&rng) % 64), true};
        launches_feed(l, c, n, i);
    }
    launches_state(l, &found);
    ok(launches_slots(l, slots) == 0 && found.confidence == 0, "random counts: unknown");
}

int main(void)
{
    manners();
    slower();
    phases();
    processes();
    lies();
    return done();
}
