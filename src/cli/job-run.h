/* `underwatt run` and `underwatt measure` from their options to the exit code. */
#ifndef CLI_JOB_RUN_H
#define CLI_JOB_RUN_H

#include "cli/job-opts.h"

/* Runs CMD (rest->argv); the command's exit code. */
int job_run(struct job_run *j, const struct opts_rest *rest);

#endif
