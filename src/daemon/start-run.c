/* underwatt-start: starts actuator and daemon, watches and restarts them, and ends them
 * in order.  It exits only after a recovery has confirmed that no board has a limit left
 * to restore.
 *
 * The direct child is the actuator's keeper (underwatt-actuator --keeper).  If one of
 * starter, keeper and actuator is killed or stopped, the others handle it; see the table
 * in docs/design/actuator.md.
 */
#include "daemon/start.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "daemon/notify.h"

enum {
    BACKOFF_MS = 100,
    BACKOFF_MAX_MS = 30000,
    NOTES_AT_ONCE = 64,
    STEADY_S = 60, /* after this run time the backoff starts again */
    DAEMON_END_S = 10,
    /* a daemon that SIGKILL does not end (hung in the driver) is abandoned */
    KILLED_END_S = 5,
    /* the actuator ends within 20 s, a recovery after it within 76 s */
    ACTUATOR_END_S = 120,
    RECOVERIES = 3,
    ORPHANS_POLL_MS = 20,
    /* an actuator without a keeper restores and exits in time, else SIGKILL */
    ORPHANS_KILL_S = 3,
    ORPHANS_WAIT_S = 5,
};

/* ---- the services ---- */

static void end(struct program *p, int result);
static void go_on_ending(struct program *p);
static int start_service(struct service *s);

static void describe(int status, char *ret, size_t size)
{
    if (WIFEXITED(status))
        (void)snprintf(ret, size, "ended with status %d", WEXITSTATUS(status));
    else
        (void)snprintf(ret, size, "was killed by signal %d", WTERMSIG(status));
}

static void start_later(struct service *s)
{
    uint64_t now = loop_now_ns(s->program->loop);
    bool steady = now - s->started_ns > STEADY_S * NS_PER_S;

    s->backoff_ms = steady || !s->backoff_ms ? BACKOFF_MS : s->backoff_ms * 2;
    if (s->backoff_ms > BACKOFF_MAX_MS)
        s->backoff_ms = BACKOFF_MAX_MS;
    loop_timer_set(s->again, now + s->backoff_ms * NS_PER_MS, 0);
}

/* Records the result of a restore.  A usage error is kept over START_FAILED: with a wrong
 * configuration no board could be checked.
 */
static void note_result(struct program *p, int code)
{
    if (code != START_OK && !(code == START_FAILED && p->result == START_USAGE))
        p->result = code;
}

/* Whether all processes of a killed keeper's group have exited, or the wait is over.  An
 * actuator of the group restores its boards and exits; it gets SIGKILL only if it does
 * not (it is the last that can restore if this process is killed too).  It holds boards'
 * locks until it exits.  As a subreaper this process is its parent.
 */
static bool orphans_gone(struct program *p)
{
    pid_t got = p->orphans ? 1 : -1;

    while (got > 0)
        got = waitpid(-p->orphans, NULL, WNOHANG);
    uint64_t waited_ns = loop_now_ns(p->loop) - p->orphans_since_ns;
    if (got == 0 && waited_ns > ORPHANS_KILL_S * NS_PER_S)
        (void)kill(-p->orphans, SIGKILL);
    if (got == 0 && waited_ns < ORPHANS_WAIT_S * NS_PER_S)
        return false;
    p->orphans = 0;
    if (got == 0) {
        start_say("a killed actuator does not exit: a board may hang in the driver");
        note_result(p, START_FAILED);
    }
    return true;
}

static void note_actuator_end(struct program *p, pid_t pid, int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    if (code < 0) { /* the keeper itself was killed */
        p->orphans = pid;
        p->orphans_since_ns = loop_now_ns(p->loop);
    }
    /* while ending, the keeper's exit status is that of its recovery, which has finished
     */
    bool told = p->ending && (code == START_FAILED || code == START_PARTLY);
    p->clean = code == START_OK || told;
    if (told)
        note_result(p, code);
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    struct service *s = user;
    struct program *p = s->program;
    pid_t pid = loop_child_pid(child);
    char text[64];

    loop_child_free(child);
    s->child = NULL;
    loop_timer_set(s->watchdog, UINT64_MAX, 0);
    if (s == &p->service[ACTUATOR])
        note_actuator_end(p, pid, status);
    if (p->ending) {
        if (s == &p->service[DAEMON] || !p->service[DAEMON].child)
            go_on_ending(p);
        return 0;
    }
    describe(status, text, sizeof text);
    bool usage = WIFEXITED(status) && WEXITSTATUS(status) == START_USAGE;
    bool over = WIFEXITED(status) && WEXITSTATUS(status) == START_OK;
    if (usage || (over && s == &p->service[DAEMON])) {
        start_say("%s %s: exiting", s->name, text);
        end(p, usage ? START_USAGE : START_OK);
        return 0;
    }
    start_later(s);
    start_say("%s %s: restarting in %u ms", s->name, text, s->backoff_ms);
    return 0;
}

static int on_again(struct loop_timer *timer, uint64_t now, void *user)
{
    struct service *s = user;

    (void)timer;
    if (s->child || s->program->ending)
        return 0;
    if (s == &s->program->service[ACTUATOR] && !orphans_gone(s->program)) {
        loop_timer_set(s->again, now + ORPHANS_POLL_MS * NS_PER_MS, 0);
        return 0;
    }
    return start_service(s);
}

static int start_service(struct service *s)
{
    struct program *p = s->program;
    static const int listening = START_LISTEN_FD;
    char notify[sizeof p->watch_name + 16], watchdog[32];
    const char *env[] = {notify, watchdog, NULL};
    bool actuator = s == &p->service[ACTUATOR];
    struct loop_child_opts opts = {.argv = s->argv,
                                   .env = env,
                                   .pass_fds = &listening,
                                   .n_pass_fds = actuator ? 1 : 0,
                                   .stdin_fd = -1,
                                   .stdout_fd = -1,
                                   .stderr_fd = -1,
                                   .own_group = true};
    uw_error err = {""};

    (void)snprintf(notify, sizeof notify, "NOTIFY_SOCKET=%s", p->watch_name);
    (void)snprintf(watchdog, sizeof watchdog, "WATCHDOG_USEC=%u", s->silent_ms * 1000);
    s->started_ns = loop_now_ns(p->loop);
    p->clean = p->clean && !actuator;
    int r = loop_child_new(p->loop, &opts, on_exit_of, s, &s->child, &err);
    if (r < 0) { /* may pass: no process or memory available */
        start_later(s);
        start_say("%s: retrying in %u ms", err.text, s->backoff_ms);
    }
    return 0;
}

/* ---- ending ---- */

static void end_within(struct program *p, unsigned seconds)
{
    loop_timer_set(p->deadline, loop_now_ns(p->loop) + seconds * NS_PER_S, 0);
}

static int on_recovered(struct loop_child *child, int status, void *user)
{
    struct program *p = user;

    loop_child_free(child);
    p->recovery.child = NULL;
    p->clean = WIFEXITED(status) && WEXITSTATUS(status) <= START_PARTLY;
    if (p->clean)
        note_result(p, WEXITSTATUS(status));
    go_on_ending(p);
    return 0;
}

/* No parent-death signal: a recovery must finish even without this process. */
static void recover(struct program *p)
{
    struct loop_child_opts opts = {.argv = p->recovery.argv,
                                   .stdin_fd = -1,
                                   .stdout_fd = -1,
                                   .stderr_fd = -1,
                                   .own_group = true};
    uw_error err = {""};

    if (!orphans_gone(p)) {
        loop_timer_set(p->recovery.again,
                       loop_now_ns(p->loop) + ORPHANS_POLL_MS * NS_PER_MS, 0);
        return;
    }
    p->recoveries++;
    end_within(p, ACTUATOR_END_S);
    int r = loop_child_new(p->loop, &opts, on_recovered, p, &p->recovery.child, &err);
    if (r < 0) {
        start_say("%s", err.text);
        loop_timer_set(p->recovery.again, loop_now_ns(p->loop) + BACKOFF_MS * NS_PER_MS,
                       0);
    }
}

/* Ends the next service, then runs a recovery if needed, then ends the loop. */
static void go_on_ending(struct program *p)
{
    static const unsigned patience_s[] = {ACTUATOR_END_S, DAEMON_END_S};

    for (int i = DAEMON; i >= ACTUATOR; i--) {
        if (!p->service[i].child)
            continue;
        (void)loop_child_kill(p->service[i].child, SIGTERM);
        (void)loop_child_kill(p->service[i].child, SIGCONT);
        end_within(p, patience_s[i]);
        return;
    }
    if (!p->clean && p->recoveries < RECOVERIES) {
        recover(p);
        return;
    }
    if (!p->clean) {
        start_say("no recovery finished: power limits may not have been restored");
        p->result = START_FAILED;
    }
    loop_stop(p->loop, 0);
}

static int on_recover_due(struct loop_timer *timer, uint64_t now, void *user)
{
    (void)timer;
    (void)now;
    go_on_ending(user);
    return 0;
}

static void end(struct program *p, int result)
{
    if (p->ending)
        return;
    p->ending = true;
    p->result = result;
    for (int i = ACTUATOR; i <= DAEMON; i++)
        loop_timer_set(p->service[i].watchdog, UINT64_MAX, 0);
    go_on_ending(p);
}

/* A service did not end in time.  The daemon is killed (its caps are restored after the
 * grace, or when the actuator ends), and abandoned if that fails.  The actuator is never
 * killed, as that would restore nothing.
 */
static int on_deadline(struct loop_timer *timer, uint64_t now, void *user)
{
    struct program *p = user;
    struct service *daemon = &p->service[DAEMON];

    (void)timer;
    (void)now;
    p->result = START_FAILED;
    if (daemon->child && !daemon->killed) {
        start_say("%s did not exit in time: killed", daemon->name);
        (void)loop_child_kill(daemon->child, SIGKILL);
        daemon->killed = true;
        end_within(p, KILLED_END_S);
        return 0;
    }
    if (daemon->child) {
        start_say("%s did not exit when killed: abandoned", daemon->name);
        loop_child_free(take(daemon->child));
        go_on_ending(p);
        return 0;
    }
    start_say("%s did not exit in time: a board may hang in the driver. It keeps running",
              p->service[ACTUATOR].name);
    loop_stop(p->loop, 0);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct program *p = user;

    (void)source;
    if (signo != SIGHUP)
        end(p, START_OK);
    else if (p->service[DAEMON].child)
        (void)loop_child_kill(p->service[DAEMON].child, SIGHUP);
    return 0;
}

/* ---- watchdog: the service manager's protocol ---- */

/* Parts of a service's patience.  They are counted, not the time: where the starter
 * itself was kept from running (a suspended machine, a frozen container) its services
 * were, too, or their notifications have not been read.
 */
enum { SILENT_PARTS = 4 };

/* Receives one datagram; -1: none. *ret_who: the sender; uid -1 if unknown, or if the
 * datagram was truncated.
 */
static ssize_t take_note(int fd, char *text, size_t size, struct ucred *ret_who)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec data = {.iov_base = text, .iov_len = size};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};

    ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *ret_who = (struct ucred){.uid = (uid_t)-1};
    for (struct cmsghdr *c =
             n < 0 || message.msg_flags & MSG_TRUNC ? NULL : CMSG_FIRSTHDR(&message);
         c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
            memcpy(ret_who, CMSG_DATA(c), sizeof *ret_who);
    return n;
}

/* The actuator is a child of its keeper, and in the keeper's group. */
static bool is_of(const struct service *s, const struct ucred *who)
{
    return s->child && who->pid > 0 && who->uid == s->uid &&
           getpgid(who->pid) == loop_child_pid(s->child);
}

static void heard(struct service *s)
{
    const uint64_t part_ns = s->silent_ms * NS_PER_MS / SILENT_PARTS;

    s->missed = 0;
    loop_timer_set(s->watchdog, loop_now_ns(s->program->loop) + part_ns, part_ns);
}

static int on_note(struct loop_fd *source, int fd, int events, void *user)
{
    struct program *p = user;
    char text[256];
    struct ucred who;

    (void)source;
    (void)events;
    for (int k = 0; k < NOTES_AT_ONCE; k++) {
        ssize_t n = take_note(fd, text, sizeof text, &who);
        if (n < 0)
            break;
        bool beats = notify_beats(text, (size_t)n);
        for (int i = ACTUATOR; beats && !p->ending && i <= DAEMON; i++) {
            struct service *s = &p->service[i];
            if (is_of(s, &who))
                heard(s);
        }
    }
    return 0;
}

static int on_silence(struct loop_timer *timer, uint64_t now, void *user)
{
    struct service *s = user;

    (void)now;
    if (++s->missed < SILENT_PARTS)
        return 0;
    loop_timer_set(timer, UINT64_MAX, 0);
    if (s->child) {
        start_say("%s sent no watchdog message for %u ms: killed", s->name, s->silent_ms);
        (void)loop_child_kill(s->child, SIGKILL);
    }
    return 0;
}

/* Creates the socket beside the actuator's, in a directory that only this user may write;
 * writable for the daemon's user and root's group (an actuator without CAP_DAC_OVERRIDE).
 * Anyone could send to an abstract name, and a full queue would look like a daemon that
 * hangs.
 */
static int open_watch(struct program *p, uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int on = 1,
        n = snprintf(p->watch_name, sizeof p->watch_name, "%s.notify", p->socket_path);

    if (n < 0 || (size_t)n >= sizeof p->watch_name)
        return fail(err, -ENAMETOOLONG, "%s.notify: too long for a socket's path",
                    p->socket_path);
    memcpy(address.sun_path, p->watch_name, sizeof p->watch_name);
    p->watch_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(p->watch_name);
    mode_t mask = umask(0117);
    bool good =
        p->watch_fd >= 0 &&
        bind(p->watch_fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        (geteuid() != 0 || lchown(p->watch_name, p->daemon_uid, 0) == 0) &&
        setsockopt(p->watch_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
    int e = errno;
    (void)umask(mask);
    if (!good)
        return fail(err, -e, "%s: %s", p->watch_name, strerror(e));
    return loop_fd_new(p->loop, p->watch_fd, LOOP_READ, on_note, p, &p->watch_source,
                       err);
}

/* ---- main ---- */

int start_run(struct program *p, uw_error *err)
{
    const struct {
        int signo;
        struct loop_signal **source;
    } signals[] = {{SIGTERM, &p->sigterm}, {SIGINT, &p->sigint}, {SIGHUP, &p->sighup}};
    int r = loop_new_real((struct loop_clock){.speed = 1}, &p->loop, err);

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* reap orphans */
    if (r == 0)
        r = open_watch(p, err);
    for (size_t i = 0; r == 0 && i < n_elements(signals); i++)
        r = loop_signal_new(p->loop, signals[i].signo, on_signal, p, signals[i].source,
                            err);
    if (r == 0)
        r = loop_timer_new(p->loop, UINT64_MAX, 0, on_deadline, p, &p->deadline, err);
    if (r == 0)
        r = loop_timer_new(p->loop, UINT64_MAX, 0, on_recover_due, p, &p->recovery.again,
                           err);
    for (int i = ACTUATOR; r == 0 && i <= DAEMON; i++) {
        struct service *s = &p->service[i];
        r = loop_timer_new(p->loop, UINT64_MAX, 0, on_again, s, &s->again, err);
        if (r == 0)
            r = loop_timer_new(p->loop, UINT64_MAX, 0, on_silence, s, &s->watchdog, err);
        if (r == 0)
            r = start_service(s);
    }
    return r == 0 ? loop_run(p->loop, err) : r;
}
