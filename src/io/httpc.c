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

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "io/answer.h"
#include "io/httpc-easy.h"

enum { BODY_MAX = 4 * 1024 * 1024 };
static const uint64_t TIMEOUT_NS = 10 * NS_PER_S;

struct httpc {
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    char *socket, *url, *ca, *token;
    struct httpc_place place; /* of these */
    size_t body_max;
    atomic_bool cancelled;
};

/* ---- the client ---- */

static int copy(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? -ENOMEM : 0;
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
    c->body_max = opts->body_max ? opts->body_max : BODY_MAX;
    if (copy(&c->socket, opts->socket) < 0 || copy(&c->url, opts->url) < 0 ||
        copy(&c->ca, opts->ca) < 0 || copy(&c->token, opts->token) < 0)
        return fail(err, -ENOMEM, "out of memory");
    c->place = (struct httpc_place){.what = opts->what,
                                    .socket = c->socket,
                                    .url = c->url,
                                    .ca = c->ca,
                                    .token = c->token,
                                    .agent = "underwatt",
                                    .timeout_ns =
                                        opts->timeout_ns ? opts->timeout_ns : TIMEOUT_NS};
    c->multi = curl_multi_init();
    c->easy = curl_easy_init();
    if (!c->multi || !c->easy || !httpc_easy_set(c->easy, &c->place))
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

static int drive(struct httpc *c, const struct httpc_body *body, uw_error *err)
{
    CURLcode code = CURLE_OK;

    for (;;) {
        int running, events;
        if (atomic_load(&c->cancelled))
            return fail(err, -ECANCELED, "%s: cancelled", httpc_where(&c->place));
        if (curl_multi_perform(c->multi, &running) != CURLM_OK)
            return fail(err, -ENOMEM, "out of memory");
        if (is_done(c, &code))
            return httpc_easy_end(c->easy, &c->place, body, code, err);
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

static int prepare(struct httpc *c, const char *method, const char *path,
                   const char *json)
{
    long timeout_ms = (long)(c->place.timeout_ns / NS_PER_MS);

    curl_slist_free_all(c->headers);
    c->headers = NULL;
    int r = add_header(c, "Accept: application/json, */*");
    if (r == 0 && json)
        r = add_header(c, "Content-Type: application/json");
    if (r == 0 && curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) != CURLE_OK)
        r = -ENOMEM;
    return r < 0 ? r : httpc_easy_ask(c->easy, &c->place, method, path, json, timeout_ms);
}

static int perform(struct httpc *c, const char *method, const char *path,
                   const char *json, struct httpc_body *ret, uw_error *err)
{
    if (path[0] != '/')
        return fail(err, -EINVAL, "'%s' is not a path", path);
    if (prepare(c, method, path, json) < 0 || !httpc_easy_body(c->easy, ret) ||
        curl_multi_add_handle(c->multi, c->easy) != CURLM_OK)
        return fail(err, -ENOMEM, "out of memory");
    int r = drive(c, ret, err);
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
    struct httpc_body body = {.max = c->body_max};
    const char *type = NULL;

    int r = perform(c, method, path, json, &body, err);
    if (r == 0 && !body.bytes) {
        body.bytes = calloc(1, 1);
        if (!body.bytes)
            r = fail(err, -ENOMEM, "out of memory");
    }
    if (r < 0) {
        free(body.bytes);
        return r;
    }
    *ret = (struct httpc_reply){
        .status = status_of(c), .body = body.bytes, .len = body.len, .type = ""};
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
