#include "cli/drop.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

static int id_of(const char *name, const char *text, uint64_t *ret, uw_error *err)
{
    uint64_t id;

    if (!text)
        return fail(err, -EINVAL, "%s is not set, though SUDO_UID is", name);
    int r = parse_u64(text, &id, err);
    if (r < 0)
        return fail_in(err, -EINVAL, "%s", name);
    if (id >= UINT32_MAX)
        return fail(err, -EINVAL, "%s: %s is no id", name, text);
    *ret = id;
    return 0;
}

static int become(uid_t uid, gid_t gid, uw_error *err)
{
    const struct passwd *pw = getpwuid(uid);
    int r = pw ? initgroups(pw->pw_name, gid) : setgroups(1, &gid);

    if (r < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
        return fail(err, -EPERM, "cannot become user %u: %s", (unsigned)uid,
                    strerror(errno));
    if (setuid(0) == 0 || geteuid() != uid || getegid() != gid)
        return fail(err, -EPERM, "cannot give up root for user %u", (unsigned)uid);
    return 0;
}

int drop_sudo(const char *sudo_uid, const char *sudo_gid, uid_t *ret_uid, uw_error *err)
{
    uint64_t uid = 0, gid = 0;

    if (geteuid() != 0 || !sudo_uid)
        return DROP_NONE;
    int r = id_of("SUDO_UID", sudo_uid, &uid, err);
    if (r < 0)
        return r;
    if (uid == 0) /* root itself called sudo */
        return DROP_NONE;
    r = id_of("SUDO_GID", sudo_gid, &gid, err);
    if (r < 0)
        return r;
    r = become((uid_t)uid, (gid_t)gid, err);
    if (r < 0)
        return r;
    *ret_uid = (uid_t)uid;
    return DROP_DONE;
}
