/* Everything by which underwattd is reached: opened once the node is ready, closed before
 * the node ends.
 *
 * Owns: the API, zeusd's API, the sockets of jobs.  Touches: their sockets.
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

/* reload: what a request to read the configuration anew does. */
typedef int (*listeners_reload_fn)(void *user, uw_error *err);

/* On failure none is open. */
int listeners_open(struct loop *loop, struct node *node, const struct node_config *config,
                   listeners_reload_fn reload, void *user, struct listeners **ret,
                   uw_error *err);
void listeners_close(struct listeners *d);
DEFINE_AUTO(struct listeners *, listeners_close);

/* A new configuration, in force already in the node. */
int listeners_configure(struct listeners *d, const struct node_config *config,
                        uw_error *err);

#endif
