#include "core/optimum/drift.h"

#include <math.h>

enum { NOW_WINDOWS = 16 }; /* in the moving averages */
/* A hold is steady if the log time of its last windows differs from the one measured
 * before the hold by at most STEADY plus DRIFT_SURE standard errors.
 */
#define STEADY 0.001

void drift_add(struct drift *d, double log_t, double log_e, double var_t)
{
    double part = 1.0 / ++d->n;

    if (d->n > NOW_WINDOWS)
        part = 1.0 / NOW_WINDOWS;
    d->log_t += part * (log_t - d->log_t);
    d->log_e += part * (log_e - d->log_e);
    d->var_t += part * (var_t - d->var_t);
}

bool drift_steady(const struct drift *d)
{
    if (d->n < DRIFT_LEAST)
        return false;
    double se = sqrt(d->from_var + d->var_t / (d->n < NOW_WINDOWS ? d->n : NOW_WINDOWS));
    return fabs(d->log_t - d->from_t) <= STEADY + DRIFT_SURE * se;
}
