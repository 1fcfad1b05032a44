/* Giving up root: a command that was started through sudo becomes the user who
 * called it, before it opens anything.
 */
#ifndef CLI_DROP_H
#define CLI_DROP_H

#include <sys/types.h>

#include "underwatt/error.h"

enum {
    DROP_NONE = 0, /* not root, or root's own */
    DROP_DONE = 1, /* was root through sudo; is *ret_uid for good now */
};

/* sudo_uid, sudo_gid: SUDO_UID and SUDO_GID of the environment, or NULL.  An
 * outcome above, -EINVAL (root, but the two make no sense) or -EPERM: then
 * nothing may be opened.
 */
int drop_sudo(const char *sudo_uid, const char *sudo_gid, uid_t *ret_uid, uw_error *err);

#endif
