/* What a daemon gives up before it opens anything. */
#ifndef DAEMON_PRIVILEGES_H
#define DAEMON_PRIVILEGES_H

#include "underwatt/error.h"

/* Become the user of this name with its groups, for good; "root" stays root, as told.
 * NULL: as we are, but -EPERM as root, with the reason and the ways out.  -ENOENT (no
 * such user), -EPERM (not root, and another user).
 */
int privileges_drop(const char *user, uw_error *err);

/* No core files, no new privileges, a umask for files that are ours alone, room for
 * descriptors; SIGPIPE is ignored.
 */
int privileges_settle(uw_error *err);

#endif
