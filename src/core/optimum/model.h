/* The posterior of the Gaussian process of prior.h given the measured levels: expected
 * time and energy at any cap, and their covariances.  Pure.
 *
 * Times and energies are logarithms relative to those measured at the reference.  Stale
 * levels (of an earlier regime or run) determine only the shape of the curve: they share
 * an offset of their own with a wide prior, and have an additional variance, which is
 * larger the less the new levels agree with them.
 */
#ifndef CORE_OPTIMUM_MODEL_H
#define CORE_OPTIMUM_MODEL_H

#include <stdbool.h>
#include <stddef.h>

#include "core/optimum/level.h"
#include "core/optimum/prior.h"

enum { MODEL_LEVELS = LEVELS_MAX, MODEL_ROWS = 2 * MODEL_LEVELS };

struct model {
    const struct prior *prior;
    const struct level *levels; /* of the scene: borrowed */
    size_t n;
    const struct noise *noise; /* as in struct scene */
    double demand_w; /* x = cap / demand_w; above the mean power if the job has pauses */
    double ref_t, ref_e;
    double stale_var;        /* additional variance of stale levels */
    double stale_by_demand;  /* scale of their x: 1 their own demand, 0 demand_w */
    double evidence;         /* log evidence of the least stale_var less the best other */
    bool verified;           /* enough new levels to judge the stale ones */
    bool agrees;             /* verified, and the new levels agree with the stale ones */
    double rough_t, rough_p; /* posterior means of the roughness (RMS) */
    struct prior_spot spot_t[MODEL_LEVELS], spot_p[MODEL_LEVELS];
    double chol[MODEL_ROWS * MODEL_ROWS]; /* Cholesky factor; rows t0, e0, t1, e1, … */
    double alpha[MODEL_ROWS];             /* inverse covariance x residuals */
};

/* The posterior at one cap: means, and the whitened covariances with the levels. */
struct model_spot {
    struct prior_spot t, p;
    double mean_t, mean_e;
    double row_t[MODEL_ROWS], row_e[MODEL_ROWS];
};

/* Fits the levels of the scene, at most MODEL_LEVELS; they must outlive *m. */
void model_fit(struct model *m, const struct prior *prior, const struct scene *scene);
void model_at(const struct model *m, double cap_w, struct model_spot *ret);
/* The posterior covariance of wa.t x time + wa.e x energy at one cap with wb.t x time +
 * wb.e x energy at another, all logarithms.
 */
struct model_mix {
    double t, e;
};
double model_cov(const struct model *m, const struct model_spot *a, struct model_mix wa,
                 const struct model_spot *b, struct model_mix wb);

#endif
