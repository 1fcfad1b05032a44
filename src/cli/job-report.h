/* The report of one run of CMD. */
#ifndef CLI_JOB_REPORT_H
#define CLI_JOB_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/job-opts.h"

/* Writes the requested reports.  -errno: one could not be written, which it says. */
int job_reports(struct job_run *j, const struct job_result *result,
                const char *const *argv);
/* Whether this cap is the one of the reference windows, or, without any, the original. */
bool job_report_is_reference(const struct tuner_report *t, uint32_t cap_mw);
/* The report as text and as JSON. */
void job_report_text(const struct job_run *j, const struct job_result *r, FILE *to);
int job_report_json(const struct job_run *j, const struct job_result *r,
                    const char *const *argv, const char *path, uw_error *err);

#endif
