/* Drops the service's privileges once everything is open and before the first client: all
 * capabilities except the one that setting limits needs, access to all files except those
 * of the boards and the journal, and all system calls except those that boards, journal
 * and clients need.  See docs/design/actuator.md.
 */
#ifndef ACTUATOR_SANDBOX_H
#define ACTUATOR_SANDBOX_H

#include <stdbool.h>

#include "underwatt/error.h"

/* Reduces the capabilities of this thread, and of all threads that it starts later, to
 * CAP_SYS_ADMIN where present; no set has any other, and no program that is started
 * regains one.  Without any capability nothing is done.
 */
int sandbox_drop_capabilities(uw_error *err);

/* Files that stay accessible. */
struct sandbox_world {
    const char
        *journal; /* the journal's folder: files are created, written, renamed, removed */
    const char *simulated; /* folder of a simulated world; NULL: the boards are real */
};

enum { SANDBOX_E_NO_LANDLOCK = 1 }; /* the kernel has no Landlock, or it is disabled */

/* Restricts files by Landlock, for this thread and all that it starts later: /proc and
 * /sys are read-only, the boards' devices and the two folders are usable, no other file
 * can be opened; open files stay open.  0 with the version of the kernel's interface
 * (from 6 on, abstract sockets and signals to outside processes are also blocked), or
 * SANDBOX_E_NO_LANDLOCK: nothing has changed.  Does nothing (version 0) under a
 * sanitizer, which writes files of its own.  Call it before sandbox_filter(), which
 * refuses it; it also preloads what the C library would load later.
 */
int sandbox_files(const struct sandbox_world *world, unsigned *ret_version,
                  uw_error *err);

/* Installs the seccomp filter for all threads.  A call that is not on the list fails with
 * EPERM (clone3 with ENOSYS: glibc then uses clone, whose arguments the filter can
 * inspect).  With real boards no socket can be created or connected.  -ENOSYS: the kernel
 * has no such filters.  Does nothing under a sanitizer, which needs more calls.
 */
int sandbox_filter(const struct sandbox_world *world, uw_error *err);
/* Whether this build has a filter at all. */
bool sandbox_has_filter(void);

#endif
