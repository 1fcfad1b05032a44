/* What a job's training steps cost: stretches of whole steps without a pause, each
 * booked under what the tuner was doing, and what was saved against the reference.
 * Pure.
 */
#ifndef TUNER_SAVINGS_H
#define TUNER_SAVINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/counterfactual.h"
#include "core/progress/steps.h"

enum stretch_kind {
    STRETCH_REFERENCE,       /* at the original cap, to know it */
    STRETCH_SEARCH,          /* on the way and while measuring other caps */
    STRETCH_HOLD,            /* at the cap chosen or asked for */
    STRETCH_REFERENCE_CHECK, /* at the reference cap once more, out of a hold */
    STRETCH_SEARCH_AGAIN,    /* searching out of a hold, and on the way back to it */
    STRETCH_KINDS,
};

/* The stretch under way. */
struct stretch {
    bool open;
    enum stretch_kind kind;
    struct step_mark from, to;
};

/* A stretch that is over; its energy is asked from the meter. */
struct stretch_done {
    enum stretch_kind kind;
    uint64_t begin_ns, end_ns;
    double steps;
};

enum { STRETCH_MOST_S = 20 };

/* The steps as they are now.  True when a stretch is over: *ret says which. */
bool stretch_feed(struct stretch *s, const struct steps *steps, struct stretch_done *ret);
/* From now on steps are of this kind.  True when that ends a stretch. */
bool stretch_turn(struct stretch *s, enum stretch_kind kind, struct stretch_done *ret);

struct savings_sum {
    double steps, time_s, energy_j, half2_j2; /* half2: squared half widths added */
};

/* A step at one cap, as the mean of several windows (weights: 1 / variance). */
struct savings_mean {
    unsigned windows;
    double sum_w, sum_wt, sum_we; /* weights, weighted time and energy of a step */
    double sum_wt2, sum_we2;
};
/* rse: relative standard errors of the window; those under 0.1 % count as that. */
void savings_mean_add(struct savings_mean *m, double time_s, double energy_j,
                      double time_rse, double energy_rse);
double savings_mean_time(const struct savings_mean *m);
double savings_mean_energy(const struct savings_mean *m);
/* Relative standard errors: the larger of what the windows claim and how they scatter. */
double savings_mean_time_rse(const struct savings_mean *m);
double savings_mean_energy_rse(const struct savings_mean *m);

/* Holds that are over, with what their steps would have taken at the reference cap. */
struct savings_past {
    double steps, time_s, energy_j, half2_j2;
    double mean_steps; /* of these: compared with the mean of the reference windows; not
                          in … */
    double would_s, would_j, would_half2_s2, would_half2_j2;
};

/* What regimes add up to. */
struct savings_totals {
    unsigned regimes, compared,
        held; /* in so many a reference was measured, a cap held */
    unsigned pairs;
    double booked_s; /* of all steps, compared or not */
    double search_s, search_steps, visits_s;
    double cost_j, cost_s, visits_cost_j; /* where a cap was held */
    struct savings_past past;             /* all steps that are compared */
};

/* One regime of the job: until it changes for good.  sum[STRETCH_HOLD], hold and pairs
 * belong to the cap that is held now.
 */
struct savings {
    struct savings_sum sum[STRETCH_KINDS];
    struct savings_mean reference, hold;
    struct counterfactual pairs;
    unsigned past_pairs;
    struct savings_past past;
    struct savings_totals older; /* regimes of before that were merged into this */
};
/* Another cap is held from now on. */
void savings_hold_anew(struct savings *a);
/* The reference will be another one: holds so far stay as they were compared. */
void savings_reference_anew(struct savings *a);
/* Of n regimes, two at the least, the first goes into the second, and all move down by
 * one.  The first is over: it stays as it is compared now.  What is saved over all of
 * them stays as it was.
 */
void savings_merge(struct savings *a, size_t n);
/* Seconds of training steps that are booked, older regimes' with them. */
double savings_time_s(const struct savings *a);

struct savings_saved {
    bool known;            /* a reference was measured, and a cap held */
    double steps;          /* training steps compared */
    double energy_j;       /* saved against the same steps at the original cap … */
    double half_j;         /* … 95 % */
    double fraction, half; /* of the energy at the original cap */
    double slowdown;       /* time over the time at the original cap */
    double slowdown_half;
    bool cost_known; /* a cap was held */
    double search_s; /* time spent searching, reference included */
    double search_steps;
    double cost_j, cost_s; /* against holding the final cap from the first step */
    unsigned pairs;       /* windows at the reference cap that holds were compared with */
    double visits_s;      /* time at that cap, out of holds … */
    double visits_cost_j; /* … and what that cost */
};
/* Over n regimes.  Steps of a hold are compared with the reference windows next to it
 * (counterfactual.h), those out of it with what that says of a step of the holds, those
 * before it with the mean of the windows at the start.  What they err in common is added
 * up, not its squares.  A job that ended before a window of a hold was over says nothing:
 * how its cost wanders is not known.
 */
void savings_saved(const struct savings *a, size_t n, struct savings_saved *ret);

#endif
