/* The prior of a job's curves when only the reference is measured: a Gaussian process
 * each for log time and log mean power over x = cap / demand.  bench/learn-prior learns
 * its parameters from recorded sweeps (prior.c names the data).  Pure.
 *
 * Covariance of one side at x, x', with u = log x and s(x) the amplitude:
 *     s(x) s(x') [g((u-u')/long) + share^2 g((u-u')/mid)] + rough^2 g((u-u')/short)
 * where g is the Matern 5/2 correlation and rough one of three values for each curve:
 * most recorded curves are smooth, a few are not.  model.c weighs the three by the
 * levels.
 */
#ifndef CORE_OPTIMUM_PRIOR_H
#define CORE_OPTIMUM_PRIOR_H

enum { PRIOR_MEANS = 12, PRIOR_AMPS = 5, PRIOR_ROUGHS = 3 };
#define PRIOR_MEAN_AT 0.3 /* x of the first knot of the mean */
#define PRIOR_MEAN_BY 0.1 /* spacing of its knots */
#define PRIOR_AMP_AT 0.4
#define PRIOR_AMP_BY 0.25

struct prior_side {
    double mean[PRIOR_MEANS];   /* at equidistant knots in x; cubic interpolation */
    double log_amp[PRIOR_AMPS]; /* log s at equidistant knots; linear interpolation */
    double len_long, len_mid, len_short, share;
    double rough[PRIOR_ROUGHS], weight[PRIOR_ROUGHS];
};

struct prior {
    struct prior_side t, p; /* log time, log power */
};

extern const struct prior prior_recorded;

double prior_mean(const struct prior_side *s, double x);
/* The weights of the knots at x: prior_mean() is the sum of weight x knot. */
void prior_mean_weights(double x, double ret[PRIOR_MEANS]);
/* Precomputed exponentials of one point, so that prior_cov() needs none:
 * exp(-|u - u'| / len) = exp(-max / len) x exp(min / len).
 */
enum { PRIOR_SCALES = 3 };
struct prior_spot {
    double u, amp;
    double up[PRIOR_SCALES], down[PRIOR_SCALES]; /* exp(+-sqrt(5) u / len) */
};
struct prior_spot prior_spot(const struct prior_side *s, double x);
double prior_cov(const struct prior_side *s, double rough, const struct prior_spot *a,
                 const struct prior_spot *b);

#endif
