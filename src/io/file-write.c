/* Outputs: files that are replaced whole, or written in place. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "io/file.h"

enum { LINKS_MAX = 40 }; /* as in the kernel */

static int write_all(int fd, const char *data, size_t len)
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

/* The folder that path lies in, as an array to free(); NULL out of memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int sync_folder(const char *path)
{
    auto_(mem_free) char *folder = folder_of(path);
    if (!folder)
        return -ENOMEM;
    auto_(fd_close) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* Some file systems cannot sync a folder; the error is ignored. */
    return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

/* A file that is to be made or replaced. */
struct target {
    bool there;
    struct stat st;
    char path[PATH_MAX]; /* without links; of a file that is not there, of its own name */
};

/* Follows the links of the name itself, whose file is not there, as open() with O_CREAT
 * does.
 */
static void follow_links(char path[PATH_MAX])
{
    char to[PATH_MAX], from[PATH_MAX];

    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t n = readlink(path, to, sizeof to - 1);
        if (n <= 0)
            return;
        to[n] = '\0';
        const char *slash = strrchr(path, '/');
        int folder = to[0] == '/' || !slash ? 0 : (int)(slash - path) + 1;
        memcpy(from, path, PATH_MAX);
        int len = snprintf(path, PATH_MAX, "%.*s%s", folder, from, to);
        if (len >= PATH_MAX)
            return; /* no file can have this path */
    }
}

/* The kernel follows the links, which it refuses for another user's link in /tmp;
 * realpath() does not know that rule.
 */
static void find_target(const char *path, struct target *ret)
{
    auto_(fd_close) int fd = open(path, O_PATH | O_CLOEXEC);
    char name[40];
    struct stat st;

    ret->there = fd >= 0 && fstat(fd, &ret->st) == 0;
    if (!ret->there) {
        (void)snprintf(ret->path, sizeof ret->path, "%s", path);
        if (errno == ENOENT)
            follow_links(ret->path);
        return;
    }
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, ret->path, sizeof ret->path - 1);
    ret->path[n < 0 ? 0 : n] = '\0';
    if (stat(ret->path, &st) < 0 || st.st_ino != ret->st.st_ino ||
        st.st_dev != ret->st.st_dev) /* without /proc, or renamed since */
        (void)snprintf(ret->path, sizeof ret->path, "%s", path);
}

/* Owner and group of the replaced file, or its group, as far as this process may set
 * them; its mode.
 */
static int keep_mode(int fd, const struct stat *st)
{
    if (fchown(fd, st->st_uid, st->st_gid) < 0)
        (void)!fchown(fd, (uid_t)-1, st->st_gid);
    return fchmod(fd, st->st_mode & 0777) < 0 ? -errno : 0;
}

/* Fills the temporary file and renames it to path; 0 or -errno.  `kept`: the file whose
 * mode is kept, or NULL.
 */
static int fill_and_rename(int fd, const char *temp, const char *path, const void *data,
                           size_t len, mode_t mode, const struct stat *kept)
{
    int r = write_all(fd, data, len);

    if (r >= 0 && kept)
        r = keep_mode(fd, kept);
    else if (r >= 0 && fchmod(fd, mode) < 0)
        r = -errno;
    if (r >= 0 && fsync(fd) < 0)
        r = -errno;
    if (r >= 0 && rename(temp, path) < 0)
        r = -errno;
    if (r < 0)
        (void)unlink(temp);
    return r;
}

/* The mode of a new file, as open() would set it. */
static mode_t default_mode(void)
{
    mode_t mask =
        umask(077); /* umask() can only be read by setting it; workers create no files */

    (void)umask(mask);
    return 0666 & ~mask;
}

/* Whether rename() would replace a device, a pipe or the name of an open file. */
static bool is_in_place(const char *path, const struct stat *st)
{
    return file_is_open(path) || (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode));
}

/* A pipe without a reader is an error: open() would wait for one without end. */
static int write_in_place(const char *path, const void *data, size_t len, uw_error *err)
{
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY;
    auto_(fd_close) int fd = open(path, flags | O_NONBLOCK);
    int r =
        fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0 ? -errno : write_all(fd, data, len);

    return r < 0 ? fail(err, r, "%s: %s", path, strerror(-r)) : 0;
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, uw_error *err)
{
    struct target target;
    auto_(mem_free) char *temp = NULL;

    find_target(path, &target);
    if (target.there && is_in_place(path, &target.st))
        return write_in_place(path, data, len, err);
    bool keeps = target.there && mode == FILE_MODE_UMASK;
    const char *to = mode == FILE_MODE_UMASK ? target.path : path;
    if (mode == FILE_MODE_UMASK)
        mode = default_mode();
    if (asprintf(&temp, "%s.XXXXXX", to) < 0) {
        temp = NULL;
        return fail(err, -ENOMEM, "%s: out of memory", path);
    }
    auto_(fd_close) int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    int r = fill_and_rename(fd, temp, to, data, len, mode, keeps ? &target.st : NULL);
    if (r >= 0)
        r = sync_folder(to);
    return r < 0 ? fail(err, r, "%s: %s", path, strerror(-r)) : 0;
}

/* A pipe is not opened: its reader would see the end of the file. */
static int try_existing(const char *path, const struct stat *st)
{
    const int flags = O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

    if (S_ISDIR(st->st_mode))
        return -EISDIR;
    if (S_ISFIFO(st->st_mode))
        return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) < 0 ? -errno : 0;
    auto_(fd_close) int fd = open(path, flags);
    return fd < 0 ? -errno : 0;
}

static int try_new(const char *path)
{
    static const char page[4096]; /* a full disk may still have room for an empty file */
    auto_(mem_free) char *temp = NULL;

    if (asprintf(&temp, "%s.XXXXXX", path) < 0) {
        temp = NULL;
        return -ENOMEM;
    }
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, page, sizeof page);
    if (close(fd) < 0 && r >= 0)
        r = -errno;
    if (unlink(temp) < 0 && r >= 0)
        r = -errno;
    return r;
}

/* In a sticky folder rename() replaces a file only for the owner of either, and root. */
static int try_rename(const struct target *target)
{
    auto_(mem_free) char *folder = folder_of(target->path);
    uid_t me = geteuid();
    struct stat st;

    if (!folder)
        return -ENOMEM;
    if (stat(folder, &st) < 0)
        return -errno;
    return (st.st_mode & S_ISVTX) && me != 0 && st.st_uid != me && target->st.st_uid != me
               ? -EPERM
               : 0;
}

int file_check_write(const char *path, uw_error *err)
{
    struct target target;

    find_target(path, &target);
    int r = target.there ? try_existing(path, &target.st) : *path ? 0 : -ENOENT;
    if (r >= 0 && !(target.there && is_in_place(path, &target.st))) {
        r = target.there ? try_rename(&target) : 0;
        if (r >= 0)
            r = try_new(target.path);
    }
    return r < 0 ? fail(err, r, "cannot write %s: %s", path, strerror(-r)) : 0;
}

/* Where file_write() puts the file: without links; "" for what is written in place. */
static void find_place(const char *path, char *ret, size_t size)
{
    struct target target, above;

    ret[0] = '\0';
    find_target(path, &target);
    if (target.there && !is_in_place(path, &target.st))
        (void)snprintf(ret, size, "%s", target.path);
    auto_(mem_free) char *folder = target.there ? NULL : folder_of(target.path);
    if (!folder)
        return;
    const char *slash = strrchr(target.path, '/');
    find_target(folder, &above);
    if (above.there)
        (void)snprintf(ret, size, "%s/%s", above.path, slash ? slash + 1 : target.path);
}

bool file_is_same(const char *a, const char *b)
{
    char place_a[2 * PATH_MAX], place_b[sizeof place_a];

    if (strcmp(a, b) == 0)
        return true;
    find_place(a, place_a, sizeof place_a);
    find_place(b, place_b, sizeof place_b);
    return place_a[0] && strcmp(place_a, place_b) == 0;
}
