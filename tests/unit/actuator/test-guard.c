/* The guard on a virtual loop, over boards that misbehave, with a real journal. */
#include "unit/actuator/guard-scene.h"

static void test_life(void)
{
    struct world *w = begin("the life of a cap");
    const struct proto_answer *a;
    struct cap_entry e;

    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_GONE);
    expect(w, PROTO_HOLD, "GPU-9", 0, ACTUATOR_GONE);
    a = expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    ok(a->reply.original_mw == 250000 && a->reply.limits.min_mw == 100000 &&
           a->reply.limits.max_mw == 300000 && a->reply.limits.default_mw == 250000 &&
           a->reply.enforced_mw == 250000,
       "hold tells original, range and what is in force");
    ok(fake_dev[0].writes == 1 && fake_dev[0].set_mw == 250000,
       "the right was proved by writing the limit found");
    ok(journal_read(&w->journal, "GPU-0", &e, NULL) == 0 && e.original_mw == 250000,
       "the original is in the journal");
    a = expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    is_int(a->reply.enforced_mw, 200000, "what is enforced comes back");
    ok(journal_read(&w->journal, "GPU-0", &e, NULL) == 0 && e.intended_mw == 200000 &&
           e.readback_mw == 200000 && e.original_mw == 250000,
       "the journal has it");
    a = expect(w, PROTO_LIMIT, "GPU-0", 99999, ACTUATOR_REFUSED);
    ok(strstr(a->reply.text, "99999 mW is outside 100000..300000") != NULL, "… named");
    ok(fake_dev[0].set_mw == 200000 && fake_dev[0].writes == 2, "nothing was written");
    fake_dev[0].ceiling_mw = 160000;
    a = expect(w, PROTO_LIMIT, "GPU-0", 190000, ACTUATOR_CLAMPED);
    is_int(a->reply.enforced_mw, 160000, "… to the value enforced");
    fake_dev[0].ceiling_mw = 0;
    expect(w, PROTO_CLOCKS, "GPU-0", 900, ACTUATOR_DONE);
    ok(fake_dev[0].min_mhz == 900 && journal_read(&w->journal, "GPU-0", &e, NULL) == 0 &&
           e.clocks,
       "clocks locked, and in the journal");
    expect(w, PROTO_CLOCKS, "GPU-0", 1501, ACTUATOR_REFUSED);
    a = expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_DONE);
    ok(a->reply.enforced_mw == 250000 && fake_dev[0].set_mw == 250000,
       "the original is back");
    ok(fake_dev[0].max_mhz == 0, "clocks are reset");
    ok(!has_entry(w, "GPU-0"), "the entry is gone");
    expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_GONE);
    ok(guard_is_idle(w->guard), "the guard is idle");
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    guard_session_free(w->session);
    w->session = NULL;
    pass(w, 100);
    ok(!has_entry(w, "GPU-0") && guard_is_idle(w->guard),
       "a client that goes gives all up");
    finish(w);
}

/* Every answer on a board that was looked at has the range that is in force there;
 * another actuator (root has changed it) has its own.
 */
static void test_range(void)
{
    static const struct core_rules narrow = {.from = {.percent = 60},
                                             .to = {.mw = 200000}},
                                   other = {.from = {.mw = 120000}};
    struct world *w = begin("root's range");
    const struct actuator_reply *a;

    a = &expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE)->reply;
    ok(a->range.min_mw == 100000 && a->range.max_mw == 300000 && a->set_mw == 250000,
       "no rules: the board's own, and what is set");
    die(w);
    w->rules = &narrow;
    guard_up(w);
    session_up(w, 78);
    a = &expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE)->reply;
    ok(a->range.min_mw == 150000 && a->range.max_mw == 200000 &&
           a->limits.min_mw == 100000 && a->limits.max_mw == 300000,
       "of a hold");
    a = &expect(w, PROTO_LIMIT, "GPU-0", 140000, ACTUATOR_REFUSED)->reply;
    ok(a->range.min_mw == 150000 && a->range.max_mw == 200000, "of a limit outside it");
    fake_dev[0].ceiling_mw = 160000;
    a = &expect(w, PROTO_LIMIT, "GPU-0", 190000, ACTUATOR_CLAMPED)->reply;
    ok(a->range.min_mw == 150000 && a->set_mw == 190000 && a->enforced_mw == 160000,
       "of one inside, with what is set beside what heat leaves of it");
    fake_dev[0].ceiling_mw = 0;
    a = &expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_DONE)->reply;
    ok(a->range.max_mw == 200000 && a->set_mw == 250000, "of a release");
    fake_dev[1].set_mw = 130000;
    a = &expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE)->reply;
    ok(a->range.min_mw == 130000, "an original under it is the lowest");
    die(w);
    w->rules = &other;
    guard_up(w);
    session_up(w, 79);
    a = &expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE)->reply;
    ok(a->range.min_mw == 120000 && a->range.max_mw == 300000,
       "another actuator: its own");
    fake_dev[2].set_fails = -EPERM;
    a = &expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_DENIED)->reply;
    ok(a->range.max_mw == 300000 && !a->set_mw, "where the right is missing, too");
    finish(w);
}

static void test_slow_hold(void)
{
    struct world *w = begin("a hold that takes long");

    fake_dev[0].set_takes_ns = 400 * NS_PER_MS;
    (void)ask(w, PROTO_HOLD, "GPU-0", 0);
    pass(w, 100);
    guard_session_free(w->session);
    pass(w, 2000);
    ok(guard_is_idle(w->guard) && !has_entry(w, "GPU-0"),
       "its client has gone meanwhile: given back");

    session_up(w, 78);
    fake_dev[1].set_takes_ns = 2800 * NS_PER_MS;
    uint32_t hold = ask(w, PROTO_HOLD, "GPU-1", 0);
    pass(w, 2900);
    is_int(answer_to(w, hold)->reply.result, ACTUATOR_DONE, "answered after the lease");
    fake_dev[1].set_takes_ns = 0;
    pass(w, 100);
    ok(guard_is_idle(w->guard) && !has_entry(w, "GPU-1") &&
           events(w, PROTO_LEASE_OVER) == 1,
       "its lease has run out meanwhile: given back, and told");

    fake_dev[2].set_takes_ns = 400 * NS_PER_MS;
    (void)ask(w, PROTO_HOLD, "GPU-2", 0);
    uint32_t release = ask(w, PROTO_RELEASE, "GPU-2", 0);
    pass(w, 1000);
    ok(answer_to(w, release)->reply.result == ACTUATOR_DONE && guard_is_idle(w->guard) &&
           !has_entry(w, "GPU-2"),
       "released before it was held: given back");
    finish(w);
}

/* A client may go on while the driver writes, and not before a refusal has had time. */
static void test_writing(void)
{
    struct world *w = begin("a hold's write");

    fake_dev[0].set_takes_ns = 3 * NS_PER_MS;
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    is_int(events(w, PROTO_WRITING), 0, "3 ms: nothing is told before the answer");
    fake_dev[1].set_takes_ns = 40 * NS_PER_MS;
    uint32_t hold = ask(w, PROTO_HOLD, "GPU-1", 0);
    pass(w, 4);
    is_int(events(w, PROTO_WRITING), 0, "40 ms: nothing is told after 4 ms");
    pass(w, 20);
    ok(events(w, PROTO_WRITING) == 1 &&
           answer_to(w, hold)->reply.result == ACTUATOR_N_RESULTS,
       "it is told before the answer, once");
    pass(w, 30);
    is_int(answer_to(w, hold)->reply.result, ACTUATOR_DONE, "then the answer comes");
    fake_dev[2].set_takes_ns = 40 * NS_PER_MS;
    fake_dev[2].set_fails = -EPERM;
    expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_DENIED);
    is_int(events(w, PROTO_WRITING), 1, "refused: nothing is told");
    finish(w);
}

static void test_yield(void)
{
    struct world *w = begin("another writer");
    const struct proto_answer *a;

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    fake_dev[0].set_mw = 180000;
    unsigned writes = fake_dev[0].writes;
    a = expect(w, PROTO_LIMIT, "GPU-0", 190000, ACTUATOR_YIELDED);
    ok(strstr(a->reply.text, "180000") && strstr(a->reply.text, "200000"),
       "both are named");
    is_int(a->reply.enforced_mw, 180000, "theirs is in force");
    is_int(events(w, PROTO_YIELDED), 1, "an event too");
    ok(!has_entry(w, "GPU-0"), "the entry is dropped");
    expect(w, PROTO_LIMIT, "GPU-0", 190000, ACTUATOR_YIELDED);
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_YIELDED);
    expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_YIELDED);
    ok(fake_dev[0].set_mw == 180000 && fake_dev[0].writes == writes,
       "nothing is written any more in this session");

    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    expect(w, PROTO_CLOCKS, "GPU-1", 900, ACTUATOR_DONE);
    fake_dev[1].set_mw = 250000; /* back to our original: not by us */
    for (int i = 0; i < 3; i++) {
        pass(w, 500);
        (void)ask(w, PROTO_RENEW, NULL, 0);
    }
    is_int(events(w, PROTO_YIELDED), 2, "looking finds it within 1.5 s");
    is_int(fake_dev[1].max_mhz, 0, "clocks that we locked are reset all the same");

    expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-2", 200000, ACTUATOR_DONE);
    fake_dev[2].set_mw = 150000;
    expect(w, PROTO_RELEASE, "GPU-2", 0, ACTUATOR_YIELDED);
    is_int(fake_dev[2].set_mw, 150000, "a release does not undo another's");

    expect(w, PROTO_HOLD, "GPU-3", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-3", 200000, ACTUATOR_DONE);
    fake_dev[3].set_mw = 250000;
    fake_mark = "load-2";
    a = expect(w, PROTO_LIMIT, "GPU-3", 190000, ACTUATOR_YIELDED);
    ok(strstr(a->reply.text, "driver was reloaded") != NULL, "a reload is named: %s",
       a->reply.text);
    finish(w);
}

/* A board with an original of 250 W, capped at 200, that somebody has set to 180. */
static void yield_once(struct world *w, unsigned i, const char *uuid)
{
    expect(w, PROTO_HOLD, uuid, 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, uuid, 200000, ACTUATOR_DONE);
    fake_dev[i].set_mw = 180000;
    expect(w, PROTO_LIMIT, uuid, 190000, ACTUATOR_YIELDED);
}

static void test_again(void)
{
    struct world *w = begin("held again after another writer");
    const struct proto_answer *a;
    struct cap_entry e;

    yield_once(w, 0, "GPU-0");
    is_int(answer_to(w, w->seq)->reply.why, ACTUATOR_WHY_OTHER, "somebody was it");
    a = expect(w, PROTO_HOLD, "GPU-0", PROTO_AGAIN_FOUND, ACTUATOR_DONE);
    ok(a->reply.original_mw == 180000 && fake_dev[0].set_mw == 180000,
       "as found: theirs is the original");
    expect(w, PROTO_LIMIT, "GPU-0", 170000, ACTUATOR_DONE);
    expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_DONE);
    is_int(fake_dev[0].set_mw, 180000, "… and comes back");
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);

    yield_once(w, 1, "GPU-1");
    a = expect(w, PROTO_HOLD, "GPU-1", PROTO_AGAIN_KEEP, ACTUATOR_DONE);
    ok(a->reply.original_mw == 250000 && a->reply.enforced_mw == 180000,
       "kept: the original is what it was");
    ok(journal_read(&w->journal, "GPU-1", &e, NULL) == 0 && e.original_mw == 250000 &&
           e.intended_mw == 180000,
       "… for the journal, too");
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    expect(w, PROTO_RELEASE, "GPU-1", 0, ACTUATOR_DONE);
    is_int(fake_dev[1].set_mw, 250000, "… and comes back");

    fake_dev[2].set_mw = 240000;
    a = expect(w, PROTO_HOLD, "GPU-2", PROTO_AGAIN_KEEP, ACTUATOR_DONE);
    is_int(a->reply.original_mw, 240000, "nothing to keep where none was yielded");

    yield_once(w, 3, "GPU-3");
    fake_mark = "load-2";
    a = expect(w, PROTO_HOLD, "GPU-3", PROTO_AGAIN_KEEP, ACTUATOR_DONE);
    is_int(a->reply.original_mw, 180000, "a driver loaded anew has forgotten it");
    fake_dev[3].set_mw = 250000;
    fake_mark = "load-3";
    a = expect(w, PROTO_LIMIT, "GPU-3", 200000, ACTUATOR_YIELDED);
    is_int(a->reply.why, ACTUATOR_WHY_RELOADED, "a reload is told apart");
    finish(w);
}

/* The driver's default is the very limit that we had found: nothing shows the reload. */
static void test_unseen_reload(void)
{
    struct world *w = begin("the driver is loaded anew, unseen");
    struct cap_entry e;

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_CLOCKS, "GPU-0", 900, ACTUATOR_DONE);
    fake_mark = "load-2";
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    ok(journal_read(&w->journal, "GPU-0", &e, NULL) == 0 &&
           strcmp(e.driver, "load-2") == 0 && !e.clocks && e.original_mw == 250000,
       "the entry is of the driver that has our limit");
    expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_DONE);
    is_int(fake_dev[0].set_mw, 250000, "the original is back");

    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    fake_dev[1].mark_in_set = "load-3";
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    expect(w, PROTO_RELEASE, "GPU-1", 0, ACTUATOR_DONE);
    is_int(fake_dev[1].set_mw, 250000,
           "… where it was loaded in the middle of a write, too");

    expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_DONE);
    fake_mark = "load-4";
    expect(w, PROTO_LIMIT, "GPU-2", 200000, ACTUATOR_DONE);
    die(w);
    guard_up(w);
    (void)guard_recover(w->guard, NULL);
    pass(w, 200);
    is_int(fake_dev[2].set_mw, 250000, "… and after the actuator is killed");
    finish(w);
}

static void test_rate(void)
{
    struct world *w = begin("the rate of writes");
    uint32_t seq[10];

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    for (unsigned i = 0; i < 10; i++)
        seq[i] = ask(w, PROTO_LIMIT, "GPU-0", 200000 + i);
    pass(w, 200);
    is_int(fake_dev[0].writes, 3, "ten at once: the first and the last are written");
    is_int(answer_to(w, seq[0])->reply.result, ACTUATOR_DONE, "the first is done");
    for (unsigned i = 1; i < 9; i++)
        is_int(answer_to(w, seq[i])->reply.result, ACTUATOR_BUSY,
               "number %u is passed over", i);
    is_int(answer_to(w, seq[9])->reply.result, ACTUATOR_DONE, "the last is done");
    is_int(fake_dev[0].set_mw, 200009, "… and in force");
    unsigned writes = fake_dev[0].writes;
    for (unsigned i = 0; i < 100; i++) {
        (void)ask(w, PROTO_LIMIT, "GPU-0", 150000 + i);
        pass(w, 10);
    }
    ok(fake_dev[0].writes - writes <= 21, "a second of them: %u writes",
       fake_dev[0].writes - writes);
    finish(w);
}

static void test_faults(void)
{
    struct world *w = begin("faults of boards");

    fake_dev[0].set_fails = -EPERM;
    const struct proto_answer *a = expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DENIED);
    ok(strstr(a->reply.text, "sudo") && strstr(a->reply.text, "CAP_SYS_ADMIN"),
       "with the ways: %s", a->reply.text);
    ok(!has_entry(w, "GPU-0") && guard_is_idle(w->guard), "nothing is left of it");
    fake_dev[0].set_fails = 0;
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    fake_dev[0].set_fails = -EIO;
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_REFUSED);
    fake_dev[0].set_fails = 0;
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);

    fake_dev[0].set_fails = -EIO; /* restoring fails for 3 s */
    uint32_t seq = ask(w, PROTO_RELEASE, "GPU-0", 0);
    pass(w, 3000);
    is_int(answer_to(w, seq)->reply.result, ACTUATOR_UNKNOWN, "the client is told");
    ok(has_entry(w, "GPU-0") && !guard_is_idle(w->guard), "it goes on trying");
    fake_dev[0].set_fails = 0;
    (void)ask(w, PROTO_RENEW, NULL, 0);
    pass(w, 5000);
    ok(fake_dev[0].set_mw == 250000 && !has_entry(w, "GPU-0"),
       "until the original is back");
    ok(w->idles > 0 && guard_is_idle(w->guard), "… and then is idle");

    session_up(w, 78);
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    fake_dev[1].read_fails = -ENODEV;
    expect(w, PROTO_LIMIT, "GPU-1", 190000, ACTUATOR_GONE);
    is_int(events(w, PROTO_LOST), 1, "a board that is lost");
    guard_session_free(w->session);
    pass(w, 120000);
    ok(guard_is_idle(w->guard) && guard_unrestored(w->guard) == 1, "it gives up at last");
    ok(has_entry(w, "GPU-1"), "the entry waits for the next start");
    ok(strstr(w->said, "--recover") != NULL, "and it says so: %s", w->said);
    session_up(w, 79);
    fake_dev[1].read_fails = 0;
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    is_int(fake_dev[1].set_mw, 250000, "the next hold undoes it first");
    finish(w);
}

/* A service runs for months: what it cannot restore today it restores once it can. */
static void test_keeps_trying(void)
{
    struct world *w = begin("a service keeps trying");

    guard_free(w->guard);
    w->keep_trying = true;
    guard_up(w);
    session_up(w, 80);
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    fake_dev[1].set_fails = -ENODEV;
    guard_session_free(w->session);
    pass(w, 3600000);
    ok(!guard_is_idle(w->guard) && has_entry(w, "GPU-1"), "an hour later it still tries");
    fake_dev[1].set_fails = 0;
    pass(w, 65000);
    is_int(fake_dev[1].set_mw, 250000, "and a minute after it can the original is back");
    ok(guard_is_idle(w->guard) && !has_entry(w, "GPU-1"), "nothing is left of it");

    session_up(w, 81);
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    fake_dev[1].set_fails = -ENODEV;
    guard_session_free(w->session);
    pass(w, 300000);
    guard_end(w->guard);
    pass(w, 5000);
    ok(!guard_is_idle(w->guard) && has_entry(w, "GPU-1"), "told to end it tries anew");
    fake_dev[1].set_fails = 0;
    pass(w, 5000);
    ok(guard_is_idle(w->guard) && !has_entry(w, "GPU-1") &&
           guard_status(w->guard) == CORE_ALL,
       "… at short intervals, until the original is back");
    session_up(w, 82);
    finish(w);
}

/* What is not restored in time is said: what is in force, the original and the reason. */
static void test_end(void)
{
    static const struct {
        const char *name;
        int set_fails[2];
        uint64_t takes_ns;
        unsigned wait_ms;
        enum core_status status;
        const char *said[3]; /* NULL: nothing is */
    } cases[] = {
        /* clang-format off */
        {"all restored", {0, 0}, 0, 1000, CORE_ALL, {NULL}},
        {"one refuses", {-EPERM, 0}, 0, 20000, CORE_SOME,
         {"GPU-0: not restored: 200 W was in force when last read, the original is 250 W: the driver says no; "
          "its entry waits for underwatt-actuator --recover"}},
        {"both refuse", {-EPERM, -EIO}, 0, 20000, CORE_NONE,
         {"GPU-0: not restored: 200 W", "GPU-1: not restored: 190 W"}},
        {"one hangs", {0, 0}, 60 * NS_PER_S, 20000, CORE_SOME,
         {"GPU-0: not restored: 200 W was in force when last read", "a call has hung in the driver for 20 s"}},
        /* clang-format on */
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct world *w = begin(cases[i].name);
        expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
        expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
        expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
        expect(w, PROTO_LIMIT, "GPU-1", 190000, ACTUATOR_DONE);
        fake_dev[0].set_fails = cases[i].set_fails[0];
        fake_dev[1].set_fails = cases[i].set_fails[1];
        fake_dev[0].set_takes_ns = cases[i].takes_ns;
        w->log[0] = '\0';
        guard_end(w->guard);
        guard_session_free(w->session);
        pass(w, cases[i].wait_ms);
        bool idle = guard_is_idle(w->guard) && !guard_hanging(w->guard);
        is_int(idle, cases[i].status == CORE_ALL, "idle, or not");
        w->log[0] = '\0';
        guard_give_up(w->guard);
        is_int(guard_status(w->guard), cases[i].status, "its status");
        for (size_t k = 0; k < 3 && cases[i].said[k]; k++)
            ok(strstr(w->log, cases[i].said[k]) != NULL, "said: %s (%s)",
               cases[i].said[k], w->log);
        ok(cases[i].said[0] || !w->log[0], "nothing else: %s", w->log);
        ok(cases[i].takes_ns || !strstr(w->log, "hung"), "nothing hangs: %s", w->log);
        fake_dev[0].set_fails = fake_dev[1].set_fails = 0;
        fake_dev[0].set_takes_ns = 0;
        pass(w, 100000);
        session_up(w, 82);
        finish(w);
    }
}

static void test_hang(void)
{
    struct world *w = begin("a call that hangs");

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    fake_dev[0].set_takes_ns = 20 * NS_PER_S;
    uint32_t hung = ask(w, PROTO_LIMIT, "GPU-0", 190000);
    fake_dev[0].set_takes_ns = 0;
    for (int i = 0; i < 8; i++) {
        pass(w, 500);
        (void)ask(w, PROTO_RENEW, NULL, 0);
    }
    is_int(answer_to(w, hung)->reply.result, ACTUATOR_UNKNOWN, "is answered: unknown");
    is_int(events(w, PROTO_LOST), 1, "the board is out");
    is_int(guard_hanging(w->guard), 1, "one hangs");
    expect(w, PROTO_LIMIT, "GPU-0", 180000, ACTUATOR_GONE);
    expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_UNKNOWN);
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_UNKNOWN);
    expect(w, PROTO_LIMIT, "GPU-1", 170000, ACTUATOR_DONE);
    expect(w, PROTO_RELEASE, "GPU-1", 0, ACTUATOR_DONE);
    ok(guard_is_idle(w->guard) && guard_unrestored(w->guard) == 1,
       "idle, but for what hangs");
    for (int i = 0; i < 40; i++) {
        pass(w, 500);
        (void)ask(w, PROTO_RENEW, NULL, 0);
    }
    is_int(fake_dev[0].set_mw, 250000, "once it returns, the original is back");
    ok(guard_hanging(w->guard) == 0 && guard_unrestored(w->guard) == 0, "nothing hangs");
    ok(!has_entry(w, "GPU-0"), "the entry is gone");
    finish(w);
}

static void test_recover(void)
{
    struct world *w = begin("recovery");
    struct cap_entry e;
    int fd = -1;
    struct holder holder;

    for (unsigned i = 0; i < 4; i++) {
        char uuid[8];
        (void)snprintf(uuid, sizeof uuid, "GPU-%u", i);
        expect(w, PROTO_HOLD, uuid, 0, ACTUATOR_DONE);
        expect(w, PROTO_LIMIT, uuid, 200000, ACTUATOR_DONE);
    }
    /* Killed: locks fall, entries stay (a virtual guard would tidy up). */
    struct cap_entry kept[4];
    for (unsigned i = 0; i < 4; i++) {
        char uuid[8];
        (void)snprintf(uuid, sizeof uuid, "GPU-%u", i);
        (void)journal_read(&w->journal, uuid, &kept[i], NULL);
    }
    die(w);
    (void)snprintf(kept[3].boot, sizeof kept[3].boot, "another-boot");
    for (unsigned i = 0; i < 4; i++) {
        fake_dev[i].set_mw = 200000;
        (void)journal_write(&w->journal, &kept[i], NULL);
    }
    struct cap_entry absent = kept[0];
    (void)snprintf(absent.uuid, sizeof absent.uuid, "GPU-absent");
    (void)journal_write(&w->journal, &absent, NULL);
    struct cap_entry old = kept[3];
    (void)snprintf(old.uuid, sizeof old.uuid, "GPU-old");
    (void)journal_write(&w->journal, &old, NULL);
    fake_dev[1].set_mw = 170000; /* an administrator was there */
    ok(journal_lock(&w->journal, "GPU-2", getppid(), &fd, &holder, NULL) == 0,
       "GPU-2's holder lives");

    guard_up(w);
    ok(guard_recover(w->guard, NULL) == 0 && guard_is_recovering(w->guard), "recovery");
    pass(w, 1000);
    ok(!guard_is_recovering(w->guard), "every entry has been looked at");
    ok(guard_is_idle(w->guard), "it ends");
    ok(fake_dev[0].set_mw == 250000 && !has_entry(w, "GPU-0"), "ours is undone");
    ok(fake_dev[1].set_mw == 170000 && !has_entry(w, "GPU-1"),
       "an administrator's is not");
    ok(fake_dev[2].set_mw == 200000 && has_entry(w, "GPU-2"),
       "nor what a living holder has");
    ok(fake_dev[3].set_mw == 200000 && !has_entry(w, "GPU-3"), "nor after a reboot");
    ok(has_entry(w, "GPU-absent"), "a board that is not there keeps its entry");
    ok(!has_entry(w, "GPU-old"), "… but not one of an earlier boot");
    (void)journal_remove(&w->journal, "GPU-absent", NULL);

    session_up(w, 80);
    const struct proto_answer *a = expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_TAKEN);
    is_int(a->reply.pid, getppid(), "a board that is taken names its holder");
    (void)close(fd);
    expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_DONE);
    is_int(fake_dev[2].set_mw, 250000, "free, its entry is undone before it is held");
    ok(journal_read(&w->journal, "GPU-2", &e, NULL) == 0 && e.original_mw == 250000,
       "and the original is the original's");
    finish(w);
}

/* What recovery comes to as an exit status, and what is said of damaged entries. */
static void test_recover_status(void)
{
    static const struct {
        const char *name;
        bool good, damaged, absent_damaged, refuses;
        enum core_status status;
    } cases[] = {
        {"nothing to do", false, false, false, false, CORE_ALL},
        {"one restored", true, false, false, false, CORE_ALL},
        {"one damaged", false, true, false, false, CORE_NONE},
        {"one restored, one damaged", true, true, false, false, CORE_SOME},
        {"a damaged one of a board that is away", false, false, true, false, CORE_NONE},
        {"… and one restored", true, false, true, false, CORE_SOME},
        {"one refuses", true, false, false, true, CORE_NONE},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct world *w = begin(cases[i].name);
        struct cap_entry e = {.original_mw = 250000, .intended_mw = 200000};
        (void)snprintf(e.uuid, sizeof e.uuid, "GPU-0");
        (void)snprintf(e.boot, sizeof e.boot, "%s", w->journal.boot);
        fake_dev[0].set_mw = 200000;
        if (cases[i].good)
            (void)journal_write(&w->journal, &e, NULL);
        fake_dev[0].set_fails = cases[i].refuses ? -EPERM : 0;
        const char *odd = cases[i].damaged ? "GPU-1.cap" : "GPU-absent.cap";
        if (cases[i].damaged || cases[i].absent_damaged)
            (void)close(openat(w->journal.dir_fd, odd, O_CREAT | O_WRONLY, 0600));
        w->log[0] = '\0';
        ok(guard_recover(w->guard, NULL) == 0, "%s: recovery", cases[i].name);
        pass(w, 100000);
        is_int(guard_status(w->guard), cases[i].status, "its status");
        ok(cases[i].refuses || !cases[i].good || fake_dev[0].set_mw == 250000,
           "restored");
        bool odd_one = cases[i].damaged || cases[i].absent_damaged;
        ok(!odd_one || (strstr(w->log, odd) && strstr(w->log, ".cap.damaged")),
           "board and file are said: %s", w->log);
        ok(!cases[i].damaged || strstr(w->log, "GPU-1: not restored: 250 W is in force"),
           "… and what is in force: %s", w->log);
        if (cases[i].damaged) {
            expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_REFUSED);
            is_int(fake_dev[1].writes, 0, "nobody takes it for an original");
            (void)unlinkat(w->journal.dir_fd, "GPU-1.cap.damaged", 0);
            expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
            is_int(guard_status(w->guard), CORE_ALL, "… until root has decided");
        }
        (void)unlinkat(w->journal.dir_fd, "GPU-absent.cap.damaged", 0);
        fake_dev[0].set_fails = 0;
        finish(w);
    }
}

/* ---- the grace of a client that has gone ---- */

static struct world *begin_capped(const char *name)
{
    struct world *w = begin(name);

    die(w);
    w->grace_ns = 10 * NS_PER_S;
    w->uid = 1000;
    guard_up(w);
    session_up(w, 77);
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    return w;
}

static void hang_up(struct world *w)
{
    guard_session_free(w->session);
    w->session = NULL;
}

static void test_grace_ends(void)
{
    struct world *w = begin_capped("a client dies, nobody follows");

    hang_up(w);
    pass(w, 9900);
    ok(fake_dev[0].set_mw == 200000 && has_entry(w, "GPU-0") && !guard_is_idle(w->guard),
       "the cap stays for the grace");
    pass(w, 200);
    ok(fake_dev[0].set_mw == 250000 && !has_entry(w, "GPU-0") && guard_is_idle(w->guard),
       "then the original is back");
    session_up(w, 78);
    const struct proto_answer *a = expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    is_int(a->reply.enforced_mw, 250000, "later it is a hold like any");
    finish(w);
}

static void test_adopt(void)
{
    struct world *w = begin_capped("a client dies, another follows");
    const struct proto_answer *a;

    hang_up(w);
    pass(w, 5000);
    unsigned writes = fake_dev[0].writes;
    session_up(w, 78);
    expect(w, PROTO_LIMIT, "GPU-0", 180000, ACTUATOR_GONE);
    a = expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    ok(a->reply.original_mw == 250000 && a->reply.enforced_mw == 200000,
       "it hears the original and the limit in force");
    is_int(fake_dev[0].writes, writes, "nothing was written");
    for (int i = 0; i < 20; i++) {
        pass(w, 500);
        (void)ask(w, PROTO_RENEW, NULL, 0);
    }
    ok(fake_dev[0].set_mw == 200000 && fake_dev[0].writes == writes,
       "and it is the new one's for as long as it renews");
    expect(w, PROTO_LIMIT, "GPU-0", 180000, ACTUATOR_DONE);
    pass(w, ACTUATOR_LEASE_MS);
    ok(fake_dev[0].set_mw == 250000 && events(w, PROTO_LEASE_OVER) == 1,
       "who hangs loses it at once");

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    hang_up(w);
    fake_dev[0].read_fails = -EIO;
    session_up(w, getppid());
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_UNKNOWN);
    ok(has_entry(w, "GPU-0") && !guard_is_idle(w->guard),
       "a board that cannot be read: the grace runs on");
    fake_dev[0].read_fails = 0;
    a = expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    is_int(a->reply.enforced_mw, 200000, "and it may be tried again");
    struct holder holder;
    int fd;
    is_int(journal_lock(&w->journal, "GPU-0", 1, &fd, &holder, NULL), JOURNAL_TAKEN,
           "it is locked");
    is_int(holder.client, getppid(), "in the new one's name");
    finish(w);
}

static void test_strangers(void)
{
    struct world *w = begin_capped("a client dies, a stranger comes");

    hang_up(w);
    w->uid = 1001;
    session_up(w, 80);
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_TAKEN);
    expect(w, PROTO_LIMIT, "GPU-0", 150000, ACTUATOR_GONE);
    expect(w, PROTO_RELEASE, "GPU-0", 0, ACTUATOR_GONE);
    is_int(fake_dev[0].set_mw, 200000, "the cap is not its to touch");
    fake_dev[0].set_mw = 170000;
    pass(w, 1500);
    ok(fake_dev[0].set_mw == 170000 && !has_entry(w, "GPU-0") && guard_is_idle(w->guard),
       "another's limit ends the grace, and stays");
    finish(w);
}

static void test_left_at_once(void)
{
    struct world *w = begin_capped("who gets no grace");

    pass(w, ACTUATOR_LEASE_MS + 100);
    is_int(fake_dev[0].set_mw, 250000, "who is there and does not renew");

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    fake_dev[0].set_takes_ns = 100 * NS_PER_MS;
    (void)ask(w, PROTO_RELEASE, "GPU-0", 0);
    hang_up(w);
    pass(w, 200);
    ok(fake_dev[0].set_mw == 250000 && guard_is_idle(w->guard),
       "who had asked for the release");

    session_up(w, 81);
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    hang_up(w);
    guard_end(w->guard);
    pass(w, 200);
    ok(fake_dev[0].set_mw == 250000 && guard_is_idle(w->guard), "when the actuator ends");
    finish(w);
}

/* The client dies, another takes over, and that one dies too, each after so many ms. */
static void test_any_moment(void)
{
    unsigned adopted = 0, bad = 0, unanswered = 0;

    for (unsigned first = 0; first <= 300; first += 20) {
        for (unsigned second = 0; second <= 300; second += 20) {
            struct world *w = begin("any moment");
            die(w);
            w->grace_ns = 10 * NS_PER_S;
            guard_up(w);
            session_up(w, 77);
            fake_dev[0].set_takes_ns = 60 * NS_PER_MS;
            fake_dev[0].read_takes_ns = 30 * NS_PER_MS;
            (void)ask(w, PROTO_HOLD, "GPU-0", 0);
            pass(w, 200);
            (void)ask(w, PROTO_LIMIT, "GPU-0", 200000);
            pass(w, first);
            hang_up(w);
            w->n = 0;
            session_up(w, 78);
            uint32_t hold = ask(w, PROTO_HOLD, "GPU-0", 0);
            uint32_t set = ask(w, PROTO_LIMIT, "GPU-0", 180000);
            pass(w, second);
            bool held = answer_to(w, hold)->reply.result == ACTUATOR_DONE;
            adopted += held;
            bad += held && answer_to(w, hold)->reply.original_mw != 250000;
            pass(w, 1000);
            unanswered += answer_to(w, hold)->reply.result == ACTUATOR_N_RESULTS;
            unanswered += answer_to(w, set)->reply.result == ACTUATOR_N_RESULTS;
            bad += w->n != 2;
            hang_up(w);
            pass(w, 11000);
            bad += fake_dev[0].set_mw != 250000 || !guard_is_idle(w->guard) ||
                   has_entry(w, "GPU-0");
            finish(w);
        }
    }
    ok(adopted > 50, "%u of 256 had taken it over in time", adopted);
    is_int(bad, 0, "the original is always known, and always back");
    is_int(unanswered, 0, "every request has its one answer");
}

static void test_hold_rate(void)
{
    struct world *w = begin("a client that holds and lets go as fast as it can");
    unsigned cycles = 0;

    for (uint64_t until = loop_now_ns(w->loop) + 10 * NS_PER_S;
         loop_now_ns(w->loop) < until; cycles++) {
        w->n = 0;
        uint32_t hold = ask(w, PROTO_HOLD, "GPU-0", 0);
        while (answer_to(w, hold)->reply.result == ACTUATOR_N_RESULTS)
            pass(w, 1);
        uint32_t release = ask(w, PROTO_RELEASE, "GPU-0", 0);
        while (answer_to(w, release)->reply.result == ACTUATOR_N_RESULTS)
            pass(w, 1);
    }
    ok(cycles > 20 && fake_dev[0].writes <= 10 * 1000 / ACTUATOR_HOLD_GAP_MS + 2,
       "%u times in 10 s, %u writes", cycles, fake_dev[0].writes);
    (void)ask(w, PROTO_HOLD, "GPU-0", 0);
    hang_up(w);
    pass(w, 1000);
    ok(guard_is_idle(w->guard), "one that goes before its turn leaves nothing");
    finish(w);
}

static void test_many(void)
{
    struct world *w = begin("many sessions");
    struct guard_session *s[20];
    struct world other = *w;
    int n = 1, r = 0;

    while (n < 20 && r == 0) {
        r = guard_session_new(w->guard, &(struct guard_client){90, 1000}, on_answer,
                              &other, &s[n], NULL);
        n += r == 0;
    }
    ok(r == -EMFILE && n == 16, "sixteen and no more");
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    struct proto_request hold = proto_request(PROTO_HOLD, 1, "GPU-0");
    guard_request(s[1], &hold);
    is_int(other.answer[0].reply.result, ACTUATOR_TAKEN, "one board, one session");
    struct proto_request set = proto_request(PROTO_LIMIT, 2, "GPU-0");
    set.a = 200000;
    guard_request(s[1], &set);
    is_int(other.answer[1].reply.result, ACTUATOR_GONE, "others may not set it");
    struct proto_request release = proto_request(PROTO_RELEASE, 3, "GPU-0");
    guard_request(s[1], &release);
    is_int(other.answer[2].reply.result, ACTUATOR_GONE, "nor release it");
    finish(w);
}

/* Clocks: in the journal before they are locked, reset by whoever lets go, tried again
 * where that fails; never reset where they were never locked.
 */
static void test_clocks(void)
{
    struct world *w = begin("clocks");
    struct cap_entry e;

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_CLOCKS, "GPU-0", 0, ACTUATOR_DONE);
    is_int(fake_dev[0].resets, 0, "no lock, no reset");
    fake_dev[0].lock_fails = -EPERM;
    expect(w, PROTO_CLOCKS, "GPU-0", 900, ACTUATOR_DENIED);
    ok(journal_read(&w->journal, "GPU-0", &e, NULL) == 0 && !e.clocks,
       "a lock that was denied is not noted");
    fake_dev[0].lock_fails = -EIO;
    fake_dev[0].lock_takes = true;
    expect(w, PROTO_CLOCKS, "GPU-0", 900, ACTUATOR_UNKNOWN);
    ok(journal_read(&w->journal, "GPU-0", &e, NULL) == 0 && e.clocks,
       "one that may have been made is");
    fake_dev[0].lock_fails = 0;
    const struct proto_answer *a = expect(w, PROTO_CLOCKS, "GPU-0", 1200, ACTUATOR_DONE);
    is_int((int)a->reply.locked_mhz, 1200, "the answer tells the lock");
    a = expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    ok(a->reply.locked_mhz == 1200 && fake_dev[0].max_mhz == 1200, "a limit leaves it");
    a = expect(w, PROTO_CLOCKS, "GPU-0", 0, ACTUATOR_DONE);
    ok(a->reply.locked_mhz == 0 && fake_dev[0].max_mhz == 0, "reset on request");

    /* Both at once: neither takes the other's place. */
    uint32_t limit = ask(w, PROTO_LIMIT, "GPU-0", 210000);
    uint32_t clocks = ask(w, PROTO_CLOCKS, "GPU-0", 1000);
    pass(w, 300);
    ok(answer_to(w, limit)->reply.result == ACTUATOR_DONE &&
           answer_to(w, clocks)->reply.result == ACTUATOR_DONE &&
           fake_dev[0].set_mw == 210000 && fake_dev[0].max_mhz == 1000,
       "a limit and a clock that come at once are both written");

    /* Another's limit, and the reset fails: ours stays ours until it is gone. */
    fake_dev[0].reset_fails = -EIO;
    fake_dev[0].set_mw = 180000;
    expect(w, PROTO_LIMIT, "GPU-0", 190000, ACTUATOR_GONE);
    ok(has_entry(w, "GPU-0"), "the entry stays");
    fake_dev[0].reset_fails = 0;
    pass(w, 2000);
    ok(!has_entry(w, "GPU-0") && fake_dev[0].max_mhz == 0 && fake_dev[0].set_mw == 180000,
       "until the lock is reset; their limit is left alone");
    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_YIELDED);
    is_int((int)fake_dev[0].set_mw, 180000, "and not held again by this session");
    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-1", 200000, ACTUATOR_DONE);
    expect(w, PROTO_RELEASE, "GPU-1", 0, ACTUATOR_DONE);
    is_int(fake_dev[1].resets, 0, "a board that was never locked is never reset");
    finish(w);
}

/* Neither the limit nor the clock waits for the other to be restored. */
static void test_clock_alone(void)
{
    struct world *w = begin("a clock beside a limit that cannot be restored");
    struct cap_entry e;

    expect(w, PROTO_HOLD, "GPU-0", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-0", 200000, ACTUATOR_DONE);
    expect(w, PROTO_CLOCKS, "GPU-0", 900, ACTUATOR_DONE);
    fake_dev[0].set_fails = -EIO;
    (void)ask(w, PROTO_RELEASE, "GPU-0", 0);
    pass(w, 1000);
    ok(fake_dev[0].max_mhz == 0 && fake_dev[0].set_mw == 200000,
       "a limit that cannot be set: the clock is reset");
    ok(journal_read(&w->journal, "GPU-0", &e, NULL) == 0 && !e.clocks,
       "the entry stays for the limit alone");
    is_int((int)fake_dev[0].resets, 1, "reset once: the next lock is another's");
    fake_dev[0].set_fails = 0;
    (void)ask(w, PROTO_RENEW, NULL, 0);
    pass(w, 2000);
    ok(fake_dev[0].set_mw == 250000 && !has_entry(w, "GPU-0"), "until it is back");

    expect(w, PROTO_HOLD, "GPU-1", 0, ACTUATOR_DONE);
    expect(w, PROTO_CLOCKS, "GPU-1", 900, ACTUATOR_DONE);
    fake_dev[1].read_fails = -EIO;
    (void)ask(w, PROTO_RELEASE, "GPU-1", 0);
    pass(w, 1000);
    ok(fake_dev[1].max_mhz == 0 && has_entry(w, "GPU-1"),
       "a limit that cannot be read: the clock is reset, the entry stays");
    fake_dev[1].read_fails = 0;
    (void)ask(w, PROTO_RENEW, NULL, 0);
    pass(w, 2000);
    ok(!has_entry(w, "GPU-1"), "until it can");

    expect(w, PROTO_HOLD, "GPU-2", 0, ACTUATOR_DONE);
    expect(w, PROTO_LIMIT, "GPU-2", 200000, ACTUATOR_DONE);
    expect(w, PROTO_CLOCKS, "GPU-2", 900, ACTUATOR_DONE);
    fake_dev[2].reset_fails = -EIO;
    (void)ask(w, PROTO_RELEASE, "GPU-2", 0);
    pass(w, 1000);
    ok(fake_dev[2].set_mw == 250000 && has_entry(w, "GPU-2"),
       "a clock that stays locked: the limit is back, the entry stays");
    fake_dev[2].reset_fails = 0;
    (void)ask(w, PROTO_RENEW, NULL, 0);
    pass(w, 2000);
    ok(!has_entry(w, "GPU-2") && fake_dev[2].max_mhz == 0, "until it is reset");
    finish(w);
}

int main(void)
{
    if (!mkdtemp(top))
        return skip_all("no temporary folder");
    test_life();
    test_range();
    test_slow_hold();
    test_writing();
    test_yield();
    test_again();
    test_unseen_reload();
    test_clocks();
    test_clock_alone();
    test_rate();
    test_faults();
    test_keeps_trying();
    test_end();
    test_hang();
    test_recover();
    test_recover_status();
    test_grace_ends();
    test_adopt();
    test_strangers();
    test_left_at_once();
    test_any_moment();
    test_hold_rate();
    test_many();
    remove_tree(top);
    return done();
}
