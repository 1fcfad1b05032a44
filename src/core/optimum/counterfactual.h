/* The energy and time of a job at the reference cap, measured instead of modelled:
 * windows at the reference cap, from the job's start and from checks during a hold, are
 * compared with the adjacent windows of the hold, so that slow drift cancels out.  The
 * variation of the job's cost between two windows is estimated from the hold (wander.h).
 * Pure.
 */
#ifndef CORE_OPTIMUM_COUNTERFACTUAL_H
#define CORE_OPTIMUM_COUNTERFACTUAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/wander.h"

/* Sums over pairs; the value of a pair is log(reference / hold). */
struct pair_sums {
    double w, wd, wdd; /* weights 1 / variance; weighted sums of value and value^2 */
    double wh;         /* weighted sum of the hold's logarithm */
};

/* A reference before the hold and the hold's first windows.  Unlike a pair, the two are
 * not adjacent, and the hold's windows lie on one side only.
 */
struct pair_link {
    struct pair_window reference, hold; /* means */
    unsigned windows;                   /* in hold */
};

enum { LATE_WINDOWS = 3 };

struct counterfactual {
    unsigned pairs; /* checks with windows of the hold on both sides */
    struct pair_sums t, e;
    double lag_s; /* sum over pairs: time from the reference to its neighbours */
    struct pair_link link;
    unsigned holds;        /* windows of the hold */
    double hold_t, hold_e; /* sums of their logarithms */
    struct wander wander;
    struct pair_window late[LATE_WINDOWS]; /* newest first; not in wander yet, as they
                                              may show a change of the job */
    struct pair_window recent;             /* moving average of the hold's windows */
    struct pair_window before;             /* the hold's last window */
    struct pair_window reference;          /* no window of the hold has followed it yet */
};

/* Time and energy per unit of work; windows not finite and positive are ignored.  rse:
 * relative standard errors, at least 0.1 % is assumed.
 */
struct pair_seen {
    double at_s; /* end of the window, on any clock */
    double time_s, energy_j, time_rse, energy_rse;
};

/* Adds a window of the hold, or of the reference (consecutive ones are averaged).  True:
 * it completes a pair.
 */
bool counterfactual_on_hold(struct counterfactual *c, const struct pair_seen *seen);
void counterfactual_on_reference(struct counterfactual *c, const struct pair_seen *seen);
/* Another cap is held from now on.  The reference as estimated at the end of this hold
 * becomes the reference of the next hold's link.
 */
void counterfactual_hold_anew(struct counterfactual *c);
/* Another reference or regime: discards an incomplete pair, and the last windows, which
 * show the change, from the variation of the job.
 */
void counterfactual_break(struct counterfactual *c);

struct counterfactual_said {
    bool known;                    /* false: all ratios are 0 */
    unsigned pairs;                /* checks; 0: only the link is used */
    double time, energy;           /* ratios reference / hold */
    double time_half, energy_half; /* their 95 % half widths */
};
/* The mean of pairs and link, weighted by inverse variance: the stated variances plus the
 * job's variation between the windows, scaled up if the pairs scatter more.  The stated
 * variance has the weight of four pairs in that, so that two pairs that agree by chance
 * do not lower it; quantiles are Student's.  If the hold's mean cost differs from its
 * cost next to the reference windows, that difference is added as one standard error.
 */
struct counterfactual_said counterfactual_said(const struct counterfactual *c);

/* The relative standard error of a window's energy because the board was cooler before:
 * its leakage is lower until it has warmed up.  lower: the fraction by which its power
 * was lower before; since_s: from then to the middle of the window.
 */
double counterfactual_cool_rse(double lower, double since_s);

/* When the next check to the reference cap is due: checks take at most a fixed share of
 * the job's time.
 */
#define VISITS_SHARE 0.005

struct reference_checks {
    double share;   /* of the job's time; 0: no checks */
    double spent_s; /* in checks so far */
    double last_s;  /* duration of the last check; 0: none yet */
    unsigned n;
};

/* elapsed_s: since the job began to train; least_s: shortest duration of a check.  The
 * intervals vary, so that checks do not synchronise with periodic work of the job.
 */
bool reference_checks_due(const struct reference_checks *v, double elapsed_s,
                          double least_s);
void visits_made(struct reference_checks *v, double took_s);

#endif
