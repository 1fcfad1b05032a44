/* Progress of a job whose launches never rest: a fixed number of them stands for a step
 * (core/progress/rate.h).  It is told in the words of a period, look by look.
 */
#ifndef TUNER_LAUNCH_RATE_H
#define TUNER_LAUNCH_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/progress/rate.h"
#include "tuner/progress-period.h"

struct launch_rate {
    struct rate *(*rate)(void *rate_of); /* may be NULL, and may return NULL */
    void *rate_of;

    bool on;                     /* launches count, not a period */
    bool in_regime;              /* … in the regime under way, … */
    struct rate_found regime_of; /* … and these are the regime's */
    bool gone;                   /* at the last look: other launches, or none */
    const char *word;            /* why they tell nothing; NULL: none are counted */
    uint64_t from_ns;            /* what was launched before does not count */
    double unit;                 /* launches a step; 0: not chosen yet … */
    struct rate_found first;     /* … when these were seen */
};

/* A cap goes from here to there. */
void launch_rate_moved(struct launch_rate *l, uint32_t from_mw, uint32_t to_mw,
                       uint64_t now_ns);
/* What the period of power showed (h), or what the launches tell (in *own).  inferred:
 * progress is measured by one of the two by now.  *ret_other: steps are of another kind
 * than at the last look.
 */
const struct progress_period_heard *launch_rate_hear(
    struct launch_rate *l, bool inferred, const struct progress_period_heard *h,
    struct progress_period_heard *own, bool *ret_other);
/* A search begins by what was heard: are its steps those of the regime under way?
 * inferred: those were inferred, too.  *ret_changed: the job launches other things.
 */
bool launch_rate_begin(struct launch_rate *l, bool inferred, bool *ret_changed);
/* After a cap came into force, until launches come at the boards' pace. */
double launch_rate_settle_s(const struct launch_rate *l);

#endif
