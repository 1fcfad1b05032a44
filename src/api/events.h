/* Live values: server-sent events for `underwatt top` and other followers.
 *
 * Events: "samples" (boards and jobs; at most one a second, rendered once for all
 * followers), "cap", "claim", "job".  A follower names the kinds that it wants.  Events
 * hold nothing private: names and labels of jobs are in GET /v1/jobs alone.
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

#define EVENTS_OR(id, number, word, text) | id
enum events_kind { STREAM_KINDS(NAME_FLAG) EVENTS_ALL = 0 STREAM_KINDS(EVENTS_OR) };
#undef EVENTS_OR
/* Parses "samples,cap"; NULL means all.  -EINVAL names the word and the valid ones. */
int events_kinds_parse(const char *text, uint32_t *ret, uw_error *err);

struct events_opts {
    struct loop *loop;
    struct node *node;
};
int events_new(const struct events_opts *opts, struct events **ret, uw_error *err);
/* Open streams belong to the server, which must be freed first. */
void events_free(struct events *e);
DEFINE_AUTO(struct events *, events_free);

/* Makes x a stream of these kinds and sends the first "samples" at once.  On failure the
 * caller must still reply to x.
 */
int events_follow(struct events *e, struct http_exchange *x, uint32_t kinds,
                  uw_error *err);
/* Forwards an event of the node to the followers. */
void events_tell(struct events *e, enum node_event event, const void *what);

#endif
