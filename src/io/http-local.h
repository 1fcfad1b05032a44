/* A request to an http_handler_fn of this process, without a connection: the handler sees
 * the same exchange as from a socket, after the same checks.
 */
#ifndef IO_HTTP_LOCAL_H
#define IO_HTTP_LOCAL_H

#include "io/http.h"

struct http_local;

struct http_local_request {
    http_handler_fn handler;
    void *handler_user;
    const char *method, *target; /* "GET", "/v1/gpus?x=1" */
    const char *body;            /* JSON, or NULL */
    struct http_peer peer;       /* what the handler sees as the client */
};
/* Called once, on the loop, never from inside http_local_new().  body is borrowed for the
 * call and a NUL follows its len bytes.  May free l.
 */
typedef int (*http_local_fn)(struct http_local *l, unsigned status, const char *body,
                             size_t len, void *user);
/* Calls the handler before it returns, unless the request is refused.  -ENOMEM. */
int http_local_new(struct loop *loop, const struct http_local_request *request,
                   http_local_fn fn, void *user, struct http_local **ret, uw_error *err);
/* Before the answer: the handler learns that its peer has gone, and fn is not called. */
void http_local_free(struct http_local *l);
DEFINE_AUTO(struct http_local *, http_local_free);

#endif
