/* Requests to a node, wherever the node runs: over HTTP to the daemon, or to the same
 * routes in this process.  The answer comes on the loop in both cases.
 *
 * Owns: the requests that are not answered yet; over HTTP also the client and the thread
 * that waits for the daemon.  Touches: the daemon's socket.  Thread: the loop's.
 * Explained in docs/architecture.md.
 */
#ifndef ASK_ASK_H
#define ASK_ASK_H

#include "base/auto.h"
#include "io/http.h"
#include "io/httpc.h"
#include "io/json.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct ask;

struct ask_answer {
    int r;            /* 0; no answer (httpc_call()), or a refusal (answer_refused()) */
    unsigned status;  /* 0: no answer */
    struct json *doc; /* NULL: no body; the callback may take it */
    uw_error error;   /* of r < 0: the node's own text where it has one */
};
/* Called once for each request, on the loop, never from inside ask_request(); not after
 * ask_free(), which it must not call.  A negative result ends the loop.
 */
typedef int (*ask_fn)(struct ask_answer *answer, void *user);

/* Over HTTP; takes client, also on failure.  One request runs at a time, in the order of
 * the calls.
 */
int ask_http(struct loop *loop, struct httpc *client, struct ask **ret, uw_error *err);
/* A handler in this process (api_handler()), which sees peer as the client.  The handler
 * must outlive *ret.
 */
int ask_handler(struct loop *loop, http_handler_fn handler, void *user,
                const struct http_peer *peer, struct ask **ret, uw_error *err);
/* Drops the requests that wait: their functions are not called. */
void ask_free(struct ask *a);
DEFINE_AUTO(struct ask *, ask_free);

/* body: JSON, freed; NULL: none.  -ENOMEM, -EAGAIN (too many requests wait). */
int ask_request(struct ask *a, const char *method, const char *path,
                struct json_out *body, ask_fn fn, void *user, uw_error *err);
/* Runs the loop until the answer is there; not from a callback of the loop.  The answer's
 * r; *ret (may be NULL) is NULL for an answer without a body.  -EINTR: something else
 * stopped the loop; the answer is dropped.
 */
int ask_wait(struct ask *a, const char *method, const char *path, struct json_out *body,
             struct json **ret, uw_error *err);

#endif
