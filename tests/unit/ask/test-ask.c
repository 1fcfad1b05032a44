/* Requests to a handler in this process: answers now and later, refusals, waiting. */
#include <errno.h>
#include <string.h>

#include "ask/ask.h"
#include "base/units.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

static struct {
    struct loop *loop;
    struct ask *ask;
    struct http_exchange *kept;
    struct loop_timer *timer;
    bool gone, stops;
    unsigned answers;
    int r;
    unsigned status;
    char text[200];
    unsigned peer;
} w;

static void on_gone(struct http_exchange *x, void *user)
{
    (void)x;
    (void)user;
    w.gone = true;
}

static void handler(struct http_exchange *x, void *user)
{
    struct json *doc = NULL;
    uw_error err = {""};
    (void)user;

    w.peer = http_peer(x)->uid;
    if (strcmp(http_path(x), "/later") == 0) {
        w.kept = x;
        http_on_gone(x, on_gone, NULL);
    } else if (strcmp(http_path(x), "/empty") == 0) {
        http_reply(x, 204, NULL, NULL, 0, NULL);
    } else if (strcmp(http_path(x), "/echo") == 0) {
        int r = http_body_json(x, &doc, &err);
        const char *text = r == 0 ? json_as_text(json_get(json_root(doc), "a")) : NULL;
        struct json_out *o = json_out_new();
        json_out_object(o, NULL);
        json_out_text(o, "b", text);
        json_out_end(o);
        http_reply_json(x, o);
        json_free(doc);
    } else {
        http_fail(x, 404, "there is no %s", http_path(x));
    }
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    static const char body[] = "{\"late\": true}";
    (void)timer;
    (void)now_ns;
    (void)user;

    if (w.stops)
        loop_stop(w.loop, 0);
    else if (w.kept)
        http_reply(w.kept, 200, "application/json", body, sizeof body - 1, NULL);
    w.kept = NULL;
    return 0;
}

static int on_answer(struct ask_answer *answer, void *user)
{
    (void)user;
    w.answers++;
    w.r = answer->r;
    w.status = answer->status;
    (void)snprintf(w.text, sizeof w.text, "%s", answer->error.text);
    loop_stop(w.loop, 0);
    return 0;
}

static struct json_out *body(void)
{
    struct json_out *o = json_out_new();

    json_out_object(o, NULL);
    json_out_text(o, "a", "hello");
    json_out_end(o);
    return o;
}

static void after_s(double s)
{
    loop_timer_set(w.timer, loop_now_ns(w.loop) + ns_of_s(s), 0);
}

static void answers(void)
{
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    ok(ask_request(w.ask, "GET", "/nowhere", NULL, on_answer, NULL, &err) == 0 &&
           w.answers == 0,
       "an answer never comes from inside the request");
    (void)loop_run(w.loop, NULL);
    ok(w.answers == 1 && w.r == -ENOENT && w.status == 404 &&
           strcmp(w.text, "there is no /nowhere") == 0,
       "a refusal has the handler's text: %s", w.text);
    ok(ask_wait(w.ask, "POST", "/echo", body(), &doc, &err) == 0 &&
           strcmp(json_as_text(json_get(json_root(doc), "b")), "hello") == 0,
       "JSON in and out: %s", err.text);
    is_int(w.peer, 4711, "the handler sees the peer");
    json_free(take(doc));
    ok(ask_wait(w.ask, "DELETE", "/empty", NULL, &doc, &err) == 0 && !doc,
       "an answer without a body");
    ok(ask_wait(w.ask, "GET", "/a/../b", NULL, NULL, &err) == -EINVAL,
       "a path is checked as one from outside");
    ok(ask_wait(w.ask, "BREW", "/echo", NULL, NULL, &err) < 0, "a method too");
}

static void later(void)
{
    auto_(json_free) struct json *doc = NULL;
    uw_error err = {""};

    after_s(3);
    ok(ask_wait(w.ask, "GET", "/later", NULL, &doc, &err) == 0 && doc,
       "an answer that comes later");
    w.stops = true;
    after_s(1);
    ok(ask_wait(w.ask, "GET", "/later", NULL, NULL, &err) == -EINTR,
       "who stops the loop ends the wait");
    w.answers = 0;
    (void)ask_request(w.ask, "GET", "/later", NULL, on_answer, NULL, &err);
    w.gone = false;
    ask_free(take(w.ask));
    ok(w.gone && w.answers == 0, "freed: the handler is told, the caller is not");
}

int main(void)
{
    const struct http_peer peer = {.local = true, .uid = 4711};
    uw_error err = {""};
    int r = loop_new_virtual(1000 * NS_PER_S, 1700000000, &w.loop, &err);

    if (r == 0)
        r = loop_timer_new(w.loop, UINT64_MAX, 0, on_timer, NULL, &w.timer, &err);
    if (r == 0)
        r = ask_handler(w.loop, handler, NULL, &peer, &w.ask, &err);
    ok(r == 0, "a loop and a handler");
    answers();
    later();
    ask_free(w.ask);
    loop_timer_free(w.timer);
    loop_free(w.loop);
    return done();
}
