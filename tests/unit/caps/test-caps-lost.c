/* Boards and actuators that go and come back, rights that are missing, letting go,
 * dry runs: in virtual time.
 */
#include <errno.h>

#include "base/names.h"
#include "unit/caps/caps-scene.h"

#define CLS                                      \
    {                                            \
        .first = 0.9, .floor = 0.5, .rate = 0.01 \
    }
static const struct caps_conf conf = {.cls = CLS};

static void test_actuator(void)
{
    struct scene *s = scene_new("an actuator that is lost", 2, &conf);

    claim(s, 0, CLAIM_HARD, 200);
    claim(s, 0, CLAIM_NAMED, 180);
    pass(s, 30);
    is_limit(s, 0, 180, "in force");
    scene_no_actuator(s);
    is_state(s, 0, CAPS_LOST, "gone");
    is_state(s, 1, CAPS_FREE, "nothing lost where nothing was claimed");
    pass(s, 1);
    is_limit(s, 0, 300, "its keeper has restored");
    is_int(look(s, 0).claims->n, 2, "claims stay");
    is_int(look(s, 0).enforced_mw, W(300), "the view has what is in force");
    claim_for(s, 1, CLAIM_HARD, 200, 10);
    is_state(s, 1, CAPS_LOST, "a new claim waits for an actuator");
    pass(s, 20);
    is_state(s, 1, CAPS_FREE, "over meanwhile");
    scene_actuator(s);
    pass(s, 0.3);
    is_limit(s, 0, 200, "a new actuator: the hard claim at once");
    pass(s, 3);
    is_near(w_of_mw(limit_of(s, 0)), 191, 2, "the named one at its pace");
    pass(s, 10);
    is_limit(s, 0, 180, "to its target");
    is_state(s, 1, CAPS_FREE, "the other is left alone");
    ok(changes(s, 0) == 0 && changes(s, 1) == 0, "no other writer was seen in all this");
    scene_free(s);
}

static void test_right(void)
{
    struct scene *s = scene_new("without the right", 1, &conf);

    fault(s, "0 refuse");
    uint64_t id = claim(s, 0, CLAIM_NAMED, 200);
    pass(s, 0.5);
    struct caps_view v = look(s, 0);
    ok(v.state == CAPS_DENIED && v.text[0] && v.failures == 1, "denied: %s", v.text);
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: ");
    is_int(told(s, CAPS_EVENT_FAIL), 1, "told once");
    pass(s, 600);
    is_int(look(s, 0).failures, 5, "a claim by name: after 30, 60, 120, 240 s");
    pass(s, 3000);
    is_int(look(s, 0).failures, 15, "then each 5 minutes");
    is_int(told(s, CAPS_EVENT_FAIL), 1, "still told once");
    fault(s, "0 accept");
    pass(s, 301);
    is_state(s, 0, CAPS_HELD, "given: held");
    pass(s, 200);
    is_limit(s, 0, 200, "and set");
    is_met(s, 0, id, CAPS_MET, "in force");
    scene_free(s);

    s = scene_new("a budget without the right", 1, &conf);
    fault(s, "0 refuse");
    (void)claim(s, 0, CLAIM_NAMED, 250);
    pass(s, 400);
    uint64_t before = look(s, 0).failures;
    id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 8.2);
    is_int(look(s, 0).failures - before, 5, "asked at once, after 0.5, 1, 2 and 4 s");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: ");
    pass(s, 3600);
    before = look(s, 0).failures;
    pass(s, 320);
    is_int(look(s, 0).failures - before, 10, "then each 32 s");
    fault(s, "0 accept");
    pass(s, 33);
    is_limit(s, 0, 200, "in force within 32 s of the right");
    is_met(s, 0, id, CAPS_MET, "in force");
    scene_free(s);

    s = scene_new("the right is taken away", 1, &conf);
    id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 0.5);
    fault(s, "0 refuse");
    uint64_t denied = claim(s, 0, CLAIM_HARD, 180);
    pass(s, 1);
    is_met(s, 0, id, CAPS_MET, "in force");
    is_met(s, 0, denied, CAPS_NOT_MET, "not in force: ");
    v = look(s, 0);
    ok(v.failures >= 1 && v.enforced_mw == W(200) && v.text[0],
       "told, not hidden: %s, %s", names_word(NAMES_CAP_STATE, v.state), v.text);
    fault(s, "0 accept");
    claim(s, 0, CLAIM_HARD, 170);
    pass(s, 0.5);
    is_limit(s, 0, 170, "a budget's news are tried at once");
    ok(look(s, 0).text[0] == '\0', "and all is well");
    withdraw(s, 0, id);
    scene_free(s);
}

static void test_board(void)
{
    struct scene *s = scene_new("a board that is lost", 2, &conf);

    claim(s, 0, CLAIM_HARD, 200);
    claim(s, 1, CLAIM_HARD, 200);
    pass(s, 1);
    fault(s, "0 lost for 20s");
    pass(s, 2);
    is_state(s, 0, CAPS_LOST, "fallen off the bus");
    is_int(look(s, 0).enforced_mw, 0, "what is in force is unknown, not 0 W");
    is_state(s, 1, CAPS_HELD, "the other is not touched");
    pass(s, 60);
    is_state(s, 0, CAPS_HELD, "back: held again");
    is_limit(s, 0, 200, "its claim is in force");
    scene_free(s);

    s = scene_new("a board that hangs", 2, &conf);
    claim(s, 0, CLAIM_HARD, 200);
    claim(s, 1, CLAIM_HARD, 200);
    pass(s, 1);
    fault(s, "0 hang");
    claim(s, 0, CLAIM_HARD, 180);
    claim(s, 1, CLAIM_HARD, 180);
    pass(s, 5);
    is_state(s, 0, CAPS_LOST, "a call that does not come back");
    ok(look(s, 1).state == CAPS_HELD && limit_of(s, 1) == W(180),
       "the other is not touched");
    pass(s, 100);
    is_state(s, 0, CAPS_LOST, "tried again, in vain");
    ok(look(s, 0).failures < 12, "and not all the time: %u",
       (unsigned)look(s, 0).failures);
    fault(s, "0 release");
    pass(s, 4000);
    is_state(s, 0, CAPS_HELD, "it comes back after all: held again");
    is_limit(s, 0, 180, "its claim is in force");
    scene_free(s);
}

/* Ask for a board to be let go. */
static void release(struct scene *s, size_t board, double hold_off_s, int want,
                    const char *name)
{
    s->done_r = 1;
    int r = caps_release(s->caps, board, ns_of_s(hold_off_s), scene_on_done, s, NULL);
    ok(r == want && s->done_r == 1, "%s: %d, and fn not from inside", name, r);
}

static void take_back(struct scene *s, size_t board, int want, const char *name)
{
    is_int(caps_take_back(s->caps, board, NULL), want, "%s", name);
}

static void is_done(struct scene *s, int want, const char *name)
{
    is_int(s->done_r, want, "%s: '%s'", name, s->done_text);
}

static void test_release(void)
{
    struct scene *s = scene_new("letting go", 2, &conf);

    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 1);
    release(s, 0, 0, 0, "asked");
    release(s, 0, 0, -EBUSY, "once");
    pass(s, 0.3);
    is_done(s, 0, "done");
    is_limit(s, 0, 300, "the original first");
    is_state(s, 0, CAPS_RELEASED, "let go");
    uint64_t at_ns = look(s, 0).released_ns;
    claim(s, 0, CLAIM_HARD, 180);
    pass(s, 3600);
    ok(at_ns > 0 && look(s, 0).released_ns == at_ns, "since then");
    is_limit(s, 0, 300, "no claim brings it back");
    fault(s, "0 limit 290W");
    pass(s, 1);
    take_back(s, 0, 0, "taken back");
    ok(look(s, 0).released_ns == 0, "not released any more");
    pass(s, 0.3);
    is_limit(s, 0, 180, "its claims are in force");
    ok(look(s, 0).bounds.original_mw == W(290), "the original is what was found");
    take_back(s, 0, -ENOENT, "once");
    release(s, 0, 10, 0, "for 10 s");
    pass(s, 9.9);
    is_done(s, 0, "done");
    is_state(s, 0, CAPS_RELEASED, "let go");
    pass(s, 0.5);
    is_limit(s, 0, 180, "held again by itself");
    release(s, 2, 0, -ENODEV, "no such board");
    take_back(s, 2, -ENODEV, "no such board");
    scene_free(s);
}

/* A reset forgets the limit that was found. */
static void test_reset(void)
{
    scene_found_w = 250;
    struct scene *s = scene_new("a reset", 1, &conf);
    scene_found_w = 0;

    pass(s, 60);
    claim(s, 0, CLAIM_HARD, 260);
    pass(s, 1);
    is_state(s, 0, CAPS_FREE, "nothing is wanted under the limit found");
    release(s, 0, 0, 0, "asked");
    pass(s, 1);
    fault(s, "0 limit 300W");
    pass(s, 1);
    take_back(s, 0, 0, "taken back");
    pass(s, 1);
    is_limit(s, 0, 260, "what was not needed before is now");
    is_int(changes(s, 0), 0, "a reset is no other writer");
    scene_free(s);
}

static void test_release_early(void)
{
    struct scene *s = scene_new("letting go of what is not held", 2, &conf);

    release(s, 1, 0, 0, "a free board");
    pass(s, 0.1);
    is_done(s, 0, "is let go");
    take_back(s, 1, 0, "taken back");
    pass(s, 1);
    is_state(s, 1, CAPS_FREE, "and free");
    claim(s, 1, CLAIM_HARD, 200);
    release(s, 1, 0, 0, "while a hold is asked");
    pass(s, 0.5);
    is_done(s, 0, "let go when it is answered");
    is_limit(s, 1, 300, "at its original");
    take_back(s, 1, 0, "taken back");
    pass(s, 0.5);
    fault(s, "1 refuse for 60s");
    release(s, 1, 0, 0, "where it fails");
    pass(s, 5);
    is_done(s, -EIO, "that is told");
    pass(s, 100);
    is_limit(s, 1, 300, "the actuator goes on trying");
    scene_free(s);
}

static void test_release_lost(void)
{
    struct scene *s = scene_new("letting go of what is lost", 1, &conf);

    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 1);
    (void)caps_release(s->caps, 0, 0, scene_on_done, s, NULL);
    scene_no_actuator(s);
    ok(s->done_r < 0 && s->done_text[0], "the actuator goes: told (%s)", s->done_text);
    scene_actuator(s);
    pass(s, 1);
    is_state(s, 0, CAPS_RELEASED, "a new one does not hold it");
    scene_free(s);
}

static void test_end(void)
{
    struct scene *s = scene_new("the end", 3, &conf);

    claim(s, 0, CLAIM_HARD, 200);
    claim(s, 1, CLAIM_NAMED, 200);
    pass(s, 5);
    claim(s, 2, CLAIM_HARD, 200);
    is_int(caps_end(s->caps, scene_on_done, s), 0, "asked, one hold under way");
    is_int(caps_end(s->caps, scene_on_done, s), -EBUSY, "once");
    is_int(s->done_r, 1, "not from inside");
    pass(s, 0.5);
    is_int(s->done_r, 0, "done '%s'", s->done_text);
    for (size_t i = 0; i < 3; i++)
        is_limit(s, i, 300, "the original is back");
    claim(s, 0, CLAIM_HARD, 180);
    pass(s, 10);
    is_limit(s, 0, 300, "nothing is held any more");
    scene_free(s);

    s = scene_new("the end of nothing", 1, &conf);
    (void)caps_end(s->caps, scene_on_done, s);
    is_int(s->done_r, 1, "not from inside");
    pass(s, 0.1);
    is_int(s->done_r, 0, "done");
    scene_free(s);

    s = scene_new("an end that hangs", 2, &conf);
    claim(s, 0, CLAIM_HARD, 200);
    claim(s, 1, CLAIM_HARD, 200);
    pass(s, 1);
    uint64_t t0 = loop_now_ns(s->loop);
    fault(s, "1 refuse");
    (void)caps_end(s->caps, scene_on_done, s);
    while (s->done_r == 1 && s_between(t0, loop_now_ns(s->loop)) < 60)
        pass(s, 0.1);
    ok(s->done_r < 0 && strstr(s->done_text, "GPU-") && !strchr(s->done_text, ','),
       "names the board: %d, %s", s->done_r, s->done_text);
    ok(s_between(t0, loop_now_ns(s->loop)) <= 5.2, "within 5 s");
    is_limit(s, 0, 300, "the other is back");
    scene_free(s);
}

static void on_done_free(int r, const char *text, void *user)
{
    struct scene *s = user;

    scene_on_done(r, text, s);
    actuator_free(take(s->act));
    budget_free(take(s->budget));
    caps_free(take(s->caps));
}

static void test_free_inside(void)
{
    for (int held = 0; held < 2; held++) {
        struct scene *s = scene_new("freed from the end's callback", 1, &conf);
        if (held)
            claim(s, 0, CLAIM_HARD, 200);
        pass(s, 1);
        (void)caps_end(s->caps, on_done_free, s);
        pass(s, 10);
        ok(s->done_r == 0 && !s->caps, "done and freed, %s held", held ? "one" : "none");
        scene_free(s);
    }
}

static void test_dry(void)
{
    struct caps_conf dry = conf;
    dry.dry_run = true;
    struct scene *s = scene_new("a dry run", 1, &dry);

    uint64_t id = claim(s, 0, CLAIM_NAMED, 240);
    pass(s, 10);
    struct caps_view v = look(s, 0);
    ok(v.dry_run && v.state == CAPS_FREE && v.verdict.target_mw == W(240) && v.ramping &&
           v.ramp_mw <= W(271) && v.ramp_mw >= W(270) && v.enforced_mw == W(300),
       "decides, ramp and all: %u mW", v.ramp_mw);
    is_limit(s, 0, 300, "and writes nothing");
    const struct told *t = last_told(s, CAPS_EVENT_CAP);
    ok(t->target_mw == W(240) && t->enforced_mw == W(300) && t->claim == id &&
           strstr(t->text, "dry run"),
       "tells: %s", t->text);
    pass(s, 20);
    is_int(told(s, CAPS_EVENT_CAP), 1, "once");
    is_int(look(s, 0).writes, 0, "no write at all");

    caps_configure(s->caps, &conf);
    pass(s, 0.5);
    is_state(s, 0, CAPS_HELD, "no dry run any more: held");
    is_near(w_of_mw(limit_of(s, 0)), 299, 1.1, "the ramp begins at what is in force");
    pass(s, 30);
    is_limit(s, 0, 240, "to its target");
    caps_configure(s->caps, &dry);
    pass(s, 0.5);
    is_limit(s, 0, 300, "a dry run again: given back");
    is_int(look(s, 0).verdict.target_mw, W(240), "decided as before");
    scene_free(s);
}

static void test_always(void)
{
    struct caps_conf always = conf;
    always.always_hold = true;
    struct scene *s = scene_new("boards that are always held", 1, &always);

    is_state(s, 0, CAPS_HELD, "without a claim");
    is_limit(s, 0, 300, "at the original");
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 0.033);
    is_limit(s, 0, 200, "a claim is a write away");
    withdraw(s, 0, id);
    pass(s, 0.2);
    is_limit(s, 0, 300, "up again");
    is_state(s, 0, CAPS_HELD, "still held");
    scene_free(s);
}

int main(void)
{
    test_actuator();
    test_right();
    test_board();
    test_release();
    test_reset();
    test_release_early();
    test_release_lost();
    test_end();
    test_free_inside();
    test_dry();
    test_always();
    return done();
}
