/* `underwatt run` and `underwatt measure`: begins CMD's job at a node (the daemon, or
 * one in this process), shows the node's results, and reports.
 */
#include "cli/job-node.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cap-read.h"
#include "cli/figures.h"
#include "cli/job-inside.h"
#include "cli/job-report.h"
#include "cli/take.h"
#include "io/program.h"
#include "jobs/job-key.h"
#include "jobs/page-socket.h"

enum { LOOK_MS = 1000, LAST_LOOK_MS = 10, LAST_S = 8, LOST_S = 2, LINE_S = 15 };
enum { FIRST_MS = 2000, FIRST_LOOK_MS = 10 };
enum { STOOD_MS = 2000 }; /* without a look: this process did not run */
enum { OWN_LOOK_MS = 250, OWN_LAST_LOOK_MS = 5, OWN_LAST_S = 30 };
enum { SURVIVED_S = 10 };   /* CMD lives on so long after a signal: it was not to end */
enum { OWN_STOPPED_S = 5 }; /* the same after ^C: a driver may hang */

void job_say(struct remote *r, const char *text)
{
    if (r->j->quiet)
        return;
    if (r->line_there)
        (void)fputs("\r\033[K", stderr);
    r->line_there = false;
    cli_say("%s", text);
}

/* ---- requests to the daemon ---- */

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

static void put_cap(struct json_out *o, const struct cap_arg *c)
{
    bool has_unit = strpbrk(c->typed, "W%") != NULL; /* the node requires a unit */
    char cap[64];

    (void)snprintf(cap, sizeof cap, c->mw ? "%.10g W" : "%.10g%%",
                   c->mw ? w_of_mw(c->mw) : c->percent);
    if (has_unit)
        (void)snprintf(cap, sizeof cap, "%s", c->typed);
    json_out_text(o, "cap", cap);
}

struct json_out *job_describe(const struct remote *r, pid_t pid, bool capped)
{
    const struct job_run *j = r->j;
    const char *slash = strrchr(r->argv[0], '/');
    struct json_out *o = json_out_new();
    char name[JOB_NAME], goal[GOAL_TEXT_MAX];

    json_out_object(o, NULL);
    (void)snprintf(name, sizeof name, "%.*s", JOB_NAME - 1,
                   j->name             ? j->name
                   : slash && slash[1] ? slash + 1
                                       : r->argv[0]);
    utf8_mend(name); /* CMD's name as given */
    json_out_text(o, "name", name);
    json_out_text(o, "source", "run");
    json_out_int(o, "pid", pid);
    if (r->boards.n > 0) {
        json_out_array(o, j->gpus ? "gpus" : "default_gpus");
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
    if (capped && j->caps == JOB_CAPS_SEARCH) {
        json_out_text(o, j->goal_by_default ? "default_goal" : "goal",
                      goal_text(&j->goal, goal));
    } else if (capped && j->preset) {
        json_out_text(o, "preset", j->preset);
    } else if (capped) {
        put_cap(o, &j->cap);
    }
    json_out_end(o);
    return o;
}

static uint64_t job_id(const struct json *doc)
{
    return take_u64(doc ? json_root(doc) : NULL, "id");
}

/* Whether the load of other programs delays the job: tries again later. */
static bool may_wait(int got)
{
    return got == -EBUSY || got == -EAGAIN;
}

/* ---- output ---- */

/* An older daemon sends only the text of `state`, where "over" is a status. */
static enum search_status take_status(const struct json_value *search)
{
    const char *word = take_text(search, "status");
    int got =
        names_number(NAMES_SEARCH_STATUS, *word ? word : take_text(search, "state"));

    return got < 0 ? SEARCH_IS_OFF : (enum search_status)got;
}

/* Whether the search's messages report the status.  An older daemon sends none. */
static bool is_noted(const struct remote *r, const struct json_value *job,
                     enum search_status status)
{
    if (status == SEARCH_IS_BARRED || (!r->own && !json_get(job, "notes")))
        return false;
    if (!r->own && status == SEARCH_LOST_BOARDS) /* which has the time of a release */
        return false;
    return r->own || status != SEARCH_HOLDS || r->j->caps != JOB_CAPS_NAMED;
}

/* Unless it was the last one that was said. */
static void say_once(struct remote *r, const char *text)
{
    if (strcmp(text, r->said) == 0)
        return;
    (void)snprintf(r->said, sizeof r->said, "%s", text);
    job_say(r, text);
}

static void say_state(struct remote *r, const struct json_value *job)
{
    const struct json_value *search = json_get(job, "search");
    const struct json_value *details = json_get(search, "details");
    const char *why = take_text(details, "why");
    enum search_status status = take_status(search);
    char text[440], state[240];

    if (status == SEARCH_IS_OFF && take_u64(details, "held_mw") > 0)
        status = SEARCH_HOLDS; /* from an older daemon, without a status */
    if (status != SEARCH_HOLDS)
        why = "";
    if (is_noted(r, job, status))
        return;
    if (status != SEARCH_HOLDS && status != SEARCH_IS_REFUSED &&
        status != SEARCH_IS_BARRED && status != SEARCH_LOST_BOARDS &&
        status != SEARCH_IS_SAFE)
        return;
    take_released(search, "state", state, sizeof state);
    size_t own = strcspn(state, ";"); /* "holds 220 W; another claim is lower: 180 W" */
    (void)snprintf(text, sizeof text, "%.*s%s%.190s%s", (int)own, state, *why ? ": " : "",
                   why, state + own);
    say_once(r, text);
}

/* Whether the last line that was said has the reason of this one. */
static bool is_reason_said(const struct remote *r, const char *text)
{
    const char *why = strstr(text, ": ");

    return why && strstr(r->said, why + 2);
}

/* Shows the daemon's new messages about the search.  lost: its boards were lost, as the
 * state says.
 */
static void say_notes(struct remote *r, const struct json_value *job, bool lost)
{
    const struct json_value *notes = json_get(job, "notes");
    size_t n = json_count(notes);
    const struct json_value *last = n > 0 ? json_at(notes, n - 1) : NULL;

    for (size_t i = job_notes_known(notes, r->noted, r->note); i < n; i++)
        if (!(lost && is_reason_said(r, take_text(json_at(notes, i), "text"))))
            say_once(r, take_text(json_at(notes, i), "text"));
    r->noted = last ? take_u64(last, "number") : 0;
    (void)snprintf(r->note, sizeof r->note, "%s", last ? take_text(last, "text") : "");
}

/* Reports that another user has a board that the job named, and when that changes. */
static void say_held(struct remote *r, const struct json_value *job)
{
    const char *held = take_text(job, "held");
    bool command = take_u64(job, "taken_by") > 0; /* of another Underwatt */
    char text[300];

    if (r->ended || strcmp(held, r->held) == 0)
        return;
    if (*held)
        (void)snprintf(text, sizeof text,
                       command
                           ? "%.150s: no cap there until that command ends; the cap "
                             "is then tried within 5 s"
                           : "%.150s: no cap there until the board is free, or CMD alone "
                             "computes there",
                       held);
    else
        (void)snprintf(text, sizeof text, "no longer: %.150s", r->held);
    (void)snprintf(r->held, sizeof r->held, "%s", held);
    job_say(r, text);
}

/* The state of lost boards goes first, as it has the time of a release. */
static void say_news(struct remote *r, const struct json_value *job)
{
    bool lost = take_status(json_get(job, "search")) == SEARCH_LOST_BOARDS;

    if (r->own || lost)
        say_state(r, job);
    if (r->own)
        return;
    say_notes(r, job, lost);
    if (!lost)
        say_state(r, job);
    say_held(r, job);
}

static const char *state_text(const struct remote *r, const struct json_value *job)
{
    if (r->lost)
        return "the daemon does not answer";
    return r->own && !r->capped ? "measures"
                                : take_text(json_get(job, "search"), "state");
}

static void live_text(const struct remote *r, char *ret, size_t size)
{
    const struct json_value *job = r->doc ? json_root(r->doc) : NULL;
    const struct steps *own = r->steps ? job_progress_steps(r->steps) : NULL;
    uint64_t n = own ? own->mark.steps : take_u64(job, "steps");
    double step_s = own ? own->step_s : take_number(job, "step_s");
    double power_w = r->lost ? (double)NAN : take_number(job, "power_w");
    char steps[64] = "";

    if (n > 0)
        (void)snprintf(steps, sizeof steps, "%" PRIu64 " steps  %.3g s/step  ", n,
                       step_s);
    (void)snprintf(ret, size, "%.0f s%s  %s%s  %s",
                   s_between(r->begin_ns, loop_now_ns(r->loop)),
                   r->boards.simulated ? " (simulated)" : "", steps,
                   figure_power(power_w).t, state_text(r, job));
}

static void live_line(struct remote *r, uint64_t now)
{
    char text[300];

    if (r->j->quiet || r->ended || (!r->tty && now < r->next_line_ns))
        return;
    live_text(r, text, sizeof text);
    if (r->tty) {
        (void)fprintf(stderr, "\r\033[K%s\r", text); /* CMD's output begins a line */
        (void)fflush(stderr);
        r->line_there = true;
    } else {
        r->next_line_ns = now + cli_wall_ns(r->loop, LINE_S * 1e3);
        cli_say("%s", text);
    }
}

/* ---- while CMD runs ---- */

static bool is_over(const struct remote *r)
{
    const struct json_value *job = r->doc ? json_root(r->doc) : NULL;
    const struct json_value *search = job ? json_get(job, "search") : NULL;
    bool none = !*take_text(search, "state");
    bool booked = r->own ? r->energy_over : take_bool(job, "settled");

    return job && booked && (none || take_status(search) == SEARCH_IS_OVER);
}

static int query_failed(struct remote *r, const char *why)
{
    char text[300];

    r->looking = false;
    if (!r->lost && !r->ended) {
        (void)snprintf(text, sizeof text,
                       "the daemon does not answer (%.150s): CMD runs on", why);
        job_say(r, text);
    }
    r->lost = true;
    return 0;
}

static void query_answered(struct remote *r)
{
    r->looking = false;
    if (r->lost)
        job_say(r, "the daemon answers again");
    r->lost = false;
}

/* The daemon may not have the page yet. */
static void give_page(struct remote *r)
{
    if (r->id && r->page && !r->last)
        (void)page_socket_send(r->where.job_socket, r->id, r->page_fd, NULL);
}

/* The daemon has begun the job: another daemon, or the same one, which had no room at
 * first.
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
                       "the daemon was replaced: job %" PRIu64
                       " continues there as job %" PRIu64,
                       r->id, id);
    else
        (void)snprintf(text, sizeof text, "the daemon accepts the job now: job %" PRIu64,
                       id);
    if (r->id != id) {
        job_say(r, text);
        r->noted = 0;
    }
    r->id = id;
    give_page(r);
    query_answered(r);
    return 0;
}

static int ask_begin(struct remote *r)
{
    uw_error err = {""};
    int got =
        ask_request(r->daemon, "POST", "/v1/jobs",
                    job_describe(r, loop_child_pid(r->child), true), on_begun, r, &err);

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
        say_news(r, json_root(r->doc));
        live_line(r, loop_now_ns(r->loop));
    }
    if (r->own && !r->ended) {
        int got = job_own_see(r);
        if (got < 0)
            return got;
    }
    if (r->ended && r->last && is_over(r) && !r->reporting)
        loop_stop(r->loop, 0);
    return 0;
}

/* Queries the job; begins it if the daemon had no room when CMD started. */
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

/* With a node in this process: whether the process did not run since the last look. */
static void see_stop(struct remote *r, uint64_t now_ns)
{
    uint64_t since_ns = r->looked_ns;
    char text[240];

    r->looked_ns = now_ns;
    if (!r->own || r->ended || !since_ns ||
        now_ns - since_ns <= cli_wall_ns(r->loop, STOOD_MS))
        return;
    r->stood_s += s_between(since_ns, now_ns);
    (void)snprintf(text, sizeof text,
                   "this command did not run for %.0f s%s (SIGSTOP, or the machine was "
                   "suspended): its boards were not read%s",
                   s_between(since_ns, now_ns),
                   loop_speed(r->loop) > 1 ? " of simulated time" : "",
                   r->asked ? "; a cap that ended meanwhile is set again" : "");
    job_say(r, text);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct remote *r = user;
    (void)timer;

    if (r->gate >= 0)
        return 0;
    see_stop(r, now_ns);
    if (!r->id || r->lost || r->looking)
        live_line(r, now_ns); /* otherwise the answer shows it */
    double wait_s = r->own    ? (r->interrupts ? OWN_STOPPED_S : OWN_LAST_S)
                    : !r->id  ? 0
                    : r->lost ? LOST_S
                              : LAST_S;
    if (r->ended && now_ns - r->end_ns >= cli_wall_ns(r->loop, wait_s * 1e3))
        loop_stop(r->loop, 0);
    return r->looking ? 0 : query(r);
}

static uint64_t last_period(const struct remote *r)
{
    return cli_wall_ns(r->loop, r->own ? OWN_LAST_LOOK_MS : LAST_LOOK_MS);
}

void job_look_now(struct remote *r)
{
    if (!r->reporting)
        loop_timer_set(r->timer, loop_now_ns(r->loop), last_period(r));
}

/* CMD has ended, and whether it was executed is known: queries for the last time. */
int job_at_end(struct remote *r)
{
    /* CMD outlived an earlier signal: that signal did not ask for its end */
    if (r->end_ns - r->interrupt_ns > cli_wall_ns(r->loop, SURVIVED_S * 1e3))
        r->interrupts = 0;
    if (r->exec_errno)
        loop_stop(r->loop, 0);
    else
        loop_timer_set(r->timer, loop_now_ns(r->loop) + last_period(r) / 4,
                       last_period(r));
    return r->own && !r->exec_errno ? job_own_end(r) : 0;
}

static int on_signal(struct loop_signal *source, int signo, void *user)
{
    struct remote *r = user;
    bool keys = signo == SIGINT || signo == SIGQUIT;
    bool ends = signo == SIGINT || signo == SIGTERM;
    (void)source;

    if (r->begin_ns && ends) {
        r->interrupts++;
        r->interrupt_ns = loop_now_ns(r->loop);
    }
    if (r->begin_ns && !r->ended) {
        /* CMD has received the signal of a terminal's key, too */
        if (!keys || cli_signal_sent(signo))
            (void)loop_child_kill(r->child, signo);
        return 0;
    }
    /* The first one may have ended CMD, whose end was seen earlier.  The energy is
     * awaited, and with a node in this process the limits are restored.
     */
    if (!ends || (r->begin_ns && r->interrupts == 1))
        return 0;
    r->hurried = true;
    loop_stop(r->loop, 0);
    return 0;
}

/* ---- start ---- */

/* Before CMD starts: says what keeps the cap from its boards.  Waits until the search has
 * read the boards that the job names: milliseconds, but of a released board a second.
 */
static void say_first(struct remote *r)
{
    uint64_t until = loop_now_ns(r->loop) + cli_wall_ns(r->loop, FIRST_MS);
    char path[64];
    bool waits = true;

    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, r->id);
    while (waits && !r->hurried && loop_now_ns(r->loop) < until) {
        auto_(json_free) struct json *doc = NULL;
        if (ask_wait(r->daemon, "GET", path, NULL, &doc, NULL) < 0 || !doc)
            return;
        const struct json_value *job = json_root(doc), *search = json_get(job, "search");
        waits = take_status(search) == SEARCH_WAITS_FOR_BOARDS &&
                json_count(json_get(job, "gpus")) > 0 && !*take_text(job, "held");
        say_news(r, job);
        if (waits)
            cli_loop_wait(r->loop, FIRST_LOOK_MS);
    }
}

static bool is_named(const struct job_boards *b, const char *uuid)
{
    for (size_t i = 0; i < b->n; i++)
        if (strcmp(b->uuid[i], uuid) == 0)
            return true;
    return false;
}

/* Before CMD starts: says which other jobs' limits its cap will lower on the boards that
 * are known.
 */
static void say_lowered(struct remote *r)
{
    auto_(json_free) struct json *boards = NULL, *doc = NULL;
    char line[160];

    if (r->j->quiet || r->j->caps != JOB_CAPS_NAMED || !r->boards.n ||
        ask_wait(r->daemon, "GET", "/v1/claims", NULL, &doc, NULL) < 0 ||
        ask_wait(r->daemon, "GET", "/v1/gpus", NULL, &boards, NULL) < 0)
        return;
    const struct json_value *gpus = json_get(json_root(boards), "gpus");
    for (size_t i = 0; i < json_count(gpus); i++) {
        struct cap_target t;
        if (cap_read_target(json_at(gpus, i), &r->j->cap, &t, NULL) == 0 &&
            is_named(&r->boards, t.uuid) &&
            cap_read_lowers(json_at(gpus, i), json_get(json_root(doc), "claims"),
                            t.cap_mw, r->id, line, sizeof line))
            job_say(r, line);
    }
}

/* The daemon begins the job; if it has no room, CMD runs all the same. */
static int begin(struct remote *r, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    uw_error why = {""};
    char text[300];

    int got = ask_wait(r->daemon, "POST", "/v1/jobs",
                       job_describe(r, loop_child_pid(r->child), true), &doc, err);
    r->id = job_id(doc);
    if (may_wait(got)) {
        (void)snprintf(text, sizeof text,
                       "%.200s: CMD runs without a cap until the daemon takes it",
                       err->text);
        job_say(r, text);
    } else if (got < 0) {
        return got;
    } else if (!r->id) {
        return fail(err, -EPROTO, "the daemon's answer has no job id");
    }
    if (r->id && r->page &&
        page_socket_send(r->where.job_socket, r->id, r->page_fd, &why) < 0)
        job_say(r, why.text);
    if (r->id) {
        say_first(r);
        say_lowered(r);
    }
    return 0;
}

/* ---- the whole command ---- */

/* The preset's value on each board of the job. */
static void look_at_preset(struct remote *r, struct job_result *ret)
{
    const struct json_value *job = r->doc ? json_root(r->doc) : NULL;
    const struct json_value *gpus = json_get(job, "gpus_so_far");

    for (size_t i = 0; i < json_count(gpus) && ret->n_preset < BOARDS_MAX; i++) {
        uint64_t index = 0;
        (void)json_as_u64(json_at(gpus, i), &index);
        uint32_t mw = preset_mw(r->daemon, (unsigned)index, &r->j->cap);
        if (mw)
            r->preset[ret->n_preset++] = (struct preset_board){(unsigned)index, mw};
    }
    ret->preset = r->preset;
}

/* The goal that the search had: a policy, or the outer job, may have set another one. */
static void take_goal(const struct remote *r)
{
    const struct json_value *search =
        r->doc ? json_get(json_root(r->doc), "search") : NULL;

    (void)goal_parse(take_text(search, "goal"), &r->j->goal, NULL);
    r->j->goal_of = r->doc ? take_u64(json_root(r->doc), "goal_of") : 0;
}

static int write_reports(struct remote *r)
{
    struct job_run *j = r->j;
    struct job_answer a;

    job_answer(r->doc, &a);
    take_goal(r);
    a.result.status = r->status;
    a.result.simulated = r->boards.simulated;
    a.result.begin_ns = r->begin_ns;
    a.result.end_ns = r->end_ns;
    a.result.begin_utc_ns = r->begin_utc_ns;
    a.result.time_s = s_between(r->begin_ns, r->end_ns);
    a.result.stood_s = r->stood_s;
    if (j->preset && !r->hurried && !r->lost)
        look_at_preset(r, &a.result);
    if (r->own)
        job_own_finish(r, &a);
    else if (r->lost && a.report.n_caps == 0)
        (void)fail(&a.result.error, 0, "the daemon does not answer");
    else if (!r->id)
        (void)fail(&a.result.error, 0, "the daemon has no room for the job");
    return job_reports(j, &a.result, r->argv);
}

static int before(struct remote *r, int got, const uw_error *err)
{
    const char *name = r->j->cmd->name;

    job_close_gate(r); /* the process waiting at the gate ends */
    return cli_fail(got == -EINVAL || got == -ERANGE ? EXIT_USAGE : EXIT_BEFORE,
                    "%s: %s%s", name, err->text, r->own ? "" : daemon_local_hint(got));
}

static int start(struct remote *r, uw_error *err)
{
    uint64_t period = cli_wall_ns(r->loop, r->own ? OWN_LOOK_MS : LOOK_MS);
    uint64_t now = loop_now_ns(r->loop);

    int got =
        loop_timer_new(r->loop, now + period / 4, period, on_timer, r, &r->timer, err);
    if (got >= 0 && !r->own)
        got = job_child_start(r, err);
    if (got >= 0)
        got = r->own ? job_own_begin(r, err) : begin(r, err);
    if (got >= 0 && r->hurried)
        got = fail(err, -EINTR, "interrupted");
    if (got >= 0)
        got = job_child_go(r, err);
    r->next_line_ns = r->begin_ns + cli_wall_ns(r->loop, LINE_S * 1e3);
    return got;
}

static int not_executed(const struct remote *r)
{
    char path[PATH_MAX];
    uw_error err;

    int got = program_find(r->argv[0], r->j->env->path, path, sizeof path, &err);
    if (got == 0)
        got = program_fail(r->argv[0], path, -r->exec_errno, &err);
    return cli_fail(cli_exit_of_exec(got), "%s: %s", r->j->cmd->name, err.text);
}

static int run(struct remote *r)
{
    uw_error err = {""};

    if (!r->own)
        job_page_make(r);
    int got = start(r, &err);
    if (got < 0)
        return before(r, got, &err);
    got = loop_run(r->loop, &err);
    if (got < 0 || !r->ended)
        return cli_fail(EXIT_BEFORE, "%s: %s", r->j->cmd->name,
                        got < 0 ? err.text : "ended early");
    if (r->exec_errno)
        return not_executed(r);
    if (r->line_there)
        (void)fputs("\r\033[K", stderr);
    r->line_there = false;
    r->reporting = true; /* pending queries must not stop the loop any more */
    loop_timer_set(r->timer, UINT64_MAX, 0);
    got = write_reports(r);
    int code = cli_exit_of_status(r->status);
    return code == EXIT_OK && got < 0 ? EXIT_FAIL : code;
}

static void close_all(struct remote *r)
{
    job_close_gate(r);
    if (r->own)
        job_own_close(r);
    else
        ask_free(r->daemon); /* ends a query that hangs */
    loop_timer_free(r->timer);
    loop_child_free(r->child);
    json_free(r->doc);
    json_free(r->energy);
    job_page_free(r);
}

static void init(struct remote *r, struct job_run *j, const struct opts_rest *rest)
{
    *r = (struct remote){.j = j,
                         .argv = (const char *const *)rest->argv,
                         .page_fd = -1,
                         .gate = -1,
                         .tty = isatty(STDERR_FILENO) == 1};
}

/* Queries the daemon for its boards. */
static int open_daemon(struct remote *r, struct httpc *daemon, uw_error *err)
{
    auto_(httpc_free) struct httpc *client = daemon;
    auto_(json_free) struct json *gpus = NULL;

    int got = daemon_address(r->j->env->socket, r->j->boards, &r->where, err);
    if (got >= 0)
        got = ask_http(r->loop, take(client), &r->daemon, err);
    if (got >= 0)
        got = ask_wait(r->daemon, "GET", "/v1/gpus", NULL, &gpus, err);
    if (got >= 0)
        got = job_boards(gpus, r->j, &r->boards, err);
    if (got >= 0 && r->boards.note[0])
        job_say(r, r->boards.note);
    return got;
}

int job_node_run(struct job_run *j, const struct opts_rest *rest, struct httpc *daemon)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct cli_signals signals = {{NULL}};
    struct remote r;
    uw_error err = {""};
    int code = EXIT_OK;

    init(&r, j, rest);
    int got = cli_loop_new(j->env, &loop, &err);
    r.loop = loop;
    if (got < 0)
        httpc_free(daemon);
    else if (daemon)
        got = open_daemon(&r, daemon, &err);
    if (got >= 0 && j->preset) {
        got = preset_cap(r.daemon, j->preset, &j->cap, &err);
        if (got < 0)
            got = fail_in(&err, got, "--preset");
    }
    if (got >= 0)
        got = cli_signals_new(loop, CLI_SIGNALS, on_signal, &r, &signals, &err);
    if (got < 0)
        code = before(&r, got, &err);
    if (code == EXIT_OK && !daemon)
        code = job_own_open(&r);
    if (code == EXIT_OK)
        code = run(&r);
    close_all(&r);
    cli_signals_free(&signals);
    return code;
}
