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
#include "io/file.h"

enum { NOBODY = 65534 }; /* owns no file */

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

/* -EPERM: root cannot become nobody here (a container's root). */
static int read_as_nobody(const char *path, size_t max, char **ret_text, size_t *ret_len,
                          uw_error *err)
{
    int n = getgroups(0, NULL);
    auto_(mem_free) gid_t *groups = calloc(n > 0 ? (size_t)n : 1, sizeof *groups);
    auto_(mem_free) char *text = NULL;

    if (n < 0 || !groups || getgroups(n, groups) != n || setgroups(0, NULL) < 0)
        return -EPERM;
    int r = -EPERM;
    if (setegid(NOBODY) == 0 && seteuid(NOBODY) == 0)
        r = file_read(path, max, &text, ret_len, err);
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups((size_t)n, groups) < 0)
        return fail(err, -EIO, "cannot become root again: %s", strerror(errno));
    if (r == 0)
        *ret_text = take(text);
    return r;
}

int drop_file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
                   bool *ret_hidden, uw_error *err)
{
    bool hides = file_hides();
    int r = -EPERM;

    if (geteuid() == 0 && getuid() == 0 && getegid() == 0)
        r = read_as_nobody(path, max, ret_text, ret_len, err);
    if (r != -EPERM && r != -EACCES) {
        if (r == 0)
            *ret_hidden = false;
        return r;
    }
    r = file_read(path, max, ret_text, ret_len, err);
    if (r == 0)
        *ret_hidden = hides;
    return r;
}
