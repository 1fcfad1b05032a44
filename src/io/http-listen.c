/* Listening: unix sockets, TCP with TLS. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/address.h"
#include "io/file.h"
#include "io/http-inside.h"

enum { BACKLOG = 1024, PEM_BYTES = 256 * 1024 };

/* ---- the server ---- */

static void apply(struct http_limits *l, double speed)
{
    const struct {
        uint64_t *ns;
        uint64_t s;
    } times[] = {
        {&l->request_ns, 5}, {&l->idle_ns, 30},  {&l->keep_ns, 60},
        {&l->beat_ns, 15},   {&l->write_ns, 30},
    };

    for (size_t i = 0; i < n_elements(times); i++) {
        if (*times[i].ns == 0)
            *times[i].ns = times[i].s * NS_PER_S;
        /* Limits are real time for the peer, whatever the speed of the loop's clock. */
        *times[i].ns = (uint64_t)((double)*times[i].ns * speed);
    }
    l->connections = l->connections ? l->connections : 256;
    l->per_uid = l->per_uid ? l->per_uid : 32;
    l->per_address = l->per_address ? l->per_address : 16;
    l->streams = l->streams ? l->streams : 64;
    l->head_bytes = l->head_bytes ? l->head_bytes : 8192;
    l->body_bytes = l->body_bytes ? l->body_bytes : 64 * 1024ul;
}

void http_server_limits(struct http_server *s, const struct http_limits *limits)
{
    s->limits = *limits;
    apply(&s->limits, loop_speed(s->loop));
}

int http_server_new(const struct http_opts *opts, struct http_server **ret, uw_error *err)
{
    auto_(http_server_free) struct http_server *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    if (loop_is_virtual(opts->loop))
        return fail(err, -ENOTSUP, "no sockets in virtual time");
    s->loop = opts->loop;
    s->handler = opts->handler;
    s->body = opts->body;
    s->user = opts->user;
    http_server_limits(s, &opts->limits);
    s->refusals.fn = opts->log;
    s->refusals.user = opts->user;
    int r = loop_timer_new(s->loop, UINT64_MAX, 0, conn_sweep, s, &s->sweep, err);
    if (r < 0)
        return r;
    *ret = take(s);
    return 0;
}

static void remove_ours(const struct http_listener *l)
{
    struct stat st;

    if (l->path && lstat(l->path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        (uint64_t)st.st_dev == l->dev && (uint64_t)st.st_ino == l->ino)
        (void)unlink(l->path);
}

static void listener_free(struct http_listener *l)
{
    if (!l)
        return;
    remove_ours(l);
    loop_fd_free(l->source);
    loop_timer_free(l->pause);
    if (l->fd >= 0)
        (void)close(l->fd);
    free(l->path);
    free(l->cert_path);
    free(l->key_path);
    free(l);
}
DEFINE_AUTO(struct http_listener *, listener_free);

void http_server_free(struct http_server *s)
{
    if (!s)
        return;
    while (s->listeners) {
        struct http_listener *l = s->listeners;
        s->listeners = l->next;
        listener_free(l);
    }
    for (struct http_conn *c = s->conns; c; c = c->next)
        conn_cut(c);
    while (s->engines) {
        struct http_engine *e = s->engines;
        s->engines = e->next;
        engine_free(e);
    }
    loop_timer_free(s->sweep);
    free(s);
}

struct http_stats http_stats(const struct http_server *s)
{
    return s->stats;
}

/* ---- listeners ---- */

static int listener_new(struct http_server *s, int fd, unsigned id,
                        struct http_listener **ret, uw_error *err)
{
    struct http_listener *l = calloc(1, sizeof *l);

    if (!l) {
        (void)close(fd);
        return fail(err, -ENOMEM, "out of memory");
    }
    l->server = s;
    l->fd = fd;
    l->id = id;
    *ret = l;
    return 0;
}

/* From here on the server owns the listener.  engine is NULL: the plain one. */
static int start(struct http_listener **l, struct http_engine *engine, uw_error *err)
{
    struct http_server *s = (*l)->server;

    (*l)->engine = engine;
    int r = conn_listen(*l, err);
    if (r < 0)
        return r;
    (*l)->next = s->listeners;
    s->listeners = *l;
    *l = NULL;
    return 0;
}

int listener_engine(struct http_listener *l, uw_error *err)
{
    struct http_server *s = l->server;
    int r = 0;

    if (l->engine)
        return 0;
    if (!s->plain)
        r = engine_new(s, NULL, NULL, &s->plain, err);
    l->engine = s->plain;
    return r;
}

/* ---- unix sockets ---- */

/* 0: the path is free, or a socket without a listener. */
static int look_at_path(const char *path, const struct sockaddr_un *a, uw_error *err)
{
    struct stat st;

    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : fail(err, -errno, "%s: %s", path, strerror(errno));
    if (!S_ISSOCK(st.st_mode))
        return fail(err, -EEXIST, "%s: exists and is not a socket", path);
    auto_(fd_close) int fd =
        socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 || errno == EAGAIN)
        return fail(err, -EADDRINUSE, "%s: another program listens there", path);
    if (errno == ECONNREFUSED || errno == ENOENT)
        return 0;
    /* A socket of another type (EPROTOTYPE), or one without permission to connect. */
    return fail(err, -EADDRINUSE, "%s: %s", path, strerror(errno));
}

/* No other user can connect before the mode and the group are set: the socket is created
 * with mode 0600, and listen() comes last. bind() follows no link at the end of the
 * path.
 */
static int bind_unix(int fd, const struct http_unix *at, const struct sockaddr_un *a,
                     struct stat *ret, uw_error *err)
{
    if (unlink(at->path) < 0 && errno != ENOENT) /* stale: see look_at_path() */
        return fail(err, -errno, "%s: %s", at->path, strerror(errno));
    mode_t old = umask(0177);
    int r = bind(fd, (const struct sockaddr *)a, sizeof *a);
    int why = errno;
    (void)umask(old);
    if (r < 0)
        return fail(err, -why, "%s: %s", at->path, strerror(why));
    r = at->has_gid ? lchown(at->path, (uid_t)-1, at->gid) : 0;
    if (r == 0)
        r = chmod(at->path, at->mode);
    if (r == 0)
        r = lstat(at->path, ret);
    if (r == 0)
        r = listen(fd, BACKLOG);
    if (r < 0) {
        why = errno;
        (void)unlink(at->path);
        return fail(err, -why, "%s: %s", at->path, strerror(why));
    }
    return 0;
}

int http_listen_unix(struct http_server *s, const struct http_unix *at, uw_error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    auto_(listener_free) struct http_listener *l = NULL;
    struct stat st = {0};

    if (at->path[0] != '/' || strlen(at->path) >= sizeof a.sun_path)
        return fail(err, -ENAMETOOLONG, "'%s' is not an absolute path of up to %zu bytes",
                    at->path, sizeof a.sun_path - 1);
    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", at->path);
    int r = look_at_path(at->path, &a, err);
    if (r < 0)
        return r;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    r = listener_new(s, fd, at->id, &l, err);
    if (r == 0)
        r = bind_unix(fd, at, &a, &st, err);
    if (r < 0 || !l)
        return r;
    l->dev = (uint64_t)st.st_dev;
    l->ino = (uint64_t)st.st_ino;
    l->path = strdup(at->path);
    if (!l->path) {
        (void)unlink(at->path);
        return fail(err, -ENOMEM, "out of memory");
    }
    return start(&l, NULL, err);
}

/* ---- TCP ---- */

static int read_key(const char *path, char **ret, uw_error *err)
{
    struct stat st;

    if (stat(path, &st) == 0 && (st.st_mode & 0007) != 0)
        return fail(err, -EPERM, "%s: everybody may use this key: chmod o= it", path);
    return file_read(path, PEM_BYTES, ret, NULL, err);
}

static int tls_engine(struct http_server *s, const char *cert_path, const char *key_path,
                      struct http_engine **ret, uw_error *err)
{
    auto_(mem_free) char *cert = NULL;
    auto_(mem_free) char *key = NULL;

    int r = file_read(cert_path, PEM_BYTES, &cert, NULL, err);
    if (r == 0)
        r = read_key(key_path, &key, err);
    if (r < 0)
        return r;
    r = engine_new(s, cert, key, ret, err);
    if (key)
        explicit_bzero(key, strlen(key));
    return r < 0 ? fail_in(err, r, "%s, %s", cert_path, key_path) : 0;
}

static int with_tls(struct http_listener **l, const struct http_tls *tls, uw_error *err)
{
    struct http_engine *engine = NULL;

    int r = tls_engine((*l)->server, tls->cert, tls->key, &engine, err);
    if (r < 0)
        return r;
    (*l)->cert_path = strdup(tls->cert);
    (*l)->key_path = strdup(tls->key);
    if (!(*l)->cert_path || !(*l)->key_path)
        r = fail(err, -ENOMEM, "out of memory");
    else
        r = start(l, engine, err);
    if (r < 0)
        engine_retire(engine);
    return r;
}

static int bind_tcp(const char *address, int *ret, uw_error *err)
{
    struct addrinfo *found = NULL;
    int one = 1;

    int r = address_find(address, &found, err);
    if (r < 0)
        return r;
    auto_(fd_close) int fd =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0)
        r = fail(err, -errno, "%s: %s", address, strerror(errno));
    freeaddrinfo(found);
    if (r == 0)
        *ret = fd_take(&fd);
    return r;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return 0;
    if (a.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&a)->sin_port);
    if (a.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
    return 0;
}

int http_listen_tls(struct http_server *s, const char *address,
                    const struct http_tls *tls, unsigned id, uw_error *err)
{
    auto_(listener_free) struct http_listener *l = NULL;
    int fd = -1;

    if (!tls || !tls->cert || !tls->key)
        return fail(err, -EINVAL, "%s: TCP is served with a certificate and key alone",
                    address);
    int r = bind_tcp(address, &fd, err);
    if (r == 0)
        r = listener_new(s, fd, id, &l, err);
    if (r < 0 || !l)
        return r;
    l->port = port_of(fd);
    return with_tls(&l, tls, err);
}

int http_listen_loopback(struct http_server *s, const char *address, unsigned id,
                         uw_error *err)
{
    auto_(listener_free) struct http_listener *l = NULL;
    int fd = -1;

    int r = address_is_loopback(address, err);
    if (r == 0)
        r = bind_tcp(address, &fd, err);
    if (r == 0)
        r = listener_new(s, fd, id, &l, err);
    if (r < 0 || !l)
        return r;
    l->port = port_of(fd);
    return start(&l, NULL, err);
}

int http_check_tls(struct http_server *s, const struct http_tls *tls, uw_error *err)
{
    struct http_engine *engine = NULL;
    int r = tls_engine(s, tls->cert, tls->key, &engine, err);

    if (r == 0)
        engine_retire(engine);
    return r;
}

uint16_t http_port(const struct http_server *s, unsigned id)
{
    for (const struct http_listener *l = s->listeners; l; l = l->next)
        if (l->id == id)
            return l->port;
    return 0;
}

/* Drops the certificates that http_load_tls() read. */
static void unload_tls(struct http_server *s)
{
    for (struct http_listener *l = s->listeners; l; l = l->next)
        if (l->loaded)
            engine_retire(take(l->loaded));
}

int http_load_tls(struct http_server *s, uw_error *err)
{
    int r = 0;

    unload_tls(s);
    for (struct http_listener *l = s->listeners; l && r == 0; l = l->next)
        if (l->cert_path)
            r = tls_engine(s, l->cert_path, l->key_path, &l->loaded, err);
    if (r < 0)
        unload_tls(s);
    return r;
}

void http_use_tls(struct http_server *s)
{
    for (struct http_listener *l = s->listeners; l; l = l->next) {
        if (!l->loaded)
            continue;
        engine_retire(l->engine);
        l->engine = take(l->loaded);
    }
}
