/* The variogram (structure function) of a job's cost per step at a constant cap: the mean
 * squared difference of two windows by the time between them, less the variances that
 * the windows state.  It is the additional variance when a window stands for another
 * time.  Pure.
 */
#ifndef CORE_OPTIMUM_WANDER_H
#define CORE_OPTIMUM_WANDER_H

#include <stdbool.h>

/* A window: logarithms of time and energy per unit of work, and their variances. */
struct pair_window {
    bool known;
    double at_s; /* time of its end */
    double log_t, log_e;
    double var_t, var_e;
};

enum { WANDER_LAGS = 8 }; /* bins from 20 s, 40 s, …, 2560 s up to twice that */

/* Pairs of windows one lag apart: sums of squared differences and of stated variances. */
struct wander_lag {
    unsigned n;
    double t, e, claimed_t, claimed_e;
};

struct wander {
    struct wander_lag lag[WANDER_LAGS];
    struct pair_window from[WANDER_LAGS]; /* first window of the next pair */
};

void wander_on_window(struct wander *w, const struct pair_window *window);
/* The cap has changed: earlier windows are not compared with later ones. */
void wander_break(struct wander *w);

struct wander_vars {
    double t, e;
    unsigned n; /* pairs that the estimate is from */
};
/* Variance of the difference of two windows lag_s apart, beyond their stated variances.
 * Lags longer than any seen are extrapolated as a random walk (variance ~ time).  All 0
 * without data.
 */
struct wander_vars wander_over(const struct wander *w, double lag_s);

#endif
