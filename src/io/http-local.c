#include "io/http-local.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/http-exchange.h"

enum { BODY_MAX = 64 * 1024 };

struct http_local {
    struct http_exchange *x;
    struct http_peer peer;
    struct http_stats stats;
    struct loop_timer *answered;
    http_local_fn fn;
    void *user;
};

static void resume(struct http_exchange *x)
{
    struct http_local *l =
        (struct http_local *)((char *)x->stats - offsetof(struct http_local, stats));

    loop_timer_set(l->answered, 0, 0);
}

static void refused(struct http_exchange *x, const char *cause, const char *detail)
{
    (void)x;
    (void)cause;
    (void)detail;
}

static bool may_stream(const struct http_exchange *x)
{
    (void)x;
    return false;
}

static const struct exchange_calls calls = {resume, refused, may_stream};

static int on_answered(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct http_local *l = user;
    const struct http_reply *reply = &l->x->reply;
    (void)timer;
    (void)now_ns;

    return l->fn(l, reply->status, reply->body ? reply->body : "", reply->len, l->user);
}

static void call(struct http_local *l, const struct http_local_request *request)
{
    struct http_exchange *x = l->x;

    exchange_request(x, request->method, request->target);
    if (!x->refused && request->body &&
        exchange_body(x, request->body, strlen(request->body), BODY_MAX) < 0) {
        x->refused = 413;
        x->why = "the body is too large";
    }
    if (x->refused) {
        exchange_refuse(x, x->refused, x->why);
    } else {
        x->state = X_CALLED;
        request->handler(x, request->handler_user);
    }
    if (x->state == X_CALLED)
        x->state = X_KEPT;
    else
        resume(x);
}

int http_local_new(struct loop *loop, const struct http_local_request *request,
                   http_local_fn fn, void *user, struct http_local **ret, uw_error *err)
{
    auto_(http_local_free) struct http_local *l = calloc(1, sizeof *l);

    if (l)
        l->x = exchange_new();
    if (!l || !l->x)
        return fail(err, -ENOMEM, "out of memory");
    l->peer = request->peer;
    l->fn = fn;
    l->user = user;
    l->x->calls = &calls;
    l->x->stats = &l->stats;
    l->x->loop = loop;
    l->x->peer = &l->peer;
    int r = loop_timer_new(loop, UINT64_MAX, 0, on_answered, l, &l->answered, err);
    if (r < 0)
        return r;
    call(l, request);
    *ret = take(l);
    return 0;
}

void http_local_free(struct http_local *l)
{
    if (!l)
        return;
    if (l->x)
        exchange_gone(l->x);
    exchange_free(l->x);
    loop_timer_free(l->answered);
    free(l);
}
