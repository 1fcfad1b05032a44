/* Queries the daemon.  The HTTP client blocks, so a worker's thread waits for the
 * answers.
 */
#include <errno.h>
#include <stdlib.h>

#include "ask/ask-inside.h"
#include "base/error.h"

struct ask_over_http {
    struct ask ask; /* first */
    struct httpc *client;
    struct loop_worker *worker;
};

static struct ask_over_http *of(struct ask *a)
{
    return (struct ask_over_http *)a;
}

static int work(struct loop *loop, void *user)
{
    struct ask_call *call = user;
    (void)loop;

    return httpc_call(of(call->ask)->client, call->method, call->path, call->body,
                      &call->reply, &call->error);
}

static int done(struct loop *loop, void *user, int r)
{
    struct ask_call *call = user;
    struct httpc_reply reply = call->reply;
    (void)loop;

    call->reply = (struct httpc_reply){0};
    int result = ask_answered(call, r, &call->error, reply.status, reply.body, reply.len);
    httpc_reply_fini(&reply);
    return result;
}

static int request(struct ask *a, struct ask_call *call, uw_error *err)
{
    struct loop_work w = {.fn = work, .done = done, .work = call};
    int r = loop_worker_submit(of(a)->worker, &w);

    return r < 0 ? fail(err, r, "too many requests wait for the daemon") : 0;
}

static void drop(struct ask_call *call)
{
    (void)call; /* the worker has dropped all calls */
}

static void free_http(struct ask *a)
{
    if (of(a)->client)
        httpc_cancel(of(a)->client);
    loop_worker_free(of(a)->worker);
    httpc_free(of(a)->client);
}

int ask_http(struct loop *loop, struct httpc *client, struct ask **ret, uw_error *err)
{
    static const struct ask_way way = {request, drop, free_http};
    auto_(httpc_free) struct httpc *owned = client;
    struct ask_over_http *h = calloc(1, sizeof *h);

    if (!h)
        return fail(err, -ENOMEM, "out of memory");
    auto_(ask_free) struct ask *a = &h->ask;
    a->way = &way;
    a->loop = loop;
    h->client = take(owned);
    int r = loop_worker_new(loop, "daemon", &h->worker, err);
    if (r < 0)
        return r;
    *ret = take(a);
    return 0;
}
