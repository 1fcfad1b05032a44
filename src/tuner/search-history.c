#include "tuner/search-history.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

enum { LEAST_CAPS = 3 };

const char *search_history_model(struct boards *set, uint64_t boards, unsigned *ret_n)
{
    const char *name = NULL;

    *ret_n = 0;
    for (size_t i = 0; i < boards_count(set); i++) {
        if (!(boards >> i & 1))
            continue;
        const char *own = board_view(boards_at(set, i))->info->name;
        if (name && strcmp(name, own) != 0)
            return NULL;
        name = own;
        ++*ret_n;
    }
    return name && name[0] && strlen(name) < LEDGER_MODEL ? name : NULL;
}

void search_history_earlier(const struct ledger_search *s, struct tuner_earlier *ret)
{
    *ret = (struct tuner_earlier){.job = s->job, .demand_w = s->demand_w};
    for (; ret->n < s->n && ret->n < SEARCH_EARLIER_MAX; ret->n++) {
        const struct ledger_search_cap *c = &s->cap[ret->n];
        ret->window[ret->n] = (struct search_window){.cap_mw = c->cap_mw,
                                                     .time_s = c->step_s,
                                                     .energy_j = c->step_j,
                                                     .time_rse = c->step_s_rse,
                                                     .energy_rse = c->step_j_rse};
    }
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

/* Adds the reference, the held cap, then the others in order of measurement. */
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

bool search_history_measured(const struct tuner_report *r,
                             const struct ledger_search *old, struct ledger_search *ret)
{
    /* A reference lowered by others' claims does not apply to runs without them. */
    if (!(r->demand_w > 0) || r->reference_mw + MW_PER_W < r->original_mw)
        return false;
    ret->reference_mw = r->reference_mw;
    ret->demand_w = r->demand_w;
    add_caps(ret, r);
    return ret->n >= LEAST_CAPS && ret->cap[0].cap_mw == r->reference_mw &&
           ((r->holding && !r->searching) || !old || old->n < ret->n);
}
