/* The stop of a ramp at its first cap.  It ends when the job has done some work there, or
 * after a time where the work is not counted.  Pure: time is an argument.
 */
#ifndef CORE_CAP_STOP_H
#define CORE_CAP_STOP_H

#include "core/cap/claim.h"
#include "core/cap/ramp.h"

struct cap_stop {
    uint64_t since_ns; /* 0: the ramp does not stop */
    uint64_t claim;    /* the winning claim; with another winner counting restarts */
    unsigned units;    /* of work since */
};

/* Call after each step of the ramp.  claim: the winning claim.  timed: work is not
 * counted, and the stop ends after 30 s.
 */
void cap_stop_step(struct cap_stop *stop, struct ramp *ramp, uint64_t claim, bool timed,
                   uint64_t now_ns);
/* Adds units of work that the job has done at the first cap, for the winning claim. way:
 * that claim's; without a way of its own any call ends the stop.
 */
void cap_stop_units(struct cap_stop *stop, struct ramp *ramp, const struct claim_way *way,
                    unsigned units, uint64_t now_ns);
/* When the stop ends by itself; UINT64_MAX: never, or there is no stop. */
uint64_t cap_stop_next_ns(const struct cap_stop *stop, bool timed);

#endif
