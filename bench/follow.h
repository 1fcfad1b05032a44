/* A recorded trace put through the period estimator as a daemon would: fed sample by
 * sample, asked again and again, and one answer for the whole.
 */
#ifndef BENCH_FOLLOW_H
#define BENCH_FOLLOW_H

#include <stddef.h>

#include "core/progress/period.h"
#include "underwatt/error.h"

struct job_phase {
    enum period_why why;
    double period_s; /* 0 unknown */
    double rse, confidence;
    double
        periods_needed; /* cycles seen when it was first right and stayed so; 0 unknown */
    unsigned asked;
    double cpu_s; /* of the questions */
};

/* Below this confidence it is unknown, as the tuner has it (tuner/progress-period.h). */
#define FOLLOW_SURE 0.7

/* What was read of a board; n > 0. */
struct heard {
    const struct activity *items;
    size_t n;
};
/* sensor: of each board; NULL, not known. */
int follow(const struct heard *board, unsigned boards, const struct period_sensor *sensor,
           struct job_phase *ret, uw_error *err);

const char *why_word(enum period_why why);

#endif
