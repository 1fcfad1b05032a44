/* `underwatt sweep -- CMD`: runs the sweeper on a real loop, with a live line and
 * reports.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/cli-loop.h"
#include "cli/figures.h"
#include "cli/own-place.h"
#include "cli/sweep.h"
#include "gpu/backends.h"
#include "node/node.h"
#include "sweep/sweeper.h"

enum { LIVE_MS = 250, LINE_S = 60 };

struct running {
    const struct sweep_args *args;
    const char *const *argv;
    struct loop *loop;
    struct sweeper *sweeper;
    struct loop_timer *live;
    bool tty, line_there, done;
    struct sweeper_result result; /* borrows from sweeper */
};

static void clear_line(struct running *r)
{
    if (r->line_there)
        (void)fputs("\r\033[K", stderr);
    r->line_there = false;
}

static void on_note(const char *text, void *user)
{
    struct running *r = user;

    clear_line(r);
    cli_say("sweep: %s", text);
}

/* ", about 12 min left" */
static void left_text(const struct sweeper_now *now, char *ret, size_t size)
{
    double s = now->left_s;

    ret[0] = '\0';
    if (!now->left_known || now->run > now->n_plan)
        return;
    if (s < 90)
        (void)snprintf(ret, size, ", about %.0f s left", s);
    else if (s < 90 * 60)
        (void)snprintf(ret, size, ", about %.0f min left", s / 60);
    else
        (void)snprintf(ret, size, ", about %.1f h left", s / 3600);
}

static void on_run(const struct sweep_run *run, size_t no, void *user)
{
    struct running *r = user;
    struct sweeper_now now;
    char left[64], watts[VIEW_TEXT];

    if (r->args->quiet || r->tty)
        return;
    sweeper_now(r->sweeper, &now);
    left_text(&now, left, sizeof left);
    cli_say("run %zu of %zu: %s, %.4g s, %s, mean %s%s", no, now.n_plan,
            view_watts(run->cap_mw, watts), run->time_s, figure_joules(run->energy_j).t,
            figure_power(run->energy_j / run->time_s).t, left);
}

static int on_live(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct running *r = user;
    struct sweeper_now now;
    char left[64], watts[VIEW_TEXT];
    (void)timer;
    (void)now_ns;

    sweeper_now(r->sweeper, &now);
    if (now.run == 0)
        return 0;
    left_text(&now, left, sizeof left);
    if (now.n_plan == 0)
        (void)fprintf(stderr, "\r\033[Kfirst run, to see which boards CMD uses: %.0f s\r",
                      now.time_s);
    else
        (void)fprintf(stderr, "\r\033[Krun %zu of %zu: %s, %.0f s, %s%s\r", now.run,
                      now.n_plan, view_watts(now.cap_mw, watts), now.time_s,
                      figure_power(now.power_w).t, left);
    (void)fflush(stderr);
    r->line_there = true;
    return 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct running *r = user;
    (void)source;
    return sweeper_signal(r->sweeper, signo);
}

static int on_done(struct sweeper *s, const struct sweeper_result *result, void *user)
{
    struct running *r = user;
    (void)s;

    r->result = *result;
    r->done = true;
    loop_stop(r->loop, 0);
    return 0;
}

/* ---- the report ---- */

static void join_words(const char *const *argv, char *ret, size_t size)
{
    size_t at = 0;

    ret[0] = '\0';
    for (size_t i = 0; argv[i] && at < size; i++) {
        int n = snprintf(ret + at, size - at, "%s%s", i ? " " : "", argv[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

static int show(const struct running *r)
{
    const struct sweeper_result *res = &r->result;
    auto_(mem_free) struct sweep_run *runs = calloc(res->n_done + 1, sizeof *runs);
    char words[4096], label[160], note[120] = "", method[600];

    if (!runs)
        return cli_fail(EXIT_FAIL, "sweep: out of memory");
    memcpy(runs, res->done, res->n_done * sizeof *runs);
    join_words(r->argv, words, sizeof words);
    view_label(words, label, sizeof label);
    if (res->unlike)
        (void)snprintf(note, sizeof note, "and boards of other kinds");
    (void)snprintf(
        method, sizeof method,
        "%sWhole runs of the command at each cap, in shuffled rounds, the "
        "default limit (the reference) before every %d of them and at the end. "
        "Time from start to end; energy of the GPU%s from the driver's energy "
        "counter or power readings; CPU and the rest of the machine are not in "
        "it.",
        res->simulated ? "Boards, times and energies are simulated. " : "",
        SWEEP_REF_EVERY, res->n_boards == 1 ? "" : "s, all together,");
    const struct view v = {
        .simulated = res->simulated,
        .board = res->board_name ? res->board_name : "unknown board",
        .board_note = note,
        .workload = words,
        .label = label,
        .work_unit = "one run of the command",
        .least_mw = res->range.min_mw,
        .most_mw = res->range.max_mw,
        .boards = res->n_boards,
        .method = method,
    };
    return sweep_show(r->args, res->range.default_mw, runs, res->n_done, true, &v);
}

static void say_rest(const struct running *r)
{
    const struct sweeper_result *res = &r->result;

    if (!res->restored)
        cli_say("sweep: NOT all original limits are restored: %s", res->restore);
    if (res->end == SWEEPER_DONE || res->end == SWEEPER_USAGE || res->n_done == 0)
        return;
    cli_say("sweep: %zu of %zu runs were made%s%s", res->n_done, res->n_plan,
            r->args->state ? "; the same command line goes on from " : "",
            r->args->state ? r->args->state : " (--state FILE would keep them)");
}

static int end_code(const struct running *r)
{
    const struct sweeper_result *res = &r->result;

    switch (res->end) {
    case SWEEPER_DONE:
        return show(r);
    case SWEEPER_USAGE:
        return cli_fail(EXIT_USAGE, "sweep: %s", res->error.text);
    case SWEEPER_NOT_FOUND:
        return cli_fail(EXIT_NOT_FOUND, "sweep: %s", res->error.text);
    case SWEEPER_CANNOT_RUN:
        return cli_fail(EXIT_CANNOT_RUN, "sweep: %s", res->error.text);
    case SWEEPER_CMD:
        return cli_fail(cli_exit_of_status(res->status), "sweep: %s", res->error.text);
    case SWEEPER_INTERRUPTED:
        return cli_fail(128 + res->signo, "sweep: interrupted by signal %d", res->signo);
    case SWEEPER_FAILED:
        return cli_fail(EXIT_FAIL, "sweep: %s", res->error.text);
    case SWEEPER_BEFORE:
    default:
        return cli_fail(EXIT_BEFORE, "sweep: %s", res->error.text);
    }
}

/* ---- the loop ---- */

static int go(struct running *r, const struct sweeper_opts *opts, uw_error *err)
{
    struct cli_signals signals = {{NULL}};

    int res = sweeper_new(opts, on_done, &r->sweeper, err);
    if (res >= 0)
        res = cli_signals_new(r->loop, CLI_SIGNALS, on_signal, r, &signals, err);
    if (res >= 0)
        sweeper_start(r->sweeper);
    uint64_t period = ns_of_s(LIVE_MS * 1e-3 * loop_speed(r->loop));
    if (res >= 0 && r->tty && !r->args->quiet)
        res = loop_timer_new(r->loop, loop_now_ns(r->loop) + period, period, on_live, r,
                             &r->live, err);
    if (res >= 0)
        res = loop_run(r->loop, err);
    clear_line(r);
    loop_timer_free(r->live);
    cli_signals_free(&signals);
    if (res >= 0 && !r->done)
        res = fail(err, -EIO, "ended early");
    return res;
}

int sweep_command(const struct sweep_args *args, const char *const *argv)
{
    struct running r = {.args = args, .argv = argv, .tty = isatty(STDERR_FILENO) == 1};
    auto_(loop_free) struct loop *loop = NULL;
    uw_error err;

    int res = cli_loop_new(args->env, &loop, &err);
    if (res < 0)
        return cli_fail(res == -EINVAL ? EXIT_USAGE : EXIT_BEFORE, "sweep: %s", err.text);
    r.loop = loop;
    struct own_setup setup;
    own_setup(args->env, args->boards, loop, &setup);
    struct sweeper_opts opts = {
        .node = &setup.node,
        .runtime_dir = setup.own.runtime_dir,
        .world = setup.own.world,
        .gpus = args->gpus,
        .visible = &args->env->visible,
        .argv = argv,
        .uid = getuid(),
        .from_mw = args->from.mw,
        .to_mw = args->to.mw,
        .step_mw = args->step.mw,
        .from_typed = args->from.text,
        .to_typed = args->to.text,
        .step_typed = args->step.text,
        .runs = (unsigned)args->runs,
        .seed = args->seed,
        .settle_s = s_of_ns(args->settle.ns),
        .state_path = args->state,
        .note = on_note,
        .on_run = on_run,
        .user = &r,
    };
    res = go(&r, &opts, &err);
    int code;
    if (res < 0) {
        code = cli_fail(res == -EINVAL ? EXIT_USAGE : EXIT_BEFORE, "sweep: %s", err.text);
    } else {
        code = end_code(&r);
        say_rest(&r);
    }
    sweeper_free(r.sweeper);
    return code;
}
