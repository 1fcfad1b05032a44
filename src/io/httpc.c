/* The commands' HTTP client: libcurl's multi interface, so that another thread can end
 * a call that waits.
 */
#include "io/httpc.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/array.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/answer.h"

enum { BODY_MAX = 4 * 1024 * 1024 };
static const uint64_t TIMEOUT_NS = 10 * NS_PER_S;

struct httpc {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char *socket, *url, *ca, *token;
    uint64_t timeout_ns;
    size_t body_max;
    atomic_bool cancelled;
};

/* One transfer. */
struct transfer {
    struct httpc *c;
    char *body;
    size_t len, cap, max;
    int r; /* our own error that ended the transfer */
};

/* ---- the client ---- */

static int copy(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? -ENOMEM : 0;
}

/* Close-on-exec: the command's child must not inherit the socket. */
static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *at)
{
    (void)user;
    (void)purpose;
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

static bool set_where(struct httpc *c)
{
    bool good = true;

    if (c->socket)
        good = curl_easy_setopt(c->easy, CURLOPT_UNIX_SOCKET_PATH, c->socket) == CURLE_OK;
    if (c->ca)
        good = good && curl_easy_setopt(c->easy, CURLOPT_CAINFO, c->ca) == CURLE_OK;
    if (c->token) {
        good = good &&
               curl_easy_setopt(c->easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
               curl_easy_setopt(c->easy, CURLOPT_XOAUTH2_BEARER, c->token) == CURLE_OK;
    }
    return good;
}

/* Options of every call: no proxy, no signals, no redirects, one protocol. */
static bool set_up(struct httpc *c)
{
    return curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_NOPROXY, "*") == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_PROTOCOLS_STR,
                            c->socket ? "http" : "https") == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
           curl_easy_setopt(c->easy, CURLOPT_USERAGENT, "underwatt") == CURLE_OK &&
           set_where(c);
}

int httpc_new(const struct httpc_opts *opts, struct httpc **ret, uw_error *err)
{
    if (!opts->socket == !opts->url)
        return fail(err, -EINVAL, "either a socket or a URL names the daemon");
    if (opts->url && strncasecmp(opts->url, "https://", 8) != 0)
        return fail(err, -EINVAL, "%s: only https:// is asked", opts->url);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return fail(err, -ENOMEM, "libcurl does not start");
    struct httpc *plain = calloc(1, sizeof *plain);
    if (!plain) {
        curl_global_cleanup();
        return fail(err, -ENOMEM, "out of memory");
    }
    auto_(httpc_free) struct httpc *c = plain;
    c->timeout_ns = opts->timeout_ns ? opts->timeout_ns : TIMEOUT_NS;
    c->body_max = opts->body_max ? opts->body_max : BODY_MAX;
    if (copy(&c->socket, opts->socket) < 0 || copy(&c->url, opts->url) < 0 ||
        copy(&c->ca, opts->ca) < 0 || copy(&c->token, opts->token) < 0)
        return fail(err, -ENOMEM, "out of memory");
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (!c->multi || !c->easy || !set_up(c))
        return fail(err, -ENOMEM, "libcurl does not start");
    *ret = take(c);
    return 0;
}

void httpc_free(struct httpc *c)
{
    if (!c)
        return;
    curl_easy_cleanup(c->easy);
    curl_multi_cleanup(c->multi);
    curl_slist_free_all(c->headers);
    free(c->socket);
    free(c->url);
    free(c->ca);
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    free(c->token);
    free(c);
    curl_global_cleanup();
}

void httpc_cancel(struct httpc *c)
{
    atomic_store(&c->cancelled, true);
    (void)curl_multi_wakeup(c->multi);
}

void httpc_reply_fini(struct httpc_reply *reply)
{
    free(reply->body);
    *reply = (struct httpc_reply){0};
}

/* ---- one transfer ---- */

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    void *items = t->body;

    n *= size;
    if (n > t->max - t->len)
        t->r = -EFBIG;
    else
        t->r = array_reserve(&items, &t->cap, t->len + n + 1, 1, t->max + 1);
    t->body = items;
    if (t->r < 0)
        return CURL_WRITEFUNC_ERROR;
    memcpy(t->body + t->len, data, n);
    t->len += n;
    t->body[t->len] = '\0';
    return n;
}

static const char *where(const struct httpc *c)
{
    return c->socket ? c->socket : c->url;
}

/* Turns a failed connection into a message for the command's user. */
static int no_connection(const struct httpc *c, CURLcode code, uw_error *err)
{
    long number = 0;

    (void)curl_easy_getinfo(c->easy, CURLINFO_OS_ERRNO, &number);
    int r = number > 0 ? -(int)number : -ECONNREFUSED;
    if (r == -EACCES)
        return fail(err, r, "%s: this user may not use the daemon's socket", where(c));
    return fail(err, r, "no daemon answers at %s: %s", where(c),
                number > 0 ? strerror((int)number) : curl_easy_strerror(code));
}

static int outcome(const struct transfer *t, CURLcode code, uw_error *err)
{
    const struct httpc *c = t->c;

    switch (code) {
    case CURLE_OK:
        return 0;
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        return no_connection(c, code, err);
    case CURLE_WRITE_ERROR:
        if (t->r == -EFBIG)
            return fail(err, -EFBIG, "%s: the answer is larger than %zu bytes", where(c),
                        t->max);
        return t->r < 0 ? fail(err, t->r, "%s: %s", where(c), strerror(-t->r)) : t->r;
    case CURLE_OPERATION_TIMEDOUT:
        return fail(err, -ETIMEDOUT, "%s: no answer within %.3g s", where(c),
                    s_of_ns(c->timeout_ns));
    case CURLE_OUT_OF_MEMORY:
        return fail(err, -ENOMEM, "out of memory");
    default:
        return fail(err, -EPROTO, "%s: %s", where(c), curl_easy_strerror(code));
    }
}

/* 1: done, with its code. */
static int is_done(struct httpc *c, CURLcode *ret)
{
    int left;

    for (CURLMsg *m = curl_multi_info_read(c->multi, &left); m;
         m = curl_multi_info_read(c->multi, &left))
        if (m->msg == CURLMSG_DONE) {
            *ret = m->data.result;
            return 1;
        }
    return 0;
}

static int drive(struct transfer *t, uw_error *err)
{
    struct httpc *c = t->c;
    CURLcode code = CURLE_OK;

    for (;;) {
        int running, events;
        if (atomic_load(&c->cancelled))
            return fail(err, -ECANCELED, "%s: cancelled", where(c));
        if (curl_multi_perform(c->multi, &running) != CURLM_OK)
            return fail(err, -ENOMEM, "out of memory");
        if (is_done(c, &code))
            return outcome(t, code, err);
        if (curl_multi_poll(c->multi, NULL, 0, 1000, &events) != CURLM_OK)
            return fail(err, -ENOMEM, "out of memory");
    }
}

static int add_header(struct httpc *c, const char *line)
{
    struct curl_slist *longer = curl_slist_append(c->headers, line);

    if (!longer)
        return -ENOMEM;
    c->headers = longer;
    return 0;
}

static int prepare(struct transfer *t, const char *method, const char *path,
                   const char *json)
{
    struct httpc *c = t->c;
    const char *base = c->socket ? "http://localhost" : c->url;
    size_t n = strlen(base);
    auto_(mem_free) char *url = NULL;

    while (n > 0 && base[n - 1] == '/')
        n--;
    if (asprintf(&url, "%.*s%s", (int)n, base, path) < 0) {
        url = NULL;
        return -ENOMEM;
    }
    curl_slist_free_all(c->headers);
    c->headers = NULL;
    int r = add_header(c, "Accept: application/json, */*");
    if (r == 0 && json)
        r = add_header(c, "Content-Type: application/json");
    if (r < 0)
        return r;
    long timeout = (long)(c->timeout_ns / NS_PER_MS);
    bool good =
        curl_easy_setopt(c->easy, CURLOPT_URL, url) == CURLE_OK &&
        curl_easy_setopt(c->easy, CURLOPT_HTTPGET, 1L) == CURLE_OK &&
        (!json || curl_easy_setopt(c->easy, CURLOPT_COPYPOSTFIELDS, json) == CURLE_OK) &&
        curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
        curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK &&
        curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
        curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, t) == CURLE_OK &&
        curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, timeout) == CURLE_OK &&
        curl_easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS, timeout) == CURLE_OK;
    return good ? 0 : -ENOMEM;
}

/* After 0: status of the answer in *ret_status, its body in t. */
static int perform(struct transfer *t, const char *method, const char *path,
                   const char *json, uw_error *err)
{
    struct httpc *c = t->c;

    if (path[0] != '/')
        return fail(err, -EINVAL, "'%s' is not a path", path);
    if (prepare(t, method, path, json) < 0 ||
        curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
        return fail(err, -ENOMEM, "out of memory");
    int r = drive(t, err);
    (void)curl_multi_remove_handle(c->multi, c->easy);
    return r;
}

static unsigned status_of(const struct httpc *c)
{
    long status = 0;

    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    return status > 0 ? (unsigned)status : 0;
}

int httpc_call(struct httpc *c, const char *method, const char *path, const char *json,
               struct httpc_reply *ret, uw_error *err)
{
    struct transfer t = {.c = c, .max = c->body_max};
    const char *type = NULL;

    int r = perform(&t, method, path, json, err);
    if (r == 0 && !t.body) {
        t.body = calloc(1, 1);
        if (!t.body)
            r = fail(err, -ENOMEM, "out of memory");
    }
    if (r < 0) {
        free(t.body);
        return r;
    }
    *ret = (struct httpc_reply){
        .status = status_of(c), .body = t.body, .len = t.len, .type = ""};
    (void)curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type);
    if (type)
        (void)snprintf(ret->type, sizeof ret->type, "%.*s", (int)strcspn(type, "; "),
                       type);
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
