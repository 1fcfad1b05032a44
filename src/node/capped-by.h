/* Which rules, classes and limits of the policy have held the boards of a job low, and
 * for how long, for the job's report.  Pure but for caps_look().
 */
#ifndef NODE_CAPPED_BY_H
#define NODE_CAPPED_BY_H

#include <stdint.h>

#include "caps/caps.h"
#include "jobs/job-records.h"

/* dt_s more have passed with these boards (bits) as they are now. */
void capped_by_tick(struct job_capped *capped, const struct caps *caps, uint64_t boards,
                    double dt_s);

#endif
