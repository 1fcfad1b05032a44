/* What a job would have used and how long it would have taken at the reference cap,
 * measured and not modelled: windows at the reference cap, those at the job's start and,
 * now and then in a hold, further ones, compared with the hold's windows next to them, so
 * that what drifts slowly falls out of the comparison.  How far the job's cost wanders
 * between two windows, the hold's own windows tell (wander.h).  Pure.
 */
#ifndef CORE_OPTIMUM_COUNTERFACTUAL_H
#define CORE_OPTIMUM_COUNTERFACTUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/wander.h"

/* Pairs of windows so far, as logarithms of reference / hold. */
struct pair_sums {
    double w, wd, wdd; /* weights 1 / variance; weighted sums of value and square … */
    double wh;         /* … and of the hold's logarithm */
};

/* A reference from before the hold, and the hold's first windows: further apart than a
 * pair, and on one side alone.
 */
struct pair_link {
    struct pair_window reference, hold; /* means */
    unsigned windows;                   /* of the hold */
};

enum { LATE_WINDOWS = 3 };

struct counterfactual {
    unsigned pairs; /* visits: the hold's windows lie on both sides */
    struct pair_sums t, e;
    double lag_s; /* sum over pairs: from the reference to the windows next to it */
    struct pair_link link;
    unsigned holds; /* windows of the hold, and sums of their logarithms */
    double hold_t, hold_e;
    struct wander wander;
    struct pair_window late[LATE_WINDOWS]; /* the newest, the last one first: not in it
                                              yet, as they may be a change of the job */
    struct pair_window recent;             /* mean of the hold's last windows */
    struct pair_window before;             /* the hold's last window */
    struct pair_window reference; /* measured, and no window of the hold after it yet */
};

/* Time and energy a unit of work, finite and positive (ignored else); rse: relative
 * standard errors, those under 0.1 % count as that.
 */
struct pair_seen {
    double at_s; /* when the window ended, on any clock */
    double time_s, energy_j, time_rse, energy_rse;
};

/* A window of a hold; of the reference (several in a row count as their mean).  True: a
 * pair is complete.
 */
bool counterfactual_on_hold(struct counterfactual *c, const struct pair_seen *seen);
void counterfactual_on_reference(struct counterfactual *c, const struct pair_seen *seen);
/* Another cap is held from now on.  What is known of the reference by the last window of
 * this one is the link of the next.
 */
void counterfactual_hold_anew(struct counterfactual *c);
/* Another reference, another regime: what is half done is not compared.  The last windows
 * showed the change, and are no part of what the job wanders by itself.
 */
void counterfactual_break(struct counterfactual *c);

struct counterfactual_said {
    bool known;                    /* false: all else 0 */
    unsigned pairs;                /* visits; 0: it rests on the start's windows */
    double time, energy;           /* ratios reference / hold … */
    double time_half, energy_half; /* … and their 95 % half widths */
};
/* Pairs and link by inverse variance.  Their variance is what the windows claim and what
 * the job wanders between them or, where larger, what they show: the claim counts as four
 * pairs, so that two that agree by chance promise nothing; quantiles are Student's.  What
 * the hold's cost was next to them stands for the hold on the whole: where that is
 * another, the ratio may be, too, by as much (one standard error).
 */
struct counterfactual_said counterfactual_said(const struct counterfactual *c);

/* What a board that was cooler lets a window's energy err (a relative standard error): it
 * leaks less until it is as warm as it would have been.  lower: the part of its power by
 * which it drew less before; since_s: from then to the window's middle.
 */
double counterfactual_cool_rse(double lower, double since_s);

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
