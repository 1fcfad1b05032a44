/* Starts a program: fork and exec, and returns exec's own error. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "io/program.h"
#include "io/spawn.h"

enum {
    ENV_MAX = 65536,
    INHERITED_MAX = 1024, /* higher descriptors are not inherited */
    DESCRIPTORS_MAX = 1 << 20,
};

/* The descriptors that this process inherited: global, like descriptors themselves. */
static bool inherited[INHERITED_MAX];

void loop_child_keep_inherited(void)
{
    for (int fd = 3; fd < INHERITED_MAX; fd++) {
        int flags = fcntl(fd, F_GETFD);
        inherited[fd] = flags >= 0 && !(flags & FD_CLOEXEC);
    }
}

/* True if the entry "NAME=…" and one of `ours` set the same name. */
static bool is_replaced(const char *entry, const char *const *ours)
{
    size_t len = strcspn(entry, "=");

    for (size_t i = 0; ours && ours[i]; i++)
        if (strcspn(ours[i], "=") == len && memcmp(entry, ours[i], len) == 0)
            return true;
    return false;
}

/* The environment of this process, unless alone, with opts->env in it: an array to
 * free(), whose strings are borrowed.  NULL out of memory.
 */
static char **merged_env(const char *const *ours, bool alone)
{
    size_t n = 0, n_ours = 0, used = 0;

    while (!alone && environ && environ[n])
        n++;
    while (ours && ours[n_ours])
        n_ours++;
    if (n + n_ours > ENV_MAX)
        return NULL;
    char **env = calloc(n + n_ours + 1, sizeof *env);
    if (!env)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_replaced(environ[i], ours))
            env[used++] = environ[i];
    for (size_t i = 0; i < n_ours; i++)
        memcpy(&env[used++], &ours[i], sizeof env[0]);
    return env;
}

/* ---- between fork and exec: only async-signal-safe calls ---- */

static int place_stdio(const struct loop_child_opts *opts)
{
    int from[3] = {opts->stdin_fd, opts->stdout_fd, opts->stderr_fd};

    for (int i = 0; i < 3; i++)
        if (from[i] >= 0 && from[i] < 3 && from[i] != i) {
            from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3);
            if (from[i] < 0)
                return -errno;
        }
    for (int i = 0; i < 3; i++) {
        if (from[i] < 0)
            continue;
        if (from[i] == i ? fcntl(i, F_SETFD, 0) < 0 : dup2(from[i], i) < 0)
            return -errno;
    }
    return 0;
}

/* exec closes all beyond 0..2. */
static void close_on_exec(void)
{
    struct rlimit most = {.rlim_cur = DESCRIPTORS_MAX};

    if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    (void)getrlimit(RLIMIT_NOFILE, &most); /* a kernel older than 5.11 */
    for (int fd = 3; fd < DESCRIPTORS_MAX && (rlim_t)fd < most.rlim_cur; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Libraries open descriptors without close-on-exec, and libcurl's connections to the
 * daemon carry this process's rights.  The program gets only the descriptors intended
 * for it.
 */
static int place_others(const struct loop_child_opts *opts)
{
    close_on_exec();
    for (int fd = 3; fd < INHERITED_MAX && opts->inherit; fd++)
        if (inherited[fd])
            (void)fcntl(fd, F_SETFD, 0);
    for (size_t i = 0; i < opts->n_pass_fds; i++)
        if (fcntl(opts->pass_fds[i], F_SETFD, 0) < 0)
            return -errno;
    return 0;
}

/* Resets the handled signals; keeps those ignored that the caller ignores (nohup),
 * except SIGPIPE, which this process ignores itself.
 */
static void reset_signals(const sigset_t *mask)
{
    struct sigaction deflt = {.sa_handler = SIG_DFL}, old;

    for (int signo = 1; signo < NSIG; signo++)
        if (sigaction(signo, NULL, &old) == 0 &&
            (old.sa_handler != SIG_IGN || signo == SIGPIPE))
            (void)sigaction(signo, &deflt, NULL);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
}

__attribute__((noreturn)) static void in_child(const struct loop_child_opts *opts,
                                               const char *path, char **env,
                                               const sigset_t *mask, int report)
{
    char *const *argv = (char *const *)(const void *)opts->argv;
    int r = place_stdio(opts);

    if (r >= 0)
        r = place_others(opts);
    if (r >= 0 && opts->own_group && setpgid(0, 0) < 0)
        r = -errno;
    if (r >= 0) {
        reset_signals(mask);
        r = program_exec(path, argv, env);
    }
    (void)!write(report, &r, sizeof r);
    _exit(127);
}

/* ---- in the parent ---- */

/* The child's errno, or 0 once it runs the program. */
static int read_report(int fd)
{
    int r = 0;
    ssize_t n;

    do {
        n = read(fd, &r, sizeof r);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return n == (ssize_t)sizeof r ? r : 0;
}

static pid_t fork_child(const struct loop_child_opts *opts, const char *path, char **env,
                        int report)
{
    sigset_t all, mask;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    pid_t pid = fork();
    if (pid == 0)
        in_child(opts, path, env, &mask, report);
    int e = errno;
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = e;
    return pid;
}

int loop_child_spawn(const struct loop_child_opts *opts, pid_t *ret, uw_error *err)
{
    const char *name = opts->argv[0];
    auto_(mem_free) char **env = merged_env(opts->env, opts->env_alone);
    char path[PATH_MAX];
    int report[2];

    if (!env)
        return fail(err, -ENOMEM, "%s: out of memory", name);
    int r = program_find(name, getenv("PATH"), path, sizeof path, err);
    if (r < 0)
        return r;
    if (pipe2(report, O_CLOEXEC) < 0)
        return fail(err, -errno, "%s: pipe: %s", name, strerror(errno));
    auto_(fd_close) int reads = report[0];
    pid_t pid = fork_child(opts, path, env, report[1]);
    int e = errno;
    (void)close(report[1]);
    if (pid < 0)
        return fail(err, -e, "%s: fork: %s", name, strerror(e));

    r = read_report(reads);
    if (r < 0) {
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
        return program_fail(name, path, r, err);
    }
    *ret = pid;
    return 0;
}
