/* Selection of the boards that a job gets. */
#ifndef BOARD_SELECTION_H
#define BOARD_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "board/boards.h"
#include "gpu/backends.h"

enum {
    SELECTION_E_OPEN = 1, /* no board is named: use[] is all false */
    SELECTION_E_UNSURE,   /* the order of unlike boards is unknown, *err says why */
};

/* Sets use[i] for the boards that --gpus names or, without it, the job's environment.
 * Returns 0 or a value above; -EINVAL: invalid list.
 */
int selection_named(struct boards *set, const char *gpus,
                    const struct gpu_visible *visible, bool *use, uw_error *err);

/* Returns the pid of a process of another user than uid, or 0.  Reads the owners from
 * /proc; processes that have ended do not count.
 */
pid_t selection_foreign(const struct gpu_proc *procs, size_t n, uid_t uid);

#endif
