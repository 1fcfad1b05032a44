/* The HTTP/JSON interface of docs/openapi.yaml: maps paths and methods to requests to the
 * node (node.h).
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

/* Query parameters of GET /v1/report; NULL where left out. */
struct routes_report {
    const char *by, *user, *job, *label, *zone, *from, *to, *gco2e_kwh, *price_kwh,
        *waste;
    bool one_user; /* only jobs of uid */
    uid_t uid;
    bool exact; /* processors' energy at full resolution, for administrators */
};

struct routes_opts {
    struct loop *loop;
    struct node *node;
    /* What the program around the node does. */
    int (*report)(void *api, const struct routes_report *ask, ledger_report_fn fn,
                  void *user, uw_error *err);
    int (*reload)(void *api, uw_error *err);
    void *api;
    /* Authenticates the client: auth_ask(), or a test's. */
    void (*ask)(void *auth, struct http_exchange *x, auth_fn fn, void *user);
    void *auth;
    bool metrics, per_job; /* serve GET /metrics; include series of jobs */
    unsigned max_jobs;     /* jobs with series of their own */
};
int routes_new(const struct routes_opts *opts, struct routes **ret, uw_error *err);
/* Pending exchanges belong to the server, which must be freed first. */
void routes_free(struct routes *r);
DEFINE_AUTO(struct routes *, routes_free);
/* Sets the server whose statistics the metrics report. */
void routes_behind(struct routes *r, const struct http_server *server);
/* Takes metrics, per_job and max_jobs from opts. */
void routes_configure(struct routes *r, const struct routes_opts *opts);

/* An http_handler_fn with the routes as its user. */
void routes_handle(struct http_exchange *x, void *routes);
/* An http_body_fn: on the unix socket, POST /v1/policy/check takes as much as a policy's
 * file may have; the route serves administrators alone.
 */
size_t routes_body(const struct http_exchange *x, void *routes);
/* Forwards an event of the node to the followers of /v1/events. */
void routes_tell(struct routes *r, enum node_event event, const void *what);

/* The table: method and path ("/v1/gpus/{gpu}") of each; NULL when i is out of range. */
const char *routes_at(size_t i, enum http_method *ret_method);

#endif
