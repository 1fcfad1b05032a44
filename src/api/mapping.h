/* Which jobs are on which board, as files for dcgm-exporter's --hpc-job-mapping-dir: one
 * a board, named by its index, a job a line ("slurm:4711" stands as 4711, others as the
 * node's job id).  A board without a job has an empty file.
 *
 * A file is written when its content changes: beside its place, then renamed.
 */
#ifndef API_MAPPING_H
#define API_MAPPING_H

#include "base/auto.h"
#include "node/view.h"
#include "underwatt/error.h"

struct mapping;

/* dir: absolute; looked for at each update while it is not there. -ENOMEM. */
int mapping_new(const char *dir, struct mapping **ret, uw_error *err);
/* Empties the files that have jobs in them. */
void mapping_free(struct mapping *m);
DEFINE_AUTO(struct mapping *, mapping_free);

/* The first failure's -errno; the other boards' files are written all the same, and a
 * file that failed is tried again at the next call.
 */
int mapping_update(struct mapping *m, const struct node_view *view, uw_error *err);

#endif
