/* The commands' HTTP client: unix_ask(), which another thread may cancel. */
#include "io/httpc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/answer.h"
#include "io/unix-ask.h"

enum { BODY_MAX = 4 * 1024 * 1024 };
static const uint64_t TIMEOUT_NS = 10 * NS_PER_S;

#define HEAD "User-Agent: underwatt\r\nAccept: application/json, */*\r\n"

struct httpc {
    char *socket;
    const char *what;
    uint64_t timeout_ns;
    size_t body_max;
    int cancel_fd; /* readable once httpc_cancel() was called */
};

int httpc_new(const struct httpc_opts *opts, struct httpc **ret, uw_error *err)
{
    auto_(httpc_free) struct httpc *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->what = opts->what ? opts->what : "daemon";
    c->timeout_ns = opts->timeout_ns ? opts->timeout_ns : TIMEOUT_NS;
    c->body_max = opts->body_max ? opts->body_max : BODY_MAX;
    c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->cancel_fd < 0)
        return fail(err, -errno, "eventfd: %s", strerror(errno));
    c->socket = strdup(opts->socket);
    if (!c->socket)
        return fail(err, -ENOMEM, "out of memory");
    *ret = take(c);
    return 0;
}

void httpc_free(struct httpc *c)
{
    if (!c)
        return;
    if (c->cancel_fd >= 0)
        (void)close(c->cancel_fd);
    free(c->socket);
    free(c);
}

void httpc_cancel(struct httpc *c)
{
    const uint64_t one = 1;

    (void)!write(c->cancel_fd, &one, sizeof one);
}

void httpc_reply_fini(struct httpc_reply *reply)
{
    free(reply->body);
    *reply = (struct httpc_reply){0};
}

/* A failure of unix_ask() in words for the command's user. */
static int socket_failed(const struct httpc *c, int r, uw_error *err)
{
    switch (r) {
    case -ETIMEDOUT:
        return fail(err, r, "%s: no answer within %.3g s", c->socket,
                    s_of_ns(c->timeout_ns));
    case -EFBIG:
        return fail(err, r, "%s: the answer is larger than %zu bytes", c->socket,
                    c->body_max);
    case -EACCES:
        return fail(err, r, "%s: this user may not use the daemon's socket", c->socket);
    case -ECONNRESET:
        return fail(err, -EPROTO, "%s: %s", c->socket, strerror(-r));
    case -EPROTO:
    case -ECANCELED:
    case -ENOMEM:
        return r;
    default:
        return fail(err, r, "no %s answers at %s: %s", c->what, c->socket, strerror(-r));
    }
}

int httpc_call(struct httpc *c, const char *method, const char *path, const char *json,
               struct httpc_reply *ret, uw_error *err)
{
    const struct unix_ask ask = {.socket = c->socket,
                                 .path = path,
                                 .method = method,
                                 .head = json ? HEAD "Content-Type: application/json\r\n"
                                              : HEAD,
                                 .body = json,
                                 .timeout_ns = c->timeout_ns,
                                 .max = c->body_max,
                                 .patient = true,
                                 .cancel_fd = &c->cancel_fd};
    struct unix_reply got = {.status = 0};

    if (path[0] != '/')
        return fail(err, -EINVAL, "'%s' is not a path", path);
    int r = unix_ask(&ask, &got, err);
    if (r < 0)
        return socket_failed(c, r, err);
    *ret = (struct httpc_reply){.status = got.status, .body = got.body, .len = got.len};
    memcpy(ret->type, got.type, sizeof ret->type);
    return 0;
}

int httpc_ask(struct httpc *c, const char *method, const char *path,
              struct json_out *body, struct json **ret, uw_error *err)
{
    struct httpc_reply reply = {0};
    auto_(mem_free) char *text = NULL;
    int r = 0;

    if (body)
        r = json_out_string(body, &text, err);
    json_out_free(body);
    if (r == 0)
        r = httpc_call(c, method, path, text, &reply, err);
    if (r < 0)
        return r;
    if (reply.status > 299)
        r = answer_refused(reply.status, reply.body, reply.len, err);
    else if (ret && reply.len > 0)
        r = answer_read(reply.body, reply.len, ret, err);
    else if (ret)
        *ret = NULL;
    httpc_reply_fini(&reply);
    return r;
}
