#include "node/realtime.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* glibc shows this to _GNU_SOURCE alone in its older versions. */
#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

static const char lost[] = "<4>event=realtime-lost reason=\"the loop has computed for "
                           "too long without waiting\" "
                           "in_force=normal\n";

/* Whoever is not privileged may not take the flag back. */
static int set_class(int policy, int priority)
{
    const struct sched_param param = {.sched_priority = priority};

    return sched_setscheduler(getpid(), policy | SCHED_RESET_ON_FORK, &param);
}

/* Calls of the kernel alone; of the first thread, whichever this one is. */
static void on_too_long(int signo)
{
    int saved = errno;
    (void)signo;

    /* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c) */
    if (set_class(SCHED_OTHER, 0) == 0)
        (void)!write(STDERR_FILENO, lost, sizeof lost - 1);
    errno = saved;
}

/* The soft limit's signal comes first, and the hard one, which kills, never. */
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

int realtime_begin(void)
{
    struct sigaction action;
    struct rlimit limit;

    if (sigaction(SIGXCPU, NULL, &action) < 0 || getrlimit(RLIMIT_RTTIME, &limit) < 0)
        return REALTIME_REFUSED;
    if (set_guard() == 0 && set_class(SCHED_RR, 1) == 0)
        return 0;
    (void)setrlimit(RLIMIT_RTTIME, &limit); /* a soft limit alone was lowered */
    (void)sigaction(SIGXCPU, &action, NULL);
    return REALTIME_REFUSED;
}
