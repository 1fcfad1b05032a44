/* All ways in and out of underwattd: opened once the node is ready, closed before it
 * ends.
 */
#ifndef NODE_DOORS_H
#define NODE_DOORS_H

#include "base/auto.h"
#include "io/loop.h"
#include "node/config.h"
#include "node/node.h"
#include "underwatt/error.h"

struct doors;

/* reload: what a request to read the configuration anew does. */
typedef int (*doors_reload_fn)(void *user, uw_error *err);

/* On failure none is open. */
int doors_open(struct loop *loop, struct node *node, const struct node_config *config,
               doors_reload_fn reload, void *user, struct doors **ret, uw_error *err);
void doors_close(struct doors *d);
DEFINE_AUTO(struct doors *, doors_close);

/* A new configuration, in force already in the node. */
int doors_configure(struct doors *d, const struct node_config *config, uw_error *err);

#endif
