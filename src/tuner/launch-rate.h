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
#include "tuner/progress-source.h"

struct launch_rate {
    struct rate *(*rate)(void *rate_of); /* may be NULL, and may return NULL */
    void *rate_of;

    enum tuner_by likely;        /* LAUNCHES or PERIOD: the more certain one of late */
    struct rate_found regime_of; /* the launches of the regime under way */
    const char *word;            /* why the rate is unknown; NULL: none are counted */
    uint64_t from_ns;            /* earlier launches do not count */
    double unit;                 /* launches per step; 0: not chosen yet */
    struct rate_found first;     /* the rate from which unit was chosen */
};

/* The cap changes from from_mw to to_mw. */
void launch_rate_moved(struct launch_rate *l, uint32_t from_mw, uint32_t to_mw,
                       uint64_t now_ns);
enum launch_rate_news {
    LAUNCH_RATE_SAME = 0,
    LAUNCH_RATE_OTHER_UNIT, /* the unit of a step has changed since the last analysis */
    LAUNCH_RATE_GONE,       /* other launches than those that stand for a step, or none */
};
/* Returns the power's period (h) or the launches' result (*own), whichever counts.
 * source: what counts as a step; NOTHING: not chosen yet.
 */
const struct progress_period_heard *launch_rate_hear(
    struct launch_rate *l, enum tuner_by source, const struct progress_period_heard *h,
    struct progress_period_heard *own, enum launch_rate_news *ret);
/* A search begins with the last result, of unit l->likely.  Returns whether its steps
 * have the same unit as those of the regime under way (unit).  *ret_changed: the job
 * launches other kernels.
 */
bool launch_rate_begin(struct launch_rate *l, enum tuner_by unit, bool *ret_changed);
/* Time after a cap came into force until launches, which stand for steps, follow the
 * boards' pace.
 */
double launch_rate_settle_s(const struct launch_rate *l);

#endif
