/* One daemon a state directory: a locked file with the holder's pid in it. */
#ifndef DAEMON_LOCKFILE_H
#define DAEMON_LOCKFILE_H

#include "underwatt/error.h"

/* The lock is held as long as *ret_fd is open, and ends with the process.  -EBUSY: the
 * text names the pid of who holds it; else open's -errno.
 */
int lockfile_take(const char *path, int *ret_fd, uw_error *err);

#endif
