/* The Gaussian process of prior.h given measured levels: what time and energy at
 * any cap are expected to be, and how surely.  Pure.
 *
 * Times and energies are logarithms relative to the reference's measured ones.
 * Levels from before a change of the job, or from an earlier run, tell the shape
 * alone: they have a free height of their own and a looser fit, the looser the less
 * this run's levels agree with them.
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
    const struct level *levels[MODEL_LEVELS]; /* borrowed */
    size_t n;
    double demand_w; /* x = cap / this: the demand, more where a job has pauses */
    double ref_t, ref_e;
    double stale_var;        /* how far old levels' shape is off, squared … */
    double stale_by_demand;  /* 1: their x is cap over their own demand, 0: over this */
    double evidence;         /* … for the least of these, over any other */
    bool verified;           /* enough levels of now to tell … */
    bool agrees;             /* … and they fit the old ones */
    double rough_t, rough_p; /* as far as the levels tell */
    struct prior_spot spot_t[MODEL_LEVELS], spot_p[MODEL_LEVELS];
    double chol[MODEL_ROWS * MODEL_ROWS]; /* of the rows t0, e0, t1, e1, … */
    double alpha[MODEL_ROWS];             /* solves them */
};

/* What is known at one cap: means, and the row that covariances are made of. */
struct model_spot {
    struct prior_spot t, p;
    double mean_t, mean_e;
    double row_t[MODEL_ROWS], row_e[MODEL_ROWS];
};

/* The levels of the scene, at most MODEL_LEVELS, under a prior. */
void model_fit(struct model *m, const struct prior *prior, const struct scene *scene);
void model_at(const struct model *m, double cap_w, struct model_spot *ret);
/* Covariance of at x time + ae x energy at one cap and bt x time + be x energy at
 * another, all logarithms, given the levels.
 */
struct model_mix {
    double t, e;
};
double model_cov(const struct model *m, const struct model_spot *a, struct model_mix wa,
                 const struct model_spot *b, struct model_mix wb);

#endif
