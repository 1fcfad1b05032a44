#include "core/slack/waits.h"

#include <math.h>

#define LEAST_BUSY 0.02
#define UTIL_SLEEPS 0.97 /* below it the board sleeps while waiting */
#define WAITS_MOST 0.85  /* of the mean power */

double waits_power(const struct slack_seen *seen, double reference_w)
{
    double w = seen->low_w > 0 ? seen->low_w : WAITS_POWER * reference_w;

    return fmin(w, WAITS_MOST * seen->power_w);
}

double waits_busy(const struct slack_seen *seen, double waiting_w)
{
    double room = seen->cap_w - waiting_w;
    double busy = room > 0 ? (seen->power_w - waiting_w) / room : 1;

    if (seen->util > 0 && seen->util < UTIL_SLEEPS)
        busy = fmin(busy, seen->util);
    return fmin(1, fmax(LEAST_BUSY, busy));
}
