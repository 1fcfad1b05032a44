/* Counts the kernel launches of this process in a slot of the progress page.
 *
 * Owns: one slot of the page.
 * May touch: that page alone.  The library runs in processes of other programs: it prints
 * nothing, keeps no descriptor, starts no thread, and fails silently.
 * Thread: any thread of the process that launches kernels; no lock.
 * Explained in: docs/design/launches.md.
 */
#ifndef CUDA_COUNT_H
#define CUDA_COUNT_H

#include <stdint.h>

#include "underwatt/launches.h"

struct count;

/* Takes a slot in the page at path, for the life of the process.  A forked child counts
 * nothing until it executes another program.  -ENODEV: the
 * file is not a page with room for launches, or has unallocated blocks, where a write
 * could fail; -ENOSPC: all slots are taken by living processes; -errno of open, mmap.
 */
int count_open(const char *path, struct count **ret);

/* Stores in the slot how CUPTI was subscribed to, for the reader of the page. */
void count_state(struct count *c, enum uw_launches_state state, uint32_t cupti,
                 uint32_t result);

/* CUPTI's callback; user: the struct count.  Wait-free: one atomic addition. */
void count_on_call(void *user, int32_t domain, uint32_t id, const void *data);

#endif
