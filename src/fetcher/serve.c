#include "fetcher/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "io/http.h"

enum { TAG = 24 };

struct serve {
    const struct feed *feed;
    struct http_server *http;
};

/* The text says all, so its hash (FNV-1a) is its version. */
static void tag_of(const char *text, char ret[TAG])
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    (void)snprintf(ret, TAG, "\"%016" PRIx64 "\"", h);
}

static void signals(struct serve *s, struct http_exchange *x)
{
    static const char *const keys[] = {"name", NULL};
    auto_(json_out_free) struct json_out *o = NULL;
    auto_(mem_free) char *text = NULL;
    uw_error err = {""};
    char tag[TAG];

    int r = http_query_only(x, keys, &err);
    if (r == 0) {
        o = json_out_new();
        feed_show(s->feed, http_query(x, "name"), o);
        r = json_out_string(o, &text, &err);
    }
    if (r < 0 || !text) {
        http_fail_r(x, r < 0 ? r : -ENOMEM, &err);
        return;
    }
    tag_of(text, tag);
    const struct http_field fields[] = {
        {"ETag", tag}, {"Cache-Control", "no-cache"}, {NULL, NULL}};
    const char *has = http_header(x, "If-None-Match");
    if (has && strcmp(has, tag) == 0)
        http_reply(x, 304, NULL, NULL, 0, fields);
    else
        http_reply(x, 200, "application/json", text, strlen(text), fields);
}

static void on_request(struct http_exchange *x, void *user)
{
    struct serve *s = user;

    if (strcmp(http_path(x), "/v1/signals") != 0)
        http_fail(x, 404, "there is no such path: GET /v1/signals");
    else if (http_method(x) != HTTP_GET)
        http_fail(x, 405, "/v1/signals is read alone: GET");
    else
        signals(s, x);
}

static void on_refused(const char *line, void *user)
{
    (void)user;
    log_event(LOG_LEVEL_WARNING, LOG_EVENT_SIGNALS_REFUSED, "%s", line);
}

int serve_new(struct loop *loop, const struct feed *feed, const char *socket,
              struct serve **ret, uw_error *err)
{
    auto_(serve_free) struct serve *s = calloc(1, sizeof *s);
    const struct http_opts opts = {
        .loop = loop, .handler = on_request, .log = on_refused, .user = s};
    const struct http_unix at = {.path = socket, .mode = 0666, .id = 1};

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->feed = feed;
    int r = http_server_new(&opts, &s->http, err);
    if (r == 0)
        r = http_listen_unix(s->http, &at, err);
    if (r == 0)
        *ret = take(s);
    return r;
}

void serve_free(struct serve *s)
{
    if (!s)
        return;
    http_server_free(s->http);
    free(s);
}
