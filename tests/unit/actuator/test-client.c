/* The client's virtual kind: the same answers with no process and no time. */
#include "actuator/client.h"

#include "base/auto.h"
#include "base/names.h"
#include "base/units.h"
#include "tap.h"
#include "unit/actuator/fake.h"
#include "virtual/virtual-loop.h"

struct seen {
    struct loop *loop;
    struct actuator *act;
    int ready, n_replies, n_events, n_boards;
    struct actuator_reply reply;
    enum actuator_event event;
    bool inside; /* a call of ours is on the stack */
    bool free_in_reply, fail_in_reply;
};

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct seen *s = user;

    (void)act;
    (void)text;
    s->ready = r == 0 ? 1 : -1;
    return 0;
}

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    struct seen *s = user;

    (void)act;
    s->n_boards += event == ACTUATOR_EVENT_BOARD;
    if (event == ACTUATOR_EVENT_BOARD)
        return 0;
    s->event = event;
    s->reply = *what;
    s->n_events++;
    return 0;
}

static int on_reply(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct seen *s = user;

    if (s->inside)
        ok(false, "a callback from inside the call that asked");
    s->reply = *reply;
    s->n_replies++;
    if (s->free_in_reply) {
        actuator_free(act);
        s->act = NULL;
    }
    return s->fail_in_reply ? -ECANCELED : 0;
}

static int on_pause(struct loop_timer *timer, uint64_t now, void *user)
{
    struct seen *s = user;

    (void)timer;
    (void)now;
    loop_stop(s->loop, 0);
    return 0;
}

static int pass(struct seen *s, unsigned ms)
{
    struct loop_timer *pause = NULL;

    (void)loop_timer_new(s->loop, loop_now_ns(s->loop) + ms * NS_PER_MS, 0, on_pause, s,
                         &pause, NULL);
    int r = loop_run(s->loop, NULL);
    loop_timer_free(pause);
    return r;
}

static void begin(struct seen *s)
{
    const struct actuator_opts opts = {
        .on_ready = on_ready, .on_event = on_event, .user = s};

    memset(s, 0, sizeof *s);
    (void)loop_new_virtual(1000 * NS_PER_S, 0, &s->loop, NULL);
    fake_reset(s->loop);
    ok(actuator_start_virtual(s->loop, &fake_backend, NULL, &opts, &s->act, NULL) == 0,
       "started");
    ok(s->ready == 0 && actuator_hold(s->act, "GPU-0", on_reply, s) == -ENOTCONN,
       "not ready from inside the start");
    (void)pass(s, 10);
    is_int(s->ready, 1, "ready");
}

static void finish(struct seen *s)
{
    actuator_free(s->act);
    loop_free(s->loop);
}

static void expect(struct seen *s, int r, enum actuator_result want, const char *what)
{
    int before = s->n_replies;

    s->inside = false;
    is_int(r, 0, "%s: asked", what);
    (void)pass(s, 100);
    ok(s->n_replies == before + 1 && s->reply.result == want, "%s: %s (%s)", what,
       names_word(NAMES_ACTUATOR_RESULT, want), s->reply.text);
}

#define EXPECT(s, call, want) ((s)->inside = true, expect((s), (call), (want), #call))

static void test_life(void)
{
    struct seen s;

    begin(&s);
    is_int(s.n_boards, 4, "an event of each board");
    is_int(actuator_hold(s.act, "../x", on_reply, &s), -EINVAL, "a path is no board");
    EXPECT(&s, actuator_look(s.act, on_reply, &s), ACTUATOR_DONE);
    is_int(s.n_boards, 4, "no holder has changed");
    is_int(actuator_look(s.act, NULL, NULL), 0, "nobody needs the answer");
    EXPECT(&s, actuator_hold(s.act, "GPU-9", on_reply, &s), ACTUATOR_GONE);
    EXPECT(&s, actuator_set_limit(s.act, "GPU-0", 200000, on_reply, &s), ACTUATOR_GONE);
    EXPECT(&s, actuator_hold(s.act, "GPU-0", on_reply, &s), ACTUATOR_DONE);
    ok(s.reply.original_mw == 250000 && s.reply.limits.max_mw == 300000 &&
           strcmp(s.reply.uuid, "GPU-0") == 0,
       "with original and range");
    EXPECT(&s, actuator_set_limit(s.act, "GPU-0", 200000, on_reply, &s), ACTUATOR_DONE);
    is_int(s.reply.enforced_mw, 200000, "read back");
    EXPECT(&s, actuator_set_clocks(s.act, "GPU-0", 900, 1200, on_reply, &s),
           ACTUATOR_DONE);
    is_int((int)fake_dev[0].max_mhz, 1200, "clocks locked");
    EXPECT(&s, actuator_set_clocks(s.act, "GPU-0", 0, 0, on_reply, &s), ACTUATOR_DONE);
    is_int((int)fake_dev[0].max_mhz, 0, "clocks reset");
    (void)pass(&s, 3600 * 1000);
    ok(fake_dev[0].set_mw == 200000 && s.n_events == 0, "renewed by itself for an hour");
    EXPECT(&s, actuator_release(s.act, "GPU-0", on_reply, &s), ACTUATOR_DONE);
    ok(fake_dev[0].set_mw == 250000 && s.reply.enforced_mw == 250000, "original back");

    EXPECT(&s, actuator_hold(s.act, "GPU-1", on_reply, &s), ACTUATOR_DONE);
    EXPECT(&s, actuator_set_limit(s.act, "GPU-1", 200000, on_reply, &s), ACTUATOR_DONE);
    fake_dev[1].set_mw = 180000;
    (void)pass(&s, 1500);
    ok(s.n_events == 1 && s.event == ACTUATOR_EVENT_YIELDED, "another's limit: an event");
    EXPECT(&s, actuator_hold(s.act, "GPU-1", on_reply, &s), ACTUATOR_YIELDED);
    EXPECT(&s, actuator_hold_again(s.act, "GPU-1", true, on_reply, &s), ACTUATOR_DONE);
    is_int(s.reply.original_mw, 250000, "held again with its original");
    EXPECT(&s, actuator_release(s.act, "GPU-1", on_reply, &s), ACTUATOR_DONE);
    is_int((int)fake_dev[1].set_mw, 250000, "which comes back");
    EXPECT(&s, actuator_hold(s.act, "GPU-1", on_reply, &s), ACTUATOR_DONE);
    EXPECT(&s, actuator_set_limit(s.act, "GPU-1", 200000, on_reply, &s), ACTUATOR_DONE);
    fake_dev[1].set_mw = 180000;
    (void)pass(&s, 1500);
    finish(&s);
    is_int((int)fake_dev[1].set_mw, 180000, "and it stays");
}

static void test_free(void)
{
    struct seen s;

    begin(&s);
    EXPECT(&s, actuator_hold(s.act, "GPU-0", on_reply, &s), ACTUATOR_DONE);
    EXPECT(&s, actuator_set_limit(s.act, "GPU-0", 200000, on_reply, &s), ACTUATOR_DONE);
    actuator_free(s.act);
    is_int((int)fake_dev[0].set_mw, 250000, "freed, the original is back");
    loop_free(s.loop);

    begin(&s);
    EXPECT(&s, actuator_hold(s.act, "GPU-0", on_reply, &s), ACTUATOR_DONE);
    fake_dev[0].set_takes_ns = 40 * NS_PER_MS;
    is_int(actuator_set_limit(s.act, "GPU-0", 200000, on_reply, &s), 0,
           "a write under way");
    fake_dev[0].set_takes_ns = 0;
    int replies = s.n_replies;
    finish(&s);
    ok(fake_dev[0].set_mw == 250000 && s.n_replies == replies,
       "freed under a write: original back, no answer");

    begin(&s);
    s.free_in_reply = true;
    ok(actuator_hold(s.act, "GPU-0", on_reply, &s) == 0 &&
           actuator_hold(s.act, "GPU-1", on_reply, &s) == 0,
       "two asked");
    (void)pass(&s, 100);
    is_int(s.n_replies, 1, "freed in the first answer: no second one");
    loop_free(s.loop);

    begin(&s);
    s.fail_in_reply = true;
    (void)actuator_hold(s.act, "GPU-0", on_reply, &s);
    is_int(pass(&s, 100), -ECANCELED, "what a callback returns ends the loop");
    finish(&s);
    actuator_free(NULL);
}

static void test_many(void)
{
    struct seen s;
    int n = 0;

    begin(&s);
    EXPECT(&s, actuator_hold(s.act, "GPU-0", on_reply, &s), ACTUATOR_DONE);
    while (n < 1000 && actuator_set_limit(s.act, "GPU-0", 200000, on_reply, &s) == 0)
        n++;
    is_int(n, 64, "64 may wait, and no more");
    int before = s.n_replies;
    (void)pass(&s, 200);
    is_int(s.n_replies - before, 64, "each is answered");
    is_int(s.reply.result, ACTUATOR_DONE, "the last one: done");
    finish(&s);
}

int main(void)
{
    test_life();
    test_free();
    test_many();
    return done();
}
