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

/* n > 0 samples of one board. */
int follow(const struct activity *a, size_t n, struct follow *ret, uw_error *err);

const char *why_word(enum period_why why);

#endif
