/* Compares caps of phases with one static cap that takes the same time, from the power
 * and time that a job's phases showed under the caps in force.  Pure.  Explained in
 * docs/policies.md.
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
        double seen_s;     /* measured time; at most a minute counts */
    } point[CURVE_POINTS]; /* by cap */
    size_t n;
    bool by_steps;  /* a unit is a step; else one occurrence of the phase */
    double units;   /* done so far */
    double ruled_w; /* the cap that rules set; 0: this phase is not capped */
    double free_w;  /* the last cap in force without a rule; 0: never */
};

/* A stretch of the phase under one cap. */
struct phase_stretch {
    double cap_w, power_w, time_s, units;
    bool ruled;  /* the cap was a rule's */
    bool barred; /* phase rules must not act, as they would not pay */
    bool by_steps;
    bool whole; /* false: counts as work, but adds no point to the curve */
};
void phase_curve_add(struct phase_curve *c, const struct phase_stretch *s);

/* The same work under caps of phases, and under one cap in the same time. */
struct phase_compared {
    bool known;   /* false: too few points, and the other fields are 0 */
    double saved; /* saving of the phase caps, as a fraction of the static cap's energy */
    double static_w; /* that cap */
    double slower;   /* extra time of both, relative to the time without phase caps */
};
/* curve: one per phase.  lost_s: job time lost to raises so far. */
void phase_compare(const struct phase_curve *curve, size_t n, double lost_s,
                   struct phase_compared *ret);

/* Decides whether phase caps do not pay: they do not once three comparisons in a row have
 * found no saving, and pay again once three have found more than 0.5 %.  Call it at the
 * end of each capped phase; an unknown comparison changes nothing.
 */
struct phase_gain {
    bool none;
    unsigned contrary; /* consecutive comparisons that contradict the present decision */
};
void phase_gain_step(struct phase_gain *g, const struct phase_compared *c);

#endif
