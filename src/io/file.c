#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

enum { LINKS_MAX = 40 }; /* as in the kernel */

/* A path in errors. */
static const char *shown(const char *path)
{
    return *path ? path : "''";
}

/* Read up to max + 1 bytes into a buffer that grows; 0 or -errno. */
static int read_all(int fd, size_t max, char **ret_text, size_t *ret_len)
{
    size_t cap = 4096, len = 0;
    auto_(mem_free) char *text = malloc(cap);

    if (!text)
        return -ENOMEM;
    for (;;) {
        ssize_t n = read(fd, text + len, cap - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
        if (len > max)
            return -EFBIG;
        if (cap - len > 1)
            continue;
        char *more = realloc(text, cap * 2);
        if (!more)
            return -ENOMEM;
        text = more;
        cap *= 2;
    }
    text[len] = '\0';
    *ret_len = len;
    *ret_text = take(text);
    return 0;
}

static int read_opened(int fd, const char *path, size_t max, char **ret_text,
                       size_t *ret_len, uw_error *err)
{
    size_t len = 0;
    int r = read_all(fd, max, ret_text, &len);

    if (r == -EFBIG)
        return fail(err, r, "%s: larger than %zu bytes", path, max);
    if (r < 0)
        return fail(err, r, "%s: %s", path, strerror(-r));
    if (ret_len)
        *ret_len = len;
    return 0;
}

/* Whether path names a file that a process has open. */
static bool is_open_file(const char *path)
{
    static const char *const open_files[] = {"/dev/std", "/dev/fd/", "/proc/"};

    for (size_t i = 0; i < n_elements(open_files); i++)
        if (strncmp(path, open_files[i], strlen(open_files[i])) == 0)
            return true;
    return false;
}

int file_read(const char *path, size_t max, char **ret_text, size_t *ret_len,
              uw_error *err)
{
    int flag = is_open_file(path) ? 0 : O_NONBLOCK; /* open() waits for a pipe's writer */
    auto_(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | flag);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return fail(err, -errno, "%s: %s", shown(path), strerror(errno));
    if (flag && S_ISFIFO(st.st_mode))
        return fail(err, -EINVAL, "%s: not a regular file", path);
    if (flag && fcntl(fd, F_SETFL, 0) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    return read_opened(fd, path, max, ret_text, ret_len, err);
}

/* ---- reading in a thread, as a file system may hang ---- */

/* Owned by the thread and by the caller that waits for it; the last of them frees it. */
struct apart {
    atomic_uint refs;
    atomic_bool done; /* the members from r on are final */
    char *path;
    size_t max;
    bool owned; /* file_check_owned() */
    int end_fd; /* closed by the thread when it is done */
    int r;
    struct stat st;
    char *text;
    size_t len;
    uw_error error;
};

static atomic_uint n_apart; /* threads that have not returned */

bool file_hangs(void)
{
    return atomic_load(&n_apart) > 0;
}

static void apart_unref(struct apart *a)
{
    if (!a || atomic_fetch_sub(&a->refs, 1) > 1)
        return;
    free(a->path);
    free(a->text);
    free(a);
}
DEFINE_AUTO(struct apart *, apart_unref);

int file_check_owned(const char *path, const struct stat *st, uw_error *err)
{
    if (!S_ISREG(st->st_mode))
        return fail(err, -EINVAL, "%s: not a regular file", path);
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return fail(err, -EPERM,
                    "%s: belongs to user %u: it must be root's or this program's", path,
                    (unsigned)st->st_uid);
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return fail(err, -EPERM, "%s: group or others may write it", path);
    return 0;
}

static int read_regular(struct apart *a, uw_error *err)
{
    const char *path = a->path;
    /* a pipe without a writer must not block, and a terminal not become this process's */
    auto_(fd_close) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &a->st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISREG(a->st.st_mode))
        return fail(err, -EINVAL, "%s: not a regular file", path);
    int r = a->owned ? file_check_owned(path, &a->st, err) : 0;
    return r < 0 ? r : read_opened(fd, path, a->max, &a->text, &a->len, err);
}

static void *apart_main(void *user)
{
    struct apart *a = user;
    int fd = a->end_fd;

    a->r = read_regular(a, &a->error);
    atomic_fetch_sub(&n_apart, 1);
    atomic_store(&a->done, true);
    apart_unref(a);
    (void)close(fd);
    return NULL;
}

/* All signals stay with the caller's thread. */
static int apart_start(struct apart *a)
{
    sigset_t all, old;
    pthread_t thread;

    atomic_fetch_add(&a->refs, 1);
    atomic_fetch_add(&n_apart, 1);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int r = pthread_create(&thread, NULL, apart_main, a);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == 0) {
        (void)pthread_detach(thread);
        return 0;
    }
    atomic_fetch_sub(&n_apart, 1);
    apart_unref(a);
    return -r;
}

static struct apart *apart_new(const char *path, size_t max, bool owned)
{
    auto_(apart_unref) struct apart *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    atomic_init(&a->refs, 1);
    a->max = max;
    a->owned = owned;
    a->path = strdup(path);
    return a->path ? take(a) : NULL;
}

/* Waits for the thread; *ret holds the result, release it with apart_unref(). */
static int read_apart(const char *path, size_t max, bool owned, int ms,
                      struct apart **ret, uw_error *err)
{
    auto_(apart_unref) struct apart *a = apart_new(path, max, owned);
    int ends[2];

    if (!a)
        return fail(err, -ENOMEM, "%s: out of memory", path);
    if (atomic_load(&n_apart) >= FILE_HANGING_MAX)
        return fail(err, -EBUSY, "%s: earlier reads of files have not returned", path);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    auto_(fd_close) int wait_fd = ends[0];
    a->end_fd = ends[1];
    int r = apart_start(a);
    if (r < 0) {
        (void)close(ends[1]);
        return fail(err, r, "%s: no thread: %s", path, strerror(-r));
    }
    struct pollfd p = {.fd = wait_fd, .events = POLLIN};
    while (poll(&p, 1, ms) < 0 && errno == EINTR)
        ;
    if (!atomic_load(&a->done))
        return fail(err, -ETIMEDOUT, "%s: the file system does not answer", path);
    if (a->r < 0)
        return fail(err, a->r, "%s", a->error.text);
    *ret = take(a);
    return 0;
}

int file_read_regular(const char *path, size_t max, int ms, char **ret_text,
                      size_t *ret_len, uw_error *err)
{
    auto_(apart_unref) struct apart *a = NULL;
    int r = read_apart(path, max, false, ms, &a, err);

    if (r < 0 || !a)
        return r;
    *ret_text = take(a->text);
    if (ret_len)
        *ret_len = a->len;
    return 0;
}

int file_read_owned(const char *path, size_t max, int ms, char **ret_text,
                    size_t *ret_len, struct stat *ret_st, uw_error *err)
{
    auto_(apart_unref) struct apart *a = NULL;
    int r = read_apart(path, max, true, ms, &a, err);

    if (r < 0 || !a)
        return r;
    *ret_text = take(a->text);
    *ret_len = a->len;
    *ret_st = a->st;
    return 0;
}

bool file_hides(void)
{
    return geteuid() == 0 || getuid() != geteuid() || getgid() != getegid() ||
           getauxval(AT_SECURE);
}

int file_check_read(const char *path, uw_error *err)
{
    struct stat st;

    int r = stat(path, &st) < 0 ? -errno : S_ISDIR(st.st_mode) ? -EISDIR : 0;
    if (r == 0 && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) < 0)
        r = -errno;
    return r < 0 ? fail(err, r, "cannot read %s: %s", shown(path), strerror(-r)) : 0;
}

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
    return is_open_file(path) || (!S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode));
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

/* Makes one folder; 0 also if it exists. */
static int make_dir(const char *path, mode_t mode)
{
    struct stat st;

    if (mkdir(path, mode) == 0)
        return 0;
    int r = -errno;
    /* A read-only parent gives another errno than EEXIST for an existing folder. */
    if (stat(path, &st) < 0)
        return r;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int file_make_dirs(const char *path, mode_t mode, uw_error *err)
{
    auto_(mem_free) char *part = strdup(path);

    if (!part)
        return fail(err, -ENOMEM, "%s: out of memory", path);
    for (char *p = part; *p; p++) {
        if (p == part || *p != '/')
            continue;
        *p = '\0';
        int r = make_dir(part, mode);
        if (r < 0)
            return fail(err, r, "%s: %s", part, strerror(-r));
        *p = '/';
    }
    int r = make_dir(part, mode);
    return r < 0 ? fail(err, r, "%s: %s", part, strerror(-r)) : 0;
}

int file_runtime_path(const char *xdg_runtime_dir, const char *name, uid_t uid, char *ret,
                      size_t size, uw_error *err)
{
    int n;

    if (!xdg_runtime_dir || !*xdg_runtime_dir)
        n = snprintf(ret, size, "/tmp/%s-%ju", name, (uintmax_t)uid);
    else if (*xdg_runtime_dir != '/')
        return fail(err, -EINVAL, "XDG_RUNTIME_DIR: '%s' is not an absolute path",
                    xdg_runtime_dir);
    else
        n = snprintf(ret, size, "%s/%s", xdg_runtime_dir, name);
    if (n < 0 || (size_t)n >= size)
        return fail(err, -ENAMETOOLONG,
                    "the runtime directory's path has more than %zu bytes", size - 1);
    return 0;
}

int file_private_dir(const char *path, uid_t uid, uw_error *err)
{
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (lstat(path, &st) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (S_ISLNK(st.st_mode))
        return fail(err, -EPERM, "%s: is a link, not a folder", path);
    if (!S_ISDIR(st.st_mode))
        return fail(err, -ENOTDIR, "%s: is not a folder", path);
    if (st.st_uid != uid)
        return fail(err, -EPERM, "%s: belongs to uid %ju, not to %ju", path,
                    (uintmax_t)st.st_uid, (uintmax_t)uid);
    if (st.st_mode & 077)
        return fail(err, -EPERM, "%s: is open to others (mode %04o, not 0700)", path,
                    (unsigned)st.st_mode & 07777);
    return 0;
}

int file_own_dir(char *path, size_t size, uid_t uid, uw_error *err)
{
    size_t len = strlen(path);
    int r = file_private_dir(path, uid, err);

    if (r != -EPERM && r != -ENOTDIR)
        return r;
    if (snprintf(path + len, size - len, "-XXXXXX") >= (int)(size - len))
        return fail(err, -ENAMETOOLONG, "%.*s: the path is too long", (int)len, path);
    return mkdtemp(path) ? 1 : fail(err, -errno, "%s: %s", path, strerror(errno));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

int file_program_dir(char *ret, size_t size, bool *ret_built)
{
    ssize_t n = readlink("/proc/self/exe", ret, size - 1);

    if (n < 0)
        return -errno;
    ret[n] = '\0';
    char *slash = strrchr(ret, '/');
    if ((size_t)n == size - 1 || !slash)
        return -ENAMETOOLONG;
    *slash = '\0';
    *ret_built = ends_with(ret, "/src/cli") || ends_with(ret, "/src/daemon");
    return 0;
}
