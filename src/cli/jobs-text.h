/* The table of `underwatt jobs`, in 80 columns: two lines a job. */
#ifndef CLI_JOBS_TEXT_H
#define CLI_JOBS_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "io/json.h"

/* jobs, gpus: the answers to GET /v1/jobs and /v1/gpus.  gpus has the caps in force;
 * NULL: unknown.  all: include jobs that have ended.  The table has 80 columns, and more
 * of `width` where names need them.
 */
void jobs_text(const struct json_value *jobs, const struct json_value *gpus, bool all,
               unsigned width, FILE *to);

#endif
