/* The expected value of the goal on a grid of caps, and the expected gain of another
 * window at each of them: the knowledge gradient (Frazier, Powell and Dayanik 2009), for
 * slowdown:F with the confidence of the bound included.  Pure.  Large (about 200 kB):
 * allocate it with the search.
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
    bool again;  /* as in struct scene */
    double sure; /* standard errors within which the bound must hold */
    struct level ref_level;
    size_t best; /* of all caps: to be held now */
    double lo_w, hi_w, grain_w;
    /* Of one further window: of time where it is 1, 2 and 4 times as long as an ordinary
     * one, of energy of ordinary length.
     */
    double var_t[COMPARE_LENGTHS], var_e;
    bool quiet; /* the slack is larger than what the noise adds to measured caps */
    size_t n;
    double cap_w[OUTLOOK_CAPS]; /* ascending, includes the measured caps */
    bool measured[OUTLOOK_CAPS];
    struct model_spot spot[OUTLOOK_CAPS], ref;
    double value[OUTLOOK_CAPS];         /* of the goal, 1 at the reference */
    double seen_excess[OUTLOOK_CAPS];   /* lower limit of excess from its own windows */
    double excess[OUTLOOK_CAPS];        /* log of time / the reference's time */
    double var[OUTLOOK_CAPS];           /* of excess; 0 without a bound */
    struct model_mix mix[OUTLOOK_CAPS]; /* derivatives of value by log time, log energy */
    /* Covariance of what a window at [row] shows (log time under a bound, else the value)
     * with the value at [column], and under a bound with the excess at [column].
     */
    double cov[OUTLOOK_CAPS][OUTLOOK_CAPS];
    double cov_excess[OUTLOOK_CAPS][OUTLOOK_CAPS];
    double shown[OUTLOOK_CAPS]; /* variance of what a window shows, without noise */
};

void outlook_make(struct outlook *o, const struct scene *scene);
/* The least value among the caps (measured: only those) from lo_w on that
 * outlook_allows() and outlook_takes_at_most(), or the highest cap if there is none.
 */
size_t outlook_best(const struct outlook *o, bool measured, double lo_w, double most);
/* The cap of the grid nearest to cap_w. */
size_t outlook_nearest(const struct outlook *o, double cap_w);
/* Whether cap i is within the bound at the confidence required; true without a bound. */
bool outlook_allows(const struct outlook *o, size_t i);
/* Whether cap i takes at most `most` x the reference's time (upper limit, 97.5 %). */
bool outlook_takes_at_most(const struct outlook *o, size_t i, double most);
/* The lowest cap above cap_w that does.  0: none, or it was measured or is the highest or
 * one grain below it.
 */
double outlook_new_above(const struct outlook *o, double cap_w, double most);
/* The best of all measured caps. */
size_t outlook_best_measured(const struct outlook *o);
/* The least value among the caps whose expected time is within the bound. */
size_t outlook_expected(const struct outlook *o);
/* The expected decrease of the held cap's value after `windows` windows at cap c.
 * measured (under a bound): only measured caps, c included, may be held then.
 */
double outlook_gain(const struct outlook *o, size_t c, unsigned windows, bool measured);
/* Refines cap `best` of the grid to one grain.  *ret_log_t, *ret_log_e: the expected
 * logarithms of time and energy there.
 */
double outlook_refined(const struct outlook *o, size_t best, double *ret_log_t,
                       double *ret_log_e);

#endif
