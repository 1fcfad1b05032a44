/* What searches of earlier jobs measured, by whose job it was, what was run and on what:
 * LEDGER_SEARCHES at the most, LEDGER_USER_SEARCHES of a user; the ledger keeps the same.
 * Pure.
 */
#ifndef JOBS_HISTORY_H
#define JOBS_HISTORY_H

#include "base/auto.h"
#include "io/ledger.h"

struct history;

struct history *history_new(void); /* NULL: out of memory */
void history_free(struct history *h);
DEFINE_AUTO(struct history *, history_free);

/* In place of the same job's; the oldest of a user with too many, or of all, makes room.
 * -ENOMEM: nothing has changed.
 */
int history_put(struct history *h, const struct ledger_search *s);
/* No older than since_utc_ns; NULL: none.  Borrowed until the next history_put(). */
const struct ledger_search *history_find(const struct history *h, uid_t uid,
                                         const char *same, const char *model,
                                         unsigned boards, int64_t since_utc_ns);
size_t history_count(const struct history *h);
const struct ledger_search *history_at(const struct history *h, size_t i);

#endif
