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
#include "board/sampler.h"
#include "core/meter/meter.h"
#include "energy/attribution.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct client_windows;

enum { CLIENT_WINDOWS_MAX = 1024, CLIENT_WINDOWS_PER_UID = 128 };
#define CLIENT_WINDOWS_ANYBODY ((uid_t)-2)

struct client_windows_opts {
    struct loop *loop;
    struct sampler *const *sampler; /* one per board, with that board only; copied */
    size_t n;
    /* The samplers keep all that a window of any length needs: asks for each window once,
     * at its end, which is surer than a sum of booked stretches.
     */
    bool whole;
};
int client_windows_new(const struct client_windows_opts *opts,
                       struct client_windows **ret, uw_error *err);
/* Answers windows that are ending with -EAGAIN. */
void client_windows_free(struct client_windows *w);
DEFINE_AUTO(struct client_windows *, client_windows_free);

/* Begins a window now.  Its id is the loop's time, so that later daemons do not reuse
 * it.  Drops the oldest window of a user that has CLIENT_WINDOWS_PER_UID.  -EBUSY:
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
    const struct client_window_board *board; /* borrowed for the callback */
};
/* r < 0: result is NULL, text says why. */
typedef void (*client_window_fn)(int r, const struct client_window_result *result,
                                 const char *text, void *user);

/* Ends the window now and frees it after fn, which is called once when the energy is
 * known, after at most a few seconds, and never from inside.  uid: the window's user, or
 * CLIENT_WINDOWS_ANYBODY.  -ENOENT: no such window of that user; -EALREADY: it is ending.
 */
int client_windows_end(struct client_windows *w, uid_t uid, uint64_t id,
                       client_window_fn fn, void *user, uw_error *err);
/* Frees the window without a result.  Errors as above. */
int client_windows_drop(struct client_windows *w, uid_t uid, uint64_t id, uw_error *err);

/* The attribution's on_total. */
void client_windows_total(struct client_windows *w,
                          const struct attribution_total *total);

size_t client_windows_count(const struct client_windows *w);

#endif
