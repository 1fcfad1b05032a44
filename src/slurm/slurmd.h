/* What slurmd, a parent of each prolog, has read of its files. */
#ifndef SLURM_SLURMD_H
#define SLURM_SLURMD_H

#include "underwatt/error.h"

/* 0: the file at path is as it was when slurmd started, and slurmd counts by it. -ESTALE:
 * it was changed, or exchanged, since: slurmd may have read it again, or not; -ESRCH: no
 * slurmd is among this process's parents; -errno: there is no such file.
 */
int slurmd_has_read(const char *path, uw_error *err);

#endif
