/* The stop of a ramp at a first cap, and what ends it: work that the job does there, or
 * time where nobody counts it.  Pure: time is an argument.
 */
#ifndef CORE_CAP_STOP_H
#define CORE_CAP_STOP_H

#include "core/cap/claim.h"
#include "core/cap/ramp.h"

struct cap_stop {
    uint64_t since_ns; /* 0: the ramp does not stop */
    uint64_t claim;    /* that wins; another one's units are counted anew */
    unsigned units;    /* of work since */
};

/* After each step of the ramp.  claim: the one that wins.  timed: the stop ends after
 * 30 s, as nobody counts.
 */
void cap_stop_step(struct cap_stop *stop, struct ramp *ramp, uint64_t claim, bool timed,
                   uint64_t now_ns);
/* The job has done so many units at the first cap, for the claim that wins.  way: that
 * claim's; without a way of its own any call ends the stop.
 */
void cap_stop_units(struct cap_stop *stop, struct ramp *ramp, const struct claim_way *way,
                    unsigned units, uint64_t now_ns);
/* When it ends by itself; UINT64_MAX: never, or there is none. */
uint64_t cap_stop_next_ns(const struct cap_stop *stop, bool timed);

#endif
