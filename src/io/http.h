/* HTTP/1.1 server for a program of one loop: JSON requests, replies now or later,
 * server-sent events.  Listens on unix sockets (the peer's uid is known) and on TCP
 * with TLS; plain TCP there is not.  All callbacks run in the loop's thread; nothing
 * here starts a thread or blocks.  Real loops only (-ENOTSUP on a virtual one).
 *
 * What arrives here is hostile until proved otherwise, in one place, before a handler
 * sees it: methods other than the five below (405), HTTP other than 1.0 and 1.1 (505),
 * request line and headers above 8 KiB (431, or closed), bodies above 64 KiB (413),
 * Transfer-Encoding beside Content-Length (400), paths with "//", ".", "..", "\",
 * control bytes, or with any of these or "/" percent-encoded (400), queries with a key
 * twice or broken escapes (400).  A request that is not complete 5 s after its
 * connection (30 s after the last reply on a kept one) is cut off.  Connections above a
 * bound are closed before a byte of theirs is read.
 */
#ifndef IO_HTTP_H
#define IO_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "io/json.h"
#include "io/loop.h"
#include "underwatt/error.h"

struct http_server;
struct http_exchange; /* one request and its reply */
struct http_stream;   /* server-sent events to one peer */

enum http_method { HTTP_GET = 1, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE };
const char *http_method_name(enum http_method method); /* "GET", … */

enum {
    HTTP_PATH_MAX = 255,
    HTTP_QUERY_MAX = 32, /* keys of a query */
    HTTP_PEER_MAX = 96,
};

/* Who asks. */
struct http_peer {
    unsigned listener; /* the id it was given */
    bool local;        /* a unix socket: uid, gid and pid are the kernel's word */
    uid_t uid;         /* (uid_t)-1 where not local */
    gid_t gid;
    pid_t pid;                /* of the process that connected; it may be gone by now */
    char address[64];         /* "192.0.2.7", "2001:db8::1"; "" where local */
    char network[64];         /* who counts as one: "192.0.2.7", "2001:db8::/64" */
    char name[HTTP_PEER_MAX]; /* for people: "uid 1000 pid 4711", "192.0.2.7" */
};

/* Who counts as one in bounds, rates and the log: an IPv4 address by itself (one that is
 * mapped into IPv6, too), an IPv6 address with its /64, of which one host can have every
 * address.  What is no address stays as it is.
 */
void http_network(const char *address, char ret[64]);

/* ---- the server ---- */

/* 0 anywhere: the default behind it. */
struct http_limits {
    unsigned connections; /* 256, of which 16 are kept for uid 0 and our own */
    unsigned per_uid;     /* 32 */
    unsigned per_address; /* 16, of a network as http_network() has it */
    unsigned streams;     /* 64, of which half at most are one uid's or network's */
    size_t head_bytes;    /* 8 KiB: request line and headers */
    size_t body_bytes;    /* 64 KiB */
    uint64_t request_ns;  /* 5 s: from connection, or its header, to a whole request */
    uint64_t idle_ns;     /* 30 s: from a reply to the next request's end of header */
    uint64_t keep_ns;     /* 60 s: for a handler to reply; then 504 */
    uint64_t beat_ns;     /* 15 s: comment on a stream that was silent so long */
    uint64_t write_ns;    /* 30 s: a peer that takes nothing of its reply is cut off */
};

/* Called once a request is complete and sound.  Replies at once, or keeps x and replies
 * later (see http_on_gone()).
 */
typedef void (*http_handler_fn)(struct http_exchange *x, void *user);

/* One line for the log, control characters escaped: a cause of refusal for a peer when
 * it happens first, then at most once a minute how often it came again.
 */
typedef void (*http_log_fn)(const char *line, void *user);

struct http_opts {
    struct loop *loop;
    http_handler_fn handler;
    http_log_fn log; /* or NULL */
    void *user;      /* of both */
    struct http_limits limits;
};
int http_server_new(const struct http_opts *opts, struct http_server **ret,
                    uw_error *err);
/* Closes everything: kept exchanges get their on_gone, streams their on_closed, before
 * it returns.  Unix sockets that it made are removed.  Not from inside a handler.
 */
void http_server_free(struct http_server *s);
DEFINE_AUTO(struct http_server *, http_server_free);

/* Other limits, for whatever begins from now on. */
void http_server_limits(struct http_server *s, const struct http_limits *limits);

struct http_unix {
    const char *path; /* absolute, <= 107 bytes; its folder must be there */
    mode_t mode;      /* 0666: SO_PEERCRED decides */
    bool has_gid;
    gid_t gid; /* the socket's group, where has_gid */
    unsigned id;
};
/* A socket there before is replaced if nobody listens on it (-EADDRINUSE if one does);
 * -EEXIST where something else has that name, a link too: nothing has changed.
 */
int http_listen_unix(struct http_server *s, const struct http_unix *at, uw_error *err);

struct http_tls {
    const char *cert, *key; /* PEM files: the chain, the key (not readable by others) */
};
/* "HOST:PORT": "127.0.0.1:8443", "[::1]:0" (any free port: see http_port()). */
int http_listen_tls(struct http_server *s, const char *address,
                    const struct http_tls *tls, unsigned id, uw_error *err);
/* The TCP port of a listener; 0: it has none. */
uint16_t http_port(const struct http_server *s, unsigned id);
/* Certificate and key anew from their files, for connections from now on.  On failure
 * the old ones stay.
 */
int http_reload_tls(struct http_server *s, uw_error *err);

struct http_stats {
    unsigned connections, streams, kept;             /* now */
    uint64_t requests, refused_connections, refused; /* since the start */
    uint64_t cut;                                    /* by a time limit */
    uint64_t dropped_events;
};
struct http_stats http_stats(const struct http_server *s);

/* ---- the request: all borrowed, until the reply ---- */

enum http_method http_method(const struct http_exchange *x); /* HEAD comes as GET */
const char *http_path(const struct http_exchange *x);        /* decoded, "/v1/gpus" */
/* The value of a key, decoded ("" for a key without one), or NULL. */
const char *http_query(const struct http_exchange *x, const char *key);
size_t http_query_count(const struct http_exchange *x);
const char *http_query_at(const struct http_exchange *x, size_t i,
                          const char **ret_value);
/* 0, or -EINVAL with a text that names a key of the query not in keys (ends with NULL).
 */
int http_query_only(const struct http_exchange *x, const char *const *keys,
                    uw_error *err);
const char *http_header(const struct http_exchange *x, const char *name); /* or NULL */
/* NUL behind its len bytes. */
const char *http_body(const struct http_exchange *x, size_t *ret_len);
/* The body as JSON: -EINVAL (with line), also where its Content-Type says otherwise or
 * it is empty.
 */
int http_body_json(const struct http_exchange *x, struct json **ret, uw_error *err);
const struct http_peer *http_peer(const struct http_exchange *x);

/* ---- the reply: exactly one of these, now or later; x is gone after it ---- */

struct http_field {
    const char *name, *value;
};
/* headers: ends with {NULL, NULL}, or NULL; body is copied; type NULL: no body.  Where
 * there is no memory for it the peer gets 503 or is cut off: nothing for the caller to
 * do.
 */
void http_reply(struct http_exchange *x, unsigned status, const char *type,
                const void *body, size_t len, const struct http_field *headers);
/* application/json; frees o.  500 where o recorded a failure. */
void http_reply_json(struct http_exchange *x, unsigned status, struct json_out *o);
/* {"error": "…"}; 400, 401, 403, 405, 413 and 429 are logged as refused. */
void http_fail(struct http_exchange *x, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What the log calls the refusal that follows; the peer is not told. */
void http_cause(struct http_exchange *x, const char *cause);
/* The refusal that follows has been written down by whoever refused: it is counted, and
 * not logged once more.
 */
void http_told(struct http_exchange *x);
/* The same with headers: Retry-After, WWW-Authenticate. */
void http_fail_fields(struct http_exchange *x, unsigned status,
                      const struct http_field *headers, const char *text);
/* The same for a result of ours and its text: see http_status(). */
void http_fail_r(struct http_exchange *x, int r, const uw_error *err);
/* -EINVAL, -ERANGE: 400; -EPERM, -EACCES: 403; -ENOENT, -ENODEV: 404; -EBUSY, -EEXIST,
 * -E2BIG: 409; -ENOTSUP: 422; -EAGAIN, -ENOMEM, -ETIMEDOUT: 503; else 500.
 */
unsigned http_status(int r);

/* Whoever keeps x beyond its handler says here who is to be told when it will get no
 * reply any more: the peer went, keep_ns passed (the peer got 504), the server is
 * freed.  x is gone when fn returns.  NULL: nobody.
 */
typedef void (*http_gone_fn)(struct http_exchange *x, void *user);
void http_on_gone(struct http_exchange *x, http_gone_fn fn, void *user);

/* ---- server-sent events ---- */

struct http_stream_opts {
    size_t events; /* waiting at most; 0: 64.  Above it the oldest goes … */
    size_t bytes;  /* … and above so many bytes; 0: 64 KiB */
    /* Once, when the peer went or the server is freed (not by http_stream_end()): the
     * stream is gone when it returns.
     */
    void (*on_closed)(struct http_stream *stream, void *user);
    void *user;
};
/* Instead of a reply: 200, text/event-stream.  On failure x is still to be replied to:
 * -EBUSY (too many streams) or -ENOMEM.
 */
int http_stream_begin(struct http_exchange *x, const struct http_stream_opts *opts,
                      struct http_stream **ret, uw_error *err);
/* One event; event NULL: data alone; data of several lines stays one event.  Never
 * blocks.  What a slow reader has missed it is told before the next event that it gets:
 * "event: dropped", "data: {"dropped": 17}".  -E2BIG: larger than the whole queue may
 * be; -ENOMEM; else 0.
 */
int http_stream_send(struct http_stream *stream, const char *event, const char *data);
size_t http_stream_waiting(const struct http_stream *stream); /* events */
/* Sends what waits, then closes; the stream is gone at once for the caller. */
void http_stream_end(struct http_stream *stream);

#endif
