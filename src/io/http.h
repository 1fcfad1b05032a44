/* HTTP/1.1 server for a program of one loop: JSON requests, replies now or later,
 * server-sent events.  Listens on unix sockets (the peer's uid is known) and on TCP
 * with TLS; plain TCP there is not.  All callbacks run in the loop's thread; nothing
 * here starts a thread or blocks.  Real loops only (-ENOTSUP on a virtual one).
 *
 * What arrives here is hostile until proved otherwise, in one place, before a handler
 * sees it: methods other than the five below (405), HTTP other than 1.0 and 1.1 (505),
 * request line and headers above 8 KiB (431, or closed), bodies above 64 KiB or what the
 * program allows this request (413), Transfer-Encoding beside Content-Length (400), paths
 * with "//", ".", "..", "\", control bytes, or with any of these or "/" percent-encoded
 * (400), queries with a key twice or broken escapes (400).  A request that is not
 * complete 5 s after its connection (30 s after the last reply on a kept one) is cut off.
 * Connections above a bound are closed before a byte of theirs is read.
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

/* The client of a request. */
struct http_peer {
    unsigned listener; /* the listener's id */
    bool local;        /* a unix socket: uid, gid and pid are from the kernel */
    uid_t uid;         /* (uid_t)-1 where not local */
    gid_t gid;
    pid_t pid;                /* of the process that connected; it may have ended */
    char address[64];         /* "192.0.2.7", "2001:db8::1"; "" where local */
    char network[64];         /* http_network(): "192.0.2.7", "2001:db8::/64" */
    char name[HTTP_PEER_MAX]; /* for people: "uid 1000 pid 4711", "192.0.2.7" */
};

/* The unit of bounds, rates and the log: an IPv4 address (also if mapped into IPv6), or
 * the /64 of an IPv6 address, as one host can have every address of its /64.  Other texts
 * are copied.
 */
void http_network(const char *address, char ret[64]);

/* ---- the server ---- */

/* 0: the default given behind each. */
struct http_limits {
    unsigned connections; /* 256, of which 16 are reserved for uid 0 and our own uid */
    unsigned per_uid;     /* 32 */
    unsigned per_address; /* 16, for each http_network() */
    unsigned streams;     /* 64, at most half of them of one uid or network */
    size_t head_bytes;    /* 8 KiB: request line and headers */
    size_t body_bytes;    /* 64 KiB */
    uint64_t
        request_ns;   /* 5 s: from connection, or from the header, to the whole request */
    uint64_t idle_ns; /* 30 s: from a reply to the end of the next request's header */
    uint64_t keep_ns; /* 60 s: for a handler to reply; then 504 */
    uint64_t beat_ns; /* 15 s: a comment on a stream that was silent this long */
    uint64_t write_ns; /* 30 s: a peer that reads none of its reply is cut off */
};

/* Called for each complete and valid request.  Replies at once, or keeps x and replies
 * later (see http_on_gone()).
 */
typedef void (*http_handler_fn)(struct http_exchange *x, void *user);

/* One line for the log, control characters escaped: the first refusal for a cause and
 * peer, then at most once a minute a count of repetitions.
 */
typedef void (*http_log_fn)(const char *line, void *user);

/* The most bytes of this request's body, where that is more than limits.body_bytes: asked
 * once method, path and peer are known, where Content-Length is above those.  A peer may
 * send one such body at a time (root and our own uid: all), HTTP_LARGE_MAX go on at once;
 * 503 above.
 */
typedef size_t (*http_body_fn)(const struct http_exchange *x, void *user);
enum { HTTP_LARGE_MAX = 4 };

struct http_opts {
    struct loop *loop;
    http_handler_fn handler;
    http_body_fn body; /* or NULL: limits.body_bytes for all */
    http_log_fn log;   /* or NULL */
    void *user;        /* of all */
    struct http_limits limits;
};
int http_server_new(const struct http_opts *opts, struct http_server **ret,
                    uw_error *err);
/* Closes everything; calls on_gone of kept exchanges and on_closed of streams before it
 * returns, and removes the unix sockets that it made.  Not from inside a handler.
 */
void http_server_free(struct http_server *s);
DEFINE_AUTO(struct http_server *, http_server_free);

/* Sets limits for new connections, requests and streams. */
void http_server_limits(struct http_server *s, const struct http_limits *limits);

struct http_unix {
    const char *path; /* absolute, <= 107 bytes; its folder must exist */
    mode_t mode;      /* 0666: SO_PEERCRED decides */
    bool has_gid;
    gid_t gid; /* the socket's group, where has_gid */
    unsigned id;
};
/* Replaces a socket on which no process listens (-EADDRINUSE if one does); -EEXIST: the
 * path is not a socket, or a link.  Nothing changes on failure.
 */
int http_listen_unix(struct http_server *s, const struct http_unix *at, uw_error *err);

struct http_tls {
    const char *cert, *key; /* PEM files: the chain, the key (not readable by others) */
};
/* "HOST:PORT": "127.0.0.1:8443", "[::1]:0" (any free port: see http_port()). */
int http_listen_tls(struct http_server *s, const char *address,
                    const struct http_tls *tls, unsigned id, uw_error *err);
/* The same without TLS, on a loopback address alone; each user's peers are one network,
 * and those whose user the kernel does not tell are one.
 */
int http_listen_loopback(struct http_server *s, const char *address, unsigned id,
                         uw_error *err);
/* Whether the files hold a certificate and its key, as http_listen_tls() would say. */
int http_check_tls(struct http_server *s, const struct http_tls *tls, uw_error *err);
/* The TCP port of a listener; 0: none. */
uint16_t http_port(const struct http_server *s, unsigned id);
/* Reads certificate and key from their files again; http_use_tls() uses them for new
 * connections.  On failure nothing is loaded.
 */
int http_load_tls(struct http_server *s, uw_error *err);
void http_use_tls(struct http_server *s);

struct http_stats {
    unsigned connections, streams, kept;             /* now */
    uint64_t requests, refused_connections, refused; /* since the start */
    uint64_t cut;                                    /* by a time limit */
    uint64_t dropped_events;
};
struct http_stats http_stats(const struct http_server *s);

/* ---- the request: everything is borrowed until the reply ---- */

enum http_method http_method(const struct http_exchange *x); /* HEAD comes as GET */
const char *http_path(const struct http_exchange *x);        /* decoded, "/v1/gpus" */
/* The value of a key, decoded ("" for a key without one), or NULL. */
const char *http_query(const struct http_exchange *x, const char *key);
size_t http_query_count(const struct http_exchange *x);
const char *http_query_at(const struct http_exchange *x, size_t i,
                          const char **ret_value);
/* 0, or -EINVAL with the first key of the query that is not in keys (ends with NULL). */
int http_query_only(const struct http_exchange *x, const char *const *keys,
                    uw_error *err);
const char *http_header(const struct http_exchange *x, const char *name); /* or NULL */
/* A NUL follows its len bytes. */
const char *http_body(const struct http_exchange *x, size_t *ret_len);
/* The body as JSON: -EINVAL (with line), also where it is empty or its Content-Type is
 * another.
 */
int http_body_json(const struct http_exchange *x, struct json **ret, uw_error *err);
const struct http_peer *http_peer(const struct http_exchange *x);

/* ---- the reply: exactly one of these, now or later; it frees x ---- */

struct http_field {
    const char *name, *value;
};
/* headers: ends with {NULL, NULL}, or NULL; body is copied; type NULL: no body.  Without
 * memory for the reply the peer gets 503 or is cut off.
 */
void http_reply(struct http_exchange *x, unsigned status, const char *type,
                const void *body, size_t len, const struct http_field *headers);
/* The same with a body that many replies share.  The caller's reference stays its own. */
struct http_text;
struct http_text *http_text_new(const char *text, size_t len); /* NULL: no memory */
/* Another text in *text (NULL: none yet), in the same memory where no reply has it any
 * more and it has the room.  -ENOMEM: *text is as it was.
 */
int http_text_again(struct http_text **text, const char *bytes, size_t len);
void http_text_unref(struct http_text *text); /* the last reference frees it */
DEFINE_AUTO(struct http_text *, http_text_unref);
void http_reply_text(struct http_exchange *x, unsigned status, const char *type,
                     struct http_text *text, const struct http_field *headers);
/* 200, application/json; frees o.  500 where o recorded a failure. */
void http_reply_json(struct http_exchange *x, struct json_out *o);
void http_reply_json_as(struct http_exchange *x, unsigned status, struct json_out *o);
/* {"error": "…"}; 400, 401, 403, 405, 413 and 429 are logged as refused. */
void http_fail(struct http_exchange *x, unsigned status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets the log's cause of the refusal that follows; the peer does not see it. */
void http_cause(struct http_exchange *x, const char *cause);
/* The caller has logged the refusal that follows: it is counted, but not logged again. */
void http_told(struct http_exchange *x);
/* The same with headers: Retry-After, WWW-Authenticate. */
void http_fail_fields(struct http_exchange *x, unsigned status,
                      const struct http_field *headers, const char *text);
/* The same for a -errno and its text: see http_status(). */
void http_fail_r(struct http_exchange *x, int r, const uw_error *err);
/* -EINVAL, -ERANGE: 400; -EPERM, -EACCES: 403; -ENOENT, -ENODEV: 404; -EBUSY, -EEXIST,
 * -E2BIG: 409; -ENOTSUP: 422; -EAGAIN, -ENOMEM, -ETIMEDOUT: 503; else 500.
 */
unsigned http_status(int r);

/* For a handler that keeps x: fn is called when no reply is possible any more: the peer
 * has gone, keep_ns passed (the peer got 504), or the server is freed.  x is freed when
 * fn returns.  NULL: no function.
 */
typedef void (*http_gone_fn)(struct http_exchange *x, void *user);
void http_on_gone(struct http_exchange *x, http_gone_fn fn, void *user);

/* ---- server-sent events ---- */

struct http_stream_opts {
    size_t events; /* most waiting events; 0: 64.  Above, the oldest is dropped … */
    size_t bytes;  /* … and above this many bytes; 0: 64 KiB */
    /* Called once when the peer has gone or the server is freed (not by
     * http_stream_end()); the stream is freed when it returns.
     */
    void (*on_closed)(struct http_stream *stream, void *user);
    void *user;
};
/* In place of a reply: 200, text/event-stream.  On failure the caller must still reply to
 * x: -EBUSY (too many streams) or -ENOMEM.
 */
int http_stream_begin(struct http_exchange *x, const struct http_stream_opts *opts,
                      struct http_stream **ret, uw_error *err);
/* Sends one event; event NULL: data only; data may have several lines.  Never blocks.  A
 * slow reader gets a count of its missed events before the next event: "event: dropped",
 * "data: {"dropped": 17}".  -E2BIG: larger than the whole queue; -ENOMEM; else 0.
 */
int http_stream_send(struct http_stream *stream, const char *event, const char *data);
size_t http_stream_waiting(const struct http_stream *stream); /* events */
/* Sends the waiting events, then closes; the caller must not use the stream any more. */
void http_stream_end(struct http_stream *stream);

#endif
