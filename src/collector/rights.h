/* Whether Slurm shows a user the jobs, nodes and partitions of all users.  Pure. */
#ifndef COLLECTOR_RIGHTS_H
#define COLLECTOR_RIGHTS_H

#include <sys/types.h>

#include "underwatt/error.h"

/* text: output of `scontrol show config`.  -EACCES: PrivateData hides some (from all but
 * root, SlurmUser and operators, of whom the text does not tell), -EPROTO: it does not
 * say.
 */
int rights_check(const char *text, uid_t uid, uw_error *err);

#endif
