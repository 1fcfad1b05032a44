/* What the keeper makes of its actuator's end: whether it runs a recovery, and its exit
 * status.  The recovery is this program with another argument.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "actuator/keeper.h"
#include "tap.h"

enum { RECOVERED = 7, KILLED = -SIGKILL };

static char self[] = "test-keeper", word[] = "--recover", note[] = "/tmp/keeper-XXXXXX";

static int recover(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    return fd >= 0 && write(fd, "r", 1) == 1 ? RECOVERED : 1;
}

static void say(const char *text, void *user)
{
    (void)text;
    (void)user;
}

/* The exit status of a keeper whose actuator ends so. */
static int keeper_of(int actuator_end, bool insist)
{
    char *argv[] = {self, word, note, NULL};
    const struct keeper_opts opts = {
        .recovery = argv, .silent_ms = 10000, .insist = insist, .say = say};
    int beat = -1, status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        int r = keeper_start(&opts, &beat);
        if (beat < 0) /* the keeper: all is over */
            _exit(r < 0 ? 99 : r);
        if (actuator_end < 0)
            (void)raise(-actuator_end);
        _exit(actuator_end);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_ends(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        int end; /* exit status, or a signal below 0 */
        bool insist;
        int recoveries, status;
    } cases[] = {
        {"done",                               0,      false, 0, 0},
        {"failed",                             1,      false, 0, 1},
        {"killed",                             KILLED, false, 1, RECOVERED},
        {"a service's, done",                  0,      true,  0, 0},
        {"a service's, a wrong argument",      2,      true,  0, 2},
        {"a service's, failed",                1,      true,  1, RECOVERED},
        {"a service's, not all was restored",  3,      true,  1, RECOVERED},
        {"a service's, killed",                KILLED, true,  1, RECOVERED},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int fd = open(note, O_RDWR | O_TRUNC | O_CLOEXEC);
        int status = keeper_of(cases[i].end, cases[i].insist);
        is_int(lseek(fd, 0, SEEK_END), cases[i].recoveries, "%s: recoveries",
               cases[i].name);
        is_int(status, cases[i].status, "%s: exit status", cases[i].name);
        (void)close(fd);
    }
}

/* An actuator that beats once, then never, and signals its keeper all the time. */
static void fall_silent(int beat)
{
    const struct timespec gap = {.tv_nsec = 100000000};

    (void)send(beat, "", 1, 0);
    for (int i = 0; i < 100; i++) {
        (void)kill(getppid(), SIGHUP);
        (void)nanosleep(&gap, NULL);
    }
    _exit(0);
}

/* The exit status of a keeper whose actuator runs act(). */
static int kept(int silent_ms, void (*act)(int beat))
{
    char *argv[] = {self, word, note, NULL};
    const struct keeper_opts opts = {
        .recovery = argv, .silent_ms = silent_ms, .say = say};
    int beat = -1, status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        int r = keeper_start(&opts, &beat);
        if (beat < 0)
            _exit(r < 0 ? 99 : r);
        act(beat);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Signals do not keep the keeper from missing beats. */
static void test_signals(void)
{
    is_int(kept(KEEPER_BEAT_MS, fall_silent), RECOVERED,
           "a silent actuator is noticed, however many signals come");
}

/* An actuator that a busy machine keeps from running for two seconds. */
static void stand_still(int beat)
{
    const struct timespec still = {.tv_sec = 2};

    (void)send(beat, "", 1, 0);
    (void)nanosleep(&still, NULL);
    (void)send(beat, "", 1, 0);
    _exit(0);
}

static void test_standstill(void)
{
    is_int(kept(KEEPER_SILENT_MS, stand_still), 0,
           "an actuator that stood still for 2 s is not killed");
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], word) == 0)
        return recover(argv[2]);
    int fd = mkstemp(note);
    if (fd < 0)
        return 1;
    (void)close(fd);
    test_ends();
    test_signals();
    test_standstill();
    (void)unlink(note);
    return done();
}
