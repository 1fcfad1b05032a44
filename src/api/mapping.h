/* Files for dcgm-exporter's --hpc-job-mapping-dir: one file a board, named by the board's
 * index, with one job a line (the Slurm id of a Slurm job, else the node's job id).  The
 * file of a board without a job is empty.
 *
 * A file is written when its content changes: to a temporary file, then renamed.
 */
#ifndef API_MAPPING_H
#define API_MAPPING_H

#include "base/auto.h"
#include "node/view.h"
#include "underwatt/error.h"

struct mapping;

/* dir: absolute; opened at the first update at which it exists.  -ENOMEM. */
int mapping_new(const char *dir, struct mapping **ret, uw_error *err);
/* Empties the files that list jobs. */
void mapping_free(struct mapping *m);
DEFINE_AUTO(struct mapping *, mapping_free);

/* Returns the first failure's -errno; the other boards' files are written nevertheless.
 * The next call tries a failed file again.
 */
int mapping_update(struct mapping *m, const struct node_view *view, uw_error *err);

#endif
