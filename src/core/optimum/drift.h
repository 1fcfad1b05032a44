/* Time and energy at the held cap now, against those measured there before the hold: a
 * job drifts while it is held.  Logarithms, per unit of work.  Pure.
 */
#ifndef CORE_OPTIMUM_DRIFT_H
#define CORE_OPTIMUM_DRIFT_H

#include <stdbool.h>

enum { DRIFT_LEAST = 8 }; /* windows of a hold before its drift is used */
#define DRIFT_SURE 2.33   /* standard errors */

struct drift {
    unsigned n;                /* windows of this hold */
    double log_t, log_e;       /* moving averages of the last ones, uncorrected */
    double var_t;              /* of one window */
    double from_t, from_var;   /* log time measured at its cap before the hold */
    double offset_t, offset_e; /* subtracted from the logarithms of each new window */
};

/* Adds a window of the hold. */
void drift_add(struct drift *d, double log_t, double log_e, double var_t);
/* Whether the hold's last windows agree with the time measured before the hold. */
bool drift_steady(const struct drift *d);

#endif
