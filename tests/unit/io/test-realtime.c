/* The real-time class: what the first thread gets and others do not, or all do, the way
 * back of one that spins, and nothing at all for who has no right to it.  Each in a
 * process of its own.
 */
#include "io/realtime.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum { NOBODY = 65534, WAIT_S = 30 };

static int class_of(pid_t pid)
{
    return sched_getscheduler(pid) & ~SCHED_RESET_ON_FORK;
}

static void *look(void *user)
{
    *(int *)user = class_of(0);
    return NULL;
}

static int class_of_thread(void)
{
    pthread_t thread;
    int class = -1;

    if (pthread_create(&thread, NULL, look, &class) == 0)
        (void)pthread_join(thread, NULL);
    return class;
}

static int class_of_child(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        _exit(class_of(0));
    if (pid > 0)
        (void)waitpid(pid, &status, 0);
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Computes until the class is the normal one again. */
static bool comes_back(void)
{
    const time_t until = time(NULL) + WAIT_S;
    volatile unsigned n = 0;

    while (time(NULL) < until) {
        for (unsigned i = 0; i < 1000000; i++)
            n += i;
        if (class_of(0) == SCHED_OTHER)
            return true;
    }
    return false;
}

/* What went wrong, as the process's exit status; 0: nothing. */
static int granted(void)
{
    struct rlimit limit;

    if (class_of(0) != SCHED_OTHER)
        return 2;
    if (realtime_begin(REALTIME_FIRST, "lost") != 0)
        return 77; /* a container without CAP_SYS_NICE */
    if (class_of(0) != SCHED_RR)
        return 3;
    if (class_of_thread() != SCHED_OTHER)
        return 4;
    if (class_of_child() != SCHED_OTHER)
        return 5;
    if (getrlimit(RLIMIT_RTTIME, &limit) < 0 || limit.rlim_cur != REALTIME_MOST_MS * 1000)
        return 6;
    (void)close(STDERR_FILENO);
    return comes_back() ? 0 : 7;
}

/* The way back does not need the right that led there. */
static int given_up(void)
{
    if (realtime_begin(REALTIME_FIRST, "lost") != 0)
        return 77;
    const struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_RTPRIO, &none) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return 77;
    (void)close(STDERR_FILENO);
    return comes_back() ? 0 : 7;
}

/* ---- all threads ---- */

static int gate[2];

static void *wait_there(void *user)
{
    char byte;

    (void)!read(gate[0], &byte, 1);
    *(int *)user = class_of(0);
    return NULL;
}

static void *spin(void *user)
{
    *(bool *)user = comes_back();
    return NULL;
}

/* One that spins takes the others, that wait, back with it. */
static int all(void)
{
    pthread_t waits, spins;
    int class = -1;
    bool good = false;

    if (pipe(gate) < 0)
        return 2;
    if (realtime_begin(REALTIME_ALL, "lost") != 0)
        return 77;
    if (class_of(0) != SCHED_RR)
        return 3;
    if (class_of_thread() != SCHED_RR)
        return 4;
    (void)close(STDERR_FILENO);
    if (pthread_create(&waits, NULL, wait_there, &class) != 0 ||
        pthread_create(&spins, NULL, spin, &good) != 0)
        return 5;
    (void)pthread_join(spins, NULL);
    (void)!write(gate[1], "", 1);
    (void)pthread_join(waits, NULL);
    return !good ? 6 : class != SCHED_OTHER ? 7 : class_of(0) != SCHED_OTHER ? 8 : 0;
}

static int ended(void)
{
    pthread_t waits;
    int class = -1;

    if (pipe(gate) < 0)
        return 2;
    if (realtime_begin(REALTIME_ALL, "lost") != 0)
        return 77;
    if (pthread_create(&waits, NULL, wait_there, &class) != 0)
        return 3;
    realtime_end();
    (void)!write(gate[1], "", 1);
    (void)pthread_join(waits, NULL);
    return class != SCHED_OTHER || class_of(0) != SCHED_OTHER ? 4 : 0;
}

static int refused(void)
{
    const struct rlimit none = {0, 0};
    struct rlimit before, after;
    struct sigaction action;

    if (getrlimit(RLIMIT_RTTIME, &before) < 0 || setrlimit(RLIMIT_RTPRIO, &none) < 0 ||
        (geteuid() == 0 && setresuid(NOBODY, NOBODY, NOBODY) < 0))
        return 2;
    if (realtime_begin(REALTIME_FIRST, "lost") != REALTIME_REFUSED)
        return 3;
    if (getrlimit(RLIMIT_RTTIME, &after) < 0 || after.rlim_cur != before.rlim_cur)
        return 5;
    if (sigaction(SIGXCPU, NULL, &action) < 0 || action.sa_handler != SIG_DFL)
        return 6;
    return class_of(0) == SCHED_OTHER ? 0 : 4;
}

/* A limit that would kill instead of warn: better none of it. */
static int no_room(void)
{
    const struct rlimit tight = {REALTIME_MOST_MS * 1000, REALTIME_MOST_MS * 1000};

    if (setrlimit(RLIMIT_RTTIME, &tight) < 0)
        return 2;
    if (realtime_begin(REALTIME_FIRST, "lost") != REALTIME_REFUSED)
        return 3;
    return class_of(0) == SCHED_OTHER ? 0 : 4;
}

int main(void)
{
    static const struct {
        const char *name;
        int (*fn)(void);
    } cases[] = {
        {"granted: the first thread alone, and back when it spins", granted},
        {"back, with no right left", given_up},
        {"granted: all threads, and back when one spins", all},
        {"all threads back when asked for", ended},
        {"refused: nothing has changed", refused},
        {"refused where the guard's limit would kill", no_room},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = -1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(cases[i].fn());
        (void)waitpid(pid, &status, 0);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (code == 77)
            ok(true, "%s # SKIP no right to a real-time class", cases[i].name);
        else
            ok(code == 0, "%s: %d", cases[i].name, code);
    }
    return done();
}
