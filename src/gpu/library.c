#include "gpu/library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* One part of the path; above: how many names lie between it and the file. */
static int check_part(const char *path, unsigned above, uw_error *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (above == 0 ? !S_ISREG(st.st_mode) : !S_ISDIR(st.st_mode))
        return fail(err, -EPERM, "%s: no plain %s", path, above ? "folder" : "file");
    if (st.st_uid != 0)
        return fail(err, -EPERM,
                    "%s belongs to user %u: root loads only what is root's own", path,
                    (unsigned)st.st_uid);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(above > 1 && st.st_mode & S_ISVTX))
        return fail(err, -EPERM,
                    "%s: others than root may write there: root does not load it", path);
    return 0;
}

int gpu_library_check(const char *path, bool root, char *ret, size_t size, uw_error *err)
{
    char real[PATH_MAX], part[PATH_MAX];

    if (path[0] != '/')
        return fail(err, -EINVAL, "'%s': the library's path must begin with /", path);
    if (!realpath(path, real))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    unsigned names = 0;
    for (const char *p = real; *p; p++)
        names += *p == '/' && p[1];
    for (size_t i = 0, above = names; root && real[i]; i++) {
        if (real[i] != '/')
            continue;
        (void)snprintf(part, sizeof part, "%.*s", i ? (int)i : 1, real);
        int r = check_part(part, (unsigned)above--, err);
        if (r < 0)
            return r;
    }
    int r = root ? check_part(real, 0, err) : 0;
    if (r < 0)
        return r;
    int n = snprintf(ret, size, "%s", real);
    if (n < 0 || (size_t)n >= size)
        return fail(err, -ENAMETOOLONG, "%s: the path is too long", path);
    return 0;
}
