/* Reads the files of signals, or asks underwatt-signals, and puts the values into the
 * store.
 *
 * Owns: a timer and a worker for each signal that has a file or a socket.  Touches: the
 * files and the socket, in workers' threads: a file that hangs delays no other.  Thread:
 * the loop's.
 * Explained in docs/policies.md#files.
 *
 * Only regular files of root or of this process's user that nobody else may write are
 * read; a link counts as its target.  An unchanged file is not read again within the
 * hour.
 */
#ifndef POLICY_SIGNAL_FILES_H
#define POLICY_SIGNAL_FILES_H

#include "base/auto.h"
#include "io/loop.h"
#include "policy/signal-source.h"
#include "policy/signals.h"
#include "signal/source.h"

enum { SIGNAL_FILE_MAX = 4 << 20 }; /* bytes */

struct signal_files;

/* sources: copied.  The store must outlive *ret.  changed: called after each read that
 * changed the store.  Nothing is read before signal_files_begin().
 */
int signal_files_new(struct loop *loop, struct signals *store,
                     const struct signal_sources *sources, void (*changed)(void *user),
                     void *user, struct signal_files **ret, uw_error *err);
/* A series as its source gives it now, in the signal's unit, including past values. */
struct signal_values {
    const char *name, *source, *unit; /* as of the store's view */
    const struct source_point *point;
    size_t n;
};
/* Calls fn with each series that the store was given, with the user of
 * signal_files_new().
 */
void signal_files_hear(struct signal_files *f,
                       void (*values)(const struct signal_values *v, void *user));
/* Declares each source in the store, whose indices must not change from now on, and reads
 * the sources at once.  Values of earlier sources for other signals are dropped.
 */
void signal_files_begin(struct signal_files *f);
/* The k-th forecast that has a file, as an index of the store; false: no such one. Call
 * it after signal_files_begin().
 */
bool signal_files_forecast(const struct signal_files *f, size_t k, size_t *ret_signal);
/* Does not wait: a read that hangs ends with its call, or with the loop. */
void signal_files_free(struct signal_files *f);
DEFINE_AUTO(struct signal_files *, signal_files_free);

#endif
