/* Windows of a job whose progress is inferred: when the analyses of progress-period.h (or
 * launch-rate.h) suffice to close a window, and the stretches of steps that result.
 * Pure.
 */
#ifndef TUNER_PERIOD_WINDOW_H
#define TUNER_PERIOD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "tuner/progress-period.h"
#include "tuner/regimes.h"

struct period_window {
    uint64_t since_ns;  /* begin of listening at this cap */
    double candidate_s; /* a period that was found once; 0: none */
    double period_s;    /* the last certain period */
    uint32_t at_mw;     /* cap in force for period_s */
    uint64_t booked_ns; /* stretches are booked up to here; 0: none */
    unsigned missed;    /* successive windows without a period */
};

/* Whether the last analysis found the same period. */
bool period_window_agrees(struct period_window *p, const struct progress_period_heard *h);

/* The possible range of the period at mw: near the last period at this cap, else between
 * the periods at the next higher and next lower measured caps.  False: no bounds known.
 */
bool period_window_bounds(const struct period_window *p, const struct regimes *measured,
                          uint32_t mw, double *ret_least_s, double *ret_most_s);

enum period_window_verdict {
    PERIOD_WINDOW_GOES_ON = 0,
    PERIOD_WINDOW_ENOUGH,
    PERIOD_WINDOW_MISSED, /* no period was found in time */
};
/* Evaluates an analysis; usable: its period may be the job's. */
enum period_window_verdict period_window_judge(const struct period_window *p,
                                               const struct progress_period_heard *h,
                                               bool usable, double window_s);
/* Closes the window at mw.  Stores two stretches of steps: before the window, and the
 * window itself; end_ns 0: empty.
 */
void period_window_close(struct period_window *p, const struct progress_period_heard *h,
                         uint32_t mw, struct stretch_done ret[2]);

#endif
