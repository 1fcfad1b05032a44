/* What queues come to: of all partitions, and of each one by the name that its signals
 * have.  Pure.
 */
#ifndef COLLECTOR_FIGURES_H
#define COLLECTOR_FIGURES_H

#include <stddef.h>
#include <stdint.h>

#include "collector/jobs.h"

enum { FIGURES_MAX = 512, FIGURES_WORD = 48 };

struct queue_figures {
    char word[FIGURES_WORD]; /* "gpu_long" of the partition gpu-long; "" of all */
    uint64_t depth;          /* jobs that wait; each task of an array is one */
    uint64_t gpus;           /* that they ask for */
    int64_t wait_s;          /* how long the first of them could have run */
};
struct queues {
    struct queue_figures of[FIGURES_MAX]; /* [0]: all partitions */
    size_t n;
};

void queues_init(struct queues *q);
/* A partition of the cluster: 0 while nobody waits for it.  -E2BIG. */
int queues_partition(struct queues *q, const char *name);
/* Adds the jobs that wait; a job that names several partitions waits for each of them,
 * and is one of all, and so are the components of a heterogeneous job.  A partition
 * beyond FIGURES_MAX counts in the sum of all alone.
 */
void queues_add(struct queues *q, const struct jobs *jobs, int64_t now_s);

#endif
