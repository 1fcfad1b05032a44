/* underwatt-start: actuator and daemon on a node without systemd.  Binds the actuator's
 * socket, starts both, starts them again, ends them in order.  See underwatt-start(8).
 *
 * Each program is started through this very program (--become), which ties it to our
 * life, changes the user and becomes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "gpu/library.h"
#include "gpu/nvml/nvml.h"
#include "io/file.h"
#include "io/loop.h"
#include "node/lockfile.h"
#include "node/notify.h"
#include "node/privileges.h"

enum {
    OK = 0,
    FAILED = 1,
    USAGE = 2,
    LISTEN_FD = 3, /* the actuator's, as socket activation has it */
    ARGS_MAX = 64,
    BACKLOG = 16,
    ACTUATOR_SILENT_MS = 3000,
    DAEMON_SILENT_MS = 10000, /* its leases are over long before */
    BACKOFF_MS = 100,
    BACKOFF_MAX_MS = 30000,
    NOTES_AT_ONCE = 64,
    STEADY_S = 60, /* who has run so long starts with a short wait again */
    DAEMON_END_S = 10,
    ACTUATOR_END_S = 30,
};

#define RUN_DIR "/run/underwatt"
#define LEDGER_DIR "/var/lib/underwatt"
#define ACTUATOR_DIR "/run/underwatt-actuator"

struct program;

struct service {
    struct program *program;
    const char *name;
    const char *argv[ARGS_MAX];
    size_t n_args;
    struct loop_child *child; /* NULL: does not run */
    struct loop_timer *again; /* its next start */
    struct loop_timer *watchdog;
    unsigned silent_ms; /* without a sign of life for so long it is killed */
    uint64_t started_ns;
    unsigned backoff_ms;
};

struct program {
    /* What the command line says. */
    const char *user, *socket, *actuator, *actuator_config, *daemon;
    char **daemon_args; /* ends with NULL */

    char self[PATH_MAX], parent[16], uid[16];
    uid_t daemon_uid;
    char socket_path[sizeof((struct sockaddr_un *)NULL)->sun_path];
    char watch_name[sizeof((struct sockaddr_un *)NULL)->sun_path];
    char lock_path[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".lock"];
    char library[PATH_MAX]; /* "": the system's */
    char found[2][PATH_MAX + 64];
    struct service service[2]; /* the actuator, the daemon */

    struct loop *loop;
    struct loop_signal *sigterm, *sigint, *sighup;
    int watch_fd; /* their hearts are heard here */
    struct loop_fd *watch_source;
    struct loop_timer *deadline;
    bool ending;
    int result;
};

enum { ACTUATOR, DAEMON };

static const char help[] =
    "usage: underwatt-start [--user NAME] [--socket PATH] [--actuator PROGRAM]\n"
    "                       [--actuator-config FILE] [--daemon PROGRAM]\n"
    "                       [-- OPTION…]\n"
    "\n"
    "Run underwatt-actuator as root and underwattd as its own user, without systemd.\n"
    "  --user NAME             underwattd's user, as root (default: underwatt)\n"
    "  --socket PATH           of the actuator, instead of\n"
    "                          " ACTUATOR_DIR "/actuator.sock\n"
    "  --actuator-config FILE  instead of " UNDERWATT_ETC "/actuator.yaml\n"
    "  --actuator PROGRAM, --daemon PROGRAM\n"
    "                          instead of those beside this program\n"
    "  OPTION…                 for underwattd: see its --help\n";

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    (void)fprintf(stderr, "underwatt-start: %s\n", text);
}

/* ---- --become USER PARENT PROGRAM…: the way into a child ---- */

static int become(int argc, char **argv)
{
    uw_error err;
    uint64_t parent = 0;

    if (argc < 5 || parse_u64(argv[3], &parent, NULL) < 0)
        return USAGE;
    if (strcmp(argv[2], "-") != 0 && privileges_drop(argv[2], &err) < 0) {
        say("%s", err.text);
        return USAGE;
    }
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* whoever kills us ends what we started */
    if (getppid() != (pid_t)parent)
        return FAILED;
    (void)execv(argv[4], argv + 4);
    say("%s: %s", argv[4], strerror(errno));
    return USAGE;
}

/* ---- the services ---- */

static void end(struct program *p, int result);
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

/* The next one to end, or the end. */
static void go_on_ending(struct program *p)
{
    static const unsigned patience_s[] = {ACTUATOR_END_S, DAEMON_END_S};

    for (int i = DAEMON; i >= ACTUATOR; i--) {
        if (!p->service[i].child)
            continue;
        (void)loop_child_kill(p->service[i].child, SIGTERM);
        (void)loop_child_kill(p->service[i].child, SIGCONT);
        loop_timer_set(p->deadline, loop_now_ns(p->loop) + patience_s[i] * NS_PER_S, 0);
        return;
    }
    loop_stop(p->loop, 0);
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    struct service *s = user;
    struct program *p = s->program;
    char text[64];

    loop_child_free(child);
    s->child = NULL;
    loop_timer_set(s->watchdog, UINT64_MAX, 0);
    if (p->ending) {
        if (s == &p->service[DAEMON] || !p->service[DAEMON].child)
            go_on_ending(p);
        return 0;
    }
    describe(status, text, sizeof text);
    bool usage = WIFEXITED(status) && WEXITSTATUS(status) == USAGE;
    bool over = WIFEXITED(status) && WEXITSTATUS(status) == OK;
    if (usage || (over && s == &p->service[DAEMON])) {
        say("%s %s: ending", s->name, text);
        end(p, usage ? USAGE : OK);
        return 0;
    }
    start_later(s);
    say("%s %s: started again in %u ms", s->name, text, s->backoff_ms);
    return 0;
}

static int on_again(struct loop_timer *timer, uint64_t now, void *user)
{
    struct service *s = user;

    (void)timer;
    (void)now;
    return s->child || s->program->ending ? 0 : start_service(s);
}

static int start_service(struct service *s)
{
    struct program *p = s->program;
    static const int listening = LISTEN_FD;
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
    int r = loop_child_new(p->loop, &opts, on_exit_of, s, &s->child, &err);
    if (r < 0) { /* no process, no memory: that may pass */
        start_later(s);
        say("%s, tried again in %u ms", err.text, s->backoff_ms);
    }
    return 0;
}

/* ---- ending ---- */

static void end(struct program *p, int result)
{
    if (p->ending)
        return;
    p->ending = true;
    p->result = result;
    go_on_ending(p);
}

/* Whoever does not end: the daemon is killed (what it held comes back after the grace, or
 * as the actuator ends); the actuator goes on alone, killing it would restore nothing.
 */
static int on_deadline(struct loop_timer *timer, uint64_t now, void *user)
{
    struct program *p = user;

    (void)timer;
    (void)now;
    p->result = FAILED;
    if (p->service[DAEMON].child) {
        say("%s does not end: killed", p->service[DAEMON].name);
        (void)loop_child_kill(p->service[DAEMON].child, SIGKILL);
        return 0;
    }
    say("%s does not end: a board hangs in the driver? It is left to itself",
        p->service[ACTUATOR].name);
    loop_stop(p->loop, 0);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct program *p = user;

    (void)source;
    if (signo != SIGHUP)
        end(p, OK);
    else if (p->service[DAEMON].child)
        (void)loop_child_kill(p->service[DAEMON].child, SIGHUP);
    return 0;
}

/* ---- hearts: the service manager's protocol ---- */

/* One datagram; -1: none is there.  *ret_pid: who sent it; 0: unknown, or it was longer
 * than size, and its end is missing.
 */
static ssize_t take_note(int fd, char *text, size_t size, pid_t *ret_pid)
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
    *ret_pid = 0;
    for (struct cmsghdr *c =
             n < 0 || message.msg_flags & MSG_TRUNC ? NULL : CMSG_FIRSTHDR(&message);
         c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            *ret_pid = who.pid;
        }
    return n;
}

static int on_note(struct loop_fd *source, int fd, int events, void *user)
{
    struct program *p = user;
    char text[256];
    pid_t pid;

    (void)source;
    (void)events;
    for (int k = 0; k < NOTES_AT_ONCE; k++) {
        ssize_t n = take_note(fd, text, sizeof text, &pid);
        if (n < 0)
            break;
        bool beats = notify_beats(text, (size_t)n);
        for (int i = ACTUATOR; beats && i <= DAEMON; i++) {
            const struct service *s = &p->service[i];
            if (s->child && loop_child_pid(s->child) == pid)
                loop_timer_set(s->watchdog,
                               loop_now_ns(p->loop) + s->silent_ms * NS_PER_MS, 0);
        }
    }
    return 0;
}

static int on_silence(struct loop_timer *timer, uint64_t now, void *user)
{
    struct service *s = user;

    (void)timer;
    (void)now;
    if (s->child) {
        say("%s has been silent for %u ms: killed", s->name, s->silent_ms);
        (void)loop_child_kill(s->child, SIGKILL);
    }
    return 0;
}

/* Beside the actuator's socket, in a folder that is ours alone to write: for the daemon's
 * user and root's group (an actuator without CAP_DAC_OVERRIDE).  An abstract name would
 * be everybody's to send to, and a full queue looks like a daemon that hangs.
 */
static int open_watch(struct program *p, uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int on = 1,
        n = snprintf(p->watch_name, sizeof p->watch_name, "%s.notify", p->socket_path);

    if (n < 0 || (size_t)n >= sizeof p->watch_name)
        return fail(err, -ENAMETOOLONG, "%s.notify: longer than a socket's path may be",
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

/* ---- beginning ---- */

static int parse(struct program *p, int argc, char **argv)
{
    const struct {
        const char *name;
        const char **value;
    } options[] = {
        {"--user", &p->user},         {"--socket", &p->socket},
        {"--actuator", &p->actuator}, {"--actuator-config", &p->actuator_config},
        {"--daemon", &p->daemon},
    };
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t k = 0;
        if (strcmp(argv[i], "--help") == 0) {
            (void)fputs(help, stdout);
            return -1;
        }
        while (k < n_elements(options) && strcmp(options[k].name, argv[i]) != 0)
            k++;
        if (k == n_elements(options) || i + 1 == argc) {
            say(k < n_elements(options) ? "%s needs a value"
                                        : "'%s' is no option: see --help",
                argv[i]);
            return USAGE;
        }
        *options[k].value = argv[++i];
    }
    p->daemon_args = argv + (i < argc ? i + 1 : i);
    return 0;
}

static int find_program(const char *given, const char *name, char *ret, size_t size,
                        uw_error *err)
{
    static const char *const dirs[] = {"", "../sbin/", "../libexec/", "../actuator/",
                                       "../node/"};
    enum { INSTALLED = 3 };
    char here[PATH_MAX];
    bool built = false;

    if (given) {
        (void)snprintf(ret, size, "%s", given);
        return access(ret, X_OK) == 0
                   ? 0
                   : fail(err, -errno, "%s: %s", given, strerror(errno));
    }
    int r = file_program_dir(here, sizeof here, &built);
    if (r < 0)
        return fail(err, r, "/proc/self/exe: %s", strerror(-r));
    for (size_t i = 0; i < (built ? n_elements(dirs) : INSTALLED); i++) {
        int len = snprintf(ret, size, "%s/%s%s", here, dirs[i], name);
        if (len > 0 && (size_t)len < size && access(ret, X_OK) == 0)
            return 0;
    }
    return fail(err, -ENOENT, "%s is not installed beside underwatt-start", name);
}

/* A folder for somebody; its parents must be there. */
static int make_dir(const char *path, mode_t mode, uid_t uid, uw_error *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    auto_(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (geteuid() == 0 && fchown(fd, uid, (gid_t)-1) < 0) ||
        fchmod(fd, mode) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    return 0;
}

/* Where the actuator listens: a real node's place, or the simulated world's. */
static int choose_socket(struct program *p, const char *library, uid_t uid, uw_error *err)
{
    struct nvml_about about = {.simulated = false};
    char dir[sizeof about.state_dir + 16];
    int r = 0;

    if (library && *library) {
        r = gpu_library_check(library, geteuid() == 0, p->library, sizeof p->library,
                              err);
        if (r == 0)
            r = nvml_look(p->library, &about, err);
        if (r < 0)
            return r;
    }
    if (about.simulated)
        (void)snprintf(dir, sizeof dir, "%s/actuator", about.state_dir);
    else
        (void)snprintf(dir, sizeof dir, ACTUATOR_DIR);
    int n = snprintf(p->socket_path, sizeof p->socket_path, "%s%s",
                     p->socket ? p->socket : dir, p->socket ? "" : "/actuator.sock");
    if (n < 0 || (size_t)n >= sizeof p->socket_path || p->socket_path[0] != '/')
        return fail(err, -EINVAL,
                    "%.60s…: not an absolute path of at most %zu bytes for a socket",
                    p->socket_path, sizeof p->socket_path - 1);
    if (!about.simulated && geteuid() != 0)
        return fail(err, -EPERM, "that takes root: power limits are root's to set");
    if (!p->socket)
        r = make_dir(dir, 0711, geteuid(), err);
    if (r == 0 && about.simulated) {
        (void)snprintf(dir, sizeof dir, "%s/underwattd", about.state_dir);
        return make_dir(dir, 0755, uid, err);
    }
    if (r == 0)
        r = make_dir(RUN_DIR, 0755, uid, err);
    return r == 0 ? make_dir(LEDGER_DIR, 0750, uid, err) : r;
}

/* One starter a socket: another would take both of its sockets away, and the first one
 * would kill a daemon that it cannot hear.
 */
static int take_lock(struct program *p, uw_error *err)
{
    char path[sizeof p->lock_path];
    int fd; /* ends with the process */

    (void)snprintf(path, sizeof path, "%s.lock", p->socket_path);
    int r = lockfile_take(path, &fd, err);
    if (r == -EBUSY)
        return fail(err, r, "underwatt-start runs already: it holds %s", path);
    if (r == 0)
        memcpy(p->lock_path, path, sizeof path);
    return r;
}

/* The socket on descriptor 3, for uid alone. */
static int bind_socket(struct program *p, uid_t uid, uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    int r = fd < 0 ? 0 : take_lock(p, err); /* not on descriptor 3 */
    if (r < 0)
        return r;
    memcpy(address.sun_path, p->socket_path, sizeof p->socket_path);
    (void)unlink(p->socket_path);
    mode_t mask = umask(0177);
    bool good = fd >= 0 &&
                bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                (uid == geteuid() || lchown(p->socket_path, uid, (gid_t)-1) == 0) &&
                listen(fd, BACKLOG) == 0;
    int e = errno;
    (void)umask(mask);
    if (!good)
        return fail(err, -e, "%s: %s", p->socket_path, strerror(e));
    if (fd != LISTEN_FD && dup3(fd, LISTEN_FD, O_CLOEXEC) < 0)
        return fail(err, -errno, "descriptor %d: %s", LISTEN_FD, strerror(errno));
    if (fd == LISTEN_FD)
        (void)fd_take(&fd);
    return 0;
}

static void add(struct service *s, const char *arg)
{
    if (arg && s->n_args + 1 < ARGS_MAX)
        s->argv[s->n_args++] = arg;
}

static void add_option(struct service *s, const char *name, const char *value)
{
    if (value && *value) {
        add(s, name);
        add(s, value);
    }
}

static void set_service(struct program *p, int which, const char *name, const char *user)
{
    struct service *s = &p->service[which];

    *s = (struct service){.program = p,
                          .name = name,
                          .silent_ms =
                              which == ACTUATOR ? ACTUATOR_SILENT_MS : DAEMON_SILENT_MS};
    add(s, p->self);
    add(s, "--become");
    add(s, user);
    add(s, p->parent);
    add(s, p->found[which]);
}

static void set_services(struct program *p)
{
    const char *user = p->user ? p->user : "-"; /* no root: no change */
    struct service *s = &p->service[ACTUATOR];

    set_service(p, ACTUATOR, "underwatt-actuator", "-");
    add(s, "--serve");
    add_option(s, "--client", p->uid);
    add_option(s, "--config", p->actuator_config);
    add_option(s, "--library", p->library);
    s = &p->service[DAEMON];
    set_service(p, DAEMON, "underwattd", user);
    add_option(s, "--actuator", p->socket_path);
    if (strcmp(user, "root") == 0)
        add_option(s, "--user", user);
    for (char **arg = p->daemon_args; arg && *arg; arg++)
        add(s, *arg);
}

static int find_user(struct program *p, uid_t *ret, uw_error *err)
{
    *ret = geteuid();
    if (geteuid() != 0 && p->user)
        return fail(err, -EPERM, "--user takes root; this is uid %u", geteuid());
    if (geteuid() != 0)
        return 0;
    if (!p->user)
        p->user = "underwatt";
    const struct passwd *pw = getpwnam(p->user);
    if (!pw)
        return fail(
            err, -ENOENT,
            "there is no user '%.60s': make one (useradd --system %.60s), or name "
            "another with --user",
            p->user, p->user);
    *ret = pw->pw_uid;
    return 0;
}

static int prepare(struct program *p, const char *library, uw_error *err)
{
    uid_t uid;

    int r = find_user(p, &uid, err);
    if (r == 0)
        r = find_program(p->actuator, "underwatt-actuator", p->found[ACTUATOR],
                         sizeof p->found[ACTUATOR], err);
    if (r == 0)
        r = find_program(p->daemon, "underwattd", p->found[DAEMON],
                         sizeof p->found[DAEMON], err);
    if (r == 0)
        r = choose_socket(p, library, uid, err);
    if (r == 0)
        r = bind_socket(p, uid, err);
    if (r < 0)
        return r;
    ssize_t n = readlink("/proc/self/exe", p->self, sizeof p->self - 1);
    if (n < 0)
        return fail(err, -errno, "/proc/self/exe: %s", strerror(errno));
    (void)snprintf(p->parent, sizeof p->parent, "%d", getpid());
    (void)snprintf(p->uid, sizeof p->uid, "%u", uid);
    p->daemon_uid = uid;
    set_services(p);
    return 0;
}

static int run(struct program *p, uw_error *err)
{
    const struct {
        int signo;
        struct loop_signal **source;
    } signals[] = {{SIGTERM, &p->sigterm}, {SIGINT, &p->sigint}, {SIGHUP, &p->sighup}};
    int r = loop_new_real((struct loop_clock){.speed = 1}, &p->loop, err);

    if (r == 0)
        r = open_watch(p, err);
    for (size_t i = 0; r == 0 && i < n_elements(signals); i++)
        r = loop_signal_new(p->loop, signals[i].signo, on_signal, p, signals[i].source,
                            err);
    if (r == 0)
        r = loop_timer_new(p->loop, UINT64_MAX, 0, on_deadline, p, &p->deadline, err);
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

int main(int argc, char **argv)
{
    static struct program p = {.watch_fd = -1};
    uw_error err = {""};

    if (argc > 1 && strcmp(argv[1], "--become") == 0)
        return become(argc, argv);
    int r = parse(&p, argc, argv);
    if (r != 0)
        return r < 0 ? OK : r;
    (void)close_range(LISTEN_FD, ~0u, 0);
    r = prepare(&p, getenv("UNDERWATT_NVML"), &err);
    if (r < 0) {
        say("%s", err.text);
        return r == -EINVAL ? USAGE : FAILED;
    }
    r = run(&p, &err);
    if (r < 0)
        say("%s", err.text);
    loop_free(p.loop);
    (void)unlink(p.socket_path);
    if (p.watch_name[0])
        (void)unlink(p.watch_name);
    (void)unlink(p.lock_path);
    return r < 0 ? FAILED : p.result;
}
