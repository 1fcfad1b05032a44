#include "sim/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

enum {
    DIR_MODE = 0755,
    FILE_MODE = 0644,
    LIB_MODE = 0755,
    SOCKET_MODE = 0666,
    BACKLOG = 64,
    LOCK_TRIES = 50
};

struct path {
    char text[SIM_SOCKET_MAX + 64];
};

/* Gives up ownership, as take() does for pointers. */
static int take_fd(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}

static struct path in(const char *dir, const char *name)
{
    struct path p;

    (void)snprintf(p.text, sizeof p.text, "%s/%s", dir, name);
    return p;
}

static const char *const names[] = {
    "state", "state.new",           "socket", "lib/libnvidia-ml.so.1",
    "log",   "lib/libnvidia-ml.so", "lib",    "lib/libnvidia-ml.so.1.new",
    "users",
};

/* Removes lock files that the actuator left in its folder and no process holds.  A
 * journal entry stays, as its cap must still be restored, and with it the folder.
 */
static void remove_actuator_locks(const char *path)
{
    struct path folder = in(path, "actuator");
    DIR *dir = opendir(folder.text);
    if (!dir)
        return;
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        size_t len = strlen(entry->d_name);
        if (len < 5 || strcmp(entry->d_name + len - 5, ".lock") != 0)
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        (void)close(fd);
    }
    (void)closedir(dir);
    (void)rmdir(folder.text);
}

static void remove_files(const char *dir)
{
    for (size_t i = 0; i < n_elements(names); i++)
        (void)unlink(in(dir, names[i]).text);
    (void)rmdir(in(dir, "lib").text);
    remove_actuator_locks(dir);
    (void)unlink(in(dir, "lock").text);
    (void)rmdir(dir);
}

static int take_lock(const char *dir, int *ret_fd, uw_error *err)
{
    char pid[16] = "?";
    struct path p = in(dir, "lock");

    auto_(fd_close) int fd = open(p.text, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return fail(err, -errno, "%s: %s", p.text, strerror(errno));
    bool got = false; /* a reader that tests the lock holds it for a moment */
    for (int i = 0; i < LOCK_TRIES && !got; i++)
        got = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!got) {
        ssize_t n = read(fd, pid, sizeof pid - 1);
        pid[n > 0 ? n : 0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        return fail(err, -EBUSY, "a simulated world already runs in %s (process %s)", dir,
                    pid);
    }
    /* The lock counts only while the path still names this file. */
    struct stat mine, named;
    if (fstat(fd, &mine) || stat(p.text, &named) || mine.st_ino != named.st_ino)
        return fail(err, -EBUSY, "%s is being removed: try again", dir);
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    /* Regardless of the umask: readers test this lock to see whether the world lives. */
    if (fchmod(fd, FILE_MODE) || ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n)
        return fail(err, -errno, "%s: %s", p.text, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

static int copy(int from, int to)
{
    char buf[65536];
    ssize_t n;

    while ((n = read(from, buf, sizeof buf)) > 0)
        for (ssize_t done = 0; done < n;) {
            ssize_t w = write(to, buf + done, (size_t)(n - done));
            if (w < 0)
                return -errno;
            done += w;
        }
    return n < 0 ? -errno : 0;
}

/* Copies, as the library finds its world by the path of its own file. */
static int copy_library(const char *dir, const char *library, uw_error *err)
{
    struct path fresh = in(dir, "lib/libnvidia-ml.so.1.new");
    struct path final = in(dir, "lib/libnvidia-ml.so.1");
    struct path other = in(dir, "lib/libnvidia-ml.so");

    if ((mkdir(in(dir, "lib").text, DIR_MODE) && errno != EEXIST) ||
        chmod(in(dir, "lib").text, DIR_MODE))
        return fail(err, -errno, "%s/lib: %s", dir, strerror(errno));
    auto_(fd_close) int from = open(library, O_RDONLY | O_CLOEXEC);
    if (from < 0)
        return fail(err, -errno, "%s: %s", library, strerror(errno));
    auto_(fd_close) int to =
        open(fresh.text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, LIB_MODE);
    if (to < 0)
        return fail(err, -errno, "%s: %s", fresh.text, strerror(errno));
    int r = copy(from, to);
    if (!r && (fchmod(to, LIB_MODE) || rename(fresh.text, final.text)))
        r = -errno;
    if (!r && (unlink(other.text) || 1) && symlink("libnvidia-ml.so.1", other.text))
        r = -errno;
    return r ? fail(err, r, "%s: %s", final.text, strerror(-r)) : 0;
}

static int make_page(const char *dir, struct sim_page **ret, uw_error *err)
{
    struct path p = in(dir, "state.new");

    auto_(fd_close) int fd =
        open(p.text, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    if (fd < 0 || ftruncate(fd, sizeof **ret) || fchmod(fd, FILE_MODE))
        return fail(err, -errno, "%s: %s", p.text, strerror(errno));
    void *page = mmap(NULL, sizeof **ret, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return fail(err, -errno, "%s: %s", p.text, strerror(errno));
    *ret = page;
    (*ret)->version = SIM_VERSION;
    (*ret)->bytes = sizeof **ret;
    return 0;
}

/* The file is empty: only the locks on it matter. */
static int make_users(const char *dir, uw_error *err)
{
    struct path p = in(dir, "users");

    (void)unlink(p.text); /* drops locks of processes that used an earlier world */
    auto_(fd_close) int fd =
        open(p.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd < 0 || fchmod(fd, FILE_MODE))
        return fail(err, -errno, "%s: %s", p.text, strerror(errno));
    return 0;
}

static int address(const char *dir, struct sockaddr_un *ret, uw_error *err)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(dir) >= SIM_SOCKET_MAX)
        return fail(err, -ENAMETOOLONG,
                    "the state directory's path has %zu characters, more than %d: %.60s…",
                    strlen(dir), SIM_SOCKET_MAX - 1, dir);
    (void)snprintf(ret->sun_path, sizeof ret->sun_path, "%.99s/socket", dir);
    return 0;
}

static int make_socket(const char *dir, int *ret_fd, uw_error *err)
{
    struct sockaddr_un addr;

    int r = address(dir, &addr, err);
    if (r)
        return r;
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(addr.sun_path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof addr) ||
        chmod(addr.sun_path, SOCKET_MODE) || listen(fd, BACKLOG))
        return fail(err, -errno, "%s: %s", addr.sun_path, strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

int statedir_trust(const char *path, uw_error *err)
{
    struct stat st;

    if (lstat(path, &st))
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return fail(err, -EPERM, "%s is not a directory", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return fail(err, -EPERM, "%s belongs to user %u", path, (unsigned)st.st_uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return fail(err, -EPERM, "%s can be written by others", path);
    return 0;
}

static int make_dir(const char *path, uw_error *err)
{
    if (mkdir(path, DIR_MODE) == 0)
        return chmod(path, DIR_MODE) ? fail(err, -errno, "%s: %s", path, strerror(errno))
                                     : 0;
    if (errno != EEXIST)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    return statedir_trust(path, err);
}

int statedir_make(const char *path, const char *library, struct statedir *ret,
                  uw_error *err)
{
    struct statedir dir = {.lock_fd = -1, .listen_fd = -1};
    struct sockaddr_un addr;

    int r = address(path, &addr, err);
    if (r)
        return r;
    memcpy(dir.path, path, strlen(path) + 1);
    r = make_dir(path, err);
    if (!r)
        r = take_lock(path, &dir.lock_fd, err);
    if (r)
        return r;
    r = copy_library(path, library, err);
    if (!r)
        r = make_users(path, err);
    if (!r)
        r = make_page(path, &dir.page, err);
    if (!r)
        r = make_socket(path, &dir.listen_fd, err);
    if (r) {
        statedir_remove(&dir);
        return r;
    }
    *ret = dir;
    return 0;
}

int statedir_publish(struct statedir *dir, uw_error *err)
{
    memcpy(dir->page->magic, SIM_MAGIC, sizeof dir->page->magic);
    if (rename(in(dir->path, "state.new").text, in(dir->path, "state").text))
        return fail(err, -errno, "%s/state: %s", dir->path, strerror(errno));
    return 0;
}

void statedir_log(const struct statedir *dir)
{
    int fd = open(in(dir->path, "log").text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                  FILE_MODE);

    if (fd < 0)
        return;
    (void)dup2(fd, STDERR_FILENO);
    (void)close(fd);
}

void statedir_remove(struct statedir *dir)
{
    if (dir->page) {
        __atomic_store_n(&dir->page->stopped, 1, __ATOMIC_RELEASE);
        (void)munmap(dir->page, sizeof *dir->page);
    }
    if (dir->listen_fd >= 0)
        (void)close(dir->listen_fd);
    remove_files(dir->path);
    if (dir->lock_fd >= 0)
        (void)close(dir->lock_fd);
    *dir = (struct statedir){.lock_fd = -1, .listen_fd = -1};
}

/* ---- readers ---- */

static bool lock_is_held(const char *dir)
{
    auto_(fd_close) int fd = open(in(dir, "lock").text, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
}

int statedir_map(const char *path, const struct sim_page **ret, uw_error *err)
{
    struct sockaddr_un addr;
    struct stat st;

    int r = address(path, &addr, err);
    if (r)
        return r;
    auto_(fd_close) int fd = open(in(path, "state").text, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return fail(err, STATEDIR_NONE, "no simulated world runs in %s", path);
    if (fd < 0 || fstat(fd, &st))
        return fail(err, -errno, "%s/state: %s", path, strerror(errno));
    if (!lock_is_held(path))
        return fail(err, STATEDIR_DEAD, "the simulated world in %s was killed", path);
    if (st.st_size != (off_t)sizeof **ret)
        return fail(err, -EPROTO, "%s belongs to another version of underwatt-sim", path);
    void *page = mmap(NULL, sizeof **ret, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        return fail(err, -errno, "%s/state: %s", path, strerror(errno));
    *ret = page;
    if ((*ret)->version == SIM_VERSION && memcmp((*ret)->magic, SIM_MAGIC, 8) == 0)
        return 0;
    (void)munmap(page, sizeof **ret);
    return fail(err, -EPROTO, "%s belongs to another version of underwatt-sim", path);
}

/* munmap() of a const page. */
static void unmap_const(const void *from, size_t size)
{
    void *p;

    memcpy(&p, &from, sizeof p);
    (void)munmap(p, size);
}

void statedir_unmap(const struct sim_page *page)
{
    if (page)
        unmap_const(page, sizeof *page);
}

int statedir_clean(const char *path, uw_error *err)
{
    struct sockaddr_un addr;
    int fd = -1;

    int r = address(path, &addr, err);
    if (!r)
        r = take_lock(path, &fd, err);
    if (r)
        return r;
    remove_files(path);
    (void)close(fd);
    return 0;
}

static int connect_world(const char *path, int *ret_fd, uw_error *err)
{
    struct sockaddr_un addr;

    int r = address(path, &addr, err);
    if (r)
        return r;
    auto_(fd_close) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&addr, sizeof addr))
        return fail(err, -errno, "no simulated world answers in %s (%s)", path,
                    strerror(errno));
    *ret_fd = take_fd(&fd);
    return 0;
}

int statedir_wait(int fd, struct sim_reply *ret, uw_error *err)
{
    ssize_t n;

    do {
        n = recv(fd, ret, sizeof *ret, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return fail(err, -errno, "the simulated world: %s", strerror(errno));
    if (n != (ssize_t)sizeof *ret)
        return fail(err, -EIO, "the simulated world has stopped");
    ret->text[sizeof ret->text - 1] = '\0';
    return 0;
}

int statedir_request(const char *path, const struct sim_request *request, int *ret_fd,
                     struct sim_reply *ret, uw_error *err)
{
    auto_(fd_close) int fd = -1;

    int r = connect_world(path, &fd, err);
    if (r)
        return r;
    if (send(fd, request, sizeof *request, MSG_NOSIGNAL) != (ssize_t)sizeof *request)
        return fail(err, -EIO, "the simulated world has stopped");
    r = statedir_wait(fd, ret, err);
    if (!r)
        *ret_fd = take_fd(&fd);
    return r;
}
