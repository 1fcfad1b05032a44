/* Gives up root: a command started through sudo switches to the calling user before it
 * opens anything.
 */
#ifndef CLI_DROP_H
#define CLI_DROP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "underwatt/error.h"

enum {
    DROP_NONE = 0, /* not root, or root did not use sudo */
    DROP_DONE = 1, /* switched permanently to *ret_uid */
};

/* sudo_uid, sudo_gid: the values of SUDO_UID and SUDO_GID, or NULL.  Returns an outcome
 * above, -EINVAL (root, but the values are inconsistent) or -EPERM.  After a failure the
 * command must not open anything.
 */
int drop_sudo(const char *sudo_uid, const char *sudo_gid, uid_t *ret_uid, uw_error *err);

#endif
