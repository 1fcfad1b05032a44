/* zeusd's HTTP API (0.5.0) on top of the node, so that Zeus works without zeusd: same
 * paths, answers and status codes, but no power over other users' boards.  Served on a
 * unix socket of its own; underwattd-api(5) lists the differences.
 *
 * A limit is set as a named claim of the caller: the claim ends with the process that
 * connected, or when the caller sets another limit on that board.  Setting clocks or
 * persistence is refused with 403, unless persistence already has the requested value.
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

int zeusd_new(struct loop *loop, struct node *node, struct zeusd **ret, uw_error *err);
/* Ends its streams and answers the requests that wait for a limit. */
void zeusd_free(struct zeusd *z);
DEFINE_AUTO(struct zeusd *, zeusd_free);

/* Answers x on behalf of who, which is not kept. */
void zeusd_handle(struct zeusd *z, struct http_exchange *x, const struct node_who *who);
/* The node has new samples or a changed cap: updates streams and waiting requests. */
void zeusd_tell(struct zeusd *z, enum node_event event);

#endif
