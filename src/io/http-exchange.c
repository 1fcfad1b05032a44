/* Exchanges: a handler's view of a request, and its replies. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "io/http-exchange.h"

struct http_exchange *exchange_new(void)
{
    return calloc(1, sizeof(struct http_exchange));
}

static void resume(struct http_exchange *x)
{
    if (x->calls)
        x->calls->resume(x);
}

/* ---- texts that replies share ---- */

struct http_text {
    size_t refs, len, room;
    char bytes[];
};

static void write_text(struct http_text *t, const char *text, size_t len)
{
    t->len = len;
    memcpy(t->bytes, text, len);
    t->bytes[len] = '\0';
}

static struct http_text *text_of_room(const char *text, size_t len, size_t room)
{
    struct http_text *t = malloc(sizeof *t + room + 1);

    if (!t)
        return NULL;
    t->refs = 1;
    t->room = room;
    write_text(t, text, len);
    return t;
}

struct http_text *http_text_new(const char *text, size_t len)
{
    return text_of_room(text, len, len);
}

int http_text_again(struct http_text **text, const char *bytes, size_t len)
{
    struct http_text *t = *text;

    if (t && t->refs == 1 && t->room >= len) {
        write_text(t, bytes, len);
        return 0;
    }
    t = text_of_room(bytes, len, len + len / 8);
    if (!t)
        return -ENOMEM;
    http_text_unref(*text);
    *text = t;
    return 0;
}

void http_text_unref(struct http_text *text)
{
    if (text && --text->refs == 0)
        free(text);
}

/* ---- life ---- */

static void reply_fini(struct http_reply *r)
{
    for (size_t i = 0; i < r->n_fields; i++) {
        free((char *)r->field[i].name);
        free((char *)r->field[i].value);
    }
    free(r->field);
    free(r->type);
    if (!r->shared)
        free(r->body);
    http_text_unref(r->shared);
    *r = (struct http_reply){0};
}

void exchange_free(struct http_exchange *x)
{
    if (!x)
        return;
    stream_free(x->stream);
    reply_fini(&x->reply);
    http_target_fini(&x->target);
    free(x->body);
    free(x);
}

int exchange_body(struct http_exchange *x, const char *data, size_t len, size_t max)
{
    if (len > max - x->body_len) {
        x->too_large = true;
        return -EFBIG;
    }
    void *items = x->body;
    int r = array_reserve(&items, &x->body_cap, x->body_len + len + 1, 1, max + 1);
    x->body = items;
    if (r < 0)
        return r;
    memcpy(x->body + x->body_len, data, len);
    x->body_len += len;
    x->body[x->body_len] = '\0';
    return 0;
}

void exchange_request(struct http_exchange *x, const char *method, const char *target)
{
    bool head;

    x->method = http_method_parse(method, &head);
    if (!x->method) {
        x->refused = 405;
        x->why = "the method is not one that is served";
        return;
    }
    x->refused = http_target_parse(target, &x->target, &x->why);
}

/* ---- the request ---- */

enum http_method http_method(const struct http_exchange *x)
{
    return x->method;
}

const char *http_path(const struct http_exchange *x)
{
    return x->target.path;
}

const char *http_query(const struct http_exchange *x, const char *key)
{
    for (size_t i = 0; i < x->target.n_query; i++)
        if (strcmp(x->target.query[i].key, key) == 0)
            return x->target.query[i].value;
    return NULL;
}

size_t http_query_count(const struct http_exchange *x)
{
    return x->target.n_query;
}

const char *http_query_at(const struct http_exchange *x, size_t i, const char **ret_value)
{
    if (i >= x->target.n_query)
        return NULL;
    if (ret_value)
        *ret_value = x->target.query[i].value;
    return x->target.query[i].key;
}

int http_query_only(const struct http_exchange *x, const char *const *keys, uw_error *err)
{
    for (size_t i = 0; i < x->target.n_query; i++) {
        const char *key = x->target.query[i].key;
        size_t k = 0;
        while (keys[k] && strcmp(keys[k], key) != 0)
            k++;
        if (!keys[k])
            return fail(err, -EINVAL, "unknown key '%.64s' in the query", key);
    }
    return 0;
}

const char *http_body(const struct http_exchange *x, size_t *ret_len)
{
    if (ret_len)
        *ret_len = x->body_len;
    return x->body ? x->body : "";
}

int http_body_json(const struct http_exchange *x, struct json **ret, uw_error *err)
{
    const char *type = http_header(x, "Content-Type");
    static const char JSON[] = "application/json";

    if (x->body_len == 0)
        return fail(err, -EINVAL, "the request has no body: JSON is required");
    if (type && (strncasecmp(type, JSON, sizeof JSON - 1) != 0 ||
                 !strchr("; ", type[sizeof JSON - 1])))
        return fail(err, -EINVAL, "the body is '%.64s', not %s", type, JSON);
    return json_read("body", x->body, x->body_len, ret, err);
}

const struct http_peer *http_peer(const struct http_exchange *x)
{
    return x->peer;
}

/* ---- the reply ---- */

static int copy_fields(struct http_reply *r, const struct http_field *headers)
{
    size_t n = 0;

    while (headers && headers[n].name)
        n++;
    if (n == 0)
        return 0;
    r->field = calloc(n, sizeof *r->field);
    if (!r->field)
        return -ENOMEM;
    for (; r->n_fields < n; r->n_fields++) {
        struct http_field *to = &r->field[r->n_fields];
        to->name = strdup(headers[r->n_fields].name);
        to->value = strdup(headers[r->n_fields].value);
        if (!to->name || !to->value) {
            r->n_fields++;
            return -ENOMEM;
        }
    }
    return 0;
}

static int fill(struct http_reply *r, const char *type, const void *body, size_t len,
                const struct http_field *headers)
{
    if (type) {
        r->type = strdup(type);
        r->body = malloc(len + 1);
        if (!r->type || !r->body)
            return -ENOMEM;
        memcpy(r->body, body, len);
        r->body[len] = '\0';
        r->len = len;
    }
    return copy_fields(r, headers);
}

static int fill_shared(struct http_reply *r, const char *type, struct http_text *text,
                       const struct http_field *headers)
{
    r->type = strdup(type);
    if (!r->type)
        return -ENOMEM;
    text->refs++;
    r->shared = text;
    r->body = text->bytes;
    r->len = text->len;
    return copy_fields(r, headers);
}

/* False: there is a reply already.  *ret_kept: for finish(). */
static bool begin(struct http_exchange *x, unsigned status, bool *ret_kept)
{
    if (x->state != X_CALLED && x->state != X_KEPT && x->state != X_READING)
        return false;
    *ret_kept = x->state == X_KEPT;
    x->state = X_ANSWERED;
    x->gone = NULL;
    x->reply.status = status;
    return true;
}

/* r < 0: there was no memory for the reply. */
static void finish(struct http_exchange *x, int r, bool kept)
{
    if (r < 0) {
        reply_fini(&x->reply);
        x->reply.status = 503;
    }
    if (kept)
        resume(x);
}

void http_reply(struct http_exchange *x, unsigned status, const char *type,
                const void *body, size_t len, const struct http_field *headers)
{
    bool kept = false;

    if (begin(x, status, &kept))
        finish(x, fill(&x->reply, type, len > 0 ? body : "", len, headers), kept);
}

void http_reply_text(struct http_exchange *x, unsigned status, const char *type,
                     struct http_text *text, const struct http_field *headers)
{
    bool kept = false;

    if (begin(x, status, &kept))
        finish(x, fill_shared(&x->reply, type, text, headers), kept);
}

void http_reply_json(struct http_exchange *x, struct json_out *o)
{
    http_reply_json_as(x, 200, o);
}

void http_reply_json_as(struct http_exchange *x, unsigned status, struct json_out *o)
{
    char *text = NULL;
    uw_error err = {""};

    int r = json_out_string(o, &text, &err);
    json_out_free(o);
    if (r < 0)
        http_fail(x, r == -ENOMEM ? 503 : 500, "%s", err.text);
    else
        http_reply(x, status, "application/json", text, strlen(text), NULL);
    free(text);
}

static bool is_refusal(unsigned status)
{
    switch (status) {
    case 400:
    case 401:
    case 403:
    case 405:
    case 408:
    case 413:
    case 414:
    case 429:
    case 431:
    case 505:
        return true;
    default:
        return false;
    }
}

void http_fail_fields(struct http_exchange *x, unsigned status,
                      const struct http_field *headers, const char *text)
{
    struct json_out *o = json_out_new();
    char *body = NULL, cause[16];

    if (is_refusal(status) && x->calls) {
        (void)snprintf(cause, sizeof cause, "%u", status);
        x->stats->refused++;
        if (!x->told)
            x->calls->refused(x, *x->cause ? x->cause : cause, text);
    }
    json_out_object(o, NULL);
    json_out_text(o, "error", text);
    json_out_end(o);
    if (json_out_string(o, &body, NULL) < 0)
        http_reply(x, status, NULL, NULL, 0, NULL);
    else
        http_reply(x, status, "application/json", body, strlen(body), headers);
    json_out_free(o);
    free(body);
}

void exchange_refuse(struct http_exchange *x, unsigned status, const char *why)
{
    static const struct http_field ALLOW[] = {{"Allow", "GET, POST, PUT, PATCH, DELETE"},
                                              {NULL, NULL}};

    x->refused = status;
    http_fail_fields(x, status, status == 405 ? ALLOW : NULL, why);
    x->reply.close = true;
}

void http_told(struct http_exchange *x)
{
    x->told = true;
}

void http_cause(struct http_exchange *x, const char *cause)
{
    (void)snprintf(x->cause, sizeof x->cause, "%s", cause);
}

void http_fail(struct http_exchange *x, unsigned status, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    http_fail_fields(x, status, NULL, text);
}

unsigned http_status(int r)
{
    static const struct {
        int r;
        unsigned status;
    } MAP[] = {
        {-EINVAL, 400}, {-ERANGE, 400},    {-EPERM, 403},  {-EACCES, 403},
        {-ENOENT, 404}, {-ENODEV, 404},    {-ESRCH, 404},  {-EBUSY, 409},
        {-EEXIST, 409}, {-EALREADY, 409},  {-E2BIG, 409},  {-ENOTSUP, 422},
        {-EAGAIN, 503}, {-ETIMEDOUT, 503}, {-ENOMEM, 503},
    };

    for (size_t i = 0; i < n_elements(MAP); i++)
        if (MAP[i].r == r)
            return MAP[i].status;
    return 500;
}

void http_fail_r(struct http_exchange *x, int r, const uw_error *err)
{
    http_fail_fields(x, http_status(r), NULL,
                     err && *err->text ? err->text : strerror(r < 0 ? -r : r));
}

void http_on_gone(struct http_exchange *x, http_gone_fn fn, void *user)
{
    x->gone = fn;
    x->gone_user = user;
}

void exchange_gone(struct http_exchange *x)
{
    http_gone_fn gone = x->gone;
    struct http_stream *stream = x->stream;

    if (x->state == X_STREAM) {
        x->state = X_GONE;
        if (!stream->ended && stream->opts.on_closed)
            stream->opts.on_closed(stream, stream->opts.user);
        stream->ended = true;
        return;
    }
    if (x->state != X_KEPT && x->state != X_CALLED)
        return;
    x->state = X_GONE;
    x->gone = NULL;
    if (gone)
        gone(x, x->gone_user);
}

/* ---- streams ---- */

int http_stream_begin(struct http_exchange *x, const struct http_stream_opts *opts,
                      struct http_stream **ret, uw_error *err)
{
    if (x->state != X_CALLED && x->state != X_KEPT)
        return fail(err, -EINVAL, "the request is answered already");
    if (x->calls && !x->calls->may_stream(x))
        return fail(err, -EBUSY, "too many streams are open: %u", x->stats->streams);
    struct http_stream *stream = stream_new(x, opts);
    if (!stream)
        return fail(err, -ENOMEM, "out of memory");
    bool kept = x->state == X_KEPT;
    x->gone = NULL;
    x->stream = stream;
    x->state = X_STREAM;
    x->reply.status = 200;
    if (x->stats)
        x->stats->streams++;
    if (kept)
        resume(x);
    *ret = stream;
    return 0;
}

int http_stream_send(struct http_stream *stream, const char *event, const char *data)
{
    uint64_t before = stream->dropped;
    struct http_exchange *x = stream->x;

    int r = stream_push(stream, event, data);
    if (x->stats)
        x->stats->dropped_events += stream->dropped - before;
    if (r == 0)
        resume(x);
    return r;
}

size_t http_stream_waiting(const struct http_stream *stream)
{
    return stream->n;
}

void http_stream_end(struct http_stream *stream)
{
    stream->ended = true;
    resume(stream->x);
}
