/* Numbers for the jobs of a user's own nodes, counted by a file that all of them share.
 */
#ifndef ASK_JOB_NUMBER_H
#define ASK_JOB_NUMBER_H

#include <stdint.h>

/* The number of a new job: 1 for the first one while the file DIR/jobs exists.  0: the
 * file cannot be written.
 */
uint64_t job_number(const char *dir);

#endif
