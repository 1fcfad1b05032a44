#include "cli/job-daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ask/ask.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/gate.h"
#include "cli/take.h"
#include "io/file.h"
#include "io/launches.h"
#include "io/progress.h"
#include "jobs/job-key.h"
#include "jobs/job.h"
#include "jobs/page-socket.h"

enum { LOOK_MS = 1000, LAST_LOOK_MS = 200, LAST_S = 8, LOST_S = 2, LINE_S = 15 };

struct remote {
    struct job_run *j;
    const char *const *argv;
    struct ask *daemon;
    struct daemon_address where;
    struct job_boards boards;
    struct loop *loop;
    struct loop_timer *timer;
    struct progress_page *page; /* NULL: no folder for a page */
    int page_fd;
    char *own_dir; /* folder made for the page, or NULL */
    struct loop_child *child;
    int gate;
    struct loop_fd *gate_source;
    int exec_errno; /* errno if CMD could not be executed */

    uint64_t id;
    bool looking, lost;
    bool again;    /* of the query: the last one failed, or the daemon lacks the page */
    bool last;     /* of the query: CMD had ended when it was made */
    bool pageless; /* the daemon reported that it does not have the page */
    struct json *doc; /* from the last answered query */
    char said[400];   /* the last state reported to the user */
    char held[200];   /* who uses a board that this job named; "": nobody */

    bool ended;
    int status;
    uint64_t begin_ns, end_ns, next_line_ns;
    int64_t begin_utc_ns;
    bool tty, line_there;
};

static void say(struct remote *r, const char *text)
{
    if (r->j->quiet)
        return;
    if (r->line_there)
        (void)fputs("\r\033[K", stderr);
    r->line_there = false;
    cli_say("%s", text);
}

static uint64_t wall_ms(const struct remote *r, double ms)
{
    return (uint64_t)(ms * 1e6 * loop_speed(r->loop));
}

/* ---- what the daemon is asked ---- */

/* Identifies runs of the same job, unless the user disabled history. */
static void put_command(struct json_out *o, const struct remote *r)
{
    auto_(mem_free) char *dir = get_current_dir_name();
    char command[JOB_KEY_TEXT] = "";

    if (dir && !r->j->no_history)
        job_key_command(r->argv, dir, command);
    if (command[0])
        json_out_text(o, "command", command);
}

static struct json_out *describe(const struct remote *r, pid_t pid)
{
    const struct job_run *j = r->j;
    const char *slash = strrchr(r->argv[0], '/');
    struct json_out *o = json_out_new();
    char name[JOB_NAME], cap[64], goal[GOAL_TEXT_MAX];

    json_out_object(o, NULL);
    (void)snprintf(name, sizeof name, "%.*s", JOB_NAME - 1,
                   j->name ? j->name
                   : slash ? slash + 1
                           : r->argv[0]);
    utf8_mend(name); /* the name of CMD as given */
    json_out_text(o, "name", name);
    json_out_text(o, "source", "run");
    json_out_int(o, "pid", pid);
    if (r->boards.n > 0) {
        json_out_array(o, "gpus");
        for (size_t i = 0; i < r->boards.n; i++)
            json_out_text(o, NULL, r->boards.uuid[i]);
        json_out_end(o);
    }
    if (j->labels.n > 0) {
        json_out_object(o, "labels");
        for (size_t i = 0; i < j->labels.n; i++)
            json_out_text(o, j->labels.label[i].key, j->labels.label[i].value);
        json_out_end(o);
    }
    if (j->cls)
        json_out_text(o, "class", j->cls);
    put_command(o, r);
    if (j->caps == SESSION_SEARCH) {
        json_out_text(o, "goal", goal_text(&j->goal, goal));
    } else {
        (void)snprintf(cap, sizeof cap, j->cap.mw ? "%.10g W" : "%.10g%%",
                       j->cap.mw ? w_of_mw(j->cap.mw) : j->cap.percent);
        json_out_text(o, "cap", cap);
    }
    json_out_end(o);
    return o;
}

static uint64_t job_id(const struct json *doc)
{
    return take_u64(doc ? json_root(doc) : NULL, "id");
}

/* The load of others must not keep a program from running: retry later. */
static bool may_wait(int got)
{
    return got == -EBUSY || got == -EAGAIN;
}

/* ---- what is shown ---- */

/* From an older daemon only the text of `state` is available, where "over" is a status.
 */
static enum search_status take_status(const struct json_value *search)
{
    const char *word = take_text(search, "status");
    int got =
        names_number(NAMES_SEARCH_STATUS, *word ? word : take_text(search, "state"));

    return got < 0 ? SEARCH_IS_OFF : (enum search_status)got;
}

static void say_state(struct remote *r, const struct json_value *search)
{
    const struct json_value *details = json_get(search, "details");
    const char *why = take_text(details, "why");
    enum search_status status = take_status(search);
    char text[400];

    if (status == SEARCH_IS_OFF && take_u64(details, "held_mw") > 0)
        status = SEARCH_HOLDS; /* from an older daemon, without a status */
    if (status != SEARCH_HOLDS)
        why = "";
    if (status != SEARCH_HOLDS && status != SEARCH_IS_REFUSED &&
        status != SEARCH_IS_BARRED && status != SEARCH_LOST_BOARDS &&
        status != SEARCH_IS_SAFE)
        return;
    (void)snprintf(text, sizeof text, "%s%s%.200s", take_text(search, "state"),
                   *why ? ": " : "", why);
    if (strcmp(text, r->said) == 0)
        return;
    memcpy(r->said, text, sizeof r->said);
    say(r, text);
}

/* Reports that another user has a board that the job named, and when that changes. */
static void say_held(struct remote *r, const struct json_value *job)
{
    const char *held = take_text(job, "held");
    char text[300];

    if (strcmp(held, r->held) == 0)
        return;
    if (*held)
        (void)snprintf(text, sizeof text,
                       "%.150s: no cap there until it is free, or CMD alone computes "
                       "there",
                       held);
    else
        (void)snprintf(text, sizeof text, "no longer: %.150s", r->held);
    (void)snprintf(r->held, sizeof r->held, "%s", held);
    say(r, text);
}

static void live_text(const struct remote *r, char *ret, size_t size)
{
    const struct json_value *job = r->doc ? json_root(r->doc) : NULL;
    uint64_t n = take_u64(job, "steps");
    double step_s = take_number(job, "step_s");
    const char *state = take_text(json_get(job, "search"), "state");
    char steps[64] = "";

    if (n > 0)
        (void)snprintf(steps, sizeof steps, "%" PRIu64 " steps  %.3g s/step  ", n,
                       step_s);
    (void)snprintf(ret, size, "%.0f s  %s%s",
                   s_between(r->begin_ns, loop_now_ns(r->loop)), steps,
                   r->lost ? "the daemon does not answer" : state);
}

static void live_line(struct remote *r, uint64_t now)
{
    char text[300];

    if (r->j->quiet || r->ended || (!r->tty && now < r->next_line_ns))
        return;
    live_text(r, text, sizeof text);
    if (r->tty) {
        (void)fprintf(stderr, "\r\033[K%s", text);
        (void)fflush(stderr);
        r->line_there = true;
    } else {
        r->next_line_ns = now + wall_ms(r, LINE_S * 1e3);
        cli_say("%s", text);
    }
}

/* ---- while CMD runs ---- */

static bool is_over(const struct json *doc)
{
    const struct json_value *job = doc ? json_root(doc) : NULL;
    const struct json_value *search = job ? json_get(job, "search") : NULL;
    bool none = !*take_text(search, "state");

    return job && take_bool(job, "settled") &&
           (none || take_status(search) == SEARCH_IS_OVER);
}

static int query_failed(struct remote *r, const char *why)
{
    char text[300];

    r->looking = false;
    if (!r->lost && !r->ended) {
        (void)snprintf(text, sizeof text,
                       "the daemon does not answer (%.150s): CMD runs on", why);
        say(r, text);
    }
    r->lost = true;
    return 0;
}

static void query_answered(struct remote *r)
{
    r->looking = false;
    if (r->lost)
        say(r, "the daemon answers again");
    r->lost = false;
}

/* The daemon may not have the page. */
static void give_page(struct remote *r)
{
    if (r->id && r->page && !r->last)
        (void)page_socket_send(r->where.job_socket, r->id, r->page_fd, NULL);
}

/* The daemon has begun the job: another daemon, or this one, which had no room at first.
 */
static int on_begun(struct ask_answer *answer, void *user)
{
    struct remote *r = user;
    uint64_t id = job_id(answer->doc);
    char text[120];

    if (!r->id && may_wait(answer->r)) {
        query_answered(r);
        return 0;
    }
    if (answer->r < 0 || !id)
        return query_failed(r, answer->r < 0 ? answer->error.text
                                             : "the daemon's answer has no job id");
    if (r->id && r->id != id)
        (void)snprintf(text, sizeof text,
                       "the daemon is another: job %" PRIu64 " goes on there as %" PRIu64,
                       r->id, id);
    else
        (void)snprintf(text, sizeof text,
                       "the daemon has a place for it now: job %" PRIu64, id);
    if (r->id != id)
        say(r, text);
    r->id = id;
    give_page(r);
    query_answered(r);
    return 0;
}

static int ask_begin(struct remote *r)
{
    uw_error err = {""};
    int got = ask_request(r->daemon, "POST", "/v1/jobs",
                          describe(r, loop_child_pid(r->child)), on_begun, r, &err);

    return got < 0 ? query_failed(r, err.text) : 0;
}

static int on_job(struct ask_answer *answer, void *user)
{
    struct remote *r = user;

    if (answer->status == 404 && !r->last) /* the daemon does not know the job */
        return ask_begin(r);
    if (answer->r < 0)
        return query_failed(r, answer->error.text);
    if (r->again)
        give_page(r);
    query_answered(r);
    if (answer->doc) {
        json_free(r->doc);
        r->doc = take(answer->doc);
        const struct json_value *search = json_get(json_root(r->doc), "search");
        r->pageless = json_get(search, "page") && !take_bool(search, "page");
        say_state(r, search);
        say_held(r, json_root(r->doc));
    }
    if (r->ended && r->last && is_over(r->doc))
        loop_stop(r->loop, 0);
    return 0;
}

/* Queries the job; begins it where the daemon had no room when CMD started. */
static int query(struct remote *r)
{
    char path[64];
    uw_error err = {""};

    r->again = r->lost || r->pageless;
    r->last = r->ended;
    if (!r->id && r->last)
        return 0;
    r->looking = true;
    if (!r->id)
        return ask_begin(r);
    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, r->id);
    int got = ask_request(r->daemon, "GET", path, NULL, on_job, r, &err);
    return got < 0 ? query_failed(r, err.text) : 0;
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct remote *r = user;
    (void)timer;

    if (r->gate >= 0)
        return 0;
    live_line(r, now_ns);
    double wait_s = !r->id ? 0 : r->lost ? LOST_S : LAST_S;
    if (r->ended && now_ns - r->end_ns >= wall_ms(r, wait_s * 1e3))
        loop_stop(r->loop, 0);
    return r->looking ? 0 : query(r);
}

/* CMD has ended, and whether it was executed is known: query for the last time. */
static void at_end(struct remote *r)
{
    uint64_t period = wall_ms(r, LAST_LOOK_MS);

    if (r->exec_errno)
        loop_stop(r->loop, 0);
    else
        loop_timer_set(r->timer, loop_now_ns(r->loop) + period / 4, period);
}

static int on_child(struct loop_child *child, int status, void *user)
{
    struct remote *r = user;
    (void)child;

    r->status = status;
    r->ended = true;
    r->end_ns = loop_now_ns(r->loop);
    if (r->gate < 0)
        at_end(r);
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct remote *r = user;
    bool keys = signo == SIGINT || signo == SIGQUIT;
    (void)source;

    if (r->ended) {
        if (signo == SIGINT || signo == SIGTERM)
            loop_stop(r->loop, 0);
        return 0;
    }
    /* in the foreground of a terminal CMD has received the signal of a key too */
    if (!keys || tcgetpgrp(STDIN_FILENO) != getpgrp())
        (void)loop_child_kill(r->child, signo);
    return 0;
}

/* ---- CMD's start ---- */

static void close_gate(struct remote *r)
{
    loop_fd_free(take(r->gate_source));
    if (r->gate >= 0)
        (void)close(r->gate);
    r->gate = -1;
}

/* End of file: CMD is executed.  An int: the errno of the failed execution. */
static int on_gate(struct loop_fd *source, int fd, int events, void *user)
{
    struct remote *r = user;
    int why = 0;
    (void)source;
    (void)events;

    ssize_t n = read(fd, &why, sizeof why);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == (ssize_t)sizeof why)
        r->exec_errno = why;
    close_gate(r);
    if (r->ended)
        at_end(r);
    return 0;
}

/* Starts the process that becomes CMD and waits. */
static int start_child(struct remote *r, uw_error *err)
{
    auto_(mem_free) const char **argv = NULL;
    char page[4200], number[16];
    const char *env[3] = {NULL};
    size_t n = 0, n_env = 0;
    int pair[2];

    while (r->argv[n])
        n++;
    argv = calloc(n + 4, sizeof *argv);
    if (!argv)
        return fail(err, -ENOMEM, "out of memory");
    memcpy(argv + 3, r->argv, n * sizeof *argv);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return fail(err, -errno, "socketpair: %s", strerror(errno));
    auto_(fd_close) int theirs = pair[1];
    r->gate = pair[0];
    (void)snprintf(number, sizeof number, "%d", theirs);
    argv[0] = "/proc/self/exe";
    argv[1] = GATE_WORD;
    argv[2] = number;
    if (r->page)
        (void)snprintf(page, sizeof page, "UNDERWATT_PROGRESS=%s",
                       progress_page_path(r->page));
    if (r->page)
        env[n_env++] = page;
    if (r->page && r->j->inject.env[0])
        env[n_env++] = r->j->inject.env;
    struct loop_child_opts child = {
        .argv = argv,
        .env = env,
        .pass_fds = &theirs,
        .n_pass_fds = 1,
        .inherit = true,
        .stdin_fd = -1,
        .stdout_fd = -1,
        .stderr_fd = -1,
    };
    return loop_child_new(r->loop, &child, on_child, r, &r->child, err);
}

static bool in_memory(const char *dir)
{
    struct statfs fs;
    return statfs(dir, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

/* The daemon accepts pages in memory-backed file systems only. */
static void make_page(struct remote *r)
{
    char dir[4096];
    uw_error err = {""}, why = {""};

    int got = file_runtime_path(r->j->env->runtime_dir, "underwatt", getuid(), dir,
                                sizeof dir, &err);
    if (got < 0 || file_private_dir(dir, getuid(), &err) < 0 || !in_memory(dir)) {
        (void)snprintf(dir, sizeof dir, "/dev/shm/underwatt-%u", (unsigned)getuid());
        got = file_own_dir(dir, sizeof dir, getuid(), &err);
        if (got == 1)
            r->own_dir = strdup(dir);
    }
    if (got >= 0) {
        (void)progress_clear(dir);
        got = progress_page_new(dir, &r->page, &err);
    }
    if (got >= 0 && r->j->inject.env[0] && launches_add(r->page, &why) < 0) {
        say(r, why.text);
        r->j->inject.env[0] = '\0'; /* steps that CMD reports still count */
    }
    if (got >= 0)
        r->page_fd = open(progress_page_path(r->page), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (r->page_fd >= 0) /* the daemon shares the lock: the page stays while it reads */
        (void)flock(r->page_fd, LOCK_SH | LOCK_NB);
    if (got < 0 || r->page_fd < 0) {
        say(r, err.text[0] ? err.text : "no progress page");
        progress_page_free(take(r->page));
    }
}

static int go(struct remote *r, uw_error *err)
{
    uw_error why = {""};
    char text[300];

    auto_(json_free) struct json *doc = NULL;
    int got = ask_wait(r->daemon, "POST", "/v1/jobs",
                       describe(r, loop_child_pid(r->child)), &doc, err);
    r->id = job_id(doc);
    if (got >= 0 && !r->id)
        got = fail(err, -EPROTO, "the daemon's answer has no job id");
    if (may_wait(got)) {
        (void)snprintf(text, sizeof text,
                       "%.200s: CMD runs without a cap until the daemon takes it",
                       err->text);
        say(r, text);
    } else if (got < 0) {
        return got;
    }
    if (r->id && r->page &&
        page_socket_send(r->where.job_socket, r->id, r->page_fd, &why) < 0)
        say(r, why.text);
    r->begin_ns = loop_now_ns(r->loop);
    r->begin_utc_ns = loop_utc_ns(r->loop);
    r->next_line_ns = r->begin_ns + wall_ms(r, LINE_S * 1e3);
    got = loop_fd_new(r->loop, r->gate, LOOP_READ, on_gate, r, &r->gate_source, err);
    if (got >= 0 && send(r->gate, "g", 1, MSG_NOSIGNAL) != 1 && !r->ended)
        got = fail(err, -errno, "the process of CMD has ended");
    return got;
}

/* ---- the whole ---- */

static void write_reports(struct remote *r)
{
    struct job_run *j = r->j;
    struct job_answer a;

    job_answer(r->doc, &a);
    a.result.status = r->status;
    a.result.simulated = r->boards.simulated;
    a.result.begin_ns = r->begin_ns;
    a.result.end_ns = r->end_ns;
    a.result.begin_utc_ns = r->begin_utc_ns;
    a.result.time_s = s_between(r->begin_ns, r->end_ns);
    if (r->lost && a.report.n_caps == 0)
        (void)fail(&a.result.error, 0, "the daemon does not answer");
    else if (!r->id)
        (void)fail(&a.result.error, 0, "the daemon has no room for the job");
    job_reports(j, &a.result, r->argv);
}

static int before(struct remote *r, int got, const uw_error *err)
{
    const char *name = r->j->cmd->name;

    close_gate(r); /* the process waiting at the gate ends */
    return cli_fail(got == -EINVAL || got == -ERANGE ? EXIT_USAGE : EXIT_BEFORE,
                    "%s: %s%s", name, err->text, daemon_local_hint(got));
}

static int run(struct remote *r)
{
    struct cli_signals signals = {{NULL}};
    uint64_t period = wall_ms(r, LOOK_MS);
    uw_error err = {""};
    int code;

    int got = loop_timer_new(r->loop, loop_now_ns(r->loop) + period / 4, period, on_timer,
                             r, &r->timer, &err);
    if (got >= 0)
        got = cli_signals_new(r->loop, CLI_SIGNALS, on_signal, r, &signals, &err);
    if (got >= 0)
        got = start_child(r, &err);
    if (got >= 0)
        got = go(r, &err);
    if (got < 0) {
        code = before(r, got, &err);
    } else if ((got = loop_run(r->loop, &err)) < 0 || !r->ended) {
        code = cli_fail(EXIT_BEFORE, "%s: %s", r->j->cmd->name,
                        got < 0 ? err.text : "ended early");
    } else if (r->exec_errno) {
        code = cli_fail(r->exec_errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN,
                        "%s: %s", r->argv[0], strerror(r->exec_errno));
    } else {
        if (r->line_there)
            (void)fputs("\r\033[K", stderr);
        write_reports(r);
        code = job_exit_code(r->status);
    }
    ask_free(take(r->daemon)); /* ends a query that hangs */
    cli_signals_free(&signals);
    loop_timer_free(r->timer);
    loop_child_free(r->child);
    return code;
}

int job_daemon_run(struct job_run *j, const struct opts_rest *rest, struct httpc *daemon)
{
    struct remote r = {.j = j,
                       .argv = (const char *const *)rest->argv,
                       .page_fd = -1,
                       .gate = -1,
                       .tty = isatty(STDERR_FILENO) == 1};
    auto_(httpc_free) struct httpc *client = daemon;
    uw_error err = {""};

    int got = daemon_address(j->env->socket, j->boards, &r.where, &err);
    if (got >= 0)
        got = cli_loop_new(j->env, &r.loop, &err);
    if (got >= 0)
        got = ask_http(r.loop, take(client), &r.daemon, &err);
    auto_(json_free) struct json *gpus = NULL;
    if (got >= 0)
        got = ask_wait(r.daemon, "GET", "/v1/gpus", NULL, &gpus, &err);
    if (got >= 0)
        got = job_boards(gpus, j, &r.boards, &err);
    if (got >= 0 && r.boards.note[0])
        say(&r, r.boards.note);
    if (got >= 0)
        make_page(&r);
    int code = got < 0 ? before(&r, got, &err) : run(&r);
    close_gate(&r);
    ask_free(r.daemon);
    json_free(r.doc);
    if (r.page_fd >= 0)
        (void)close(r.page_fd);
    progress_page_free(r.page);
    if (r.own_dir)
        (void)rmdir(r.own_dir);
    free(r.own_dir);
    loop_free(r.loop);
    return code;
}
