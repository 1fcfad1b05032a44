/* Energy counters that root alone may open, because fine-grained power is a side channel.
 * The actuator opens the counters before it drops its privileges and passes the
 * descriptors to its client.  The client's backend reads them.
 */
#ifndef GPU_COUNTERS_H
#define GPU_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/auto.h"

enum { GPU_COUNTERS_MAX = 16, GPU_COUNTER_NAME = 64 };

/* ---- in the actuator ---- */

struct gpu_counters {
    struct {
        char name[GPU_COUNTER_NAME]; /* "intel-rapl:0:1" */
        int fd;
    } at[GPU_COUNTERS_MAX];
    size_t n;
};

/* Opens the counters of all backends; there may be none.  root: the folder of the
 * kernel's counters; NULL: the default.  Leaves out counters whose folder or file is not
 * owned by root or owner, or is writable for others, who could have linked it to another
 * file.
 */
void gpu_counters_open(const char *root, uid_t owner, struct gpu_counters *ret);
void gpu_counters_close(struct gpu_counters *c);
/* Whether a counter may have this name.  Names are shown, but are never part of a path.
 */
bool gpu_counters_has_name(const char *name);

/* ---- in the client ---- */

/* Counters passed to the backend, which takes them with its next sample.  Thread-safe. */
struct gpu_given;
struct gpu_given *gpu_given_new(void); /* NULL: out of memory */
/* Takes ownership of fd, even on failure; replaces an older one of this name.  -E2BIG:
 * too many; -EINVAL: the name is too long.
 */
int gpu_given_put(struct gpu_given *given, const char *name, int fd);
/* Passes the descriptor of this name to the caller; -1: none.  given may be NULL. */
int gpu_given_take(struct gpu_given *given, const char *name);
/* No backend that uses given may be open. */
void gpu_given_free(struct gpu_given *given);
DEFINE_AUTO(struct gpu_given *, gpu_given_free);

#endif
