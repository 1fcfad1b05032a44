/* One daemon a state directory: a locked file that holds the daemon's pid. */
#ifndef DAEMON_LOCKFILE_H
#define DAEMON_LOCKFILE_H

#include "underwatt/error.h"

/* The lock is held until *ret_fd is closed or the process ends. -EBUSY: another process
 * holds it, the text names its pid; else open's -errno.
 */
int lockfile_take(const char *path, int *ret_fd, uw_error *err);

#endif
