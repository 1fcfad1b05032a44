/* One look at Slurm: the rights of this user (scontrol), nodes and partitions (sinfo),
 * jobs (squeue) and lists of nodes (scontrol), one call after the other, all of them
 * within NODE_LOOK_S.  If time runs out, remaining lists are left out; if another call
 * fails, the look fails.  The loop's thread.
 */
#ifndef COLLECTOR_SLURM_H
#define COLLECTOR_SLURM_H

#include "base/auto.h"
#include "collector/config.h"
#include "collector/figures.h"
#include "collector/hosts.h"
#include "collector/jobs.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct slurm;

enum { SLURM_NODES = 65536 };

struct slurm_seen {
    const struct jobs *jobs;
    const struct queues *queues;
    const struct hosts *hosts;
    const char *const *node; /* names of nodes with GPUs, sorted */
    size_t n_nodes;
    size_t left_out; /* jobs that run on nodes that are not known: see hosts_find() */
};
/* r: 0, or an error with *why.  seen is borrowed until the next look begins; its jobs and
 * queues until the next complete one.
 */
typedef void (*slurm_fn)(int r, const struct slurm_seen *seen, const uw_error *why,
                         void *user);

int slurm_new(struct loop *loop, const struct collector_config *config, slurm_fn fn,
              void *user, struct slurm **ret, uw_error *err);
void slurm_free(struct slurm *s);
DEFINE_AUTO(struct slurm *, slurm_free);
/* -EBUSY: a look is under way. */
int slurm_look(struct slurm *s);

#endif
