/* What a signal was: a step function of time, bounded in memory.
 *
 * The last hour is kept as it was; where there is no more room, what is older becomes
 * means over five minutes, and what is older than 14 days is forgotten.  Pure.
 */
#ifndef POLICY_SIGNAL_HISTORY_H
#define POLICY_SIGNAL_HISTORY_H

#include "core/policy/series.h"

/* One a second in the last hour and 14 days by five minutes are 3600 + 4032. */
enum { SIGNAL_HISTORY_MAX = 10240 };

struct signal_history {
    struct policy_point *point; /* NULL before the first */
    size_t n, cap;
};

void signal_history_fini(struct signal_history *h); /* also of {0} */
/* The value from utc_s on; NaN: unknown from then on.  What is there of utc_s and later
 * (a clock was set back) goes.  Without memory for it the history begins anew.
 */
void signal_history_add(struct signal_history *h, int64_t utc_s, double v);

#endif
