/* Runs of one job at several power caps to the curve of power, energy and time:
 * points, optima, Pareto front, drift.  Pure: no clock, file or environment.
 *
 *     sweep_grid(), sweep_plan()   which caps, in which order
 *     sweep_fold()                 runs to points, with the optima of the four goals
 *     sweep_drift()                what the repeated reference runs say
 *
 * Energy is the sum over all boards of the job; the cap is each board's own.
 */
#ifndef CORE_SWEEP_SWEEP_H
#define CORE_SWEEP_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/optimum/goal.h"
#include "underwatt/error.h"

enum {
    SWEEP_CAPS_MAX = 2000,
    SWEEP_RUNS_MAX = 1000, /* a cap */
    SWEEP_OPTIMA = 4,      /* energy, edp, eds:2, eds:1.5 */
};

/* ---- which caps, in which order ---- */

struct sweep_range {
    uint32_t min_mw, max_mw, default_mw; /* the boards' common limits */
    uint32_t from_mw, to_mw;             /* 0: min_mw, max_mw */
    uint32_t step_mw;
};

/* from, from + step, … up to `to`, and the default limit, ascending, each once.
 * -ERANGE (a value outside its range, or more than SWEEP_CAPS_MAX caps): the text
 * names value and range.  *ret is free()d by the caller.
 */
int sweep_grid(const struct sweep_range *range, uint32_t **ret, size_t *ret_n,
               uw_error *err);

/* The order of runs: rounds of all caps, each shuffled anew; the reference at the
 * beginning of every round, again after at most SWEEP_REF_EVERY other runs, and at
 * the very end.  So a slow drift (heat, clocks, other load) falls on all caps alike,
 * and the reference runs show it.  The same seed gives the same order.
 */
enum { SWEEP_REF_EVERY = 8 };
struct sweep_order {
    uint32_t reference_mw;
    unsigned runs; /* a cap: 1 to SWEEP_RUNS_MAX */
    uint64_t seed;
};
/* caps: ascending, the reference among them.  -ERANGE: runs.  *ret is free()d by the
 * caller.
 */
int sweep_plan(const uint32_t *caps, size_t n, const struct sweep_order *order,
               uint32_t **ret, size_t *ret_n, uw_error *err);

/* ---- runs to points ---- */

struct sweep_run {
    uint32_t cap_mw;
    double time_s, energy_j; /* of the whole run */
    double at_s;             /* when it began, since the first run's begin */
};

struct sweep_point {
    uint32_t cap_mw;
    unsigned runs;
    double time_s, energy_j, power_w;          /* means of the runs */
    double time_sd_s, energy_sd_j, power_sd_w; /* of one run; 0 where runs == 1 */
    double time_se_s, energy_se_j, power_se_w; /* of the mean; 0 where runs == 1 */
    bool pareto; /* no other point has both less (or equal) time and energy */
};

struct sweep_optimum {
    struct goal goal;
    size_t point;
    double value;         /* the goal there, relative to the reference */
    double energy_change; /* against the reference, as fractions */
    double time_change;
};

struct sweep {
    size_t n;
    struct sweep_point *point; /* ascending caps */
    size_t ref;                /* the point of the reference */
    struct sweep_optimum optimum[SWEEP_OPTIMA];
};

/* Any order of runs.  -EINVAL: none of them at the reference, or a time or energy
 * that is not finite and positive; -E2BIG; -ENOMEM.
 */
int sweep_fold(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
               struct sweep **ret, uw_error *err);
void sweep_free(struct sweep *sweep);
DEFINE_AUTO(struct sweep *, sweep_free);

/* The goal at a point, relative to the reference (1 there). */
double sweep_value(const struct sweep *sweep, const struct goal *goal, size_t point);
/* Its best point, of equal ones that with the highest cap: the least intrusive. */
size_t sweep_best(const struct sweep *sweep, const struct goal *goal);
/* Standard error of sweep_value() from the scatter of the runs, reference included
 * (errors of time and energy taken as independent); 0 where nothing was repeated.
 */
double sweep_value_se(const struct sweep *sweep, const struct goal *goal, size_t point);

/* ---- drift ---- */

struct sweep_drift {
    unsigned refs; /* reference runs seen */
    double span_s; /* from the first to the last of them */
    /* Change of time and energy over that span, as fractions: slope of a straight
     * line through their logarithms.  known: at least two reference runs.
     */
    bool known;
    double time_change, energy_change;
    double time_half, energy_half; /* half width of the 95 % interval; INFINITY with 2 */
    bool drifts; /* one of them is over 1 % and larger than 1.5 times its half width
                    (chance alone does that once in some 200 sweeps); with 2 reference
                    runs: over 3 % */
};
void sweep_drift(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
                 struct sweep_drift *ret);
/* Take that line out of all runs: they become what they would have been in the
 * middle of the span.  No-op where it is not known.
 */
void sweep_correct(struct sweep_run *runs, size_t n, uint32_t reference_mw,
                   const struct sweep_drift *drift);

#endif
