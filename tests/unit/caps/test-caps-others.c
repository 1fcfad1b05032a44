/* Other writers, in virtual time: seen, counted by cause, answered as configured. */
#include "base/names.h"
#include "unit/caps/caps-scene.h"

#define CLS                                      \
    {                                            \
        .first = 0.9, .floor = 0.5, .rate = 0.01 \
    }
static const struct caps_conf yields = {.cls = CLS, .yield_ns = 60 * NS_PER_S};
static const struct caps_conf reasserts = {
    .cls = CLS, .others = CAPS_REASSERT, .reassert_ns = 10 * NS_PER_S};

static void test_yield(void)
{
    struct scene *s = scene_new("yield to another's limit", 1, &yields);

    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 5);
    fault(s, "0 limit 250W");
    pass(s, 1.5);
    is_state(s, 0, CAPS_YIELDED, "theirs is seen");
    is_limit(s, 0, 250, "theirs stays");
    struct caps_view v = look(s, 0);
    ok(v.enforced_mw == W(250) && v.ramp_mw == W(250) && v.bounds.original_mw == W(250),
       "the view has theirs");
    ok(told(s, CAPS_EVENT_OTHER) == 1 && v.changes[CAPS_CAUSE_OTHER] == 1 &&
           changes(s, 0) == 1 && last_told(s, CAPS_EVENT_OTHER)->enforced_mw == W(250),
       "counted once: '%s'", last_told(s, CAPS_EVENT_OTHER)->text);
    pass(s, 50);
    is_limit(s, 0, 250, "left alone");
    pass(s, 12);
    is_limit(s, 0, 200, "tried again after the time configured");
    is_state(s, 0, CAPS_HELD, "held");
    is_int(changes(s, 0), 1, "still counted once");
    withdraw(s, 0, id);
    pass(s, 1);
    is_limit(s, 0, 250, "theirs is the original that comes back");
    is_state(s, 0, CAPS_FREE, "given back");

    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 1);
    fault(s, "0 limit 180W");
    pass(s, 1.5);
    is_state(s, 0, CAPS_YIELDED, "another, under ours");
    pass(s, 65);
    is_state(s, 0, CAPS_FREE, "nothing of ours is wanted under it");
    is_limit(s, 0, 180, "left alone");
    fault(s, "0 limit 300W");
    pass(s, 1);
    is_limit(s, 0, 200, "they let it go up: ours holds at once");
    is_int(changes(s, 0), 3, "three changes of theirs");
    scene_free(s);
}

static void test_news(void)
{
    struct scene *s = scene_new("claims that change meanwhile", 1, &yields);
    struct claim soft = {.kind = CLAIM_SOFT, .mw = W(230), .until_ns = CLAIM_FOREVER};

    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 2);
    fault(s, "0 limit 250W");
    pass(s, 1.5);
    (void)caps_claim(s->caps, 0, &soft, &soft.id, NULL);
    soft.mw = W(220);
    (void)caps_claim(s->caps, 0, &soft, NULL, NULL);
    struct claim same = *claims_find(look(s, 0).claims, id);
    same.until_ns = loop_now_ns(s->loop) + 500 * NS_PER_S;
    (void)caps_claim(s->caps, 0, &same, NULL, NULL);
    pass(s, 1);
    is_state(s, 0, CAPS_YIELDED, "a rule's claim or a renewal is no news");
    same.mw = W(210);
    (void)caps_claim(s->caps, 0, &same, NULL, NULL);
    pass(s, 0.5);
    is_limit(s, 0, 210, "a budget's new value is");
    claim_for(s, 0, CLAIM_NAMED, 205, 10);
    pass(s, 1);
    fault(s, "0 limit 250W");
    pass(s, 1.5);
    is_state(s, 0, CAPS_YIELDED, "theirs again");
    pass(s, 8);
    is_limit(s, 0, 210, "a claim by name that is over is news, too");
    uint64_t named = claim(s, 0, CLAIM_NAMED, 220);
    fault(s, "0 limit 250W");
    pass(s, 1.5);
    is_state(s, 0, CAPS_YIELDED, "and again");
    withdraw(s, 0, named);
    pass(s, 0.5);
    is_limit(s, 0, 210, "one that is withdrawn as well");
    fault(s, "0 limit 250W");
    pass(s, 1.5);
    fault(s, "0 limit 240W");
    pass(s, 1.5);
    ok(changes(s, 0) == 5 && look(s, 0).bounds.original_mw == W(240),
       "and another of theirs, counted");
    caps_withdraw(s->caps, 0, soft.id, NULL);
    withdraw(s, 0, id);
    pass(s, 0.5);
    is_state(s, 0, CAPS_FREE, "no claim left: nothing to yield");
    is_limit(s, 0, 240, "theirs stays");
    scene_free(s);
}

/* Somebody writes as soon as ours is there; how long until it is, each time? */
static void test_reassert(void)
{
    struct scene *s = scene_new("re-assert with back-off", 1, &reasserts);
    double expect[] = {10, 20, 40, 80, 160, 320, 640, 640};
    bool good = true;

    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 2);
    for (int i = 0; i < 8; i++) {
        uint64_t t0 = loop_now_ns(s->loop);
        fault(s, i % 2 ? "0 limit 180W" : "0 limit 250W");
        while (limit_of(s, 0) != W(200) && s_between(t0, loop_now_ns(s->loop)) < 1000)
            pass(s, 0.25);
        double took = s_between(t0, loop_now_ns(s->loop));
        good &= took >= expect[i] && took <= expect[i] + 2;
        printf("# overwritten after %.2f s\n", took);
        pass(s, 0.5);
    }
    ok(good, "10 s, doubled each time up to 64 times that");
    is_int(changes(s, 0), 8, "each counted once");
    ok(look(s, 0).bounds.original_mw == W(300), "the original is what it was");
    pass(s, 700);
    fault(s, "0 limit 250W");
    pass(s, 13);
    is_limit(s, 0, 200, "after long peace 10 s again");
    fault(s, "0 limit 250W");
    pass(s, 2);
    withdraw(s, 0, id);
    pass(s, 1);
    is_state(s, 0, CAPS_FREE, "nothing left to assert");
    is_limit(s, 0, 250, "theirs stays: it is not ours to undo");
    is_int(look(s, 0).bounds.original_mw, W(250), "and is the original now");
    scene_free(s);
}

static void test_reassert_ramp(void)
{
    struct scene *s = scene_new("re-assert what had been walked", 1, &reasserts);

    uint64_t id = claim(s, 0, CLAIM_NAMED, 200);
    pass(s, 20);
    uint32_t was = limit_of(s, 0);
    fault(s, "0 limit 290W");
    pass(s, 12);
    uint32_t now = limit_of(s, 0);
    ok(was == W(241) && now <= was && now >= was - W(7),
       "the ramp goes on from where it was: %u, %u mW", was, now);
    pass(s, 20);
    is_limit(s, 0, 200, "to its target");
    withdraw(s, 0, id);
    pass(s, 1);
    is_limit(s, 0, 300, "the original comes back");
    scene_free(s);
}

static void test_reload(void)
{
    struct scene *s = scene_new("the driver is loaded anew", 2, &reasserts);

    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 3);
    fault(s, "reload");
    pass(s, 1.5);
    struct caps_view v = look(s, 0);
    ok(v.changes[CAPS_CAUSE_DRIVER] == 1 && changes(s, 0) == 1, "known by its cause: %s",
       last_told(s, CAPS_EVENT_OTHER)->text);
    is_limit(s, 0, 200, "asserted again at once");
    is_int(changes(s, 1), 0, "a board at its original lost nothing");
    scene_free(s);

    s = scene_new("the driver is loaded anew, others are yielded to", 1, &yields);
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    for (int i = 1; i <= 2; i++) {
        pass(s, 3);
        fault(s, "reload");
        pass(s, 1.5);
        is_limit(s, 0, 200, "no one to yield to: asserted again at once");
        is_int(look(s, 0).changes[CAPS_CAUSE_DRIVER], i, "counted as what it is");
    }
    unsigned yielded = 0;
    for (size_t i = 0; i < s->n_told; i++)
        yielded += s->told[i].state == CAPS_YIELDED;
    is_int(yielded, 0, "nobody was told of another writer");
    is_state(s, 0, CAPS_HELD, "held");
    withdraw(s, 0, id);
    pass(s, 1);
    is_limit(s, 0, 300, "what the new driver had is the original");
    scene_free(s);

    s = scene_new("forgotten without persistence mode", 1, &yields);
    struct gpu_info *info = (struct gpu_info *)board_view(boards_at(s->boards, 0))->info;
    info->has_persistence = true;
    info->persistence = false;
    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 3);
    fault(s, "0 limit 300W");
    pass(s, 1.5);
    is_int(look(s, 0).changes[CAPS_CAUSE_PERSISTENCE], 1, "the default is back: %s",
           last_told(s, CAPS_EVENT_OTHER)->text);
    is_limit(s, 0, 200, "set again at once");
    pass(s, 30);
    fault(s, "0 limit 300W");
    pass(s, 1.5);
    is_state(s, 0, CAPS_YIELDED, "soon after: somebody may want it");
    is_int(look(s, 0).changes[CAPS_CAUSE_PERSISTENCE], 2, "the cause is the same");
    pass(s, 61);
    is_limit(s, 0, 200, "tried again after the time configured");
    fault(s, "0 limit 250W");
    pass(s, 2);
    is_int(look(s, 0).changes[CAPS_CAUSE_OTHER], 1, "another value is somebody's");
    scene_free(s);
}

static void test_free(void)
{
    struct scene *s = scene_new("others at a free board", 1, &yields);

    pass(s, 40);
    fault(s, "0 limit 250W");
    pass(s, 0.5);
    struct caps_view v = look(s, 0);
    ok(v.state == CAPS_FREE && v.bounds.original_mw == W(250) && changes(s, 0) == 1 &&
           v.enforced_mw == W(250),
       "their limit is the original, counted");
    ok(last_told(s, CAPS_EVENT_CAP)->enforced_mw == W(250), "told");
    uint64_t id = claim(s, 0, CLAIM_HARD, 280);
    pass(s, 1);
    ok(look(s, 0).state == CAPS_FREE && look(s, 0).verdict.by == CAP_BY_ORIGINAL,
       "a claim above it changes nothing");
    withdraw(s, 0, id);
    id = claim(s, 0, CLAIM_HARD, 240);
    pass(s, 1);
    is_limit(s, 0, 240, "one under it does");
    withdraw(s, 0, id);
    fault(s, "0 limit 230W");
    pass(s, 2);
    is_limit(s, 0, 230, "theirs while ours is on its way back: theirs");
    is_state(s, 0, CAPS_FREE, "free");
    is_int(changes(s, 0), 2, "counted");
    scene_free(s);
}

static void tell_board(struct scene *s, enum actuator_result result, uint32_t original_mw)
{
    struct actuator_reply reply = {.result = result,
                                   .original_mw = original_mw,
                                   .pid = result == ACTUATOR_TAKEN ? 12 : 0,
                                   .text = "held by a test",
                                   .from = {.ppm = 600000},
                                   .to = {.mw = W(290)}};

    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s",
                   board_view(boards_at(s->boards, 0))->info->uuid);
    caps_on_actuator(s->caps, ACTUATOR_EVENT_BOARD, &reply);
}

/* A command that works without the daemon holds the board. */
static void test_holder(void)
{
    struct scene *s = scene_new("another Underwatt at a free board", 1, &yields);

    pass(s, 40);
    ok(look(s, 0).range.min_mw == W(150) && look(s, 0).range.max_mw == W(300),
       "the board's own range");
    tell_board(s, ACTUATOR_DONE, 0);
    struct caps_view v = look(s, 0);
    ok(v.range.min_mw == W(180) && v.range.max_mw == W(290) && !v.holder[0] &&
           !v.taken_by,
       "root's range is known before a hold");
    tell_board(s, ACTUATOR_TAKEN, W(300));
    for (unsigned w = 280; w > 200; w -= 20) {
        char words[32];
        (void)snprintf(words, sizeof words, "0 limit %uW", w);
        fault(s, words);
        pass(s, 1);
    }
    v = look(s, 0);
    ok(changes(s, 0) == 0 && v.bounds.original_mw == W(300) && v.enforced_mw == W(220),
       "its caps are no other writer's, its original is ours");
    ok(v.state == CAPS_FREE && v.taken_by == 12 &&
           strcmp(v.holder, "held by a test") == 0,
       "who it is");
    ok(caps_shown_by(&v) == CAP_BY_HOLDER, "it is shown as the board's holder");
    fault(s, "0 limit 300W");
    pass(s, 1);
    tell_board(s, ACTUATOR_DONE, 0);
    pass(s, 1);
    v = look(s, 0);
    ok(changes(s, 0) == 0 && !v.holder[0] && !v.taken_by, "it has ended");
    fault(s, "0 limit 250W");
    pass(s, 1);
    ok(changes(s, 0) == 1 && look(s, 0).bounds.original_mw == W(250),
       "the next change is another program's");
    fault(s, "0 limit 170W");
    pass(s, 1);
    v = look(s, 0);
    ok(v.range.min_mw == W(170) && v.bounds.min_mw == W(170) &&
           v.bounds.original_mw == W(170),
       "one under root's range extends the range: %u mW", v.range.min_mw);
    fault(s, "0 limit 250W");
    pass(s, 1);
    v = look(s, 0);
    ok(v.range.min_mw == W(180) && v.bounds.min_mw == W(180) &&
           v.range.max_mw == W(290) && v.bounds.max_mw == W(290),
       "… until it ends: %u mW", v.range.min_mw);
    tell_board(s, ACTUATOR_TAKEN, W(250));
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    pass(s, 1);
    tell_board(s, ACTUATOR_TAKEN, W(300));
    v = look(s, 0);
    ok(v.state == CAPS_HELD && !v.holder[0] && v.bounds.original_mw == W(250),
       "a late event of a board that is held changes nothing");
    withdraw(s, 0, id);
    pass(s, 1);
    v = look(s, 0);
    ok(v.state == CAPS_FREE && !v.holder[0] && !v.taken_by,
       "given back, nobody holds it");
    scene_free(s);
}

/* The actuator is lost, and with it what it told of the board. */
static void test_cut(void)
{
    struct scene *s = scene_new("an actuator that is lost with its answers", 1, &yields);
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .enforced_mw = W(250),
                                .requested_mw = W(250)};

    pass(s, 40);
    fault(s, "0 limit 250W");
    sample.began_ns = sample.at_ns = loop_now_ns(s->loop);
    caps_seen(s->caps, 0, &sample); /* the actuator is asked whose the limit is */
    ok(changes(s, 0) == 0 && look(s, 0).bounds.original_mw == W(300), "not answered yet");
    scene_no_actuator(s);
    pass(s, 40);
    is_int(look(s, 0).bounds.original_mw, W(250), "the limit found is the original");
    fault(s, "0 limit 260W");
    pass(s, 1);
    ok(changes(s, 0) == 1 && look(s, 0).bounds.original_mw == W(260),
       "another program's change counts");

    scene_actuator(s);
    pass(s, 0.5);
    tell_board(s, ACTUATOR_TAKEN, W(260));
    struct caps_view v = look(s, 0);
    ok(v.holder[0] && v.range.min_mw == W(180) && v.range.max_mw == W(290),
       "a holder, and root's range, by the next actuator");
    scene_no_actuator(s);
    v = look(s, 0);
    ok(!v.holder[0] && !v.taken_by, "no holder is known without an actuator");
    ok(v.range.min_mw == W(150) && v.range.max_mw == W(300),
       "the range is the board's own: %u..%u mW", v.range.min_mw, v.range.max_mw);
    pass(s, 40);
    fault(s, "0 limit 270W");
    pass(s, 1);
    is_int(changes(s, 0), 2, "and a change counts again");
    scene_free(s);
}

/* The limit before a holder's end may have been that holder's. */
static void test_holder_ends(void)
{
    struct scene *s = scene_new("a holder that ends, original unknown", 1, &yields);

    pass(s, 40);
    scene_no_actuator(s);
    scene_actuator(s);
    pass(s, 0.5);
    tell_board(s, ACTUATOR_TAKEN, 0);
    fault(s, "0 limit 220W");
    pass(s, 40);
    tell_board(s, ACTUATOR_DONE, 0);
    pass(s, 1);
    fault(s, "0 limit 280W");
    pass(s, 40);
    ok(changes(s, 0) == 0 && look(s, 0).bounds.original_mw == W(280),
       "the limit that stays is the original, %u mW; no change was counted",
       look(s, 0).bounds.original_mw);
    scene_free(s);
}

static int ignore_reply(struct actuator *act, const struct actuator_reply *reply,
                        void *user)
{
    (void)act;
    (void)reply;
    (void)user;
    return 0;
}

/* A connection that takes no request. */
static void test_no_look(void)
{
    struct scene *s = scene_new("an actuator that cannot be asked", 1, &yields);

    pass(s, 40);
    int r = 0;
    for (int i = 0; i < 1000 && r == 0; i++)
        r = actuator_look(s->act, ignore_reply, NULL);
    ok(r < 0, "no more requests are taken: %d", r);
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .began_ns = loop_now_ns(s->loop),
                                .at_ns = loop_now_ns(s->loop),
                                .enforced_mw = W(250),
                                .requested_mw = W(250)};
    caps_seen(s->caps, 0, &sample);
    ok(changes(s, 0) == 1 && look(s, 0).bounds.original_mw == W(250),
       "the limit is another program's at once");
    scene_free(s);
}

static void test_yielded_holder(void)
{
    struct scene *s = scene_new("another Underwatt at a board yielded", 1, &yields);

    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 5);
    fault(s, "0 limit 250W");
    pass(s, 1.5);
    is_state(s, 0, CAPS_YIELDED, "a first change");
    tell_board(s, ACTUATOR_TAKEN, 0);
    fault(s, "0 limit 220W");
    pass(s, 1);
    ok(changes(s, 0) == 1 && look(s, 0).bounds.original_mw == W(250),
       "the holder's limit is no change and no original: %u mW",
       look(s, 0).bounds.original_mw);
    tell_board(s, ACTUATOR_DONE, 0);
    fault(s, "0 limit 240W");
    pass(s, 1);
    is_int(changes(s, 0), 2, "one after its end is");
    scene_free(s);
}

/* What keeps the enforced limit under the one that is set. */
static void test_bounded(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        uint32_t has;
        double set_w, enforced_w;
        uint64_t reasons;
        int cause; /* -1: none */
    } cases[] = {
        {"as set", GPU_HAS_REQUESTED, 200, 200, GPU_REASON_SW_THERMAL, -1},
        {"rounded", GPU_HAS_REQUESTED, 200, 199, GPU_REASON_SW_THERMAL, -1},
        {"heat, by the driver", GPU_HAS_REQUESTED, 200, 170, GPU_REASON_SW_THERMAL, CAPS_CAUSE_THERMAL},
        {"heat, by the board", GPU_HAS_REQUESTED, 200, 170, GPU_REASON_HW_THERMAL | GPU_REASON_HW_SLOWDOWN, CAPS_CAUSE_THERMAL},
        {"power brake", GPU_HAS_REQUESTED, 200, 170, GPU_REASON_HW_POWER_BRAKE, CAPS_CAUSE_BOARD},
        {"no reason told", GPU_HAS_REQUESTED, 200, 170, GPU_REASON_SW_POWER_CAP, CAPS_CAUSE_BOARD},
        {"another's", GPU_HAS_REQUESTED, 220, 220, GPU_REASON_SW_THERMAL, CAPS_CAUSE_OTHER},
        {"request untold, another's", 0, 220, 220, GPU_REASON_SW_THERMAL, CAPS_CAUSE_OTHER},
        {"request untold, lower, no reason", 0, 180, 180, GPU_REASON_SW_POWER_CAP, CAPS_CAUSE_OTHER},
        {"request untold, heat", 0, 180, 180, GPU_REASON_SW_THERMAL, CAPS_CAUSE_THERMAL},
        {"request untold, power brake", 0, 180, 180, GPU_REASON_HW_POWER_BRAKE, CAPS_CAUSE_BOARD},
        {"unreadable", GPU_HAS_REQUESTED, 0, 0, 0, -1},
    };
    /* clang-format on */

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct scene *s = scene_new(cases[i].name, 1, &yields);
        claim(s, 0, CLAIM_HARD, 200);
        pass(s, 1);
        loop_timer_free(take(s->sampling));
        pass(s, 0.1);
        unsigned before = told(s, CAPS_EVENT_OTHER);
        struct gpu_sample sample = {
            .has = GPU_HAS_ENFORCED | GPU_HAS_REASONS | cases[i].has,
            .began_ns = loop_now_ns(s->loop),
            .at_ns = loop_now_ns(s->loop),
            .enforced_mw = W(cases[i].enforced_w),
            .requested_mw = W(cases[i].set_w),
            .reasons = cases[i].reasons,
        };
        for (int k = 0; k < 3; k++)
            caps_seen(s->caps, 0, &sample);
        bool none = cases[i].cause < 0;
        ok(changes(s, 0) == !none && told(s, CAPS_EVENT_OTHER) - before == !none &&
               (none || look(s, 0).changes[cases[i].cause] == 1),
           "%s: %s", cases[i].name,
           none ? "nothing"
                : names_word(NAMES_CAP_CAUSE, (enum caps_cause)cases[i].cause));
        ok(look(s, 0).state == CAPS_HELD, "%s: held, it is the actuator who yields",
           cases[i].name);
        sample.enforced_mw = sample.requested_mw = W(200);
        caps_seen(s->caps, 0, &sample);
        ok(look(s, 0).enforced_mw == W(200) && changes(s, 0) == !none,
           "%s: over, counted no more", cases[i].name);
        scene_free(s);
    }
}

/* A sample from before our last write says nothing. */
static void test_stale(void)
{
    struct scene *s = scene_new("old samples", 1, &yields);

    loop_timer_free(take(s->sampling));
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .began_ns = loop_now_ns(s->loop),
                                .at_ns = loop_now_ns(s->loop),
                                .enforced_mw = W(300),
                                .requested_mw = W(300)};
    claim(s, 0, CLAIM_HARD, 200);
    caps_seen(s->caps, 0, &sample);
    pass(s, 0.5);
    caps_seen(s->caps, 0, &sample);
    ok(changes(s, 0) == 0 && look(s, 0).enforced_mw == W(200), "are left aside");
    sample.began_ns = loop_now_ns(s->loop);
    claim(s, 0, CLAIM_HARD, 190);
    sample.began_ns++;
    caps_seen(s->caps, 0, &sample);
    ok(changes(s, 0) == 0, "and those while a limit is being written");
    caps_seen(s->caps, 7, &sample);
    sample.has = GPU_HAS_POWER;
    pass(s, 0.5);
    sample.began_ns = loop_now_ns(s->loop);
    caps_seen(s->caps, 0, &sample);
    ok(changes(s, 0) == 0 && look(s, 0).enforced_mw == W(190),
       "and those without limits");
    scene_free(s);
}

static void test_names(void)
{
    static const char *const causes[] = {"other",   "driver", "persistence",
                                         "thermal", "board",  "?"};
    static const char *const states[] = {"free",     "holding", "held",   "yielded",
                                         "released", "lost",    "denied", "?"};

    for (int i = 0; i <= CAPS_CAUSES; i++)
        is_str(names_word(NAMES_CAP_CAUSE, (enum caps_cause)i), causes[i], causes[i]);
    for (int i = 0; i <= CAPS_DENIED + 1; i++)
        is_str(names_word(NAMES_CAP_STATE, (enum caps_state)i), states[i], states[i]);
}

int main(void)
{
    test_yield();
    test_news();
    test_reassert();
    test_reassert_ramp();
    test_reload();
    test_free();
    test_holder();
    test_cut();
    test_holder_ends();
    test_no_look();
    test_yielded_holder();
    test_bounded();
    test_stale();
    test_names();
    return done();
}
