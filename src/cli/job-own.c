/* `underwatt run` and `underwatt measure` with a node in this process: opens it with
 * CMD's boards, checks the right to cap before CMD starts, and completes the report from
 * an energy window.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "cli/job-inside.h"
#include "cli/own-hold.h"
#include "cli/own-place.h"
#include "cli/take.h"
#include "cli/who.h"
#include "local/final-read.h"

enum {
    BACK_MS = 2000,   /* longest wait until they are released */
    SETTLED_MS = 3000 /* without a new board until CMD's boards count as known */
};

static int interrupted(uw_error *err)
{
    return fail(err, -EINTR, "interrupted");
}

/* ---- boards ---- */

static size_t n_boards(const struct remote *r)
{
    struct boards *set = own_node_boards(r->own);

    return set ? boards_count(set) : 0;
}

static const struct gpu_info *info_of(const struct remote *r, size_t i)
{
    return board_view(boards_at(own_node_boards(r->own), i))->info;
}

static bool is_used(const struct remote *r, size_t i)
{
    unsigned index = info_of(r, i)->index;

    return r->named || (index < 64 && (r->so_far >> index & 1));
}

/* The boards that the job names: all boards of the node, or those on which CMD was
 * found.  By index, because the UUID of a board that does not answer is unknown.
 */
static void name_boards(struct remote *r)
{
    r->boards.n = 0;
    for (size_t i = 0; i < n_boards(r) && r->boards.n < JOB_BOARDS_MAX; i++) {
        r->boards.simulated |= info_of(r, i)->simulated;
        if (is_used(r, i))
            (void)snprintf(r->boards.uuid[r->boards.n++], sizeof r->boards.uuid[0], "%u",
                           info_of(r, i)->index);
    }
}

static void look(const struct remote *r, size_t i, struct caps_view *ret)
{
    caps_look(node_caps(own_node_node(r->own)), i, ret);
}

/* Notes the original at the time when the board was first held. */
static void note_originals(struct remote *r)
{
    struct caps_view cap;

    for (size_t i = 0; i < n_boards(r); i++) {
        look(r, i, &cap);
        if (!r->original_mw[i] && (cap.state == CAPS_HELD || cap.writing))
            r->original_mw[i] = cap.bounds.original_mw;
    }
}

/* ---- the right to cap ---- */

/* Waits until the boards from first to end - 1 are held, or until the driver writes:
 * then CMD starts meanwhile.
 */
static int await_held(struct remote *r, size_t first, size_t end, uw_error *err)
{
    uint64_t until = loop_now_ns(r->loop) + cli_wall_ns(r->loop, OWN_HOLD_MS);
    size_t at = first; /* the first board that is not held yet */

    while (!r->hurried && loop_now_ns(r->loop) < until) {
        int got = 1;
        for (size_t i = first; i < end && got == 1; i++) {
            got = own_hold_is(r->own, i, err);
            if (got == 0 && own_hold_writes(r->own, i))
                got = 1;
            at = i;
        }
        note_originals(r);
        if (got != 0)
            return got < 0 ? got : 0;
        own_node_wait(r->own, until);
    }
    if (r->hurried)
        return interrupted(err);
    return own_hold_late(r->own, at, err);
}

static uint64_t made_id(const struct json *doc)
{
    return take_u64(doc ? json_root(doc) : NULL, "id");
}

static void let_go(struct remote *r);

static void drop_probe(struct remote *r)
{
    char path[64];

    r->probing = 0;
    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, r->probe);
    (void)ask_wait(r->daemon, "DELETE", path, NULL, NULL, NULL);
}

static int probe(struct remote *r, size_t i, uw_error *err)
{
    int got =
        own_hold_claim(r->own, i, "the limit that was found: proves the right to set it",
                       &r->probe, err);

    if (got < 0)
        return got;
    got = await_held(r, i, i + 1, err);
    if (got == 0 && own_hold_writes(r->own, i)) { /* it ends while CMD runs */
        r->probing = i + 1;
        return 0;
    }
    drop_probe(r);
    if (got < 0)
        return got;
    let_go(r);
    if (r->sure) /* the board is released: its limit may change */
        memset(r->original_mw, 0, sizeof r->original_mw);
    return 0;
}

/* No board is named: checks the right on one that no other process holds. */
static int probe_any(struct remote *r, uw_error *err)
{
    struct caps_view cap;
    int first = 0;

    for (size_t i = 0; i < n_boards(r); i++) {
        uw_error why = {""};
        look(r, i, &cap);
        if (!cap.can_cap)
            continue;
        int got = probe(r, i, &why);
        if (got == 0 || got == -EINTR)
            return got == 0 ? 0 : fail(err, got, "%s", why.text);
        if (first == 0)
            first = fail(err, got, "%s", why.text);
    }
    return first < 0 ? first : fail(err, -ENOTSUP, "no board here can be capped");
}

/* Other users who compute on a named board never prevent CMD from running. */
static void check_foreign(struct remote *r)
{
    char held[JOB_HELD], text[300];

    if (!node_held(own_node_node(r->own), held))
        return;
    (void)snprintf(text, sizeof text, "%s: CMD runs without a cap", held);
    job_say(r, text);
    r->capped = false;
}

/* Before CMD's boards are known: whether any board accepts the cap in watts. */
static int check_cap(const struct remote *r, uw_error *err)
{
    bool watts = r->j->caps == JOB_CAPS_NAMED && r->j->cap.mw;

    return watts ? boards_check_cap(own_node_boards(r->own), &r->j->cap, err) : 0;
}

static int need_caps(struct remote *r, uw_error *err)
{
    int got = r->hurried ? -EINTR : own_node_actuator(r->own, err);

    if (got < 0)
        return got;
    if (!r->named)
        return probe_any(r, err);
    own_node_hold(r->own, true);
    return await_held(r, 0, n_boards(r), err);
}

/* Prepares everything that CMD needs before it starts.  A signal stops the loop only
 * once: if the loop was already being stopped, or no caller checked why a wait ended,
 * only r->hurried reports the signal.
 */
static int prepare(struct remote *r, uw_error *err)
{
    int got = r->hurried ? -EINTR : own_node_feed(r->own, err);

    if (got == 0 && r->capped && r->named)
        check_foreign(r);
    else if (got == 0 && r->capped)
        got = check_cap(r, err);
    if (got == 0 && r->capped)
        got = need_caps(r, err);
    return r->hurried ? interrupted(err) : got;
}

/* ---- the node ---- */

static void on_note(uint64_t job, const char *text, bool important, void *user)
{
    (void)job;

    if (important)
        job_say(user, text);
}

static int open_node(struct remote *r, uw_error *err)
{
    const struct job_run *j = r->j;
    struct own_setup setup;

    own_setup(j->env, j->boards, r->loop, &setup);
    setup.node.window_s = j->window_s;
    setup.own.only = j->gpus;
    setup.own.visible = &j->env->visible;
    setup.own.runs_job = true;
    setup.own.note = on_note;
    setup.own.note_user = r;
    int got = own_node_new(&setup.own, &r->own, err);
    if (got == 0)
        r->daemon = own_node_ask(r->own);
    return got;
}

/* Another Underwatt holds a board: whether that is the daemon. */
static void say_holder(const struct remote *r)
{
    struct caps_view cap = {.taken_by = 0};

    for (size_t i = 0; i < n_boards(r) && !cap.taken_by; i++)
        look(r, i, &cap);
    who_say_daemon(r->j->cmd->name, cap.taken_by);
}

int job_own_open(struct remote *r)
{
    const struct job_run *j = r->j;
    const char *name = j->cmd->name;
    uw_error err = {""};

    r->named = j->gpus || j->env->visible.name;
    r->capped = j->caps != JOB_CAPS_NONE;
    int got = open_node(r, &err);
    if (r->hurried)
        return cli_fail(EXIT_BEFORE, "%s: interrupted", name);
    if (got == -EINVAL)
        return cli_fail(EXIT_USAGE, "%s: %s", name, err.text);
    if (got < 0)
        return cli_fail(EXIT_BEFORE, "%s: %s; `underwatt doctor` shows what is missing",
                        name, err.text);
    name_boards(r);
    if (!r->boards.simulated)
        (void)job_cpu_new(r->loop, j->boards, cli_loop_clock(r->loop), &r->cpu);
    job_page_make(r);
    got = job_child_start(r, &err); /* it waits at the gate */
    if (got >= 0)
        got = prepare(r, &err);
    if (got < 0)
        (void)cli_fail(EXIT_BEFORE, "%s: %s", name, err.text);
    if (got == -EBUSY)
        say_holder(r);
    return got == -ERANGE ? EXIT_USAGE : got < 0 ? EXIT_BEFORE : EXIT_OK;
}

void job_own_close(struct remote *r)
{
    job_cpu_free(r->cpu);
    own_node_free(r->own);
    final_read_free(r->reread);
}

/* ---- CMD starts ---- */

static void give_page(struct remote *r)
{
    uw_error why = {""};
    int fd = r->page_fd >= 0 ? dup(r->page_fd) : -1;

    if (fd >= 0 && own_node_page(r->own, r->id, fd, &why) < 0)
        job_say(r, why.text);
}

/* CMD's reports are read here until the node has a search that reads them. */
static void read_page(struct remote *r)
{
    const struct job_progress_opts opts = {.loop = r->loop};

    if (r->page && job_progress_new(&opts, r->page, &r->steps, NULL) == 0)
        r->page = NULL;
}

int job_own_begin(struct remote *r, uw_error *err)
{
    auto_(json_free) struct json *job = NULL, *window = NULL;
    bool at_once = r->capped && r->named;

    int got = ask_wait(r->daemon, "POST", "/v1/jobs",
                       job_describe(r, loop_child_pid(r->child), at_once), &job, err);
    if (got < 0)
        return got;
    r->id = made_id(job);
    r->asked = at_once;
    if (at_once)
        give_page(r);
    else
        read_page(r);
    got = ask_wait(r->daemon, "POST", "/v1/windows", NULL, &window, err);
    r->window = made_id(window);
    job_cpu_mark(r->cpu, loop_now_ns(r->loop));
    return got;
}

/* ---- while CMD runs ---- */

/* CMD's boards are known: another job, with the search, replaces the first one. */
static int on_searched(struct ask_answer *answer, void *user)
{
    struct remote *r = user;

    if (answer->r < 0) { /* CMD runs already: it stays uncapped */
        job_say(r, answer->error.text);
        return 0;
    }
    r->id = made_id(answer->doc);
    give_page(r);
    return 0;
}

static int on_dropped(struct ask_answer *answer, void *user)
{
    (void)answer;
    (void)user;
    return 0;
}

static int search_found(struct remote *r, const struct json_value *job)
{
    uw_error err = {""};
    char path[64];

    if (take_bool(job, "foreign")) {
        if (!r->foreign)
            job_say(r, "another user's process shares a board of CMD: it is not capped");
        r->foreign = true;
        return 0;
    }
    r->asked = true;
    name_boards(r);
    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, r->id);
    int got = ask_request(r->daemon, "DELETE", path, NULL, on_dropped, NULL, &err);
    if (got >= 0)
        got = ask_request(r->daemon, "POST", "/v1/jobs",
                          job_describe(r, loop_child_pid(r->child), true), on_searched, r,
                          &err);
    return got;
}

static void take_so_far(struct remote *r, const struct json_value *job, uint64_t now)
{
    const struct json_value *gpus = json_get(job, "gpus_so_far");
    uint64_t had = r->so_far;

    for (size_t i = 0; i < json_count(gpus); i++) {
        uint64_t index = 0;
        if (json_as_u64(json_at(gpus, i), &index) && index < 64)
            r->so_far |= 1ull << index;
    }
    if (r->so_far != had)
        r->so_far_ns = now;
}

/* Whether the driver has refused the limit that it was writing when CMD was started. */
static void see_probe(struct remote *r)
{
    size_t i = r->probing - 1;
    char path[64], text[300];
    uw_error err;

    if (own_hold_writes(r->own, i))
        return;
    r->probing = 0;
    if (own_hold_is(r->own, i, &err) < 0) {
        (void)snprintf(text, sizeof text, "%.250s: CMD runs without a cap", err.text);
        job_say(r, text);
    }
    (void)snprintf(path, sizeof path, "/v1/claims/%" PRIu64, r->probe);
    (void)ask_request(r->daemon, "DELETE", path, NULL, on_dropped, NULL, &err);
}

int job_own_see(struct remote *r)
{
    const struct json_value *job = r->doc ? json_root(r->doc) : NULL;
    uint64_t now = loop_now_ns(r->loop);
    bool settled = s_between(r->so_far_ns, now) * 1e3 >= SETTLED_MS;

    take_so_far(r, job, now);
    if (r->probing)
        see_probe(r);
    if (r->capped && !r->asked && r->so_far && settled && !r->ended)
        return search_found(r, job);
    if (!r->ended)
        note_originals(r);
    return 0;
}

/* ---- CMD has ended ---- */

static int on_energy(struct ask_answer *answer, void *user)
{
    struct remote *r = user;

    r->energy_over = true;
    r->energy = take(answer->doc);
    if (answer->r < 0)
        r->energy_error = answer->error;
    job_look_now(r);
    return 0;
}

int job_own_end(struct remote *r)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/windows/%" PRIu64 "/end", r->window);
    int got = ask_request(r->daemon, "POST", path, NULL, on_energy, r, &r->energy_error);
    r->energy_over = got < 0;
    job_cpu_mark(r->cpu, r->end_ns);
    return r->steps ? job_progress_end(r->steps) : 0;
}

/* *ret_sure: each board that was held is free, and its original is confirmed. */
static bool is_any_held(struct remote *r, bool *ret_sure)
{
    struct caps_view cap;
    bool held = false;

    *ret_sure = true;
    note_originals(r);
    for (size_t i = 0; i < n_boards(r); i++) {
        look(r, i, &cap);
        held |= cap.state == CAPS_HELD || cap.state == CAPS_HOLDING;
        *ret_sure &= !r->original_mw[i] || (cap.state == CAPS_FREE && !cap.unrestored);
    }
    return held;
}

/* Releases all boards. */
static void let_go(struct remote *r)
{
    uint64_t until = loop_now_ns(r->loop) + cli_wall_ns(r->loop, BACK_MS);

    if (r->probing)
        drop_probe(r);
    own_node_hold(r->own, false);
    while (is_any_held(r, &r->sure) && !r->hurried && loop_now_ns(r->loop) < until)
        own_node_wait(r->own, until);
}

/* Board i in the energy window's answer. */
static const struct json_value *energy_of(const struct remote *r, size_t i)
{
    const struct json_value *gpus =
        r->energy ? json_get(json_root(r->energy), "gpus") : NULL;

    return take_entry(gpus, "gpu", info_of(r, i)->index);
}

/* The energy of the boards that CMD used. */
static void take_energy_of(struct remote *r, struct job_result *ret)
{
    struct half_sum half = {0};

    ret->n = n_boards(r) < BOARDS_MAX ? n_boards(r) : BOARDS_MAX;
    ret->board = r->out;
    ret->measured = r->energy != NULL;
    ret->error = r->energy_error;
    if (!r->energy_over)
        (void)fail(&ret->error, 0,
                   r->hurried ? "interrupted" : "the energy was not known in time");
    ret->energy_j = 0;
    for (size_t i = 0; i < ret->n; i++) {
        const struct json_value *v = energy_of(r, i);
        struct job_board *out = &r->out[i];
        *out = (struct job_board){.info = info_of(r, i), .used = is_used(r, i)};
        if (!out->used)
            continue;
        job_answer_energy(v, &out->energy);
        ret->n_used++;
        if (ret->measured && !isfinite(out->energy.energy_j)) {
            ret->measured = false;
            (void)fail(&ret->error, 0, "%.160s", take_text(v, "why"));
        }
        ret->energy_j += out->energy.energy_j;
        struct half_sum own = meter_half(&out->energy);
        half_sum_add(&half, &own);
        ret->why |= out->energy.why;
    }
    ret->half_j = half_sum_j(&half);
    if (ret->n_used == 0) {
        ret->measured = false;
        (void)fail(&ret->error, 0,
                   "no GPU was named and CMD used none: nothing to measure");
    }
}

static int on_reread(bool restored, const char *text, void *user)
{
    struct remote *r = user;

    r->reread_over = true;
    r->restored = restored;
    (void)snprintf(r->force, sizeof r->force, "%s", text);
    loop_stop(r->loop, 0);
    return 0;
}

/* Reads the limits in force. */
static void reread(struct remote *r)
{
    struct final_read_board boards[BOARDS_MAX];
    struct boards *set = own_node_boards(r->own);
    size_t n = 0;

    for (size_t i = 0; i < n_boards(r) && i < BOARDS_MAX; i++)
        if (r->original_mw[i])
            boards[n++] = (struct final_read_board){boards_at(set, i), r->original_mw[i]};
    const struct final_read_opts opts = {.loop = r->loop,
                                         .lib = set ? boards_lib(set) : NULL,
                                         .boards = boards,
                                         .n = n,
                                         .fn = on_reread,
                                         .user = r};
    (void)snprintf(r->force, sizeof r->force, "could not be verified");
    int got = set && !r->hurried ? final_read_start(&opts, &r->reread, NULL) : -EINTR;
    while (got == 0 && !r->reread_over && !r->hurried)
        got = loop_run(r->loop, NULL);
    if (r->hurried && !r->reread_over)
        (void)snprintf(r->force, sizeof r->force,
                       "could not be verified: interrupted before it was read");
}

/* Whether each board was read when it was released. */
static bool is_sure(const struct remote *r, const struct tuner_report *t)
{
    const struct json_value *search =
        r->doc ? json_get(json_root(r->doc), "search") : NULL;
    const struct json_value *details = json_get(search, "details");
    int status = names_number(NAMES_SEARCH_STATUS, take_text(search, "status"));

    return r->sure && status == SEARCH_IS_OVER && t->restored && !t->ended[0] &&
           !take_bool(details, "unconfirmed");
}

static void complete_tuner(struct remote *r, struct tuner_report *t)
{
    const struct json_value *search = json_get(json_root(r->doc), "search");
    double ended_s = take_number(json_get(search, "details"), "ended_s");

    if (isfinite(ended_s))
        t->ended_ns = loop_now_ns(r->loop) - ns_of_s(ended_s);
    if (is_sure(r, t))
        return;
    reread(r);
    t->restored = r->restored;
    (void)snprintf(t->after, sizeof t->after, "%s", r->force);
    (void)snprintf(t->restore, sizeof t->restore, "%s", r->restored ? "" : r->force);
}

void job_own_finish(struct remote *r, struct job_answer *a)
{
    struct job_result *s = &a->result;
    const struct json_value *window = r->energy ? json_root(r->energy) : NULL;
    double time_s = take_number(window, "time_s");

    /* the results of the answers since the last one before the end */
    take_so_far(r, r->doc ? json_root(r->doc) : NULL, r->end_ns);
    if (r->capped)
        let_go(r);
    if (isfinite(time_s))
        s->time_s = time_s; /* time span of the energy */
    take_energy_of(r, s);
    s->n_cpu =
        r->hurried ? 0 : job_cpu_energy(r->cpu, s->begin_ns, s->end_ns, r->cpu_out);
    s->cpu = r->cpu_out;
    s->power_w = s->measured && s->time_s > 0 ? s->energy_j / s->time_s : 0;
    if (r->steps) {
        s->steps = job_progress_steps(r->steps)->mark.steps;
        job_progress_launches(r->steps, s->launches);
    }
    s->silent = r->capped && s->steps == 0;
    if (!r->asked)
        s->tuner = NULL;
    if (s->tuner)
        complete_tuner(r, &a->report);
}
