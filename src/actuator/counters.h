/* The energy counters of processors and their memory, which root alone may open
 * (fine-grained power is a side channel): the service opens them before it locks itself
 * down, and hands the descriptors to its client.
 */
#ifndef ACTUATOR_COUNTERS_H
#define ACTUATOR_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { COUNTERS_MAX = 16, COUNTERS_NAME = 64 };

struct counters {
    struct {
        char zone[COUNTERS_NAME]; /* "intel-rapl:0:1" */
        int fd;                   /* of its energy_uj */
    } at[COUNTERS_MAX];
    size_t n;
};

/* Packages and their DRAM below this folder (gpu/rapl's RAPL_ROOT); none is no fault.  A
 * zone whose folder or counter is neither root's nor owner's, or that others may write,
 * is left out: it could be a link to a file that is nobody's business.
 */
void counters_open(const char *root, uid_t owner, struct counters *ret);
void counters_close(struct counters *c);

/* "intel-rapl:" and numbers with colons: it is made part of no path, but shown. */
bool counters_is_zone(const char *name);

#endif
