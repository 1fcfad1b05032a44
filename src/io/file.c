#include "io/file.h"

#include <errno.h>
#include <fcntl.h>
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

bool file_is_open(const char *path)
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
    int flag = file_is_open(path) ? 0 : O_NONBLOCK; /* open() waits for a pipe's writer */
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
