/* The HTTP server: one class in three files; no other file includes this.
 *
 *   http-engine.c   libmicrohttpd, driven by the loop
 *   http-conn.c     accepting, bounds, time limits
 *   http-listen.c   unix sockets, TCP with TLS
 *
 * Parts: http-request.h (request lines), http-refuse.h (the log of refusals),
 * http-stream.h (queues of events), http-exchange.h (requests and replies).
 */
#ifndef IO_HTTP_INSIDE_H
#define IO_HTTP_INSIDE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/http-exchange.h"
#include "io/http-refuse.h"
#include "io/http.h"

enum conn_phase {
    CONN_NEW,     /* no request yet, or a part of its header */
    CONN_IDLE,    /* the same after a reply */
    CONN_BODY,    /* header complete */
    CONN_KEPT,    /* request with the handler */
    CONN_WRITING, /* a reply is being sent */
    CONN_STREAM,
};

struct http_conn {
    struct http_conn *prev, *next;
    struct http_server *server;
    struct http_engine *engine;
    struct MHD_Connection *mhd; /* NULL until libmicrohttpd has taken it over */
    int fd;                     /* closed by libmicrohttpd */
    struct http_peer peer;
    enum conn_phase phase;
    uint64_t since_ns;
    struct http_exchange *x;
    bool suspended, cut;
    bool fresh; /* in this phase not yet checked whether the peer has left */
    /* Of http-conn.c, for local peers that leave before their request is read: */
    bool begun;  /* bytes of its first request were read */
    char *early; /* what is about to be read; NULL: nothing, or not kept */
    size_t early_len;
    int far; /* the other end of a socket pair instead of the peer; -1: none */
    struct http_conn *next_gone;
};

/* One libmicrohttpd daemon: all plain connections, or those of one certificate. */
struct http_engine {
    struct http_engine *next;
    struct http_server *server;
    struct MHD_Daemon *mhd;
    struct loop_fd *ready;
    struct loop_timer *again;
    struct http_conn *adding; /* the connection being added to libmicrohttpd */
    unsigned conns;
    bool retired;           /* no new connections: freed with its last one */
    char *cert, *key;       /* PEM texts, kept while it runs; NULL: plain */
    bool running;           /* inside MHD_run */
    bool resumed;           /* a connection was, since MHD_run began */
    struct http_conn *gone; /* dropped before their request was begun, the first first */
};

struct http_listener {
    struct http_listener *next;
    struct http_server *server;
    struct loop_fd *source;
    struct loop_timer *pause; /* out of descriptors: no accept() before */
    struct http_engine *engine;
    struct http_engine *loaded; /* http_load_tls(); NULL: none */
    int fd;
    unsigned id;
    uint16_t port;
    char *path;        /* of a unix socket that we made: removed at the end … */
    uint64_t dev, ino; /* … if these still match */
    char *cert_path, *key_path;
};

struct http_server {
    struct loop *loop;
    http_handler_fn handler;
    http_body_fn body;
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
/* Takes over conn and its descriptor, also on failure. */
void engine_add(struct http_engine *e, struct http_conn *conn, const void *address,
                unsigned address_len);
/* Runs it until nothing more can be done for now. */
void engine_run(struct http_engine *e);
/* Makes the engine run soon. */
void engine_kick(struct http_engine *e);
void engine_resume(struct http_conn *conn);

/* Before l->engine is used: a plain listener gets its engine with its first connection.
 */
int listener_engine(struct http_listener *l, uw_error *err);
int conn_listen(struct http_listener *l, uw_error *err); /* l->fd is listening */
void conn_accept(struct http_listener *l);
void conn_phase(struct http_conn *conn, enum conn_phase phase);
void conn_cut(struct http_conn *conn);
/* Finds peers that had left before their last bytes were read. */
void conn_look(struct http_engine *e);
void conn_free(struct http_conn *conn);
/* Before libmicrohttpd runs: keeps what it may drop. */
void conn_keep_early(struct http_engine *e);
/* libmicrohttpd closes the connection.  Whether its request is to be read once more. */
bool conn_comes_again(struct http_conn *conn);
/* After it has run: begins such requests anew. */
void conn_begin_again(struct http_engine *e);
void conn_refused(struct http_server *s, const struct http_peer *peer, const char *cause,
                  const char *detail);
int conn_sweep(struct loop_timer *timer, uint64_t now_ns, void *user);
void conn_sweep_start(struct http_server *s);
/* Whether peer may send a body above the common bound now. */
bool conn_may_be_large(const struct http_server *s, const struct http_peer *peer);
/* Whether peer may open another stream. */
bool conn_may_stream(const struct http_server *s, const struct http_peer *peer);

#endif
