/* The HTTP server on a unix socket, asked byte by byte from another thread.  What the
 * client waits for is a byte, an end or a count, never a time: any machine may be slow.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/units.h"
#include "io/http.h"
#include "open-files.h"
#include "tap.h"

enum { MS = 1000 * 1000, LONG_MS = 60000 };

struct rig {
    struct loop *loop;
    struct http_server *s;
    struct loop_fd *wake;
    int pipe[2];
    char path[108];
    void (*client)(struct rig *rig);
    struct http_exchange *kept;
    struct http_stream *stream;
    struct loop_timer *timer;
    atomic_int gone, closed, handled, bodies, holds, go;
    char order[256]; /* what was handled: method, path, length of the body */
    atomic_uint logged;
    char log[4096];
};

/* ---- the handler ---- */

static void on_gone(struct http_exchange *x, void *user)
{
    struct rig *rig = user;
    (void)x;
    rig->gone++;
}

static void on_closed(struct http_stream *stream, void *user)
{
    struct rig *rig = user;
    (void)stream;
    rig->closed++;
    rig->stream = NULL;
}

static int on_later(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    (void)now_ns;

    loop_timer_free(timer);
    rig->timer = NULL;
    http_reply(rig->kept, 202, "text/plain", "later", 5, NULL);
    return 0;
}

static int on_event(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct rig *rig = user;
    char data[2048];
    (void)now_ns;

    if (!rig->stream) {
        loop_timer_free(timer);
        rig->timer = NULL;
        return 0;
    }
    memset(data, 'x', sizeof data);
    data[sizeof data - 1] = '\0';
    for (int i = 0; i < 16; i++)
        (void)http_stream_send(rig->stream, "e", data);
    return 0;
}

static void begin_stream(struct rig *rig, struct http_exchange *x)
{
    struct http_stream_opts opts = {.events = 8, .on_closed = on_closed, .user = rig};
    uw_error err;

    if (rig->stream || http_stream_begin(x, &opts, &rig->stream, &err) < 0) {
        http_fail(x, 429, "no stream");
        return;
    }
    (void)http_stream_send(rig->stream, "hello", "1");
    if (strcmp(http_path(x), "/flood") == 0)
        (void)loop_timer_new(rig->loop, 0, MS, on_event, rig, &rig->timer, NULL);
}

static void handler(struct http_exchange *x, void *user)
{
    static const struct http_field FIELDS[] = {{"X-More", "yes"}, {NULL, NULL}};
    struct rig *rig = user;
    const char *path = http_path(x);
    char text[256];
    size_t len;

    (void)http_body(x, &len);
    size_t n_order = strlen(rig->order);
    (void)snprintf(rig->order + n_order, sizeof rig->order - n_order, "%s %s %zu, ",
                   http_method_name(http_method(x)), path, len);
    rig->handled++;
    if (strcmp(path, "/hold") == 0) { /* the server is stopped */
        rig->holds = 1;
        while (!rig->go)
            (void)poll(NULL, 0, 1);
        http_reply(x, 200, "text/plain", "held", 4, NULL);
    } else if (strcmp(path, "/later") == 0 || strcmp(path, "/never") == 0) {
        rig->kept = x;
        http_on_gone(x, on_gone, rig);
        if (path[1] == 'l')
            (void)loop_timer_new(rig->loop, loop_now_ns(rig->loop) + 20 * NS_PER_MS, 0,
                                 on_later, rig, &rig->timer, NULL);
    } else if (strcmp(path, "/stream") == 0 || strcmp(path, "/flood") == 0) {
        begin_stream(rig, x);
    } else if (strcmp(path, "/tell") == 0) {
        (void)http_stream_send(rig->stream, "told", "2");
        http_reply(x, 200, "text/plain", "told", 4, NULL);
    } else if (strcmp(path, "/deny") == 0) {
        http_fail(x, 403, "you may not");
    } else {
        int n = snprintf(text, sizeof text, "%s %s %zu uid %u",
                         http_method_name(http_method(x)), path, len, http_peer(x)->uid);
        http_reply(x, 200, "text/plain", text, (size_t)n, FIELDS);
    }
}

/* The paths that take more. */
static size_t on_body(const struct http_exchange *x, void *user)
{
    struct rig *rig = user;

    rig->bodies++;
    return strcmp(http_path(x), "/large") == 0 && http_method(x) == HTTP_POST ? 200000
                                                                              : 0;
}

static void on_log(const char *line, void *user)
{
    struct rig *rig = user;
    size_t n = strlen(rig->log);

    rig->logged++;
    (void)snprintf(rig->log + n, sizeof rig->log - n, "%s\n", line);
}

/* ---- the client ---- */

static int dial(const struct rig *rig)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", rig->path);
    if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Reads until the peer closes or `until` is in it. */
static size_t hear(int fd, char *text, size_t size, const char *until)
{
    size_t n = 0;

    text[0] = '\0';
    while (n + 1 < size && !(until && strstr(text, until))) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, LONG_MS) != 1)
            break;
        ssize_t got = read(fd, text + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        text[n] = '\0';
    }
    return n;
}

static bool say(int fd, const char *text, size_t len)
{
    return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* A connection of a request, and what came back of it.  A server that cuts off slow
 * clients may do so before this thread runs again: then once more.
 */
static int ask(const struct rig *rig, const char *request, char *text, size_t size,
               const char *until)
{
    for (int i = 0;; i++) {
        int fd = dial(rig);
        if ((say(fd, request, strlen(request)) && hear(fd, text, size, until) > 0) ||
            i == 100)
            return fd;
        (void)close(fd);
    }
}

/* Waits until f(rig) is true. */
static bool await(struct rig *rig, bool (*f)(struct rig *rig))
{
    int i = 0;

    for (; i < LONG_MS && !f(rig); i++)
        (void)poll(NULL, 0, 1);
    return i < LONG_MS;
}

static bool none_connected(struct rig *rig)
{
    return http_stats(rig->s).connections == 0;
}

static bool none_streams(struct rig *rig)
{
    return http_stats(rig->s).streams == 0;
}

static int drive_done(struct loop_fd *source, int fd, int events, void *user)
{
    struct rig *rig = user;
    (void)source, (void)fd, (void)events;
    loop_stop(rig->loop, 0);
    return 0;
}

static void *client_thread(void *user)
{
    struct rig *rig = user;

    rig->client(rig);
    (void)!write(rig->pipe[1], "x", 1);
    return NULL;
}

static void drive(const char *name, void (*client)(struct rig *rig),
                  const struct http_limits *limits)
{
    char dir[] = "/tmp/uw-http-XXXXXX";
    struct rig rig = {.client = client};
    struct http_opts opts = {
        .handler = handler, .body = on_body, .log = on_log, .user = &rig};
    struct http_unix at = {.mode = 0666, .id = 3};
    pthread_t thread;
    uw_error err = {""};

    if (!mkdtemp(dir) || pipe(rig.pipe) < 0 ||
        loop_new_real((struct loop_clock){0, 1}, &rig.loop, &err) < 0)
        return;
    (void)snprintf(rig.path, sizeof rig.path, "%s/s", dir);
    at.path = rig.path;
    opts.loop = rig.loop;
    if (limits)
        opts.limits = *limits;
    int r = http_server_new(&opts, &rig.s, &err);
    if (r == 0)
        r = http_listen_unix(rig.s, &at, &err);
    if (ok(r == 0, "%s: serves %s", name, err.text)) {
        (void)loop_fd_new(rig.loop, rig.pipe[0], LOOP_READ, drive_done, &rig, &rig.wake,
                          &err);
        (void)pthread_create(&thread, NULL, client_thread, &rig);
        (void)loop_run(rig.loop, &err);
        (void)pthread_join(thread, NULL);
    }
    loop_fd_free(rig.wake);
    loop_timer_free(rig.timer);
    http_server_free(rig.s);
    ok(access(rig.path, F_OK) < 0, "%s: its socket is gone", name);
    loop_free(rig.loop);
    (void)close(rig.pipe[0]);
    (void)close(rig.pipe[1]);
    (void)rmdir(dir);
}

/* ---- single requests ---- */

#define H "Host: x\r\n"
/* Sent with the NUL that stands for its "#". */
#define NUL_IN_PATH "GET /a#b HTTP/1.1\r\n" H "\r\n"
/* clang-format off */
static const struct {
    const char *name, *request, *want, *also;
} requests[] = {
    {"a request", "GET /a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200", "GET /a 0 uid"},
    {"its headers", "GET /a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200", "X-More: yes"},
    {"HTTP 1.0", "GET /a HTTP/1.0\r\n\r\n", "HTTP/1.", "GET /a 0 uid"},
    {"a body", "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc", "HTTP/1.1 200", "POST /a 3"},
    {"a chunked body", "PUT /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
     "HTTP/1.1 200", "PUT /a 5"},
    {"DELETE", "DELETE /a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 200", "DELETE /a 0"},
    {"a reply later", "GET /later HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 202", "later"},
    {"a refusal of the handler", "GET /deny HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 403", "you may not"},
    {"no Host", "GET /a HTTP/1.1\r\n\r\n", "HTTP/1.1 400", ""},
    {"two Hosts", "GET /a HTTP/1.1\r\n" H H "\r\n", "HTTP/1.1 400", "ambiguous"},
    {"HTTP 2.0", "GET /a HTTP/2.0\r\n" H "\r\n", "", ""},
    {"HTTP 1.2", "GET /a HTTP/1.2\r\n" H "\r\n", "HTTP/1.1 505", "served"},
    {"TRACE", "TRACE /a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 405", "Allow: GET"},
    {"a method of its own", "BREW /a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 405", "method"},
    {"CONNECT", "CONNECT a:1 HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "not a path"},
    {"..", "GET /a/../b HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "not one that is served"},
    {"an escaped ..", "GET /a/%2e%2e/b HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "path"},
    {"an escaped /", "GET /a%2fb HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "path"},
    {"an escaped NUL", "GET /a%00 HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "path"},
    {"//", "GET //a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "path"},
    {"another's URL", "GET http://x/a HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "not a path"},
    {"a key twice", "GET /a?b=1&b=2 HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 400", "twice"},
    {"two lengths", "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
     "HTTP/1.1 400", "ambiguous"},
    {"length and chunks", "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 400", "ambiguous"},
    {"an encoding unknown", "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\nabc", "HTTP/1.1 400", "ambiguous"},
    {"a length that is none", "POST /a HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", "HTTP/1.1 400", ""},
    {"a length above all", "POST /a HTTP/1.1\r\n" H "Content-Length: 99999999999999999999999\r\n\r\n", "HTTP/1.1 413", ""},
    {"a length too large", "POST /a HTTP/1.1\r\n" H "Content-Length: 65537\r\n\r\n", "HTTP/1.1 413", "too large"},
    {"a NUL in the path", NUL_IN_PATH, "HTTP/1.1 400", "broken"},
    {"no HTTP", "\x16\x03\x01\x02\x00\x01\r\n\r\n", "", ""},
};
/* clang-format on */

static void each_request(struct rig *rig)
{
    char text[4096];

    for (size_t i = 0; i < n_elements(requests); i++) {
        int fd = dial(rig);
        char sent[512];
        size_t len = strlen(requests[i].request);
        memcpy(sent, requests[i].request, len + 1);
        if (strcmp(sent, NUL_IN_PATH) == 0)
            *strchr(sent, '#') = '\0';
        (void)say(fd, sent, len);
        const char *until = !requests[i].want[0] ? NULL
                            : *requests[i].also  ? requests[i].also
                                                 : "\r\n\r\n";
        if (!requests[i].want[0]) /* the server need not answer: it sees the end */
            (void)shutdown(fd, SHUT_WR);
        (void)hear(fd, text, sizeof text, until);
        size_t n = strlen(requests[i].want);
        if (!ok(n > 0 ? strncmp(text, requests[i].want, n) == 0 &&
                            strstr(text, requests[i].also)
                      : !strstr(text, " 200 "),
                "%s", requests[i].name))
            printf("# %s\n", text);
        (void)close(fd);
    }
}

static void bodies_and_heads(struct rig *rig)
{
    static char text[300000];
    int fd = dial(rig);

    int n = snprintf(text, sizeof text,
                     "POST /a HTTP/1.1\r\n" H "Content-Length: 65536\r\n\r\n");
    memset(text + n, 'b', 65536);
    ok(say(fd, text, (size_t)n + 65536) && hear(fd, text, sizeof text, "uid") > 0 &&
           strstr(text, "POST /a 65536"),
       "a body of 64 KiB");
    /* The same connection goes on. */
    static const char TWO[] = "GET /1 HTTP/1.1\r\n" H "\r\nGET /2 HTTP/1.1\r\n" H "\r\n";
    ok(say(fd, TWO, sizeof TWO - 1) && hear(fd, text, sizeof text, "GET /2 0") > 0 &&
           strstr(text, "GET /1 0") && strstr(text, "GET /2 0"),
       "two requests at once");
    (void)close(fd);

    fd = dial(rig);
    n = snprintf(text, sizeof text,
                 "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 17; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "1000\r\n");
        memset(text + n, 'b', 4096);
        n += 4096;
        n += snprintf(text + n, sizeof text - (size_t)n, "\r\n");
    }
    n += snprintf(text + n, sizeof text - (size_t)n, "0\r\n\r\n");
    (void)say(fd, text, (size_t)n);
    (void)hear(fd, text, sizeof text, "too large");
    ok(strncmp(text, "HTTP/1.1 413", 12) == 0, "chunks of 68 KiB");
    (void)close(fd);

    static const int HEADS[] = {7900, 8400, 40000};
    for (size_t i = 0; i < n_elements(HEADS); i++) {
        fd = dial(rig);
        n = snprintf(text, sizeof text, "GET /a HTTP/1.1\r\n" H "X: ");
        memset(text + n, 'h', (size_t)HEADS[i]);
        n += HEADS[i];
        n += snprintf(text + n, sizeof text - (size_t)n, "\r\n\r\n");
        (void)say(fd, text, (size_t)n);
        (void)hear(fd, text, sizeof text, "\r\n\r\n");
        ok((strncmp(text, "HTTP/1.1 200", 12) == 0) == (i == 0) &&
               (i != 1 || strncmp(text, "HTTP/1.1 431", 12) == 0),
           "a header of %d bytes: %.12s", HEADS[i], text);
        (void)close(fd);
    }
}

/* A request with a body of len bytes, of which so many are sent. */
static int begin_large(const struct rig *rig, const char *path, size_t len, size_t sent)
{
    static char text[300000];
    int fd = dial(rig);

    int n = snprintf(text, sizeof text,
                     "POST %s HTTP/1.1\r\n" H "Content-Length: %zu\r\n\r\n", path, len);
    memset(text + n, 'b', sent);
    (void)say(fd, text, (size_t)n + sent);
    return fd;
}

static bool all_large(struct rig *rig)
{
    return rig->bodies == HTTP_LARGE_MAX;
}

static void large_bodies(struct rig *rig)
{
    int fd[HTTP_LARGE_MAX];
    char text[2000];

    for (size_t i = 0; i < n_elements(fd); i++)
        fd[i] = begin_large(rig, "/large", 200000, 199999);
    /* As many bodies above the common bound as are read at once. */
    ok(await(rig, all_large), "all have begun");
    int more = begin_large(rig, "/large", 65537, 0);
    (void)hear(more, text, sizeof text, "\r\n\r\n");
    (void)close(more);
    ok(strncmp(text, "HTTP/1.1 503", 12) == 0, "one large body too many: %.12s", text);
    for (size_t i = 0; i < n_elements(fd); i++) {
        (void)say(fd[i], "b", 1);
        (void)hear(fd[i], text, sizeof text, "uid");
        ok(strstr(text, "POST /large 200000"), "a large body where it is allowed: %.12s",
           text);
        (void)close(fd[i]);
    }
    static const struct {
        const char *what, *path;
        size_t len;
    } refused[] = {
        {"a body above what is allowed", "/large", 200001},
        {"a large body elsewhere", "/small", 65537},
    };
    for (size_t i = 0; i < n_elements(refused); i++) {
        more = begin_large(rig, refused[i].path, refused[i].len, 0);
        (void)hear(more, text, sizeof text, "too large");
        ok(strncmp(text, "HTTP/1.1 413", 12) == 0, "%s: %.12s", refused[i].what, text);
        (void)close(more);
    }
}

/* ---- time limits ---- */

#define NEVER "GET /never HTTP/1.1\r\n" H "\r\n"
#define STREAM "GET /stream HTTP/1.1\r\n" H "\r\n"
#define FLOOD "GET /flood HTTP/1.1\r\n" H "\r\n"
#define GET_A "GET /a HTTP/1.1\r\n" H "\r\n"

static void slow_ones(struct rig *rig)
{
    char text[512];
    int idle = ask(rig, GET_A, text, sizeof text, "uid");
    int silent = dial(rig), half = dial(rig), body = dial(rig), drip = dial(rig),
        unread = dial(rig), n = 0;

    (void)say(half, "GET /a HT", 9);
    (void)say(body, "POST /a HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nabc", 49);
    ok(strstr(text, "uid"), "one is served …");
    while (n < LONG_MS / 100 &&
           say(drip, n < 5 ? &"GET /"[n] : "a", 1)) { /* a byte each 100 ms */
        struct pollfd p = {.fd = drip, .events = POLLIN};
        (void)poll(&p, 1, 100);
        n++;
    }
    ok(hear(silent, text, sizeof text, NULL) == 0, "a silent connection is cut off");
    ok(hear(half, text, sizeof text, NULL) == 0, "half a header is");
    ok(hear(body, text, sizeof text, NULL) == 0, "half a body is");
    ok(n < LONG_MS / 100 && hear(drip, text, sizeof text, NULL) == 0,
       "a byte now and then is");
    ok(hear(idle, text, sizeof text, NULL) == 0, "… and an idle one after longer");
    (void)close(silent);
    (void)close(half);
    (void)close(body);
    (void)close(idle);
    (void)close(drip);
    (void)close(unread);
    int fd = ask(rig, NEVER, text, sizeof text, "\r\n\r\n");
    ok(strncmp(text, "HTTP/1.1 504", 12) == 0 && rig->gone == 1,
       "no answer in time: 504");
    (void)close(fd);
    ok(strstr(rig->log, "no request in time") && strstr(rig->log, "no whole request"),
       "said in the log");
    if (!ok(rig->logged == 2, "once each"))
        printf("# %s\n", rig->log);
    struct http_stats st = http_stats(rig->s);
    ok(st.cut >= 6, "counted: %ju", (uintmax_t)st.cut);
}

static bool one_handled(struct rig *rig)
{
    return rig->handled == 1;
}

static bool two_handled(struct rig *rig)
{
    return rig->handled == 2;
}

static void peer_goes(struct rig *rig)
{
    int fd = dial(rig);

    (void)say(fd, NEVER, strlen(NEVER));
    ok(await(rig, one_handled), "a request that is not answered");
    (void)close(fd);
    ok(await(rig, none_connected), "its connection is closed");
    is_int(rig->gone, 1, "a peer that leaves before the reply is noticed");
    fd = dial(rig);
    (void)say(fd, NEVER, strlen(NEVER));
    ok(await(rig, two_handled), "another"); /* the server is freed beside it */
}

static bool is_held(struct rig *rig)
{
    return rig->holds == 1;
}

static bool two_connected(struct rig *rig)
{
    return http_stats(rig->s).connections == 2;
}

static void leave(const struct rig *rig, const char *request)
{
    int fd = dial(rig);

    (void)say(fd, request, strlen(request));
    (void)close(fd);
}

#define HOLD "GET /hold HTTP/1.1\r\n" H "\r\n"
#define PUT(path, length) \
    "PUT " path " HTTP/1.1\r\n" H "Content-Length: " length "\r\n\r\n"

/* The server reads nothing until its peers have sent their requests and left. */
static void peers_leave_early(struct rig *rig)
{
    char text[512], *large = calloc(1, 20001);
    size_t files = open_files();
    int before = dial(rig);
    int fd[3] = {dial(rig)};

    ok(await(rig, two_connected), "a connection without a request");
    (void)say(fd[0], HOLD, strlen(HOLD));
    ok(await(rig, is_held), "the server is stopped");
    (void)say(before, PUT("/0", "1") "a", strlen(PUT("/0", "1")) + 1);
    (void)close(before);
    leave(rig, PUT("/1", "3") "abc");
    leave(rig, "DELETE /2 HTTP/1.1\r\n" H "\r\n");
    fd[1] = dial(rig); /* waits for its reply */
    (void)say(fd[1], PUT("/3", "2") "ab", strlen(PUT("/3", "2")) + 2);
    fd[2] = dial(rig); /* in two pieces */
    (void)say(fd[2], PUT("/4", "4"), strlen(PUT("/4", "4")));
    (void)say(fd[2], "abcd", 4);
    (void)close(fd[2]);
    fd[2] = dial(rig); /* half closed */
    (void)say(fd[2], PUT("/5", "1") "a", strlen(PUT("/5", "1")) + 1);
    (void)shutdown(fd[2], SHUT_WR);
    leave(rig, "GET /answer HTTP/1.1\r\n" H "\r\n");
    leave(rig, PUT("/half", "9") "abc");
    leave(rig, "DELETE /half HTTP/1.1\r\n");
    if (large) {
        (void)memset(large, 'x', 20000);
        (void)memcpy(large, PUT("/large", "19000"), strlen(PUT("/large", "19000")));
        leave(rig, large);
    }
    leave(rig, "DELETE /6 HTTP/1.1\r\n" H "\r\n");
    leave(rig, "nonsense\r\n\r\n");
    rig->go = 1;
    ok(hear(fd[0], text, sizeof text, "held") > 0 && strstr(text, "200"), "it goes on");
    ok(hear(fd[1], text, sizeof text, "uid") > 0 && strstr(text, "PUT /3 2"),
       "who waits gets an answer");
    ok(hear(fd[2], text, sizeof text, "uid") > 0 && strstr(text, "PUT /5 1"),
       "so does who has sent all, and says so");
    (void)close(ask(rig, "GET /last HTTP/1.1\r\n" H "\r\n", text, sizeof text, "uid"));
    is_str(rig->order,
           "GET /hold 0, PUT /0 1, PUT /1 3, DELETE /2 0, PUT /3 2, PUT /4 4, PUT /5 1, "
           "DELETE /6 0, GET /last 0, ",
           "what was asked in whole is done, in the order of the connections");
    (void)close(fd[0]);
    (void)close(fd[1]);
    (void)close(fd[2]);
    ok(await(rig, none_connected), "no connection is left");
    is_int((long)open_files(), (long)files + 1,
           "and no descriptor but the engine's, which came with the first");
    free(large);
}

/* ---- bounds ---- */

static bool thirty_refused(struct rig *rig)
{
    return http_stats(rig->s).refused_connections == 30;
}

static bool nine_are_left(struct rig *rig)
{
    return http_stats(rig->s).connections <= 9;
}

static void crowd(struct rig *rig)
{
    int fd[40], refused = 0;
    char text[512];

    for (size_t i = 0; i < n_elements(fd); i++)
        fd[i] = dial(rig);
    ok(await(rig, thirty_refused), "thirty of forty connections are refused");
    for (int k = 0; k < LONG_MS && refused < 30; k++) {
        refused = 0;
        for (size_t i = 0; i < n_elements(fd); i++) {
            struct pollfd p = {.fd = fd[i], .events = POLLIN};
            refused += poll(&p, 1, 0) == 1;
        }
        (void)poll(NULL, 0, 1);
    }
    is_int(refused, 30, "ten of forty connections are kept");
    is_int(http_stats(rig->s).refused_connections, 30, "counted");
    is_int(rig->logged, 1, "and logged once");
    (void)close(fd[0]);
    ok(await(rig, nine_are_left), "one leaves");
    int again = ask(rig, GET_A, text, sizeof text, "uid");
    ok(strstr(text, "uid"), "where one leaves another may come");
    for (size_t i = 1; i < n_elements(fd); i++)
        (void)close(fd[i]);
    (void)close(again);
}

/* ---- streams ---- */

static void streams(struct rig *rig)
{
    char text[4096];
    int fd = ask(rig, STREAM, text, sizeof text, "data: 1");

    ok(strstr(text, "text/event-stream") && strstr(text, "event: hello\ndata: 1\n\n"),
       "an event");
    (void)hear(fd, text, sizeof text, ":\n\n");
    ok(strstr(text, ":\n\n"), "a heartbeat while nothing happens");
    int second = ask(rig, STREAM, text, sizeof text, "no stream");
    ok(strstr(text, "429"), "the handler refuses a second one");
    is_int(http_stats(rig->s).streams, 1, "one stream");
    (void)close(fd);
    ok(await(rig, none_streams) && rig->closed == 1, "its end is noticed");
    (void)close(second);
}

static bool one_connected(struct rig *rig)
{
    return http_stats(rig->s).connections == 1;
}

/* A handler sends an event on a stream that waits; its connection, which was accepted
 * before, ends with its reply, so that nothing else makes libmicrohttpd run.
 */
static void told_by_a_request(struct rig *rig)
{
    static const char TELL[] = "GET /tell HTTP/1.1\r\n" H "Connection: close\r\n\r\n";
    char text[4096];
    int fd = ask(rig, STREAM, text, sizeof text, "data: 1"), told = 0;

    for (int i = 0; i < 5 && told == i; i++) {
        int other = dial(rig);
        ok(await(rig, two_connected), "another is accepted");
        (void)say(other, TELL, sizeof TELL - 1);
        (void)hear(other, text, sizeof text, NULL);
        (void)close(other);
        (void)hear(fd, text, sizeof text, "event: told");
        told += strstr(text, "event: told") != NULL;
        (void)await(rig, one_connected);
    }
    is_int(told, 5, "events that requests cause are told");
    (void)close(fd);
    (void)await(rig, none_streams);
}

static bool many_dropped(struct rig *rig)
{
    return http_stats(rig->s).dropped_events > 1000;
}

static void slow_reader(struct rig *rig)
{
    static char text[1 << 20];
    int fd = dial(rig);

    (void)say(fd, FLOOD, strlen(FLOOD));
    ok(await(rig, many_dropped), "a reader that does not read: events are dropped");
    int other = ask(rig, GET_A, text, sizeof text, "uid");
    ok(strstr(text, "uid"), "others are served");
    (void)close(other);
    (void)hear(fd, text, sizeof text, "\"dropped\": ");
    ok(strstr(text, "event: dropped"), "it is told once it reads");
    (void)close(fd);
}

/* ---- sockets ---- */

static int listen_at(struct http_server *s, const char *path, uw_error *err)
{
    struct http_unix at = {.path = path, .mode = 0600, .has_gid = true, .gid = getgid()};

    return http_listen_unix(s, &at, err);
}

/* A folder of a test's own, and names in it. */
struct place {
    char dir[32], path[64], link[64], file[64];
};

static void place_init(struct place *p)
{
    *p = (struct place){.dir = "/tmp/uw-http-XXXXXX"};
    if (!mkdtemp(p->dir))
        abort();
    (void)snprintf(p->path, sizeof p->path, "%s/s", p->dir);
    (void)snprintf(p->link, sizeof p->link, "%s/l", p->dir);
    (void)snprintf(p->file, sizeof p->file, "%s/f", p->dir);
    FILE *f = fopen(p->file, "w");
    if (f)
        (void)fclose(f);
}

static void place_fini(struct place *p)
{
    (void)unlink(p->file);
    (void)unlink(p->link);
    is_int(rmdir(p->dir), 0, "nothing is left behind");
}

static void leave_stale(const char *path)
{
    struct sockaddr_un stale = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(stale.sun_path, sizeof stale.sun_path, "%s", path);
    (void)!bind(fd, (struct sockaddr *)&stale, sizeof stale);
    (void)close(fd);
}

static void test_sockets(const struct http_opts *opts)
{
    auto_(http_server_free) struct http_server *a = NULL;
    auto_(http_server_free) struct http_server *b = NULL;
    struct place p;
    struct stat st;
    uw_error err;

    place_init(&p);
    if (http_server_new(opts, &a, &err) < 0 || http_server_new(opts, &b, &err) < 0)
        return;
    int r = listen_at(a, p.path, &err);
    ok(r == 0 && stat(p.path, &st) == 0 && S_ISSOCK(st.st_mode) &&
           (st.st_mode & 07777) == 0600,
       "a socket of mode 0600");
    is_int(listen_at(b, p.path, &err), -EADDRINUSE, "somebody listens there: %s",
           err.text);
    http_server_free(a);
    a = NULL;
    ok(lstat(p.path, &st) < 0, "it is removed at the end");
    leave_stale(p.path);
    is_int(listen_at(b, p.path, &err), 0, "a stale one is replaced");
    http_server_free(b);
    b = NULL;
    place_fini(&p);
}

static void test_no_sockets(const struct http_opts *opts)
{
    auto_(http_server_free) struct http_server *s = NULL;
    struct place p;
    char text[200];
    uw_error err;

    place_init(&p);
    if (http_server_new(opts, &s, &err) < 0)
        return;
    is_int(listen_at(s, p.file, &err), -EEXIST, "a file is not: %s", err.text);
    (void)!symlink(p.file, p.link);
    is_int(listen_at(s, p.link, &err), -EEXIST, "a link is not: %s", err.text);
    (void)unlink(p.link);
    leave_stale(p.path);
    (void)!symlink(p.path, p.link);
    is_int(listen_at(s, p.link, &err), -EEXIST, "nor one to a socket");
    (void)unlink(p.path);
    is_int(listen_at(s, "s", &err), -ENAMETOOLONG, "no absolute path");
    memset(text, 'a', sizeof text);
    text[0] = '/';
    text[sizeof text - 1] = '\0';
    is_int(listen_at(s, text, &err), -ENAMETOOLONG, "too long a path");
    (void)snprintf(text, sizeof text, "%s/no/s", p.dir);
    is_int(listen_at(s, text, &err), -ENOENT, "no such folder: %s", err.text);
    place_fini(&p);
}

static void test_tls_words(const struct http_opts *opts)
{
    static const struct {
        const char *address;
        bool there;
        mode_t mode;
        int r;
    } CASES[] = {
        {"127.0.0.1:0", false, 0600, -ENOENT},
        {"localhost:0", true, 0600, -EINVAL},
        {"127.0.0.1:99999", true, 0600, -EINVAL},
        {"127.0.0.1", true, 0600, -EINVAL},
        {":0", true, 0600, -EINVAL},
        {"127.0.0.1:0", true, 0644, -EPERM},
        {"127.0.0.1:0", true, 0600, -EINVAL}, /* an empty certificate */
    };
    auto_(http_server_free) struct http_server *s = NULL;
    struct place p;
    uw_error err = {""};

    place_init(&p);
    if (http_server_new(opts, &s, &err) < 0)
        return;
    for (size_t i = 0; i < n_elements(CASES); i++) {
        const char *file = CASES[i].there ? p.file : "/nowhere.pem";
        struct http_tls tls = {file, file};
        (void)chmod(p.file, CASES[i].mode);
        is_int(http_listen_tls(s, CASES[i].address, &tls, 1, &err), CASES[i].r, "%s",
               err.text);
    }
    place_fini(&p);
}

int main(void)
{
    static const struct http_limits quick = {.request_ns = 900ull * MS,
                                             .idle_ns = 2000ull * MS,
                                             .keep_ns = 1500ull * MS,
                                             .beat_ns = 400ull * MS};
    static const struct http_limits few = {.connections = 10};
    auto_(loop_free) struct loop *loop = NULL;

    drive("requests", each_request, NULL);
    drive("sizes", bodies_and_heads, NULL);
    drive("large bodies", large_bodies, NULL);
    drive("slow", slow_ones, &quick);
    drive("gone", peer_goes, NULL);
    drive("gone before", peers_leave_early, NULL);
    drive("crowd", crowd, &few);
    drive("streams", streams, &quick);
    drive("told by a request", told_by_a_request, NULL);
    drive("slow reader", slow_reader, NULL);
    struct http_opts opts = {.handler = handler};
    if (loop_new_real((struct loop_clock){0, 1}, &loop, NULL) < 0)
        return 1;
    opts.loop = loop;
    test_sockets(&opts);
    test_no_sockets(&opts);
    test_tls_words(&opts);
    return done();
}
