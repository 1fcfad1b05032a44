/* Progress of a job that launches without pauses: a fixed number of launches stands for a
 * step (core/progress/rate.h).  Results have the form of an analysis of the power's
 * period.
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

    bool on;                     /* steps are launches, not periods of power */
    bool in_regime;              /* likewise in the regime under way */
    struct rate_found regime_of; /* the launches of that regime */
    bool gone;                   /* the last analysis found other launches, or none */
    const char *word;            /* why the rate is unknown; NULL: none are counted */
    uint64_t from_ns;            /* earlier launches do not count */
    double unit;                 /* launches per step; 0: not chosen yet */
    struct rate_found first;     /* the rate from which unit was chosen */
};

/* The cap changes from from_mw to to_mw. */
void launch_rate_moved(struct launch_rate *l, uint32_t from_mw, uint32_t to_mw,
                       uint64_t now_ns);
/* Returns the power's period (h) or the launches' result (*own), whichever counts.
 * inferred: the choice has been made.  *ret_other: the unit of a step has changed since
 * the last analysis.
 */
const struct progress_period_heard *launch_rate_hear(
    struct launch_rate *l, bool inferred, const struct progress_period_heard *h,
    struct progress_period_heard *own, bool *ret_other);
/* A search begins with the last result.  Returns whether its steps have the same unit as
 * those of the regime under way.  inferred: the regime's steps were inferred, too.
 * *ret_changed: the job launches other kernels.
 */
bool launch_rate_begin(struct launch_rate *l, bool inferred, bool *ret_changed);
/* Time after a cap came into force until launches follow the boards' pace. */
double launch_rate_settle_s(const struct launch_rate *l);

#endif
