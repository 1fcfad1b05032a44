/* Queries the routes of a node in this process, without a socket. */
#include <errno.h>
#include <stdlib.h>

#include "ask/ask-inside.h"
#include "base/error.h"
#include "io/http-local.h"

struct ask_by_handler {
    struct ask ask; /* first */
    http_handler_fn handler;
    void *user;
    struct http_peer peer;
};

static int on_reply(struct http_local *l, unsigned status, const char *body, size_t len,
                    void *user)
{
    struct ask_call *call = user;
    int r = ask_answered(call, 0, NULL, status, body, len);

    http_local_free(l);
    return r;
}

static int request(struct ask *a, struct ask_call *call, uw_error *err)
{
    const struct ask_by_handler *h = (const struct ask_by_handler *)a;
    const struct http_local_request ask = {.handler = h->handler,
                                           .handler_user = h->user,
                                           .method = call->method,
                                           .target = call->path,
                                           .body = call->body,
                                           .peer = h->peer};

    return http_local_new(a->loop, &ask, on_reply, call, &call->local, err);
}

static void drop(struct ask_call *call)
{
    http_local_free(call->local);
}

static void free_handler(struct ask *a)
{
    (void)a; /* owns nothing but its calls */
}

int ask_handler(struct loop *loop, http_handler_fn handler, void *user,
                const struct http_peer *peer, struct ask **ret, uw_error *err)
{
    static const struct ask_way way = {request, drop, free_handler};
    struct ask_by_handler *h = calloc(1, sizeof *h);

    if (!h)
        return fail(err, -ENOMEM, "out of memory");
    h->ask = (struct ask){.way = &way, .loop = loop};
    h->handler = handler;
    h->user = user;
    h->peer = *peer;
    *ret = &h->ask;
    return 0;
}
