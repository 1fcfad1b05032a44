/* underwatt-start: runs actuator and daemon on a node without systemd.  Binds the
 * actuator's socket, starts, restarts and ends both.  See underwatt-start(8).
 *
 * Each program is started through this program (--become), which sets a parent-death
 * signal, changes the user and executes the program.
 */
#include "daemon/start.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
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

#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "daemon/lockfile.h"
#include "daemon/privileges.h"
#include "gpu/backends.h"
#include "io/file.h"

enum {
    BACKLOG = 16,
    ACTUATOR_SILENT_MS = 5000, /* its keeper kills it before that */
    DAEMON_SILENT_MS = 10000,  /* its leases expire long before that */
};

#define RUN_DIR "/run/underwatt"
#define LEDGER_DIR "/var/lib/underwatt"
#define ACTUATOR_DIR "/run/underwatt-actuator"

static const char help[] =
    "usage: underwatt-start [--user NAME] [--socket PATH] [--actuator PROGRAM]\n"
    "                       [--actuator-config FILE] [--daemon PROGRAM]\n"
    "                       [-- OPTION…]\n"
    "\n"
    "Run underwatt-actuator as root and underwattd as its own user, without systemd.\n"
    "  --user NAME             underwattd's user, as root (default: underwatt; root\n"
    "                          in a simulated world)\n"
    "  --socket PATH           socket of the actuator, instead of\n"
    "                          " ACTUATOR_DIR "/actuator.sock\n"
    "  --actuator-config FILE  instead of " UNDERWATT_ETC "/actuator.yaml\n"
    "  --actuator PROGRAM, --daemon PROGRAM\n"
    "                          instead of those next to this program\n"
    "  OPTION…                 options of underwattd: see its --help\n"
    "  --version, --help\n";

/* Never blocks: the line is lost if the terminal is stopped or the pipe is full. */
void start_say(const char *format, ...)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    char text[400];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
        (void)dprintf(STDERR_FILENO, "underwatt-start: %s\n", text);
}

/* ---- --become USER PARENT PROGRAM…: setup in the child ---- */

static int become(int argc, char **argv)
{
    uw_error err;
    uint64_t parent = 0;

    if (argc < 5 || parse_u64(argv[3], &parent, NULL) < 0)
        return START_USAGE;
    if (strcmp(argv[2], "-") != 0 && privileges_drop(argv[2], &err) < 0) {
        start_say("%s", err.text);
        return START_USAGE;
    }
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* SIGTERM if underwatt-start is killed */
    if (getppid() != (pid_t)parent)
        return START_FAILED;
    (void)execv(argv[4], argv + 4);
    start_say("%s: %s", argv[4], strerror(errno));
    return START_USAGE;
}

/* ---- beginning ---- */

/* The actuator reads it, which would end with more lines. */
static int check_config(const char *path)
{
    uw_error err = {""};
    int r = !path          ? 0
            : *path != '/' ? fail(&err, -EINVAL, "'%s' is not an absolute path", path)
                           : file_check_read(path, &err);

    if (r < 0)
        start_say("--actuator-config: %s", err.text);
    return r < 0 ? START_USAGE : 0;
}

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

    switch (asked_by(argc, argv)) {
    case ASKED_HELP:
        return asked_print("underwatt-start", help) ? -1 : START_FAILED;
    case ASKED_VERSION:
        return asked_print("underwatt-start", "underwatt-start " UW_VERSION "\n")
                   ? -1
                   : START_FAILED;
    default:
        break;
    }
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t k = 0;
        while (k < n_elements(options) && strcmp(options[k].name, argv[i]) != 0)
            k++;
        if (k == n_elements(options)) {
            struct nearest near = {0};
            char hint[NEAREST_TEXT];
            for (k = 0; k < n_elements(options); k++)
                nearest_try(&near, argv[i], strlen(argv[i]), options[k].name);
            start_say("%s '%s' (see --help)%s", asked_wrong(argv[i]), argv[i],
                      nearest_text(&near, hint));
            return START_USAGE;
        }
        if (i + 1 == argc) {
            start_say("%s needs a value", argv[i]);
            return START_USAGE;
        }
        *options[k].value = argv[++i];
    }
    p->daemon_args = argv + (i < argc ? i + 1 : i);
    return check_config(p->actuator_config);
}

static int find_program(const char *given, const char *name, char *ret, size_t size,
                        uw_error *err)
{
    static const char *const dirs[] = {"", "../sbin/", "../libexec/", "../actuator/"};
    enum { INSTALLED = 3 };
    char here[PATH_MAX];
    bool built = false;

    if (given) {
        (void)snprintf(ret, size, "%s", given);
        return access(ret, X_OK) == 0
                   ? 0
                   : fail(err, -EINVAL, "%s: %s", given, strerror(errno));
    }
    int r = file_program_dir(here, sizeof here, &built);
    if (r < 0)
        return fail(err, r, "/proc/self/exe: %s", strerror(-r));
    for (size_t i = 0; i < (built ? n_elements(dirs) : INSTALLED); i++) {
        int len = snprintf(ret, size, "%s/%s%s", here, dirs[i], name);
        if (len > 0 && (size_t)len < size && access(ret, X_OK) == 0)
            return 0;
    }
    return fail(err, -ENOENT, "%s is not installed next to underwatt-start", name);
}

/* Creates a directory owned by uid; its parent must exist. */
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

/* Whether the boards are simulated, and by which world. */
static int find_boards(struct program *p, const char *boards, struct gpu_about *ret,
                       uw_error *err)
{
    if (!boards)
        return 0;

    int r = gpu_boards_check(boards, geteuid() == 0, p->boards, sizeof p->boards, err);
    return r < 0 ? r : gpu_boards_look(p->boards, ret, err);
}

/* Chooses the actuator's socket, for a real node or a simulated world, and creates the
 * directories.
 */
static int choose_socket(struct program *p, const struct gpu_about *about, uid_t uid,
                         uw_error *err)
{
    char dir[sizeof about->state_dir + 16];
    int r = 0;

    if (about->simulated)
        (void)snprintf(dir, sizeof dir, "%s/actuator", about->state_dir);
    else
        (void)snprintf(dir, sizeof dir, ACTUATOR_DIR);
    int n = snprintf(p->socket_path, sizeof p->socket_path, "%s%s",
                     p->socket ? p->socket : dir, p->socket ? "" : "/actuator.sock");
    if (n < 0 || (size_t)n >= sizeof p->socket_path || p->socket_path[0] != '/')
        return fail(err, -EINVAL,
                    "socket '%.60s': not an absolute path of at most %zu bytes",
                    p->socket_path, sizeof p->socket_path - 1);
    if (!about->simulated && geteuid() != 0)
        return fail(err, -EPERM, "this needs root, to set power limits");
    if (!p->socket)
        r = make_dir(dir, 0711, geteuid(), err);
    if (r == 0 && about->simulated) {
        (void)snprintf(dir, sizeof dir, "%s/underwattd", about->state_dir);
        return make_dir(dir, 0755, uid, err);
    }
    if (r == 0)
        r = make_dir(RUN_DIR, 0755, uid, err);
    return r == 0 ? make_dir(LEDGER_DIR, 0750, uid, err) : r;
}

/* One starter per socket: a second one would replace both sockets, and the first would
 * kill a daemon whose messages it no longer receives.
 */
static int take_lock(struct program *p, uw_error *err)
{
    char path[sizeof p->lock_path];
    int fd; /* closed when the process exits */

    (void)snprintf(path, sizeof path, "%s.lock", p->socket_path);
    int r = lockfile_take(path, &fd, err);
    if (r == -EBUSY)
        return fail(err, r, "underwatt-start is already running: it holds %s", path);
    if (r == 0)
        memcpy(p->lock_path, path, sizeof path);
    return r;
}

/* Binds the socket for uid alone, on descriptor 3. */
static int bind_socket(struct program *p, uid_t uid, uw_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    int r = fd < 0
                ? 0
                : take_lock(
                      p, err); /* after socket(), so that the lock is not descriptor 3 */
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
    if (fd != START_LISTEN_FD && dup3(fd, START_LISTEN_FD, O_CLOEXEC) < 0)
        return fail(err, -errno, "descriptor %d: %s", START_LISTEN_FD, strerror(errno));
    if (fd == START_LISTEN_FD)
        (void)fd_take(&fd);
    return 0;
}

static void add(struct service *s, const char *arg)
{
    if (arg && s->n_args + 1 < START_ARGS_MAX)
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
                          .uid = which == ACTUATOR ? geteuid() : p->daemon_uid,
                          .silent_ms =
                              which == ACTUATOR ? ACTUATOR_SILENT_MS : DAEMON_SILENT_MS};
    add(s, p->self);
    add(s, "--become");
    add(s, user);
    add(s, p->parent);
    add(s, p->found[which]);
}

static void set_recovery(struct program *p)
{
    struct service *s = &p->recovery;

    s->program = p;
    add(s, p->found[ACTUATOR]);
    add(s, "--recover");
    add_option(s, "--config", p->actuator_config);
    add_option(s, "--library", p->boards);
}

static void set_services(struct program *p)
{
    const char *user = p->user ? p->user : "-"; /* "-": not root, no change */
    struct service *s = &p->service[ACTUATOR];

    set_service(p, ACTUATOR, "underwatt-actuator", "-");
    add(s, "--serve");
    add(s, "--keeper");
    add_option(s, "--client", p->uid);
    add_option(s, "--config", p->actuator_config);
    add_option(s, "--library", p->boards);
    s = &p->service[DAEMON];
    set_service(p, DAEMON, "underwattd", user);
    add_option(s, "--actuator", p->socket_path);
    if (strcmp(user, "root") == 0)
        add_option(s, "--user", user);
    for (char **arg = p->daemon_args; arg && *arg; arg++)
        add(s, *arg);
    set_recovery(p);
}

/* As root, simulated boards have no user of their own, who may not reach their folder. */
static int find_user(struct program *p, bool simulated, uid_t *ret, uw_error *err)
{
    *ret = geteuid();
    if (geteuid() != 0 && p->user)
        return fail(err, -EINVAL, "--user needs root; this is uid %u", geteuid());
    if (geteuid() != 0)
        return 0;
    if (!p->user)
        p->user = simulated ? "root" : "underwatt";
    const struct passwd *pw = getpwnam(p->user);
    if (!pw)
        return fail(
            err, -EINVAL,
            "user '%.60s' does not exist: create it (useradd --system %.60s), or name "
            "another with --user",
            p->user, p->user);
    *ret = pw->pw_uid;
    return 0;
}

/* Whether the daemon's user may enter the folder of the simulated world.  (The daemon
 * itself would report at each start that its library cannot be read.)
 */
static int check_reach(const struct program *p, const char *dir, uw_error *err)
{
    int status = 0;

    if (!p->user)
        return 0; /* services of an ordinary user */
    pid_t child = fork();
    if (child < 0)
        return fail(err, -errno, "fork: %s", strerror(errno));
    if (child == 0)
        _exit(privileges_drop(p->user, NULL) < 0 || access(dir, X_OK) == 0 ? 0 : errno);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return fail(err, -EINVAL, "--user %.60s: may not enter the simulated world's %s: %s",
                p->user, dir, strerror(WIFEXITED(status) ? WEXITSTATUS(status) : EIO));
}

static int prepare(struct program *p, const char *boards, uw_error *err)
{
    struct gpu_about about = {.simulated = false};
    uid_t uid = 0;

    int r = find_boards(p, boards, &about, err);
    if (r == 0)
        r = find_user(p, about.simulated, &uid, err);
    if (r == 0 && about.simulated)
        r = check_reach(p, about.state_dir, err);
    if (r == 0)
        r = find_program(p->actuator, "underwatt-actuator", p->found[ACTUATOR],
                         sizeof p->found[ACTUATOR], err);
    if (r == 0)
        r = find_program(p->daemon, "underwattd", p->found[DAEMON],
                         sizeof p->found[DAEMON], err);
    if (r == 0)
        r = choose_socket(p, &about, uid, err);
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

int main(int argc, char **argv)
{
    static struct program p = {.watch_fd = -1};
    uw_error err = {""};

    if (argc > 1 && strcmp(argv[1], "--become") == 0)
        return become(argc, argv);
    int r = parse(&p, argc, argv);
    if (r != 0)
        return r < 0 ? START_OK : r;
    (void)close_range(START_LISTEN_FD, ~0u, 0);
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    r = prepare(&p, gpu_boards_named(getenv), &err);
    if (r < 0) {
        start_say("%s", err.text);
        return r == -EINVAL ? START_USAGE : START_FAILED;
    }
    r = start_run(&p, &err);
    if (r < 0)
        start_say("%s", err.text);
    loop_free(p.loop);
    (void)unlink(p.socket_path);
    if (p.watch_name[0])
        (void)unlink(p.watch_name);
    (void)unlink(p.lock_path);
    return r < 0 ? START_FAILED : p.result;
}
