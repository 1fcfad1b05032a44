#include "core/progress/launches.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/units.h"

enum {
    RESTS = 40,      /* newest rests, which are kept */
    REST_LEAST = 12, /* rests before a step is searched */
    SURE_OF = 10,    /* rests that a share must be based on */
    APART = 5,       /* rests within an iteration, at most */
    /* steps between two rests, at most: a rest can be too short to be seen */
    STEPS_AT_ONCE = 64,
    FITS = 32,         /* rests that the confidence is averaged over */
    PARTS = 3 * APART, /* steps that may be mistaken for one, at most */
    AGAIN = 4,         /* rests between two searches */
    PATIENCE = 10,     /* failed searches, until the next one waits for RESTS new rests */
    JOB_MOST = 80,     /* budget of a job, in searches: a first one of each process */
    JOB_A_SECOND = 2,  /* refill of a job's budget */
    ALL_MOST = 16,     /* budget of all jobs: about 1 ms of one loop iteration */
    ALL_A_SECOND = 190, /* refill of it: about 1 % of the time */
};
#define FIT_SHARE 0.75 /* least share of rests with another one step later */
/* share above which a shorter step with less is not preferred */
#define CLEAR_SHARE 0.9
#define CHANCE_MOST 0.1 /* largest probability of such a rest by chance */
#define TOLERANCE 0.002 /* of the launches between two rests */
#define PAUSE_STEPS 2.5 /* a longer distance without a fit is a pause */
/* at this distance the step is forgotten: another job may run */
#define LOST_STEPS 400.0
#define FIT_LEAST 0.6 /* the step is given up below this fit */
#define FEW_S 30.0    /* least history before LAUNCHES_RESTLESS or LAUNCHES_UNEVEN */

struct rest {
    uint64_t launches;
    uint64_t at_ns; /* end of the rest: launches resumed */
};

struct process {
    struct launch_count last;
    uint64_t fed_ns, first_ns;
    bool resting, risen, seen;
    struct rest rest[RESTS]; /* oldest first */
    size_t n_rests;

    uint64_t step; /* launches a step; 0: not known */
    size_t gap;    /* rests a step */
    size_t since;  /* rests since the mark */
    size_t wait;   /* rests until the next search */
    unsigned vain; /* failed searches */
    uint64_t steps;
    struct rest mark;    /* end of the last step */
    bool paused, strict; /* strict: a step was given up, only a clear one is accepted */
    double fit;          /* smoothed share of rests that came where expected */
};

struct launches {
    struct process process[LAUNCHES_PROCESSES];
    size_t n;
    size_t turn; /* process to search first */
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

/* ---- search budgets ---- */

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

/* apart: launches between two rests. */
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

/* Index of the rest `step` launches after rest i; 0: none. */
static size_t rest_after(const struct process *p, size_t i, uint64_t step)
{
    double apart = fmin(apart_of(p), (double)step);
    for (size_t j = i + 1; j < p->n_rests && j <= i + APART; j++)
        if (near(p->rest[j].launches, p->rest[i].launches + step, apart))
            return j;
    return 0;
}

/* Share of the rests that are followed by another one `step` launches later (rests of
 * the last step do not count).  0 if there are too few rests, or if rests are so close
 * together that this happens by chance: the next rest is at a given launch with a
 * probability of one in their distance.  May be 0 for a share below `least`, which is
 * common early on.
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

/* If rests are missed, several steps may be mistaken for one: then all distances between
 * rests are multiples of a fraction of `step`, and many equal it.  Returns that fraction,
 * or `step`.
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

/* The smallest number of launches after which rests recur; 0: none. */
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

/* The most frequent number of rests a step. */
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

/* Starts to count at the newest pair of rests that are a step apart. */
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

/* Searches one process after another, up to LAUNCHES_AT_ONCE or until the budget is
 * spent.
 */
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

/* Counts a rest that came where expected (good) or not; a poor fit gives the step up. */
static void judge(struct process *p, bool good)
{
    p->fit += ((good ? 1.0 : 0.0) - p->fit) / FITS;
    if (p->fit >= FIT_LEAST)
        return;
    p->strict = true;
    forget(p);
}

/* A rest that is not one step after the mark.  If another rest lies one step before it,
 * with as many rests between them as in a step, it ends a step after a pause, or a
 * longer step.  (Rests of a validation may lie likewise, but with more rests between
 * them; rests within a step precede the step's end.)
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

/* ---- state ---- */

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
