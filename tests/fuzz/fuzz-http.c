/* Bytes of a request, as somebody sends them who then closes: into the server over a
 * socket.  Whatever reaches the handler is sound.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/units.h"
#include "fuzz.h"
#include "io/http.h"

static struct loop *loop;
static struct http_server *server;
static struct sockaddr_un address = {.sun_family = AF_UNIX};

static bool plain(const char *path)
{
    for (; *path != '\0'; path++)
        if (*path < 0x20 || *path > 0x7e)
            return false;
    return true;
}

static char handled[700];

/* What the house behind relies on. */
static void handler(struct http_exchange *x, void *user)
{
    const char *path = http_path(x), *value;
    size_t len, n = http_query_count(x);
    const char *body = http_body(x, &len);
    (void)user;

    must(http_method(x) >= HTTP_GET && http_method(x) <= HTTP_DELETE);
    must(path[0] == '/' && strlen(path) <= HTTP_PATH_MAX && plain(path));
    must(!strstr(path, "//") && !strstr(path, "/../") && !strstr(path, "/./"));
    must(!strchr(path, '\\') && n <= HTTP_QUERY_MAX);
    must(len <= 64 * 1024ul && body[len] == '\0');
    for (size_t i = 0; i < n; i++) {
        const char *key = http_query_at(x, i, &value);
        must(*key != '\0' && http_query(x, key) == value);
    }
    (void)http_header(x, "Authorization");
    size_t told = strlen(handled);
    (void)snprintf(handled + told, sizeof handled - told, "%d %s, %zu parameters, '%s'; ",
                   (int)http_method(x), path, n, body);
    http_reply(x, 200, "text/plain", path, strlen(path), NULL);
}

/* What came back, its status lines and bodies. */
static char replies[8192];
static size_t n_replies;

static void note(const char *text, ssize_t n)
{
    size_t room = sizeof replies - n_replies;

    if (n > 0) {
        memcpy(replies + n_replies, text, (size_t)n < room ? (size_t)n : room);
        n_replies += (size_t)n < room ? (size_t)n : room;
    }
}

/* The statuses are the word, the paths that the handler saw the text. */
static int tell(void)
{
    char word[sizeof fuzz_said.word] = "";
    const char *end = replies + n_replies, *at = replies;

    while ((at = memmem(at, (size_t)(end - at), "HTTP/1.", 7)) && end - at >= 12) {
        size_t n = strlen(word);
        (void)snprintf(word + n, sizeof word - n, "%s%.3s", n ? "," : "", at + 9);
        at += 12;
    }
    const char *body = memmem(replies, n_replies, "\r\n\r\n", 4);
    (void)fuzz_say(*word ? word : "closed", "%s", handled);
    if (body)
        fuzz_add("%.*s", (int)(end - body), body);
    return 0;
}

/* The client's side: reads until the server has closed. */
static int on_reply(struct loop_fd *source, int fd, int events, void *user)
{
    bool *closed = user;
    char reply[4096];
    ssize_t got;
    (void)source, (void)events;

    do
        note(reply, got = recv(fd, reply, sizeof reply, 0));
    while (got > 0);
    if (got == 0 || errno != EAGAIN) {
        *closed = true;
        loop_stop(loop, 0);
    }
    return 0;
}

static int on_late(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer, (void)now_ns, (void)user;
    loop_stop(loop, 0);
    return 0;
}

static char folder[] = "/tmp/uw-fuzz-http-XXXXXX";

static void remove_socket(void)
{
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
}

static void start(void)
{
    struct http_opts opts = {.handler = handler};
    uw_error err;

    if (!mkdtemp(folder))
        abort();
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
    struct http_unix at = {.path = address.sun_path, .mode = 0600, .id = 1};
    (void)atexit(remove_socket);
    if (loop_new_real((struct loop_clock){0, 1}, &loop, &err) < 0)
        abort();
    opts.loop = loop;
    if (http_server_new(&opts, &server, &err) < 0 ||
        http_listen_unix(server, &at, &err) < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct loop_fd *source = NULL;
    struct loop_timer *late = NULL;
    bool closed = false;

    if (!server)
        start();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ||
        loop_fd_new(loop, fd, LOOP_READ, on_reply, &closed, &source, NULL) < 0 ||
        loop_timer_new(loop, loop_now_ns(loop) + 4 * NS_PER_S, 0, on_late, NULL, &late,
                       NULL) < 0)
        abort();
    handled[0] = '\0';
    n_replies = 0;
    (void)send(fd, data, size, MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
    (void)loop_run(loop, NULL);
    must(closed); /* at once, whatever it was sent */
    loop_timer_free(late);
    loop_fd_free(source);
    (void)close(fd);
    return tell();
}
