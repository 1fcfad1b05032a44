/* Figures of queues: of all partitions together, and of each one under the name used in
 * its signals.  Pure.
 */
#ifndef COLLECTOR_FIGURES_H
#define COLLECTOR_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "collector/jobs.h"

enum { FIGURES_MAX = 512, FIGURES_WORD = 48 };

struct queue_figures {
    char word[FIGURES_WORD]; /* "gpu_long" of the partition gpu-long; "" of all */
    uint64_t depth;          /* waiting jobs; each task of an array counts */
    uint64_t gpus;           /* GPUs that they request */
    int64_t wait_s;          /* longest time since a job became eligible */
};
struct queues {
    struct queue_figures of[FIGURES_MAX]; /* [0]: all partitions */
    size_t n;
};

void queues_init(struct queues *q);
/* Adds a partition of the cluster, whose figures are 0 without waiting jobs.  -E2BIG. */
int queues_partition(struct queues *q, const char *name);
/* Adds the waiting jobs.  A job that names several partitions counts in each of them, but
 * once in the total; so do the components of a heterogeneous job.  A partition beyond
 * FIGURES_MAX counts only in the total.
 */
void queues_add(struct queues *q, const struct jobs *jobs, int64_t now_s);

#endif
