/* The rounds of the collector: asks Slurm, and tells the nodes what came of it.
 *
 * Owns: squeue's and sinfo's processes, two threads that send.  Touches: the nodes'
 * daemons.  Thread: the loop's.  Explained in docs/slurm.md#collector-and-queue.
 *
 * Only a round in which Slurm has answered tells the nodes anything: without it what they
 * were told runs out, and is unknown.
 */
#ifndef COLLECTOR_CLUSTER_H
#define COLLECTOR_CLUSTER_H

#include "base/auto.h"
#include "collector/config.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct cluster;

/* config and token are borrowed; token NULL: none.  The first round begins at once. */
int cluster_new(struct loop *loop, const struct collector_config *config,
                const char *token, struct cluster **ret, uw_error *err);
void cluster_free(struct cluster *c); /* what is under way is given up */
DEFINE_AUTO(struct cluster *, cluster_free);

#endif
