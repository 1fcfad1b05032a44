/* The boards of this node, each with its own worker: a call that hangs on one board
 * delays calls on others by at most LOOP_PATIENCE_NS, as boards that answer share one
 * thread (io/loop.h).
 *
 * Owns: the open driver and one worker per board.  Touches: the backends of gpu/; no
 * other part of the daemon calls them.  Thread: the loop's; no call blocks, results come
 * by callback; driver calls run in the workers' threads.  Explained in
 * docs/architecture.md.
 */
#ifndef BOARD_BOARDS_H
#define BOARD_BOARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/units.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "underwatt/error.h"

enum {
    BOARDS_MAX = 64,
    BOARD_PROCS_MAX = GPU_PROCS_MAX,
};
#define BOARD_DEADLINE_NS (2 * 1000000000ull) /* of a driver call; kernel time */

struct boards;
struct board;

struct board_view {
    const struct gpu_info *info; /* borrowed until boards_free */
    size_t at;                   /* position in the set */
    bool has_limits;
    struct gpu_limits limits;
    bool has_first;
    struct gpu_sample first; /* the board's state when it was opened */
    bool away;               /* detached, see boards_attach() */
    uw_error error;          /* "", or why limits or first are missing */
};

/* r: 0, GPU_ABSENT (no boards of this backend), or < 0 with *err.  Called once, when
 * every board has answered its first call or exceeded the deadline.
 */
typedef int (*boards_ready_fn)(struct boards *set, int r, const uw_error *err,
                               void *user);

int boards_open(struct loop *loop, const struct gpu_backend *backend,
                const struct gpu_open_opts *opts, boards_ready_fn fn, void *user,
                struct boards **ret, uw_error *err);
/* Completes pending calls with -ECANCELED; abandons calls that hang. */
void boards_free(struct boards *set);
DEFINE_AUTO(struct boards *, boards_free);

/* Removes all boards except those of a list as for --gpus (gpu/select.h); renumbers the
 * positions.  Call it only from the ready callback, before any other use of a board.
 * -EINVAL: nothing has changed.
 */
int boards_keep(struct boards *set, const char *list, uw_error *err);
/* The same: board i stays where keep[i] is set. */
void boards_keep_these(struct boards *set, const bool *keep);

/* Detaches the driver from the boards of the mask away, so that they can be reset, and
 * attaches all others.  Other calls wait meanwhile; later calls on a detached board fail.
 * fn is called once, never from inside.  Its r: 0; -EBUSY (a call hangs on the board that
 * *err names) or -ENOTSUP (the driver cannot detach single boards): nothing has changed;
 * another error: the set is unusable, open a new one (not from fn).  Returns 0, -EBUSY
 * (as above, or another boards_attach() is under way) or -ENOMEM; fn is then not called.
 */
typedef int (*boards_attach_fn)(struct boards *set, int r, const uw_error *err,
                                void *user);
int boards_attach(struct boards *set, uint64_t away, boards_attach_fn fn, void *user,
                  uw_error *err);
/* 0, or -EBUSY: a call hangs on the board that *err names. */
int boards_hang(const struct boards *set, uw_error *err);
/* All boards of the driver, including those removed by boards_keep(), for
 * gpu_open_opts.known.  The caller frees *ret.  -ENOMEM.
 */
int boards_all(const struct boards *set, struct gpu_info **ret, size_t *ret_n);

size_t boards_count(const struct boards *set);
struct board *boards_at(struct boards *set, size_t i);
/* Whether any board takes a cap in watts: 0 also where one's limits are unknown, or where
 * set is NULL or has no board.  -ERANGE: none does; the text has the watts as they were
 * typed and the range of one board.
 */
int boards_check_cap(struct boards *set, const struct cap_arg *cap, uw_error *err);
struct board_view *board_view(struct board *b);
/* The board of this UUID, or NULL. */
struct board *boards_find(struct boards *set, const char *uuid);
/* gpu_backend.driver_mark of the open driver; "": unknown. */
const char *boards_driver_mark(const struct boards *set);
/* Whether the driver was unloaded or reloaded since the set was opened; the set is then
 * unusable, open a new one.  Never blocks.
 */
bool boards_outdated(const struct boards *set);
/* The open library, for the virtual actuator; NULL before it is open. */
void *boards_lib(const struct boards *set);

/* r: 0, -ETIMEDOUT, -EBUSY (an earlier call hangs), -ECANCELED, or an error of the
 * backend; then *err is set.
 */
typedef int (*board_sample_fn)(struct board *b, int r, const struct gpu_sample *sample,
                               const uw_error *err, void *user);
/* -EAGAIN (too many calls wait already), -ENOMEM: fn is not called. */
int board_sample(struct board *b, uint32_t want, board_sample_fn fn, void *user);
/* What to read, and when: at_ns of the loop's time, 0: at once. */
struct board_round {
    uint64_t at_ns;
    uint32_t want;
};
enum { BOARD_ROUNDS_MAX = LOOP_RUNS };
/* No round follows.  n: samples that were taken; r: 0, or as the last fn was told. */
typedef void (*board_sampled_fn)(struct board *b, int r, size_t n, void *user);
/* n samples at their times, the first before its time if a board is to be detached.  The
 * rounds after the first that have not begun are left out then, if another call of the
 * board comes, and after one that fails.  The loop wakes up for the last one: fn is told
 * of the others before that, when the loop is awake, in order with those of other boards.
 */
int board_sample_at(struct board *b, const struct board_round *round, size_t n,
                    board_sample_fn fn, board_sampled_fn sampled, void *user);
/* Takes back a board_sample_at() that has not begun: none of its functions is called.
 * False: there is none, or its rounds end now.
 */
bool board_withdraw(struct board *b);

typedef int (*board_procs_fn)(struct board *b, int r, const struct gpu_proc *procs,
                              size_t n, const uw_error *err, void *user);
int board_procs(struct board *b, board_procs_fn fn, void *user);

/* r: as above, or -ENOTSUP: the driver does not report it. */
typedef int (*board_use_fn)(struct board *b, int r, const struct gpu_use *use, size_t n,
                            const uw_error *err, void *user);
int board_use(struct board *b, board_use_fn fn, void *user);

/* Number of driver calls on this board since it was opened (NVML calls); if the backend
 * does not count them, of calls to the functions above.
 */
uint64_t board_calls(const struct board *b);

/* The backend's model of the board's sensors. */
void board_sensors(const struct board *b, struct sensor_model *ret);

#endif
