/* The history of a signal: a step function of time, bounded in memory.
 *
 * The last hour is kept unchanged; if there is no more room, older values become means
 * over five minutes, and values older than 14 days are dropped.  Pure.
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
/* Sets the value from utc_s on; NaN: unknown from then on.  Values at utc_s and later (a
 * clock was set back) are dropped.  Without memory the history restarts.
 */
void signal_history_add(struct signal_history *h, int64_t utc_s, double v);

#endif
