/* underwatt-actuator: the one process that writes caps.  See its manual page. */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actuator/guard.h"
#include "actuator/heart.h"
#include "actuator/keeper.h"
#include "actuator/rules.h"
#include "actuator/sandbox.h"
#include "actuator/server.h"
#include "actuator/trust.h"
#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "gpu/backends.h"
#include "gpu/counters.h"
#include "gpu/library.h"
#include "io/loop.h"
#include "io/realtime.h"

enum {
    OK = CORE_ALL,
    FAILED = CORE_NONE,
    USAGE = 2,
    LISTEN_FD = 3,         /* as socket activation hands it over */
    SERVICE_LINGER_S = 20, /* for boards that refuse or hang: less than underwatt-start
                            * (ACTUATOR_END_S) and systemd (TimeoutStopSec) wait */
    LOCAL_LINGER_S = 600,  /* no process waits, and no other would restore */
};

enum mode { MODE_NONE, MODE_CHECK, MODE_LOCAL, MODE_RECOVER, MODE_SERVE };

enum phase { PHASE_RECOVERY, PHASE_SERVING, PHASE_ENDING };

struct program {
    enum mode mode;
    enum phase phase;
    const char *boards; /* a boards text (gpu/backends.h); NULL: the system's */
    char checked[GPU_BOARDS_TEXT];
    const char *config; /* NULL: RULES_FILE, where the boards are real */
    const char *client; /* an additional client */
    bool kept;          /* a service with a keeper */
    bool wrong; /* a fault in root's configuration or an argument: starting again does not
                   help */
    struct rules rules;
    char notify[108]; /* NOTIFY_SOCKET of a service */
    struct heart *heart;
    bool realtime;

    struct loop *loop;
    void *lib;
    struct journal journal;
    struct guard *guard; /* NULL: not available, for the reason in excuse */
    uw_error excuse;
    int listen_fd;
    struct gpu_counters counters; /* of real nodes, for the daemon */
    struct server *server;
    int beat_fd; /* to the keeper; -1: none */
    int beats_open;
    struct loop_fd *beat_source;
    struct loop_timer *beat_timer, *linger;
    struct loop_signal *sigterm, *sigint;
};

static const char help[] =
    "usage: underwatt-actuator --recover [--config FILE] [--library PATH]\n"
    "       underwatt-actuator --serve [--config FILE] [--client USER]\n"
    "                          [--library PATH] [--keeper]\n"
    "       underwatt-actuator --local [--library PATH]\n"
    "       underwatt-actuator --check FILE\n"
    "\n"
    "Write power caps for underwatt by leases, and restore the original limits.\n"
    "  --recover        restore limits that a killed actuator left, and exit\n"
    "  --serve          listen on descriptor 3 (socket activation), else on\n"
    "                   actuator.sock in the state directory\n"
    "  --local          for underwatt's own use: serve the socket at standard input\n"
    "  --check FILE     check FILE as a configuration and exit\n"
    "  --config FILE    what clients may do, instead of " RULES_FILE "\n"
    "  --client USER    may connect as well (a name of /etc/passwd, or a uid)\n"
    "  --library PATH   library of the boards to load instead of the system's;\n"
    "                   NAME=PATH for another backend than the first\n"
    "  --keeper         with a process beside it that restores when it is killed\n"
    "  --version, --help\n";

/* Prints without blocking: with a stopped terminal or a full pipe, the line is lost. */
static void say(const char *text, void *user)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

    (void)user;
    if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
        (void)dprintf(STDERR_FILENO, "underwatt-actuator: %s\n", text);
}

/* ---- the connection to the keeper ---- */

static void end(struct program *p);

static int silent_ms(const struct program *p)
{
    return p->mode == MODE_SERVE ? KEEPER_SERVICE_MS : KEEPER_SILENT_MS;
}

static int on_beat_due(struct loop_timer *timer, uint64_t now, void *user)
{
    struct program *p = user;

    (void)timer;
    (void)now;
    if (++p->beats_open > silent_ms(p) / KEEPER_BEAT_MS && p->phase != PHASE_ENDING) {
        say("the keeper does not answer: restoring", NULL);
        end(p);
    }
    (void)send(p->beat_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    return 0;
}

static int on_beat_back(struct loop_fd *source, int fd, int events, void *user)
{
    struct program *p = user;
    char bytes[16];

    (void)source;
    (void)events;
    if (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
        p->beats_open = 0;
        return 0;
    }
    loop_fd_free(take(p->beat_source));
    say("the keeper has ended: restoring", NULL);
    end(p);
    return 0;
}

/* ---- ending ---- */

static int on_linger(struct loop_timer *timer, uint64_t now, void *user)
{
    struct program *p = user;

    (void)timer;
    (void)now;
    if (p->guard)
        guard_give_up(p->guard);
    loop_stop(p->loop, 0);
    return 0;
}

/* A driver call that does not return may use the processor. */
static void leave_realtime(struct program *p)
{
    if (!p->realtime || !p->guard || !guard_hanging(p->guard))
        return;
    p->realtime = false;
    realtime_end();
    say("a call hangs in the driver: back to the normal class", NULL);
}

static void on_change(void *user)
{
    struct program *p = user;
    leave_realtime(p);
    bool idle = !p->guard || guard_is_idle(p->guard);

    if (p->phase == PHASE_RECOVERY &&
        (idle || (p->mode != MODE_RECOVER && !guard_is_recovering(p->guard))))
        loop_stop(p->loop, 0);
    else if (p->phase == PHASE_ENDING && idle && (!p->guard || !guard_hanging(p->guard)))
        loop_stop(p->loop, 0);
}

/* Accepts no more clients, restores everything, then stops. */
static void end(struct program *p)
{
    if (p->phase == PHASE_ENDING)
        return;
    p->phase = PHASE_ENDING;
    heart_stopping(p->heart);
    uint64_t linger_s = p->mode == MODE_SERVE ? SERVICE_LINGER_S : LOCAL_LINGER_S;
    (void)loop_timer_new(p->loop, loop_now_ns(p->loop) + linger_s * NS_PER_S, 0,
                         on_linger, p, &p->linger, NULL);
    if (p->guard)
        guard_end(p->guard);
    server_free(take(p->server));
    on_change(p);
}

/* The unit, the starter or the keeper starts another process, which recovers from the
 * journal.
 */
static void on_broken(const char *text, void *user)
{
    struct program *p = user;

    say(text, NULL);
    if (p->beat_fd >= 0) /* its keeper recovers what was killed */
        (void)raise(SIGKILL);
    loop_stop(p->loop, -EIO);
}

static void on_gone(void *user)
{
    end(user);
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    (void)source;
    (void)signo;
    end(user);
    return 0;
}

/* ---- start ---- */

static uint64_t clock_now(void *user)
{
    return loop_now_ns(user);
}

/* Checks the libraries named by an argument or by root's configuration.  A missing
 * library may return (the driver is being updated); one that others may write stays
 * refused.
 */
static int check_library(struct program *p, uw_error *err)
{
    if (!p->boards || p->checked[0])
        return 0;
    int r = gpu_boards_check(p->boards, trust_is_privileged(), p->checked,
                             sizeof p->checked, err);
    p->wrong = r == -EPERM;
    return r;
}

static bool is_simulated(const char *boards)
{
    struct gpu_about about = {.simulated = false};

    return boards[0] && gpu_boards_look(boards, &about, NULL) == 0 && about.simulated;
}

/* Whether the error may pass without a repair. */
static bool may_pass(int r)
{
    return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EIO;
}

/* Reads root's configuration, for real boards and where --config names a file.  Recovery
 * continues without it, because it only undoes.
 */
static int read_rules(struct program *p, uw_error *err)
{
    const char *path = p->config ? p->config : RULES_FILE;
    char text[300];

    p->rules = rules_default();
    int r = check_library(p, err);
    if (r < 0 || (!p->config && is_simulated(p->checked)))
        return r;
    r = rules_read_file(path, trust_is_privileged(),
                        p->mode == MODE_SERVE ? RULES_USERS : NULL, &p->rules, err);
    if (r == -ENOENT && !p->config)
        return 0;
    if (r < 0 && p->mode == MODE_RECOVER) {
        (void)snprintf(text, sizeof text, "%s", err->text);
        say(text, NULL);
        return 0;
    }
    p->wrong = r < 0 && !may_pass(r);
    if (r == 0 && p->rules.library[0] && !p->boards)
        p->boards = p->rules.library;
    return r < 0 ? r : check_library(p, err);
}

static int open_boards(struct program *p, uw_error *err)
{
    struct gpu_open_opts opts = {.source = p->boards ? p->checked : NULL,
                                 .clock = {.now_ns = clock_now, .user = p->loop}};
    char dir[320];

    int r = gpu_capped.open(&opts, &p->lib, err);
    if (r == GPU_ABSENT)
        return -ENODEV;
    if (r == 0) {
        const struct gpu_about *about = gpu_boards_about(p->lib);
        if (about->simulated && !p->config)
            p->rules = rules_default(); /* the rules read were for real boards */
        r = trust_state_dir(about->simulated, about->state_dir, dir, sizeof dir, err);
    }
    if (r == 0)
        r = journal_open(dir, &p->journal, err);
    if ((r == -EACCES || r == -EPERM) && geteuid() != 0)
        return fail_in(err, -EPERM, "no permission to set power limits as uid %u",
                       geteuid());
    if (r < 0)
        return r;

    struct guard_opts guard = {.loop = p->loop,
                               .backend = &gpu_capped,
                               .lib = p->lib,
                               .grace_ns = p->mode == MODE_SERVE ? p->rules.grace_ns : 0,
                               .keep_trying = p->mode == MODE_SERVE,
                               .privileged = geteuid() == 0,
                               .journal = &p->journal,
                               .rules = &p->rules.boards,
                               .say = say,
                               .on_change = on_change,
                               .on_broken = on_broken,
                               .user = p};
    return guard_new(&guard, &p->guard, err);
}

static int start_beating(struct program *p, uw_error *err)
{
    if (p->beat_fd < 0)
        return 0;
    int r = loop_timer_new(p->loop, 0, KEEPER_BEAT_MS * NS_PER_MS, on_beat_due, p,
                           &p->beat_timer, err);
    if (r == 0)
        r = loop_fd_new(p->loop, p->beat_fd, LOOP_READ, on_beat_back, p, &p->beat_source,
                        err);
    return r;
}

/* The service's socket: the one passed by socket activation, or a new one. */
static int open_listener(struct program *p, uw_error *err)
{
    char path[300];
    struct stat st;

    if (p->client) {
        int r = rules_add_client(&p->rules, p->client, RULES_USERS, err);
        p->wrong = r < 0;
        if (r < 0)
            return fail_in(err, r, "--client");
    }
    p->listen_fd = LISTEN_FD;
    if (fstat(LISTEN_FD, &st) == 0 && S_ISSOCK(st.st_mode))
        return 0;
    (void)snprintf(path, sizeof path, "%s/actuator.sock", p->journal.dir);
    uid_t owner =
        geteuid() == 0 && p->rules.n_clients == 1 ? p->rules.client[0] : (uid_t)-1;
    return server_bind(path, owner, &p->listen_fd, err);
}

static uid_t counters_owner(void)
{
    return trust_is_privileged() ? 0 : geteuid();
}

/* The folder of counters that root's configuration names; only root can have written it.
 */
static int check_powercap(struct program *p, char ret_root[PATH_MAX], uw_error *err)
{
    if (!p->rules.powercap[0])
        return 0;
    int r =
        gpu_folder_check(p->rules.powercap, counters_owner(), ret_root, PATH_MAX, err);
    p->wrong = r < 0;
    return r < 0 ? fail_in(err, r, "powercap") : 0;
}

/* Opens the processors' counters: the kernel's on real nodes, or those of that folder. */
static int open_counters(struct program *p, uw_error *err)
{
    char root[PATH_MAX];
    bool named = p->rules.powercap[0];

    int r = check_powercap(p, root, err);
    if (r < 0)
        return r;
    if (named || !gpu_boards_about(p->lib)->simulated)
        gpu_counters_open(named ? root : NULL, counters_owner(), &p->counters);
    return 0;
}

/* Enters real-time priority, because limits for budgets must be written while jobs keep
 * every processor busy.  Not in an accelerated simulation, where it would take time from
 * the jobs and the simulator.
 */
static void enter_realtime(struct program *p)
{
    static const char lost[] = "underwatt-actuator: ran for too long without "
                               "waiting: back to the normal class\n";
    const char *text = gpu_boards_about(p->lib)->clock;
    struct loop_clock clock = {.speed = 1};

    if (text[0] && (loop_clock_parse(text, &clock, NULL) < 0 || clock.speed > 1))
        return;
    p->realtime = p->rules.realtime && realtime_begin(REALTIME_ALL, lost) == 0;
}

/* Gives up capabilities, files and system calls; logs which of these this kernel
 * supports.
 */
static int give_up(struct program *p, uw_error *err)
{
    const struct gpu_about *about = gpu_boards_about(p->lib);
    const struct sandbox_world world = {.journal = p->journal.dir,
                                        .simulated =
                                            about->simulated ? about->state_dir : NULL};
    unsigned version = 0;
    char text[160];

    int r = sandbox_drop_capabilities(err);
    if (r < 0)
        return r;
    int files = sandbox_files(&world, &version, err);
    r = files < 0 ? files : sandbox_filter(&world, err);
    if (r < 0 || !sandbox_has_filter())
        return r;
    if (files == SANDBOX_E_NO_LANDLOCK)
        (void)snprintf(text, sizeof text,
                       "locked down except for files: this kernel has no Landlock, only "
                       "the unit and the uid restrict paths");
    else
        (void)snprintf(text, sizeof text,
                       "locked down: system calls, and files by "
                       "Landlock (version %u)",
                       version);
    say(text, NULL);
    return 0;
}

/* Called before the first client and the first worker: files that are open stay open. */
static int lock_down(struct program *p, uw_error *err)
{
    int r = read_rules(p, err);

    if (r == 0)
        r = open_boards(p, err);
    if (r < 0 || p->mode != MODE_SERVE)
        return r;
    r = open_counters(p, err);
    if (r == 0)
        r = open_listener(p, err);
    if (r == 0) {
        enter_realtime(p);
        r = give_up(p, err);
    }
    return r;
}

/* Recovers the entries of dead holders before any client is served. */
static int recover(struct program *p, uw_error *err)
{
    int r = lock_down(p, err);

    if (r == 0)
        r = guard_recover(p->guard, err);
    if (r == 0 && !guard_is_idle(p->guard))
        r = loop_run(p->loop, err); /* until on_change ends it */
    return r;
}

static int open_door(struct program *p, uw_error *err)
{
    struct server_opts opts = {.loop = p->loop,
                               .guard = p->guard,
                               .client = p->rules.client,
                               .n_clients = p->rules.n_clients,
                               .counters = &p->counters,
                               .excuse = p->excuse.text,
                               .say = say,
                               .on_gone = on_gone,
                               .user = p};

    return p->mode == MODE_LOCAL
               ? server_new_local(&opts, STDIN_FILENO, &p->server, err)
               : server_new_listening(&opts, p->listen_fd, &p->server, err);
}

static int serve(struct program *p, uw_error *err)
{
    p->phase = PHASE_SERVING;
    int r = open_door(p, err);
    if (r == 0)
        r = loop_signal_new(p->loop, SIGTERM, on_signal, p, &p->sigterm, err);
    if (r == 0)
        r = loop_signal_new(p->loop, SIGINT, on_signal, p, &p->sigint, err);
    if (r == 0)
        r = heart_ready(p->heart, err);
    (void)malloc_trim(0); /* the memory used while reading the rules */
    return r == 0 ? loop_run(p->loop, err) : r;
}

static int actuate(struct program *p)
{
    uw_error err = {""};

    p->journal.dir_fd = -1;
    int r = loop_new_real((struct loop_clock){.speed = 1}, &p->loop, &err);
    if (r == 0)
        r = heart_new(p->notify, p->loop, &p->heart, &err);
    if (r == 0)
        r = start_beating(p, &err);
    if (r == 0)
        r = recover(p, &err);
    if (r < 0 && p->loop && p->mode == MODE_LOCAL) {
        p->excuse = err; /* reported to the client */
        guard_free(take(p->guard));
        r = 0;
    }
    if (r == 0 && p->mode != MODE_RECOVER && p->phase != PHASE_ENDING)
        r = serve(p, &err);
    if (r < 0 && err.text[0])
        say(err.text, NULL);
    if (r < 0)
        return p->wrong ? USAGE : FAILED;
    if (p->mode == MODE_RECOVER && p->guard)
        guard_give_up(p->guard); /* boards that hang: nothing else can be done */
    return p->guard ? (int)guard_status(p->guard) : OK;
}

/* What the file names: the library, the folder of counters. */
static int check_named(struct program *p, uw_error *err)
{
    char root[PATH_MAX];

    p->boards = p->rules.library[0] ? p->rules.library : NULL;
    int r = check_library(p, err);
    return r < 0 ? fail_in(err, r, "library") : check_powercap(p, root, err);
}

/* The path of FILE from the current folder. */
static int find_file(const char *name, char *ret, size_t size, uw_error *err)
{
    char folder[PATH_MAX] = "";

    if (name[0] != '/' && !getcwd(folder, sizeof folder))
        return fail(err, -errno, "the current folder: %s", strerror(errno));
    size_t n = strlen(folder);
    const char *slash = n && folder[n - 1] != '/' ? "/" : "";
    if (snprintf(ret, size, "%s%s%s", folder, slash, name) >= (int)size)
        return fail(err, -ENAMETOOLONG, "%.100s: the path is longer than %zu bytes", name,
                    size - 1);
    return 0;
}

/* Reads FILE as --serve does; opens no board. */
static int check(struct program *p)
{
    char path[PATH_MAX];
    uw_error err = {""};

    int r = find_file(p->config, path, sizeof path, &err);
    if (r == 0)
        r = rules_check_file(path, trust_is_privileged(), RULES_USERS, &p->rules, &err);
    if (r == 0 && (r = check_named(p, &err)) < 0)
        r = fail_in(&err, r, "%s", path);
    if (r < 0) {
        (void)fprintf(stderr, "underwatt-actuator: %s\n", err.text);
        return USAGE;
    }
    (void)printf("%s: OK\n", p->config);
    return OK;
}

/* Handles argv[*i]; advances *i over a value.  USAGE after a line. */
static int take_option(struct program *p, char **argv, int *i)
{
    const struct {
        const char *name;
        enum mode mode; /* MODE_NONE: not told by this option */
        const char **value;
    } options[] = {
        {"--local", MODE_LOCAL, NULL},       {"--recover", MODE_RECOVER, NULL},
        {"--serve", MODE_SERVE, NULL},       {"--check", MODE_CHECK, &p->config},
        {"--keeper", MODE_NONE, NULL},       {"--library", MODE_NONE, &p->boards},
        {"--config", MODE_NONE, &p->config}, {"--client", MODE_NONE, &p->client},
    };
    const char *option = argv[*i];
    struct nearest near = {0};
    char hint[NEAREST_TEXT];

    for (size_t k = 0; k < n_elements(options); k++) {
        nearest_try(&near, option, strlen(option), options[k].name);
        if (strcmp(option, options[k].name) != 0)
            continue;
        if (options[k].value && !argv[*i + 1]) {
            (void)fprintf(stderr, "underwatt-actuator: %s needs a value\n", option);
            return USAGE;
        }
        if (options[k].value == &p->config && p->config) {
            (void)fprintf(stderr,
                          "underwatt-actuator: %s '%s': a second file; '%s' is given\n",
                          option, argv[*i + 1], p->config);
            return USAGE;
        }
        if (options[k].value)
            *options[k].value = argv[++*i];
        else if (options[k].mode == MODE_NONE)
            p->kept = true;
        if (options[k].mode != MODE_NONE)
            p->mode = options[k].mode;
        return 0;
    }
    (void)fprintf(stderr, "underwatt-actuator: %s '%s' (see --help)%s\n",
                  asked_wrong(option), option, nearest_text(&near, hint));
    return USAGE;
}

static int parse(struct program *p, int argc, char **argv)
{
    switch (asked_by(argc, argv)) {
    case ASKED_HELP:
        return asked_print("underwatt-actuator", help) ? -1 : FAILED;
    case ASKED_VERSION:
        return asked_print("underwatt-actuator", "underwatt-actuator " UW_VERSION "\n")
                   ? -1
                   : FAILED;
    default:
        break;
    }
    for (int i = 1; i < argc; i++)
        if (take_option(p, argv, &i) != 0)
            return USAGE;
    if (p->mode == MODE_NONE || (p->kept && p->mode != MODE_SERVE)) {
        (void)fprintf(stderr, "underwatt-actuator: %s\n",
                      p->kept ? "--keeper is for --serve"
                              : "give --recover, --serve, --local or --check");
        return USAGE;
    }
    return 0;
}

/* Keeps nothing from the parent but the arguments and descriptors 0 to 2 (3). */
static int stand_alone(enum mode mode)
{
    static const struct rlimit no_core;
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    (void)sigaction(SIGPIPE, &ignore, NULL);
    if (clearenv() != 0 || chdir("/") < 0)
        return -errno;
    (void)umask(077);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    return close_range(mode == MODE_SERVE ? LISTEN_FD + 1 : LISTEN_FD, ~0u, 0);
}

/* Returns 0 in the process that acts.  In its keeper, or if no keeper can be started,
 * returns 1, with main()'s return value in *ret.
 */
static int split_keeper(struct program *p, char *self, int *ret)
{
    static char word[3][16] = {"--recover", "--library", "--config"};
    char *argv[8] = {self, word[0]};
    const struct keeper_opts opts = {
        .recovery = argv, .silent_ms = silent_ms(p), .insist = p->kept, .say = say};
    size_t n = 2;

    if (p->mode != MODE_LOCAL && !p->kept)
        return 0;
    const char *const value[] = {p->boards, p->mode == MODE_SERVE ? p->config : NULL};
    for (size_t i = 0; i < n_elements(value); i++)
        if (value[i]) {
            argv[n++] = word[i + 1];
            memcpy(&argv[n++], &value[i], sizeof value[i]);
        }
    int r = keeper_start(&opts, &p->beat_fd);
    *ret = r < 0 ? FAILED : r;
    return p->beat_fd < 0;
}

int main(int argc, char **argv)
{
    struct program p = {.beat_fd = -1};

    int r = parse(&p, argc, argv);
    if (r != 0)
        return r < 0 ? OK : r;
    if (p.mode == MODE_CHECK)
        return check(&p);
    const char *notify = p.mode == MODE_SERVE ? getenv("NOTIFY_SOCKET") : NULL;
    if (notify)
        (void)snprintf(p.notify, sizeof p.notify, "%s", notify);
    if (stand_alone(p.mode) < 0)
        return FAILED;
    if (split_keeper(&p, argv[0], &r))
        return r;
    r = actuate(&p);
    if (p.guard && guard_is_busy(p.guard))
        _exit(r); /* the driver's exit handlers would wait for the call in progress */
    server_free(p.server);
    gpu_counters_close(&p.counters);
    heart_free(p.heart);
    guard_free(p.guard);
    loop_free(p.loop);
    if (p.lib)
        gpu_capped.close(p.lib);
    journal_close(&p.journal);
    return r;
}
