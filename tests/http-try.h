/* An exchange without a connection: what a test asks of a handler, and what it is
 * answered.
 */
#ifndef TESTS_HTTP_TRY_H
#define TESTS_HTTP_TRY_H

#include "io/http.h"

struct http_try;
struct http_try_ask {
    const char *method;               /* "GET" */
    const char *target;               /* "/v1/gpus?x=1", judged as one from outside */
    const char *body;                 /* or NULL */
    size_t body_len;                  /* 0: strlen(body) */
    const struct http_field *headers; /* ends with {NULL, NULL}; or NULL */
    struct http_peer peer;
};
/* Calls handler, unless the request is refused before. */
int http_try_new(struct loop *loop, http_handler_fn handler, void *user,
                 const struct http_try_ask *ask, struct http_try **ret);
/* 0: not answered yet. */
unsigned http_try_status(const struct http_try *t);
/* What was replied; of a stream: all that was sent since the last call.  Borrowed until
 * the next call.
 */
const char *http_try_body(struct http_try *t, size_t *ret_len);
const char *http_try_header(const struct http_try *t, const char *name); /* or NULL */
/* The peer goes: on_gone or on_closed are called. */
void http_try_free(struct http_try *t);
DEFINE_AUTO(struct http_try *, http_try_free);

#endif
