/* Waste of jobs by user and by project since the daemon began, from the rows passed to
 * the ledger (docs/waste.md): for metrics, whose labels must be bounded.
 *
 * The names with the most energy have sums of their own, the others share one.  A sum
 * never falls: a name that moves up counts from then on, and its earlier waste stays in
 * the shared sum.  Pure.
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
    WASTERS_MAX = 256,  /* names that are distinguished */
    WASTER_NAME = LABEL_VALUE,
};

enum wasters_of { WASTERS_USER, WASTERS_PROJECT, WASTERS_OF };

struct waster {
    char name[WASTER_NAME]; /* "other": the shared sum; "": jobs without a project */
    double j[WASTE_N], s[WASTE_N]; /* by enum waste_class, of waste alone */
    int64_t cost, cost_uj;         /* of ledger_amount, of waste alone */
};

struct wasters;

int wasters_new(struct wasters **ret); /* -ENOMEM */
void wasters_free(struct wasters *w);
DEFINE_AUTO(struct wasters *, wasters_free);

/* A booked row; ignored unless it is waste of a job.  outer: the job inside which it
 * runs, or NULL.
 */
void wasters_add(struct wasters *w, const struct ledger_energy *e,
                 const struct job_entry *job, const struct job_entry *outer);

/* The i-th name with a sum of its own, then the shared sum; NULL: no more. */
const struct waster *wasters_at(const struct wasters *w, enum wasters_of of, size_t i);
const char *wasters_currency(const struct wasters *w); /* "": no price was known */

#endif
