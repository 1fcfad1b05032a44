/* The goal's value at every cap considered, as the model expects it, and what
 * another window at one of them would be worth: the knowledge gradient (Frazier,
 * Powell and Dayanik 2009), for slowdown:F with the bound's certainty counted in.
 * Pure; large (about 200 kB), so it lives in the search's own memory.
 */
#ifndef CORE_OPTIMUM_OUTLOOK_H
#define CORE_OPTIMUM_OUTLOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "core/optimum/model.h"

enum {
    OUTLOOK_STEPS = 56,
    OUTLOOK_FINE = 8,
    OUTLOOK_CAPS = OUTLOOK_STEPS + OUTLOOK_FINE + MODEL_LEVELS
};

struct outlook {
    struct model model;
    struct goal_shape shape;
    double log_bound, slack;
    double sure; /* standard errors by which a bound must be kept */
    struct level ref_level;
    size_t best; /* outlook_best() */
    double lo_w, hi_w, grain_w;
    double var_t, var_e; /* of one more window */
    size_t n;
    double cap_w[OUTLOOK_CAPS]; /* ascending; every measured cap is among them */
    bool measured[OUTLOOK_CAPS];
    struct model_spot spot[OUTLOOK_CAPS], ref;
    double value[OUTLOOK_CAPS];         /* of the goal, 1 at the reference */
    double seen_excess[OUTLOOK_CAPS];   /* log time over the reference's, at least */
    double excess[OUTLOOK_CAPS];        /* bound: log time over the reference's, … */
    double var[OUTLOOK_CAPS];           /* … and its variance */
    struct model_mix mix[OUTLOOK_CAPS]; /* how value depends on log time, energy */
    /* Covariance of what a window at [row] shows with the value at [column], and,
     * under a bound, with the excess at [column].  Shown: the value; under a bound
     * the log time.
     */
    double cov[OUTLOOK_CAPS][OUTLOOK_CAPS];
    double cov_excess[OUTLOOK_CAPS][OUTLOOK_CAPS];
    double shown[OUTLOOK_CAPS]; /* variance of what is shown, without noise */
};

void outlook_make(struct outlook *o, const struct scene *scene);
/* The cap to keep as things stand: the least value that the bound surely allows
 * (the highest cap where none is).
 */
size_t outlook_best(const struct outlook *o);
/* The cap considered that is nearest to this one. */
size_t outlook_nearest(const struct outlook *o, double cap_w);
/* Whether the bound surely allows cap i; always where there is none. */
bool outlook_allows(const struct outlook *o, size_t i);
/* The same of the measured caps alone. */
size_t outlook_best_measured(const struct outlook *o);
/* The least value where the bound is expected to be kept, however surely. */
size_t outlook_expected(const struct outlook *o);
/* By how much `windows` windows at cap c are expected to lower what is kept.  measured:
 * under a bound, where only what was measured by then may be kept.
 */
double outlook_gain(const struct outlook *o, size_t c, unsigned windows, bool measured);
/* outlook_best() to the grain, with the expected logarithms (of the window). */
double outlook_refined(const struct outlook *o, size_t best, double *ret_log_t,
                       double *ret_log_e);

#endif
