/* Outputs: files that are replaced whole, or written in place. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "io/file.h"

enum {
    LINKS_MAX = 40,           /* as in the kernel */
    TEMP_MAX = PATH_MAX + 16, /* a temporary file's name */
};

int file_write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return 0;
}

/* A file that is to be made, replaced or written in place.  Its folder is opened once:
 * where that is another user's, they could put another one in its place between two
 * steps.
 */
struct target {
    int folder;            /* O_PATH; AT_FDCWD: `name` is the path of an open file */
    struct stat folder_st; /* not of an open file's */
    char name[PATH_MAX];   /* in `folder` */
    bool there;            /* as a file, which is no link */
    bool mount;            /* which rename() cannot replace */
    struct stat st;        /* if it is there */
};

static void target_fini_p(struct target *t)
{
    if (t->folder >= 0)
        (void)close(t->folder);
}

/* Opens the folder of `path`, which is relative to t->folder, in its place; 0 or -errno.
 */
static int enter_folder(struct target *t, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    auto_(mem_free) char *folder = slash ? strndup(path, n) : strdup(".");

    if (!folder)
        return -ENOMEM;
    auto_(fd_close) int fd = openat(t->folder, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &t->folder_st) < 0)
        return -errno;
    target_fini_p(t);
    t->folder = fd_take(&fd);
    (void)snprintf(t->name, sizeof t->name, "%s", slash ? slash + 1 : path);
    return t->name[0] ? 0 : *path ? -EISDIR : -ENOENT;
}

/* Where the opened link leads to.  -EACCES: another user's link in a folder like /tmp,
 * which the kernel does not follow either (fs.protected_symlinks).
 */
static int read_link(int fd, const struct target *t, const struct stat *link,
                     char ret[PATH_MAX])
{
    const mode_t shared = S_ISVTX | S_IWOTH;

    if ((t->folder_st.st_mode & shared) == shared && link->st_uid != geteuid() &&
        link->st_uid != t->folder_st.st_uid)
        return -EACCES;
    ssize_t n = readlinkat(fd, "", ret, PATH_MAX);
    if (n < 0 || n == PATH_MAX)
        return n < 0 ? -errno : -ENAMETOOLONG;
    ret[n] = '\0';
    return 0;
}

/* Whether a file is mounted there, as by `docker run -v FILE:PATH`; unknown before Linux
 * 5.8.
 */
static bool is_mount(int fd)
{
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH, 0, &st) == 0 &&
           (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Finds the file that open() with O_CREAT would open, or without `follow` the one of that
 * name.  -errno: it can be neither made nor written.
 */
static int find_target(const char *path, bool follow, struct target *ret)
{
    char at[PATH_MAX];
    struct stat st;

    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return -ENAMETOOLONG;
    for (int i = 0; i <= LINKS_MAX; i++) {
        if (file_is_open(at)) {
            target_fini_p(ret);
            ret->folder = AT_FDCWD;
            memcpy(ret->name, at, sizeof at);
            ret->there = stat(at, &ret->st) == 0;
            return ret->there ? 0 : -errno;
        }
        int r = enter_folder(ret, at);
        if (r < 0)
            return r;
        auto_(fd_close) int fd =
            openat(ret->folder, ret->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
            return -errno;
        if (!S_ISLNK(st.st_mode)) {
            ret->there = true;
            ret->st = st;
            ret->mount = is_mount(fd);
            return S_ISDIR(st.st_mode) ? -EISDIR : 0;
        }
        if (!follow)
            return 0;
        r = read_link(fd, ret, &st, at);
        if (r < 0)
            return r;
    }
    return -ELOOP;
}

/* A device, a pipe, an open file. */
static bool is_appended(const struct target *t)
{
    return t->there && (t->folder == AT_FDCWD || !S_ISREG(t->st.st_mode));
}

static bool is_in_place(const struct target *t)
{
    return is_appended(t) || t->mount;
}

/* A pipe without a reader is an error: open() would wait for one without end. */
static int open_existing(const struct target *t)
{
    const int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd =
        openat(t->folder, t->name, t->folder == AT_FDCWD ? flags : flags | O_NOFOLLOW);

    return fd < 0 ? -errno : fd;
}

static int write_in_place(const struct target *t, const void *data, size_t len)
{
    auto_(fd_close) int fd = open_existing(t);
    int flags = is_appended(t) ? O_APPEND : 0;

    if (fd < 0)
        return fd;
    if (fcntl(fd, F_SETFL, flags) < 0 || (!flags && ftruncate(fd, 0) < 0))
        return -errno;
    int r = file_write_all(fd, data, len);
    return r >= 0 && !flags && fsync(fd) < 0 ? -errno : r;
}

/* Makes a file beside the target; its descriptor or -errno. */
static int make_temp(const struct target *t, char ret_name[TEMP_MAX])
{
    uint32_t random = 0;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -EIO;
    (void)snprintf(ret_name, TEMP_MAX, "%s.%08" PRIx32, t->name, random);
    int fd = openat(t->folder, ret_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

/* Owner and group of the replaced file, or its group, as far as this process may set
 * them; its mode.  Root gives no file away in a folder that others than its owner may
 * write, where they can have put the replaced file.
 */
static int keep_mode(int fd, const struct target *t)
{
    const struct stat *st = &t->st, *folder = &t->folder_st;
    bool gives =
        geteuid() != 0 || ((folder->st_uid == 0 || folder->st_uid == st->st_uid) &&
                           !(folder->st_mode & (S_IWGRP | S_IWOTH)));

    if (gives && fchown(fd, st->st_uid, st->st_gid) < 0)
        (void)!fchown(fd, (uid_t)-1, st->st_gid);
    return fchmod(fd, st->st_mode & 0777) < 0 ? -errno : 0;
}

/* The mode of a new file, as open() would set it. */
static mode_t default_mode(void)
{
    mode_t mask =
        umask(077); /* umask() can only be read by setting it; workers create no files */

    (void)umask(mask);
    return 0666 & ~mask;
}

/* The mode of the target, if it is there, or of a new file for FILE_MODE_UMASK. */
static int set_mode(int fd, const struct target *t, mode_t mode)
{
    if (mode == FILE_MODE_UMASK && t->there)
        return keep_mode(fd, t);
    if (mode == FILE_MODE_UMASK)
        mode = default_mode();
    return fchmod(fd, mode) < 0 ? -errno : 0;
}

static int sync_folder(const struct target *t)
{
    auto_(fd_close) int fd = openat(t->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    /* Some file systems cannot sync a folder; the error is ignored. */
    return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

static int replace(const struct target *t, const void *data, size_t len, mode_t mode)
{
    char temp[TEMP_MAX];
    auto_(fd_close) int fd = make_temp(t, temp);

    if (fd < 0)
        return fd;
    int r = file_write_all(fd, data, len);
    if (r >= 0)
        r = set_mode(fd, t, mode);
    if (r >= 0 && fsync(fd) < 0)
        r = -errno;
    if (r >= 0 && renameat(t->folder, temp, t->folder, t->name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(t->folder, temp, 0);
    return r < 0 ? r : sync_folder(t);
}

static int cannot(const char *path, int r, uw_error *err)
{
    return fail(err, r, "cannot write %s: %s", *path ? path : "''", strerror(-r));
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, uw_error *err)
{
    auto_(target_fini) struct target t = {.folder = AT_FDCWD};
    int r = find_target(path, mode == FILE_MODE_UMASK, &t);

    if (r >= 0)
        r = is_in_place(&t) ? write_in_place(&t, data, len)
                            : replace(&t, data, len, mode);
    return r < 0 ? cannot(path, r, err) : 0;
}

/* A pipe is not opened: its reader would see the end of the file. */
static int try_existing(const struct target *t)
{
    if (S_ISFIFO(t->st.st_mode))
        return faccessat(t->folder, t->name, W_OK, AT_EACCESS) < 0 ? -errno : 0;
    auto_(fd_close) int fd = open_existing(t);
    return fd < 0 ? fd : 0;
}

/* In a sticky folder rename() replaces a file only for the owner of either, and root. */
static bool may_rename(const struct target *t)
{
    uid_t me = geteuid();

    return !t->there || !(t->folder_st.st_mode & S_ISVTX) || me == 0 ||
           t->folder_st.st_uid == me || t->st.st_uid == me;
}

static int try_replace(const struct target *t)
{
    static const char page[4096]; /* a full disk may still have room for an empty file */
    char temp[TEMP_MAX];

    if (!may_rename(t))
        return -EPERM;
    int fd = make_temp(t, temp);
    if (fd < 0)
        return fd;
    int r = file_write_all(fd, page, sizeof page);
    if (close(fd) < 0 && r >= 0)
        r = -errno;
    if (unlinkat(t->folder, temp, 0) < 0 && r >= 0)
        r = -errno;
    return r;
}

int file_check_write(const char *path, uw_error *err)
{
    auto_(target_fini) struct target t = {.folder = AT_FDCWD};
    int r = find_target(path, true, &t);

    if (r >= 0 && t.there)
        r = try_existing(&t);
    if (r >= 0 && !is_in_place(&t))
        r = try_replace(&t);
    return r < 0 ? cannot(path, r, err) : 0;
}

bool file_is_same(const char *a, const char *b)
{
    auto_(target_fini) struct target of_a = {.folder = AT_FDCWD};
    auto_(target_fini) struct target of_b = {.folder = AT_FDCWD};

    return find_target(a, true, &of_a) == 0 && find_target(b, true, &of_b) == 0 &&
           !is_appended(&of_a) && !is_appended(&of_b) &&
           of_a.folder_st.st_dev == of_b.folder_st.st_dev &&
           of_a.folder_st.st_ino == of_b.folder_st.st_ino &&
           strcmp(of_a.name, of_b.name) == 0;
}
