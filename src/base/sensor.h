/* How the power readings and the energy counter of a board are made.  The backend fills
 * it in (gpu/gpu.h), the meter uses it (core/meter/meter.h).
 */
#ifndef BASE_SENSOR_H
#define BASE_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* One power reading.  All 0: the board has no such reading. */
struct sensor {
    double update_s;   /* time between new values (T) */
    double window_s;   /* length of time averaged (W) */
    double lag_s;      /* from the end of that time to the publication */
    double response_s; /* time constant of an exponential response; then window_s = 0 */
};

struct sensor_model {
    struct sensor power;     /* the plain reading */
    struct sensor instant;   /* instant field, if separate */
    struct sensor average;   /* averaged field, if separate */
    double counter_update_s; /* 0: no counter */
    double counter_lag_s;    /* delay of power in the counter */
    double counter_unit_j;   /* joules per count */
    uint64_t counter_wrap;   /* counts at which it restarts from 0; 0: 2^64 */
    bool counter_true; /* known to integrate true power; else the meter verifies it */
};

#endif
