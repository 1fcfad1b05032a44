/* The mean, the extremes and percentiles of a signal's history or forecast.  Pure. */
#ifndef CORE_POLICY_SERIES_H
#define CORE_POLICY_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/policy/signal.h"

/* A value that holds from this time until the next point. */
struct policy_point {
    int64_t utc_s;
    double v;
};
struct policy_points {
    const struct policy_point *point; /* in the order of time */
    size_t n;
    int64_t end_utc_s; /* the last value is known until then */
};

struct policy_folded {
    bool known; /* at least half of the window is known */
    double v;
    int64_t
        next_utc_s; /* time of the next computation: a hundredth of the window later */
};

/* The value of a read of a series at utc_s: over the window before that time, of a
 * forecast over the window after it.  Values are weighted by their time in the window. A
 * percentile is the lowest value that is not exceeded in that share of the time.
 */
void policy_series_fold(const struct policy_points *points, enum policy_series series,
                        const struct policy_read *read, int64_t utc_s,
                        struct policy_folded *ret);

#endif
