#include "io/store/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

/* The folder of path: "" is ".", the root is "/". */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

int guard_path(const char *path, char **ret, uw_error *err)
{
    auto_(mem_free) char *folder = NULL, *real = NULL;
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

    if (!base[0])
        return fail(err, -EINVAL, "'%s' names no file", path);
    folder = folder_of(path);
    if (!folder)
        return fail(err, -ENOMEM, "out of memory");
    real = realpath(folder, NULL);
    if (!real)
        return fail(err, -errno, "%s: %s", folder, strerror(errno));
    if (asprintf(ret, "%s/%s", strcmp(real, "/") == 0 ? "" : real, base) < 0)
        return fail(err, -ENOMEM, "out of memory");
    return 0;
}

/* A user who may rename files in the folder could replace the file. */
static int check_folder(const char *path, uw_error *err)
{
    auto_(mem_free) char *folder = folder_of(path);
    struct stat st;

    if (!folder)
        return fail(err, -ENOMEM, "out of memory");
    if (stat(folder, &st) < 0)
        return fail(err, -errno, "%s: %s", folder, strerror(errno));
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return fail(err, -EPERM, "%s: belongs to uid %u, not to us (%u) or root", folder,
                    st.st_uid, geteuid());
    if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
        return fail(err, -EPERM, "%s: others may write in it (mode %03o)", folder,
                    st.st_mode & 0777u);
    return 0;
}

static int check_file(const char *path, const struct stat *st, uw_error *err)
{
    if (!S_ISREG(st->st_mode))
        return fail(err, -EPERM, "%s: is a link, a folder or a device, not a file", path);
    if (st->st_uid != geteuid())
        return fail(err, -EPERM, "%s: belongs to uid %u, not to us (%u)", path,
                    st->st_uid, geteuid());
    if (st->st_nlink > 1)
        return fail(err, -EPERM, "%s: has another name, too (a hard link)", path);
    if (st->st_mode & 022)
        return fail(err, -EPERM, "%s: others may write it (mode %03o)", path,
                    st->st_mode & 0777u);
    return 0;
}

/* SQLite's own files beside it. */
static int check_beside(const char *path, uw_error *err)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    char name[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < n_elements(ends); i++) {
        int n = snprintf(name, sizeof name, "%s%s", path, ends[i]);
        if (n < 0 || (size_t)n >= sizeof name)
            return fail(err, -ENAMETOOLONG, "%s: the name is too long", path);
        if (lstat(name, &st) < 0)
            continue;
        int r = check_file(name, &st, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int guard_open(const char *path, int *ret_fd, bool *ret_alien, uw_error *err)
{
    static const char magic[16] = "SQLite format 3";
    char head[sizeof magic];
    struct stat st;

    int r = check_folder(path, err);
    if (r < 0)
        return r;
    auto_(fd_close) int fd =
        open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0640);
    if (fd < 0)
        return fail(err, errno == ELOOP || errno == EISDIR ? -EPERM : -errno, "%s: %s",
                    path, errno == ELOOP ? "is a link" : strerror(errno));
    if (fstat(fd, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    r = check_file(path, &st, err);
    if (r >= 0)
        r = check_beside(path, err);
    if (r < 0)
        return r;
    ssize_t n = pread(fd, head, sizeof head, 0);
    if (n < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return fail(err, errno == EWOULDBLOCK ? -EBUSY : -errno, "%s: %s", path,
                    errno == EWOULDBLOCK ? "another process writes this ledger"
                                         : strerror(errno));
    *ret_alien =
        n > 0 && ((size_t)n < sizeof head || memcmp(head, magic, sizeof head) != 0);
    *ret_fd = fd_take(&fd);
    return 0;
}

int guard_look(const char *path, uw_error *err)
{
    struct stat st;

    int r = check_folder(path, err);
    if (r < 0)
        return r;
    if (lstat(path, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    r = check_file(path, &st, err);
    return r < 0 ? r : check_beside(path, err);
}

bool guard_same(const char *path, int fd)
{
    struct stat a, b;

    return lstat(path, &a) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static const char *const beside[GUARD_BESIDE] = {"-wal", "-shm"};

void guard_beside(const char *path, struct guard_file ret[GUARD_BESIDE])
{
    char name[PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < GUARD_BESIDE; i++) {
        ret[i] = (struct guard_file){0};
        (void)snprintf(name, sizeof name, "%.4000s%s", path, beside[i]);
        if (lstat(name, &st) == 0)
            ret[i] = (struct guard_file){st.st_dev, st.st_ino};
    }
}

static int rename_free(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

void guard_clear(const char *path, const struct guard_file ours[GUARD_BESIDE])
{
    struct guard_file now[GUARD_BESIDE];
    char name[PATH_MAX], to[PATH_MAX];
    struct stat st;

    guard_beside(path, now);
    for (size_t i = 0; i < GUARD_BESIDE; i++) {
        if (!now[i].ino || now[i].ino != ours[i].ino || now[i].dev != ours[i].dev)
            continue;
        (void)snprintf(name, sizeof name, "%.4000s%s", path, beside[i]);
        (void)snprintf(to, sizeof to, "%.4000s%s.left", path, beside[i]);
        bool rows = i == 0 && lstat(name, &st) == 0 && st.st_size > 0;
        if (!rows || rename_free(name, to) < 0)
            (void)unlink(name);
    }
}

int guard_aside(const char *path, const char *why, int64_t utc_ms, uw_error *err)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    char name[PATH_MAX], from[PATH_MAX], to[PATH_MAX], date[32];
    time_t at = (time_t)(utc_ms / 1000);
    struct tm tm;
    int r = -EEXIST;

    if (!gmtime_r(&at, &tm) || !strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", &tm))
        return fail(err, -EINVAL, "%s: no date", path);
    for (unsigned i = 0; i < 100 && r == -EEXIST; i++) {
        int n = i ? snprintf(name, sizeof name, "%s.%s-%s.%u", path, why, date, i)
                  : snprintf(name, sizeof name, "%s.%s-%s", path, why, date);
        if (n < 0 || (size_t)n >= sizeof name - 16)
            return fail(err, -ENAMETOOLONG, "%s: the name is too long", path);
        r = rename_free(path, name);
    }
    if (r < 0)
        return fail(err, r, "%s: cannot be renamed: %s", path, strerror(-r));
    for (size_t i = 0; i < n_elements(ends); i++) {
        (void)snprintf(from, sizeof from, "%.4000s%s", path, ends[i]);
        (void)snprintf(to, sizeof to, "%.4000s%s", name, ends[i]);
        (void)rename_free(from, to);
    }
    (void)fail(err, 0, "%.150s", name);
    return 0;
}
