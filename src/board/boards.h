/* The boards of this node, each behind a worker: a call that hangs or fails on one
 * delays another by LOOP_PATIENCE_NS at most, as boards that answer share one thread
 * (io/loop.h).
 *
 * Owns: the open driver and one worker a board.  Touches: the backends of gpu/, which
 * nobody else calls in the daemon.  Thread: every call returns at once and calls back in
 * the loop's; driver calls run in the workers'.  Explained in docs/architecture.md.
 */
#ifndef BOARD_BOARDS_H
#define BOARD_BOARDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "gpu/gpu.h"
#include "io/loop.h"
#include "underwatt/error.h"

enum {
    BOARDS_MAX = 64,
    BOARD_PROCS_MAX = GPU_PROCS_MAX,
};
#define BOARD_DEADLINE_NS (2 * 1000000000ull) /* kernel time a driver call may take */

struct boards;
struct board;

struct board_view {
    const struct gpu_info *info; /* borrowed until boards_free */
    size_t at;                   /* position in the set */
    bool has_limits;
    struct gpu_limits limits;
    bool has_first;
    struct gpu_sample first; /* the first sample: what was found */
    bool away;               /* let go of: see boards_attach() */
    uw_error error;          /* "" or why something above is missing */
};

/* r: 0, GPU_ABSENT (no boards of this backend) or the fault that *err tells.
 * Called once, when every board has answered its first questions or not in time.
 */
typedef int (*boards_ready_fn)(struct boards *set, int r, const uw_error *err,
                               void *user);

int boards_open(struct loop *loop, const struct gpu_backend *backend,
                const struct gpu_open_opts *opts, boards_ready_fn fn, void *user,
                struct boards **ret, uw_error *err);
/* Calls still under way are answered with -ECANCELED, or left when they hang. */
void boards_free(struct boards *set);
DEFINE_AUTO(struct boards *, boards_free);

/* Keep those of a list as --gpus takes it (gpu/select.h) and forget the rest; their
 * positions move up.  From the ready callback alone, before anybody holds a board.
 * -EINVAL: nothing has changed.
 */
int boards_keep(struct boards *set, const char *list, uw_error *err);

/* Let go of these boards of the set (a bit each) so that they can be reset, and attach
 * all others again.  Calls wait meanwhile, those on a board that is away fail from then
 * on.  fn is called once, never from inside: 0; -EBUSY (a call hangs on a board that the
 * text names), -ENOTSUP (the driver lets go of all or none): nothing has changed;
 * another fault: the set is worth nothing, open it anew (not from fn).  Itself 0, -EBUSY
 * (as above, or it is at it already), -ENOMEM, -EAGAIN.
 */
typedef int (*boards_attach_fn)(struct boards *set, int r, const uw_error *err,
                                void *user);
int boards_attach(struct boards *set, uint64_t away, boards_attach_fn fn, void *user,
                  uw_error *err);
/* 0, or -EBUSY: a call hangs on a board that the text names. */
int boards_hang(const struct boards *set, uw_error *err);
/* All boards of the driver, also those that boards_keep() has forgotten, as gpu_open_opts
 * takes them.  Free *ret.
 */
int boards_all(const struct boards *set, struct gpu_info **ret, size_t *ret_n);

size_t boards_count(const struct boards *set);
struct board *boards_at(struct boards *set, size_t i);
struct board_view *board_view(struct board *b);
/* The board of this UUID, or NULL. */
struct board *boards_find(struct boards *set, const char *uuid);
const char *boards_driver_mark(const struct boards *set); /* "" unknown */
/* The driver was loaded anew, or unloaded, since they were opened: what is held of them
 * is worth nothing, open them again.  Never blocks.
 */
bool boards_outdated(const struct boards *set);
/* The open library, for the virtual actuator; NULL before it is open. */
void *boards_lib(const struct boards *set);

/* r: 0, -ETIMEDOUT, -EBUSY (an earlier call hangs), -ECANCELED or the backend's. */
typedef int (*board_sample_fn)(struct board *b, int r, const struct gpu_sample *sample,
                               const uw_error *err, void *user);
/* 0, -EAGAIN (too many calls wait already) or -ENOMEM: then fn is not called. */
int board_sample(struct board *b, uint32_t want, board_sample_fn fn, void *user);

typedef int (*board_procs_fn)(struct board *b, int r, const struct gpu_proc *procs,
                              size_t n, const uw_error *err, void *user);
int board_procs(struct board *b, board_procs_fn fn, void *user);

/* r as above, or -ENOTSUP: the driver does not tell. */
typedef int (*board_use_fn)(struct board *b, int r, const struct gpu_use *use, size_t n,
                            const uw_error *err, void *user);
int board_use(struct board *b, board_use_fn fn, void *user);

/* Driver calls made on this board since it was opened: each NVML call is one; where the
 * backend does not count, each of the calls above is.
 */
uint64_t board_calls(const struct board *b);

/* How its readings come about, as its backend knows it. */
void board_sensors(const struct board *b, struct sensor_model *ret);

#endif
