#include "http-try.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "io/http-exchange.h"

enum { TRY_BODY_MAX = 4 << 20, STEP = 4096 }; /* whoever listens bounds bodies */

struct http_try {
    struct http_exchange *x;
    struct http_peer peer;
    char *text; /* of a stream */
};

static void ask_it(struct http_try *t, http_handler_fn handler, void *user,
                   const struct http_try_ask *ask)
{
    struct http_exchange *x = t->x;
    size_t len = ask->body && ask->body_len == 0 ? strlen(ask->body) : ask->body_len;

    exchange_request(x, ask->method, ask->target);
    if (!x->refused && ask->body && exchange_body(x, ask->body, len, TRY_BODY_MAX) < 0) {
        x->refused = 413;
        x->why = "the body is too large";
    }
    if (x->refused) {
        exchange_refuse(x, x->refused, x->why);
        return;
    }
    x->state = X_CALLED;
    handler(x, user);
    if (x->state == X_CALLED)
        x->state = X_KEPT;
}

int http_try_new(struct loop *loop, http_handler_fn handler, void *user,
                 const struct http_try_ask *ask, struct http_try **ret)
{
    auto_(http_try_free) struct http_try *t = calloc(1, sizeof *t);

    if (!t)
        return -ENOMEM;
    t->x = exchange_new();
    if (!t->x)
        return -ENOMEM;
    t->peer = ask->peer;
    http_network(t->peer.address, t->peer.network);
    t->x->given = ask->headers;
    t->x->loop = loop;
    t->x->peer = &t->peer;
    ask_it(t, handler, user, ask);
    *ret = take(t);
    return 0;
}

unsigned http_try_status(const struct http_try *t)
{
    return t->x->reply.status;
}

const char *http_try_body(struct http_try *t, size_t *ret_len)
{
    size_t n = 0, cap = 0, got;

    if (!t->x->stream) {
        if (ret_len)
            *ret_len = t->x->reply.len;
        return t->x->reply.body ? t->x->reply.body : "";
    }
    free(t->text);
    t->text = NULL;
    do {
        char *more = realloc(t->text, cap + STEP + 1);
        if (!more)
            break;
        t->text = more;
        cap += STEP;
        got = stream_pull(t->x->stream, t->text + n, cap - n);
        n += got;
    } while (n == cap);
    if (t->text)
        t->text[n] = '\0';
    if (ret_len)
        *ret_len = n;
    return t->text ? t->text : "";
}

const char *http_try_header(const struct http_try *t, const char *name)
{
    if (strcasecmp(name, "Content-Type") == 0)
        return t->x->state == X_STREAM ? "text/event-stream" : t->x->reply.type;
    for (size_t i = 0; i < t->x->reply.n_fields; i++)
        if (strcasecmp(t->x->reply.field[i].name, name) == 0)
            return t->x->reply.field[i].value;
    return NULL;
}

void http_try_free(struct http_try *t)
{
    if (!t)
        return;
    if (t->x)
        exchange_gone(t->x);
    exchange_free(t->x);
    free(t->text);
    free(t);
}
