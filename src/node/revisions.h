/* Which quarters of an hour that are booked have to be looked at, as the values of their
 * factors have changed since: the signals carbon, carbon.marginal and price.
 *
 * Owns: the values of each one's source, and which of them each quarter was revised by.
 * After a restart each quarter is looked at once.  Pure: time is an argument.
 * Explained in docs/design/ledger.md#revisions.
 */
#ifndef NODE_REVISIONS_H
#define NODE_REVISIONS_H

#include "base/auto.h"
#include "io/ledger.h"
#include "policy/signal-files.h"

enum {
    REVISIONS_BACK_S = 2 * 86400, /* how far back */
    REVISIONS_LAG_S = 900,        /* after its end a quarter has all of its rows */
};

struct revisions;

int revisions_new(struct revisions **ret); /* -ENOMEM */
void revisions_free(struct revisions *r);
DEFINE_AUTO(struct revisions *, revisions_free);

/* Replaces what a source said of its signal; other signals count for nothing. */
void revisions_values(struct revisions *r, const struct signal_values *v);
/* The ledger has lost so many rows since the start: once more of them, each quarter is
 * looked at again, as its revision may be one.  What is written already is not again.
 */
void revisions_lost(struct revisions *r, uint64_t rows);
/* The next quarter to be written; false: none.  Borrowed until the next call of either.
 */
bool revisions_next(struct revisions *r, int64_t utc_ns, struct ledger_revision *ret);

#endif
