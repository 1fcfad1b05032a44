#include "core/progress/launches.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"

enum {
    RESTS = 40,         /* newest ones that are kept */
    REST_LEAST = 12,    /* before a number is believed */
    SURE_OF = 10,       /* so many of them must tell */
    APART = 5,          /* rests within an iteration, at most */
    STEPS_AT_ONCE = 64, /* rests can be too short to be seen */
    FITS = 32,          /* over so many rests the confidence is taken */
    PARTS = 3 * APART,  /* as many steps may be taken for one */
    AGAIN = 4,          /* rests until it is looked for again … */
    PATIENCE = 10,      /* … after so many times in vain when all kept ones are new */
    JOB_MOST = 80,      /* searches: each process of a job, a first time … */
    JOB_A_SECOND = 2,   /* … and those that go on in vain */
    ALL_MOST = 16,      /* of all jobs together: some 1 ms of a turn of the loop … */
    ALL_A_SECOND = 190, /* … and 1 % of the time */
};
#define FIT_SHARE 0.75   /* of the rests have one just so many launches further … */
#define CLEAR_SHARE 0.9  /* … or rather so many, then a shorter step is no better */
#define CHANCE_MOST 0.1  /* … where chance would give no more than that */
#define TOLERANCE 0.002  /* of the launches between two rests */
#define PAUSE_STEPS 2.5  /* so many steps' launches without a fit are no step */
#define LOST_STEPS 400.0 /* … and so many: it is another job now */
#define FIT_LEAST 0.6    /* below that the steps are given up */
#define FEW_S 30.0       /* no word on what is not found before */

struct rest {
    uint64_t launches;
    uint64_t at_ns; /* when it was over: the result was there */
};

struct process {
    struct launch_count last;
    uint64_t fed_ns, first_ns;
    bool resting, risen, seen;
    struct rest rest[RESTS]; /* oldest first */
    size_t n_rests;

    uint64_t step; /* launches of one; 0: not known */
    size_t gap;    /* rests that it is made of */
    size_t since;  /* rests since the mark */
    size_t wait;   /* rests until it is looked for again */
    unsigned vain; /* times that it was looked for */
    uint64_t steps;
    struct rest mark;    /* the end of the last step */
    bool paused, strict; /* … a clear pattern or none: one has been given up */
    double fit;          /* share of the steps that came one by one, smoothed */
};

struct launches {
    struct process process[LAUNCHES_PROCESSES];
    size_t n;
    size_t turn; /* whose steps are looked for first */
};

int launches_new(struct launches **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void launches_free(struct launches *l)
{
    free(l);
}

/* ---- what looking costs ---- */

void launches_budget_job(struct launches_budget *ret, struct launches_budget *of)
{
    *ret = (struct launches_budget){JOB_MOST, JOB_A_SECOND, of, JOB_MOST, 0, 0};
}

void launches_budget_all(struct launches_budget *ret)
{
    *ret = (struct launches_budget){ALL_MOST, ALL_A_SECOND, NULL, ALL_MOST, 0, 0};
}

static bool has_left(struct launches_budget *b, uint64_t now_ns)
{
    double more =
        b->at_ns && now_ns > b->at_ns ? b->a_second * s_between(b->at_ns, now_ns) : 0;
    b->left = fmin(b->most, b->left + more);
    b->at_ns = now_ns;
    return b->left >= 1;
}

static bool spend(struct launches_budget *budget, uint64_t now_ns)
{
    for (struct launches_budget *b = budget; b; b = b->of)
        if (!has_left(b, now_ns))
            return false;
    for (struct launches_budget *b = budget; b; b = b->of) {
        b->left--;
        b->taken++;
    }
    return true;
}

/* ---- a step's launches ---- */

/* apart: how many launches lie between two rests. */
static bool near(uint64_t a, uint64_t b, double apart)
{
    uint64_t d = a > b ? a - b : b - a;
    return (double)d <= TOLERANCE * apart;
}

static double apart_of(const struct process *p)
{
    uint64_t begin = p->rest[0].launches, end = p->rest[p->n_rests - 1].launches;
    return (double)(end - begin) / (double)(p->n_rests - 1);
}

/* The rest just so many launches after rest i; 0: none. */
static size_t rest_after(const struct process *p, size_t i, uint64_t step)
{
    double apart = fmin(apart_of(p), (double)step);
    for (size_t j = i + 1; j < p->n_rests && j <= i + APART; j++)
        if (near(p->rest[j].launches, p->rest[i].launches + step, apart))
            return j;
    return 0;
}

/* The share of rests that are followed by one that lies so many launches further (the
 * last step's cannot be); 0 where too few can tell, or where rests lie so close that
 * chance would do it: the next rest is anywhere with the odds of one in their distance.
 * Perhaps 0, too, where it is less than `least`: that is often seen early.
 */
static double share_of(const struct process *p, uint64_t step, double least)
{
    uint64_t end = p->rest[p->n_rests - 1].launches;
    double apart = apart_of(p), bad_most = (1 - least) * (double)(p->n_rests - 1);
    unsigned all = 0, good = 0;

    if ((1 + 2 * TOLERANCE * apart) / apart > CHANCE_MOST)
        return 0;
    for (size_t i = 0; i + 1 < p->n_rests && p->rest[i].launches + step <= end; i++) {
        all++;
        good += rest_after(p, i, step) > 0;
        if (all - good > bad_most)
            return 0;
    }
    return all >= SURE_OF ? (double)good / all : 0;
}

/* Where rests are missed, two or three steps may be taken for one: then every distance
 * between rests is a multiple of the half or the third of it, and many are just that.
 */
static uint64_t undivided(const struct process *p, uint64_t step)
{
    for (uint64_t m = PARTS; m >= 2; m--) {
        double part = (double)step / (double)m;
        size_t good = 0, one = 0;
        for (size_t i = 1; i < p->n_rests; i++) {
            double n = (double)(p->rest[i].launches - p->rest[i - 1].launches) / part;
            bool whole = fabs(n - round(n)) <= TOLERANCE && round(n) >= 1;
            good += whole;
            one += whole && n < 1.5;
        }
        if ((double)good >= CLEAR_SHARE * (double)(p->n_rests - 1) && 3 * one >= good &&
            (1 + 2 * TOLERANCE * part) / part <= CHANCE_MOST)
            return (uint64_t)round(part);
    }
    return step;
}

/* The smallest number of launches after which the rests come again; 0: none. */
static uint64_t find_step(const struct process *p)
{
    uint64_t best = 0, clear = 0;
    double least = p->strict ? CLEAR_SHARE : FIT_SHARE;

    for (size_t i = p->n_rests - REST_LEAST; i + 1 < p->n_rests; i++)
        for (size_t j = i + 1; j < p->n_rests && j <= i + APART; j++) {
            uint64_t step = p->rest[j].launches - p->rest[i].launches;
            double share = share_of(p, step, least);
            if (!p->strict && share >= FIT_SHARE && (best == 0 || step < best))
                best = step;
            if (share >= CLEAR_SHARE && (clear == 0 || step < clear))
                clear = step;
        }
    return clear || best ? undivided(p, clear ? clear : best) : 0;
}

/* How many rests a step is mostly made of. */
static size_t gap_of(const struct process *p, uint64_t step)
{
    unsigned n[APART + 1] = {0};
    size_t best = 1;

    for (size_t i = 0; i + 1 < p->n_rests; i++) {
        size_t j = rest_after(p, i, step);
        if (j > 0)
            n[j - i]++;
    }
    for (size_t k = 1; k <= APART; k++)
        if (n[k] > n[best])
            best = k;
    return best;
}

/* The newest pair of rests a step apart: where counting begins. */
static void begin(struct process *p, uint64_t step)
{
    for (size_t i = p->n_rests - 1; i-- > 0;) {
        size_t j = rest_after(p, i, step);
        if (j == 0)
            continue;
        p->step = step;
        p->gap = gap_of(p, step);
        p->mark = p->rest[j];
        p->since = p->n_rests - 1 - j;
        p->paused = false;
        p->fit = share_of(p, step, 0);
        return;
    }
}

static void forget(struct process *p)
{
    p->step = 0;
    p->n_rests = 0;
    p->wait = 0;
    p->first_ns = p->fed_ns;
}

static bool is_due(const struct process *p)
{
    return p->step == 0 && p->n_rests >= REST_LEAST && p->wait == 0;
}

static void look_for_step(struct process *p)
{
    uint64_t step = find_step(p);

    if (step) {
        p->vain = 0;
        begin(p, step);
        return;
    }
    if (p->vain < PATIENCE)
        p->vain++;
    p->wait = p->vain < PATIENCE ? AGAIN : RESTS;
}

/* Whose turn it is, until too many were looked for or the budget is spent. */
static void look_for_steps(struct launches *l, uint64_t now_ns,
                           struct launches_budget *budget)
{
    size_t first = l->turn, looked = 0;

    for (size_t k = 0; k < l->n && looked < LAUNCHES_AT_ONCE; k++) {
        size_t i = (first + k) % l->n;
        if (!is_due(&l->process[i]))
            continue;
        if (!spend(budget, now_ns))
            return;
        look_for_step(&l->process[i]);
        l->turn = i + 1;
        looked++;
    }
}

/* ---- rests ---- */

static void step_to(struct process *p, const struct rest *r, uint64_t steps)
{
    p->steps += steps;
    p->mark = *r;
    p->since = 0;
    p->paused = false;
}

/* A rest that came where it should, or where none should be. */
static void judge(struct process *p, bool good)
{
    p->fit += ((good ? 1.0 : 0.0) - p->fit) / FITS;
    if (p->fit >= FIT_LEAST)
        return;
    p->strict = true;
    forget(p);
}

/* A rest that is no step after the last: where a step before it lies another, with as
 * many rests between as a step has, it ends a step after a pause or a longer one.  (A
 * validation's rests can lie so, too, but with more of them between; and those within a
 * step do, before its end.)
 */
static void odd_rest(struct process *p, const struct rest *r)
{
    double behind = (double)(r->launches - p->mark.launches) / (double)p->step;

    if (behind >= 2 - TOLERANCE && p->since > p->gap && p->n_rests > p->gap &&
        near(p->rest[p->n_rests - 1 - p->gap].launches + p->step, r->launches,
             (double)p->step / (double)p->gap)) {
        double steps = round(behind);
        bool pause = p->paused;
        step_to(p, r, steps <= PAUSE_STEPS + 1 ? (uint64_t)steps : 1);
        if (!pause)
            judge(p, false);
        return;
    }
    if (behind > PAUSE_STEPS)
        p->paused = true;
    if (behind > LOST_STEPS)
        forget(p);
}

static void on_rest(struct process *p, const struct rest *r)
{
    if (p->n_rests == RESTS) {
        for (size_t i = 1; i < RESTS; i++)
            p->rest[i - 1] = p->rest[i];
        p->n_rests--;
    }
    p->rest[p->n_rests++] = *r;
    if (p->step == 0) {
        p->wait -= p->wait > 0;
        return;
    }
    p->since++;
    for (uint64_t k = 1; k <= STEPS_AT_ONCE && !p->paused; k++)
        if (p->since <= k * p->gap + 1 &&
            near(r->launches, p->mark.launches + k * p->step,
                 (double)p->step / (double)p->gap)) {
            step_to(p, r, k);
            judge(p, true);
            return;
        }
    odd_rest(p, r);
}

/* ---- feeding ---- */

static void feed_one(struct process *p, const struct launch_count *c, uint64_t now_ns)
{
    if (!p->seen || c->launches < p->last.launches) {
        *p = (struct process){.seen = true, .last = *c};
        p->first_ns = p->fed_ns = now_ns;
        return;
    }
    if (c->launches == p->last.launches) {
        p->resting = true;
    } else {
        const struct rest r = {p->last.launches, p->fed_ns + (now_ns - p->fed_ns) / 2};
        if (p->resting && p->risen)
            on_rest(p, &r);
        p->resting = false;
        p->risen = true;
    }
    p->last = *c;
    p->fed_ns = now_ns;
}

static struct process *find(struct launches *l, const struct launch_count *c)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->process[i].last.pid == c->pid &&
            l->process[i].last.since_ns == c->since_ns)
            return &l->process[i];
    return NULL;
}

static void keep(struct launches *l, const struct launch_count *c, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct launch_count *mine = &l->process[i].last;
        bool there = false;
        for (size_t k = 0; k < n && !there; k++)
            there = c[k].pid == mine->pid && c[k].since_ns == mine->since_ns;
        if (there && kept != i)
            l->process[kept] = l->process[i];
        kept += there;
    }
    l->n = kept;
}

void launches_feed(struct launches *l, const struct launch_count *c, size_t n,
                   uint64_t now_ns, struct launches_budget *budget)
{
    assert(n <= LAUNCHES_PROCESSES);
    keep(l, c, n);
    for (size_t i = 0; i < n; i++) {
        struct process *p = find(l, &c[i]);
        if (!p && l->n == LAUNCHES_PROCESSES)
            continue;
        if (!p) {
            p = &l->process[l->n++];
            p->seen = false;
        }
        feed_one(p, &c[i], now_ns);
    }
    look_for_steps(l, now_ns, budget);
}

/* ---- what is known ---- */

size_t launches_slots(const struct launches *l, struct step_slot *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct process *p = &l->process[i];
        if (p->step == 0)
            continue;
        ret[n++] = (struct step_slot){
            .pid = p->last.pid,
            .steps = p->steps,
            .last_step_ns = p->mark.at_ns,
            .phase = p->paused ? UW_PHASE_VALIDATE : UW_PHASE_TRAIN,
            .live = p->last.live,
        };
    }
    return n;
}

static enum launches_why why_not(const struct process *p)
{
    if (s_between(p->first_ns, p->fed_ns) < FEW_S)
        return LAUNCHES_FEW;
    return p->n_rests < REST_LEAST ? LAUNCHES_RESTLESS : LAUNCHES_UNEVEN;
}

void launches_state(const struct launches *l, struct launches_found *ret)
{
    *ret = (struct launches_found){.why = LAUNCHES_NOBODY};
    for (size_t i = 0; i < l->n; i++) {
        const struct process *p = &l->process[i];
        ret->processes++;
        if (p->step == 0) {
            if (ret->found == 0)
                ret->why = why_not(p);
            continue;
        }
        if (ret->found++ == 0) {
            ret->why = LAUNCHES_FOUND;
            ret->launches = p->step;
            ret->confidence = p->fit;
        }
        ret->confidence = fmin(ret->confidence, p->fit);
    }
}
