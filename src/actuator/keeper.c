#include "actuator/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REAP_MS = 1000,
    RECOVERIES = 3,
    FAILED = 1,
};

/* Waits for the child, but not for ever: a process that is stuck in the driver
 * cannot be killed.
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

/* True once the line is closed, false when it went silent. */
static bool listen_to(int beat)
{
    struct pollfd p = {.fd = beat, .events = POLLIN};
    int patience_ms = -1; /* until the first beat nothing has been written to a board */
    char byte;

    for (;;) {
        int n = poll(&p, 1, patience_ms);
        if (n == 0)
            return false;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || recv(beat, &byte, 1, 0) != 1)
            return true;
        (void)send(beat, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        patience_ms = KEEPER_SILENT_MS;
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

static int keep(pid_t child, int beat, char *const *recovery)
{
    int status = 0;
    bool ended = listen_to(beat) && reap(child, &status);

    if (!ended) {
        (void)kill(child, SIGKILL);
        ended = reap(child, &status);
    }
    if (ended && WIFEXITED(status))
        return WEXITSTATUS(status);
    int r = recover(recovery);
    if (!ended && waitpid(child, &status, 0) == child)
        r = recover(recovery); /* it was stuck in the driver, with a board's lock */
    return r;
}

int keeper_start(char *const *recovery, int *ret_beat)
{
    int line[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, line) < 0)
        return -errno;
    (void)setsid(); /* a terminal's ^C and ^Z are the command's */
    pid_t child = fork();
    if (child < 0) {
        int r = -errno;
        (void)close(line[0]);
        (void)close(line[1]);
        return r;
    }
    if (child == 0) {
        (void)close(line[0]);
        *ret_beat = line[1];
        return 0;
    }
    (void)close(line[1]);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    (void)dup2(nothing, STDIN_FILENO); /* the client's socket: its end must show */
    *ret_beat = -1;
    return keep(child, line[0], recovery);
}
