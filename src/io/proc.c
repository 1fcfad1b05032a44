#include "io/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/utf8.h"
#include "io/file.h"

enum {
    TEXT_MAX = 4096,
    CMDLINE_MAX = 1 << 16,
    PATH_ROOM = 256,
    STAT_START = 22,
    STAT_SESSION = 6
};

/* Reads up to size bytes of a file of the folder; the rest is cut.  The kernel renders
 * these files at the first read: a shorter result is complete.
 */
static int read_some(int dir, const char *name, char *ret, size_t size, size_t *ret_n)
{
    ssize_t got;

    auto_(fd_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    do
        got = read(fd, ret, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno; /* ESRCH: the process has ended */
    *ret_n = (size_t)got;
    return 0;
}

static bool number(const char **p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;
    const char *at = *p;

    while (at < end && *at >= '0' && *at <= '9') {
        if (v > (UINT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(*at++ - '0');
    }
    if (at == *p)
        return false;
    *p = at;
    *ret = v;
    return true;
}

static bool pid_number(const char **p, const char *end, pid_t *ret)
{
    uint64_t v;

    if (!number(p, end, &v) || v > INT_MAX)
        return false;
    *ret = (pid_t)v;
    return true;
}

/* The field after n blanks. */
static const char *skip(const char *p, const char *end, int n)
{
    while (p < end && n > 0)
        n -= *p++ == ' ';
    return n == 0 ? p : end;
}

int proc_parse_stat(const char *text, size_t n, struct proc_facts *ret)
{
    const char *end = text + n, *p = text, *open, *close;
    struct proc_facts f = {0};
    enum { PPID = 4 };

    if (!pid_number(&p, end, &f.pid) || end - p < 2 || p[0] != ' ' || p[1] != '(')
        return -EINVAL;
    open = p + 2;
    close = memrchr(open, ')', (size_t)(end - open)); /* a name may hold ") 1 (" */
    if (!close)
        return -EINVAL;
    size_t len = (size_t)(close - open);
    memcpy(f.comm, open, len < sizeof f.comm ? len : sizeof f.comm - 1);
    p = skip(close, end, PPID - 2);
    if (!pid_number(&p, end, &f.ppid))
        return -EINVAL;
    p = skip(p, end, STAT_SESSION - PPID);
    if (p < end && *p == '-') /* none */
        p = skip(p, end, 0) + 1;
    if (!pid_number(&p, end, &f.session))
        return -EINVAL;
    p = skip(p, end, STAT_START - STAT_SESSION);
    if (!number(&p, end, &f.start))
        return -EINVAL;
    ret->pid = f.pid;
    ret->ppid = f.ppid;
    ret->session = f.session;
    ret->start = f.start;
    memcpy(ret->comm, f.comm, sizeof ret->comm);
    return 0;
}

int proc_parse_status(const char *text, size_t n, uid_t *ret_uid)
{
    static const char key[] = "Uid:";
    const char *p = text, *end = text + n;

    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (!eol) /* a line that was cut off does not count */
            return -EINVAL;
        if ((size_t)(eol - p) > strlen(key) && memcmp(p, key, strlen(key)) == 0) {
            uint64_t uid;
            p += strlen(key);
            while (p < eol && (*p == '\t' || *p == ' '))
                p++;
            if (!number(&p, eol, &uid) || uid > UINT32_MAX ||
                (p < eol && *p != '\t' && *p != ' '))
                return -EINVAL;
            *ret_uid = (uid_t)uid;
            return 0;
        }
        p = eol + 1;
    }
    return -EINVAL;
}

static int read_all(int dir, pid_t pid, struct proc_facts *ret)
{
    char text[TEXT_MAX];
    size_t n = 0;
    struct proc_facts f = {0};

    int r = read_some(dir, "stat", text, sizeof text, &n);
    if (r == 0)
        r = proc_parse_stat(text, n, &f);
    if (r == 0)
        r = read_some(dir, "status", text, sizeof text, &n);
    if (r == 0)
        r = proc_parse_status(text, n, &f.uid);
    if (r < 0)
        return r;
    if (read_some(dir, "cgroup", f.cgroup, sizeof f.cgroup, &f.n_cgroup) < 0)
        f.n_cgroup = 0;                /* a kernel without cgroups: go on without */
    if (f.n_cgroup == sizeof f.cgroup) /* cut: up to the last whole line */
        while (f.n_cgroup > 0 && f.cgroup[f.n_cgroup - 1] != '\n')
            f.n_cgroup--;
    if (f.pid != pid)
        return -ESRCH;
    utf8_mend(f.comm); /* the process's owner chose this text */
    *ret = f;
    return 0;
}

int proc_read(const char *root, pid_t pid, struct proc_facts *ret)
{
    char path[PATH_ROOM];

    int n = snprintf(path, sizeof path, "%s/%ld", root, (long)pid);
    if (pid <= 0 || n < 0 || (size_t)n >= sizeof path)
        return -EINVAL;
    /* All reads use one open folder, which always belongs to the same process: once the
     * process has ended, reads fail, even if its pid is in use again.
     */
    auto_(fd_close) int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    return read_all(dir, pid, ret);
}

void proc_read_title(const char *root, struct proc_facts *f)
{
    auto_(mem_free) char *text = NULL;
    char path[PATH_ROOM];
    struct proc_facts now = {0};

    f->title[0] = '\0';
    int n = snprintf(path, sizeof path, "%s/%ld/cmdline", root, (long)f->pid);
    if (n < 0 || (size_t)n >= sizeof path || file_hangs() ||
        file_read_regular(path, CMDLINE_MAX, PROC_TITLE_MS, &text, NULL, NULL) < 0)
        return;
    if (proc_read(root, f->pid, &now) == 0 && now.start == f->start)
        (void)snprintf(f->title, sizeof f->title, "%s", text);
}

int proc_open_pidfd(const char *root, pid_t pid, uint64_t start, uid_t uid,
                    struct proc_facts *ret)
{
    struct proc_facts f = {0};

    auto_(fd_close) int fd = (int)syscall(SYS_pidfd_open, pid, 0u);
    if (fd < 0)
        return -errno;
    int r = proc_read(root, pid, &f); /* the same process while fd is not readable */
    if (r < 0)
        return r;
    if (start != 0 && f.start != start)
        return -ESRCH;
    if (f.uid != uid)
        return -EPERM;
    /* The process still exists: the data read belong to the process of fd. */
    if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) != 0)
        return -ESRCH;
    *ret = f;
    return fd_take(&fd);
}
