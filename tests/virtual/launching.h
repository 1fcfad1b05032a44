/* Counts kernel launches as libunderwatt-cuda.so does, for a virtual training job that
 * reports no steps.  The job runs ahead of its boards: its launches come at the pace of
 * the boards, without a pause, while the job trains or validates.  A kernel in validation
 * takes three quarters of its time in training.
 */
#ifndef VIRTUAL_LAUNCHING_H
#define VIRTUAL_LAUNCHING_H

#include <stdint.h>

#include "base/auto.h"
#include "sim/world.h"
#include "underwatt/error.h"

struct launching;

/* how: "LAUNCHES[:CLUMP]", launches of a step and of a clump (default 1).  path: a
 * progress page with room for launches (else -EINVAL), whose first slot is used.
 */
int launching_open(const char *path, const char *how, uint64_t pid,
                   struct launching **ret, uw_error *err);
/* Updates the count from the job's state at now_ns; called again and again. */
void launching_tell(struct launching *l, const struct sim_job_state *now,
                    uint64_t now_ns);
void launching_close(struct launching *l);
DEFINE_AUTO(struct launching *, launching_close);

#endif
