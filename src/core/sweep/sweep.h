/* Sweeps: from runs of one job at several power caps to its curve of power, energy and
 * time: points, optima, Pareto front, drift.  Pure: no clock, file or environment.
 *
 *     sweep_grid(), sweep_plan()   the caps and their order
 *     sweep_fold()                 points from runs, with the optima of five goals
 *     sweep_drift()                drift, from the repeated reference runs
 *
 * Energy is the sum over all boards of the job; the cap applies to each board.
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
    SWEEP_RUNS_MAX = 1000, /* per cap */
    SWEEP_METRICS = 4,     /* energy, edp, eds:2, eds:1.5 */
    SWEEP_OPTIMA,          /* these, and the chosen goal */
    SWEEP_BUYS = 4,        /* 1, 2, 5 and 10 % of time */
};

/* ---- caps and their order ---- */

struct sweep_range {
    uint32_t min_mw, max_mw, default_mw; /* the boards' common limits */
    uint32_t from_mw, to_mw;             /* 0: min_mw, max_mw */
    uint32_t step_mw;
    const char *from_typed, *to_typed,
        *step_typed; /* for messages; NULL: they were not */
};

/* The caps from, from + step, … up to `to`, and the default limit, ascending, without
 * duplicates.  -ERANGE (a value outside its range, or more than SWEEP_CAPS_MAX caps): the
 * text names value and range.  -ENOMEM.  The caller free()s *ret.
 */
int sweep_grid(const struct sweep_range *range, uint32_t **ret, size_t *ret_n,
               uw_error *err);

/* The order of runs: rounds of all caps, each in a random order; the reference at the
 * start of every round, after at most SWEEP_REF_EVERY other runs, and at the end.  So
 * slow drift (heat, clocks, other load) affects all caps equally, and the reference runs
 * show it.  The same seed gives the same order.
 */
enum { SWEEP_REF_EVERY = 8 };
struct sweep_order {
    uint32_t reference_mw;
    unsigned runs; /* per cap: 1 to SWEEP_RUNS_MAX */
    uint64_t seed;
};
/* caps: ascending, including the reference.  -ERANGE: runs.  -ENOMEM.  The caller free()s
 * *ret.
 */
int sweep_plan(const uint32_t *caps, size_t n, const struct sweep_order *order,
               uint32_t **ret, size_t *ret_n, uw_error *err);

/* ---- points ---- */

struct sweep_run {
    uint32_t cap_mw;
    double time_s, energy_j; /* of the whole run */
    double at_s;             /* its start, relative to the first run's start */
};

struct sweep_point {
    uint32_t cap_mw;
    unsigned runs;
    double time_s, energy_j, power_w; /* means of the runs; power: energy / time */
    double time_sd_s, energy_sd_j, power_sd_w; /* of one run; 0 if runs == 1 */
    double time_se_s, energy_se_j;             /* of the mean; 0 if runs == 1 */
    bool pareto; /* on the Pareto front of time and energy */
};

struct sweep_optimum {
    struct goal goal;
    size_t point;
    double value;         /* sweep_value() of the point */
    double energy_change; /* relative to the reference, as a fraction */
    double time_change;
};

/* The least energy for at most so much more time. */
struct sweep_buy {
    double time; /* a fraction: 0.01 */
    size_t point;
};

struct sweep {
    size_t n;
    struct sweep_point *point; /* ascending caps */
    size_t ref;                /* index of the reference in point */
    struct sweep_optimum optimum[SWEEP_OPTIMA];
    struct sweep_buy buy[SWEEP_BUYS];
    double pmax_w; /* of the choice */
};

/* What is marked beside the four metrics. */
struct sweep_choice {
    struct goal goal;
    double pmax_w; /* highest caps of all boards together, for the goal cost */
};

/* Runs in any order; choice: NULL, or one of the metrics, is
 * slowdown:1.05.  -EINVAL: no run at the reference, or
 * a time or energy that is not finite and positive.  -E2BIG: too many runs.  -ENOMEM.
 */
int sweep_fold(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
               const struct sweep_choice *choice, struct sweep **ret, uw_error *err);
void sweep_free(struct sweep *sweep);
DEFINE_AUTO(struct sweep *, sweep_free);

/* The goal's value at a point, relative to the reference. */
double sweep_value(const struct sweep *sweep, const struct goal *goal, size_t point);
/* The goal over energy and time relative to the reference. */
struct goal_shape sweep_shape(const struct sweep *sweep, const struct goal *goal);
/* The point with the least value; of equal ones that with the highest cap. */
size_t sweep_best(const struct sweep *sweep, const struct goal *goal);
/* The standard error of sweep_value() from the scatter of the runs, including those of
 * the reference (assumes independent errors of time and energy); 0 without repetitions.
 */
double sweep_value_se(const struct sweep *sweep, const struct goal *goal, size_t point);
/* Half of the 95 % interval (Student's t) of a mean of `runs` runs with the standard
 * error se; 0 for one run.
 */
double sweep_half(double se, unsigned runs);

/* ---- drift ---- */

struct sweep_drift {
    unsigned refs; /* reference runs */
    double span_s; /* from the first to the last of them */
    /* Change of time and energy over the span, as fractions: a linear regression of
     * their logarithms.  known: at least two reference runs.
     */
    bool known;
    double time_change, energy_change;
    double time_half, energy_half; /* half width of the 95 % interval; INFINITY with 2 */
    bool drifts; /* one change is above 1 % and 1.5 times its half width (false alarms:
                    about one in 200 sweeps); with 2 reference runs: above 3 % */
};
void sweep_drift(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
                 struct sweep_drift *ret);
/* Removes the drift from all runs: corrects them to the mean start of the reference runs.
 * No-op if the drift is not known.
 */
void sweep_correct(struct sweep_run *runs, size_t n, uint32_t reference_mw,
                   const struct sweep_drift *drift);

#endif
