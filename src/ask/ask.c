#include "ask/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/ask-inside.h"
#include "base/error.h"
#include "io/answer.h"

/* ---- calls ---- */

static void call_free(struct ask_call *call)
{
    if (!call)
        return;
    httpc_reply_fini(&call->reply);
    free(call->method);
    free(call->path);
    free(call->body);
    free(call);
}
DEFINE_AUTO(struct ask_call *, call_free);

static void unlink_call(struct ask_call *call)
{
    struct ask_call **at = &call->ask->calls;

    while (*at && *at != call)
        at = &(*at)->next;
    if (*at)
        *at = call->next;
}

static int call_new(struct ask *a, const char *method, const char *path,
                    const struct json_out *body, struct ask_call **ret, uw_error *err)
{
    auto_(call_free) struct ask_call *call = calloc(1, sizeof *call);

    if (!call)
        return fail(err, -ENOMEM, "out of memory");
    call->ask = a;
    call->method = strdup(method);
    call->path = strdup(path);
    if (!call->method || !call->path)
        return fail(err, -ENOMEM, "out of memory");
    int r = body ? json_out_string(body, &call->body, err) : 0;
    if (r < 0)
        return r;
    *ret = take(call);
    return 0;
}

int ask_request(struct ask *a, const char *method, const char *path,
                struct json_out *body, ask_fn fn, void *user, uw_error *err)
{
    auto_(json_out_free) struct json_out *owned = body;
    struct ask_call *call = NULL;
    int r = call_new(a, method, path, owned, &call, err);

    if (r < 0 || !call)
        return r;
    call->fn = fn;
    call->user = user;
    call->next = a->calls;
    a->calls = call;
    r = a->way->request(a, call, err);
    if (r < 0) {
        unlink_call(call);
        call_free(call);
    }
    return r;
}

int ask_answered(struct ask_call *call, int r, const uw_error *err, unsigned status,
                 const char *body, size_t len)
{
    struct ask_answer answer = {.r = r, .status = status};
    ask_fn fn = call->ask->freed ? NULL : call->fn;
    void *user = call->user;

    unlink_call(call);
    if (r < 0)
        answer.error = *err;
    else if (status > 299)
        answer.r = answer_refused(status, body, len, &answer.error);
    else if (len > 0)
        answer.r = answer_read(body, len, &answer.doc, &answer.error);
    call_free(call);
    int result = fn ? fn(&answer, user) : 0;
    json_free(answer.doc);
    return result;
}

void ask_free(struct ask *a)
{
    if (!a)
        return;
    a->freed = true;
    a->way->free(a);
    while (a->calls) {
        struct ask_call *call = a->calls;
        a->calls = call->next;
        a->way->drop(call);
        call_free(call);
    }
    free(a);
}

/* ---- waiting ---- */

struct waiting {
    struct loop *loop;
    struct ask_answer answer;
    bool over;
};

static int on_waited(struct ask_answer *answer, void *user)
{
    struct waiting *w = user;

    w->answer = *answer;
    w->answer.doc = take(answer->doc);
    w->over = true;
    loop_stop(w->loop, 0);
    return 0;
}

/* Drops the answer to a call that is not waited for any more. */
static void forget(struct ask *a, const struct waiting *w)
{
    for (struct ask_call *call = a->calls; call; call = call->next)
        if (call->user == w)
            call->fn = NULL;
}

int ask_wait(struct ask *a, const char *method, const char *path, struct json_out *body,
             struct json **ret, uw_error *err)
{
    struct waiting w = {.loop = a->loop};
    int r = ask_request(a, method, path, body, on_waited, &w, err);

    if (r < 0)
        return r;
    r = loop_run(a->loop, err);
    if (!w.over) {
        forget(a, &w);
        return r < 0 ? r : fail(err, -EINTR, "interrupted");
    }
    auto_(json_free) struct json *doc = w.answer.doc;
    if (w.answer.r < 0)
        return fail(err, w.answer.r, "%s", w.answer.error.text);
    if (ret)
        *ret = take(doc);
    return 0;
}
