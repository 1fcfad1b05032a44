/* Converts the measurements of a search to and from the ledger, for the next run of the
 * same job (docs/design/same-job.md).
 */
#ifndef TUNER_SEARCH_HISTORY_H
#define TUNER_SEARCH_HISTORY_H

#include <stdbool.h>

#include "io/ledger.h"
#include "tuner/tuner.h"

/* The common model name of the boards in the mask, and their number; NULL: the names
 * differ or are unknown.
 */
const char *search_history_model(struct boards *set, uint64_t boards, unsigned *ret_n);
/* Converts a ledger entry for a new search. */
void search_history_earlier(const struct ledger_search *s, struct tuner_earlier *ret);
/* Stores the measurements of a search.  False: too few, or fewer than in old (NULL: no
 * older entry).
 */
bool search_history_measured(const struct tuner_report *r,
                             const struct ledger_search *old, struct ledger_search *ret);

#endif
