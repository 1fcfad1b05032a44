/* Releases boards so that they can be reset.  Step by step the original limit is restored
 * (caps), the energy so far is attributed, the actuator closes the driver on the board,
 * and so does this daemon.  Later the boards are taken back.
 *
 * Owns: the step of each board, and a file beside the ledger that names the released
 * boards: a daemon that starts meanwhile leaves them alone.
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
    const char *boot_id;        /* of this boot; borrowed, must outlive this */
    struct loop_worker *worker; /* writes the file; borrowed; NULL: no file */
    /* A board is detached (away), or is back, or stays. */
    void (*on_detach)(size_t board, bool away, void *user);
    /* Whether all energy of a detached board is attributed. */
    bool (*is_settled)(size_t board, void *user);
    void (*on_event)(enum ledger_word kind, size_t board, const char *text, void *user);
    /* Reopens all boards, soon. */
    void (*reopen)(void *user);
    void *user;
};
/* Reads the file of an earlier daemon.  -ENOMEM. */
int released_boards_new(const struct released_boards_opts *opts,
                        struct released_boards **ret, uw_error *err);
void released_boards_free(struct released_boards *rb);
DEFINE_AUTO(struct released_boards *, released_boards_free);

/* Sets options to open the boards without the released ones. */
void released_boards_gpu_opts(const struct released_boards *rb,
                              struct gpu_open_opts *opts);
/* The file does not fit this machine: drops it.  false: there was none. */
bool released_boards_reject(struct released_boards *rb, const char *why);

/* The boards are open (all borrowed until released_boards_close()); released boards stay
 * released.
 */
int released_boards_open(struct released_boards *rb, struct boards *boards,
                         struct caps *caps, struct sampler *const *sampler,
                         uw_error *err);
void released_boards_close(struct released_boards *rb);
/* The daemon ends: no more steps, and pending releases are not answered. */
void released_boards_end(struct released_boards *rb);

/* Sets the actuator; NULL: none.  Borrowed until the next call. */
void released_boards_use_actuator(struct released_boards *rb, struct actuator *act);

/* Does what is due: each second, and soon after released_boards_kick(), which whoever
 * attributes energy calls when a stretch is settled.
 */
void released_boards_step(struct released_boards *rb);
void released_boards_kick(struct released_boards *rb);

/* Whether the driver is closed on this board. */
bool released_boards_is_away(const struct released_boards *rb, size_t board);
/* Whether it is closed, or reopened without a sample yet. */
bool released_boards_is_blind(const struct released_boards *rb, size_t board);
/* caps_release(), then the handles; fn when they are closed, or cannot be. */
int released_boards_release(struct released_boards *rb, size_t board,
                            uint64_t hold_off_ns, caps_done_fn fn, void *user,
                            uw_error *err);

#endif
