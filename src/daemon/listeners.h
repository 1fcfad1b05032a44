/* The interfaces of underwattd to its clients: opened once the node is ready, closed
 * before the node ends.
 *
 * Owns: the API, zeusd's API, the socket for jobs' pages.  Touches: their sockets.
 * Thread: the loop's.  Explained in underwattd(8).
 */
#ifndef DAEMON_LISTENERS_H
#define DAEMON_LISTENERS_H

#include "base/auto.h"
#include "config/config.h"
#include "io/loop.h"
#include "node/node.h"
#include "underwatt/error.h"

struct listeners;

/* Rereads the configuration on a client's request. */
typedef int (*listeners_reload_fn)(void *user, uw_error *err);

/* On failure nothing is open. */
int listeners_open(struct loop *loop, struct node *node, const struct node_config *config,
                   listeners_reload_fn reload, void *user, struct listeners **ret,
                   uw_error *err);
void listeners_close(struct listeners *d);
DEFINE_AUTO(struct listeners *, listeners_close);

/* Applies a new configuration that the node has already applied. */
int listeners_configure(struct listeners *d, const struct node_config *config,
                        uw_error *err);

#endif
