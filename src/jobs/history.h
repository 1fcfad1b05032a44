/* Results of earlier jobs' searches, keyed by user, job key, board model and number of
 * boards.  At most LEDGER_SEARCHES, and LEDGER_USER_SEARCHES of one user, as in the
 * ledger.  Pure.
 */
#ifndef JOBS_HISTORY_H
#define JOBS_HISTORY_H

#include "base/auto.h"
#include "io/ledger.h"

struct history;

struct history *history_new(void); /* NULL: out of memory */
void history_free(struct history *h);
DEFINE_AUTO(struct history *, history_free);

/* Replaces the entry with the same key.  Otherwise adds one, in place of the oldest of
 * this user or of all if the limit is reached.  -ENOMEM: nothing has changed.
 */
int history_put(struct history *h, const struct ledger_search *s);
/* NULL: no entry, or older than since_utc_ns.  Borrowed until the next history_put(). */
const struct ledger_search *history_find(const struct history *h, uid_t uid,
                                         const char *same, const char *model,
                                         unsigned boards, int64_t since_utc_ns);
size_t history_count(const struct history *h);
const struct ledger_search *history_at(const struct history *h, size_t i);

#endif
