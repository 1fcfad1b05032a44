/* zeusd's HTTP API (0.5.0) over the node, so that Zeus works with us in zeusd's place:
 * same paths, answers and status codes, minus the power to touch other people's boards.
 * For a unix socket of its own; see underwattd-api(5) for what differs.
 *
 * A limit that is set is a named claim of the caller's: it ends with the process that
 * connected, or where the caller sets another one on that board.  Clocks and
 * persistence are not ours to change: 403, but for persistence that is as asked for.
 */
#ifndef API_ZEUSD_ZEUSD_H
#define API_ZEUSD_ZEUSD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "io/http.h"
#include "io/loop.h"
#include "node/node.h"
#include "underwatt/error.h"

struct zeusd;

/* The node as these routes see it: node.h's functions, or a test's. */
struct zeusd_node {
    const struct node_view *(*look)(void *node);
    int (*claim)(void *node, const struct node_who *who, const struct node_claim *ask,
                 uint64_t *ret_id, uw_error *err);
    int (*withdraw)(void *node, const struct node_who *who, uint64_t id, uw_error *err);
    void *node;
};

int zeusd_new(struct loop *loop, const struct zeusd_node *node, struct zeusd **ret,
              uw_error *err);
/* Ends its streams; whoever waits for a limit is answered. */
void zeusd_free(struct zeusd *z);
DEFINE_AUTO(struct zeusd *, zeusd_free);

/* Answers x, on behalf of who (copied where it is needed later). */
void zeusd_handle(struct zeusd *z, struct http_exchange *x, const struct node_who *who);
/* The node has new samples, or a cap changed: streams and those who wait. */
void zeusd_tell(struct zeusd *z, enum node_event event);

#endif
