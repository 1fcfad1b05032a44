/* Looks at the files of signals, or asks underwatt-signals, and puts what they hold into
 * the store.
 *
 * Owns: a timer and a worker for each signal that has a file or a socket.  Touches: the
 * files and the socket, in workers' threads: one that hangs delays nobody else.  Thread:
 * the loop's.
 * Explained in docs/policies.md#files.
 *
 * Read are regular files of root or of this process's user that nobody else may write; a
 * link counts as the file that it leads to.  A file that is as it was is not read again
 * within the hour.
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

/* sources: copied.  The store must outlive *ret.  changed: after each look that told the
 * store something.  Looks at nothing before signal_files_begin().
 */
int signal_files_new(struct loop *loop, struct signals *store,
                     const struct signal_sources *sources, void (*changed)(void *user),
                     void *user, struct signal_files **ret, uw_error *err);
/* A series as its source has it now, in the signal's unit: of what is over, too. */
struct signal_values {
    const char *name, *source, *unit; /* as of the store's view */
    const struct source_point *point;
    size_t n;
};
/* Called with each one that the store was told, with the user of signal_files_new(). */
void signal_files_hear(struct signal_files *f,
                       void (*values)(const struct signal_values *v, void *user));
/* Each source is declared in the store, whose indices must stay from now on.  The first
 * look is at once.  What sources of before gave for other signals is forgotten.
 */
void signal_files_begin(struct signal_files *f);
/* The k-th forecast that has a file, as an index of the store; false: there is none. Once
 * signal_files_begin() was called.
 */
bool signal_files_forecast(const struct signal_files *f, size_t k, size_t *ret_signal);
/* Waits for nothing: a look that hangs ends with its call, or with the loop. */
void signal_files_free(struct signal_files *f);
DEFINE_AUTO(struct signal_files *, signal_files_free);

#endif
