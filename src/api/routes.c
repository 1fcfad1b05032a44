/* Maps path and method to a handler; authenticates, and checks the form of requests. */
#include "api/routes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes-inside.h"
#include "base/error.h"
#include "base/units.h"
#include "policy/file.h"

enum body { BODY_NONE = 0, BODY_MAY, BODY_MUST, BODY_LARGE /* must, and may be large */ };

/* A body above BODY_SMALL is large, and only administrators may send it.  In JSON, each
 * line end and each quotation mark of a policy takes two bytes.
 */
enum { BODY_SMALL = 64 << 10, POLICY_BODY_MAX = 2 * POLICY_FILE_MAX + 4096 };

struct route {
    enum http_method method;
    const char *path;
    route_fn fn;
    enum body body;
    const char *query[12];
};

/* clang-format off */
static const struct route table[] = {
    {HTTP_GET, "/metrics", route_metrics, BODY_NONE, {NULL}},
    {HTTP_GET, "/openapi.yaml", route_openapi, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/node", route_node, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/gpus", route_gpus, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/gpus/{gpu}", route_gpu, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/gpus/{gpu}/explain", route_explain, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/gpus/{gpu}/history", route_history, BODY_NONE, {NULL}},
    {HTTP_POST, "/v1/gpus/{gpu}/release", route_release, BODY_MAY, {NULL}},
    {HTTP_POST, "/v1/gpus/{gpu}/take-back", route_take_back, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/claims", route_claims, BODY_NONE, {"gpu", "job", NULL}},
    {HTTP_POST, "/v1/claims", route_claim, BODY_MUST, {NULL}},
    {HTTP_DELETE, "/v1/claims/{id}", route_withdraw, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/jobs", route_jobs, BODY_NONE, {NULL}},
    {HTTP_POST, "/v1/jobs", route_job_begin, BODY_MUST, {NULL}},
    {HTTP_GET, "/v1/jobs/{id}", route_job, BODY_NONE, {NULL}},
    {HTTP_PUT, "/v1/jobs/{id}", route_job_put, BODY_MUST, {NULL}},
    {HTTP_PATCH, "/v1/jobs/{id}", route_job_patch, BODY_MUST, {NULL}},
    {HTTP_DELETE, "/v1/jobs/{id}", route_job_end, BODY_NONE, {"pid", NULL}},
    {HTTP_PUT, "/v1/jobs/{id}/goal", route_job_goal, BODY_MUST, {NULL}},
    {HTTP_POST, "/v1/windows", route_window_begin, BODY_MAY, {NULL}},
    {HTTP_POST, "/v1/windows/batch", route_window_batch, BODY_MUST, {NULL}},
    {HTTP_POST, "/v1/windows/{id}/end", route_window_end, BODY_MAY, {NULL}},
    {HTTP_GET, "/v1/windows/{id}/samples", route_window_samples, BODY_NONE, {"gpu", "most", NULL}},
    {HTTP_DELETE, "/v1/windows/{id}", route_window_drop, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/signals", route_signals, BODY_NONE, {"name", NULL}},
    {HTTP_PUT, "/v1/signals/{name}", route_signal_set, BODY_MUST, {NULL}},
    {HTTP_DELETE, "/v1/signals/{name}", route_signal_unset, BODY_NONE, {NULL}},
    {HTTP_GET, "/v1/report", route_report, BODY_NONE,
     {"by", "user", "job", "label", "zone", "from", "to", "gco2e_kwh", "price_kwh",
      "waste", NULL}},
    {HTTP_GET, "/v1/events", route_events, BODY_NONE, {"what", NULL}},
    {HTTP_GET, "/v1/policy", route_policy, BODY_NONE, {"from", NULL}},
    {HTTP_POST, "/v1/policy/check", route_policy_try, BODY_LARGE, {"from", NULL}},
    {HTTP_POST, "/v1/reload", route_reload, BODY_NONE, {NULL}},
};
/* clang-format on */
static const char health_path[] = "/healthz"; /* needs no authentication */

const char *routes_at(size_t i, enum http_method *ret_method)
{
    *ret_method = HTTP_GET;
    if (i == n_elements(table))
        return health_path;
    if (i > n_elements(table))
        return NULL;
    *ret_method = table[i].method;
    return table[i].path;
}

/* ---- paths ---- */

enum { PART_MAX = HTTP_PATH_MAX + 1 };

/* Whether path matches the pattern; the value of {…} is copied to part. */
static bool fits(const char *pattern, const char *path, char part[PART_MAX])
{
    part[0] = '\0';
    while (*pattern && *path) {
        if (*pattern != '{') {
            if (*pattern++ != *path++)
                return false;
            continue;
        }
        size_t n = strcspn(path, "/");
        if (n == 0 || n >= PART_MAX)
            return false;
        memcpy(part, path, n);
        part[n] = '\0';
        path += n;
        pattern = strchr(pattern, '}') + 1;
    }
    return !*pattern && !*path;
}

/* The route; NULL after a reply of 404, or of 405 with the allowed methods. */
static const struct route *find(struct http_exchange *x, char part[PART_MAX])
{
    const char *path = http_path(x);
    char allow[64] = "", body[160];
    struct http_field fields[] = {{"Allow", allow}, {NULL, NULL}};
    size_t n = 0;

    for (size_t i = 0; i < n_elements(table); i++) {
        if (!fits(table[i].path, path, part))
            continue;
        if (table[i].method == http_method(x))
            return &table[i];
        int k = snprintf(allow + n, sizeof allow - n, "%s%s", n ? ", " : "",
                         http_method_name(table[i].method));
        n += k > 0 ? (size_t)k : 0;
    }
    if (n == 0) {
        http_fail(x, 404, "no such path: '%.80s' (GET /openapi.yaml lists all)", path);
        return NULL;
    }
    int k = snprintf(body, sizeof body, "{\"error\": \"%s is not allowed, only %s\"}",
                     http_method_name(http_method(x)), allow);
    http_reply(x, 405, "application/json", body, k > 0 ? (size_t)k : 0, fields);
    return NULL;
}

static int check_query(const struct route *route, struct http_exchange *x, uw_error *err)
{
    return http_query_only(x, route->query, err);
}

/* ---- requests ---- */

static int read_body(const struct route *route, struct http_exchange *x,
                     struct json **ret, uw_error *err)
{
    size_t len = 0;

    (void)http_body(x, &len);
    if (route->body == BODY_NONE)
        return len == 0 ? 0 : fail(err, -EINVAL, "%s takes no body", route->path);
    if (route->body == BODY_MAY && len == 0)
        return 0;
    return http_body_json(x, ret, err);
}

static bool is_large(const struct http_exchange *x)
{
    size_t len = 0;

    (void)http_body(x, &len);
    return len > BODY_SMALL;
}

static void on_known(struct http_exchange *x, const struct auth_who *who, void *user)
{
    char part[PART_MAX];
    const struct route *route = find(x, part);
    auto_(json_free) struct json *body = NULL;
    uw_error err = {""};

    if (!route)
        return;
    int r = check_query(route, x, &err);
    if (r == 0 && is_large(x) && !who->node.admin)
        r = fail(&err, -EPERM, "%s may not send bodies above 64 KiB: administrators only",
                 who->node.name);
    if (r == 0)
        r = read_body(route, x, &body, &err);
    if (r < 0) {
        http_fail_r(x, r, &err);
        return;
    }
    struct ask a = {.r = user,
                    .x = x,
                    .who = &who->node,
                    .local = who->local,
                    .part = part,
                    .body = body ? json_root(body) : NULL};
    route->fn(&a);
}

size_t routes_body(const struct http_exchange *x, void *routes)
{
    (void)routes;

    for (size_t i = 0; http_peer(x)->local && i < n_elements(table); i++)
        if (table[i].body == BODY_LARGE && table[i].method == http_method(x) &&
            strcmp(table[i].path, http_path(x)) == 0)
            return POLICY_BODY_MAX;
    return 0;
}

void routes_handle(struct http_exchange *x, void *routes)
{
    static const char ok[] = "{\"status\": \"ok\"}\n";
    struct routes *r = routes;

    if (strcmp(http_path(x), health_path) != 0) {
        r->opts.ask(r->opts.auth, x, on_known, r);
        return;
    }
    if (http_method(x) == HTTP_GET)
        http_reply(x, 200, "application/json", ok, sizeof ok - 1, NULL);
    else
        http_fail(x, 405, "%s is not allowed, only GET",
                  http_method_name(http_method(x)));
}

/* ---- for all handlers ---- */

bool ask_board(struct ask *a, size_t *ret)
{
    uw_error err = {""};
    int r = node_board(ask_node(a), a->part, ret, &err);

    if (r < 0)
        http_fail_r(a->x, r, &err);
    return r == 0;
}

bool ask_id(struct ask *a, const char *what, uint64_t *ret)
{
    uw_error err = {""};

    if (parse_u64(a->part, ret, &err) == 0 && *ret > 0 && *ret <= INT64_MAX)
        return true;
    http_fail(a->x, 400, "'%.40s' is not a %s id: a number from 1", a->part, what);
    return false;
}

bool ask_is_name(const struct ask *a)
{
    return strncmp(a->part, ROSTER_SLURM, strlen(ROSTER_SLURM)) == 0;
}

/* A job name in Slurm's form, which is unique. */
bool ask_name(struct ask *a)
{
    const char *number = ask_is_name(a) ? a->part + strlen(ROSTER_SLURM) : "";
    uint64_t id = 0;

    if (*number >= '1' && *number <= '9' && parse_u64(number, &id, NULL) == 0 &&
        id <= UINT32_MAX)
        return true;
    http_fail(a->x, 400, "'%.40s' is not the name of a job: slurm:NUMBER", a->part);
    return false;
}

bool ask_from(struct ask *a, uint64_t *ret)
{
    const char *text = http_query(a->x, "from");
    uw_error err = {""};
    int r = text ? parse_u64(text, ret, &err) : 0;

    if (r < 0)
        http_fail_r(a->x, fail_in(&err, r, "from"), &err);
    return r == 0;
}

void ask_made(struct ask *a, const char *under, uint64_t id, const char *more)
{
    char path[64], body[96];
    struct http_field fields[] = {{"Location", path}, {NULL, NULL}};

    (void)snprintf(path, sizeof path, "%s/%" PRIu64, under, id);
    int n = snprintf(body, sizeof body, "{\"id\": %" PRIu64 "%s}\n", id, more);
    http_reply(a->x, 201, "application/json", body, n > 0 ? (size_t)n : 0, fields);
}

/* ---- life ---- */

int routes_new(const struct routes_opts *opts, struct routes **ret, uw_error *err)
{
    struct events_opts events = {opts->loop, opts->node};
    auto_(routes_free) struct routes *r = calloc(1, sizeof *r);

    if (!r)
        return fail(err, -ENOMEM, "routes: no memory");
    r->opts = *opts;
    int x = metrics_new(&r->metrics, err);
    if (x == 0)
        x = events_new(&events, &r->events, err);
    if (x < 0)
        return x;
    *ret = take(r);
    return 0;
}

void routes_free(struct routes *r)
{
    if (!r)
        return;
    events_free(r->events);
    metrics_free(r->metrics);
    http_text_unref(r->scrape);
    free(r);
}

void routes_configure(struct routes *r, const struct routes_opts *opts)
{
    r->opts.metrics = opts->metrics;
    r->opts.per_job = opts->per_job;
    r->opts.max_jobs = opts->max_jobs;
}

void routes_behind(struct routes *r, const struct http_server *server)
{
    r->server = server;
}

void routes_tell(struct routes *r, enum node_event event, const void *what)
{
    events_tell(r->events, event, what);
}
