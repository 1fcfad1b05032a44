/* Whether slurmd, a parent of each prolog, has read the present files. */
#ifndef SLURM_SLURMD_H
#define SLURM_SLURMD_H

#include "underwatt/error.h"

/* 0: the file at path has not changed since slurmd started, and slurmd uses it. -ESTALE:
 * it was changed or replaced since: slurmd may or may not have read it again; -ESRCH: no
 * slurmd is among this process's parents; -errno: no such file.
 */
int slurmd_has_read(const char *path, uw_error *err);

#endif
