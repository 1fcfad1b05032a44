/* The windows of a search in the order of time, bounded, and the noise of step time and
 * power that compare.h estimates from them.  Pure.
 */
#ifndef CORE_OPTIMUM_WINDOW_LOG_H
#define CORE_OPTIMUM_WINDOW_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/compare.h"
#include "core/optimum/level.h"

struct log_window {
    uint32_t cap_mw;
    double log_p, power_rse; /* mean power of one GPU */
    struct compare_window t; /* time per unit of work; its side is set later */
};

struct window_log {
    struct log_window w[COMPARE_WINDOWS];
    size_t n;
    double most_rse; /* of time; 0: windows are exact */
    bool untimed;    /* some windows are not in it */
};

/* When full, two neighbours at one cap become one. */
void window_log_add(struct window_log *l, const struct log_window *w);
/* Whether the windows show the noise. */
bool window_log_tells(const struct window_log *l);
/* Estimates the levels that are not stale from all windows; those of a cap without a
 * level of its own are the reference's.  The covariances are those of struct level's
 * side.
 */
void window_log_levels(const struct window_log *l, struct level *levels, size_t n,
                       size_t reference, struct noise *ret);

#endif
