/* One telemetry sample of a board's work.  Pure values. */
#ifndef CORE_PROGRESS_ACTIVITY_H
#define CORE_PROGRESS_ACTIVITY_H

#include <stdint.h>

struct activity {
    uint64_t at_ns;
    double power_w;
    double sm_util, mem_util; /* percent, as the driver reports it; NAN unknown */
    double sm_mhz;            /* NAN unknown */
    /* of a counter that misses nothing, since any moment; NAN unknown */
    double energy_j;
};

#endif
