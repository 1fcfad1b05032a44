#include "lib/door.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/answer.h"

struct call {
    const struct door *door;
    int fd;
    uint64_t until_ns;
    char *text;
    size_t len, cap;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- the answer ---- */

static bool is_header(const char *line, size_t len, const char *name)
{
    size_t n = strlen(name);

    return len > n && line[n] == ':' && strncasecmp(line, name, n) == 0;
}

/* Reads a header line "Content-Length: 12". */
static int read_length(const char *line, size_t len, uint64_t *ret, uw_error *err)
{
    char number[24];
    const char *value = memchr(line, ':', len);
    size_t n;

    value++;
    while (value < line + len && *value == ' ')
        value++;
    n = (size_t)(line + len - value);
    if (n == 0 || n >= sizeof number)
        return fail(err, -EPROTO, "the Content-Length of the answer is not a number");
    memcpy(number, value, n);
    number[n] = '\0';
    if (parse_u64(number, ret, NULL) < 0)
        return fail(err, -EPROTO, "the Content-Length of the answer is not a number");
    return 0;
}

/* The status in a line such as "HTTP/1.1 200 OK"; 0: not a status line. */
static unsigned read_status(const char *text, size_t len)
{
    unsigned status = 0;

    if (!text || len < 12 || memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ' ||
        (len > 12 && text[12] != ' ' && text[12] != '\r'))
        return 0;
    for (int i = 9; i < 12; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        status = status * 10 + (unsigned)(text[i] - '0');
    }
    return status >= 100 ? status : 0;
}

int door_parse(const char *text, size_t len, struct door_answer *ret, uw_error *err)
{
    const char *end = text && len ? memmem(text, len, "\r\n\r\n", 4) : NULL;
    struct door_answer a = {.status = read_status(text, len)};
    uint64_t length = UINT64_MAX;

    if (a.status == 0)
        return fail(err, -EPROTO, "the server does not speak HTTP");
    if (!end)
        return fail(err, -EPROTO, "the answer was cut short");
    a.body = end + 4;
    a.len = (size_t)(text + len - a.body);
    const char *next = memchr(text, '\n', len);
    while (next && next < end) {
        const char *line = next + 1;
        next = memchr(line, '\n', (size_t)(end + 2 - line));
        size_t n = next ? (size_t)(next - line) : 0;
        n -= n > 0 && line[n - 1] == '\r';
        if (is_header(line, n, "Transfer-Encoding"))
            return fail(err, -EPROTO, "the answer has a Transfer-Encoding");
        int r =
            is_header(line, n, "Content-Length") ? read_length(line, n, &length, err) : 0;
        if (r < 0)
            return r;
    }
    if (length != UINT64_MAX && length > a.len)
        return fail(err, -EPROTO, "the answer was cut short");
    if (length < a.len)
        a.len = (size_t)length;
    *ret = a;
    return 0;
}

/* ---- the socket ---- */

static int no_connection(const struct door *door, int number, uw_error *err)
{
    if (number == EACCES)
        return fail(err, -EACCES, "%s: this user may not use the daemon's socket",
                    door->socket);
    if (number == EAGAIN) /* the queue of the socket stayed full */
        return fail(err, -ETIMEDOUT, "%s: no answer within %.3g s", door->socket,
                    s_of_ns(door->timeout_ns));
    return fail(err, number == ENOENT ? -ECONNREFUSED : -number,
                "no daemon answers at %s: %s", door->socket, strerror(number));
}

static int call_connect(struct call *c, uw_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(c->door->socket);
    uint64_t ns = c->door->timeout_ns;
    const struct timeval wait = {.tv_sec = (time_t)(ns / NS_PER_S),
                                 .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};

    if (n >= sizeof at.sun_path)
        return fail(err, -ENAMETOOLONG, "a socket's path has at most %zu bytes",
                    sizeof at.sun_path - 1);
    memcpy(at.sun_path, c->door->socket, n + 1);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    if (setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) < 0)
        return fail(err, -errno, "socket: %s", strerror(errno));
    int r = -1;
    do
        r = connect(c->fd, (const struct sockaddr *)&at, sizeof at);
    while (r < 0 && errno == EINTR && now_ns() < c->until_ns);
    return r < 0 && errno != EISCONN ? no_connection(c->door, errno, err) : 0;
}

/* Waits until the socket is ready; 0, or -ETIMEDOUT. */
static int call_wait(const struct call *c, short events, uw_error *err)
{
    for (;;) {
        struct pollfd p = {.fd = c->fd, .events = events};
        uint64_t now = now_ns();
        uint64_t left = now < c->until_ns ? c->until_ns - now : 0;
        int r = poll(&p, 1, (int)((left + NS_PER_MS - 1) / NS_PER_MS));
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return fail(err, -errno, "%s: %s", c->door->socket, strerror(errno));
        if (left == 0)
            return fail(err, -ETIMEDOUT, "%s: no answer within %.3g s", c->door->socket,
                        s_of_ns(c->door->timeout_ns));
    }
}

static int call_send(struct call *c, const char *text, size_t len, uw_error *err)
{
    while (len > 0) {
        int r = call_wait(c, POLLOUT, err);
        if (r < 0)
            return r;
        ssize_t n = send(c->fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0 &&
            errno == EPIPE) /* the daemon has answered already: read the answer */
            return 0;
        if (n < 0)
            return fail(err, -errno, "%s: %s", c->door->socket, strerror(errno));
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

static int call_read(struct call *c, uw_error *err)
{
    enum { STEP = 4096 };

    for (;;) {
        void *items = c->text;
        int r = array_reserve(&items, &c->cap, c->len + STEP, 1, DOOR_ANSWER_MAX + STEP);
        c->text = items;
        if (r == -ENOMEM)
            return fail(err, r, "out of memory");
        if (r < 0)
            return fail(err, -EFBIG, "%s: the answer is larger than %d bytes",
                        c->door->socket, DOOR_ANSWER_MAX);
        r = call_wait(c, POLLIN, err);
        if (r < 0)
            return r;
        ssize_t n = recv(c->fd, c->text + c->len, STEP, MSG_DONTWAIT);
        if (n == 0)
            return 0;
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n < 0)
            return fail(err, -errno, "%s: %s", c->door->socket, strerror(errno));
        c->len += (size_t)n;
    }
}

static int exchange(struct call *c, const char *request, struct json **ret, uw_error *err)
{
    struct door_answer a = {0};

    c->until_ns = now_ns() + c->door->timeout_ns;
    int r = call_connect(c, err);
    if (r == 0)
        r = call_send(c, request, strlen(request), err);
    if (r == 0)
        r = call_read(c, err);
    if (r < 0)
        return r;
    if (c->len == 0)
        return fail(err, -ECONNREFUSED, "%s: the daemon closed the connection",
                    c->door->socket);
    r = door_parse(c->text, c->len, &a, err);
    if (r < 0)
        return fail_in(err, r, "%s", c->door->socket);
    if (a.status > 299)
        return answer_refused(a.status, a.body, a.len, err);
    if (ret)
        *ret = NULL;
    return ret && a.len > 0 ? answer_read(a.body, a.len, ret, err) : 0;
}

int door_ask(const struct door *door, const char *method, const char *path,
             struct json_out *body, struct json **ret, uw_error *err)
{
    struct call c = {.door = door, .fd = -1};
    auto_(mem_free) char *text = NULL;
    auto_(mem_free) char *request = NULL;
    int r = body ? json_out_string(body, &text, err) : 0;

    json_out_free(body);
    if (r < 0)
        return r;
    if (asprintf(&request,
                 "%s %s HTTP/1.0\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s",
                 method, path, text ? "Content-Type: application/json\r\n" : "",
                 text ? strlen(text) : 0, text ? text : "") < 0) {
        request = NULL;
        return fail(err, -ENOMEM, "out of memory");
    }
    r = exchange(&c, request, ret, err);
    if (c.fd >= 0)
        (void)close(c.fd);
    free(c.text);
    return r;
}
