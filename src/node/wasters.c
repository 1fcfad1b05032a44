#include "node/wasters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

/* By this factor a name must exceed the least of the first ones, so that two similar
 * names do not alternate.
 */
#define AHEAD 1.1
#define REST "other"

struct entry {
    struct waster sum;
    double all_j;  /* includes the energy without a sum of its own */
    uint64_t used; /* 0: free */
    bool named;
};

struct list {
    struct entry entry[WASTERS_MAX];
    struct waster rest;
    uint64_t uses;
    size_t n_named;
};

struct wasters {
    struct list list[WASTERS_OF];
    char currency[CHARGES_CURRENCY];
};

int wasters_new(struct wasters **ret)
{
    struct wasters *w = calloc(1, sizeof *w);

    if (!w)
        return -ENOMEM;
    for (int i = 0; i < WASTERS_OF; i++)
        (void)snprintf(w->list[i].rest.name, WASTER_NAME, "%s", REST);
    *ret = w;
    return 0;
}

void wasters_free(struct wasters *w)
{
    free(w);
}

/* The entry of a name; if there are too many, replaces the one without a sum of its own
 * whose last energy is oldest.
 */
static struct entry *entry_of(struct list *l, const char *name)
{
    struct entry *oldest = NULL;

    for (struct entry *e = l->entry; e < l->entry + WASTERS_MAX; e++) {
        if (e->used && strcmp(e->sum.name, name) == 0)
            return e;
        if (!e->named && (!oldest || e->used < oldest->used))
            oldest = e;
    }
    *oldest = (struct entry){.all_j = 0};
    (void)snprintf(oldest->sum.name, WASTER_NAME, "%s", name);
    return oldest;
}

/* Gives the entry a sum of its own if it is among the first. */
static void promote(struct list *l, struct entry *e)
{
    struct entry *least = NULL;

    if (e->named)
        return;
    for (struct entry *k = l->entry; k < l->entry + WASTERS_MAX; k++)
        if (k->named && (!least || k->all_j < least->all_j))
            least = k;
    if (l->n_named == WASTERS_NAMED && e->all_j <= AHEAD * least->all_j)
        return;
    if (l->n_named == WASTERS_NAMED)
        least->named = false;
    else
        l->n_named++;
    e->named = true;
}

static void add(struct list *l, const struct ledger_energy *e, const char *name)
{
    struct waster *to = &l->rest;

    if (strcmp(name, REST) != 0) { /* two series of one name are refused */
        struct entry *entry = entry_of(l, name);
        entry->all_j += e->energy_j;
        entry->used = ++l->uses;
        promote(l, entry);
        to = entry->named ? &entry->sum : to;
    }
    to->j[e->waste] += e->energy_j;
    to->s[e->waste] += (double)(e->end_utc_ns - e->begin_utc_ns) / (double)NS_PER_S;
    to->cost += e->charge[LEDGER_COST].amount;
    to->cost_uj += e->charge[LEDGER_COST].covered_uj;
}

/* Resets the sums of money if the currency has changed. */
static void take_currency(struct wasters *w, const char *unit)
{
    size_t len = strcspn(unit, "/");

    if (strncmp(w->currency, unit, len) == 0 && w->currency[len] == '\0')
        return;
    (void)snprintf(w->currency, sizeof w->currency, "%.*s", (int)len, unit);
    for (int i = 0; i < WASTERS_OF; i++) {
        struct list *l = &w->list[i];
        l->rest.cost = l->rest.cost_uj = 0;
        for (size_t k = 0; k < WASTERS_MAX; k++)
            l->entry[k].sum.cost = l->entry[k].sum.cost_uj = 0;
    }
}

/* "": the job has none. */
static const char *label_of(const struct job_entry *job, const char *key)
{
    for (size_t i = 0; job && i < job->n_labels; i++)
        if (strcmp(job->label[i].key, key) == 0)
            return job->label[i].value;
    return "";
}

/* As in report --waste: the user's label, else the scheduler's project. */
static const char *project_of(const struct job_entry *job, const struct job_entry *outer)
{
    const struct job_entry *top = outer ? outer : job;
    const char *project = label_of(job, "project");

    if (!*project)
        project = label_of(outer, "project");
    if (!*project && (top->firm || top->source == JOB_REGISTERED))
        project = label_of(top, "slurm.account");
    return project;
}

void wasters_add(struct wasters *w, const struct ledger_energy *e,
                 const struct job_entry *job, const struct job_entry *outer)
{
    char uid[24];

    if (!job || e->kind != LEDGER_JOB || e->waste == WASTE_WORKING ||
        e->waste >= WASTE_NOBODY)
        return;
    (void)snprintf(uid, sizeof uid, "%u", job->uid);
    if (e->charge[LEDGER_COST].factor)
        take_currency(w, e->charge[LEDGER_COST].factor->unit);
    add(&w->list[WASTERS_USER], e, job->user[0] ? job->user : uid);
    add(&w->list[WASTERS_PROJECT], e, project_of(job, outer));
}

const struct waster *wasters_at(const struct wasters *w, enum wasters_of of, size_t i)
{
    const struct list *l = &w->list[of];
    size_t n = 0;

    for (size_t k = 0; k < WASTERS_MAX && i < l->n_named; k++)
        if (l->entry[k].named && n++ == i)
            return &l->entry[k].sum;
    return i == l->n_named ? &l->rest : NULL;
}

const char *wasters_currency(const struct wasters *w)
{
    return w->currency;
}
