/* Windows of time that clients hold open in the daemon: energy of every board from a
 * begin to an end, as exact as a window of the sampler's however long it is.
 *
 * A short one is asked of the meters when it ends.  A long one outlives what meters
 * remember, so it takes in each stretch that the books have closed meanwhile
 * (windows_total()) and asks the meters for its two ends alone.
 */
#ifndef NODE_WINDOWS_H
#define NODE_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "core/meter/meter.h"
#include "io/loop.h"
#include "node/book.h"
#include "node/sampler.h"
#include "underwatt/error.h"

struct windows;

enum { WINDOWS_MAX = 1024, WINDOWS_PER_UID = 128 };
#define WINDOWS_ANYBODY ((uid_t)-2)

struct windows_opts {
    struct loop *loop;
    struct sampler *const *sampler; /* one a board, of that board alone; copied */
    size_t n;
};
int windows_new(const struct windows_opts *opts, struct windows **ret, uw_error *err);
/* Ends that wait are answered with -EAGAIN. */
void windows_free(struct windows *w);
DEFINE_AUTO(struct windows *, windows_free);

/* One begins now; its id is the loop's time, so that no daemon after this one gives the
 * same.  A user that holds WINDOWS_PER_UID open loses the oldest.  -EBUSY: WINDOWS_MAX
 * are open; -ENOMEM.
 */
int windows_begin(struct windows *w, uid_t uid, uint64_t *ret_id, uw_error *err);

/* The energy of one board in an ended window. */
struct window_board {
    int r;          /* 0, or -ENODATA: not known … */
    uw_error error; /* … because of that */
    double energy_j, half_j;
    enum meter_method method; /* the least sure one that had a part in it */
    uint32_t why;             /* enum meter_why */
};
struct window_result {
    uint64_t begin_ns, end_ns;
    size_t n;
    const struct window_board *board; /* borrowed for the callback */
};
/* r < 0: result is NULL. */
typedef void (*window_fn)(int r, const struct window_result *result, const char *text,
                          void *user);

/* It ends now; fn once its energy can be told (a few seconds at most), never from inside.
 * uid: it must be that user's, or WINDOWS_ANYBODY.  -ENOENT: no such window of
 * theirs, -EALREADY: it is ending.
 */
int windows_end(struct windows *w, uid_t uid, uint64_t id, window_fn fn, void *user,
                uw_error *err);
/* Forget it. */
int windows_drop(struct windows *w, uid_t uid, uint64_t id, uw_error *err);

/* A stretch was booked. */
void windows_total(struct windows *w, const struct book_total *total);

size_t windows_count(const struct windows *w);

#endif
