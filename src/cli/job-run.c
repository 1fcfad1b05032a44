#include "cli/job-run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "cli/daemon.h"
#include "cli/job-daemon.h"
#include "gpu/backends.h"
#include "io/file.h"
#include "jobs/job.h"

enum { LIVE_MS = 250, LINE_S = 15 };

struct running {
    struct job_run *j;
    struct loop *loop;
    struct session *session;
    struct loop_timer *live;
    bool tty, line_there;
    uint64_t next_line_ns;
    bool done;
    struct session_result result; /* borrows from session */
};

static void clear_line(struct running *r)
{
    if (r->line_there)
        (void)fputs("\r\033[K", stderr);
    r->line_there = false;
}

static void on_note(const char *text, bool important, void *user)
{
    struct running *r = user;

    if (r->j->quiet || !important)
        return;
    clear_line(r);
    cli_say("%s", text);
}

/* "41 s  612 steps  0.341 s/step  1043 W  measures at 210 W" */
static void live_text(struct running *r, char *ret, size_t size)
{
    struct session_now now;
    char steps[64] = "";

    session_now(r->session, &now);
    if (now.steps > 0)
        (void)snprintf(steps, sizeof steps, "%llu steps  %.3g s/step  ",
                       (unsigned long long)now.steps, now.step_s);
    (void)snprintf(ret, size, "%.0f s  %s%.0f W  %s", now.time_s, steps, now.power_w,
                   now.status);
}

static int on_live(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct running *r = user;
    char text[200];
    (void)timer;

    if (r->j->quiet)
        return 0;
    if (!r->tty && now_ns < r->next_line_ns)
        return 0;
    live_text(r, text, sizeof text);
    if (r->tty) {
        (void)fprintf(stderr, "\r\033[K%s", text);
        (void)fflush(stderr);
        r->line_there = true;
    } else {
        r->next_line_ns = now_ns + (uint64_t)(LINE_S * loop_speed(r->loop) * 1e9);
        cli_say("%s", text);
    }
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct running *r = user;
    bool keys = signo == SIGINT || signo == SIGQUIT;
    (void)source;

    /* in the foreground of a terminal CMD has received the signal of a key too */
    session_signal(r->session, signo, keys && tcgetpgrp(STDIN_FILENO) == getpgrp());
    return 0;
}

static int on_done(struct session *s, const struct session_result *result, void *user)
{
    struct running *r = user;
    (void)s;

    r->result = *result;
    r->done = true;
    loop_stop(r->loop, 0);
    return 0;
}

static int exit_code(const struct running *r)
{
    const struct job_run *j = r->j;
    const char *name = j->cmd->name;

    switch (r->result.end) {
    case SESSION_RAN:
        return job_exit_code(r->result.status);
    case SESSION_USAGE:
        return cli_fail(EXIT_USAGE, "%s: %s", name, r->result.error.text);
    case SESSION_NOT_FOUND:
        return cli_fail(EXIT_NOT_FOUND, "%s", r->result.error.text);
    case SESSION_CANNOT_RUN:
        return cli_fail(EXIT_CANNOT_RUN, "%s", r->result.error.text);
    case SESSION_BEFORE:
        break;
    }
    if (r->result.n == 0)
        return cli_fail(EXIT_BEFORE, "%s: %s; `underwatt doctor` shows what is missing",
                        name, r->result.error.text);
    return cli_fail(EXIT_BEFORE, "%s: %s", name, r->result.error.text);
}

void job_reports(struct job_run *j, const struct session_result *result,
                 const char *const *argv)
{
    uw_error err;

    FILE *to = stderr;
    if (j->report)
        to = fopen(j->report, "we");
    if (!to) {
        cli_say("%s: cannot write %s: %s", j->cmd->name, j->report, strerror(errno));
        to = stderr;
    }
    if (!j->quiet || j->report)
        job_report_text(j, result, to);
    if (to != stderr)
        (void)fclose(to);
    if (j->json && job_report_json(j, result, argv, j->json, &err) < 0)
        cli_say("%s: %s", j->cmd->name, err.text);
}

static int run_session(struct running *r, const char *const *argv, const char *dir)
{
    struct job_run *j = r->j;
    struct cli_signals signals = {{NULL}};
    uw_error err;
    struct session_opts opts = {
        .loop = r->loop,
        .backend = &gpu_boards,
        .gpu = {.source = j->boards, .clock = cli_loop_clock(r->loop)},
        .gpus = j->gpus,
        .visible = &j->env->visible,
        .cpu = &gpu_processors,
        .argv = argv,
        .runtime_dir = dir,
        .inject = j->inject.env[0] ? j->inject.env : NULL,
        .uid = getuid(),
        .caps = j->caps,
        .goal = j->goal,
        .cap = j->cap,
        .window_s = j->window_s,
        .actuator_library = j->boards,
        .note = on_note,
        .user = r,
    };

    int res = session_start(&opts, on_done, &r->session, &err);
    if (res >= 0)
        res = cli_signals_new(r->loop, CLI_SIGNALS, on_signal, r, &signals, &err);
    uint64_t period = (uint64_t)(LIVE_MS * 1e6 * loop_speed(r->loop));
    r->next_line_ns =
        loop_now_ns(r->loop) + (uint64_t)(LINE_S * loop_speed(r->loop) * 1e9);
    if (res >= 0)
        res = loop_timer_new(r->loop, loop_now_ns(r->loop) + period, period, on_live, r,
                             &r->live, &err);
    if (res >= 0)
        res = loop_run(r->loop, &err);
    clear_line(r);
    int code;
    if (res < 0 || !r->done) {
        code = cli_fail(EXIT_BEFORE, "%s: %s", j->cmd->name,
                        res < 0 ? err.text : "ended early");
    } else {
        if (r->result.end == SESSION_RAN)
            job_reports(j, &r->result, argv);
        code = exit_code(r);
    }
    loop_timer_free(r->live);
    cli_signals_free(&signals);
    session_free(r->session);
    return code;
}

/* Checks before CMD runs that the report can be written. */
static int check_output(const struct job_run *j, const char *option, const char *path)
{
    char copy[4096];

    if (!path || strcmp(path, "-") == 0)
        return EXIT_OK;
    int n = snprintf(copy, sizeof copy, "%s", path);
    if (n < 0 || (size_t)n >= sizeof copy)
        return cli_fail(EXIT_USAGE, "%s: %s: the path is too long", j->cmd->name, option);
    bool there = access(path, F_OK) == 0;
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[slash == copy] = '\0';
    const char *probe = there ? path : slash ? copy : ".";
    if (access(probe, W_OK) != 0)
        return cli_fail(EXIT_USAGE, "%s: %s: cannot write %s: %s", j->cmd->name, option,
                        path, strerror(errno));
    return EXIT_OK;
}

/* Runs with the daemon if one answers and caps are wanted: its exit code, else < 0. */
static int with_daemon(struct job_run *j, const struct opts_rest *rest)
{
    struct httpc *daemon = NULL;
    uw_error err = {""};

    if (j->caps == SESSION_MEASURE || j->local)
        return -1;
    int r = daemon_open(j->env, j->boards, &daemon, &err);
    if (r < 0)
        return cli_fail(EXIT_BEFORE, "%s: %s%s", j->cmd->name, err.text,
                        daemon_local_hint(r));
    return r == DAEMON_ABSENT ? -1 : job_daemon_run(j, rest, daemon);
}

int job_run(struct job_run *j, const struct opts_rest *rest)
{
    struct running r = {.j = j, .tty = isatty(STDERR_FILENO) == 1};
    char dir[4096];
    uw_error err;

    if (rest->argc == 0)
        return cli_fail(EXIT_USAGE, "%s: no command: underwatt %s %s", j->cmd->name,
                        j->cmd->name, j->cmd->args);
    if (j->carbon_g_per_kwh < 0)
        return cli_fail(EXIT_USAGE, "%s: --carbon %g is below 0", j->cmd->name,
                        j->carbon_g_per_kwh);
    if (j->price_per_kwh < 0)
        return cli_fail(EXIT_USAGE, "%s: --price %g is below 0", j->cmd->name,
                        j->price_per_kwh);
    int bad = check_output(j, "--json", j->json);
    if (bad == EXIT_OK)
        bad = check_output(j, "--report", j->report);
    if (bad != EXIT_OK)
        return bad;
    if (inject_prepare(j->env, j->count_launches, &j->inject, &err) < 0)
        return cli_fail(EXIT_BEFORE, "%s: --count-launches: %s", j->cmd->name, err.text);
    if (j->inject.note && !j->quiet)
        cli_say("%s", j->inject.note);
    int done = with_daemon(j, rest);
    if (done >= 0)
        return done;
    if (j->cls)
        return cli_fail(EXIT_USAGE, "%s: --class needs the daemon, which does not answer",
                        j->cmd->name);
    int res = cli_loop_new(j->env, &r.loop, &err);
    if (res == -EINVAL)
        return cli_fail(EXIT_USAGE, "%s", err.text);
    if (res >= 0)
        res = file_runtime_path(j->env->runtime_dir, "underwatt", getuid(), dir,
                                sizeof dir, &err);
    if (res >= 0)
        res = file_own_dir(dir, sizeof dir, getuid(), &err);
    bool own = res == 1;
    int code = res < 0 ? cli_fail(EXIT_BEFORE, "%s: %s", j->cmd->name, err.text)
                       : run_session(&r, (const char *const *)rest->argv, dir);
    loop_free(r.loop);
    if (own)
        (void)rmdir(dir);
    return code;
}
