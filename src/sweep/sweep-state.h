/* The state file of an interrupted sweep: its command, range and boards, and the runs it
 * has made.
 */
#ifndef SWEEP_SWEEP_STATE_H
#define SWEEP_SWEEP_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/sweep/sweep.h"
#include "underwatt/error.h"

enum { SWEEP_STATE_BOARDS_MAX = 64, SWEEP_STATE_ARGS_MAX = 4096 };

struct sweep_state {
    char **argv; /* CMD; ends with NULL */
    size_t n_boards;
    char (*board)[96]; /* UUIDs, in the driver's order */
    struct sweep_range range;
    unsigned runs;
    uint64_t seed;
    bool simulated;
    int64_t began_utc_ns;
    size_t n_done;
    struct sweep_run *done; /* in the order of the plan */
};

/* -ENOENT: no such file; -EINVAL: not a state file (text: FILE: the error), or read's
 * -errno.
 */
int sweep_state_read(const char *path, struct sweep_state **ret, uw_error *err);
/* The same from text; name stands for the file in error texts. */
int sweep_state_parse(const char *name, const char *text, size_t len,
                      struct sweep_state **ret, uw_error *err);
/* Replaces the file atomically. */
int sweep_state_write(const char *path, const struct sweep_state *state, uw_error *err);
void sweep_state_free(struct sweep_state *state);
DEFINE_AUTO(struct sweep_state *, sweep_state_free);

/* Whether the wanted sweep can continue from the found state: 0, or -EINVAL with the
 * difference in the text.  The number of runs may differ.
 */
int sweep_state_same(const struct sweep_state *found, const struct sweep_state *wanted,
                     uw_error *err);

#endif
