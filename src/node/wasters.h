/* Waste of jobs by user and by project since the daemon began, from the rows that the
 * ledger is given (docs/waste.md): for metrics, whose labels are bounded.
 *
 * Those with the most energy have sums of their own, the rest share one.  A sum never
 * falls: a name that comes among the first counts from there on, and what it wasted
 * before stays with the rest.  Pure.
 */
#ifndef NODE_WASTERS_H
#define NODE_WASTERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "io/ledger.h"
#include "jobs/roster.h"
#include "node/charges.h"

enum {
    WASTERS_NAMED = 20, /* with sums of their own */
    WASTERS_MAX = 256,  /* that are told apart */
    WASTER_NAME = LABEL_VALUE,
};

enum wasters_of { WASTERS_USER, WASTERS_PROJECT, WASTERS_OF };

struct waster {
    char name[WASTER_NAME];        /* of the rest "other"; "": jobs without a project */
    double j[WASTE_N], s[WASTE_N]; /* by enum waste_class, of waste alone */
    int64_t cost, cost_uj;         /* of ledger_amount, of waste alone */
};

struct wasters;

int wasters_new(struct wasters **ret); /* -ENOMEM */
void wasters_free(struct wasters *w);
DEFINE_AUTO(struct wasters *, wasters_free);

/* A row as it is booked; one that is no job's waste counts for nothing.  outer: the job
 * in which it runs, or NULL.
 */
void wasters_add(struct wasters *w, const struct ledger_energy *e,
                 const struct job_entry *job, const struct job_entry *outer);

/* The i-th with a sum of its own, then the rest; NULL: no more. */
const struct waster *wasters_at(const struct wasters *w, enum wasters_of of, size_t i);
const char *wasters_currency(const struct wasters *w); /* "": no price was known */

#endif
