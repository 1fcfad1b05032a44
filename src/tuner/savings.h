/* Time and energy of a job's training steps: stretches of whole steps without a pause,
 * booked by what the tuner was doing, and the saving against the reference.  Pure.
 */
#ifndef TUNER_SAVINGS_H
#define TUNER_SAVINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/optimum/counterfactual.h"
#include "core/progress/steps.h"

enum stretch_kind {
    STRETCH_REFERENCE,       /* measuring the original cap */
    STRETCH_SEARCH,          /* ramping to and measuring other caps */
    STRETCH_HOLD,            /* at the cap that was chosen or requested */
    STRETCH_REFERENCE_CHECK, /* at the reference cap again, during a hold */
    STRETCH_SEARCH_AGAIN,    /* searching after a hold, and ramping back to it */
    /* Ramping to the same cap again, which a stop, a pause or a wait had ended. */
    STRETCH_BACK,
    STRETCH_RULED, /* while a rule of the policy was below the cap: not compared */
    STRETCH_KINDS,
};

/* The stretch under way. */
struct stretch {
    bool open;
    enum stretch_kind kind;
    struct step_mark from, to;
};

/* A finished stretch, whose energy can be queried. */
struct stretch_done {
    enum stretch_kind kind;
    uint64_t begin_ns, end_ns;
    double steps;
};

enum { STRETCH_MOST_S = 20 };

/* Call after each read of the steps.  True: a stretch has ended, see *ret. */
bool stretch_feed(struct stretch *s, const struct steps *steps, struct stretch_done *ret);
/* Sets the kind of the following steps.  True: a stretch has ended, see *ret. */
bool stretch_turn(struct stretch *s, enum stretch_kind kind, struct stretch_done *ret);
/* Ends the stretch under way at its last step.  True: see *ret. */
bool stretch_end(struct stretch *s, struct stretch_done *ret);

struct savings_sum {
    double steps, time_s, energy_j, half2_j2; /* half2_j2: sum of squared half widths */
};

/* Mean cost of a step at one cap over several windows.  The weights, 1 / variance, are
 * those of the times and of the energies: each has its own error.
 */
struct savings_mean {
    unsigned windows;
    double sum_wt, sum_t, sum_t2; /* weights, weighted times of a step, their squares */
    double sum_we, sum_e, sum_e2; /* the same of the energies */
};
/* rse: relative standard errors of the window; at least 0.1 % is assumed. */
void savings_mean_add(struct savings_mean *m, double time_s, double energy_j,
                      double time_rse, double energy_rse);
double savings_mean_time(const struct savings_mean *m);
double savings_mean_energy(const struct savings_mean *m);
/* Relative standard errors: the larger of the windows' own errors and their scatter. */
double savings_mean_time_rse(const struct savings_mean *m);
double savings_mean_energy_rse(const struct savings_mean *m);

/* Past holds, and the cost that their steps would have had at the reference cap. */
struct savings_past {
    struct savings_sum sum;
    double mean_steps; /* part of steps to be compared with the mean of the reference
                        * windows; not included in would_* */
    double would_s, would_j, would_half2_s2, would_half2_j2;
};

/* Sums over regimes. */
struct savings_totals {
    unsigned regimes, compared, held; /* all; with a reference; with a held cap as well */
    unsigned pairs;
    double booked_s; /* time of all steps, compared or not */
    double search_s, search_steps, visits_s, back_s;
    double cost_j, cost_s, visits_cost_j; /* of regimes with a held cap */
    struct savings_past past;             /* all compared steps */
};

/* One regime of the job.  sum[STRETCH_HOLD], hold and pairs belong to the cap held now.
 */
struct savings {
    struct savings_sum sum[STRETCH_KINDS];
    struct savings_mean reference, hold;
    struct counterfactual pairs;
    unsigned past_pairs;
    struct savings_past past;
    struct savings_totals older; /* older regimes that were merged into this one */
};
/* Another cap is held from now on: moves the hold to past. */
void savings_hold_anew(struct savings *a);
/* The reference changes: keeps the comparison of the holds so far. */
void savings_reference_anew(struct savings *a);
/* The reference no longer holds: no hold of this regime can be compared. */
void savings_reference_lost(struct savings *a);
/* Merges the first of n (at least two) regimes into the second and moves all down by one.
 * The total saving stays the same; the comparison of the first regime is final.
 */
void savings_merge(struct savings *a, size_t n);
/* Total time of the training steps booked in n regimes, including older ones. */
double savings_time_s(const struct savings *a, size_t n);

struct savings_saved {
    bool known;            /* a reference was measured, and a cap held */
    double steps;          /* training steps compared */
    double energy_j;       /* saved against the same steps at the original cap */
    double half_j;         /* half width of energy_j, 95 % */
    double fraction, half; /* of the energy at the original cap */
    double slowdown;       /* ratio of the time to that at the original cap */
    double slowdown_half;
    double
        held_slowdown; /* the same of the cap held last, once it is in force; 0: none */
    bool cost_known;   /* a cap was held */
    double search_s;   /* time spent searching, including the reference */
    double search_steps;
    double cost_j, cost_s; /* against holding the final cap from the first step */
    unsigned pairs;        /* reference windows that holds were compared with */
    double visits_s;       /* time of the reference checks */
    double visits_cost_j;  /* energy they cost, against holding */
    double back_s;         /* time of STRETCH_BACK */
};
/* Sums up n regimes.  Steps of a hold are compared with the reference windows next to it
 * (counterfactual.h), steps on the way back and of STRETCH_SEARCH_AGAIN with the result
 * for the holds, steps before a hold with the mean of the reference windows.  Errors in
 * common are added linearly.  The saving is unknown for a job that ended before the first
 * window of a hold, as the variation of its cost is unknown.
 */
void savings_saved(const struct savings *a, size_t n, struct savings_saved *ret);

/* Time of the steps of regimes with a reference, and what they would have taken at the
 * original cap; steps that were made there are compared with themselves.
 */
struct savings_whole {
    double time_s, would_s, half_s; /* half_s: half width of would_s, 95 % */
};
struct savings_whole savings_whole(const struct savings *a, size_t n);

#endif
