/* Windows of a job whose progress is inferred: what the looks of progress-period.h (or of
 * launch-rate.h) must show until a window is closed, and which stretches of steps that
 * makes.  Pure.
 */
#ifndef TUNER_PERIOD_WINDOW_H
#define TUNER_PERIOD_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "tuner/progress-period.h"
#include "tuner/regimes.h"

struct period_window {
    uint64_t since_ns;  /* it is listened for since, at this cap */
    double candidate_s; /* a period seen once, to be seen again; 0: none */
    double period_s;    /* the last that was sure … */
    uint32_t at_mw;     /* … at this cap */
    uint64_t booked_ns; /* until then stretches are booked; 0: none is */
    unsigned missed;    /* windows in a row without a period */
};

/* Has the look before shown the same period? */
bool period_window_agrees(struct period_window *p, const struct progress_period_heard *h);

/* Where the period can be at mw: near what it was there, else between what it was at the
 * next higher and the next lower cap that were measured.  False: anywhere.
 */
bool period_window_bounds(const struct period_window *p, const struct regimes *measured,
                          uint32_t mw, double *ret_least_s, double *ret_most_s);

enum period_window_verdict {
    PERIOD_WINDOW_GOES_ON = 0,
    PERIOD_WINDOW_ENOUGH,
    PERIOD_WINDOW_MISSED, /* no period came up in it */
};
/* A look; usable: its period may be the job's. */
enum period_window_verdict period_window_judge(const struct period_window *p,
                                               const struct progress_period_heard *h,
                                               bool usable, double window_s);
/* The window is closed, at mw: two stretches of steps, the one before it and its own
 * (either may be empty: no steps).
 */
void period_window_close(struct period_window *p, const struct progress_period_heard *h,
                         uint32_t mw, struct stretch_done ret[2]);

#endif
