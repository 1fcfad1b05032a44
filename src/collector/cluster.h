/* The rounds of the collector: queries Slurm, and sends the results to the nodes.
 *
 * Owns: the processes of squeue and sinfo, two threads that send.  Touches: the nodes'
 * daemons.  Thread: the loop's.  Explained in docs/slurm.md#collector-and-queue.
 *
 * Only a round in which Slurm has answered sends anything to the nodes: otherwise the
 * values sent before expire and become unknown.
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
void cluster_free(struct cluster *c); /* cancels what is under way */
DEFINE_AUTO(struct cluster *, cluster_free);

#endif
