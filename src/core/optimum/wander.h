/* How far a job's cost of a step wanders by itself: the mean square by which windows at
 * one cap differ, by the time between them (a structure function, or variogram), less
 * what the windows themselves claim to err.  What one window says of another time is
 * wrong by that much more than it claims.  Pure.
 */
#ifndef CORE_OPTIMUM_WANDER_H
#define CORE_OPTIMUM_WANDER_H

#include <stdbool.h>

/* A window: logarithms of time and energy a unit of work, and their variances. */
struct pair_window {
    bool known;
    double at_s; /* when it ended */
    double log_t, log_e;
    double var_t, var_e;
};

enum { WANDER_LAGS = 8 }; /* 20 s, 40 s … 2560 s, up to twice as long each */

/* Windows one lag apart: sums of their squared differences, and of what they claim. */
struct wander_lag {
    unsigned n;
    double t, e, claimed_t, claimed_e;
};

struct wander {
    struct wander_lag lag[WANDER_LAGS];
    struct pair_window from[WANDER_LAGS]; /* the next difference begins here */
};

void wander_on_window(struct wander *w, const struct pair_window *window);
/* Another cap: windows of before are not compared with later ones. */
void wander_break(struct wander *w);

struct wander_vars {
    double t, e;
    unsigned n; /* differences that this is known by */
};
/* Variance of the difference of two windows so far apart that they do not claim.  Where
 * so long a time was never seen it is taken to grow with the time, as a random walk does;
 * 0 where nothing was.
 */
struct wander_vars wander_over(const struct wander *w, double lag_s);

#endif
