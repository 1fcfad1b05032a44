/* What a job would have used and how long it would have taken at the reference cap,
 * measured and not modelled: now and then in a hold a window at the reference cap,
 * compared with the hold's windows right before and after it, so that what drifts slowly
 * falls out of the comparison.  Pure.
 */
#ifndef CORE_OPTIMUM_COUNTERFACTUAL_H
#define CORE_OPTIMUM_COUNTERFACTUAL_H

#include <stdbool.h>
#include <stdint.h>

/* Pairs of windows so far, as logarithms of reference / hold. */
struct pair_sums {
    double w, wd, wdd; /* weights 1 / variance; weighted sums of value and square */
};

struct pair_window {
    bool known;
    double log_t, log_e;
    double var_t, var_e;
};

struct counterfactual {
    unsigned pairs;
    struct pair_sums t, e;
    struct pair_window before;    /* the hold's last window */
    struct pair_window reference; /* measured, and no window of the hold after it yet */
};

/* A window of a hold; of the reference (several in a row count as their mean).  Time and
 * energy a unit of work, finite and positive (ignored else); rse: relative standard
 * errors, those under 0.1 % count as that.  True: a pair is complete.
 */
bool counterfactual_on_hold(struct counterfactual *c, double time_s, double energy_j,
                            double time_rse, double energy_rse);
void counterfactual_on_reference(struct counterfactual *c, double time_s, double energy_j,
                                 double time_rse, double energy_rse);
/* Another cap, another regime: what is half done is not compared. */
void counterfactual_break(struct counterfactual *c);

struct counterfactual_said {
    unsigned pairs;                /* 0: nothing is known, all else 0 */
    double time, energy;           /* ratios reference / hold … */
    double time_half, energy_half; /* … and their 95 % half widths */
};
/* Pairs by inverse variance.  Their variance is what the windows claim or, where larger,
 * what the pairs show: the claim counts as four pairs, so that two pairs that agree by
 * chance promise nothing; quantiles are Student's.
 */
struct counterfactual_said counterfactual_said(const struct counterfactual *c);

/* When the next visit to the reference cap is due, so that visits take no more than a
 * share of the job's time.
 */
#define VISITS_SHARE 0.005

struct visits {
    double share;   /* of the job's time; 0: none */
    double spent_s; /* at the reference cap so far */
    double last_s;  /* the last one's; 0: none yet */
    unsigned n;
};

/* elapsed_s: of the job since it began to train; least_s: what a visit takes at the
 * least.  Dates are uneven, so that visits do not fall into step with what a job does
 * from time to time.
 */
bool visits_due(const struct visits *v, double elapsed_s, double least_s);
void visits_made(struct visits *v, double took_s);

#endif
