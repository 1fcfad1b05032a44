#include "daemon/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"

static int busy(const char *path, int fd, uw_error *err)
{
    char pid[24] = "";
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);

    pid[n > 0 ? n : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return fail(err, -EBUSY, "%s: underwattd is already running%s%s", path,
                *pid ? ", process " : "", pid);
}

int lockfile_take(const char *path, int *ret_fd, uw_error *err)
{
    char pid[24];
    auto_(fd_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);

    if (fd < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? busy(path, fd, err)
                                    : fail(err, -errno, "%s: %s", path, strerror(errno));
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    *ret_fd = fd_take(&fd);
    return 0;
}
