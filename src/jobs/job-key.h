/* Which jobs are the same job run again, so that the next may begin with what the last
 * one's search measured (docs/same-job.md).  What is kept is a hash: SHA-256, cut.
 */
#ifndef JOBS_JOB_KEY_H
#define JOBS_JOB_KEY_H

#include <stddef.h>

#include "jobs/roster.h"

enum { JOB_KEY_TEXT = 33 };
#define JOB_KEY_LABEL "same" /* a label by which the user says so */

/* Of every argument and of the folder that it is started in; "" where it fails. */
void job_key_command(const char *const *argv, const char *dir,
                     char ret[static JOB_KEY_TEXT]);
/* Of a command (any text) and all labels, in any order; where one of them is "same", of
 * that one alone.  "" where neither tells: then no job is the same.
 */
void job_key(const char *command, const struct label *label, size_t n,
             char ret[static JOB_KEY_TEXT]);

#endif
