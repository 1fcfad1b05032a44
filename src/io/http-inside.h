/* What the files of the HTTP server share; nobody else includes this.
 *
 *   http-request.c  judges request lines: paths, queries (pure)
 *   http-refuse.c   the log of refusals, once per cause and peer (pure)
 *   http-stream.c   a stream's queue of events
 *   http.c          exchanges: what handlers see and reply
 *   http-engine.c   libmicrohttpd, driven by the loop
 *   http-conn.c     accepting, bounds, time limits
 *   http-listen.c   unix sockets, TCP with TLS
 */
#ifndef IO_HTTP_INSIDE_H
#define IO_HTTP_INSIDE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http.h"

/* ---- http-request.c ---- */

struct http_pair {
    const char *key, *value; /* into target */
};
struct http_target {
    char *text; /* owns what the rest points to */
    const char *path;
    struct http_pair query[HTTP_QUERY_MAX];
    size_t n_query;
};
/* 0, or the status to refuse with and why: 400, 414, 431. */
unsigned http_target_parse(const char *target, struct http_target *ret,
                           const char **ret_why);
void http_target_fini(struct http_target *t);
static inline void http_target_fini_p(struct http_target *t)
{
    http_target_fini(t);
}
/* 0: none of ours; *ret_head: it was HEAD. */
enum http_method http_method_parse(const char *name, bool *ret_head);

/* ---- http-refuse.c ---- */

enum { REFUSE_SLOTS = 64, REFUSE_LINE = 320 };
struct refuse_slot {
    uint64_t key, began_ns, again;
    char line[REFUSE_LINE / 2]; /* "cause=… peer=…" */
};
struct refuse_log {
    struct refuse_slot slot[REFUSE_SLOTS];
    size_t n;
    uint64_t others, others_ns; /* while all slots are taken */
    http_log_fn fn;
    void *user;
};
/* cause and peer: what makes it the same; detail: for the first line alone. */
struct refuse_what {
    const char *cause, *peer, *detail;
};
void refuse_note(struct refuse_log *log, const struct refuse_what *what, uint64_t now_ns);
/* Tells the counts of a minute ago; true while there is something left to tell. */
bool refuse_tick(struct refuse_log *log, uint64_t now_ns);

/* ---- http-stream.c ---- */

struct stream_event {
    struct stream_event *next;
    size_t len;
    char text[];
};
struct http_stream {
    struct http_exchange *x;
    struct http_stream_opts opts;
    struct stream_event *first, **last;
    size_t n, bytes, offset; /* offset: of first, already gone */
    uint64_t dropped, untold;
    char note[64]; /* told between two events: of drops, or a heartbeat */
    size_t note_len, note_offset;
    uint64_t moved_ns; /* something went out last */
    bool ended;        /* by the caller: gone for it */
};
struct http_stream *stream_new(struct http_exchange *x,
                               const struct http_stream_opts *opts);
void stream_free(struct http_stream *stream);
int stream_push(struct http_stream *stream, const char *event, const char *data);
void stream_beat(struct http_stream *stream); /* a comment, where nothing waits */
/* Up to max bytes into buf; 0: nothing waits. */
size_t stream_pull(struct http_stream *stream, char *buf, size_t max);
bool stream_empty(const struct http_stream *stream);

/* ---- exchanges ---- */

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

struct http_exchange {
    struct http_server *server; /* NULL in tests, as conn */
    struct http_conn *conn;
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

/* ---- connections, engines, the server ---- */

enum conn_phase {
    CONN_NEW,     /* nothing of a request yet, or part of its header */
    CONN_IDLE,    /* the same after a reply */
    CONN_BODY,    /* header complete */
    CONN_KEPT,    /* the handler has it */
    CONN_WRITING, /* a reply goes out */
    CONN_STREAM,
};

struct http_conn {
    struct http_conn *prev, *next;
    struct http_server *server;
    struct http_engine *engine;
    struct MHD_Connection *mhd; /* NULL until libmicrohttpd has taken it over */
    int fd;                     /* its own to close */
    struct http_peer peer;
    enum conn_phase phase;
    uint64_t since_ns;
    struct http_exchange *x;
    bool suspended, cut;
    bool fresh; /* in this phase: not looked at yet whether the peer has left */
};

/* One libmicrohttpd daemon: all plain connections, or those of one certificate. */
struct http_engine {
    struct http_engine *next;
    struct http_server *server;
    struct MHD_Daemon *mhd;
    struct loop_fd *ready;
    struct loop_timer *again;
    struct http_conn *adding; /* while libmicrohttpd is being given it */
    unsigned conns;
    bool retired;     /* no new connections: freed with its last one */
    char *cert, *key; /* PEM texts, for as long as it runs; NULL: plain */
    bool running;     /* inside MHD_run */
};

struct http_listener {
    struct http_listener *next;
    struct http_server *server;
    struct loop_fd *source;
    struct loop_timer *pause; /* out of descriptors: not before */
    struct http_engine *engine;
    int fd;
    unsigned id;
    uint16_t port;
    char *path;        /* a unix socket that we made: removed at the end … */
    uint64_t dev, ino; /* … if it is still this one */
    char *cert_path, *key_path;
};

struct http_server {
    struct loop *loop;
    http_handler_fn handler;
    void *user;
    struct http_limits limits;
    struct http_listener *listeners;
    struct http_engine *engines, *plain;
    struct http_conn *conns;
    struct loop_timer *sweep; /* armed while there are connections */
    bool sweeping;
    struct refuse_log refusals;
    struct http_stats stats;
};

/* Certificate and key as PEM texts, or both NULL: plain. */
int engine_new(struct http_server *s, const char *cert, const char *key,
               struct http_engine **ret, uw_error *err);
void engine_free(struct http_engine *e);
void engine_retire(struct http_engine *e); /* freed with its last connection */
/* Takes conn over, its descriptor too, whatever comes of it. */
void engine_add(struct http_engine *e, struct http_conn *conn, const void *address,
                unsigned address_len);
/* Runs it soon. */
void engine_kick(struct http_engine *e);
void engine_resume(struct http_conn *conn);

int conn_listen(struct http_listener *l, uw_error *err); /* l->fd listens already */
void conn_accept(struct http_listener *l);
void conn_phase(struct http_conn *conn, enum conn_phase phase);
void conn_cut(struct http_conn *conn);
/* Those who had left before their last bytes were read. */
void conn_look(struct http_engine *e);
void conn_free(struct http_conn *conn);
void conn_refused(struct http_server *s, const struct http_peer *peer, const char *cause,
                  const char *detail);
int conn_sweep(struct loop_timer *timer, uint64_t now_ns, void *user);
void conn_sweep_start(struct http_server *s);
/* May peer have one stream more? */
bool conn_may_stream(const struct http_server *s, const struct http_peer *peer);

#endif
