#include "node/charges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/carbon/account.h"

enum { ACCOUNTS = 512 };
_Static_assert((int)ACCOUNT_CO2 == (int)LEDGER_CO2 &&
                   (int)ACCOUNT_MARGINAL == (int)LEDGER_MARGINAL &&
                   (int)ACCOUNT_COST == (int)LEDGER_COST,
               "in the order of the ledger's columns");

static const char *const names[LEDGER_CHARGES] = {"carbon", "carbon.marginal", "price"};

/* Where a step's factor comes from. */
struct origin {
    char source[SIGNAL_SOURCE], unit[SIGNAL_UNIT];
    struct ledger_factor factor; /* points to these */
};

/* One signal's steps, the oldest first. */
struct course {
    struct account_step step[CHARGES_STEPS];
    struct origin origin[CHARGES_STEPS]; /* by step.source */
    size_t n;
};

/* What rows of a job on a board, or of idle or unattributed energy there, left. */
struct account_rests {
    size_t board;
    enum ledger_kind kind; /* 0: free */
    uint64_t job, used;
    int64_t rest[LEDGER_CHARGES];
};

struct charges {
    struct course course[LEDGER_CHARGES];
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

/* Before the oldest step that is left nothing is known. */
static void drop_oldest(struct course *c)
{
    size_t origin = c->step[0].source;

    memmove(c->step, c->step + 1, (CHARGES_STEPS - 1) * sizeof *c->step);
    c->n--;
    c->step[c->n].source = origin; /* free for the next step */
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

/* The row's account; of too many, the least recently used one begins anew. */
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
}
