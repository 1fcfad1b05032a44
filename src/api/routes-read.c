/* Handlers of requests that only read. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/openapi.h"
#include "api/routes-inside.h"
#include "api/show.h"
#include "base/error.h"
#include "base/units.h"

static struct metrics_http figures(const struct routes *r)
{
    struct http_stats s = http_stats(r->server);

    return (struct metrics_http){.requests = s.requests,
                                 .refused = s.refused + s.refused_connections + s.cut,
                                 .connections = s.connections,
                                 .followers = s.streams};
}

void route_metrics(struct ask *a)
{
    const struct routes_opts *opts = &a->r->opts;
    struct metrics_opts m = {.per_job = opts->per_job,
                             .max_jobs = opts->max_jobs,
                             .all = show_all(a->who),
                             .uid = a->who->uid,
                             .only_job = a->who->only_job};
    struct metrics_http http;
    const char *text = NULL;
    size_t len = 0;
    uw_error err = {""};

    if (a->r->server) {
        http = figures(a->r);
        m.http = &http;
    }
    if (!opts->metrics) {
        http_fail(a->x, 404, "metrics are switched off (metrics.enabled)");
        return;
    }
    int r = metrics_render(a->r->metrics, node_look(ask_node(a)), &m, &text, &len, &err);
    if (r == 0 && http_text_again(&a->r->scrape, text, len) < 0)
        r = fail(&err, -ENOMEM, "out of memory");
    if (r < 0)
        http_fail_r(a->x, r, &err);
    else
        http_reply_text(a->x, 200, METRICS_TYPE, a->r->scrape, NULL);
}

void route_openapi(struct ask *a)
{
    http_reply(a->x, 200, "application/yaml", openapi_yaml, openapi_yaml_len, NULL);
}

void route_node(struct ask *a)
{
    struct json_out *o = json_out_new();

    show_node(o, node_look(ask_node(a)), a->who);
    http_reply_json(a->x, o);
}

void route_gpus(struct ask *a)
{
    struct json_out *o = json_out_new();
    const struct node_view *v = node_look(ask_node(a));

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", v->simulated);
    json_out_array(o, "gpus");
    for (size_t i = 0; i < v->n_boards; i++)
        show_gpu(o, v, i);
    json_out_end(o);
    json_out_end(o);
    http_reply_json(a->x, o);
}

void route_gpu(struct ask *a)
{
    size_t i = 0;

    if (!ask_board(a, &i))
        return;
    struct json_out *o = json_out_new();
    show_gpu(o, node_look(ask_node(a)), i);
    http_reply_json(a->x, o);
}

void route_explain(struct ask *a)
{
    size_t i = 0;

    if (!ask_board(a, &i))
        return;
    struct json_out *o = json_out_new();
    show_explain(o, node_look(ask_node(a)), i);
    http_reply_json(a->x, o);
}

/* The filter of GET /v1/claims. */
struct narrow {
    bool board;
    size_t at;
    uint64_t job; /* 0: all */
};

static int narrow(struct ask *a, struct narrow *ret, uw_error *err)
{
    const char *gpu = http_query(a->x, "gpu"), *job = http_query(a->x, "job");
    int r = 0;

    if (gpu && !*gpu)
        return fail(err, -EINVAL, "gpu: '' is neither an index nor a UUID");
    if (gpu) {
        r = node_board(ask_node(a), gpu, &ret->at, err);
        ret->board = r == 0;
    }
    if (r == 0 && job) {
        r = parse_u64(job, &ret->job, err);
        if (r == 0 && ret->job == 0)
            r = fail(err, -EINVAL, "0 is not a job id: a number from 1");
        if (r < 0)
            r = fail_in(err, r, "job");
    }
    return r;
}

void route_claims(struct ask *a)
{
    struct narrow n = {0};
    uw_error err = {""};
    int r = narrow(a, &n, &err);

    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    struct json_out *o = json_out_new();
    const struct node_view *v = node_look(ask_node(a));
    json_out_object(o, NULL);
    json_out_array(o, "claims");
    for (size_t i = 0; i < v->n_boards; i++) {
        const struct claims *c = v->board[i].cap.claims;
        for (size_t k = 0; c && (!n.board || n.at == i) && k < c->n; k++)
            if (n.job == 0 || c->claim[k].job == n.job)
                show_claim(o, v, i, &c->claim[k]);
    }
    json_out_end(o);
    json_out_end(o);
    http_reply_json(a->x, o);
}

void route_jobs(struct ask *a)
{
    struct json_out *o = json_out_new();
    const struct node_view *v = node_look(ask_node(a));

    json_out_object(o, NULL);
    json_out_bool(o, "simulated", v->simulated);
    json_out_array(o, "jobs");
    for (size_t i = 0; i < v->n_jobs; i++)
        show_job(o, v, &v->job[i], a->who);
    json_out_end(o);
    json_out_end(o);
    http_reply_json(a->x, o);
}

/* The running job of that name, or else the one that ended last; NULL: none that the
 * client may see.
 */
static const struct view_job *named(const struct ask *a, const struct node_view *v)
{
    const struct view_job *found = NULL;

    for (size_t i = 0; i < v->n_jobs; i++) {
        const struct view_job *j = &v->job[i];
        if (strcmp(j->job->name, a->part) != 0 || j->job->source == JOB_RUN ||
            !show_mine(a->who, j->job))
            continue;
        bool newer = !found || (found->job->ended_ns && !j->job->ended_ns) ||
                     (found->job->ended_ns && j->job->ended_ns > found->job->ended_ns);
        found = newer ? j : found;
    }
    return found;
}

static void by_name(struct ask *a)
{
    const struct node_view *v = node_look(ask_node(a));

    if (!ask_name(a))
        return;
    const struct view_job *j = named(a, v);
    if (!j) {
        http_fail(a->x, 404, "job %s does not run here: see GET /v1/report", a->part);
        return;
    }
    struct json_out *o = json_out_new();
    show_whole_job(o, v, j, a->who);
    http_reply_json(a->x, o);
}

void route_job(struct ask *a)
{
    const struct node_view *v;
    uint64_t id = 0;

    if (ask_is_name(a)) {
        by_name(a);
        return;
    }
    if (!ask_id(a, "job", &id))
        return;
    v = node_look(ask_node(a));
    for (size_t i = 0; i < v->n_jobs; i++)
        if (v->job[i].job->id == id) {
            struct json_out *o = json_out_new();
            show_whole_job(o, v, &v->job[i], a->who);
            http_reply_json(a->x, o);
            return;
        }
    http_fail(a->x, 404, "job %" PRIu64 " does not run here: see GET /v1/report", id);
}

/* ---- a board's power over a window ---- */

enum { SAMPLES = 1024, SAMPLES_MAX = 2048, HISTORY = 360 };

static int samples_of(struct ask *a, size_t *ret_board, size_t *ret_most, uw_error *err)
{
    const char *gpu = http_query(a->x, "gpu"), *text = http_query(a->x, "most");
    uint64_t most = SAMPLES;

    if (!gpu || !*gpu)
        return fail(err, -EINVAL, "'gpu' is missing: an index or a UUID");
    int r = node_board(ask_node(a), gpu, ret_board, err);
    if (r == 0 && text) {
        r = parse_u64(text, &most, err);
        if (r == 0 && (most < 1 || most > SAMPLES_MAX))
            r = fail(err, -EINVAL, "%" PRIu64 " is outside 1..%d", most, SAMPLES_MAX);
        if (r < 0)
            r = fail_in(err, r, "most");
    }
    *ret_most = (size_t)most;
    return r;
}

void route_window_samples(struct ask *a)
{
    struct meter_power power[SAMPLES_MAX];
    struct client_window_powers powers = {.buf = power};
    uint64_t id = 0;
    uw_error err = {""};

    if (!ask_id(a, "window", &id))
        return;
    int r = samples_of(a, &powers.board, &powers.room, &err);
    if (r == 0)
        r = node_window_powers(ask_node(a), a->who, id, &powers, &err);
    if (r < 0 && r != -ENODATA) {
        http_fail_r(a->x, r, &err);
        return;
    }
    struct json_out *o = json_out_new();
    show_samples(o, node_look(ask_node(a)), id, powers.board, power, powers.n, err.text);
    http_reply_json(a->x, o);
}

void route_history(struct ask *a)
{
    struct meter_power power[HISTORY];
    struct node_history h = {.buf = power, .room = HISTORY};
    uw_error err = {""};
    size_t i = 0;

    if (!ask_board(a, &i))
        return;
    int r = node_history(ask_node(a), i, &h, &err);
    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    struct json_out *o = json_out_new();
    show_history(o, node_look(ask_node(a)), i, &h);
    http_reply_json(a->x, o);
}

void route_signals(struct ask *a)
{
    const struct signal_view *signal = NULL;
    size_t n = 0;
    uw_error err = {""};
    int r = node_signals(ask_node(a), &signal, &n, &err);

    if (r < 0) {
        http_fail_r(a->x, r, &err);
        return;
    }
    const char *name = http_query(a->x, "name");
    struct json_out *o = json_out_new();
    json_out_object(o, NULL);
    json_out_array(o, "signals");
    for (size_t i = 0; i < n; i++)
        if (!name || strcmp(name, signal[i].decl->name) == 0)
            show_signal(o, &signal[i], name != NULL);
    json_out_end(o);
    json_out_end(o);
    http_reply_json(a->x, o);
}

void route_policy(struct ask *a)
{
    uint64_t from = 0;

    if (!ask_from(a, &from))
        return;
    struct json_out *o = json_out_new();
    show_policy(o, node_look(ask_node(a)), a->who, from);
    http_reply_json(a->x, o);
}

void route_events(struct ask *a)
{
    uint32_t kinds = 0;
    uw_error err = {""};
    int r = events_kinds_parse(http_query(a->x, "what"), &kinds, &err);

    if (r == 0)
        r = events_follow(a->r->events, a->x, kinds, &err);
    if (r < 0)
        http_fail_r(a->x, r, &err);
}
