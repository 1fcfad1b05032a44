/* Windows of time that clients hold open in the daemon: energy of every board from a
 * begin to an end, as exact as a window of the sampler's however long it is.
 *
 * A short one is asked of the meters when it ends.  A long one outlives what meters
 * remember, so it takes in each stretch that the books have closed meanwhile
 * (client_windows_total()) and asks the meters for its two ends alone.
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
    struct sampler *const *sampler; /* one a board, of that board alone; copied */
    size_t n;
};
int client_windows_new(const struct client_windows_opts *opts,
                       struct client_windows **ret, uw_error *err);
/* Ends that wait are answered with -EAGAIN. */
void client_windows_free(struct client_windows *w);
DEFINE_AUTO(struct client_windows *, client_windows_free);

/* One begins now; its id is the loop's time, so that no daemon after this one gives the
 * same.  A user that holds CLIENT_WINDOWS_PER_UID open loses the oldest.  -EBUSY:
 * CLIENT_WINDOWS_MAX are open; -ENOMEM.
 */
int client_windows_begin(struct client_windows *w, uid_t uid, uint64_t *ret_id,
                         uw_error *err);

/* The energy of one board in an ended window. */
struct client_window_board {
    int r;          /* 0, or -ENODATA: not known … */
    uw_error error; /* … because of that */
    double energy_j, half_j;
    enum meter_method method; /* the least sure one that had a part in it */
    uint32_t why;             /* enum meter_why */
};
struct client_window_result {
    uint64_t begin_ns, end_ns;
    size_t n;
    const struct client_window_board *board; /* borrowed for the callback */
};
/* r < 0: result is NULL. */
typedef void (*client_window_fn)(int r, const struct client_window_result *result,
                                 const char *text, void *user);

/* It ends now; fn once its energy can be told (a few seconds at most), never from inside.
 * uid: it must be that user's, or CLIENT_WINDOWS_ANYBODY.  -ENOENT: no such window of
 * theirs, -EALREADY: it is ending.
 */
int client_windows_end(struct client_windows *w, uid_t uid, uint64_t id,
                       client_window_fn fn, void *user, uw_error *err);
/* Forget it. */
int client_windows_drop(struct client_windows *w, uid_t uid, uint64_t id, uw_error *err);

/* A stretch was booked. */
void client_windows_total(struct client_windows *w,
                          const struct attribution_total *total);

size_t client_windows_count(const struct client_windows *w);

#endif
