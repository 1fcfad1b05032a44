/* Determines which booked quarters of an hour must be checked again because the values of
 * their factors have changed since: the signals carbon, carbon.marginal and price.
 *
 * Owns: the values of each signal's source, and by which of them each quarter was
 * revised. After a restart each quarter is checked once.  Pure: time is an argument.
 * Explained in docs/design/ledger.md#revisions.
 */
#ifndef NODE_REVISIONS_H
#define NODE_REVISIONS_H

#include "base/auto.h"
#include "io/ledger.h"
#include "policy/signal-files.h"

enum {
    REVISIONS_BACK_S = 2 * 86400, /* how far back */
    REVISIONS_LAG_S = 900, /* time after its end at which a quarter has all of its rows */
};

struct revisions;

int revisions_new(struct revisions **ret); /* -ENOMEM */
void revisions_free(struct revisions *r);
DEFINE_AUTO(struct revisions *, revisions_free);

/* Replaces the values of a source; other signals are ignored. */
void revisions_values(struct revisions *r, const struct signal_values *v);
/* Sets how many rows the ledger has lost since the start: when the number grows, each
 * quarter is checked again, as its revision may be lost.  Existing revisions are not
 * repeated.
 */
void revisions_lost(struct revisions *r, uint64_t rows);
/* The next quarter to write; false: none.  Borrowed until the next call of either
 * function.
 */
bool revisions_next(struct revisions *r, int64_t utc_ns, struct ledger_revision *ret);

#endif
