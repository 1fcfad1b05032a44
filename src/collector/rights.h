/* Whether Slurm shows a user the jobs, nodes and partitions of all users.  Pure. */
#ifndef COLLECTOR_RIGHTS_H
#define COLLECTOR_RIGHTS_H

#include <sys/types.h>

#include "underwatt/error.h"

/* text: output of `scontrol show config`.  -EACCES: PrivateData hides some (from all
 * users except root, SlurmUser and operators, which the text does not list), -EPROTO: the
 * text has no PrivateData.
 */
int rights_check(const char *text, uid_t uid, uw_error *err);

#endif
