/* One exchange: a request as its handler sees it, and the reply.  It has no socket: its
 * connection writes the reply.
 */
#ifndef IO_HTTP_EXCHANGE_H
#define IO_HTTP_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http-request.h"
#include "io/http-stream.h"
#include "io/http.h"

enum exchange_state {
    X_READING,
    X_CALLED,   /* the handler runs */
    X_KEPT,     /* the handler will reply later */
    X_ANSWERED, /* the reply is complete */
    X_STREAM,
    X_GONE, /* the peer is gone */
};

struct http_reply {
    unsigned status;
    char *type; /* NULL: no body */
    char *body;
    size_t len;
    struct http_text *shared; /* body lies in it; NULL: body is the reply's own */
    struct http_field *field; /* copies */
    size_t n_fields;
    bool close; /* close the connection */
};

/* Calls of an exchange to its connection. */
struct exchange_calls {
    void (*resume)(struct http_exchange *x); /* there is something to write */
    /* To the log of refusals. */
    void (*refused)(struct http_exchange *x, const char *cause, const char *detail);
    bool (*may_stream)(
        const struct http_exchange *x); /* whether its peer may open a stream */
};

struct http_exchange {
    const struct exchange_calls *calls; /* NULL in tests, as conn and stats */
    struct http_conn *conn;
    struct http_stats *stats;       /* the server's */
    const struct http_field *given; /* headers where there is no connection (tests) */
    struct loop *loop;
    const struct http_peer *peer;
    enum exchange_state state;
    enum http_method method;
    struct http_target target;
    const char *line; /* the target in libmicrohttpd's buffer, until the header is read */
    size_t line_len;
    unsigned refused; /* status, before any handler */
    const char *why;
    char cause[48]; /* for the log; "": the status */
    bool told;      /* logged already */
    char *body;
    size_t body_len, body_cap;
    size_t body_max; /* 0: the server's limit */
    bool begun, too_large;
    struct http_reply reply;
    http_gone_fn gone;
    void *gone_user;
    struct http_stream *stream;
};

struct http_exchange *exchange_new(void);
void exchange_free(struct http_exchange *x);
int exchange_body(struct http_exchange *x, const char *data, size_t len, size_t max);
/* Method and target; on refusal x->refused and x->why are set. */
void exchange_request(struct http_exchange *x, const char *method, const char *target);
/* The peer has gone, or keep_ns has passed: calls the on_gone function. */
void exchange_gone(struct http_exchange *x);
/* Replies with a status and a text before or instead of a handler. */
void exchange_refuse(struct http_exchange *x, unsigned status, const char *why);

#endif
