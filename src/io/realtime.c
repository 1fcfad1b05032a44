#include "io/realtime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Older versions of glibc declare this under _GNU_SOURCE only. */
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

/* The layout in the kernel (getdents(2)). */
struct entry {
    uint64_t ino;
    int64_t off;
    uint16_t size;
    uint8_t type;
    char name[];
};

static enum realtime_who given;
static const char *lost;

/* An unprivileged process may not clear the flag. */
static int set_class(pid_t tid, int policy, int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    int flag = given == REALTIME_FIRST ? SCHED_RESET_ON_FORK : 0;

    return sched_setscheduler(tid, policy | flag, &param);
}

static pid_t number_of(const char *name)
{
    pid_t n = 0;

    for (; *name >= '0' && *name <= '9'; name++)
        n = n * 10 + (*name - '0');
    return *name ? 0 : n;
}

/* All threads in an open /proc/self/task. */
static void all_back(int fd)
{
    _Alignas(struct entry) char room[2048];
    long n;

    while ((n = syscall(SYS_getdents64, fd, room, sizeof room)) > 0)
        for (long at = 0; at < n;) {
            const struct entry *e = (const void *)(room + at);
            pid_t tid = number_of(e->name);
            if (tid > 0)
                (void)set_class(tid, SCHED_OTHER, 0);
            at += e->size;
        }
}

/* Only system calls: a signal handler runs this, in any thread. */
static bool back(void)
{
    int fd = given == REALTIME_ALL
                 ? open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : -1;

    if (fd >= 0) {
        all_back(fd);
        (void)close(fd);
    }
    return set_class(getpid(), SCHED_OTHER, 0) == 0;
}

static void on_too_long(int signo)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    int saved = errno;
    (void)signo;

    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c) */
    if (back() && lost && poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
        (void)!write(STDERR_FILENO, lost, strlen(lost));
    errno = saved;
}

/* The soft limit's signal comes first; the hard limit, which kills, is never reached. */
static int set_guard(void)
{
    const struct sigaction action = {.sa_handler = on_too_long, .sa_flags = SA_RESTART};
    struct rlimit limit;
    const rlim_t most = (rlim_t)REALTIME_MOST_MS * 1000;

    if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || limit.rlim_max <= most)
        return REALTIME_REFUSED;
    limit.rlim_cur = most;
    if (sigaction(SIGXCPU, &action, NULL) < 0 || setrlimit(RLIMIT_RTTIME, &limit) < 0)
        return REALTIME_REFUSED;
    return 0;
}

int realtime_begin(enum realtime_who who, const char *line)
{
    struct sigaction action;
    struct rlimit limit;

    if (sigaction(SIGXCPU, NULL, &action) < 0 || getrlimit(RLIMIT_RTTIME, &limit) < 0)
        return REALTIME_REFUSED;
    given = who;
    lost = line;
    if (set_guard() == 0 && set_class(getpid(), SCHED_RR, 1) == 0)
        return 0;
    (void)setrlimit(RLIMIT_RTTIME, &limit); /* only a soft limit was lowered */
    (void)sigaction(SIGXCPU, &action, NULL);
    return REALTIME_REFUSED;
}

void realtime_end(void)
{
    (void)back();
}
