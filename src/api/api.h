/* Serves the node: opens the sockets that the configuration names, gives each its
 * handler, and tells followers and dcgm-exporter's files what happens.
 *
 * Owns: the HTTP servers and those who follow events.  Touches: the sockets, and the node
 * by node.h alone.  Thread: the loop's.  Explained in docs/openapi.yaml, docs/metrics.md.
 */
#ifndef API_API_H
#define API_API_H

#include "base/auto.h"
#include "config/config.h"
#include "io/loop.h"
#include "node/node.h"
#include "underwatt/error.h"

struct api;

/* Opens the sockets and becomes the node's one listener.  On failure none is open.  Real
 * loops only.
 */
int api_new(struct loop *loop, struct node *node, const struct node_config *config,
            struct api **ret, uw_error *err);
/* Closes them; the node is still there. */
void api_free(struct api *api);
DEFINE_AUTO(struct api *, api_free);

/* What is in force of a new configuration without a restart: tokens, certificates,
 * limits, metrics.  On failure the old ones stay.
 */
int api_configure(struct api *api, const struct node_config *config, uw_error *err);

/* What POST /v1/reload does: reads the configuration anew and hands it to node and api;
 * its failure is the client's answer.
 */
typedef int (*api_reload_fn)(void *user, uw_error *err);
void api_on_reload(struct api *api, api_reload_fn fn, void *user);

#endif
