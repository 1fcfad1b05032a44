/* Counting launches into this process' slot of the page.  Lives in other people's
 * processes: says nothing, keeps no descriptor, starts no thread, fails silently.
 */
#ifndef CUDA_COUNT_H
#define CUDA_COUNT_H

#include <stdint.h>

#include "underwatt/launches.h"

struct count;

/* Take a slot in the page at path.  It stays for the life of the process; a child that
 * is forked counts nothing until it has executed another program.  -ENODEV: the file has
 * no place for launches (or is none of ours, or is not all on the disk: then a write
 * could fail); -ENOSPC: all slots are taken by living processes; -errno of open, mmap.
 */
int count_open(const char *path, struct count **ret);

/* For the reader, to be told. */
void count_state(struct count *c, enum uw_launches_state state, uint32_t cupti,
                 uint32_t result);

/* CUPTI's callback; user: the struct count.  Wait-free: one atomic addition. */
void count_on_call(void *user, int32_t domain, uint32_t id, const void *data);

#endif
