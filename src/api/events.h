/* Live values: server-sent events for `underwatt top` and whoever else follows.
 *
 * Events: "samples" (boards and jobs; at most one a second, rendered once for all
 * followers), "cap", "claim", "job".  A follower names the kinds that it wants.  They
 * hold nothing that only some may see: names and labels of jobs are GET /v1/jobs'.
 */
#ifndef API_EVENTS_H
#define API_EVENTS_H

#include "base/auto.h"
#include "base/names.h"
#include "io/http.h"
#include "io/loop.h"
#include "node/node.h"
#include "underwatt/error.h"

struct events;

enum events_kind { STREAM_KINDS(NAME_FLAG) EVENTS_ALL = (1u << 4) - 1 };
/* "samples,cap": -EINVAL names the word and what there is.  NULL: all. */
int events_kinds_parse(const char *text, uint32_t *ret, uw_error *err);

struct events_opts {
    struct loop *loop;
    const struct node_view *(*look)(void *node);
    void *node;
};
int events_new(const struct events_opts *opts, struct events **ret, uw_error *err);
/* Streams that are still there are the server's: it is freed before. */
void events_free(struct events *e);
DEFINE_AUTO(struct events *, events_free);

/* A follower from now on: x becomes a stream; the first "samples" comes at once.  On
 * failure x is still to be replied to.
 */
int events_follow(struct events *e, struct http_exchange *x, uint32_t kinds,
                  uw_error *err);
/* What the node tells its listener: goes to whoever follows. */
void events_tell(struct events *e, enum node_event event, const void *what);

#endif
