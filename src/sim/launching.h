/* Counting launches as libunderwatt-cuda.so does, for a virtual training job that tells
 * no steps and runs ahead of its boards: its launches come at their pace and never rest
 * while it trains or validates (kernels there take three quarters of the time).
 */
#ifndef SIM_LAUNCHING_H
#define SIM_LAUNCHING_H

#include <stdint.h>

#include "base/auto.h"
#include "sim/world.h"
#include "underwatt/error.h"

struct launching;

/* how: "LAUNCHES[:CLUMP]", of a step, and how many come at once (1).  path: a progress
 * page with a place for launches (-EINVAL), whose first slot it takes.
 */
int launching_open(const char *path, const char *how, uint64_t pid,
                   struct launching **ret, uw_error *err);
/* The job's state at now_ns, again and again. */
void launching_tell(struct launching *l, const struct sim_job_state *now,
                    uint64_t now_ns);
void launching_close(struct launching *l);
DEFINE_AUTO(struct launching *, launching_close);

#endif
