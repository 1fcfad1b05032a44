/* A recorded trace put through the period estimator as a daemon would: fed sample by
 * sample, asked again and again, and one answer for the whole.
 */
#ifndef BENCH_FOLLOW_H
#define BENCH_FOLLOW_H

#include <stddef.h>

#include "core/progress/period.h"
#include "underwatt/error.h"

struct follow {
    enum period_why why;
    double period_s; /* 0 unknown */
    double rse, confidence;
    double
        periods_needed; /* cycles seen when it was first right and stayed so; 0 unknown */
    unsigned asked;
    double cpu_s; /* of the questions */
};

/* Below this confidence it is unknown, as the tuner has it (node/pulse.h). */
#define FOLLOW_SURE 0.7

/* n > 0 samples of one board; sensor: NULL, not known. */
int follow(const struct activity *a, size_t n, const struct period_sensor *sensor,
           struct follow *ret, uw_error *err);

const char *why_word(enum period_why why);

#endif
