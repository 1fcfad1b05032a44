/* The HTTP/JSON interface as docs/openapi.yaml describes it: paths and methods to what
 * the node is asked.  Handlers take the node's functions through a table, so that a
 * test can put a made-up view behind them.
 */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "api/rights/auth.h"
#include "base/auto.h"
#include "io/http.h"
#include "io/ledger-queue.h"
#include "io/loop.h"
#include "node/node.h"
#include "underwatt/error.h"

struct routes;

/* What of the ledger: the words of the query, NULL where they are left out. */
struct routes_report {
    const char *by, *zone, *from, *to, *gco2e_kwh, *price_kwh;
    bool one_user; /* uid's jobs alone */
    uid_t uid;
    bool exact; /* processors' energy finer than everybody may see it */
};

/* The node as routes see it: node.h's functions, or a test's.  All but the optional
 * ones are mandatory.
 */
struct routes_node {
    const struct node_view *(*look)(void *node);
    int (*board)(void *node, const char *name, size_t *ret, uw_error *err);
    int (*claim)(void *node, const struct node_who *who, const struct node_claim *ask,
                 uint64_t *ret_id, uw_error *err);
    int (*withdraw)(void *node, const struct node_who *who, uint64_t id, uw_error *err);
    int (*job_begin)(void *node, const struct node_who *who, const struct node_job *ask,
                     uint64_t *ret_id, uw_error *err);
    int (*job_end)(void *node, const struct node_who *who, uint64_t id, uw_error *err);
    int (*release)(void *node, const struct node_who *who, const char *board,
                   uint64_t hold_off_ns, caps_done_fn fn, void *user, uw_error *err);
    int (*take_back)(void *node, const struct node_who *who, const char *board,
                     uw_error *err);
    int (*window_begin)(void *node, const struct node_who *who, uint64_t *ret_id,
                        uw_error *err);
    int (*window_end)(void *node, const struct node_who *who, uint64_t id,
                      client_window_fn fn, void *user, uw_error *err);
    int (*window_drop)(void *node, const struct node_who *who, uint64_t id,
                       uw_error *err);
    /* Optional. */
    int (*report)(void *node, const struct routes_report *ask, ledger_report_fn fn,
                  void *user, uw_error *err);
    int (*reload)(void *node, uw_error *err); /* by whoever runs the node */
    void *node;
};

struct routes_opts {
    struct loop *loop;
    struct routes_node node;
    /* Who asks: auth_ask(), or a test's. */
    void (*ask)(void *auth, struct http_exchange *x, auth_fn fn, void *user);
    void *auth;
    bool metrics, per_job; /* GET /metrics is there, has series of jobs … */
    unsigned max_jobs;     /* … of so many at once */
};
int routes_new(const struct routes_opts *opts, struct routes **ret, uw_error *err);
/* Exchanges that wait are the server's: it is freed before. */
void routes_free(struct routes *r);
DEFINE_AUTO(struct routes *, routes_free);
/* The server that they are behind, for its figures in the metrics. */
void routes_behind(struct routes *r, const struct http_server *server);
/* Of opts: metrics, per_job, max_jobs. */
void routes_configure(struct routes *r, const struct routes_opts *opts);

/* An http_handler_fn with the routes as its user. */
void routes_handle(struct http_exchange *x, void *routes);
/* What the node tells its listener: goes to the followers of /v1/events. */
void routes_tell(struct routes *r, enum node_event event, const void *what);

/* The table: method and path ("/v1/gpus/{gpu}") of each; NULL when i is out of range. */
const char *routes_at(size_t i, enum http_method *ret_method);

#endif
