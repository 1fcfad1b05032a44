/* underwattd: the node daemon.  Reads arguments, environment and configuration, drops
 * privileges, and runs a node until a signal ends it.  See underwattd(8).
 */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "config/config.h"
#include "daemon/listeners.h"
#include "daemon/lockfile.h"
#include "daemon/notify.h"
#include "daemon/privileges.h"
#include "daemon/token-command.h"
#include "gpu/backends.h"
#include "gpu/counters.h"
#include "gpu/library.h"
#include "io/file.h"
#include "io/realtime.h"
#include "io/start-pages.h"
#include "node/node.h"

enum { OK = 0, FAILED = 1, USAGE = 2, AGAIN = 75 /* EX_TEMPFAIL: restart requested */ };

/* The command line. */
struct args {
    const char *config, *check, *actuator, *state, *user;
    bool dry_run, version, help;
    struct token_words token;
};

/* The environment: a real node, or a simulated one. */
struct world {
    const char *boards; /* a boards text (gpu/backends.h); NULL: the system's */
    char checked[GPU_BOARDS_TEXT];
    bool simulated;
    char state_dir[256];
    struct loop_clock clock;
    const char *notify;   /* NOTIFY_SOCKET */
    uint64_t watchdog_ns; /* of kernel time; 0: none */
};

struct program {
    struct args args;
    struct world world;
    struct node_config config;
    const char *config_file; /* NULL: none */
    char state_dir[CONFIG_PATH];
    int lock_fd, socket_lock_fd;
    struct loop *loop;
    struct loop_signal *sigterm, *sigint, *sigusr2, *sighup;
    bool again; /* ended for a restart: caps stay in force */
    struct node *node;
    struct gpu_given *given; /* counters from the actuator */
    char powercap[PATH_MAX]; /* root of the powercap tree, if configured */
    struct listeners *listeners;
    struct loop_timer *beat; /* sends WATCHDOG=1 to the service manager */
    bool ready, ending;
    bool wrong; /* the configuration is wrong: a restart cannot help */
};

/* Its priority, "<4>", is for journald. */
enum { PRIORITY = 3 };
static const char realtime_lost[] =
    "<4>event=realtime-lost reason=\"the loop did not wait for "
    "events for too long\" in_force=normal\n";

static const char help[] =
    "usage: underwattd [--config FILE] [--actuator SOCKET] [--state DIR]\n"
    "                  [--user NAME] [--dry-run]\n"
    "       underwattd --check FILE\n"
    "       underwattd --token-new NAME --token-scope read|claim|admin\n"
    "                  [--token-user USER] [--token-job ID] [--token-for TIME]\n"
    "       underwattd --token-list | --token-revoke NAME\n"
    "\n"
    "The node daemon: measures all boards, tracks jobs, and sets power caps.\n"
    "  --config FILE      read FILE instead of " NODE_CONFIG_FILE "\n"
    "  --check FILE       check FILE as a configuration and exit\n"
    "  --actuator SOCKET  socket of underwatt-actuator, which sets caps\n"
    "  --state DIR        directory of ledger and lock, instead of /var/lib/underwatt\n"
    "  --user NAME        if started as root, change to this user first\n"
    "  --dry-run          decide and record caps, but do not set them\n"
    "  --token-new NAME   create a token for TCP clients and print it, once\n"
    "  --token-list, --token-revoke NAME\n"
    "  --version, --help\n";

static int complain(int code, const char *text)
{
    (void)fprintf(stderr, "underwattd: %s\n", text);
    return code;
}

/* ---- arguments and environment ---- */

static int parse_args(int argc, char **argv, struct args *ret, uw_error *err)
{
    const struct {
        const char *name;
        const char **value;
        bool *flag;
    } options[] = {
        {"--config", &ret->config, NULL},
        {"--check", &ret->check, NULL},
        {"--actuator", &ret->actuator, NULL},
        {"--state", &ret->state, NULL},
        {"--user", &ret->user, NULL},
        {"--token-new", &ret->token.make, NULL},
        {"--token-revoke", &ret->token.revoke, NULL},
        {"--token-scope", &ret->token.scope, NULL},
        {"--token-user", &ret->token.user, NULL},
        {"--token-job", &ret->token.job, NULL},
        {"--token-for", &ret->token.ttl, NULL},
        {"--token-list", NULL, &ret->token.list},
        {"--dry-run", NULL, &ret->dry_run},
    };

    enum asked asked = asked_by(argc, argv);
    ret->help = asked == ASKED_HELP;
    ret->version = asked == ASKED_VERSION;
    if (asked != ASKED_NOTHING)
        return 0;
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < n_elements(options) && strcmp(options[k].name, argv[i]) != 0)
            k++;
        if (k == n_elements(options)) {
            struct nearest near = {0};
            char hint[NEAREST_TEXT];
            for (k = 0; k < n_elements(options); k++)
                nearest_try(&near, argv[i], strlen(argv[i]), options[k].name);
            return fail(err, -EINVAL, "%s '%.80s' (see --help)%s", asked_wrong(argv[i]),
                        argv[i], nearest_text(&near, hint));
        }
        if (options[k].flag) {
            *options[k].flag = true;
            continue;
        }
        if (i + 1 == argc)
            return fail(err, -EINVAL, "%s needs a value", argv[i]);
        const char *file = ret->config ? ret->config : ret->check;
        if (file && (options[k].value == &ret->config || options[k].value == &ret->check))
            return fail(err, -EINVAL, "%s '%.80s': a second file; '%.80s' is given",
                        argv[i], argv[i + 1], file);
        *options[k].value = argv[++i];
    }
    return 0;
}

/* Checks the boards named by the environment or the configuration; sets w->simulated. */
static int look_at_boards(struct world *w, const char *boards, uw_error *err)
{
    struct gpu_about about;

    if (!boards)
        return 0;
    int r = gpu_boards_check(boards, geteuid() == 0, w->checked, sizeof w->checked, err);
    if (r < 0)
        return r;
    w->boards = w->checked;
    r = gpu_boards_look(w->boards, &about, err);
    if (r < 0)
        return r;
    w->simulated = r == 0 && about.simulated;
    (void)snprintf(w->state_dir, sizeof w->state_dir, "%s",
                   w->simulated ? about.state_dir : "");
    return 0;
}

static int read_environment(struct world *w, uw_error *err)
{
    const char *watchdog = getenv("WATCHDOG_USEC");
    uint64_t us = 0;

    w->notify = getenv("NOTIFY_SOCKET");
    if (watchdog && parse_u64(watchdog, &us, NULL) == 0 && us < UINT64_MAX / NS_PER_US)
        w->watchdog_ns = us * NS_PER_US;
    int r = loop_clock_parse(getenv("UNDERWATT_CLOCK"), &w->clock, err);

    return r < 0 ? r : look_at_boards(w, gpu_boards_named(getenv), err);
}

/* ---- configuration ---- */

/* Of a process without threads. */
static int read_first(struct node_config *c, const char *path, uw_error *err)
{
    bool hidden;

    return node_config_shown(c, path, &hidden, err);
}

/* The file, which `read` reads, overrides the defaults, the command line overrides both.
 * *ret is unchanged on failure.
 */
static int load_config(const struct program *p,
                       int (*read)(struct node_config *, const char *, uw_error *),
                       struct node_config *ret, uw_error *err)
{
    struct node_config c;
    int r = node_config_init(&c, p->world.simulated ? p->world.state_dir : NULL, err);

    if (r == 0 && p->args.state) {
        int n = snprintf(c.ledger.path, sizeof c.ledger.path, "%s/ledger.sqlite",
                         p->args.state);
        if (n < 0 || (size_t)n >= sizeof c.ledger.path)
            r = fail(err, -ENAMETOOLONG, "--state: the path is too long");
    }
    if (r == 0 && p->config_file)
        r = read(&c, p->config_file, err);
    if (r < 0)
        return r;
    c.node.dry_run |= p->args.dry_run;
    if (p->args.actuator) {
        if (strlen(p->args.actuator) >= sizeof c.actuator_socket)
            return fail(err, -ENAMETOOLONG,
                        "--actuator: a socket's path has at most %zu "
                        "bytes",
                        sizeof c.actuator_socket - 1);
        memset(c.actuator_socket, 0, sizeof c.actuator_socket);
        memcpy(c.actuator_socket, p->args.actuator, strlen(p->args.actuator));
    }
    *ret = c;
    return 0;
}

static void print_warning(const char *text, bool logged, void *user)
{
    const struct program *p = user;
    (void)logged;

    (void)fprintf(stderr, "underwattd: %s: warning: %s\n", p->args.check, text);
}

static void log_warning(const char *text, bool logged, void *user)
{
    (void)user;
    if (!logged)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_CONFIG_WARNING, "reason=%s",
                  log_quote(text).text);
}

static int check(struct program *p)
{
    struct node_config c;
    bool hidden = false;
    uw_error err = {""};
    int r = node_config_init(&c, NULL, &err);

    if (r == 0)
        r = node_config_shown(&c, p->args.check, &hidden, &err);
    if (r == 0 && (r = node_config_look(&c, NULL, hidden, print_warning, p, &err)) < 0)
        r = fail_in(&err, r, "%s", p->args.check);
    if (r < 0)
        return complain(USAGE, err.text);
    (void)printf("%s: OK%s\n", p->args.check,
                 c.budget_mw ? " (budget.node is not compared with the limits of boards)"
                             : "");
    return OK;
}

/* The default file may be missing. */
static void choose_file(struct program *p)
{
    p->config_file = p->args.config;
    if (!p->config_file && !p->world.simulated && access(NODE_CONFIG_FILE, F_OK) == 0)
        p->config_file = NODE_CONFIG_FILE;
}

/* ---- reload of the configuration ---- */

static void on_difference(const char *key, bool restart, void *user)
{
    (void)user;
    log_event(restart ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE, LOG_EVENT_CONFIG_CHANGE,
              "key=%s%s", key, restart ? " in_force=after-restart" : " in_force=now");
}

static int reload(void *user, uw_error *err)
{
    struct program *p = user;
    struct node_config new, live = p->config;
    int r = load_config(p, node_config_file, &new, err);

    if (r == 0) {
        node_config_take_live(&live, &new);
        r = listeners_configure(p->listeners, &live, err);
    }
    if (r == 0) {
        r = node_configure(p->node, &live, err);
        if (r < 0) /* restore */
            (void)listeners_configure(p->listeners, &p->config, NULL);
    }
    if (r < 0) {
        node_config_failed(p->node, err->text);
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_CONFIG_REFUSED, "reason=%s in_force=old",
                  log_quote(err->text).text);
        return r;
    }
    (void)node_config_diff(&p->config, &new, on_difference, NULL);
    log_set_level((enum log_level) new.node.log);
    p->config = live; /* keys that need a restart are reported at each reload */
    return 0;
}

static int on_hup(struct loop_signal *source, int signo, void *user)
{
    struct program *p = user;
    uw_error err = {""};
    (void)source;
    (void)signo;

    if (!p->ready || p->ending)
        return 0;
    (void)notify_reloading(p->world.notify, NULL);
    int r = reload(p, &err);
    (void)notify(p->world.notify,
                 r < 0 ? "READY=1\nSTATUS=The new configuration is invalid: the old one "
                         "stays in force"
                       : "READY=1\nSTATUS=Running",
                 NULL);
    return 0;
}

/* ---- start and end ---- */

static int on_beat(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    const struct program *p = user;
    (void)timer;
    (void)now_ns;

    (void)notify(p->world.notify, "WATCHDOG=1", NULL);
    return 0;
}

/* Sends at twice the requested rate, in the kernel's time. */
static int start_beating(struct program *p, uw_error *err)
{
    uint64_t period = ns_of_s(s_of_ns(p->world.watchdog_ns) / 2 * loop_speed(p->loop));

    if (p->world.watchdog_ns == 0 || p->beat)
        return 0;
    return loop_timer_new(p->loop, loop_now_ns(p->loop) + period, period, on_beat, p,
                          &p->beat, err);
}

static int on_ended(struct node *node, void *user)
{
    struct program *p = user;
    (void)node;

    loop_stop(p->loop, 0);
    return 0;
}

/* SIGTERM and SIGINT restore all limits; SIGUSR2 leaves caps in force, within the
 * actuator's grace, for the next daemon to take over.
 */
static int on_term(struct loop_signal *source, int signo, void *user)
{
    struct program *p = user;
    (void)source;

    if (p->ending) { /* second signal: end at once */
        loop_stop(p->loop, 0);
        return 0;
    }
    p->ending = true;
    p->again = signo == SIGUSR2;
    listeners_close(take(p->listeners));
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_STOP, "signal=%d", signo);
    if (p->again)
        node_leave_caps(p->node);
    (void)notify(p->world.notify, "STOPPING=1", NULL);
    return node_end(p->node, on_ended, p);
}

static int on_ready(struct node *node, int r, const uw_error *err, void *user)
{
    struct program *p = user;
    uw_error told = {""};

    if (r == 0)
        r = listeners_open(p->loop, node, &p->config, reload, p, &p->listeners, &told);
    if (r == 0)
        r = start_beating(p, &told);
    if (r < 0) {
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_START_FAILED, "reason=%s",
                  log_quote(told.text[0] ? told.text : err->text).text);
        return r;
    }
    p->ready = true;
    if (notify(p->world.notify, "READY=1\nSTATUS=Running", &told) < 0)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NOTIFY_FAILED, "reason=%s",
                  log_quote(told.text).text);
    /* With a fast simulated clock, real-time priority would starve jobs and simulator. */
    bool realtime =
        p->config.node.realtime && !(loop_speed(p->loop) > 1) &&
        realtime_begin(REALTIME_FIRST,
                       realtime_lost + (log_has_journal() ? 0 : PRIORITY)) == 0;
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_READY, "version=%s pid=%d class=%s socket=%s",
              UW_VERSION, (int)getpid(), realtime ? "realtime" : "normal",
              log_quote(p->config.api.socket).text);
    start_pages_drop();
    (void)malloc_trim(0);
    return 0;
}

static uint64_t clock_now(void *user)
{
    return loop_now_ns(user);
}

/* In a simulated world only those of boards.powercap, if configured. */
static bool with_processors(const struct program *p)
{
    return p->config.boards.rapl && (!p->world.simulated || p->powercap[0]);
}

static int begin(struct program *p, uw_error *err)
{
    if (p->config.boards.powercap[0]) {
        int checked = gpu_folder_check(p->config.boards.powercap, geteuid(), p->powercap,
                                       sizeof p->powercap, err);
        p->wrong = checked < 0;
        if (checked < 0)
            return fail_in(err, checked, "boards.powercap");
    }
    p->given = gpu_given_new();
    if (!p->given)
        return fail(err, -ENOMEM, "out of memory");
    struct node_opts opts = {
        .loop = p->loop,
        .config = &p->config,
        .backend = &gpu_boards,
        .cpu = with_processors(p) ? &gpu_processors : NULL,
        .cpu_source = p->powercap[0] ? p->powercap : p->world.boards,
        .cpu_given = p->given,
        .gpu = {.source = p->world.boards,
                .clock = {.now_ns = clock_now, .user = p->loop}},
        .version = UW_VERSION,
        .simulated = p->world.simulated,
        .on_ready = on_ready,
        .user = p,
    };
    int r = loop_signal_new(p->loop, SIGTERM, on_term, p, &p->sigterm, err);

    if (r == 0)
        r = loop_signal_new(p->loop, SIGINT, on_term, p, &p->sigint, err);
    if (r == 0)
        r = loop_signal_new(p->loop, SIGUSR2, on_term, p, &p->sigusr2, err);
    if (r == 0)
        r = loop_signal_new(p->loop, SIGHUP, on_hup, p, &p->sighup, err);
    return r == 0 ? node_new(&opts, &p->node, err) : r;
}

static void finish(struct program *p)
{
    listeners_close(take(p->listeners));
    node_free(take(p->node));
    gpu_given_free(take(p->given));
    loop_timer_free(take(p->beat));
    loop_signal_free(take(p->sigterm));
    loop_signal_free(take(p->sigint));
    loop_signal_free(take(p->sigusr2));
    loop_signal_free(take(p->sighup));
    loop_free(take(p->loop));
    if (p->lock_fd >= 0)
        (void)close(fd_take(&p->lock_fd));
    if (p->socket_lock_fd >= 0)
        (void)close(fd_take(&p->socket_lock_fd));
}

/* Creates a directory of the daemon if missing.  In a simulated world all users may enter
 * it, as it holds sockets.
 */
static int make_dir(const struct program *p, const char *path, uw_error *err)
{
    if (access(path, F_OK) == 0)
        return 0;
    int r = file_make_dirs(path, 0755, err);
    if (r == 0 && p->world.simulated && chmod(path, 0755) < 0)
        return fail(err, -errno, "%s: %s", path, strerror(errno));
    return r;
}

static int make_dir_of(const struct program *p, const char *path, uw_error *err)
{
    char dir[CONFIG_PATH];

    (void)snprintf(dir, sizeof dir, "%s", path);
    char *slash = strrchr(dir, '/');
    if (!slash || slash == dir)
        return 0;
    *slash = '\0';
    return make_dir(p, dir, err);
}

/* Locks the ledger's directory, and the socket as well: the latter detects another
 * daemon when the directory is full, read-only or missing.
 */
static int lock_state(struct program *p, uw_error *err)
{
    char path[CONFIG_PATH + 32];
    uw_error why = {""};
    int r = make_dir(p, p->state_dir, &why);

    (void)snprintf(path, sizeof path, "%s/underwattd.lock", p->state_dir);
    if (r == 0)
        r = lockfile_take(path, &p->lock_fd, &why);
    if (r == -EBUSY)
        return fail(err, r, "%s", why.text);
    if (r < 0)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_NO_STATE_FOLDER, "reason=%s",
                  log_quote(why.text).text);
    if (!strchr(p->config.api.socket, '/'))
        return r < 0 ? fail(err, r, "%s", why.text) : 0;
    (void)snprintf(path, sizeof path, "%s.lock", p->config.api.socket);
    return lockfile_take(path, &p->socket_lock_fd, err);
}

/* Creates the daemon's directories and takes the locks in them. */
static int take_state(struct program *p, uw_error *err)
{
    (void)snprintf(p->state_dir, sizeof p->state_dir, "%s", p->config.ledger.path);
    char *slash = strrchr(p->state_dir, '/');
    if (slash > p->state_dir)
        *slash = '\0';
    if (p->args.state)
        (void)snprintf(p->state_dir, sizeof p->state_dir, "%s", p->args.state);
    int r = make_dir_of(p, p->config.api.socket, err);
    if (r == 0)
        r = make_dir_of(p, p->config.api.job_socket, err);
    return r < 0 ? r : lock_state(p, err);
}

static int run(struct program *p)
{
    uw_error err = {""};
    int r = load_config(p, read_first, &p->config, &err);

    if (r < 0)
        return complain(USAGE, err.text);
    log_set_level((enum log_level)p->config.node.log);
    (void)node_config_look(&p->config, p->world.simulated ? p->world.state_dir : NULL,
                           false, log_warning, NULL,
                           NULL); /* what is needed fails where it is used */
    if (p->config.boards.library[0])
        r = look_at_boards(&p->world, p->config.boards.library, &err);
    if (r == 0)
        r = privileges_settle(&err);
    if (r == 0)
        r = take_state(p, &err);
    if (r == 0)
        r = loop_new_real(p->world.clock, &p->loop, &err);
    if (r == 0)
        r = begin(p, &err);
    if (r == 0)
        r = loop_run(p->loop, &err);
    else
        (void)complain(FAILED, err.text);
    finish(p);
    if (r < 0)
        return p->wrong ? USAGE : FAILED;
    return p->again ? AGAIN : OK;
}

/* Runs as the named user; else files get the owner of their directory. */
static int tokens(struct program *p)
{
    auto_(loop_free) struct loop *loop = NULL;
    uw_error err = {""};
    int r = p->args.user ? privileges_drop(p->args.user, &err) : 0;

    if (r == 0)
        r = read_environment(&p->world, &err);
    choose_file(p);
    if (r == 0)
        r = load_config(p, read_first, &p->config, &err);
    if (r == 0)
        r = loop_new_real(p->world.clock, &loop, &err);
    if (r == 0)
        r = token_command(&p->args.token, p->config.api.tcp.tokens,
                          loop_utc_ns(loop) / (int64_t)NS_PER_S, &err);
    return r == 0 ? OK : complain(r == -EINVAL ? USAGE : FAILED, err.text);
}

int main(int argc, char **argv)
{
    static struct program p = {.lock_fd = -1, .socket_lock_fd = -1};
    uw_error err = {""};

    log_set_journal(getenv("JOURNAL_STREAM"));
    if (parse_args(argc, argv, &p.args, &err) < 0)
        return complain(USAGE, err.text);
    if (p.args.help || p.args.version) {
        const char *text = p.args.help ? help : "underwattd " UW_VERSION "\n";
        return asked_print("underwattd", text) ? OK : FAILED;
    }
    if (p.args.check)
        return check(&p);
    if (token_wanted(&p.args.token))
        return tokens(&p);
    int r = privileges_drop(p.args.user, &err);
    if (r < 0)
        return complain(r == -ENOENT || r == -EINVAL ? USAGE : FAILED, err.text);
    /* Keep memory small: one heap for all threads, freed memory is returned. */
    (void)mallopt(M_ARENA_MAX, 1);
    (void)mallopt(M_TRIM_THRESHOLD, 128 * 1024);
    (void)mallopt(M_MMAP_THRESHOLD, 64 * 1024); /* large tables: only used pages */
    if (read_environment(&p.world, &err) < 0)
        return complain(FAILED, err.text);
    choose_file(&p);
    return run(&p);
}
