/* Serves the node over HTTP: opens the sockets that the configuration names, gives each
 * its handler, and passes the node's events to followers and to dcgm-exporter's files.
 *
 * Owns: the HTTP servers and the event followers.  Touches: the sockets, and the node
 * through node.h alone.  Thread: the loop's.  Explained in docs/openapi.yaml,
 * docs/metrics.md.
 */
#ifndef API_API_H
#define API_API_H

#include "base/auto.h"
#include "config/config.h"
#include "io/http.h"
#include "io/loop.h"
#include "node/node.h"
#include "underwatt/error.h"

struct api;

/* Opens the sockets and registers as the node's only listener.  On failure no socket is
 * open.  Real loops only.
 */
int api_new(struct loop *loop, struct node *node, const struct node_config *config,
            struct api **ret, uw_error *err);
/* The API of a command's own node, for one user: api_handle() takes this process's own
 * requests, as an administrator's; where config names a unix socket, the same uid and
 * root may read there (mode 0600), or (open) do everything, too.
 */
int api_new_private(struct loop *loop, struct node *node,
                    const struct node_config *config, bool open, struct api **ret,
                    uw_error *err);
/* An http_handler_fn with the API as its user. */
void api_handle(struct http_exchange *x, void *api);
/* Closes the sockets; the node must still exist. */
void api_free(struct api *api);
DEFINE_AUTO(struct api *, api_free);

/* Applies the parts of a new configuration that need no restart: tokens, certificates,
 * limits, metrics.  After a failure tokens, limits and metrics are the old ones.
 */
int api_configure(struct api *api, const struct node_config *config, uw_error *err);

/* Runs for POST /v1/reload: reads the configuration again and applies it to node and api;
 * its error is the client's answer.
 */
typedef int (*api_reload_fn)(void *user, uw_error *err);
void api_on_reload(struct api *api, api_reload_fn fn, void *user);

#endif
