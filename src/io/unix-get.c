#include "io/unix-get.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"

enum { STEP = 16384 };

struct getting {
    const struct loop *loop;
    const struct unix_get *ask;
    uint64_t until_ns;
    int fd;
    char *text;
    size_t len, cap;
};

static int say(const struct getting *g, int r, uw_error *err)
{
    return fail(err, r, "%s: %s", g->ask->socket, strerror(-r));
}

static int wait_for(const struct getting *g, short events, uw_error *err)
{
    for (;;) {
        struct pollfd p = {.fd = g->fd, .events = events};
        uint64_t now_ns = loop_now_ns(g->loop);
        if (now_ns >= g->until_ns)
            return say(g, -ETIMEDOUT, err);
        int r = poll(&p, 1, (int)((g->until_ns - now_ns) / NS_PER_MS) + 1);
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return say(g, -errno, err);
    }
}

static int begin(struct getting *g, uw_error *err)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(g->ask->socket);

    if (n >= sizeof at.sun_path)
        return say(g, -ENAMETOOLONG, err);
    memcpy(at.sun_path, g->ask->socket, n + 1);
    g->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* non-blocking: a queue that is full is EAGAIN at once */
    if (g->fd < 0 || connect(g->fd, (const struct sockaddr *)&at, sizeof at) < 0)
        return say(g, -errno, err);
    return 0;
}

static int send_all(const struct getting *g, const char *text, uw_error *err)
{
    for (size_t left = strlen(text); left > 0;) {
        int r = wait_for(g, POLLOUT, err);
        if (r < 0)
            return r;
        ssize_t n = send(g->fd, text, left, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return say(g, -errno, err);
        text += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int receive_all(struct getting *g, uw_error *err)
{
    for (;;) {
        void *items = g->text;
        int r =
            array_reserve(&items, &g->cap, g->len + STEP + 1, 1, g->ask->max + STEP + 1);
        g->text = items;
        if (r == 0)
            r = wait_for(g, POLLIN, err);
        else
            r = say(g, r == -E2BIG ? -EFBIG : r, err);
        if (r < 0)
            return r;
        ssize_t n = recv(g->fd, g->text + g->len, STEP, 0);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return say(g, -errno, err);
        if (n == 0)
            break;
        g->len += n > 0 ? (size_t)n : 0;
    }
    g->text[g->len] = '\0';
    return 0;
}

/* The value of a header of the answer's head, as a text of its own; "" where it is none
 * or too long.
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

int unix_got_read(const char *name, char *text, size_t text_len, struct unix_got *ret,
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
    *ret = (struct unix_got){.len = length[0] ? (size_t)len : left};
    for (int i = 9; i < 12; i++)
        ret->status = ret->status * 10 + (unsigned)(text[i] - '0');
    header(text, end, "ETag", ret->tag, sizeof ret->tag);
    memmove(text, end + 4, ret->len);
    text[ret->len] = '\0';
    ret->body = text;
    return 0;
}

int unix_get(const struct loop *loop, const struct unix_get *ask, struct unix_got *ret,
             uw_error *err)
{
    struct getting g = {.loop = loop,
                        .ask = ask,
                        .until_ns = loop_now_ns(loop) + ask->timeout_ns,
                        .fd = -1};
    auto_(mem_free) char *request = NULL;

    if (asprintf(&request, "GET %s HTTP/1.0\r\nHost: localhost\r\n%s%s%s\r\n", ask->path,
                 ask->tag[0] ? "If-None-Match: " : "", ask->tag,
                 ask->tag[0] ? "\r\n" : "") < 0) {
        request = NULL;
        return fail(err, -ENOMEM, "out of memory");
    }
    int r = begin(&g, err);
    if (r == 0)
        r = send_all(&g, request, err);
    if (r == 0)
        r = receive_all(&g, err);
    if (r == 0)
        r = unix_got_read(ask->socket, g.text, g.len, ret, err);
    if (r == 0)
        g.text = NULL;
    if (g.fd >= 0)
        (void)close(g.fd);
    free(g.text);
    return r;
}
