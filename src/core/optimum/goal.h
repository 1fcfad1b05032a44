/* Goals: objective functions of the energy E and time T of one unit of work (a step,
 * a run), both of the whole job.  Pure.
 *
 *   energy      E
 *   edp         E x T
 *   eds:K       (K-1)/K x E/Eref + 1/K x T/Tref        (DEPO's, K = 2 by default there)
 *   cost:ETA    ETA x E + (1-ETA) x Pmax x T           (Zeus')
 *   slowdown:F  E where T <= F x Tref, else infinite
 *   time        T
 *
 * All but edp are linear: up to a factor, we x E/Eref + wt x T/Tref.  EDS(K) is cost with
 * ETA = (K-1)/K and Pmax = Pref.
 */
#ifndef CORE_OPTIMUM_GOAL_H
#define CORE_OPTIMUM_GOAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/names.h"
#include "underwatt/error.h"

enum goal_kind { GOALS(NAME_ENUM) };

struct goal {
    enum goal_kind kind;
    double param; /* K, ETA or F; 0 if the kind has none */
};

/* Energy and time per unit of work at the reference, and the sum of the maximum caps of
 * the job's GPUs (used only by cost).
 */
struct goal_ref {
    double energy_j, time_s, pmax_w;
};

#define GOAL_FORMS "energy, edp, eds:K, cost:ETA, slowdown:F, time"
enum { GOAL_TEXT_MAX = 32 };

/* Parses "edp", "eds:2", "cost:0.5", "slowdown:1.1" or "slowdown:10%", in any case.  K
 * in 1..1000, ETA in 0..1, F in 1..2.  -EINVAL (no such form), -ERANGE (parameter
 * outside its range); the text names the value and the range.
 */
int goal_parse(const char *text, struct goal *ret, uw_error *err);
/* The inverse of goal_parse(), with the shortest number that parses to the same value.
 * Returns buf.
 */
const char *goal_text(const struct goal *g, char buf[GOAL_TEXT_MAX]);

/* What the value of the objective is called, as in "lower EDP". */
const char *goal_noun(enum goal_kind kind);

/* The value of a step by which caps are judged: EDP in J s, EDS, cost in J; NAN where it
 * is the energy or the time itself.  rse: relative standard errors of energy and time.
 */
struct goal_step {
    double energy_j, time_s, energy_rse, time_rse;
};
struct goal_value {
    double v, rse;
};
struct goal_value goal_value_of(const struct goal *g, const struct goal_step *step,
                                const struct goal_ref *ref);

/* The objective as defined above, divided by its value at the reference.  Smaller is
 * better.
 */
double goal_relative(const struct goal *g, double energy_j, double time_s,
                     const struct goal_ref *ref);

/* goal_relative() as we x e + wt x t (e x t if product is set), with e = E/Eref,
 * t = T/Tref, and t <= bound (INFINITY: no bound).
 */
struct goal_shape {
    double we, wt;
    bool product;
    double bound;
};
struct goal_shape goal_shape_of(const struct goal *g, const struct goal_ref *ref);
double goal_shape_value(const struct goal_shape *s, double e, double t);

#endif
