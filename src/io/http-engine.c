/* libmicrohttpd, driven by the loop. The loop waits for its epoll descriptor; it has no
 * listening socket, no thread and no time limits of its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/http-inside.h"
#include "io/mhd.h"

enum {
    POOL_BYTES = 16 * 1024, /* memory of a connection in libmicrohttpd: header, reply */
    POOL_STEP = 1024,
    STREAM_BLOCK = 2048,
    DISCARD_BYTES = 1024 * 1024, /* of a body that is too large, before the 413 */
};

/* ---- parts of a request ---- */

static struct http_conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        microhttpd->get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

const char *http_header(const struct http_exchange *x, const char *name)
{
    for (const struct http_field *f = x->given; f && f->name; f++)
        if (strcasecmp(f->name, name) == 0)
            return f->value;
    if (!x->conn || !x->conn->mhd || x->conn->x != x)
        return NULL;
    return microhttpd->lookup_connection_value(x->conn->mhd, MHD_HEADER_KIND, name);
}

static void resume(struct http_exchange *x)
{
    engine_resume(x->conn);
}

static void refused(struct http_exchange *x, const char *cause, const char *detail)
{
    conn_refused(x->conn->server, x->peer, cause, detail);
}

static bool may_stream(const struct http_exchange *x)
{
    return conn_may_stream(x->conn->server, x->peer);
}

static const struct exchange_calls calls = {
    .resume = resume, .refused = refused, .may_stream = may_stream};

/* The request line has been read. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http_engine *e = cls;
    struct http_conn *conn = conn_of(mhd);
    struct http_exchange *x = exchange_new();

    if (!x || !conn) {
        exchange_free(x);
        return NULL;
    }
    x->calls = &calls;
    x->stats = &e->server->stats;
    x->loop = e->server->loop;
    x->conn = conn;
    x->peer = &conn->peer;
    conn->x = x;
    x->line = uri ? uri : "";
    x->line_len = strlen(x->line);
    x->refused = http_target_parse(uri ? uri : "", &x->target, &x->why);
    return x;
}

struct head {
    unsigned hosts, lengths, encodings;
    bool bad_encoding;
    const char *length;
};

static enum MHD_Result on_field(void *cls, enum MHD_ValueKind kind, const char *key,
                                const char *value)
{
    struct head *h = cls;
    (void)kind;

    if (strcasecmp(key, "Host") == 0)
        h->hosts++;
    if (strcasecmp(key, "Content-Length") == 0) {
        h->lengths++;
        h->length = value;
    }
    if (strcasecmp(key, "Transfer-Encoding") == 0) {
        h->encodings++;
        h->bad_encoding |= !value || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

/* Checks the announced length of the body. */
static void judge_length(struct http_exchange *x, uint64_t length)
{
    const struct http_server *s = x->conn->server;

    if (length <= s->limits.body_bytes)
        return;
    if (!s->body || length > s->body(x, s->user)) {
        x->refused = 413;
        x->why = "the body is too large";
    } else if (!conn_may_be_large(s, x->peer)) {
        x->refused = 503;
        x->why = "other large bodies are being read: ask again";
    } else {
        x->body_max = length;
    }
}

/* Checks for headers that another HTTP implementation may read as two requests. */
static void judge_head(struct http_exchange *x, struct MHD_Connection *mhd,
                       const char *version)
{
    const struct http_limits *limits = &x->conn->server->limits;
    const union MHD_ConnectionInfo *size =
        microhttpd->get_connection_info(mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct head h = {0};
    uint64_t length = 0;

    (void)microhttpd->get_connection_values(mhd, MHD_HEADER_KIND, on_field, &h);
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        x->refused = 505;
        x->why = "HTTP 1.0 and 1.1 are served";
    } else if (version != x->line + x->line_len + 1) {
        x->refused = 400; /* the target contained a NUL */
        x->why = "the request line is broken";
    } else if (size && size->header_size > limits->head_bytes) {
        x->refused = 431;
        x->why = "the header is too large";
    } else if (h.hosts > 1 || h.lengths > 1 || h.encodings > 1 || h.bad_encoding ||
               (h.lengths > 0 && h.encodings > 0)) {
        x->refused = 400;
        x->why = "Host, Content-Length or Transfer-Encoding are ambiguous";
    } else if (h.lengths > 0 && parse_u64(h.length, &length, NULL) < 0) {
        x->refused = 400;
        x->why = "Content-Length is not a number";
    } else {
        judge_length(x, length);
    }
}

/* ---- replies ---- */

static ssize_t on_pull(void *cls, uint64_t at, char *buf, size_t max)
{
    struct http_exchange *x = cls;
    struct http_stream *stream = x->stream;
    (void)at;

    if (x->conn->cut)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t n = stream_pull(stream, buf, max);
    if (n > 0) {
        stream->moved_ns = loop_now_ns(x->loop);
        return (ssize_t)n;
    }
    if (stream->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    microhttpd->suspend_connection(x->conn->mhd);
    x->conn->suspended = true;
    return 0;
}

static struct MHD_Response *make_response(struct http_exchange *x)
{
    static char EMPTY[1];
    struct http_reply *r = &x->reply;

    if (x->state == X_STREAM)
        return microhttpd->create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK,
                                                         on_pull, x, NULL);
    if (r->len == 0)
        return microhttpd->create_response_from_buffer(0, EMPTY, MHD_RESPMEM_PERSISTENT);
    /* The text belongs to x, which outlives the response. */
    return microhttpd->create_response_from_buffer(r->len, r->body,
                                                   MHD_RESPMEM_PERSISTENT);
}

static bool add(struct MHD_Response *response, const char *name, const char *value)
{
    return microhttpd->add_response_header(response, name, value) == MHD_YES;
}

static enum MHD_Result queue(struct http_exchange *x, struct MHD_Connection *mhd)
{
    struct http_reply *r = &x->reply;
    const char *type = x->state == X_STREAM ? "text/event-stream" : r->type;
    struct MHD_Response *response = make_response(x);
    bool good = response && add(response, "Cache-Control", "no-store") &&
                add(response, "X-Content-Type-Options", "nosniff");

    if (type)
        good = good && add(response, "Content-Type", type);
    if (r->close)
        good = good && add(response, "Connection", "close");
    for (size_t i = 0; good && i < r->n_fields; i++)
        good = add(response, r->field[i].name, r->field[i].value);
    enum MHD_Result result = MHD_NO;
    if (good) {
        conn_phase(x->conn, x->state == X_STREAM ? CONN_STREAM : CONN_WRITING);
        result = microhttpd->queue_response(mhd, r->status, response);
    }
    if (response)
        microhttpd->destroy_response(response);
    return result;
}

/* A small send buffer: a slow reader must not receive old events from the kernel's
 * buffer.
 */
static void small_buffer(const struct http_conn *conn)
{
    int bytes = 16 * 1024;

    (void)setsockopt(conn->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* ---- libmicrohttpd's callbacks ---- */

static enum MHD_Result begin(struct http_exchange *x, struct MHD_Connection *mhd,
                             const char *method, const char *version)
{
    bool head;

    x->begun = true;
    x->stats->requests++;
    conn_phase(x->conn, CONN_BODY);
    if (!x->refused) {
        x->method = http_method_parse(method, &head);
        if (!x->method) {
            x->refused = 405;
            x->why = "the method is not one that is served";
        }
    }
    if (!x->refused)
        judge_head(x, mhd, version);
    if (!x->refused)
        return MHD_YES;
    exchange_refuse(x, x->refused, x->why);
    return queue(x, mhd);
}

static enum MHD_Result take_body(struct http_exchange *x, const char *data, size_t *len)
{
    int r = 0;

    if (x->too_large) { /* only chunked bodies reach this point */
        x->body_len += *len;
        if (x->body_len > DISCARD_BYTES)
            return MHD_NO;
    } else {
        r = exchange_body(x, data, *len,
                          x->body_max ? x->body_max : x->conn->server->limits.body_bytes);
    }
    *len = 0;
    return r == 0 || r == -EFBIG ? MHD_YES : MHD_NO;
}

static void call(struct http_exchange *x)
{
    x->state = X_CALLED;
    conn_phase(x->conn, CONN_KEPT);
    if (x->too_large) {
        x->body_len = 0;
        exchange_refuse(x, 413, "the body is too large");
        return;
    }
    x->conn->server->handler(x, x->conn->server->user);
}

/* libmicrohttpd requires eight parameters. */
/* NOLINTNEXTLINE(readability-function-size) */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version,
                                  const char *data, size_t *len, void **request)
{
    struct http_exchange *x = *request;
    (void)cls, (void)url;

    if (!x || x->conn->cut)
        return MHD_NO;
    if (!x->begun)
        return begin(x, mhd, method, version);
    if (*len > 0)
        return take_body(x, data, len);
    if (x->state == X_READING)
        call(x);
    if (x->state == X_CALLED) {
        x->state = X_KEPT;
        x->stats->kept++;
        x->conn->suspended = true;
        microhttpd->suspend_connection(mhd);
        return MHD_YES;
    }
    if (x->state == X_STREAM)
        small_buffer(x->conn);
    return x->state == X_ANSWERED || x->state == X_STREAM ? queue(x, mhd) : MHD_NO;
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **request,
                         enum MHD_RequestTerminationCode how)
{
    struct http_exchange *x = *request;
    (void)cls, (void)mhd, (void)how;

    if (!x)
        return;
    *request = NULL;
    if (x->stream)
        x->stats->streams--;
    exchange_gone(x);
    x->conn->x = NULL;
    conn_phase(x->conn, CONN_IDLE);
    exchange_free(x);
}

static void on_connection(void *cls, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_engine *e = cls;

    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        struct http_conn *conn = e->adding;
        e->adding = NULL;
        conn->mhd = mhd;
        *context = conn;
        return;
    }
    struct http_conn *conn = *context;
    *context = NULL;
    if (conn && !conn_comes_again(conn))
        conn_free(conn);
}

/* http-request.c decodes paths and queries; libmicrohttpd must not. */
static size_t on_unescape(void *cls, struct MHD_Connection *mhd, char *text)
{
    (void)cls, (void)mhd;
    return strlen(text);
}

/* libmicrohttpd's own error messages about a request or a handshake. */
__attribute__((format(printf, 2, 0))) static void on_words(void *cls, const char *format,
                                                           va_list args)
{
    /* Not refusals: TCP options on a unix socket, and peers that hung up early. */
    static const char *const NO_NEWS[] = {
        "Setting %s option",      "Failed to push the data", "Socket ",
        "Connection socket",      "Failed to send",          "Application reported",
        "Closing connection (app"};
    struct http_engine *e = cls;
    char text[128];

    for (size_t i = 0; i < n_elements(NO_NEWS); i++)
        if (strncmp(format, NO_NEWS[i], strlen(NO_NEWS[i])) == 0)
            return;
    (void)vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    if (e->server)
        conn_refused(e->server, NULL, e->cert ? "tls" : "protocol", text);
}

/* ---- running libmicrohttpd ---- */

static void finish(struct http_engine *e)
{
    struct http_engine **at = &e->server->engines;

    while (*at && *at != e)
        at = &(*at)->next;
    if (*at)
        *at = e->next;
    engine_free(e);
}

void engine_retire(struct http_engine *e)
{
    e->retired = true;
    if (e->conns == 0 && !e->running)
        finish(e);
}

/* MHD_get_timeout() does not report connections that a handler has resumed. */
void engine_run(struct http_engine *e)
{
    MHD_UNSIGNED_LONG_LONG ms = 0;
    bool more = true;

    e->running = true;
    for (int turn = 0; more && turn < 4; turn++) {
        e->resumed = false;
        conn_keep_early(e);
        (void)microhttpd->run(e->mhd);
        conn_begin_again(e);
        more = e->resumed || (microhttpd->get_timeout(e->mhd, &ms) == MHD_YES && ms == 0);
    }
    e->running = false;
    if (!more)
        conn_look(e);
    if (e->retired && e->conns == 0)
        finish(e);
    else if (more)
        engine_kick(e);
}

static int on_ready(struct loop_fd *source, int fd, int events, void *user)
{
    (void)source, (void)fd, (void)events;
    engine_run(user);
    return 0;
}

static int on_again(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns;
    engine_run(user);
    return 0;
}

void engine_kick(struct http_engine *e)
{
    loop_timer_set(e->again, loop_now_ns(e->server->loop), 0);
}

void engine_resume(struct http_conn *conn)
{
    if (!conn->suspended)
        return;
    conn->suspended = false;
    if (conn->phase == CONN_KEPT && conn->server->stats.kept > 0)
        conn->server->stats.kept--;
    microhttpd->resume_connection(conn->mhd);
    conn->engine->resumed = true;
    if (!conn->engine->running)
        engine_kick(conn->engine);
}

void engine_free(struct http_engine *e)
{
    if (!e)
        return;
    loop_fd_free(e->ready);
    loop_timer_free(e->again);
    if (e->mhd)
        microhttpd->stop_daemon(e->mhd);
    free(e->cert);
    if (e->key)
        explicit_bzero(e->key, strlen(e->key));
    free(e->key);
    free(e);
}

static struct MHD_Daemon *start(struct http_engine *e)
{
    static char PRIORITIES[] = "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    unsigned flags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_ERROR_LOG | (e->cert ? MHD_USE_TLS : 0);
    struct MHD_OptionItem plain[] = {
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)e->server->limits.connections, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, POOL_BYTES, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_INCREMENT, POOL_STEP, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, e->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, e->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, PRIORITIES},
        {MHD_OPTION_END, 0, NULL},
    };

    return microhttpd->start_daemon(
        flags, 0, NULL, NULL, on_request, e, MHD_OPTION_EXTERNAL_LOGGER, on_words, e,
        MHD_OPTION_URI_LOG_CALLBACK, on_uri, e, MHD_OPTION_UNESCAPE_CALLBACK, on_unescape,
        e, MHD_OPTION_NOTIFY_COMPLETED, on_completed, e, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, e, MHD_OPTION_ARRAY, plain, MHD_OPTION_ARRAY,
        e->cert ? tls : &tls[3], MHD_OPTION_END);
}

DEFINE_AUTO(struct http_engine *, engine_free);

int engine_new(struct http_server *s, const char *cert, const char *key,
               struct http_engine **ret, uw_error *err)
{
    auto_(engine_free) struct http_engine *e = calloc(1, sizeof *e);

    if (!e)
        return fail(err, -ENOMEM, "out of memory");
    e->server = s;
    e->cert = cert ? strdup(cert) : NULL;
    e->key = key ? strdup(key) : NULL;
    if ((cert && !e->cert) || (key && !e->key))
        return fail(err, -ENOMEM, "out of memory");
    int r = mhd_load(err);
    if (r < 0)
        return r;
    e->mhd = start(e);
    if (!e->mhd)
        return fail(err, -EINVAL, "libmicrohttpd does not start%s",
                    cert ? ": certificate and key do not fit" : "");
    const union MHD_DaemonInfo *info =
        microhttpd->get_daemon_info(e->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info)
        return fail(err, -ENOTSUP, "libmicrohttpd has no epoll here");
    r = loop_fd_new(s->loop, info->epoll_fd, LOOP_READ, on_ready, e, &e->ready, err);
    if (r == 0)
        r = loop_timer_new(s->loop, UINT64_MAX, 0, on_again, e, &e->again, err);
    if (r < 0)
        return r;
    e->next = s->engines;
    s->engines = e;
    *ret = take(e);
    return 0;
}

void engine_add(struct http_engine *e, struct http_conn *conn, const void *address,
                unsigned address_len)
{
    int fd = conn->fd;

    conn->engine = e;
    e->conns++;
    e->adding = conn;
    (void)microhttpd->add_connection(e->mhd, fd, address, address_len);
    if (e->adding) { /* no connection was made; libmicrohttpd closed fd */
        e->adding = NULL;
        conn_free(conn);
    }
    engine_kick(e);
}
