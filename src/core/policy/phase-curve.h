/* Caps of phases against one static cap of the same time, out of what a job measured:
 * power and time of each of its phases under the caps that were in force.  Pure.
 * Explained in docs/policies.md.
 */
#ifndef CORE_POLICY_PHASE_CURVE_H
#define CORE_POLICY_PHASE_CURVE_H

#include <stdbool.h>
#include <stddef.h>

enum { CURVE_POINTS = 16 };

/* One phase: power of the job and time of a unit of work, by cap. */
struct phase_curve {
    struct curve_point {
        double cap_w, power_w, unit_s;
        double seen_s;     /* so long; at most a minute counts */
    } point[CURVE_POINTS]; /* by cap */
    size_t n;
    bool by_steps;  /* a unit is a step; else the whole phase, each time that it comes */
    double units;   /* done so far */
    double ruled_w; /* the cap of rules; 0: none caps this phase */
    double free_w;  /* the cap last in force without one; 0: never */
};

/* A stretch of the phase under one cap. */
struct phase_stretch {
    double cap_w, power_w, time_s, units;
    bool ruled;  /* the cap was a rule's */
    bool barred; /* no rule of phases may act, as it would not pay */
    bool by_steps;
    bool whole; /* false: counts as work done, and is no point of the curve */
};
void phase_curve_add(struct phase_curve *c, const struct phase_stretch *s);

/* The same work under caps of phases, and under one cap in the same time. */
struct phase_compared {
    bool known;      /* else the points do not reach: the other fields are 0 */
    double saved;    /* by caps of phases, as a part of the static cap's energy */
    double static_w; /* that cap */
    double slower;   /* the time of both, over that without caps of phases, less 1 */
};
/* curve: of each phase.  lost_s: of the job's time, by returns so far. */
void phase_compare(const struct phase_curve *curve, size_t n, double lost_s,
                   struct phase_compared *ret);

/* Whether caps of phases do not pay: not once three comparisons in a row found that they
 * save nothing, and again once three found more than 0.5 %.  Call it each time that a
 * capped phase has ended; what is unknown changes nothing.
 */
struct phase_gain {
    bool none;
    unsigned contrary; /* comparisons in a row that say otherwise */
};
void phase_gain_step(struct phase_gain *g, const struct phase_compared *c);

#endif
