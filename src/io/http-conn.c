/* Connections: limits on their number and time limits. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/http-inside.h"
#include "io/http-owner.h"
#include "io/json.h"

enum {
    ACCEPT_AT_ONCE = 64,   /* per call, so that other sources of the loop run */
    RESERVED = 16,         /* connections for root and this process */
    EARLY_MAX = 16 * 1024, /* of a request whose peer has left; a longer one is dropped */
};
static const uint64_t SWEEP_NS = 500 * NS_PER_MS;
static const uint64_t PAUSE_NS = 100 * NS_PER_MS;
static const unsigned STUCK = 10; /* times write_ns: a stream of which nothing is read */

union address {
    struct sockaddr sa;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
};

/* ---- peers ---- */

static int local_peer(int fd, struct http_peer *p)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return -errno;
    p->local = true;
    p->uid = cred.uid;
    p->gid = cred.gid;
    p->pid = cred.pid;
    (void)snprintf(p->name, sizeof p->name, "uid %u pid %d", cred.uid, cred.pid);
    return 0;
}

static int remote_peer(const union address *a, struct http_peer *p)
{
    const void *from = &a->in.sin_addr;
    int family = a->sa.sa_family;

    if (family == AF_INET6) {
        from = &a->in6.sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) {
            from = &a->in6.sin6_addr.s6_addr[12];
            family = AF_INET;
        }
    }
    if ((family != AF_INET && family != AF_INET6) ||
        !inet_ntop(family, from, p->address, sizeof p->address))
        return -EAFNOSUPPORT;
    p->uid = (uid_t)-1;
    p->gid = (gid_t)-1;
    http_network(p->address, p->network);
    (void)snprintf(p->name, sizeof p->name, "%s", p->address);
    return 0;
}

static bool same_peer(const struct http_peer *a, const struct http_peer *b)
{
    if (a->local != b->local)
        return false;
    return a->local ? a->uid == b->uid : strcmp(a->network, b->network) == 0;
}

static bool privileged(const struct http_peer *p)
{
    return p->local && (p->uid == 0 || p->uid == geteuid());
}

void conn_refused(struct http_server *s, const struct http_peer *peer, const char *cause,
                  const char *detail)
{
    char who[HTTP_PEER_MAX] = "unknown";

    /* Keyed by uid and network: each attempt may come from a new process or address. */
    if (peer && peer->local)
        (void)snprintf(who, sizeof who, "uid %u", peer->uid);
    else if (peer)
        (void)snprintf(who, sizeof who, "%s", peer->network);
    refuse_note(&s->refusals, &(struct refuse_what){cause, who, detail},
                loop_now_ns(s->loop));
    conn_sweep_start(s);
}

/* ---- bounds ---- */

/* NULL: accepted; otherwise the reason. */
static const char *one_too_many(const struct http_server *s, const struct http_peer *peer)
{
    unsigned same = 0;

    for (const struct http_conn *c = s->conns; c; c = c->next)
        same += same_peer(&c->peer, peer);
    if (s->stats.connections >= s->limits.connections)
        return "connections";
    if (privileged(peer))
        return NULL;
    unsigned reserved = s->limits.connections > 2 * RESERVED ? RESERVED : 0;
    if (s->stats.connections >= s->limits.connections - reserved)
        return "connections";
    if (same >= (peer->local ? s->limits.per_uid : s->limits.per_address))
        return peer->local ? "connections of a uid" : "connections of an address";
    return NULL;
}

bool conn_may_stream(const struct http_server *s, const struct http_peer *peer)
{
    unsigned same = 0, all = 0;

    for (const struct http_conn *c = s->conns; c; c = c->next)
        if (c->x && c->x->state == X_STREAM) {
            all++;
            same += same_peer(&c->peer, peer);
        }
    return all < s->limits.streams && (same < s->limits.streams / 2 || privileged(peer));
}

bool conn_may_be_large(const struct http_server *s, const struct http_peer *peer)
{
    unsigned same = 0, all = 0;

    for (const struct http_conn *c = s->conns; c; c = c->next)
        if (c->x && c->x->body_max > 0) {
            all++;
            same += same_peer(&c->peer, peer);
        }
    return all < HTTP_LARGE_MAX && (same == 0 || privileged(peer));
}

/* ---- accepting ---- */

static int on_pause_over(struct loop_timer *timer, uint64_t now_ns, void *user);

static int on_connect(struct loop_fd *source, int fd, int events, void *user)
{
    (void)source, (void)fd, (void)events;
    conn_accept(user);
    return 0;
}

int conn_listen(struct http_listener *l, uw_error *err)
{
    return loop_fd_new(l->server->loop, l->fd, LOOP_READ, on_connect, l, &l->source, err);
}

static int on_pause_over(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct http_listener *l = user;
    (void)now_ns;

    if (conn_listen(l, NULL) < 0) /* out of memory as well: try later */
        loop_timer_set(timer, loop_now_ns(l->server->loop) + PAUSE_NS, 0);
    return 0;
}

/* Out of descriptors or memory: stop accepting for a while instead of spinning. */
static void pause_listening(struct http_listener *l, int why)
{
    struct loop *loop = l->server->loop;

    conn_refused(l->server, NULL, "accept", strerror(why));
    if (!l->pause &&
        loop_timer_new(loop, UINT64_MAX, 0, on_pause_over, l, &l->pause, NULL) < 0)
        return;
    loop_fd_free(l->source);
    l->source = NULL;
    loop_timer_set(l->pause, loop_now_ns(loop) + PAUSE_NS, 0);
}

/* Answers a request that cannot be read because a library is missing, so that the client
 * learns the reason.
 */
static void say_why(int fd, const char *why)
{
    struct json_out *o = json_out_new();
    auto_(mem_free) char *body = NULL;

    json_out_object(o, NULL);
    json_out_text(o, "error", why);
    json_out_end(o);
    if (json_out_string(o, &body, NULL) == 0) {
        char text[512];
        int n = snprintf(text, sizeof text,
                         "HTTP/1.0 503 Service Unavailable\r\n"
                         "Content-Type: application/json\r\n"
                         "Content-Length: %zu\r\n\r\n%s",
                         strlen(body), body);
        if (n > 0 && (size_t)n < sizeof text)
            (void)send(fd, text, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    json_out_free(o);
}

/* Any user may use each address of 127.0.0.0/8: bounds and rates apply per user here, as
 * on a unix socket, so that no user can use up those of a scraper.
 */
static void loopback_network(int fd, struct http_peer *peer)
{
    uid_t uid;

    if (http_owner(fd, &uid) == 0)
        (void)snprintf(peer->network, sizeof peer->network, "loopback uid %u", uid);
    else
        (void)snprintf(peer->network, sizeof peer->network, "loopback");
}

static void take_in(struct http_listener *l, int fd, const union address *a,
                    socklen_t len)
{
    struct http_server *s = l->server;
    struct http_peer peer = {.listener = l->id};
    const char *many = NULL;
    uw_error err = {""};

    int r = a->sa.sa_family == AF_UNIX ? local_peer(fd, &peer) : remote_peer(a, &peer);
    if (!peer.local && !l->cert_path)
        loopback_network(fd, &peer);
    if (r == 0)
        many = one_too_many(s, &peer);
    if (r == 0 && !many && (r = listener_engine(l, &err)) < 0) {
        conn_refused(s, &peer, "no server", err.text);
        if (peer.local)
            say_why(fd, err.text);
    }
    struct http_conn *conn = r == 0 && !many ? calloc(1, sizeof *conn) : NULL;
    if (!conn) {
        s->stats.refused_connections++;
        if (many)
            conn_refused(s, &peer, "too many connections", many);
        (void)close(fd);
        return;
    }
    conn->server = s;
    conn->fd = fd;
    conn->far = -1;
    conn->peer = peer;
    conn->fresh = true;
    conn->since_ns = loop_now_ns(s->loop);
    conn->next = s->conns;
    if (conn->next)
        conn->next->prev = conn;
    s->conns = conn;
    s->stats.connections++;
    conn_sweep_start(s);
    engine_add(l->engine, conn, a, len);
}

/* Accepts one request after the other in the order of connection, because a peer that
 * has left is served later than one that waits: a job's end must not precede its start.
 */
void conn_accept(struct http_listener *l)
{
    if (l->engine)
        engine_run(l->engine);
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        union address a = {0};
        socklen_t len = sizeof a;
        int fd = accept4(l->fd, &a.sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                pause_listening(l, errno);
            return;
        }
        take_in(l, fd, &a, len);
        if (l->engine)
            engine_run(l->engine);
    }
}

/* ---- phases and the end of connections ---- */

void conn_phase(struct http_conn *conn, enum conn_phase phase)
{
    conn->phase = phase;
    conn->fresh = true;
    conn->since_ns = loop_now_ns(conn->server->loop);
}

void conn_free(struct http_conn *conn)
{
    struct http_server *s = conn->server;

    if (conn->prev)
        conn->prev->next = conn->next;
    else
        s->conns = conn->next;
    if (conn->next)
        conn->next->prev = conn->prev;
    s->stats.connections--;
    conn->engine->conns--;
    if (conn->far >= 0)
        (void)close(conn->far);
    free(conn->early);
    free(conn);
}

void conn_cut(struct http_conn *conn)
{
    if (conn->cut)
        return;
    conn->cut = true;
    /* libmicrohttpd reads the end of file and closes the connection. */
    (void)shutdown(conn->fd, SHUT_RDWR);
    if (conn->x)
        exchange_gone(conn->x);
    engine_resume(conn);
    engine_kick(conn->engine);
}

/* Whether the peer has closed its end and no byte is left to read. */
static bool at_end(const struct http_conn *conn)
{
    char c;

    return recv(conn->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* libmicrohttpd polls edge-triggered: an end of file that came together with the last
 * bytes raises no second event.
 */
void conn_look(struct http_engine *e)
{
    for (struct http_conn *c = e->server->conns; c; c = c->next) {
        if (c->engine != e || !c->fresh || !c->mhd || c->cut)
            continue;
        c->fresh = false;
        if ((c->phase == CONN_NEW || c->phase == CONN_IDLE || c->phase == CONN_BODY) &&
            at_end(c))
            conn_cut(c);
    }
}

/* ---- local peers that leave before their request is read ---- */

/* Such as a scheduler's hook at its deadline: its request is carried out all the same.
 * libmicrohttpd reads such a request and drops it, because epoll reports that the peer
 * has hung up.  Its bytes are therefore kept while libmicrohttpd runs; if it has dropped
 * them, they are passed to it again through a socket pair.
 */

/* Whether the request only reads, so that it has no effect without its answer. */
static bool only_asks(const char *bytes, size_t n)
{
    return (n >= 4 && memcmp(bytes, "GET ", 4) == 0) ||
           (n >= 5 && memcmp(bytes, "HEAD ", 5) == 0);
}

static void keep(struct http_conn *conn)
{
    char bytes[EARLY_MAX];
    ssize_t n = recv(conn->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);

    if (n <= 0 || only_asks(bytes, (size_t)n))
        return;
    conn->early = malloc((size_t)n);
    if (!conn->early)
        return;
    memcpy(conn->early, bytes, (size_t)n);
    conn->early_len = (size_t)n;
}

void conn_keep_early(struct http_engine *e)
{
    for (struct http_conn *c = e->server->conns; c; c = c->next)
        if (c->engine == e && c->mhd && c->phase == CONN_NEW && c->peer.local &&
            !c->cut && !c->begun && !c->early && c->far < 0)
            keep(c);
}

bool conn_comes_again(struct http_conn *conn)
{
    struct pollfd p = {.fd = conn->fd, .events = POLLIN};
    struct http_conn **last = &conn->engine->gone;

    if (!conn->early || conn->phase != CONN_NEW || conn->cut || poll(&p, 1, 0) != 1 ||
        !(p.revents & POLLHUP))
        return false;
    conn->mhd = NULL;
    while (*last)
        last = &(*last)->next_gone;
    *last = conn;
    return true;
}

/* Replaces the peer by one end of a socket pair, and writes its bytes to the other end.
 * False: nothing was changed.
 */
static bool stand_in(struct http_conn *conn)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return false;
    ssize_t n = send(pair[1], conn->early, conn->early_len, MSG_NOSIGNAL);
    if (n != (ssize_t)conn->early_len || shutdown(pair[1], SHUT_WR) < 0) {
        (void)close(pair[0]);
        (void)close(pair[1]);
        return false;
    }
    conn->fd = pair[0];
    conn->far = pair[1]; /* open until the reply is written */
    return true;
}

static void begin_again(struct http_engine *e, struct http_conn *conn)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX};

    conn->next_gone = NULL;
    bool stands_in = stand_in(conn);
    free(take(conn->early)); /* sent only once */
    if (!stands_in) {
        conn_free(conn);
        return;
    }
    conn_phase(conn, CONN_NEW);
    e->conns--; /* it is counted again */
    engine_add(e, conn, &address, sizeof address);
    e->resumed = true;
}

void conn_begin_again(struct http_engine *e)
{
    for (struct http_conn *c = e->server->conns; c; c = c->next) {
        if (c->engine != e || !c->early || !c->mhd)
            continue;
        c->begun = true; /* read, in whole or in part */
        free(take(c->early));
    }
    while (e->gone) {
        struct http_conn *conn = e->gone;
        e->gone = conn->next_gone;
        begin_again(e, conn);
    }
}

/* ---- time limits ---- */

static bool peer_left(const struct http_conn *conn)
{
    struct pollfd p = {.fd = conn->fd, .events = POLLRDHUP};

    return poll(&p, 1, 0) == 1 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

static void too_slow(struct http_conn *conn, const char *cause)
{
    conn->server->stats.cut++;
    if (cause)
        conn_refused(conn->server, &conn->peer, cause, NULL);
    conn_cut(conn);
}

static void sweep_kept(struct http_conn *conn, uint64_t age)
{
    struct http_exchange *x = conn->x;

    if (peer_left(conn)) {
        conn_cut(conn);
    } else if (age >= conn->server->limits.keep_ns && x && x->state == X_KEPT) {
        http_gone_fn gone = x->gone;
        void *user = x->gone_user;
        conn->server->stats.cut++;
        if (gone)
            gone(x, user);
        http_fail(x, 504, "no answer in time");
    }
}

static void sweep_stream(struct http_conn *conn, uint64_t now_ns)
{
    struct http_stream *stream = conn->x ? conn->x->stream : NULL;
    const struct http_limits *limits = &conn->server->limits;

    if (!stream)
        return;
    uint64_t since =
        stream->moved_ns > conn->since_ns ? stream->moved_ns : conn->since_ns;
    if (peer_left(conn)) {
        conn_cut(conn);
    } else if (!stream_empty(stream) && now_ns - since >= STUCK * limits->write_ns) {
        too_slow(conn, "a stream that is not read");
    } else if (now_ns - since >= limits->beat_ns && stream_empty(stream)) {
        stream_beat(stream);
        engine_resume(conn);
    }
}

static void sweep_one(struct http_conn *conn, uint64_t now_ns)
{
    const struct http_limits *limits = &conn->server->limits;
    uint64_t age = now_ns - conn->since_ns;

    switch (conn->phase) {
    case CONN_NEW:
        if (age >= limits->request_ns)
            too_slow(conn, "no request in time");
        break;
    case CONN_BODY:
        if (age >= limits->request_ns)
            too_slow(conn, "no whole request in time");
        break;
    case CONN_IDLE:
        if (age >= limits->idle_ns)
            too_slow(conn, NULL);
        break;
    case CONN_WRITING:
        if (age >= limits->write_ns)
            too_slow(conn, "a reply that is not read");
        break;
    case CONN_KEPT:
        sweep_kept(conn, age);
        break;
    case CONN_STREAM:
        sweep_stream(conn, now_ns);
        break;
    }
}

int conn_sweep(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct http_server *s = user;
    (void)timer;

    now_ns = loop_now_ns(s->loop); /* the timer's own time may be before since_ns */
    /* This loop frees no connection: only an engine frees them, when it runs. */
    for (struct http_conn *c = s->conns; c; c = c->next)
        if (!c->cut)
            sweep_one(c, now_ns);
    bool more = refuse_tick(&s->refusals, now_ns);
    if (!s->conns && !more) {
        s->sweeping = false;
        loop_timer_set(s->sweep, UINT64_MAX, 0);
    }
    return 0;
}

/* No timer runs while there are no connections. */
void conn_sweep_start(struct http_server *s)
{
    uint64_t period = (uint64_t)((double)SWEEP_NS * loop_speed(s->loop));

    if (s->sweeping)
        return;
    s->sweeping = true;
    loop_timer_slack(s->sweep, 2 * period); /* a sweep joins another wake-up */
    loop_timer_set(s->sweep, loop_now_ns(s->loop) + period, period);
}
