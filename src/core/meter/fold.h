/* Energy and its uncertainty from readings of a sensor that samples part of the time.
 *
 * The board's power is modelled as a random function: a mean, a part that repeats with
 * the load's period (a periodic Brownian bridge, the second-order model of square waves),
 * a wandering part, and noise.  The most likely period and variances are fitted to the
 * readings; the energy of a window is then the best linear estimate, with its variance
 * (Rasmussen and Williams 2006, ch. 2, 5; Wahba 1990 for the kernel).  The variance so
 * grows where no reading was taken: between samples if there is no period, and in phases
 * that were never sampled.
 */
#ifndef CORE_METER_FOLD_H
#define CORE_METER_FOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"

enum { FOLD_MAX = 320 }; /* readings at most */

/* One reading: mean power over the n boxes [t0 + i step, t1 + i step]. */
struct fold_obs {
    double t0, t1, step; /* s */
    unsigned n;          /* 1: one box */
    double mean_w;
};

struct fold_fit {
    double period_s; /* 0: none */
    double noise;    /* variances as shares of the varying part's */
    double wander;   /* 1 where there is no period */
    double wander_s; /* its correlation time */
    double jitter;   /* of each period's length, relative */
    double loglik;
    double scale; /* variance of the varying part, W^2 */
    double weight;
};

enum { FOLD_FITS = 4 };
struct fold_set {
    struct fold_fit fits[FOLD_FITS];
    size_t n;
};

struct fold; /* readings, covariance, and its factor */

/* tick_s: the readings lie on a grid of this period (0: no grid), so that frequencies
 * above half its rate look like lower ones.  0, -EINVAL (n is 0 or above FOLD_MAX) or
 * -ENOMEM.  obs are copied.
 */
int fold_new(const struct fold_obs *obs, size_t n, double tick_s, struct fold **ret);
void fold_free(struct fold *f); /* NULL is fine */
DEFINE_AUTO(struct fold *, fold_free);

/* Finds the most likely fits and their weights. hint_s: a period to try first; 0: none.
 * 0 or -ENOMEM.
 */
int fold_find(struct fold *f, double hint_s, struct fold_set *ret);

/* Energy of [a, b] and the standard deviation of its error under the fit, J. */
int fold_energy(struct fold *f, const struct fold_fit *fit, double a, double b,
                double *ret_j, double *ret_sd);

int fold_mixed(struct fold *f, const struct fold_set *set, double a, double b,
               double *ret_j, double *ret_sd);

#endif
