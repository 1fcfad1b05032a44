/* Which boards a job gets. */
#ifndef BOARD_SELECTION_H
#define BOARD_SELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "board/boards.h"
#include "gpu/backends.h"

enum {
    SELECTION_E_OPEN = 1, /* nothing names any: use[] is all false */
    SELECTION_E_UNSURE,   /* the order of unlike boards is not known: *err tells */
};

/* The boards that --gpus (or else the job's environment) names, as use[i] of the set.
 * 0 or an outcome above; -EINVAL: text says what is wrong.
 */
int selection_named(struct boards *set, const char *gpus,
                    const struct gpu_visible *visible, bool *use, uw_error *err);

/* A process of another user among these?  Returns its pid, or 0.  Who owns a process
 * is read from /proc; one that is gone meanwhile is nobody's.
 */
pid_t selection_foreign(const struct gpu_proc *procs, size_t n, uid_t uid);

#endif
