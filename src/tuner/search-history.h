/* What a search measured, as the ledger keeps it for the next run of the same job
 * (docs/same-job.md).
 */
#ifndef TUNER_SEARCH_HISTORY_H
#define TUNER_SEARCH_HISTORY_H

#include <stdbool.h>

#include "io/ledger.h"
#include "tuner/tuner.h"

/* The name of these boards (bits), one for all of them, and their number; NULL: they
 * differ, or have none.
 */
const char *search_history_model(struct boards *set, uint64_t boards, unsigned *ret_n);
/* What was kept, for a new search. */
void search_history_earlier(const struct ledger_search *s, struct tuner_earlier *ret);
/* Fills in what a search has measured; false: that is not worth keeping, as it is too
 * little, or less than old (NULL: there is none).
 */
bool search_history_measured(const struct tuner_report *r,
                             const struct ledger_search *old, struct ledger_search *ret);

#endif
