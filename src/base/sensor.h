/* How the power readings and the energy counter of a board come about.  Its backend fills
 * this in (gpu/gpu.h), the meter computes with it (core/meter/meter.h).
 */
#ifndef BASE_SENSOR_H
#define BASE_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

/* One power reading.  All 0: the board has no such reading. */
struct sensor {
    double update_s;   /* a new value this often (T) … */
    double window_s;   /* … the mean of this long a time (W) … */
    double lag_s;      /* … that ended so long before the value was published */
    double response_s; /* time constant of an exponential response; then window_s = 0 */
};

struct sensor_model {
    struct sensor power;     /* the plain reading */
    struct sensor instant;   /* instant field, where apart */
    struct sensor average;   /* averaged field, where apart */
    double counter_update_s; /* 0: no counter */
    double counter_lag_s;    /* power reaches the counter so late */
    double counter_unit_j;   /* joules a count */
    uint64_t counter_wrap;   /* counts at which it starts from 0; 0: 2^64 */
    bool counter_true; /* known to integrate true power; else it has to prove itself */
};

#endif
