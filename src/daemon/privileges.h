/* Drops a daemon's privileges, before it opens anything. */
#ifndef DAEMON_PRIVILEGES_H
#define DAEMON_PRIVILEGES_H

#include "underwatt/error.h"

/* Changes to the named user with its groups, permanently; "root" stays root.  NULL: no
 * change, but -EINVAL as root, with a text that names the options. -ENOENT (no such
 * user), -EPERM (not root, and another user).
 */
int privileges_drop(const char *user, uw_error *err);

/* Disables core files and new privileges, sets the umask to 027, raises the limit of
 * descriptors, ignores SIGPIPE.
 */
int privileges_settle(uw_error *err);

#endif
