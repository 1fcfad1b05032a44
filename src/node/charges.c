#include "node/charges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/carbon/account.h"

enum { ACCOUNTS = 512, CHARGES_JOBS = 512 };
_Static_assert((int)ACCOUNT_CO2 == (int)LEDGER_CO2 &&
                   (int)ACCOUNT_MARGINAL == (int)LEDGER_MARGINAL &&
                   (int)ACCOUNT_COST == (int)LEDGER_COST,
               "in the order of the ledger's columns");

static const char *const names[LEDGER_CHARGES] = {"carbon", "carbon.marginal", "price"};

/* The source of a step's factor. */
struct origin {
    char source[SIGNAL_SOURCE], unit[SIGNAL_UNIT];
    struct ledger_factor factor; /* points to the above */
};

/* One signal's steps, the oldest first. */
struct course {
    struct account_step step[CHARGES_STEPS];
    struct origin origin[CHARGES_STEPS]; /* by step.source */
    size_t n;
};

/* The rounding rests of the rows of a job on a board, or of idle or unattributed energy
 * there.
 */
struct account_rests {
    size_t board;
    enum ledger_kind kind; /* 0: free */
    uint64_t job, used;
    int64_t rest[LEDGER_CHARGES];
};

struct job_sum {
    uint64_t job, used; /* job 0: free */
    struct charges_sum sum;
};

struct charges {
    struct course course[LEDGER_CHARGES];
    struct charges_sum board[LEDGER_PLACES];
    struct job_sum job[CHARGES_JOBS];
    char currency[CHARGES_CURRENCY]; /* currency of the sums */
    struct account_rests account[ACCOUNTS];
    uint64_t uses;
};

int charges_new(struct charges **ret)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void charges_free(struct charges *c)
{
    free(c);
}

/* ---- signals ---- */

static bool same_origin(const struct origin *o, const struct signal_view *v)
{
    return strcmp(o->source, v->source) == 0 && strcmp(o->unit, v->decl->unit) == 0 &&
           o->factor.estimated == v->estimated;
}

static bool goes_on(const struct course *c, const struct account_step *step,
                    const struct signal_view *v)
{
    const struct account_step *last = c->n ? &c->step[c->n - 1] : NULL;

    if (!last || last->known != step->known)
        return !last && !step->known;
    return !step->known ||
           (last->factor == step->factor && same_origin(&c->origin[last->source], v));
}

/* Before the oldest remaining step, nothing is known. */
static void drop_oldest(struct course *c)
{
    size_t origin = c->step[0].source;

    memmove(c->step, c->step + 1, (CHARGES_STEPS - 1) * sizeof *c->step);
    c->n--;
    c->step[c->n].source = origin; /* this index is free for the next step */
}

static void add_step(struct course *c, const char *signal, struct account_step step,
                     const struct signal_view *v)
{
    if (c->n == CHARGES_STEPS)
        drop_oldest(c);
    else
        c->step[c->n].source = c->n;
    step.source = c->step[c->n].source;
    struct origin *o = &c->origin[step.source];
    (void)snprintf(o->source, sizeof o->source, "%s",
                   v->source[0] ? v->source : "unknown");
    (void)snprintf(o->unit, sizeof o->unit, "%s", v->decl->unit);
    o->factor = (struct ledger_factor){signal, o->source, o->unit, v->estimated};
    c->step[c->n++] = step;
}

void charges_signal(struct charges *c, uint64_t now_ns, const struct signal_view *v)
{
    struct account_step step = {.from_ns = now_ns};
    size_t i = 0;

    while (i < LEDGER_CHARGES && strcmp(v->decl->name, names[i]) != 0)
        i++;
    if (i == LEDGER_CHARGES)
        return;
    struct course *course = &c->course[i];
    step.known = v->known && v->value && v->value->type == POLICY_NUMBER &&
                 v->decl->unit[0] &&
                 account_factor((enum account_signal)i, v->value->number, &step.factor);
    if (!goes_on(course, &step, v))
        add_step(course, names[i], step, v);
}

/* ---- rows ---- */

/* The row's account; if there are too many, replaces the least recently used one. */
static struct account_rests *account_of(struct charges *c, const struct ledger_energy *e)
{
    struct account_rests *a = c->account, *oldest = a;

    for (; a < c->account + ACCOUNTS; a++) {
        if (a->kind == e->kind && a->board == e->board && a->job == e->job)
            break;
        if (a->used < oldest->used)
            oldest = a;
    }
    if (a == c->account + ACCOUNTS) {
        a = oldest;
        *a = (struct account_rests){.board = e->board, .kind = e->kind, .job = e->job};
    }
    a->used = ++c->uses;
    return a;
}

/* ---- sums ---- */

/* Resets the sums of money if the currency has changed. */
static void take_currency(struct charges *c, const char *unit)
{
    size_t len = strcspn(unit, "/");

    if (strncmp(c->currency, unit, len) == 0 && c->currency[len] == '\0')
        return;
    (void)snprintf(c->currency, sizeof c->currency, "%.*s", (int)len, unit);
    for (size_t i = 0; i < LEDGER_PLACES; i++)
        c->board[i].amount[LEDGER_COST] = c->board[i].covered_uj[LEDGER_COST] = 0;
    for (size_t i = 0; i < CHARGES_JOBS; i++)
        c->job[i].sum.amount[LEDGER_COST] = c->job[i].sum.covered_uj[LEDGER_COST] = 0;
}

static void add_to(struct charges_sum *sum, const struct ledger_energy *e)
{
    for (size_t i = 0; i < LEDGER_CHARGES; i++) {
        sum->amount[i] += e->charge[i].amount;
        sum->covered_uj[i] += e->charge[i].covered_uj;
    }
}

/* The job's sum; if there are too many, replaces the one whose last row is oldest. */
static struct job_sum *job_of(struct charges *c, uint64_t job)
{
    struct job_sum *oldest = c->job;

    for (struct job_sum *j = c->job; j < c->job + CHARGES_JOBS; j++) {
        if (j->job == job)
            return j;
        if (j->used < oldest->used)
            oldest = j;
    }
    *oldest = (struct job_sum){.job = job};
    return oldest;
}

static void sum_up(struct charges *c, const struct ledger_energy *e)
{
    if (e->charge[LEDGER_COST].factor)
        take_currency(c, e->charge[LEDGER_COST].factor->unit);
    if (e->board < LEDGER_PLACES)
        add_to(&c->board[e->board], e);
    if (e->kind != LEDGER_JOB || e->board >= LEDGER_BOARDS)
        return;
    struct job_sum *j = job_of(c, e->job);
    j->used = c->uses;
    add_to(&j->sum, e);
}

static void tell_sum(const struct charges *c, const struct charges_sum *sum,
                     struct charges_sum *ret)
{
    *ret = *sum;
    memcpy(ret->currency, c->currency, sizeof ret->currency);
}

void charges_board(const struct charges *c, size_t board, struct charges_sum *ret)
{
    *ret = (struct charges_sum){0};
    if (board < LEDGER_PLACES)
        tell_sum(c, &c->board[board], ret);
}

void charges_job(const struct charges *c, uint64_t job, struct charges_sum *ret)
{
    *ret = (struct charges_sum){0};
    for (size_t i = 0; i < CHARGES_JOBS; i++)
        if (job && c->job[i].job == job)
            tell_sum(c, &c->job[i].sum, ret);
}

void charges_drop_boards(struct charges *c)
{
    memset(c->board, 0, sizeof c->board);
}

void charges_put(struct charges *c, const struct attribution_row *row,
                 struct ledger_energy *e)
{
    struct account_rests *account = account_of(c, e);

    for (size_t i = 0; i < LEDGER_CHARGES; i++) {
        const struct course *course = &c->course[i];
        struct account_amount a;
        account_interval(course->step, course->n, row->begin_ns, row->end_ns,
                         ledger_uj(e->energy_j), &account->rest[i], &a);
        e->charge[i] = (struct ledger_amount){
            a.known ? &course->origin[a.source].factor : NULL, a.amount, a.covered_uj};
    }
    sum_up(c, e);
}
