#include "actuator/keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REAP_MS = 1000,
    RECOVERIES = 3,
    OK = 0,
    FAILED = 1,
    USAGE = 2,
    BACK_MS = 5000,     /* after whatever stops, all originals are in force by then … */
    RECOVERY_MS = 1000, /* … and a recovery takes less than this */
};

static_assert(KEEPER_SILENT_MS + REAP_MS + RECOVERY_MS <= BACK_MS &&
                  KEEPER_SILENT_MS + KEEPER_BEAT_MS + RECOVERY_MS <= BACK_MS,
              "noticed too late");

/* Waits for the child, with a limit: a process that is stuck in the driver cannot be
 * killed.
 */
static bool reap(pid_t pid, int *ret_status)
{
    for (int waited = 0; waited < REAP_MS; waited += 20) {
        pid_t got = waitpid(pid, ret_status, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR))
            return got == pid;
        (void)poll(NULL, 0, 20);
    }
    return false;
}

/* Passes a signal that ends the keeper (from a terminal or the starter) on to the child.
 */
static void hand_on(int signals, pid_t child)
{
    struct signalfd_siginfo info;

    if (read(signals, &info, sizeof info) == (ssize_t)sizeof info &&
        info.ssi_signo != SIGHUP)
        (void)kill(child, SIGTERM);
}

/* True once the connection is closed, false after silent_ms without a byte.  Missed
 * beats are counted, not time: when the keeper itself was suspended (a suspended job, a
 * frozen container), so was its child, which then gets time to beat again.
 */
static bool listen_to(int beat, int signals, pid_t child, int silent_ms)
{
    struct pollfd p[2] = {{.fd = beat, .events = POLLIN},
                          {.fd = signals, .events = POLLIN}};
    const int most = (silent_ms + KEEPER_BEAT_MS - 1) / KEEPER_BEAT_MS;
    int patience_ms = -1; /* before the first beat, no board has been written to */
    int missed = 0;
    char byte;

    for (;;) {
        int n = poll(p, 2, patience_ms);
        if (n == 0 && ++missed >= most)
            return false;
        bool signalled = n > 0 && p[1].revents;
        if (signalled)
            hand_on(signals, child);
        /* one signal a beat: no number of signals can hide missed beats */
        p[1].fd = signalled && patience_ms >= 0 ? -1 : signals;
        if (n <= 0 || !p[0].revents)
            continue;
        if (recv(beat, &byte, 1, 0) != 1)
            return true;
        (void)send(beat, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        patience_ms = KEEPER_BEAT_MS;
        missed = 0;
    }
}

static int recover(char *const *argv)
{
    for (int i = 0; i < RECOVERIES; i++) {
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            (void)execv("/proc/self/exe", argv);
            return 127;
        }
        if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
            return WEXITSTATUS(status);
    }
    return FAILED;
}

/* Whether the child ended by itself and left nothing to recover. */
static bool in_order(const struct keeper_opts *opts, bool ended, int status)
{
    if (!ended || !WIFEXITED(status))
        return false;
    return !opts->insist || WEXITSTATUS(status) == OK || WEXITSTATUS(status) == USAGE;
}

static void tell(const struct keeper_opts *opts, bool ended, int status)
{
    char text[80];

    if (ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)
        return; /* told to end before it served */
    if (!ended)
        (void)snprintf(text, sizeof text, "silent for %d ms: killed, restoring",
                       opts->silent_ms);
    else if (WIFEXITED(status))
        (void)snprintf(text, sizeof text, "ended with status %d: starting again",
                       WEXITSTATUS(status));
    else
        (void)snprintf(text, sizeof text, "killed by signal %d: restoring",
                       WTERMSIG(status));
    opts->say(text, NULL);
}

static int keep(const struct keeper_opts *opts, pid_t child, int beat, int signals)
{
    int status = 0;
    bool ended = listen_to(beat, signals, child, opts->silent_ms) && reap(child, &status);

    if (in_order(opts, ended, status))
        return WEXITSTATUS(status);
    tell(opts, ended, status);
    if (!ended) {
        (void)kill(child, SIGKILL);
        ended = reap(child, &status);
    }
    if (in_order(opts, ended, status))
        return WEXITSTATUS(status);
    int r = recover(opts->recovery);
    if (!ended && waitpid(child, &status, 0) == child)
        r = recover(opts->recovery); /* it was stuck in the driver, with a board's lock */
    return r;
}

/* Closes the child's sockets, so that clients notice its end. */
static void keep_only(int beat)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)dup2(nothing, STDIN_FILENO);
    if (beat > STDERR_FILENO + 1)
        (void)close_range(STDERR_FILENO + 1, (unsigned)beat - 1, 0);
    (void)close_range((unsigned)beat + 1, ~0u, 0);
}

static int fail_to_fork(const int line[2], const sigset_t *mask)
{
    int r = -errno;

    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    (void)close(line[0]);
    (void)close(line[1]);
    return r;
}

int keeper_start(const struct keeper_opts *opts, int *ret_beat)
{
    sigset_t ending, mask;
    int line[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
        return -errno;
    (void)setsid(); /* ^C and ^Z of a terminal are for the command */
    (void)sigemptyset(&ending);
    (void)sigaddset(&ending, SIGTERM);
    (void)sigaddset(&ending, SIGINT);
    (void)sigaddset(&ending, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &ending, &mask);
    pid_t child = fork();
    if (child < 0)
        return fail_to_fork(line, &mask);
    if (child == 0) {
        (void)sigprocmask(SIG_SETMASK, &mask, NULL);
        (void)close(line[0]);
        *ret_beat = line[1];
        return 0;
    }
    keep_only(line[0]);
    *ret_beat = -1;
    return keep(opts, child, line[0], signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
}
