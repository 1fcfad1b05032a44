/* The earlier regimes of a job with their levels, so that a regime that returns (slow
 * input, a long evaluation) is recognised and not searched again.  Pure.
 */
#ifndef CORE_OPTIMUM_PAST_H
#define CORE_OPTIMUM_PAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/propose.h"

enum { PAST_MOST = 4 }; /* [changes, edp: lost] */

/* A cap, what is expected there, and the variance of log time / the reference's. */
struct choice {
    uint32_t mw;
    double log_t, log_e, var;
};

struct past_regime {
    struct level levels[LEVELS_MAX]; /* none stale */
    size_t n, reference;
    double peak_w;
    uint32_t reference_mw, unbound_mw;
    struct choice best;
};

struct past {
    struct past_regime regime[PAST_MOST]; /* newest first */
    size_t n;
};

/* Adds a regime; drops the oldest of more than PAST_MOST. */
void past_keep(struct past *p, const struct past_regime *regime);
struct model;
/* Removes and returns the regime whose levels best predict the time and energy of `now`
 * at its cap.  False: none fits.  scratch: working memory.
 */
bool past_take(struct past *p, const struct prior *prior, const struct level *now,
               struct model *scratch, struct past_regime *ret);

#endif
