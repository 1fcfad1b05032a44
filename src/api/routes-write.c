/* Handlers of requests that change something, and of requests answered later. */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/body.h"
#include "api/routes-inside.h"
#include "api/show.h"
#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "node/policy-trial.h"

/* The node has logged its own refusal, so the server must not log it again. */
static void node_failed(struct http_exchange *x, int r, const uw_error *err)
{
    http_told(x);
    http_fail_r(x, r, err);
}

static void reply_empty(struct ask *a, int r, const uw_error *err)
{
    if (r < 0)
        node_failed(a->x, r, err);
    else
        http_reply(a->x, 204, NULL, NULL, 0, NULL);
}

/* A pid is local to this machine, so a remote client cannot name one. */
static int check_pid(const struct ask *a, pid_t pid, uw_error *err)
{
    if (pid == 0 || a->local)
        return 0;
    return fail(err, -EINVAL, "'pid' is accepted over the unix socket only");
}

/* ---- claims ---- */

void route_claim(struct ask *a)
{
    struct body_claim c;
    uint64_t id = 0;
    uw_error err = {""};
    int r = body_claim(a->body, &c, &err);

    if (r == 0)
        r = check_pid(a, c.ask.pid, &err);
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    r = node_claim(ask_node(a), a->who, &c.ask, &id, &err);
    if (r < 0)
        node_failed(a->x, r, &err);
    else
        ask_made(a, "/v1/claims", id, "");
}

void route_withdraw(struct ask *a)
{
    uint64_t id = 0;
    uw_error err = {""};

    if (ask_id(a, "claim", &id))
        reply_empty(a, node_withdraw(ask_node(a), a->who, id, &err), &err);
}

/* ---- jobs ---- */

void route_job_begin(struct ask *a)
{
    struct body_job j;
    uint64_t id = 0;
    uw_error err = {""};
    int r = body_job(a->body, a->who->uid, ask_node(a), &j, &err);

    if (r == 0)
        r = check_pid(a, j.ask.reg.pid, &err);
    if (r == 0 && j.ask.reg.uid == (uid_t)-1)
        r = fail(&err, -EINVAL, "'uid' is missing: the owner of the job");
    if (r == 0 && j.has_uid && j.ask.reg.uid != a->who->uid && !a->who->admin)
        r = fail(&err, -EPERM, "%s may register jobs of its own, not of uid %u",
                 a->who->name, (unsigned)j.ask.reg.uid);
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    r = node_job_join(ask_node(a), a->who, &j.ask, &id, &err);
    bool joined = r > 0;
    if (r == 0)
        r = node_job_begin(ask_node(a), a->who, &j.ask, &id, &err);
    if (r < 0)
        node_failed(a->x, r, &err);
    else
        ask_made(a, "/v1/jobs", id,
                 j.ask.reg.group ? joined ? ", \"joined\": true" : ", \"joined\": false"
                                 : "");
}

/* The process of ?pid=; 0: none is named. */
static int leaver(const struct ask *a, pid_t *ret, uw_error *err)
{
    const char *text = http_query(a->x, "pid");
    uint64_t pid = 0;
    int r = text ? parse_u64(text, &pid, err) : 0;

    if (r == 0 && text && (pid == 0 || pid > INT_MAX))
        r = fail(err, -ERANGE, "pid: %.20s is not a process", text);
    if (r < 0)
        return r;
    *ret = (pid_t)pid;
    return check_pid(a, *ret, err);
}

static void end_by_name(struct ask *a)
{
    uw_error err = {""};

    if (!ask_name(a))
        return;
    int r = node_scheduler_end(ask_node(a), a->who, a->part, &err);
    reply_empty(a, r, &err);
}

void route_job_end(struct ask *a)
{
    uint64_t id = 0;
    pid_t pid = 0;
    uw_error err = {""};

    if (ask_is_name(a)) {
        end_by_name(a);
        return;
    }
    if (!ask_id(a, "job", &id))
        return;
    int r = leaver(a, &pid, &err);
    if (r < 0)
        http_fail_r(a->x, r, &err);
    else if (pid)
        reply_empty(a, node_job_leave(ask_node(a), a->who, id, pid, &err), &err);
    else
        reply_empty(a, node_job_end(ask_node(a), a->who, id, &err), &err);
}

/* Puts the result of the request. */
static void reply_put(struct ask *a, uint64_t id, bool was)
{
    const struct node_view *v = node_look(ask_node(a));
    const struct view_job *j = NULL;

    for (size_t i = 0; i < v->n_jobs && !j; i++)
        if (v->job[i].job->id == id)
            j = &v->job[i];
    if (!j) {
        http_fail(a->x, 503, "job %s has just ended", a->part);
        return;
    }
    struct json_out *o = json_out_new();
    json_out_object(o, NULL);
    json_out_int(o, "id", (int64_t)id);
    json_out_text(o, "name", j->job->name);
    show_boards(o, "gpus", v, j->job->given);
    json_out_array(o, "uuids");
    for (size_t i = 0; i < v->n_boards && i < 64; i++)
        if (j->job->given >> i & 1)
            json_out_text(o, NULL, v->board[i].info->uuid);
    json_out_end(o);
    json_out_text(o, "refused", j->refused);
    json_out_end(o);
    http_reply_json_as(a->x, was ? 200 : 201, o);
}

void route_job_put(struct ask *a)
{
    struct body_scheduler b;
    uint64_t id = 0;
    uw_error err = {""};

    if (!ask_name(a))
        return;
    int r = a->local ? body_scheduler(a->body, &b, &err)
                     : fail(&err, -EINVAL,
                            "jobs are registered by name over the unix socket only");
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    b.ask.reg.name = a->part;
    b.ask.reg.label = b.label;
    b.ask.ask = b.wish;
    r = node_scheduler_put(ask_node(a), a->who, &b.ask, &id, &err);
    if (r < 0) {
        node_failed(a->x, r, &err);
        return;
    }
    reply_put(a, id, r == 1);
}

void route_job_patch(struct ask *a)
{
    struct body_facts b;
    uw_error err = {""};

    if (!ask_name(a))
        return;
    int r = body_facts(a->body, &b, &err);
    if (r < 0)
        http_fail_r(a->x, r, &err);
    else
        reply_empty(a, node_scheduler_amend(ask_node(a), a->who, a->part, &b.facts, &err),
                    &err);
}

void route_job_goal(struct ask *a)
{
    struct goal goal;
    bool has = false;
    uint64_t id = 0;
    uw_error err = {""};

    if (!ask_id(a, "job", &id))
        return;
    int r = body_goal(a->body, &goal, &has, &err);
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    r = node_job_goal(ask_node(a), a->who, id, has ? &goal : NULL, &err);
    reply_empty(a, r, &err);
}

/* ---- later answers ---- */

/* Outlives the exchange: the node calls back exactly once, also after the peer has closed
 * the connection.
 */
struct later {
    struct routes *r;
    struct http_exchange *x; /* NULL: the peer has closed */
    size_t board;
    bool admin; /* the requesting client is an administrator */
};

static void on_gone(struct http_exchange *x, void *user)
{
    struct later *l = user;
    (void)x;

    l->x = NULL;
    l->r = NULL; /* the routes may be freed before the callback */
}

static struct later *later_new(struct ask *a, size_t board)
{
    struct later *l = calloc(1, sizeof *l);

    if (!l) {
        http_fail(a->x, 503, "no memory");
        return NULL;
    }
    *l = (struct later){a->r, a->x, board, a->who->admin};
    http_on_gone(a->x, on_gone, l);
    return l;
}

/* The node refused the request: no callback follows. */
static void later_cancel(struct later *l, int r, const uw_error *err)
{
    struct http_exchange *x = l->x;

    http_on_gone(x, NULL, NULL);
    free(l);
    node_failed(x, r, err);
}

static void reply_state(struct routes *r, struct http_exchange *x, size_t board)
{
    const struct node_view *v = node_look(r->opts.node);
    struct json_out *o = json_out_new();

    if (board >= v->n_boards) {
        json_out_free(o);
        http_fail(x, 404, "board %zu is no longer open", board);
        return;
    }
    json_out_object(o, NULL);
    json_out_int(o, "gpu", v->board[board].info->index);
    json_out_text(o, "uuid", v->board[board].info->uuid);
    json_out_text(o, "state", names_word(NAMES_CAP_STATE, v->board[board].cap.state));
    json_out_end(o);
    http_reply_json(x, o);
}

static void on_released(int r, const char *text, void *user)
{
    struct later *l = user;
    struct http_exchange *x = l->x;
    struct routes *routes = l->r;
    size_t board = l->board;
    uw_error err = {""};

    free(l);
    if (!x)
        return;
    http_on_gone(x, NULL, NULL);
    if (r < 0) {
        http_fail_r(x, fail(&err, r, "%s", text), &err);
        return;
    }
    reply_state(routes, x, board);
}

void route_release(struct ask *a)
{
    uint64_t for_ns = 0;
    size_t board = 0;
    uw_error err = {""};

    if (!ask_board(a, &board))
        return;
    int r = a->body ? body_release(a->body, &for_ns, &err) : 0;
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    struct later *l = later_new(a, board);
    if (!l)
        return;
    r = node_release(ask_node(a), a->who, a->part, for_ns, on_released, l, &err);
    if (r < 0)
        later_cancel(l, r, &err);
}

void route_take_back(struct ask *a)
{
    size_t board = 0;
    uw_error err = {""};

    if (!ask_board(a, &board))
        return;
    int r = node_take_back(ask_node(a), a->who, a->part, &err);
    if (r < 0)
        node_failed(a->x, r, &err);
    else
        reply_state(a->r, a->x, board);
}

static void on_report(int r, const struct json_out *report, const char *text, void *user)
{
    struct later *l = user;
    struct http_exchange *x = l->x;
    auto_(mem_free) char *body = NULL;
    uw_error err = {""};

    free(l);
    if (!x)
        return;
    http_on_gone(x, NULL, NULL);
    if (r == 0)
        r = json_out_rows(report, &body, &err);
    else
        (void)fail(&err, r, "%s", text);
    if (body)
        http_reply(x, 200, "application/json", body, strlen(body), NULL);
    else
        http_fail_r(x, r, &err);
}

void route_report(struct ask *a)
{
    struct routes_report ask = {.by = http_query(a->x, "by"),
                                .user = http_query(a->x, "user"),
                                .job = http_query(a->x, "job"),
                                .label = http_query(a->x, "label"),
                                .zone = http_query(a->x, "zone"),
                                .from = http_query(a->x, "from"),
                                .to = http_query(a->x, "to"),
                                .gco2e_kwh = http_query(a->x, "gco2e_kwh"),
                                .price_kwh = http_query(a->x, "price_kwh"),
                                .waste = http_query(a->x, "waste"),
                                .one_user = !show_all(a->who),
                                .exact = a->who->admin,
                                .uid = a->who->uid};
    uw_error err = {""};

    struct later *l = later_new(a, 0);
    if (!l)
        return;
    int r = a->r->opts.report(a->r->opts.api, &ask, on_report, l, &err);
    if (r < 0)
        later_cancel(l, r, &err);
}

/* ---- windows ---- */

/* CLOCK_BOOTTIME is this machine's, so a remote client cannot name one. */
static int check_time(const struct ask *a, bool named, uw_error *err)
{
    if (!named || a->local)
        return 0;
    return fail(err, -EINVAL, "'at_ns' is accepted over the unix socket only");
}

/* Applies the client's changes to other windows.  A window that does not exist any more
 * is reported when its energy is queried.
 */
static int obey(struct ask *a, const struct body_windows *b, uw_error *err)
{
    int r = check_time(a, b->n_stopped > 0, err);

    for (size_t i = 0; i < b->n_stopped && r >= 0; i++) {
        r = node_window_stop(ask_node(a), a->who, b->stopped[i].id, b->stopped[i].at_ns,
                             err);
        r = r == -ENOENT || r == -ERANGE || r == -EINVAL ? 0 : r;
    }
    for (size_t i = 0; i < b->n_done && r >= 0; i++) {
        r = node_window_drop(ask_node(a), a->who, b->done[i], err);
        r = r == -ENOENT || r == -EALREADY ? 0 : r;
    }
    return r;
}

/* Applies the changes in the body, if any; false: x has been answered with an error. */
static bool told(struct ask *a)
{
    struct body_windows b;
    uw_error err = {""};
    int r = a->body ? body_windows(a->body, &b, &err) : 0;

    if (r == 0 && a->body)
        r = obey(a, &b, &err);
    if (r < 0)
        http_fail_r(a->x, r, &err);
    return r == 0;
}

void route_window_begin(struct ask *a)
{
    uint64_t id = 0;
    uw_error err = {""};

    if (!told(a))
        return;
    int r = node_window_begin(ask_node(a), a->who, &id, &err);
    if (r < 0)
        http_fail_r(a->x, r, &err);
    else
        ask_made(a, "/v1/windows", id, "");
}

void route_window_batch(struct ask *a)
{
    if (told(a))
        reply_empty(a, 0, NULL);
}

static void reply_window(struct routes *routes, struct http_exchange *x, bool admin,
                         const struct client_window_result *result)
{
    struct processors_energy cpu[LEDGER_DOMAINS];
    struct json_out *o = json_out_new();
    size_t n = node_window_processors(routes->opts.node, admin, result, cpu);

    show_window(o, node_look(routes->opts.node), result, cpu, n);
    http_reply_json(x, o);
}

static void reply_not_yet(struct http_exchange *x)
{
    static const char text[] = "{\"ready\": false}\n";

    http_reply(x, 202, "application/json", text, sizeof text - 1, NULL);
}

static void on_window(int r, const struct client_window_result *result, const char *text,
                      void *user)
{
    struct later *l = user;
    struct http_exchange *x = l->x;
    struct routes *routes = l->r;
    bool admin = l->admin;
    uw_error err = {""};

    free(l);
    if (!x)
        return;
    http_on_gone(x, NULL, NULL);
    if (r < 0)
        http_fail_r(x, fail(&err, r, "%s", text), &err);
    else if (r == CLIENT_WINDOWS_NOT_YET)
        reply_not_yet(x);
    else
        reply_window(routes, x, admin, result);
}

/* Answers when the energy is known. */
static void end_later(struct ask *a, uint64_t id, const struct body_window_end *b)
{
    struct loop *loop = a->r->opts.loop;
    uw_error err = {""};
    struct later *l = later_new(a, 0);

    if (!l)
        return;
    struct client_window_ask ask = {.keep = b->keep, .fn = on_window, .user = l};
    if (b->has_wait)
        ask.until_ns = loop_now_ns(loop) +
                       (uint64_t)(b->wait_s * loop_speed(loop) * (double)NS_PER_S);
    int r = node_window_end(ask_node(a), a->who, id, &ask, &err);
    if (r < 0)
        later_cancel(l, r, &err);
}

/* Answers at once. */
static void look(struct ask *a, uint64_t id, bool keep)
{
    struct client_window_result result;
    uw_error err = {""};
    int r = node_window_look(ask_node(a), a->who, id, &result, &err);

    if (r == 1) {
        reply_window(a->r, a->x, a->who->admin, &result);
        if (!keep)
            (void)node_window_drop(ask_node(a), a->who, id, NULL);
    } else if (r == 0) {
        reply_not_yet(a->x);
    } else {
        http_fail_r(a->x, r, &err);
    }
}

void route_window_end(struct ask *a)
{
    struct body_window_end b = {.keep = false};
    uint64_t id = 0;
    uw_error err = {""};

    if (!ask_id(a, "window", &id))
        return;
    int r = a->body ? body_window_end(a->body, &b, &err) : 0;
    if (r == 0)
        r = check_time(a, b.at_ns > 0, &err);
    if (r == 0 && (b.at_ns || b.has_wait))
        r = node_window_stop(ask_node(a), a->who, id, b.at_ns, &err);
    if (r < 0)
        http_fail_r(a->x, r, &err);
    else if (b.has_wait && b.wait_s <= 0)
        look(a, id, b.keep);
    else
        end_later(a, id, &b);
}

void route_window_drop(struct ask *a)
{
    uint64_t id = 0;
    uw_error err = {""};

    if (ask_id(a, "window", &id))
        reply_empty(a, node_window_drop(ask_node(a), a->who, id, &err), &err);
}

/* ---- signals from outside ---- */

void route_signal_set(struct ask *a)
{
    struct node_signal ask;
    uw_error err = {""};
    int r = body_signal(a->body, &ask, &err);

    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    r = node_signal_set(ask_node(a), a->who, a->part, &ask, &err);
    reply_empty(a, r, &err);
}

void route_signal_unset(struct ask *a)
{
    uw_error err = {""};

    reply_empty(a, node_signal_unset(ask_node(a), a->who, a->part, &err), &err);
}

void route_policy_try(struct ask *a)
{
    auto_(policy_trial_free) struct policy_trial *trial = NULL;
    const char *text = NULL;
    uint64_t from = 0;
    uw_error err = {""};
    int r = body_policy(a->body, &text, &err);

    if (r == 0 && !ask_from(a, &from))
        return;
    if (r == 0)
        r = node_policy_would(ask_node(a), a->who, text, &trial, &err);
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    struct json_out *o = json_out_new();
    show_policy_trial(o, node_look(ask_node(a)), a->who, trial, from);
    http_reply_json(a->x, o);
}

void route_reload(struct ask *a)
{
    static const char done[] = "{\"reloaded\": true}\n";
    uw_error err = {""};

    if (!a->who->admin) {
        http_fail(a->x, 403, "%s may not reload the configuration: administrators only",
                  a->who->name);
        return;
    }
    int r = a->r->opts.reload(a->r->opts.api, &err);
    if (r < 0) {
        http_told(a->x); /* logged as config-refused */
        http_fail_r(a->x, r, &err);
        return;
    }
    http_reply(a->x, 200, "application/json", done, sizeof done - 1, NULL);
}
