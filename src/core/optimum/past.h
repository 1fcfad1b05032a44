/* What was measured in a job's regimes of before, so that one that comes back (an input
 * that is slow at times, an evaluation that lasts) is known and searched no second time.
 * Pure.
 */
#ifndef CORE_OPTIMUM_PAST_H
#define CORE_OPTIMUM_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/propose.h"

enum { PAST_MOST = 4 };

struct past_regime {
    struct level levels[LEVELS_MAX]; /* none stale */
    size_t n, reference;
    double peak_w;
    uint32_t best_mw;
    double best_log_t, best_log_e, best_var;
};

struct past {
    struct past_regime regime[PAST_MOST]; /* the newest first */
    size_t n;
};

/* The regime that is over; of too many the oldest goes. */
void past_keep(struct past *p, const struct past_regime *regime);
struct model;
/* The regime in which a unit of work would take this time and energy (logarithms, of one
 * GPU, with their variances) at this cap, as far as its levels tell; of two the one that
 * fits better.  It is taken out.  False: none.  room: for the work.
 */
bool past_take(struct past *p, const struct prior *prior, const struct level *now,
               struct model *room, struct past_regime *ret);

#endif
