/* Boards that are released, so that they can be reset: step by step the original limit
 * comes back (caps), the energy so far is attributed, the actuator lets go of the driver
 * on the board, and so do we.  Then they are taken back.
 *
 * Owns: the step that each board is at, and a file beside the ledger that names the
 * boards that are released: a daemon that begins meanwhile leaves them alone.
 * Touches: the boards and their samplers, caps, the actuator.
 * Thread: the loop's; the file is written in a worker's.  Explained in docs/caps.md.
 */
#ifndef CAPS_RELEASED_BOARDS_H
#define CAPS_RELEASED_BOARDS_H

#include "board/sampler.h"
#include "caps/caps.h"

struct released_boards;

struct released_boards_opts {
    struct loop *loop;
    const char *path;           /* of the file; "" none; copied */
    const char *boot_id;        /* of this boot; borrowed for longer than this lives */
    struct loop_worker *worker; /* writes the file; borrowed; NULL: it is not written */
    /* A board goes (away), or is back or stays after all. */
    void (*on_detach)(size_t board, bool away, void *user);
    /* All energy of a board that goes is attributed. */
    bool (*is_settled)(size_t board, void *user);
    void (*on_event)(const char *kind, size_t board, const char *text, void *user);
    /* All boards are to be opened anew, soon. */
    void (*reopen)(void *user);
    void *user;
};
/* Reads what an earlier daemon kept.  -ENOMEM. */
int released_boards_new(const struct released_boards_opts *opts,
                        struct released_boards **ret, uw_error *err);
void released_boards_free(struct released_boards *rb);
DEFINE_AUTO(struct released_boards *, released_boards_free);

/* How the boards are opened: without those that are released. */
void released_boards_gpu_opts(const struct released_boards *rb,
                              struct gpu_open_opts *opts);
/* What was kept is of another machine, say: it counts no more.  false: nothing was. */
bool released_boards_reject(struct released_boards *rb, const char *why);

/* The boards are open (all borrowed until released_boards_close()); those that are
 * released stay so.
 */
int released_boards_open(struct released_boards *rb, struct boards *boards,
                         struct caps *caps, struct sampler *const *sampler,
                         uw_error *err);
void released_boards_close(struct released_boards *rb);
/* The daemon ends: no step is taken, and nobody is told that a release was cut short. */
void released_boards_end(struct released_boards *rb);

/* The actuator to ask, NULL: there is none.  Borrowed until the next call. */
void released_boards_use_actuator(struct released_boards *rb, struct actuator *act);

/* Whatever is due: each second, and soon after released_boards_kick(). */
void released_boards_step(struct released_boards *rb);
void released_boards_kick(struct released_boards *rb);

/* Was let go of. */
bool released_boards_is_away(const struct released_boards *rb, size_t board);
/* … or attached again and has given no sample yet. */
bool released_boards_is_blind(const struct released_boards *rb, size_t board);
/* caps_release(), and then the handles; fn when they are given up, or cannot be. */
int released_boards_release(struct released_boards *rb, size_t board,
                            uint64_t hold_off_ns, caps_done_fn fn, void *user,
                            uw_error *err);

#endif
