/* What the next run of a job is told of the last one, and what is kept for it. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "node/node-inside.h"

enum { LEAST_CAPS = 3 };

/* The name of these boards, one for all of them; NULL: they differ. */
static const char *model_of(const struct node *node, uint64_t boards, unsigned *ret_n)
{
    const char *name = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < node->n; i++) {
        if (!(boards >> i & 1))
            continue;
        const char *own = node_info(node, i)->name;
        if (name && strcmp(name, own) != 0)
            return NULL;
        name = own;
        ++*ret_n;
    }
    return name && name[0] && strlen(name) < LEDGER_MODEL ? name : NULL;
}

/* Whose job it is, running or just ended. */
static bool owner_of(const struct node *node, uint64_t job,
                     const struct node_job_rec *rec, uid_t *ret)
{
    const struct job_entry *entry = roster_find(node->roster, job);

    if (!entry && !rec->ended_ns)
        return false;
    *ret = entry ? entry->uid : rec->last.uid;
    return true;
}

static const struct ledger_search *find(struct node *node, uint64_t job, uint64_t boards)
{
    const struct node_job_rec *rec = node_job_rec(node, job);
    uint64_t keep_ns = node->config.history_ns;
    unsigned n = 0;
    uid_t uid = 0;
    const char *model = model_of(node, boards, &n);

    if (!node->history || !keep_ns || !rec || !rec->same[0] || !model ||
        !owner_of(node, job, rec, &uid))
        return NULL;
    int64_t since = loop_utc_ns(node->loop) - (int64_t)keep_ns;
    return history_find(node->history, uid, rec->same, model, n, since);
}

bool node_history_earlier(uint64_t job, uint64_t boards, struct tuner_earlier *ret,
                          void *user)
{
    const struct ledger_search *s = find(user, job, boards);

    if (!s)
        return false;
    *ret = (struct tuner_earlier){.job = s->job, .demand_w = s->demand_w};
    for (; ret->n < s->n && ret->n < SEARCH_EARLIER_MAX; ret->n++) {
        const struct ledger_search_cap *c = &s->cap[ret->n];
        ret->window[ret->n] = (struct search_window){.cap_mw = c->cap_mw,
                                                     .time_s = c->step_s,
                                                     .energy_j = c->step_j,
                                                     .time_rse = c->step_s_rse,
                                                     .energy_rse = c->step_j_rse};
    }
    return true;
}

static void add_cap(struct ledger_search *s, const struct tuner_cap *c)
{
    struct ledger_search_cap cap = {
        .cap_mw = c->cap_mw,
        .windows = c->mean.windows,
        .step_s = savings_mean_time(&c->mean),
        .step_j = savings_mean_energy(&c->mean),
        .step_s_rse = savings_mean_time_rse(&c->mean),
        .step_j_rse = savings_mean_energy_rse(&c->mean),
    };

    if (s->n < LEDGER_SEARCH_CAPS && cap.windows > 0 && isfinite(cap.step_s_rse) &&
        cap.step_s_rse < 1 && isfinite(cap.step_j_rse) && cap.step_j_rse < 1)
        s->cap[s->n++] = cap;
}

/* The reference, the cap that is held, then the others as they were measured. */
static void add_caps(struct ledger_search *s, const struct tuner_report *r)
{
    for (int pass = 0; pass < 3; pass++)
        for (size_t i = 0; i < r->n_caps; i++) {
            bool reference = r->cap[i].cap_mw == r->reference_mw;
            bool held = !reference && r->cap[i].cap_mw == r->held_mw;
            if (pass == (reference ? 0 : held ? 1 : 2))
                add_cap(s, &r->cap[i]);
        }
}

void node_history_learnt(uint64_t job, uint64_t boards, const struct tuner_report *r,
                         void *user)
{
    struct node *node = user;
    const struct node_job_rec *rec = node_job_rec(node, job);
    const struct ledger_search *old = find(node, job, boards);
    struct ledger_search s = {.job = job,
                              .utc_ns = loop_utc_ns(node->loop),
                              .reference_mw = r->reference_mw,
                              .demand_w = r->demand_w};
    const char *model = model_of(node, boards, &s.boards);

    /* A reference that others held down is no scale for a run that they do not. */
    if (!node->history || !node->config.history_ns || !rec || !rec->same[0] || !model ||
        !owner_of(node, job, rec, &s.uid) || !(r->demand_w > 0) ||
        r->reference_mw + MW_PER_W < r->original_mw)
        return;
    (void)snprintf(s.same, sizeof s.same, "%s", rec->same);
    (void)snprintf(s.model, sizeof s.model, "%s", model);
    add_caps(&s, r);
    if (s.n < LEAST_CAPS || s.cap[0].cap_mw != r->reference_mw ||
        (!r->holding && old && old->n >= s.n))
        return;
    if (history_put(node->history, &s) == 0)
        node_ledger_search(node, &s);
}

static int on_search(const struct ledger_search *s, void *user)
{
    return history_put(user, s);
}

int node_history_start(struct node *node, uw_error *err)
{
    if (!node->history)
        node->history = history_new();
    if (!node->history)
        return fail(err, -ENOMEM, "out of memory");
    return node->ledger && ledger_is_readable(node->ledger)
               ? ledger_searches(node->ledger, on_search, node->history, err)
               : 0;
}
