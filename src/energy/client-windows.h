/* Windows of time that clients open and end in the daemon: the energy of every board in
 * between, as exact as a sampler's window, for any length.
 *
 * For a short window, the meters are queried at its end.  A long window exceeds the
 * meters' history: it adds up the stretches that the attribution has booked meanwhile
 * (client_windows_total()) and queries the meters only for its two ends.
 */
#ifndef ENERGY_CLIENT_WINDOWS_H
#define ENERGY_CLIENT_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "board/boards.h"
#include "board/sampler.h"
#include "core/meter/meter.h"
#include "energy/attribution.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct client_windows;

enum {
    CLIENT_WINDOWS_MAX = 16384,
    CLIENT_WINDOWS_PER_UID = 4096,
    CLIENT_WINDOWS_BACK_S = 120, /* an end may be so long ago when it is told */
    CLIENT_WINDOWS_NOT_YET = 1,  /* the energy is not known in time */
};
#define CLIENT_WINDOWS_ANYBODY ((uid_t)-2)

struct client_windows_opts {
    struct loop *loop;
    struct sampler *const *sampler; /* one per board, with that board only; copied */
    size_t n;
    /* The samplers keep all that a window of any length needs: asks for each window once,
     * at its end, which is surer than a sum of booked stretches.
     */
    bool whole;
    bool sparse; /* boards are read rarely: reads them at both ends of a window */
};
int client_windows_new(const struct client_windows_opts *opts,
                       struct client_windows **ret, uw_error *err);
/* Answers windows that are ending with -EAGAIN. */
void client_windows_free(struct client_windows *w);
DEFINE_AUTO(struct client_windows *, client_windows_free);

/* Begins a window now.  Its id is the loop's time, so that later daemons do not reuse
 * it.  Of a user that has CLIENT_WINDOWS_PER_UID, drops the oldest whose energy is known,
 * else the oldest that has not ended, else the oldest that nobody waits for.  -EBUSY:
 * CLIENT_WINDOWS_MAX are open; -ENOMEM.
 */
int client_windows_begin(struct client_windows *w, uid_t uid, uint64_t *ret_id,
                         uw_error *err);

/* The energy of one board in an ended window. */
struct client_window_board {
    int r;          /* 0, or -ENODATA: the energy is not known, see error */
    uw_error error; /* text of r */
    double energy_j, half_j;
    enum meter_method method; /* the least certain one of all parts */
    uint32_t why;             /* enum meter_why */
};
struct client_window_result {
    uint64_t begin_ns, end_ns;
    size_t n;
    struct client_window_board board[BOARDS_MAX];
};
/* r != 0: result is NULL.  CLIENT_WINDOWS_NOT_YET; < 0: text says why. */
typedef void (*client_window_fn)(int r, const struct client_window_result *result,
                                 const char *text, void *user);

/* In the functions below, uid is the window's user, or CLIENT_WINDOWS_ANYBODY.  -ENOENT:
 * that user has no such window.
 */

/* Ends the window at at_ns, a time in the last CLIENT_WINDOWS_BACK_S; 0: now.  Nothing
 * changes where it has ended.  It stays until it is dropped, or was asked for without
 * `keep`.  -EINVAL: at_ns is in the future; -ERANGE: it is longer ago, and the window
 * goes on.
 */
int client_windows_stop(struct client_windows *w, uid_t uid, uint64_t id, uint64_t at_ns,
                        uw_error *err);
struct client_window_ask {
    uint64_t until_ns; /* CLIENT_WINDOWS_NOT_YET then; 0: waits as long as it takes */
    bool keep;         /* do not free the window after fn */
    client_window_fn fn;
    void *user;
};
/* Ends the window now if it has not ended.  fn is called once when the energy is known,
 * after at most a few seconds, and never from inside; then the window is freed.
 * -EALREADY: somebody waits for it.
 */
int client_windows_ask(struct client_windows *w, uid_t uid, uint64_t id,
                       const struct client_window_ask *ask, uw_error *err);
/* 1: the energy is known; 0: not yet. */
int client_windows_look(struct client_windows *w, uid_t uid, uint64_t id,
                        struct client_window_result *ret, uw_error *err);
struct client_window_powers {
    size_t board; /* its position */
    struct meter_power *buf;
    size_t room, n; /* n: set */
};
/* The power of a board over a window whose energy is known: at most `room` (>= 1) means,
 * see meter_powers().  What the meter no longer has is of the stretches that were booked
 * meanwhile, which are longer the longer they are ago; their sum is the window's energy,
 * too.  -EBUSY: the energy is not known; -ENODATA: nor is any power; -ENOMEM.
 */
int client_windows_powers(const struct client_windows *w, uid_t uid, uint64_t id,
                          struct client_window_powers *powers, uw_error *err);
/* Frees the window without a result.  -EALREADY: somebody waits for it. */
int client_windows_drop(struct client_windows *w, uid_t uid, uint64_t id, uw_error *err);

/* The attribution's on_total. */
void client_windows_total(struct client_windows *w,
                          const struct attribution_total *total);

size_t client_windows_count(const struct client_windows *w);

#endif
