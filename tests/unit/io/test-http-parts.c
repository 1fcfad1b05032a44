/* The parts of the HTTP server that need no socket: targets, the log of refusals,
 * queues of events, and handlers through http_try_new().
 */
#include <errno.h>
#include <stdlib.h>

#include "base/units.h"
#include "http-try.h"
#include "io/http-exchange.h"
#include "io/http-refuse.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

/* ---- targets ---- */

/* clang-format off */
static const struct {
    const char *target;
    unsigned status;
    const char *path, *key, *value;
} targets[] = {
    {"/", 0, "/", NULL, NULL},
    {"/v1/gpus", 0, "/v1/gpus", NULL, NULL},
    {"/v1/gpus/0", 0, "/v1/gpus/0", NULL, NULL},
    {"/a?b=c", 0, "/a", "b", "c"},
    {"/a?b=c%20d+e", 0, "/a", "b", "c d e"},
    {"/a?b", 0, "/a", "b", ""},
    {"/a?b=1&&c=2", 0, "/a", "c", "2"},
    {"/a?b=%c3%a4", 0, "/a", "b", "\xc3\xa4"},
    {"/a?x=..%2f..", 0, "/a", "x", "../.."},
    {"/a%20b", 0, "/a b", NULL, NULL},
    {"/.well-known", 0, "/.well-known", NULL, NULL},
    {"/a+b", 0, "/a+b", NULL, NULL},
    {"", 400, NULL, NULL, NULL},
    {"*", 400, NULL, NULL, NULL},
    {"http://host/a", 400, NULL, NULL, NULL},
    {"a", 400, NULL, NULL, NULL},
    {"//", 400, NULL, NULL, NULL},
    {"//a", 400, NULL, NULL, NULL},
    {"/a//b", 400, NULL, NULL, NULL},
    {"/a/", 400, NULL, NULL, NULL},
    {"/.", 400, NULL, NULL, NULL},
    {"/..", 400, NULL, NULL, NULL},
    {"/a/../b", 400, NULL, NULL, NULL},
    {"/a/./b", 400, NULL, NULL, NULL},
    {"/a/%2e%2e/b", 400, NULL, NULL, NULL},
    {"/%2e", 400, NULL, NULL, NULL},
    {"/a%2fb", 400, NULL, NULL, NULL},
    {"/a%2Fb", 400, NULL, NULL, NULL},
    {"/a%5cb", 400, NULL, NULL, NULL},
    {"/a\\b", 400, NULL, NULL, NULL},
    {"/a%00b", 400, NULL, NULL, NULL},
    {"/a%0ab", 400, NULL, NULL, NULL},
    {"/a%7fb", 400, NULL, NULL, NULL},
    {"/a%25b", 400, NULL, NULL, NULL},
    {"/a%252fb", 400, NULL, NULL, NULL},
    {"/a%c0%afb", 400, NULL, NULL, NULL},
    {"/a%", 400, NULL, NULL, NULL},
    {"/a%2", 400, NULL, NULL, NULL},
    {"/a%zz", 400, NULL, NULL, NULL},
    {"/a b", 400, NULL, NULL, NULL},
    {"/a#b", 400, NULL, NULL, NULL},
    {"/\xc3\xa4", 400, NULL, NULL, NULL},
    {"/a?b=%00", 400, NULL, NULL, NULL},
    {"/a?b=%0d%0aX", 400, NULL, NULL, NULL},
    {"/a?b=%", 400, NULL, NULL, NULL},
    {"/a?=b", 400, NULL, NULL, NULL},
    {"/a?b=1&b=2", 400, NULL, NULL, NULL},
    {"/a?b=1&%62=2", 400, NULL, NULL, NULL},
    {"/a?b=<", 400, NULL, NULL, NULL},
};
/* clang-format on */

static void test_targets(void)
{
    for (size_t i = 0; i < n_elements(targets); i++) {
        struct http_target t = {.path = "canary"};
        const char *why = NULL;
        unsigned status = http_target_parse(targets[i].target, &t, &why);
        bool good = status == targets[i].status;
        if (status == 0) {
            good = good && strcmp(t.path, targets[i].path) == 0 && !why;
            bool found = !targets[i].key;
            for (size_t k = 0; k < t.n_query; k++)
                found |= targets[i].key && strcmp(t.query[k].key, targets[i].key) == 0 &&
                         strcmp(t.query[k].value, targets[i].value) == 0;
            good = good && found;
            http_target_fini(&t);
        } else {
            good = good && why && strcmp(t.path, "canary") == 0;
        }
        ok(good, "'%s': %u", targets[i].target, status);
    }
}

static void test_target_bounds(void)
{
    char text[4096] = "/";
    struct http_target t;
    const char *why;

    memset(text + 1, 'a', HTTP_PATH_MAX - 1);
    is_int(http_target_parse(text, &t, &why), 0, "a path of %d bytes", HTTP_PATH_MAX);
    http_target_fini(&t);
    text[HTTP_PATH_MAX] = 'a';
    is_int(http_target_parse(text, &t, &why), 414, "and no longer one");
    size_t n = 2;
    (void)snprintf(text, sizeof text, "/?");
    for (int i = 0; i <= HTTP_QUERY_MAX; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "k%d=%d&", i, i);
    is_int(http_target_parse(text, &t, &why), 400, "%d keys", HTTP_QUERY_MAX + 1);
}

static void test_methods(void)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    bool head;

    for (size_t i = 0; i < n_elements(names); i++)
        is_str(http_method_name(http_method_parse(names[i], &head)), names[i], names[i]);
    ok(http_method_parse("HEAD", &head) == HTTP_GET && head, "HEAD is GET");
    ok(!http_method_parse("get", &head) && !http_method_parse("TRACE", &head) &&
           !http_method_parse("", &head) && !http_method_parse("CONNECT", &head),
       "others are none");
}

/* ---- who counts as one ---- */

static void test_networks(void)
{
    /* clang-format off */
    static const struct { const char *address, *network; } cases[] = {
        {"192.0.2.7", "192.0.2.7"}, {"127.0.0.1", "127.0.0.1"},
        {"::ffff:192.0.2.7", "192.0.2.7"}, {"::ffff:c000:207", "192.0.2.7"},
        {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"}, {"2001:db8:1:2::", "2001:db8:1:2::/64"},
        {"2001:db8:1:2:ffff:ffff:ffff:ffff", "2001:db8:1:2::/64"}, {"2001:db8:1:3::1", "2001:db8:1:3::/64"},
        {"2001:db8::1", "2001:db8::/64"}, {"::1", "::/64"}, {"fe80::1", "fe80::/64"},
        {"2002:c000:207::1", "2002:c000:207::/64"}, {"", ""}, {"nonsense", "nonsense"},
    };
    /* clang-format on */
    char got[64];

    for (size_t i = 0; i < n_elements(cases); i++) {
        http_network(cases[i].address, got);
        is_str(got, cases[i].network, cases[i].address);
    }
}

/* ---- the log of refusals ---- */

struct lines {
    char text[4096];
    unsigned n;
};

static void on_line(const char *line, void *user)
{
    struct lines *l = user;
    size_t n = strlen(l->text);

    l->n++;
    (void)snprintf(l->text + n, sizeof l->text - n, "%s\n", line);
}

static void refuse(struct refuse_log *log, const char *cause, const char *peer,
                   const char *detail, uint64_t s)
{
    refuse_note(log, &(struct refuse_what){cause, peer, detail}, s * NS_PER_S);
}

static void test_refusals(void)
{
    struct lines lines = {.n = 0};
    struct refuse_log *log = calloc(1, sizeof *log);

    log->fn = on_line;
    log->user = &lines;
    refuse(log, "403", "uid 1", "no\nline \"x\"", 100);
    is_str(lines.text, "cause=\"403\" peer=\"uid 1\" detail=\"no?line ?x?\"\n",
           "the first is told at once, cleaned");
    for (int i = 0; i < 10000; i++)
        refuse(log, "403", "uid 1", "again", 101);
    is_int(lines.n, 1, "ten thousand more are not");
    refuse(log, "403", "uid 2", NULL, 102);
    refuse(log, "401", "uid 1", NULL, 102);
    is_int(lines.n, 3, "another peer and another cause are");
    free(log);
}

static void test_refusal_counts(void)
{
    struct lines lines = {.n = 0};
    struct refuse_log *log = calloc(1, sizeof *log);

    log->fn = on_line;
    log->user = &lines;
    for (int i = 0; i <= 10000; i++)
        refuse(log, "403", "uid 1", NULL, 101);
    refuse(log, "403", "uid 2", NULL, 102);
    lines.text[0] = '\0';
    ok(refuse_tick(log, 161 * NS_PER_S), "after a minute …");
    is_str(lines.text, "cause=\"403\" peer=\"uid 1\" again=10000\n", "… the count");
    lines.text[0] = '\0';
    ok(refuse_tick(log, 170 * NS_PER_S), "one is still remembered");
    is_str(lines.text, "", "nothing twice");
    ok(!refuse_tick(log, 230 * NS_PER_S), "in the end nobody is");
    refuse(log, "403", "uid 1", NULL, 231);
    is_str(lines.text, "cause=\"403\" peer=\"uid 1\"\n", "and it is a first one again");
    free(log);
}

static void test_refusal_crowd(void)
{
    struct lines lines = {.n = 0};
    struct refuse_log *log = calloc(1, sizeof *log);
    char peer[32];

    log->fn = on_line;
    log->user = &lines;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(peer, sizeof peer, "192.0.2.%d", i);
        refuse(log, "401", peer, NULL, 232);
    }
    is_int(lines.n, REFUSE_SLOTS, "a thousand peers fill the table and no more");
    lines = (struct lines){.n = 0};
    (void)refuse_tick(log, 300 * NS_PER_S);
    is_str(lines.text, "cause=\"others\" again=936\n", "the others are counted");
    free(log);
}

/* ---- queues of events ---- */

static const char *drain(struct http_stream *stream, size_t step)
{
    static char text[8192];
    size_t n = 0, got;

    while ((got = stream_pull(stream, text + n,
                              step < sizeof text - 1 - n ? step : sizeof text - 1 - n)) >
           0)
        n += got;
    text[n] = '\0';
    return text;
}

static void test_stream_format(void)
{
    struct http_stream *stream = stream_new(NULL, NULL);

    ok(stream_push(stream, "cap", "{\"gpu\": 0}") == 0 &&
           stream_push(stream, NULL, "a\nb\r\nc") == 0 &&
           stream_push(stream, "x", "") == 0,
       "three events");
    is_str(drain(stream, 3),
           "event: cap\ndata: {\"gpu\": 0}\n\ndata: a\ndata: b\ndata: c\n\n"
           "event: x\ndata: \n\n",
           "their text, three bytes at a time");
    ok(stream_empty(stream) && stream->bytes == 0, "nothing waits");
    (void)stream_push(stream, "a\nb: c", "d");
    is_str(drain(stream, 100), "event: a\ndata: d\n\n", "an event's name is one line");
    stream_beat(stream);
    is_str(drain(stream, 2), ":\n\n", "a heartbeat");
    (void)stream_push(stream, NULL, "d");
    stream_beat(stream);
    is_str(drain(stream, 100), "data: d\n\n", "none where something waits");
    stream_free(stream);
}

static void test_stream_bounds(void)
{
    struct http_stream_opts opts = {.events = 3, .bytes = 100};
    struct http_stream *stream = stream_new(NULL, &opts);
    char text[200] = "", buf[4];

    for (int i = 0; i < 10; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        (void)stream_push(stream, NULL, text);
    }
    is_int(stream->n, 3, "ten events into a queue of three");
    is_str(drain(stream, 100),
           "event: dropped\ndata: {\"dropped\": 7}\n\n"
           "data: 7\n\ndata: 8\n\ndata: 9\n\n",
           "the newest are left, and what was dropped is told first");
    for (int i = 0; i < 3; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        (void)stream_push(stream, NULL, text);
    }
    is_int(stream_pull(stream, buf, 4), 4, "half of one is out");
    for (int i = 3; i < 9; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        (void)stream_push(stream, NULL, text);
    }
    is_str(drain(stream, 100),
           ": 0\n\nevent: dropped\ndata: {\"dropped\": 6}\n\ndata: 7\n\ndata: 8\n\n",
           "it is not cut");
    memset(text, 'x', 60);
    text[60] = '\0';
    ok(stream_push(stream, NULL, text) == 0 && stream_push(stream, NULL, text) == 0,
       "two events of 68 bytes into 100");
    ok(stream->n == 1 && stream->bytes == 68, "one is left");
    memset(text, 'x', 150);
    is_int(stream_push(stream, NULL, text), -E2BIG, "one that is larger than all of it");
    ok(stream->n == 1 && stream->bytes == 68, "changes nothing");
    stream_free(stream);
}

/* ---- handlers without sockets ---- */

struct rig {
    struct http_exchange *kept;
    struct http_stream *stream;
    int gone, closed;
};

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
}

static void handler(struct http_exchange *x, void *user)
{
    static const char *const KEYS[] = {"a", NULL};
    struct rig *rig = user;
    struct json_out *o;
    struct json *doc = NULL;
    uw_error err;

    if (strcmp(http_path(x), "/keep") == 0) {
        rig->kept = x;
        http_on_gone(x, on_gone, rig);
        return;
    }
    if (strcmp(http_path(x), "/stream") == 0) {
        struct http_stream_opts opts = {.on_closed = on_closed, .user = rig};
        (void)http_stream_begin(x, &opts, &rig->stream, &err);
        return;
    }
    if (http_query_only(x, KEYS, &err) < 0) {
        http_fail_r(x, -EINVAL, &err);
        return;
    }
    if (http_method(x) == HTTP_POST) {
        int r = http_body_json(x, &doc, &err);
        json_free(doc);
        if (r < 0) {
            http_fail_r(x, r, &err);
            return;
        }
    }
    o = json_out_new();
    json_out_object(o, NULL);
    json_out_text(o, "path", http_path(x));
    json_out_text(o, "a", http_query(x, "a"));
    json_out_text(o, "peer", http_peer(x)->name);
    json_out_text(o, "accept", http_header(x, "accept"));
    json_out_end(o);
    http_reply_json(x, o);
}

static const struct http_field json_type[] = {
    {"Content-Type", "application/json"}, {"Accept", "*/*"}, {NULL, NULL}};
static const struct http_field text_type[] = {{"content-type", "text/plain"},
                                              {NULL, NULL}};
/* clang-format off */
static const struct {
    const char *method, *target, *body;
    const struct http_field *headers;
    unsigned status;
    const char *want; /* in the body */
} asks[] = {
    {"GET", "/x?a=1", NULL, json_type, 200, "\"a\": \"1\""},
    {"HEAD", "/x", NULL, NULL, 200, "\"accept\": null"},
    {"POST", "/x", "{\"b\": 1}", json_type, 200, "\"accept\": \"*/*\""},
    {"POST", "/x", "{\"b\": 1}", NULL, 200, "/x"},
    {"POST", "/x", "{\"b\": 1}", text_type, 400, "text/plain"},
    {"POST", "/x", "{\"b\": 1", json_type, 400, "body:1"},
    {"POST", "/x", NULL, json_type, 400, "no body"},
    {"GET", "/x?b=1", NULL, NULL, 400, "unknown key 'b'"},
    {"GET", "/x/../y", NULL, NULL, 400, "path"},
    {"TRACE", "/x", NULL, NULL, 405, "method"},
};
/* clang-format on */

static void test_tries(struct loop *loop)
{
    for (size_t i = 0; i < n_elements(asks); i++) {
        struct rig rig = {0};
        auto_(http_try_free) struct http_try *t = NULL;
        struct http_try_ask ask = {.method = asks[i].method,
                                   .target = asks[i].target,
                                   .body = asks[i].body,
                                   .headers = asks[i].headers};
        (void)snprintf(ask.peer.name, sizeof ask.peer.name, "uid 7");
        int r = http_try_new(loop, handler, &rig, &ask, &t);
        if (!ok(r == 0 && http_try_status(t) == asks[i].status &&
                    strstr(http_try_body(t, NULL), asks[i].want) &&
                    strcmp(http_try_header(t, "content-type"), "application/json") == 0,
                "%s %s: %u", asks[i].method, asks[i].target, asks[i].status))
            printf("# %u %s\n", http_try_status(t), http_try_body(t, NULL));
    }
}

static void test_kept_tries(struct loop *loop)
{
    struct rig rig = {0};
    struct http_try_ask ask = {.method = "GET", .target = "/keep"};
    struct http_try *t = NULL;

    (void)http_try_new(loop, handler, &rig, &ask, &t);
    is_int(http_try_status(t), 0, "kept");
    http_fail(rig.kept, 409, "board %d is taken", 3);
    is_int(http_try_status(t), 409, "and answered later");
    is_str(http_try_body(t, NULL), "{\n  \"error\": \"board 3 is taken\"\n}", "its text");
    http_try_free(t);
    is_int(rig.gone, 0, "nobody is told that it went after that");
    (void)http_try_new(loop, handler, &rig, &ask, &t);
    http_try_free(t);
    is_int(rig.gone, 1, "but who kept it, when it goes before");
}

static void test_stream_tries(struct loop *loop)
{
    struct rig rig = {0};
    struct http_try_ask ask = {.method = "GET", .target = "/stream"};
    struct http_try *t = NULL;

    (void)http_try_new(loop, handler, &rig, &ask, &t);
    ok(http_try_status(t) == 200 &&
           strcmp(http_try_header(t, "Content-Type"), "text/event-stream") == 0,
       "a stream");
    (void)http_stream_send(rig.stream, "a", "1");
    (void)http_stream_send(rig.stream, "a", "2");
    is_int(http_stream_waiting(rig.stream), 2, "two events wait");
    is_str(http_try_body(t, NULL), "event: a\ndata: 1\n\nevent: a\ndata: 2\n\n", "read");
    is_str(http_try_body(t, NULL), "", "once");
    http_try_free(t);
    is_int(rig.closed, 1, "its owner is told that the reader went");
    (void)http_try_new(loop, handler, &rig, &ask, &t);
    http_stream_end(rig.stream);
    http_try_free(t);
    is_int(rig.closed, 1, "but not when it ended it");
}

static void test_status(void)
{
    static const struct {
        int r;
        unsigned status;
    } cases[] = {{-EINVAL, 400}, {-ERANGE, 400}, {-EPERM, 403},   {-ENOENT, 404},
                 {-EBUSY, 409},  {-E2BIG, 409},  {-ENOTSUP, 422}, {-EAGAIN, 503},
                 {-ENOMEM, 503}, {-EIO, 500},    {-EPIPE, 500},   {-EALREADY, 409}};

    for (size_t i = 0; i < n_elements(cases); i++)
        is_int(http_status(cases[i].r), cases[i].status, "%s", strerror(-cases[i].r));
}

int main(void)
{
    auto_(loop_free) struct loop *loop = NULL;
    struct http_server *s = NULL;
    uw_error err;

    test_targets();
    test_target_bounds();
    test_methods();
    test_networks();
    test_refusals();
    test_refusal_counts();
    test_refusal_crowd();
    test_stream_format();
    test_stream_bounds();
    if (loop_new_virtual(1, 0, &loop, &err) < 0)
        return 1;
    test_tries(loop);
    test_kept_tries(loop);
    test_stream_tries(loop);
    test_status();
    is_int(
        http_server_new(&(struct http_opts){.loop = loop, .handler = handler}, &s, &err),
        -ENOTSUP, "no server in virtual time");
    return done();
}
