/* One server for the node's routes; each client is authenticated first. */
#include "api/api.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/mapping.h"
#include "api/rights/auth.h"
#include "api/routes.h"
#include "api/zeusd/zeusd.h"
#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "io/http.h"
#include "io/ledger-report.h"

enum { LISTENER_UNIX = 1, LISTENER_TCP, LISTENER_ZEUSD, LISTENER_METRICS };
enum { RAPL_LATE_S = 15 }; /* a processor's row reaches the ledger within this time */

struct api {
    struct loop *loop;
    struct node *node;
    struct auth *auth; /* NULL: of a private node */
    bool open;         /* … whose user may do everything, also over the socket */
    char own_name[80]; /* name of its user */
    struct routes *routes;
    struct zeusd *zeusd; /* NULL: not served */
    struct http_server *server;
    struct mapping *mapping;
    struct loop_timer *map_soon;
    bool tcp, map_fails;
    api_reload_fn reload;
    void *reload_user;
};

/* ---- queries of the routes ---- */

static int read_query(const struct routes_report *ask, int64_t now_ns,
                      struct ledger_query *q, uw_error *err)
{
    const struct {
        const char *key, *value;
    } words[] = {{"zone", ask->zone}, /* first: the zone applies to the others */
                 {"by", ask->by},
                 {"user", ask->user},
                 {"job", ask->job},
                 {"label", ask->label},
                 {"from", ask->from},
                 {"to", ask->to},
                 {"gco2e_kwh", ask->gco2e_kwh},
                 {"price_kwh", ask->price_kwh},
                 {"waste", ask->waste}};
    int r = 0;

    ledger_query_init(q, now_ns);
    for (size_t i = 0; i < n_elements(words) && r == 0; i++)
        if (words[i].value)
            r = ledger_query_set(q, words[i].key, words[i].value, now_ns, err);
    q->one_user = ask->one_user;
    q->uid = ask->uid;
    return r < 0 ? r : ledger_query_check(q, err);
}

static int report(void *user, const struct routes_report *ask, ledger_report_fn fn,
                  void *fn_user, uw_error *err)
{
    const struct api *api = user;
    struct ledger_query q;
    int64_t now_ns = loop_utc_ns(api->loop);
    int r = read_query(ask, now_ns, &q, err);

    /* Without the right to exact values, the report leaves out the latest seconds: their
     * rows may not be in the ledger yet.
     */
    if (r >= 0 && !ask->exact)
        q.domains =
            (struct ledger_coarse){VIEW_RAPL_STEP_J, node_look(api->node)->rapl_ns,
                                   now_ns - RAPL_LATE_S * (int64_t)NS_PER_S};

    return r < 0 ? r : node_report(api->node, &q, fn, fn_user, err);
}

static int reload(void *user, uw_error *err)
{
    const struct api *api = user;

    if (!api->reload)
        return fail(err, -ENOTSUP, "this node cannot reload its configuration");
    return api->reload(api->reload_user, err);
}

/* A private node: its process may do everything; its user may read, or do everything,
 * too.
 */
static void own_who(const struct api *api, struct http_exchange *x, auth_fn fn,
                    void *fn_user)
{
    const struct http_peer *peer = http_peer(x);
    bool own = peer->listener == 0 || api->open;
    struct auth_who who = {.local = true};

    if (peer->uid != geteuid() && peer->uid != 0) {
        http_fail(x, 403, "this node belongs to another user");
        return;
    }
    (void)snprintf(who.name, sizeof who.name, "%s", api->own_name);
    who.node = (struct node_who){
        .uid = peer->uid, .admin = own, .may_claim = own, .name = who.name};
    fn(x, &who, fn_user);
}

static void ask_who(void *user, struct http_exchange *x, auth_fn fn, void *fn_user)
{
    const struct api *api = user;

    if (http_peer(x)->listener == LISTENER_METRICS)
        auth_anybody(api->auth, x, fn, fn_user);
    else if (api->auth)
        auth_ask(api->auth, x, fn, fn_user);
    else
        own_who(api, x, fn, fn_user);
}

static struct routes_opts routes_opts(struct api *api, struct node *node,
                                      const struct node_config *config)
{
    return (struct routes_opts){.loop = api->loop,
                                .node = node,
                                .report = report,
                                .reload = reload,
                                .api = api,
                                .ask = ask_who,
                                .auth = api,
                                .metrics = config->metrics.on,
                                .per_job = config->metrics.per_job,
                                .max_jobs = (unsigned)config->metrics.max_jobs};
}

/* ---- dcgm-exporter's files ---- */

static int update_mapping(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct api *api = user;
    uw_error err = {""};
    (void)timer;

    int r = mapping_update(api->mapping, node_look(api->node), &err);
    if (r < 0 && !api->map_fails)
        log_event(LOG_LEVEL_WARNING, LOG_EVENT_HPC_MAPPING_FAILED, "reason=%s",
                  log_quote(err.text).text);
    api->map_fails = r < 0;
    if (r < 0) /* try again later */
        loop_timer_set(api->map_soon, now_ns + 30 * NS_PER_S, 0);
    return 0;
}

static int open_mapping(struct api *api, const char *dir, uw_error *err)
{
    int r = mapping_new(dir, &api->mapping, err);

    if (r < 0)
        return fail_in(err, r, "metrics.hpc_job_mapping_dir");
    return loop_timer_new(api->loop, loop_now_ns(api->loop), 0, update_mapping, api,
                          &api->map_soon, err);
}

/* ---- events of the node, messages of the server ---- */

static void on_node(enum node_event event, const void *what, void *user)
{
    struct api *api = user;

    routes_tell(api->routes, event, what);
    if (api->zeusd)
        zeusd_tell(api->zeusd, event);
    if (event == NODE_EVENT_JOB && api->mapping)
        loop_timer_set(api->map_soon, loop_now_ns(api->loop), 0);
}

static void on_log(const char *line, void *user)
{
    (void)user;
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_HTTP, "text=%s", log_quote(line).text);
}

/* ---- requests ---- */

static void on_zeusd(struct http_exchange *x, const struct auth_who *who, void *user)
{
    const struct api *api = user;
    zeusd_handle(api->zeusd, x, &who->node);
}

static void handle_scrape(struct http_exchange *x, const struct api *api)
{
    if (strcmp(http_path(x), "/metrics") != 0)
        http_fail(
            x, 404,
            "only /metrics is served here; the API is served at the daemon's socket");
    else
        routes_handle(x, api->routes);
}

void api_handle(struct http_exchange *x, void *user)
{
    struct api *api = user;

    switch (http_peer(x)->listener) {
    case LISTENER_ZEUSD:
        auth_ask(api->auth, x, on_zeusd, api);
        break;
    case LISTENER_METRICS:
        handle_scrape(x, api);
        break;
    default:
        routes_handle(x, api->routes);
    }
}

static size_t on_body(const struct http_exchange *x, void *user)
{
    const struct api *api = user;

    return http_peer(x)->listener == LISTENER_ZEUSD ? 0 : routes_body(x, api->routes);
}

/* ---- life ---- */

static struct http_limits limits_of(const struct config_limits *l)
{
    return (struct http_limits){.connections = (unsigned)l->connections,
                                .per_uid = (unsigned)l->per_client,
                                .per_address = (unsigned)l->per_client,
                                .streams = (unsigned)l->followers,
                                .idle_ns = l->idle_ns};
}

static struct auth_opts auth_opts(const struct api *api, const struct node_config *config)
{
    const char *tokens = config->api.tcp.tokens;

    return (struct auth_opts){.loop = api->loop,
                              .admin_group = config->node.admin_group,
                              .tokens = tokens[0] ? tokens : NULL,
                              .requests = (double)config->api.limits.requests};
}

static int open_server(struct api *api, const struct config_limits *l, uw_error *err)
{
    struct http_opts opts = {.loop = api->loop,
                             .handler = api_handle,
                             .body = on_body,
                             .log = on_log,
                             .user = api,
                             .limits = limits_of(l)};

    int r = http_server_new(&opts, &api->server, err);
    if (r == 0)
        routes_behind(api->routes, api->server);
    return r;
}

static int open_zeusd(struct api *api, struct node *node, const char *path, uw_error *err)
{
    struct http_unix at = {.path = path, .mode = 0666, .id = LISTENER_ZEUSD};
    int r = zeusd_new(api->loop, node, &api->zeusd, err);

    if (r == 0)
        r = http_listen_unix(api->server, &at, err);
    return r < 0 ? fail_in(err, r, "zeusd.socket") : 0;
}

static int open_listener(struct api *api, const struct config_api *c, uw_error *err)
{
    struct http_unix at = {
        .path = c->socket, .mode = api->auth ? 0666 : 0600, .id = LISTENER_UNIX};
    struct http_tls tls = {c->tcp.certificate, c->tcp.key};
    int r = c->socket[0] ? http_listen_unix(api->server, &at, err) : 0;

    api->tcp = c->tcp.listen[0] != '\0';
    if (r < 0 || !api->tcp)
        return r;
    r = http_listen_tls(api->server, c->tcp.listen, &tls, LISTENER_TCP, err);
    return r < 0 ? fail_in(err, r, "api.tcp") : 0;
}

/* Any user may have taken the port: without the metrics page the daemon starts all the
 * same.
 */
static void open_metrics(struct api *api, const char *address)
{
    uw_error err = {""};
    int r = http_listen_loopback(api->server, address, LISTENER_METRICS, &err);

    if (r < 0)
        (void)fail_in(&err, r, "metrics.listen is not served");
    if (r < 0)
        log_event(LOG_LEVEL_ERROR, LOG_EVENT_HTTP, "text=%s", log_quote(err.text).text);
}

int api_new(struct loop *loop, struct node *node, const struct node_config *config,
            struct api **ret, uw_error *err)
{
    auto_(api_free) struct api *api = calloc(1, sizeof *api);

    if (!api)
        return fail(err, -ENOMEM, "out of memory");
    api->loop = loop;
    struct auth_opts auth = auth_opts(api, config);
    struct routes_opts routes = routes_opts(api, node, config);
    int r = auth_new(&auth, &api->auth, err);
    if (r == 0)
        r = routes_new(&routes, &api->routes, err);
    if (r == 0)
        r = open_server(api, &config->api.limits, err);
    if (r == 0 && config->metrics.hpc_dir[0])
        r = open_mapping(api, config->metrics.hpc_dir, err);
    if (r == 0)
        r = open_listener(api, &config->api, err);
    if (r == 0 && config->metrics.listen[0])
        open_metrics(api, config->metrics.listen);
    if (r == 0 && config->zeusd_socket[0])
        r = open_zeusd(api, node, config->zeusd_socket, err);
    if (r < 0)
        return r;
    api->node = node;
    node_listen(node, on_node, api);
    *ret = take(api);
    return 0;
}

int api_new_private(struct loop *loop, struct node *node,
                    const struct node_config *config, bool open, struct api **ret,
                    uw_error *err)
{
    auto_(api_free) struct api *api = calloc(1, sizeof *api);
    const struct passwd *user = getpwuid(geteuid());

    if (!api)
        return fail(err, -ENOMEM, "out of memory");
    api->loop = loop;
    api->open = open;
    if (user)
        (void)snprintf(api->own_name, sizeof api->own_name, "user %.64s", user->pw_name);
    else
        (void)snprintf(api->own_name, sizeof api->own_name, "uid %u", geteuid());
    struct routes_opts routes = routes_opts(api, node, config);
    int r = routes_new(&routes, &api->routes, err);
    if (r == 0 && config->api.socket[0])
        r = open_server(api, &config->api.limits, err);
    if (r == 0 && config->api.socket[0])
        r = open_listener(api, &config->api, err);
    if (r < 0)
        return r;
    api->node = node;
    node_listen(node, on_node, api);
    *ret = take(api);
    return 0;
}

void api_free(struct api *api)
{
    if (!api)
        return;
    if (api->node)
        node_listen(api->node, NULL, NULL);
    http_server_free(api->server);
    loop_timer_free(api->map_soon);
    mapping_free(api->mapping);
    routes_free(api->routes);
    zeusd_free(api->zeusd);
    auth_free(api->auth);
    free(api);
}

int api_configure(struct api *api, const struct node_config *config, uw_error *err)
{
    struct routes_opts routes = routes_opts(api, api->node, config);
    int r = api->tcp ? http_load_tls(api->server, err) : 0;

    struct auth_opts auth = auth_opts(api, config);
    struct http_limits limits = limits_of(&config->api.limits);

    if (r == 0)
        r = auth_configure(api->auth, &auth, err);
    if (r < 0)
        return r; /* a later call drops the loaded certificate */
    http_use_tls(api->server);
    http_server_limits(api->server, &limits);
    routes_configure(api->routes, &routes);
    return 0;
}

void api_on_reload(struct api *api, api_reload_fn fn, void *user)
{
    api->reload = fn;
    api->reload_user = user;
}
