#include "actuator/trust.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "underwatt/sim.h"

bool trust_is_privileged(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {0};

    if (geteuid() == 0 || getuid() != geteuid() || getauxval(AT_SECURE))
        return true;
    if (syscall(SYS_capget, &head, caps) < 0)
        return true;
    return caps[0].effective || caps[1].effective;
}

/* Each piece of path, from the file upwards. */
static int check_pieces(const char *path, uw_error *err)
{
    char piece[PATH_MAX];
    size_t len = strlen(path);

    memcpy(piece, path, len + 1);
    for (bool file = true;; file = false) {
        struct stat st;
        if (lstat(piece[0] ? piece : "/", &st) < 0)
            return fail(err, -errno, "%s: %s", piece, strerror(errno));
        bool open_to_others = (st.st_mode & (S_IWGRP | S_IWOTH)) != 0;
        bool sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX);
        if (st.st_uid != 0 || (open_to_others && !sticky) ||
            (file ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode)))
            return fail(
                err, -EPERM,
                "%s is not root's alone to write: with privilege it is not loaded",
                piece[0] ? piece : "/");
        char *slash = strrchr(piece, '/');
        if (!piece[0] || !slash)
            return 0;
        *slash = '\0';
    }
}

int trust_library(const char *path, char *ret, size_t size, uw_error *err)
{
    char real[PATH_MAX];

    if (path[0] != '/')
        return fail(err, -EINVAL, "%s: give the library's absolute path", path);
    if (!realpath(path, real))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (strlen(real) >= size)
        return fail(err, -ENAMETOOLONG, "%s: too long a path", path);
    if (trust_is_privileged()) {
        int r = check_pieces(real, err);
        if (r < 0)
            return r;
    }
    memcpy(ret, real, strlen(real) + 1);
    return 0;
}

int trust_state_dir(const char *library, char *ret, size_t size, uw_error *err)
{
    void *handle = dlopen(library ? library : "libnvidia-ml.so.1",
                          RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "uw_sim_info") : NULL;
    struct uw_sim_info info = {.size = sizeof info};
    uw_sim_info_fn ask;
    int n;

    memcpy(&ask, &symbol, sizeof ask);
    if (handle)
        (void)dlclose(handle); /* it stays loaded: the backend has it */
    if (ask) {
        int r = ask(&info);
        if ((r != 0 && r != 9) || info.state_dir[0] != '/' ||
            !memchr(info.state_dir, '\0', sizeof info.state_dir))
            return fail(err, -EIO, "the simulated library does not name its world");
        n = snprintf(ret, size, "%s/actuator", info.state_dir);
    } else if (geteuid() == 0) {
        n = snprintf(ret, size, "/run/underwatt");
    } else {
        return fail(err, -EPERM,
                    "no right to set power limits as uid %u: that takes root "
                    "(sudo underwatt …) or the underwatt service",
                    geteuid());
    }
    if (n < 0 || (size_t)n >= size)
        return fail(err, -ENAMETOOLONG, "%s: too long a path", info.state_dir);
    return 0;
}
