#include "gpu/library.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

struct trusted {
    uid_t owner; /* allowed beside root */
    bool folder; /* the path must lead to a folder; else to a regular file */
};

/* Checks one part of the path; above: the number of path components below it. */
static int check_part(const char *path, unsigned above, const struct trusted *t,
                      uw_error *err)
{
    struct stat st;
    bool folder = above > 0 || t->folder;

    if (lstat(path, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (folder ? !S_ISDIR(st.st_mode) : !S_ISREG(st.st_mode))
        return fail(err, -EPERM, "%s: not a regular %s", path,
                    folder ? "folder" : "file");
    if (st.st_uid != 0 && st.st_uid != t->owner)
        return fail(err, -EPERM,
                    t->folder
                        ? "%s belongs to user %u: only root or the reader may own it"
                        : "%s belongs to user %u: root loads only what is root's own",
                    path, (unsigned)st.st_uid);
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(above > 1 && st.st_mode & S_ISVTX))
        return fail(
            err, -EPERM,
            t->folder
                ? "%s: group or others may write there: refused"
                : "%s: users other than root may write there: root does not load it",
            path);
    return 0;
}

/* Checks every part of a path without symbolic links. */
static int check_parts(const char *real, const struct trusted *t, uw_error *err)
{
    char part[PATH_MAX];
    unsigned above = 0;
    int r = 0;

    for (const char *p = real; *p; p++)
        above += *p == '/' && p[1];
    for (size_t i = 0; real[i] && r == 0; i++) {
        if (real[i] != '/' || above == 0)
            continue;
        (void)snprintf(part, sizeof part, "%.*s", i ? (int)i : 1, real);
        r = check_part(part, above--, t, err);
    }
    return r < 0 ? r : check_part(real, 0, t, err);
}

static int give(const char *path, const char *real, char *ret, size_t size, uw_error *err)
{
    int n = snprintf(ret, size, "%s", real);

    if (n < 0 || (size_t)n >= size)
        return fail(err, -ENAMETOOLONG, "%s: the path is too long", path);
    return 0;
}

int gpu_library_check(const char *path, bool root, char *ret, size_t size, uw_error *err)
{
    char real[PATH_MAX];

    if (path[0] != '/')
        return fail(err, -EINVAL, "'%s' is not an absolute path", path);
    if (!realpath(path, real))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = root ? check_parts(real, &(struct trusted){.owner = 0}, err) : 0;
    return r < 0 ? r : give(path, real, ret, size, err);
}

int gpu_folder_check(const char *path, uid_t owner, char *ret, size_t size, uw_error *err)
{
    char real[PATH_MAX];

    if (path[0] != '/')
        return fail(err, -EINVAL, "'%s': the folder's path must begin with /", path);
    if (!realpath(path, real))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = check_parts(real, &(struct trusted){owner, true}, err);
    return r < 0 ? r : give(path, real, ret, size, err);
}
