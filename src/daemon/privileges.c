#include "daemon/privileges.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

enum { DESCRIPTORS = 4096, NAMES_SIZE = 16384 };

static int become(const struct passwd *pw, uw_error *err)
{
    if (initgroups(pw->pw_name, pw->pw_gid) < 0 ||
        setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
        setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
        return fail(err, -errno, "cannot become user %s: %s", pw->pw_name,
                    strerror(errno));
    if (pw->pw_uid != 0 && setuid(0) == 0)
        return fail(err, -EPERM, "user %s can still become root", pw->pw_name);
    return 0;
}

int privileges_drop(const char *user, uw_error *err)
{
    struct passwd buf, *pw = NULL;

    if (!user && geteuid() == 0)
        return fail(
            err, -EINVAL,
            "will not run as root, as it needs no root rights: --user NAME changes "
            "to that user first (--user root stays root)");
    if (!user)
        return 0;
    auto_(mem_free) char *names = malloc(NAMES_SIZE);
    if (!names)
        return fail(err, -ENOMEM, "out of memory");
    int r = getpwnam_r(user, &buf, names, NAMES_SIZE, &pw);
    if (r || !pw)
        return fail(err, r ? -r : -ENOENT, "--user %.60s: %s", user,
                    r ? strerror(r) : "no such user");
    if (pw->pw_uid == geteuid() && getuid() == geteuid())
        return 0;
    return become(pw, err);
}

int privileges_settle(uw_error *err)
{
    static const struct rlimit no_core;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct rlimit files;

    (void)umask(027);
    if (sigaction(SIGPIPE, &ignore, NULL) < 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail(err, -errno, "cannot give up privileges: %s", strerror(errno));
    (void)setrlimit(RLIMIT_CORE, &no_core);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < DESCRIPTORS) {
        files.rlim_cur = files.rlim_max < DESCRIPTORS ? files.rlim_max : DESCRIPTORS;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    return 0;
}
