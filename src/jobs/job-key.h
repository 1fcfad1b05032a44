/* Key that identifies repeated runs of one job, so that a run can start from the search
 * result of an earlier one (docs/design/same-job.md).  The key is a truncated SHA-256
 * hash.
 */
#ifndef JOBS_JOB_KEY_H
#define JOBS_JOB_KEY_H

#include <stddef.h>

#include "jobs/roster.h"

enum { JOB_KEY_TEXT = 33 };
#define JOB_KEY_LABEL "same" /* label with which the user sets the key */

/* Hashes all arguments and the working directory; "" on failure. */
void job_key_command(const char *const *argv, const char *dir,
                     char ret[static JOB_KEY_TEXT]);
/* Hashes a command (any text) and all labels, independent of their order; if there is a
 * label "same", that label only.  "": no such label and no command, or hashing failed;
 * such a job has no key.
 */
void job_key(const char *command, const struct label *label, size_t n,
             char ret[static JOB_KEY_TEXT]);

#endif
