/* What stands for a step of a job: steps that the job reports, a number of its launches,
 * a period of its boards' power, or nothing yet.
 */
#ifndef TUNER_PROGRESS_SOURCE_H
#define TUNER_PROGRESS_SOURCE_H

#include <stdbool.h>

#include "base/names.h"

/* The unit of a job's progress. */
enum tuner_by { PROGRESS_UNITS(NAME_ENUM) };

/* Whether launches or a period stand for steps. */
static inline bool is_inferred(enum tuner_by by)
{
    return by == TUNER_BY_LAUNCHES || by == TUNER_BY_PERIOD;
}

#endif
