/* Steps from counts of launches: jobs of every manner, polled as a node polls. */
#include "core/progress/launches.h"

#include <errno.h>
#include <string.h>

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
static struct launches_budget budget;

static struct launches *fresh(uint64_t seed)
{
    struct launches *l = NULL;

    rng_init(&rng, seed);
    launches_budget_job(&budget, NULL);
    if (launches_new(&l) < 0)
        printf("# no memory\n");
    return l;
}

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
        launches_feed(l, &c, 1, ns_of_s(t), &budget);
        t += 1e-3 * LAUNCHES_POLL_MS * (1 + 0.2 * rng_uniform(&rng));
    }
    launches_state(l, &ret->found);
    ret->n = launches_slots(l, slots);
    ret->slot = slots[0];
}

static void manner(const struct job *j)
{
    auto_(launches_free) struct launches *l = fresh(7);
    struct world w = {.job = j, .t = 100, .end = 100};
    struct seen first, last;

    if (!l)
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
    auto_(launches_free) struct launches *l = fresh(3);
    struct job j = {.period_s = 0.5, .launches = 900, .busy = 0.5, .jitter = 0.02};
    struct world w = {.job = &j, .t = 100, .end = 100};
    struct seen begin, middle, capped, end;

    if (!l)
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
    auto_(launches_free) struct launches *l = fresh(3);
    struct job j = {.period_s = 0.5, .launches = 900, .busy = 0.5};
    struct world w = {.job = &j, .t = 100, .end = 100};
    struct seen s;

    if (!l)
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
    auto_(launches_free) struct launches *l = fresh(5);
    const struct job j = {.period_s = 0.5, .launches = 900, .busy = 0.5};
    const struct job slow = {.period_s = 0.7, .launches = 500, .busy = 0.5};
    struct world w = {.job = &j, .t = 100, .end = 100};
    struct world v = {.job = &slow, .t = 100, .end = 100};
    struct launches_found found;
    struct step_slot slots[LAUNCHES_PROCESSES];

    if (!l)
        return;
    launches_state(l, &found);
    is_int(found.why, LAUNCHES_NOBODY, "nobody counts");
    double t = 100;
    while (t < 140) {
        const struct launch_count c[] = {{10, 1, count_at(&w, t), true},
                                         {11, 2, count_at(&v, t), true},
                                         {12, 3, 5, true}};
        launches_feed(l, c, 3, ns_of_s(t), &budget);
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
    launches_feed(l, c, 1, ns_of_s(t), &budget);
    is_int(launches_slots(l, slots), 0, "an exec and an end: no slot");
    launches_feed(l, NULL, 0, ns_of_s(t + 1), &budget);
    launches_state(l, &found);
    is_int(found.why, LAUNCHES_NOBODY, "nobody counts any more");
}

/* Counts that make no sense hurt nothing. */
static void lies(void)
{
    auto_(launches_free) struct launches *l = fresh(11);
    struct step_slot slots[LAUNCHES_PROCESSES];
    struct launch_count c[LAUNCHES_PROCESSES];
    struct launches_found found;

    if (!l)
        return;
    for (uint64_t i = 0; i < 4000000; i += 1000) {
        size_t n = rng_u64(&rng) % (LAUNCHES_PROCESSES + 1);
        for (size_t k = 0; k < n; k++)
            c[k] = (struct launch_count){rng_u64(&rng) % 80, rng_u64(&rng) % 2,
                                         rng_u64(&rng) >> (rng_u64(&rng) % 64), true};
        launches_feed(l, c, n, i, &budget);
    }
    launches_state(l, &found);
    ok(launches_slots(l, slots) == 0 && found.confidence == 0, "random counts: unknown");
}

/* ---- what looking costs ---- */

/* One process of a page that is written to cost as much as it can: its count rises every
 * other look by any number.
 */
struct liar {
    uint64_t launches, looks;
};

static uint64_t lie(struct liar *a)
{
    if (a->looks++ % 2 == 0)
        a->launches += 1000 + rng_below(&rng, 100000);
    return a->launches;
}

/* Rests from then on, one every 50 ms, none of them a step apart: how often was a step
 * looked for?
 */
static void pace(void)
{
    auto_(launches_free) struct launches *l = fresh(3);
    struct launches_budget all = {.most = 1e9, .left = 1e9};
    struct liar a = {0};
    uint64_t now = ns_of_s(100);

    if (!l)
        return;
    for (unsigned look = 0; look < 2 * 401 + 1; look++, now += 25 * NS_PER_MS) {
        const struct launch_count c = {10, 20, lie(&a), true};
        launches_feed(l, &c, 1, now, &all);
    }
    /* after 12 rests, 16, … 48 and then 88, 128, … 368 */
    is_int((intmax_t)all.taken, 10 + 8, "400 rests that show nothing: looked 18 times");
}

static size_t liars(struct liar *a, struct launch_count *ret)
{
    for (size_t i = 0; i < LAUNCHES_PROCESSES; i++)
        ret[i] = (struct launch_count){100 + i, 1, lie(&a[i]), true};
    return LAUNCHES_PROCESSES;
}

/* A whole page of it, whose last slot is an honest process. */
static void whole_page(void)
{
    auto_(launches_free) struct launches *l = fresh(4);
    const struct job honest = {.period_s = 0.5, .launches = 900, .busy = 0.5};
    struct world w = {.job = &honest, .t = 100, .end = 100};
    struct launch_count c[LAUNCHES_PROCESSES];
    struct liar a[LAUNCHES_PROCESSES] = {0};
    struct launches_found found;
    uint64_t most = 0;

    if (!l)
        return;
    for (double t = 100; t < 220; t += 0.025) {
        size_t n = liars(a, c);
        c[n - 1].launches = count_at(&w, t);
        uint64_t before = budget.taken;
        launches_feed(l, c, n, ns_of_s(t), &budget);
        if (budget.taken - before > most)
            most = budget.taken - before;
    }
    is_int((intmax_t)most, LAUNCHES_AT_ONCE, "62 liars: four searches a feed at most");
    ok(budget.taken <= 80 + 2 * 120, "… and in two minutes no more than %d: %ju",
       80 + 2 * 120, (uintmax_t)budget.taken);
    launches_state(l, &found);
    ok(found.found == 1 && found.launches == 900, "… the honest process is known");
}

/* Counts that go back begin anew, as often as a process likes. */
static void begun_anew(void)
{
    auto_(launches_free) struct launches *l = fresh(5);
    struct launch_count c[LAUNCHES_PROCESSES];
    struct liar a[LAUNCHES_PROCESSES] = {0};

    if (!l)
        return;
    uint64_t now = ns_of_s(100);
    for (unsigned look = 0; look < 40 * 60; look++, now += 25 * NS_PER_MS) {
        if (look % 60 == 0)
            memset(a, 0, sizeof a);
        launches_feed(l, c, liars(a, c), now, &budget);
    }
    ok(budget.taken <= 80 + 2 * 60, "begun anew again and again: %ju searches a minute",
       (uintmax_t)budget.taken);
}

/* As many jobs as two users may run, and one more that is honest. */
enum { JOBS = 64 };
static struct crowd {
    struct launches *l[JOBS + 1];
    struct launches_budget budget[JOBS + 1];
    struct liar a[JOBS][LAUNCHES_PROCESSES];
} crowd;

static uint64_t searches(void)
{
    uint64_t all = 0;

    for (size_t j = 0; j <= JOBS; j++)
        all += crowd.budget[j].taken;
    return all;
}

static void many_jobs(void)
{
    const struct job honest = {.period_s = 0.5, .launches = 900, .busy = 0.5};
    struct world w = {.job = &honest, .t = 100, .end = 100};
    struct launch_count c[LAUNCHES_PROCESSES];
    struct launches_budget all;
    struct launches_found found;
    uint64_t most = 0, before = 0;

    rng_init(&rng, 6);
    launches_budget_all(&all);
    for (size_t j = 0; j <= JOBS; j++) {
        launches_budget_job(&crowd.budget[j], &all);
        if (launches_new(&crowd.l[j]) < 0)
            return;
    }
    for (double t = 100; t < 160; t += 0.025) {
        before = searches();
        for (size_t j = 0; j < JOBS; j++)
            launches_feed(crowd.l[j], c, liars(crowd.a[j], c),
                          ns_of_s(t + 0.025 * (double)j / JOBS), &crowd.budget[j]);
        const struct launch_count mine = {10, 20, count_at(&w, t + 0.0249), true};
        launches_feed(crowd.l[JOBS], &mine, 1, ns_of_s(t + 0.0249), &crowd.budget[JOBS]);
        if (searches() - before > most)
            most = searches() - before;
    }
    ok(most <= 16 + 5, "64 jobs of liars: %ju searches a turn at most", (uintmax_t)most);
    ok(searches() <= 16 + 190 * 60, "… %ju a minute", (uintmax_t)searches());
    launches_state(crowd.l[JOBS], &found);
    ok(found.why == LAUNCHES_FOUND && found.launches == 900,
       "… an honest job beside them is known");
    for (size_t j = 0; j <= JOBS; j++)
        launches_free(crowd.l[j]);
}

int main(void)
{
    manners();
    slower();
    phases();
    processes();
    lies();
    pace();
    whole_page();
    begun_anew();
    many_jobs();
    return done();
}
