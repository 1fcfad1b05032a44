/* The bound of slowdown:F over the whole job.  What is left of it at time t:
 *
 *     B = F W - t
 *
 * t: time of the training steps so far; W: the time that the same steps would have taken
 * at the original cap, by the lower limit (97.5 %) of what is known.  Steps at the
 * original cap earn F - 1 a second.  Whatever leaves a cap within the bound has its price
 * in B and is not begun where that is more than the part WHOLE_JOB_SPEND of B.  Pure.
 */
#ifndef TUNER_WHOLE_JOB_H
#define TUNER_WHOLE_JOB_H

#include <stddef.h>

#include "tuner/savings.h"

#define WHOLE_JOB_SPEND 0.7

/* Training steps that are not in the savings yet. */
struct whole_job_more {
    double own_s;         /* time of those at the original cap */
    double time_s, steps; /* of the others */
};

/* B, in seconds, of n regimes.  Steps of a regime without a reference do not count. */
double whole_job_left_s(const struct savings *a, size_t n,
                        const struct whole_job_more *more, double bound);
/* The highest ratio of the time of a step to that at the original cap at which `takes_s`
 * seconds cost no more than may be spent of left_s; at least the bound.
 */
double whole_job_most(double bound, double left_s, double takes_s);

#endif
