#include "node/capped-by.h"

#include <stdio.h>
#include <string.h>

/* The claim of the policy that determines a board's cap; NULL: none. */
static const struct claim *decides(const struct caps_view *v)
{
    const struct claim *c =
        v->state == CAPS_HELD ? claims_find(v->claims, v->verdict.claim) : NULL;

    return c && (c->source == CLAIM_OF_RULE || c->source == CLAIM_OF_LIMIT) ? c : NULL;
}

/* NULL: no room is left. */
static struct job_capped_by *entry_of(struct job_capped *capped, const char *who)
{
    struct job_capped_by *by = capped->by;

    for (size_t i = 0; i < capped->n; i++, by++)
        if (strncmp(by->who, who, sizeof by->who - 1) == 0)
            return by;
    if (capped->n == JOB_CAPPED_MAX)
        return NULL;
    capped->n++;
    *by = (struct job_capped_by){.lowest_mw = UINT32_MAX};
    (void)snprintf(by->who, sizeof by->who, "%.63s", who);
    return by;
}

void capped_by_tick(struct job_capped *capped, const struct caps *caps, uint64_t boards,
                    double dt_s)
{
    bool counted[JOB_CAPPED_MAX] = {false};

    for (size_t i = 0; i < BOARDS_MAX; i++) {
        struct caps_view v;
        if (!(boards >> i & 1))
            continue;
        caps_look(caps, i, &v);
        const struct claim *c = decides(&v);
        struct job_capped_by *by = c ? entry_of(capped, c->who) : NULL;
        if (!by)
            continue;
        if (v.ramp_mw < by->lowest_mw)
            by->lowest_mw = v.ramp_mw;
        if (!counted[by - capped->by]) /* once for all boards */
            by->time_s += dt_s;
        counted[by - capped->by] = true;
    }
}
