/* How well the rate of launches that never rest shows a job's speed: made-up processes
 * that run ahead of their board, polled as a node polls (its ticks late by up to a
 * fifth), many seeds each.  Each is heard at one cap, then at another that makes it 2 %
 * slower (and, played again, no slower), each time until the rate is as sure as a search
 * wants it, 70 s at most.  Prints one JSON object: for each manner of job the share of
 * pairs of windows that are known, how long a window took, the error of the speeds'
 * ratio against the truth, how often its interval of 95 % holds the truth, how often a
 * change was seen where there is one, and where there is none.  What is not known is
 * never wrong.
 *
 *     launch-rate [SEEDS]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/progress/launches.h"
#include "core/progress/rate.h"

#define SLOWER 1.02
#define LISTEN_S 40.0 /* before the first window */
#define SETTLE_S 5.0
#define LEAST_S 7.0
#define MOST_S 70.0
#define SEEN 0.01
#define SEEN_SE 2.33
#define Z95 1.96

struct manner {
    const char *name;
    double period_s, jitter; /* of an iteration, relative, uniform */
    double launches, spread; /* of an iteration, relative, uniform; not its time */
    double shapes, stays;    /* the work of a launch varies so, and stays so alike */
    double clump;            /* mean launches at once; 0: one by one */
    unsigned drain;          /* the queue is empty every so many iterations … */
    double ahead;            /* … and full at so many launches */
    unsigned processes;
    double val_every_s, val_s, val_rate; /* validation */
    double trend;                        /* a second */
    double wait_s;                       /* between iterations, exponential */
};

static const struct manner manners[] = {
    {"smooth", 0.3, 0.02, 900, .processes = 1},
    {"smooth, 1 s", 1, 0.02, 3000, .processes = 1},
    {"smooth, 10 s", 10, 0.02, 30000, .processes = 1},
    {"clumps of 200", 0.3, 0.02, 900, .clump = 200, .processes = 1},
    {"clumps of 1000", 0.3, 0.05, 900, .clump = 1000, .processes = 1},
    {"queue drained each 20", 0.3, 0.02, 900, .drain = 20, .ahead = 1000, .processes = 1},
    {"queue drained each 200", 0.1, 0.02, 300, .drain = 200, .ahead = 1000,
     .processes = 1},
    {"8 processes", 0.5, 0.05, 1500, .clump = 50, .processes = 8},
    {"validates 30 s of 200 s", 0.3, 0.02, 900, .processes = 1, .val_every_s = 200,
     .val_s = 30, .val_rate = 1.4},
    {"validates 10 s of 60 s, slower", 0.3, 0.02, 900, .clump = 100, .processes = 1,
     .val_every_s = 60, .val_s = 10, .val_rate = 0.8},
    {"validates 2 s of 10 s", 0.3, 0.02, 900, .processes = 1, .val_every_s = 10,
     .val_s = 2, .val_rate = 1.3},
    {"checkpoints, 8 s of 90 s", 0.3, 0.02, 900, .processes = 1, .val_every_s = 90,
     .val_s = 8, .val_rate = 0},
    {"shapes by 20 %", 0.3, 0.02, 900, .shapes = 0.2, .processes = 1},
    {"shapes by 40 %, sorted", 0.3, 0.02, 900, .shapes = 0.4, .stays = 0.95,
     .processes = 1},
    {"shapes by 20 %, sorted long", 0.3, 0.02, 900, .shapes = 0.2, .stays = 0.995,
     .processes = 1},
    {"graphs, 4 launches", 0.1, 0.02, 4, .processes = 1},
    {"drifts, 5 % a minute", 0.3, 0.02, 900, .processes = 1, .trend = 0.05 / 60},
    {"launches vary by 1 %", 0.3, 0.02, 900, .spread = 0.01, .processes = 1},
    {"launches vary by half", 0.3, 0.3, 900, .spread = 0.5, .processes = 1},
    {"a handful, at random", 0.2, 0.8, 3, .spread = 0.9, .processes = 1},
    {"requests at random", 0.05, 0.3, 100, .spread = 0.5, .processes = 1, .wait_s = 0.1},
};

struct run {
    const struct manner *m;
    struct rng rng;
    double slow, began_s; /* part of the time added by the cap */
    double begin, end, wait, shape;
    double base, here, clump;
    uint64_t iterations;
};

static double around(struct run *r, double by)
{
    return 1 + by * (2 * rng_uniform(&r->rng) - 1);
}

static double speed_at(const struct run *r, double t)
{
    const struct manner *m = r->m;
    double phase = m->val_every_s > 0 ? fmod(t, m->val_every_s) : INFINITY;

    return (phase < m->val_s ? m->val_rate : 1) / (1 + m->trend * (t - r->began_s));
}

static void next_iteration(struct run *r)
{
    const struct manner *m = r->m;
    double fresh = sqrt(1 - m->stays * m->stays);

    r->base += r->here;
    r->iterations += r->here > 0;
    r->shape = m->stays * r->shape + fresh * (rng_uniform(&r->rng) - 0.5) * sqrt(12);
    double speed = speed_at(r, r->end);
    r->begin = r->end;
    r->here = speed > 0 ? fmax(1, round(m->launches * around(r, m->spread))) : 0;
    double s = m->period_s * around(r, m->jitter) * r->slow *
               fmax(0.2, 1 + m->shapes * r->shape / sqrt(3));
    r->end = r->begin + (speed > 0 ? s / speed : 0.1);
    r->wait = m->wait_s > 0 ? -m->wait_s * log(1 - rng_uniform(&r->rng)) : 0;
    r->end += r->wait;
}

/* Launches so far: those the board has done and those in the queue.  The end of an
 * iteration (the optimiser) has kernels of a third of the others' time.
 */
static uint64_t count_at(struct run *r, double t)
{
    const struct manner *m = r->m;

    while (t >= r->end)
        next_iteration(r);
    double part = fmin(1, (t - r->begin) / (r->end - r->wait - r->begin));
    part = part < 0.9 ? part * 0.75 / 0.9 : 0.75 + (part - 0.9) * 2.5;
    double ahead = 0, done = r->base + part * r->here;
    if (m->drain) { /* filled 1.5 times as fast as the board takes them */
        double since = (double)(r->iterations % m->drain) + part;
        ahead = fmin(m->ahead, 0.5 * since * m->launches);
        ahead = fmin(ahead, (m->drain - since) * m->launches);
    }
    done += ahead;
    while (m->clump > 0 && r->clump < done)
        r->clump -= m->clump * log(1 - rng_uniform(&r->rng));
    return (uint64_t)(m->clump > 0 ? r->clump : done);
}

static double poll(struct rate *rate, struct run *r, double t)
{
    struct rate_process p[RATE_PROCESSES] = {0};
    uint64_t count = count_at(r, t);

    for (unsigned i = 0; i < r->m->processes; i++)
        p[i] = (struct rate_process){.pid = 10 + i, .since_ns = 7, .kind[0] = count};
    rate_feed(rate, p, r->m->processes, ns_of_s(t));
    return t + 1e-3 * LAUNCHES_POLL_MS * (1 + 0.2 * rng_uniform(&r->rng));
}

/* A window from t, as the tuner makes it.  False: unknown. */
static bool window(struct rate *rate, struct run *r, double *t, struct rate_found *ret)
{
    double from = *t, look = from + LEAST_S;

    while (*t < from + MOST_S) {
        *t = poll(rate, r, *t);
        if (*t < look)
            continue;
        look += 5;
        rate_find(rate, ns_of_s(from), ret);
        if (ret->why != RATE_FOUND || s_between(ret->from_ns, ret->to_ns) < LEAST_S)
            continue;
        if (ret->rse <= RATE_RSE_GOOD || (*t - from > MOST_S / 2 && ret->rse <= 0.01))
            return true;
    }
    return ret->why == RATE_FOUND && ret->rse <= 0.01;
}

struct told {
    unsigned pairs, known, covered, seen;
    double error2, worst, took_s;
};

static void play(const struct manner *m, uint64_t seed, double slower, struct told *ret)
{
    auto_(rate_free) struct rate *rate = NULL;
    struct run r = {.m = m, .slow = 1};
    struct rate_found a = {0}, b = {0};

    rng_init(&r.rng, seed);
    double t = 1000 + 300 * rng_uniform(&r.rng), begin = t;
    r.begin = r.end = r.began_s = t;
    ret->pairs++;
    if (rate_new(&rate) < 0)
        return;
    while (t < begin + LISTEN_S)
        t = poll(rate, &r, t);
    double from = t;
    bool known = window(rate, &r, &t, &a);
    r.slow = slower;
    rate_moved(rate, ns_of_s(t), 0.9); /* of the watts */
    double moved = t;
    while (t < moved + SETTLE_S)
        t = poll(rate, &r, t);
    known = window(rate, &r, &t, &b) && known;
    if (!known || a.generation != b.generation)
        return;
    double ratio = a.per_s / b.per_s, half = Z95 * hypot(a.rse, b.rse);
    double middle_a = s_of_ns(a.from_ns / 2 + a.to_ns / 2) - r.began_s;
    double middle_b = s_of_ns(b.from_ns / 2 + b.to_ns / 2) - r.began_s;
    double truth = slower * (1 + m->trend * middle_b) / (1 + m->trend * middle_a);
    double error = fabs(ratio / truth - 1);
    ret->known++;
    ret->took_s += (t - from - SETTLE_S) / 2;
    ret->error2 += error * error;
    ret->worst = fmax(ret->worst, error);
    ret->covered += error <= half;
    ret->seen += ratio - 1 >= SEEN && ratio - 1 >= SEEN_SE / Z95 * half;
}

static void table(const struct manner *m, unsigned seeds, const char *end)
{
    struct told slower = {0}, same = {0};

    for (uint64_t s = 1; s <= seeds; s++) {
        play(m, s, SLOWER, &slower);
        play(m, s, 1, &same);
    }
    unsigned known = slower.known + same.known;
    printf("  {\"job\": \"%s\", \"known_percent\": %.1f", m->name,
           100.0 * known / (slower.pairs + same.pairs));
    if (known > 0)
        printf(", \"window_s\": %.1f, \"rms_percent\": %.3f, \"worst_percent\": %.3f, "
               "\"covered_percent\": %.1f",
               (slower.took_s + same.took_s) / known,
               100 * sqrt((slower.error2 + same.error2) / known),
               100 * fmax(slower.worst, same.worst),
               100.0 * (slower.covered + same.covered) / known);
    if (slower.known > 0)
        printf(", \"seen_2_percent\": %.1f", 100.0 * slower.seen / slower.known);
    if (same.known > 0)
        printf(", \"seen_0_percent\": %.1f", 100.0 * same.seen / same.known);
    printf("}%s\n", end);
}

int main(int argc, char **argv)
{
    uint64_t seeds = 20;
    uw_error err;

    if (argc > 1 &&
        (parse_u64(argv[1], &seeds, &err) < 0 || seeds == 0 || seeds > 100000)) {
        (void)fprintf(stderr, "launch-rate: '%s' is not 1..100000 seeds\n", argv[1]);
        return 2;
    }
    printf("{\"seeds\": %u, \"made_up\": true, \"jobs\": [\n", (unsigned)seeds);
    for (size_t i = 0; i < n_elements(manners); i++)
        table(&manners[i], (unsigned)seeds, i + 1 < n_elements(manners) ? "," : "");
    printf("]}\n");
    return 0;
}
