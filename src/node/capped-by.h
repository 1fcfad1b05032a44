/* Records which rules, classes and limits of the policy have capped the boards of a job,
 * and for how long, for the job's report.  Pure except for caps_look().
 */
#ifndef NODE_CAPPED_BY_H
#define NODE_CAPPED_BY_H

#include <stdint.h>

#include "caps/caps.h"
#include "jobs/job-records.h"

/* Adds dt_s for these boards (bits) in their present state. */
void capped_by_tick(struct job_capped *capped, const struct caps *caps, uint64_t boards,
                    double dt_s);

#endif
