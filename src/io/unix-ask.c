#include "io/unix-ask.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
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

enum { STEP = 16384, HEAD_MAX = 16384, FULL_MS = 5 };

struct asking {
    const struct unix_ask *ask;
    uint64_t until_ns;
    int fd;
    char *text;
    size_t len, cap;
};

static int say(const struct asking *a, int r, uw_error *err)
{
    return fail(err, r, "%s: %s", a->ask->socket, strerror(-r));
}

static uint64_t now_of(const struct unix_ask *ask)
{
    struct timespec t = {0};

    if (ask->loop)
        return loop_now_ns(ask->loop);
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* events is 0: waits until the deadline, but at most `ms`. */
static int wait_for(const struct asking *a, short events, int ms, uw_error *err)
{
    for (;;) {
        struct pollfd p[2] = {
            {.fd = events ? a->fd : -1, .events = events},
            {.fd = a->ask->cancel_fd ? *a->ask->cancel_fd : -1, .events = POLLIN}};
        uint64_t now_ns = now_of(a->ask);
        if (now_ns >= a->until_ns)
            return say(a, -ETIMEDOUT, err);
        uint64_t left_ms = (a->until_ns - now_ns) / NS_PER_MS + 1;
        bool shorter = ms >= 0 && (uint64_t)ms < left_ms;
        int r = poll(p, 2, shorter ? ms : (int)(left_ms < INT_MAX ? left_ms : INT_MAX));
        if (r > 0 && p[1].revents)
            return fail(err, -ECANCELED, "%s: cancelled", a->ask->socket);
        if (r > 0 || (r == 0 && shorter))
            return 0;
        if (r < 0 && errno != EINTR)
            return say(a, -errno, err);
    }
}

static int begin(struct asking *a, uw_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(a->ask->socket);

    if (n >= sizeof at.sun_path)
        return say(a, -ENAMETOOLONG, err);
    memcpy(at.sun_path, a->ask->socket, n + 1);
    a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (a->fd < 0)
        return say(a, -errno, err);
    /* non-blocking: a queue that is full is EAGAIN at once */
    while (connect(a->fd, (const struct sockaddr *)&at, sizeof at) < 0) {
        if (errno != EAGAIN || !a->ask->patient)
            return say(a, -errno, err);
        int r = wait_for(a, 0, FULL_MS, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A server may answer and close before it has read everything. */
static int send_all(const struct asking *a, const char *text, size_t left, uw_error *err)
{
    while (left > 0) {
        int r = wait_for(a, POLLOUT, -1, err);
        if (r < 0)
            return r;
        ssize_t n = send(a->fd, text, left, MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return 0;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return say(a, -errno, err);
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int receive_all(struct asking *a, uw_error *err)
{
    const size_t max = a->ask->max + HEAD_MAX;

    for (;;) {
        void *items = a->text;
        int r = array_reserve(&items, &a->cap, a->len + STEP + 1, 1, max + STEP + 1);
        a->text = items;
        if (r == 0)
            r = wait_for(a, POLLIN, -1, err);
        else
            r = say(a, r == -E2BIG ? -EFBIG : r, err);
        if (r < 0)
            return r;
        ssize_t n = recv(a->fd, a->text + a->len, STEP, 0);
        if (n == 0 || (n < 0 && errno == ECONNRESET && a->len > 0))
            break; /* a server that refuses need not read the whole request */
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return say(a, -errno, err);
        a->len += n > 0 ? (size_t)n : 0;
    }
    a->text[a->len] = '\0';
    return 0;
}

/* The value of a header of the answer, as a separate text; "" if there is none or it is
 * too long.
 */
static void header(const char *head, const char *end, const char *name, char *ret,
                   size_t size)
{
    size_t n = strlen(name);

    ret[0] = '\0';
    for (const char *line = head; (line = strstr(line, "\r\n")) && line < end;) {
        line += 2;
        if (strncasecmp(line, name, n) != 0 || line[n] != ':')
            continue;
        const char *value = line + n + 1 + strspn(line + n + 1, " \t");
        size_t len = strcspn(value, "\r\n");
        if (len < size)
            (void)snprintf(ret, size, "%.*s", (int)len, value);
        return;
    }
}

int unix_reply_read(const char *name, char *text, size_t text_len, struct unix_reply *ret,
                    uw_error *err)
{
    const char *end = strstr(text, "\r\n\r\n");
    char length[24];
    uint64_t len = 0;

    if (!end || strncmp(text, "HTTP/1.", 7) != 0 || strspn(text + 9, "0123456789") != 3)
        return fail(err, -EPROTO, "%s: no answer of HTTP", name);
    size_t left = text_len - (size_t)(end + 4 - text);
    header(text, end, "Content-Length", length, sizeof length);
    if (length[0] && (parse_u64(length, &len, NULL) < 0 || len > left))
        return fail(err, -EPROTO, "%s: half an answer", name);
    *ret = (struct unix_reply){.len = length[0] ? (size_t)len : left};
    for (int i = 9; i < 12; i++)
        ret->status = ret->status * 10 + (unsigned)(text[i] - '0');
    header(text, end, "ETag", ret->tag, sizeof ret->tag);
    header(text, end, "Content-Type", ret->type, sizeof ret->type);
    ret->type[strcspn(ret->type, "; ")] = '\0';
    memmove(text, end + 4, ret->len);
    text[ret->len] = '\0';
    ret->body = text;
    return 0;
}

static char *request_of(const struct unix_ask *ask)
{
    const char *tag = ask->tag ? ask->tag : "", *body = ask->body ? ask->body : "";
    char length[40] = "", *ret = NULL;

    if (ask->body)
        (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    if (asprintf(&ret, "%s %s HTTP/1.0\r\nHost: localhost\r\n%s%s%s%s%s\r\n%s",
                 ask->method ? ask->method : "GET", ask->path,
                 *tag ? "If-None-Match: " : "", tag, *tag ? "\r\n" : "",
                 ask->head ? ask->head : "", length, body) < 0)
        return NULL;
    return ret;
}

int unix_ask(const struct unix_ask *ask, struct unix_reply *ret, uw_error *err)
{
    struct asking a = {.ask = ask, .until_ns = now_of(ask) + ask->timeout_ns, .fd = -1};
    auto_(mem_free) char *request = request_of(ask);
    struct unix_reply reply;

    if (!request)
        return fail(err, -ENOMEM, "out of memory");
    int r = begin(&a, err);
    if (r == 0)
        r = send_all(&a, request, strlen(request), err);
    if (r == 0)
        r = receive_all(&a, err);
    if (r == 0)
        r = unix_reply_read(ask->socket, a.text, a.len, &reply, err);
    if (r == 0 && reply.len > ask->max)
        r = say(&a, -EFBIG, err);
    if (r == 0) {
        *ret = reply;
        a.text = NULL;
    }
    if (a.fd >= 0)
        (void)close(a.fd);
    free(a.text);
    return r;
}
