/* What the service gives up once everything is open and before the first client: all
 * capabilities but the one that setting limits takes, all files but those of the boards
 * and the journal, and all system calls but those that boards, journal and clients need.
 * See docs/design/actuator.md.
 */
#ifndef ACTUATOR_SANDBOX_H
#define ACTUATOR_SANDBOX_H

#include <stdbool.h>

#include "underwatt/error.h"

/* This thread's, and of all threads that it will start: CAP_SYS_ADMIN where it is there,
 * nothing else, in no set; nothing can be had back by a program that is started.
 * Without any capability nothing is done.
 */
int sandbox_drop_capabilities(uw_error *err);

/* What must stay within reach. */
struct sandbox_world {
    const char *journal;   /* its folder: files are made, written, renamed, removed */
    const char *simulated; /* folder of a simulated world; NULL: the boards are real */
};

enum { SANDBOX_E_NO_LANDLOCK = 1 }; /* this kernel has none, or it is turned off */

/* Landlock, for this thread and all that it will start: /proc and /sys are read only, the
 * boards' devices and the two folders can be used, every other file cannot be opened;
 * what is open stays open.  0 with the version of the kernel's interface (from 6 on
 * abstract sockets and processes outside are out of reach, too), or
 * SANDBOX_E_NO_LANDLOCK: nothing has changed.  Does nothing (version 0) under a
 * sanitizer, which writes files of its own.  Before sandbox_filter(), which refuses it;
 * it also loads what the C library would load later.
 */
int sandbox_files(const struct sandbox_world *world, unsigned *ret_version,
                  uw_error *err);

/* The filter, for all threads.  A call that is not on the list fails with EPERM (clone3
 * with ENOSYS: glibc then uses clone, which can be looked into).  Where the boards are
 * real no socket can be made or connected.  -ENOSYS: this kernel has no such filters.
 * Does nothing under a sanitizer, which needs more calls.
 */
int sandbox_filter(const struct sandbox_world *world, uw_error *err);
/* Whether this build has a filter at all. */
bool sandbox_has_filter(void);

#endif
