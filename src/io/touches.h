/* Watches for timestamp updates of files (futimens(2) or utimensat(2)), by which a job
 * signals that its progress page has changed.  Uses one inotify(7) descriptor for all
 * files, which also works for a memfd; no file is opened or read.
 *
 * Writes into a mapping, and with write(2) into a memfd, are not detected.  A writer that
 * never rests is reported every TOUCHES_REST_MS.  Runs on the loop's thread.
 */
#ifndef IO_TOUCHES_H
#define IO_TOUCHES_H

#include "base/auto.h"
#include "underwatt/error.h"

struct loop;
struct touches;
struct touched;

enum { TOUCHES_REST_MS = 20 };

/* -ENOTSUP on a virtual loop; -errno of inotify_init1(2). */
int touches_new(struct loop *loop, struct touches **ret, uw_error *err);
/* Each file must have been removed. */
void touches_free(struct touches *t);
DEFINE_AUTO(struct touches *, touches_free);

/* Calls fn after each touch of fd's file, from the loop; fn may remove it.  -EEXIST: the
 * file is already watched; -EACCES: this process may not read it; other -errno of
 * inotify_add_watch(2).
 */
int touches_add(struct touches *t, int fd, void (*fn)(void *user), void *user,
                struct touched **ret);
void touches_remove(struct touched *file); /* NULL: nothing */

#endif
