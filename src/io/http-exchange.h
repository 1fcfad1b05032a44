/* One exchange: a request as its handler sees it, and the reply.  It knows no socket: the
 * connection that it came by writes the reply.
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
    X_KEPT,     /* it will reply later */
    X_ANSWERED, /* reply is there */
    X_STREAM,
    X_GONE, /* nobody to reply to */
};

struct http_reply {
    unsigned status;
    char *type; /* NULL: no body */
    char *body;
    size_t len;
    struct http_field *field; /* copies */
    size_t n_fields;
    bool close; /* the connection */
};

/* What an exchange asks of the connection that it came by. */
struct exchange_calls {
    void (*resume)(struct http_exchange *x); /* there is something to write */
    /* To the log of refusals. */
    void (*refused)(struct http_exchange *x, const char *cause, const char *detail);
    bool (*may_stream)(const struct http_exchange *x); /* its peer, one stream more */
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
    bool told;      /* written down already */
    char *body;
    size_t body_len, body_cap;
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
/* The peer went, or it took too long: tells whoever keeps it. */
void exchange_gone(struct http_exchange *x);
/* A status and its text before or instead of a handler. */
void exchange_refuse(struct http_exchange *x, unsigned status, const char *why);

#endif
