/* Whatever the actuator may answer, said by an actuator made for it. */
#include <errno.h>

#include "base/names.h"
#include "caps/claimant.h"
#include "unit/caps/caps-scene.h"

#define CLS                                      \
    {                                            \
        .first = 0.9, .floor = 0.5, .rate = 0.01 \
    }
static const struct caps_conf conf = {.cls = CLS};

/* ---- the actuator ---- */

enum kind { HOLD = 1, AGAIN_FOUND, AGAIN_KEEP, LIMIT, RELEASE, LOOK };
enum { ASKED_MAX = 64 };
struct asked {
    enum kind kind;
    char uuid[96];
    uint32_t mw;
    actuator_reply_fn fn;
    void *user;
};

struct actuator {
    struct asked asked[ASKED_MAX];
    size_t n; /* ever; those answered stay */
    int refuse;
};

static struct actuator stub, *act = &stub;

static int ask(struct actuator *a, enum kind kind, const char *uuid, uint32_t mw,
               actuator_reply_fn fn, void *user)
{
    if (a->refuse)
        return a->refuse;
    if (a->n == ASKED_MAX)
        return -EAGAIN;
    struct asked *q = &a->asked[a->n++];
    *q = (struct asked){.kind = kind, .mw = mw, .fn = fn, .user = user};
    (void)snprintf(q->uuid, sizeof q->uuid, "%s", uuid);
    return 0;
}

int actuator_start_virtual(struct loop *loop, const struct gpu_backend *backend,
                           void *lib, const struct actuator_opts *opts,
                           struct actuator **ret, uw_error *err)
{
    (void)loop;
    (void)backend;
    (void)lib;
    (void)err;
    memset(&stub, 0, sizeof stub);
    *ret = &stub;
    return opts->on_ready(&stub, 0, "", opts->user);
}

void actuator_free(struct actuator *a)
{
    (void)a;
}

/* Never asked here: clocks are off. */
int actuator_set_clocks(struct actuator *a, const char *uuid, uint32_t min_mhz,
                        uint32_t max_mhz, actuator_reply_fn fn, void *user)
{
    (void)a;
    (void)uuid;
    (void)min_mhz;
    (void)max_mhz;
    (void)fn;
    (void)user;
    ok(false, "no clock is asked for");
    return -EINVAL;
}

int actuator_hold(struct actuator *a, const char *uuid, actuator_reply_fn fn, void *user)
{
    return ask(a, HOLD, uuid, 0, fn, user);
}

int actuator_hold_again(struct actuator *a, const char *uuid, bool keep_original,
                        actuator_reply_fn fn, void *user)
{
    return ask(a, keep_original ? AGAIN_KEEP : AGAIN_FOUND, uuid, 0, fn, user);
}

int actuator_set_limit(struct actuator *a, const char *uuid, uint32_t mw,
                       actuator_reply_fn fn, void *user)
{
    return ask(a, LIMIT, uuid, mw, fn, user);
}

int actuator_release(struct actuator *a, const char *uuid, actuator_reply_fn fn,
                     void *user)
{
    return ask(a, RELEASE, uuid, 0, fn, user);
}

/* Those for nobody are not counted. */
int actuator_look(struct actuator *a, actuator_reply_fn fn, void *user)
{
    return fn ? ask(a, LOOK, "", 0, fn, user) : 0;
}

/* What the next answers say beside: an older actuator says neither. */
static struct {
    uint32_t set_mw;
    struct actuator_range range;
} says;

/* Answers request i of the stub. */
static void answer(struct scene *s, size_t i, enum actuator_result result,
                   uint32_t enforced_mw, const char *text)
{
    struct asked *q = &act->asked[i];
    struct actuator_reply reply = {
        .result = result,
        .enforced_mw = enforced_mw,
        .original_mw = W(300),
        .limits = {.min_mw = W(150), .max_mw = W(300), .default_mw = W(300)},
        .set_mw = says.set_mw,
        .range = says.range,
    };
    actuator_reply_fn fn = q->fn;

    if (i >= act->n || !fn) {
        ok(false, "request %zu is there to be answered", i);
        return;
    }
    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s", q->uuid);
    (void)snprintf(reply.text, sizeof reply.text, "%s", text);
    q->fn = NULL;
    is_int(fn(act, &reply, q->user), 0, "answered %s",
           names_word(NAMES_ACTUATOR_RESULT, result));
    (void)s;
}

/* The last request is of this kind, there are so many in all. */
static void is_asked(size_t n, enum kind kind, uint32_t mw, const char *name)
{
    bool good = act->n == n && n > 0 && act->asked[n - 1].kind == kind &&
                act->asked[n - 1].mw == mw;

    if (!ok(good, "%s: request %zu", name, n))
        printf("# %zu requests, the last %d of %u mW\n", act->n,
               act->n ? (int)act->asked[act->n - 1].kind : 0,
               act->n ? act->asked[act->n - 1].mw : 0);
}

static void event(struct scene *s, enum actuator_event what, size_t board,
                  enum actuator_result result, uint32_t enforced_mw)
{
    struct actuator_reply reply = {
        .result = result, .enforced_mw = enforced_mw, .text = "an event"};

    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s",
                   board_view(boards_at(s->boards, board))->info->uuid);
    caps_on_actuator(s->caps, what, &reply);
}

/* Boards as they are found, no samples, an actuator that is ready. */
static struct scene *begin(const char *name, double found_w, const struct caps_conf *c)
{
    scene_found_w = found_w;
    struct scene *s = scene_boards(name, 2);
    scene_found_w = 0;
    scene_caps(s, c);
    loop_timer_free(take(s->sampling));
    return s;
}

static struct scene *begin_held(const char *name)
{
    struct scene *s = begin(name, 0, &conf);

    scene_actuator(s);
    claim(s, 0, CLAIM_HARD, 200);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    answer(s, 1, ACTUATOR_DONE, W(200), "");
    is_state(s, 0, CAPS_HELD, "held");
    return s;
}

/* ---- a daemon that is started anew ---- */

static void test_adopt(void)
{
    struct scene *s = begin("taken over: nothing moves", 200, &conf);

    claim(s, 0, CLAIM_NAMED, 200);
    is_int(act->n, 0, "no actuator yet");
    is_state(s, 0, CAPS_LOST, "waits");
    scene_actuator(s);
    is_asked(1, HOLD, 0, "the claim is not under what is set, and yet");
    answer(s, 0, ACTUATOR_DONE, W(200), "");
    struct caps_view v = look(s, 0);
    ok(v.state == CAPS_HELD && v.bounds.original_mw == W(300) && v.ramp_mw == W(200) &&
           !v.ramping && v.enforced_mw == W(200),
       "the original is the actuator's word");
    pass(s, 100);
    is_int(act->n, 1, "nothing was written");
    scene_free(s);

    s = begin("taken over on its ramp", 250, &conf);
    claim(s, 0, CLAIM_NAMED, 200);
    scene_actuator(s);
    answer(s, 0, ACTUATOR_DONE, W(250), "");
    is_int(act->n, 1, "no jump");
    pass(s, 0.4);
    is_asked(2, LIMIT, W(249), "goes on from there");
    scene_free(s);

    s = begin("taken over, and a claim is over meanwhile", 200, &conf);
    claim(s, 0, CLAIM_NAMED, 220);
    scene_actuator(s);
    answer(s, 0, ACTUATOR_DONE, W(200), "");
    is_asked(2, LIMIT, W(220), "up at once to what is left");
    scene_free(s);
}

static void test_adopt_little(void)
{
    struct scene *s = begin("taken over, nothing is wanted", 300, &conf);

    claim(s, 0, CLAIM_NAMED, 300);
    scene_actuator(s);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    is_asked(2, RELEASE, 0, "held to know the original, and given back");
    answer(s, 1, ACTUATOR_DONE, W(300), "");
    pass(s, 100);
    is_int(act->n, 2, "once");
    is_state(s, 0, CAPS_FREE, "free");
    scene_free(s);
}

static void test_left_over(void)
{
    struct scene *s = begin("left over where nothing is claimed", 200, &conf);

    scene_actuator(s);
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .enforced_mw = W(200),
                                .requested_mw = W(200)};
    for (int i = 0; i < 40; i++) {
        pass(s, 1);
        sample.began_ns = sample.at_ns = loop_now_ns(s->loop);
        if (i == 10) /* the grace is over */
            sample.enforced_mw = sample.requested_mw = W(300);
        caps_seen(s->caps, 1, &sample);
    }
    struct caps_view v = look(s, 1);
    ok(v.bounds.original_mw == W(300) && changes(s, 1) == 0 && v.enforced_mw == W(300),
       "the actuator's own restoring is nobody's change");
    sample.enforced_mw = sample.requested_mw = W(250);
    sample.began_ns = sample.at_ns = loop_now_ns(s->loop);
    caps_seen(s->caps, 1, &sample);
    is_asked(1, LOOK, 0, "a later one: whose?");
    caps_seen(s->caps, 1, &sample);
    ok(act->n == 1 && changes(s, 1) == 0, "nothing is counted until that is known");
    answer(s, 0, ACTUATOR_DONE, 0, "");
    v = look(s, 1);
    ok(v.bounds.original_mw == W(250) && v.changes[CAPS_CAUSE_OTHER] == 1,
       "no Underwatt's: counted");
    sample.enforced_mw = sample.requested_mw = W(240);
    sample.began_ns = sample.at_ns = loop_now_ns(s->loop);
    caps_seen(s->caps, 1, &sample);
    is_asked(2, LOOK, 0, "another one");
    event(s, ACTUATOR_EVENT_BOARD, 1, ACTUATOR_TAKEN, 0);
    answer(s, 1, ACTUATOR_DONE, 0, "");
    v = look(s, 1);
    ok(v.bounds.original_mw == W(250) && changes(s, 1) == 1 &&
           strcmp(v.holder, "an event") == 0,
       "another Underwatt's is not");
    scene_free(s);
}

/* ---- requests that cannot be made ---- */

static void test_not_asked(void)
{
    struct scene *s = begin("too many requests wait", 0, &conf);

    scene_actuator(s);
    act->refuse = -EAGAIN;
    claim(s, 0, CLAIM_HARD, 200);
    pass(s, 0.1);
    act->refuse = 0;
    pass(s, 0.03);
    is_asked(1, HOLD, 0, "the hold: again within 20 ms");
    act->refuse = -EAGAIN;
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    pass(s, 0.1);
    act->refuse = 0;
    pass(s, 0.03);
    is_asked(2, LIMIT, W(200), "the limit, too");
    answer(s, 1, ACTUATOR_DONE, W(200), "");
    act->refuse = -EAGAIN;
    withdraw(s, 0, look(s, 0).verdict.claim);
    pass(s, 0.1);
    act->refuse = 0;
    pass(s, 0.03);
    is_asked(3, RELEASE, 0, "and the release");
    answer(s, 2, ACTUATOR_DONE, W(300), "");
    act->refuse = -ENOTCONN;
    claim(s, 0, CLAIM_HARD, 200);
    is_state(s, 0, CAPS_LOST, "not connected");
    act->refuse = 0;
    pass(s, 1.1);
    is_asked(4, HOLD, 0, "asked again after a second");
    scene_free(s);
}

/* ---- answers to a limit ---- */

static void test_in_flight(void)
{
    struct scene *s = begin_held("limits in flight");

    for (unsigned i = 0; i < 6; i++)
        claim(s, 0, CLAIM_HARD, 190 - i);
    is_asked(5, LIMIT, W(188), "three at once, no more");
    answer(s, 3, ACTUATOR_BUSY, 0, "a newer one");
    is_asked(6, LIMIT, W(185), "an answer makes room for the newest");
    answer(s, 2, ACTUATOR_DONE, W(190), "");
    ok(look(s, 0).enforced_mw == W(190) && look(s, 0).writes == 2, "in their order");
    answer(s, 4, ACTUATOR_BUSY, 0, "a newer one");
    answer(s, 5, ACTUATOR_DONE, W(185), "");
    pass(s, 10);
    is_int(act->n, 6, "nothing is left to ask");
    ok(look(s, 0).enforced_mw == W(185) && look(s, 0).writes == 3 &&
           look(s, 0).failures == 0,
       "one that was passed over is neither a write nor a failure");
    scene_free(s);
}

/* One that fails while a newer one is on its way is not asked for again. */
static void test_overtaken(void)
{
    struct scene *s = begin_held("a limit that fails, overtaken");

    claim(s, 0, CLAIM_HARD, 190);
    claim(s, 0, CLAIM_HARD, 180);
    answer(s, 2, ACTUATOR_UNKNOWN, 0, "it broke");
    pass(s, 0.7);
    is_asked(4, LIMIT, W(180), "nothing new");
    answer(s, 3, ACTUATOR_DONE, W(180), "");
    pass(s, 10);
    is_asked(4, LIMIT, W(180), "nor later");
    ok(look(s, 0).failures == 1 && look(s, 0).enforced_mw == W(180), "counted");
    scene_free(s);
}

static void test_clamped(void)
{
    struct scene *s = begin_held("limits that the driver changes");

    claim(s, 0, CLAIM_HARD, 180);
    answer(s, 2, ACTUATOR_CLAMPED, W(170), "170 W");
    ok(look(s, 0).enforced_mw == W(170) && look(s, 0).failures == 0 &&
           strstr(look(s, 0).text, "170"),
       "lower: told");
    claim(s, 0, CLAIM_HARD, 160);
    unsigned before = told(s, CAPS_EVENT_FAIL);
    answer(s, 3, ACTUATOR_CLAMPED, W(175), "175 W");
    ok(look(s, 0).enforced_mw == W(175) && look(s, 0).failures == 1 &&
           told(s, CAPS_EVENT_FAIL) == before + 1,
       "higher: a failure, watts are spent that nobody granted");
    pass(s, 100);
    is_int(act->n, 4, "not asked for again: it is what the driver can");
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .began_ns = loop_now_ns(s->loop),
                                .at_ns = loop_now_ns(s->loop),
                                .enforced_mw = W(175),
                                .requested_mw = W(163)};
    caps_seen(s->caps, 0, &sample);
    caps_seen(s->caps, 0, &sample);
    is_int(look(s, 0).changes[CAPS_CAUSE_OTHER], 0, "rounded by the driver: nobody else");
    sample.requested_mw = W(162);
    caps_seen(s->caps, 0, &sample);
    is_int(look(s, 0).changes[CAPS_CAUSE_OTHER], 1, "then another value is somebody's");
    scene_free(s);
}

static void test_unknown(void)
{
    struct scene *s = begin("limits that fail", 0, &conf);
    double wait = 0.5;

    scene_actuator(s);
    uint64_t id = claim(s, 0, CLAIM_NAMED, 200);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    pass(s, 0.4);
    is_asked(2, LIMIT, W(299), "the ramp begins");
    for (size_t i = 1; i < 9; i++) {
        answer(s, i, ACTUATOR_UNKNOWN, 0, "it broke");
        ok(look(s, 0).enforced_mw == 0 && strstr(look(s, 0).text, "broke"),
           "what is in force is unknown, and why");
        pass(s, wait - 0.01);
        is_int(act->n, i + 1, "not again before %.1f s", wait);
        pass(s, 0.02);
        is_asked(i + 2, LIMIT, W(299),
                 "then again: nothing is walked that is not written");
        wait = wait < 32 ? wait * 2 : 32;
    }
    is_int(told(s, CAPS_EVENT_FAIL), 1, "told once");
    is_int(look(s, 0).failures, 8, "counted each time");
    answer(s, 9, ACTUATOR_UNKNOWN, 0, "it broke");
    claim(s, 0, CLAIM_HARD, 250);
    is_asked(11, LIMIT, W(250), "a budget does not wait");
    answer(s, 10, ACTUATOR_DONE, W(250), "");
    is_str(look(s, 0).text, "", "all is well");
    pass(s, 0.4);
    is_asked(12, LIMIT, W(249), "and the ramp goes on");
    withdraw(s, 0, id);
    scene_free(s);
}

static void test_refused(void)
{
    struct scene *s = begin_held("limits that are refused");

    claim(s, 0, CLAIM_HARD, 160);
    answer(s, 2, ACTUATOR_REFUSED, W(200), "160 W is outside what root allows");
    struct caps_view v = look(s, 0);
    ok(v.state == CAPS_HELD && v.enforced_mw == W(200) && v.failures == 1 &&
           strstr(v.text, "root"),
       "told; the old one stays");
    pass(s, 0.6);
    is_asked(4, LIMIT, W(160), "tried again");
    answer(s, 3, ACTUATOR_DENIED, W(200), "no right");
    is_state(s, 0, CAPS_DENIED, "the right is missing");
    pass(s, 0.9);
    is_int(act->n, 4, "not asked at once");
    pass(s, 0.2);
    is_asked(5, LIMIT, W(160), "then again: it is a budget's");
    answer(s, 4, ACTUATOR_DONE, W(160), "");
    is_state(s, 0, CAPS_HELD, "and all is well");
    scene_free(s);
}

/* ---- root's range ---- */

static struct actuator_range range(double min_w, double max_w)
{
    return (struct actuator_range){W(min_w), W(max_w)};
}

static void test_roots_range(void)
{
    struct scene *s = begin("root's range", 0, &conf);
    struct caps_view v;

    scene_actuator(s);
    claim(s, 0, CLAIM_HARD, 160);
    v = look(s, 0);
    ok(v.range.min_mw == W(150) && v.range.max_mw == W(300),
       "until the actuator says it, the board's own");
    says.range = range(180, 240);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    is_asked(2, LIMIT, W(180), "less than it allows is never asked for");
    v = look(s, 0);
    ok(v.range.min_mw == W(180) && v.range.max_mw == W(240) &&
           v.limits.min_mw == W(150) && v.limits.max_mw == W(300) &&
           v.verdict.by == CAP_BY_MINIMUM,
       "it is shown beside the board's own");
    answer(s, 1, ACTUATOR_DONE, W(180), "");
    claim(s, 0, CLAIM_HARD, 250);
    withdraw(s, 0, 1);
    is_asked(3, LIMIT, W(240), "a budget between its end and the original: its end");
    answer(s, 2, ACTUATOR_DONE, W(240), "");
    says.range = range(190, 230);
    claim(s, 0, CLAIM_HARD, 160);
    answer(s, 3, ACTUATOR_DONE, W(180), "");
    is_asked(5, LIMIT, W(190), "another range: the next answer tells");
    answer(s, 4, ACTUATOR_DONE, W(190), "");
    says.range = range(0, 0);
    caps_use_actuator(s->caps, NULL);
    ok(look(s, 0).range.min_mw == W(150), "gone with its actuator");
    caps_use_actuator(s->caps, act);
    answer(s, 5, ACTUATOR_DONE, W(300), "");
    is_asked(7, LIMIT, W(160), "an older one says nothing: the board's own");
    scene_free(s);
}

/* Between its end and the original nothing can be set. */
static void test_range_end(void)
{
    struct scene *s = begin("a cap by name above the end of root's range", 0, &conf);

    scene_actuator(s);
    uint64_t id = claim(s, 0, CLAIM_NAMED, 260);
    says.range = range(150, 240);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    is_asked(2, RELEASE, 0, "nothing to ask for");
    answer(s, 1, ACTUATOR_DONE, W(300), "");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: root's range ends at 240 W");
    withdraw(s, 0, id);
    id = claim(s, 0, CLAIM_NAMED, 220);
    answer(s, 2, ACTUATOR_DONE, W(300), "");
    pass(s, 15);
    is_asked(3, HOLD, 0, "on the way down, the original as long as nothing else may be");
    is_met(s, 0, id, CAPS_COMING, "on the way");
    pass(s, 6);
    ok(act->n > 3 && act->asked[3].kind == LIMIT && act->asked[3].mw <= W(240) &&
           act->asked[3].mw > W(235),
       "then from its end: %u mW", act->asked[3].mw);
    says.range = range(0, 0);
    scene_free(s);
}

/* ---- what a budget counts ---- */

static struct scene *begin_under(const char *name, double found_w, uint32_t budget_w)
{
    scene_budget_mw = W(budget_w);
    struct scene *s = begin(name, found_w, &conf);
    scene_budget_mw = 0;
    return s;
}

static uint64_t counted(struct scene *s)
{
    struct caps_budget_view v;

    pass(s, 0.01);
    budget_look(s->budget, &v);
    return v.counted_mw;
}

/* 250 W is asked for, then 200 W; what became of the first nobody knows. */
static void test_counts_unknown(void)
{
    struct scene *s = begin_under("an older limit of which nobody knows", 0, 500);

    scene_actuator(s);
    pass(s, 0.01);
    uint64_t id = claim(s, 0, CLAIM_HARD, 160);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    answer(s, 1, ACTUATOR_DONE, W(300), "");
    answer(s, 2, ACTUATOR_DONE, W(160), "");
    answer(s, 3, ACTUATOR_DONE, W(250), "");
    is_int(counted(s), W(500), "the budget is granted");
    withdraw(s, 0, id);
    is_asked(5, LIMIT, W(250), "up");
    budget_configure(s->budget, W(400));
    pass(s, 0.01);
    is_asked(7, LIMIT, W(200), "down, before that was answered");
    answer(s, 6, ACTUATOR_DONE, W(200), "");
    is_int(counted(s), W(450), "what is on its way counts");
    answer(s, 4, ACTUATOR_UNKNOWN, 0, "it broke");
    is_int(counted(s), W(500), "so does what may be in force: the most that it takes");
    is_int(look(s, 0).enforced_mw, 0, "… which is unknown");
    answer(s, 5, ACTUATOR_DONE, W(200), "");
    is_int(counted(s), W(400), "until the newer one is answered");
    scene_free(s);
}

/* An earlier daemon had set 250 W; heat holds the board at 160 W. */
static void test_counts_held_down(void)
{
    struct scene *s = begin_under("a board that is held down", 250, 400);

    scene_actuator(s);
    pass(s, 0.01);
    says.set_mw = W(250);
    answer(s, 0, ACTUATOR_DONE, W(160), "");
    is_asked(3, LIMIT, W(200), "what is set is too much, though less is in force");
    answer(s, 1, ACTUATOR_DONE, W(250), "");
    is_int(counted(s), W(500), "what is set counts");
    says.set_mw = W(200);
    answer(s, 2, ACTUATOR_CLAMPED, W(160), "asked for 200 W, 160 W is in force");
    answer(s, 3, ACTUATOR_DONE, W(200), "");
    is_int(counted(s), W(400), "still, once it is lowered");
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .enforced_mw = W(160),
                                .requested_mw = W(200)};
    pass(s, 1);
    sample.began_ns = sample.at_ns = loop_now_ns(s->loop);
    caps_seen(s->caps, 0, &sample);
    is_int(counted(s), W(400), "… and seen again");
    says.set_mw = 0;
    scene_free(s);
}

/* Its limit comes up to what is asked for, no more: nothing has to be written, it seems.
 */
static void test_held_down_at_target(void)
{
    struct scene *s = begin_under("… at just what it should be at", 250, 320);

    scene_actuator(s);
    pass(s, 0.01);
    says.set_mw = W(250);
    answer(s, 0, ACTUATOR_DONE, W(160), "");
    is_asked(3, LIMIT, W(160), "it is written: heat goes away");
    says.set_mw = 0;
    scene_free(s);
}

/* ---- steps at a first cap ---- */

static const struct caps_work on_its_way = {
    .peak_w = 260, .counted = true, .progressing = true};

/* Steps that were done before the first cap was there do not end the stay. */
static void test_steps_before(void)
{
    struct scene *s = begin("steps before the first cap", 0, &conf);

    scene_actuator(s);
    caps_work(s->caps, 0, &on_its_way);
    claim(s, 0, CLAIM_NAMED, 200);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    is_asked(2, LIMIT, W(234), "the first cap is asked for");
    caps_work(s->caps, 0, &on_its_way);
    pass(s, 5);
    is_asked(2, LIMIT, W(234), "steps while its answer is due: nothing more is asked");
    ok(look(s, 0).waiting, "the stay has not begun");
    answer(s, 1, ACTUATOR_UNKNOWN, 0, "it broke");
    caps_work(s->caps, 0, &on_its_way);
    pass(s, 0.6);
    is_asked(3, LIMIT, W(234), "it failed: asked for again");
    answer(s, 2, ACTUATOR_DONE, W(234), "");
    pass(s, 5);
    ok(act->n == 3 && look(s, 0).waiting, "in force: the stay");
    caps_work(s->caps, 0, &on_its_way);
    pass(s, 1);
    ok(act->n > 3 && act->asked[3].mw == W(233), "steps with it: on the way");
    scene_free(s);
}

/* Root allows no cap so high: nothing of ours is in force, nothing to wait with. */
static void test_steps_refused(void)
{
    struct scene *s = begin("steps where the first cap is refused", 0, &conf);

    scene_actuator(s);
    caps_work(s->caps, 0, &on_its_way);
    claim(s, 0, CLAIM_NAMED, 200);
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    answer(s, 1, ACTUATOR_REFUSED, W(300), "more than 220 W");
    caps_work(s->caps, 0, &on_its_way);
    pass(s, 5);
    ok(act->n > 2 && act->asked[2].mw < W(234), "lower is asked for: %u mW",
       act->asked[2].mw);
    scene_free(s);
}

/* ---- answers to a hold ---- */

static void test_hold(void)
{
    struct scene *s = begin("holds that fail", 0, &conf);
    struct actuator_reply other = {.result = ACTUATOR_TAKEN, .text = "held by a test"};

    scene_actuator(s);
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    answer(s, 0, ACTUATOR_TAKEN, 0, "held by another Underwatt, process 7");
    is_state(s, 0, CAPS_LOST, "another Underwatt holds it");
    memcpy(other.uuid, act->asked[0].uuid, sizeof other.uuid);
    caps_on_actuator(s->caps, ACTUATOR_EVENT_BOARD, &other);
    withdraw(s, 0, id);
    id = claim(s, 0, CLAIM_HARD, 200);
    is_state(s, 0, CAPS_HOLDING, "the next claim is not answered yet");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: held by a test");
    answer(s, 1, ACTUATOR_TAKEN, 0, "held by another Underwatt, process 7");
    is_met(s, 0, id, CAPS_NOT_MET, "not in force: held by a test");
    other.result = ACTUATOR_DONE;
    caps_on_actuator(s->caps, ACTUATOR_EVENT_BOARD, &other);
    is_asked(3, HOLD, 0, "tried again when that has ended");
    is_met(s, 0, id, CAPS_COMING, "on the way");
    answer(s, 2, ACTUATOR_UNKNOWN, 0, "is still being restored");
    pass(s, 1.1);
    is_asked(4, HOLD, 0, "and again");
    answer(s, 3, ACTUATOR_YIELDED, 0, "this session leaves it alone");
    is_state(s, 0, CAPS_YIELDED, "another's limit");
    is_int(look(s, 0).bounds.original_mw, W(300),
           "which is not told: the original stays");
    claim(s, 0, CLAIM_HARD, 190);
    is_asked(5, AGAIN_FOUND, 0, "a new claim: as it means to");
    answer(s, 4, ACTUATOR_DENIED, 0, "no right");
    is_state(s, 0, CAPS_DENIED, "no right");
    claim(s, 0, CLAIM_HARD, 180);
    is_asked(6, AGAIN_FOUND, 0, "a new claim is answered at once");
    answer(s, 5, ACTUATOR_DONE, W(300), "");
    is_asked(7, LIMIT, W(180), "held, and set");
    scene_free(s);
}

/* ---- events, and answers that come too late ---- */

/* The actuator leaves another's limit alone, and has no value to say. */
static void test_yield_unsaid(void)
{
    struct scene *s = begin("another's limit, its value not said", 0, &conf);
    struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                .enforced_mw = W(250),
                                .requested_mw = W(250)};

    scene_actuator(s);
    claim(s, 0, CLAIM_HARD, 200);
    answer(s, 0, ACTUATOR_YIELDED, 0, "left alone");
    is_state(s, 0, CAPS_YIELDED, "left alone");
    ok(!strstr(look(s, 0).text, " 0 mW") && told(s, CAPS_EVENT_OTHER) == 0,
       "no value is made up: '%s'", look(s, 0).text);
    sample.began_ns = sample.at_ns = loop_now_ns(s->loop) + NS_PER_S;
    caps_seen(s->caps, 0, &sample);
    caps_seen(s->caps, 0, &sample);
    ok(told(s, CAPS_EVENT_OTHER) == 1 &&
           last_told(s, CAPS_EVENT_OTHER)->enforced_mw == W(250) &&
           look(s, 0).bounds.original_mw == W(250),
       "the next sample tells it, once");
    scene_free(s);
}

static void test_writing(void)
{
    struct scene *s = begin("a hold's write is with the driver", 0, &conf);

    scene_actuator(s);
    claim(s, 0, CLAIM_HARD, 200);
    ok(look(s, 0).state == CAPS_HOLDING && !look(s, 0).writing, "nothing is told yet");
    event(s, ACTUATOR_EVENT_WRITING, 0, ACTUATOR_DONE, 0);
    ok(look(s, 0).state == CAPS_HOLDING && look(s, 0).writing, "told: it writes");
    answer(s, 0, ACTUATOR_DENIED, 0, "no");
    ok(look(s, 0).state == CAPS_DENIED && !look(s, 0).writing, "refused after all");
    event(s, ACTUATOR_EVENT_WRITING, 0, ACTUATOR_DONE, 0);
    ok(!look(s, 0).writing, "told late: of no hold");
    scene_free(s);
}

static void test_events(void)
{
    struct scene *s = begin_held("what the actuator tells");

    event(s, ACTUATOR_EVENT_LEASE, 0, ACTUATOR_DONE, W(300));
    is_asked(3, HOLD, 0, "a lease that is over: held again at once");
    ok(look(s, 0).enforced_mw == W(300), "the original is in force");
    answer(s, 2, ACTUATOR_DONE, W(300), "");
    is_asked(4, LIMIT, W(200), "and set");
    event(s, ACTUATOR_EVENT_LOST, 0, ACTUATOR_UNKNOWN, 0);
    answer(s, 3, ACTUATOR_DONE, W(200), "");
    is_state(s, 0, CAPS_LOST, "an answer after the board was lost does not find it");
    ok(look(s, 0).enforced_mw == 0, "what is in force is unknown");
    pass(s, 0.6);
    is_asked(5, HOLD, 0, "held again");
    answer(s, 4, ACTUATOR_DONE, W(300), "");
    is_asked(6, LIMIT, W(200), "and set");
    event(s, ACTUATOR_EVENT_YIELDED, 0, ACTUATOR_YIELDED, W(280));
    answer(s, 5, ACTUATOR_YIELDED, W(280), "the same");
    is_int(look(s, 0).changes[CAPS_CAUSE_OTHER], 1, "event and answer are one change");
    struct actuator_reply strange = {.result = ACTUATOR_UNKNOWN, .uuid = "GPU-strange"};
    caps_on_actuator(s->caps, ACTUATOR_EVENT_LOST, &strange);
    is_state(s, 0, CAPS_YIELDED, "a strange board is none of ours");
    event(s, ACTUATOR_EVENT_ENDED, 0, ACTUATOR_GONE, 0);
    is_state(s, 0, CAPS_LOST, "the actuator is gone");
    pass(s, 10);
    is_int(act->n, 6, "nobody is asked");
    scene_free(s);
}

/* The actuator ends while a release waits: its client answers GONE. */
static void test_release_gone(void)
{
    struct scene *s = begin_held("a release whose actuator ends");

    withdraw(s, 0, look(s, 0).verdict.claim);
    is_asked(3, RELEASE, 0, "the release");
    answer(s, 2, ACTUATOR_GONE, 0, "the actuator is gone");
    event(s, ACTUATOR_EVENT_ENDED, 0, ACTUATOR_GONE, 0);
    is_state(s, 0, CAPS_FREE, "nothing is claimed");
    ok(look(s, 0).unrestored, "nobody has said that the original is back");
    scene_free(s);

    s = begin("a release whose hold fails", 0, &conf);
    scene_actuator(s);
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    withdraw(s, 0, id);
    answer(s, 0, ACTUATOR_GONE, 0, "no such board here");
    ok(!look(s, 0).unrestored, "nothing was ever set");
    scene_free(s);
}

/* A reading of board 0 that began so many seconds ago. */
static void reads(struct scene *s, uint32_t mw, double ago_s)
{
    const struct gpu_sample sample = {.has = GPU_HAS_ENFORCED | GPU_HAS_REQUESTED,
                                      .enforced_mw = mw,
                                      .requested_mw = mw,
                                      .began_ns = loop_now_ns(s->loop) - ns_of_s(ago_s),
                                      .at_ns = loop_now_ns(s->loop)};

    caps_seen(s->caps, 0, &sample);
}

/* A board whose first hold is answered so, when nothing is claimed any more. */
static struct scene *begin_failed(const char *name, bool writes,
                                  enum actuator_result result)
{
    struct scene *s = begin(name, 0, &conf);

    scene_actuator(s);
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    if (writes)
        event(s, ACTUATOR_EVENT_WRITING, 0, ACTUATOR_DONE, 0);
    withdraw(s, 0, id);
    pass(s, 1);
    answer(s, 0, result, 0, "it broke");
    is_state(s, 0, CAPS_FREE, "nothing is claimed");
    return s;
}

/* … and what a job that looks at it is told. */
static void test_unanswered_told(void)
{
    struct scene *s = begin_failed("a job looks at it", true, ACTUATOR_UNKNOWN);
    const struct claimant_who who = {.source = CLAIM_OF_JOB_CAP, .job = 7, .boards = 1};
    struct claimant *c = NULL;
    struct claim_told told;

    is_int(claimant_new(s->loop, s->caps, &who, &c, NULL), 0, "a job");
    claimant_look(c, 0, &told);
    ok(told.progress != CLAIM_MET && told.in_force_mw == 0,
       "what is in force is unknown");
    pass(s, 40);
    reads(s, W(300), 0);
    claimant_look(c, 0, &told);
    ok(told.progress == CLAIM_MET && told.in_force_mw == W(300),
       "the original, once read");
    claimant_free(c);
    scene_free(s);
}

/* A hold's write that the driver has not answered may be in flight. */
static void test_hold_unanswered(void)
{
    struct scene *s = begin_failed("a first hold that hangs", true, ACTUATOR_UNKNOWN);

    pass(s, 20);
    reads(s, W(300), 0);
    ok(look(s, 0).unrestored, "what is read first may be an earlier daemon's cap");
    pass(s, 20);
    reads(s, W(300), 40.5);
    ok(look(s, 0).unrestored, "a reading from before the answer tells nothing");
    reads(s, W(300), 0);
    ok(!look(s, 0).unrestored, "the original was read");
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    ok(!look(s, 0).unrestored, "being held again");
    answer(s, 1, ACTUATOR_UNKNOWN, 0, "it broke");
    reads(s, W(250), 0);
    ok(look(s, 0).unrestored, "in vain, and another limit is read");
    pass(s, 1);
    answer(s, 2, ACTUATOR_DONE, W(300), "");
    answer(s, 3, ACTUATOR_DONE, W(200), "");
    withdraw(s, 0, id);
    answer(s, 4, ACTUATOR_DONE, W(300), "");
    is_state(s, 0, CAPS_FREE, "held and given back");
    ok(!look(s, 0).unrestored, "restored");
    scene_free(s);

    s = begin_failed("… and is released", true, ACTUATOR_UNKNOWN);
    is_int(caps_release(s->caps, 0, 0, NULL, NULL, NULL), 0, "to be reset");
    ok(caps_let_go(s->caps, 0) && look(s, 0).unrestored, "nobody waits for a reading");
    scene_free(s);

    s = begin_failed("… another's limit", true, ACTUATOR_UNKNOWN);
    event(s, ACTUATOR_EVENT_YIELDED, 0, ACTUATOR_YIELDED, W(280));
    ok(!look(s, 0).unrestored, "the actuator has read it");
    scene_free(s);

    s = begin_failed("… restored after all", true, ACTUATOR_UNKNOWN);
    event(s, ACTUATOR_EVENT_LEASE, 0, ACTUATOR_DONE, W(300));
    ok(!look(s, 0).unrestored, "by the actuator");
    scene_free(s);

    s = begin_failed("a board is lost as it is written", true, ACTUATOR_GONE);
    ok(look(s, 0).unrestored, "nobody has read the board");
    scene_free(s);

    s = begin_failed("a board is lost before", false, ACTUATOR_GONE);
    ok(!look(s, 0).unrestored, "nothing was written");
    scene_free(s);

    s = begin_failed("the driver refuses", true, ACTUATOR_DENIED);
    ok(!look(s, 0).unrestored, "nothing was written");
    scene_free(s);
}

static void test_late(void)
{
    static struct actuator other;
    struct scene *s = begin_held("answers of an actuator that was");

    claim(s, 0, CLAIM_HARD, 180);
    claim(s, 1, CLAIM_HARD, 180);
    is_asked(4, HOLD, 0, "a limit and a hold are asked");
    memset(&other, 0, sizeof other);
    caps_use_actuator(s->caps, &other);
    is_int(other.n, 2, "another is asked to hold both");
    uint64_t writes = look(s, 0).writes;
    act = &other;
    answer(s, 0, ACTUATOR_DONE, W(300), "");
    is_asked(3, LIMIT, W(180), "held by the other, and asked for the same");
    act = &stub;
    answer(s, 2, ACTUATOR_DONE, W(180), "");
    answer(s, 3, ACTUATOR_DONE, W(300), "");
    ok(look(s, 0).enforced_mw == W(300) && look(s, 1).state == CAPS_HOLDING &&
           look(s, 0).writes == writes,
       "the first one's answers count no more");
    caps_use_actuator(s->caps, &other);
    is_int(other.n, 3, "the same again is no news");
    scene_free(s);
}

static void test_reloaded(void)
{
    struct scene *s = begin_held("a reload, known to the actuator alone");
    struct actuator_reply reply = {
        .result = ACTUATOR_YIELDED, .enforced_mw = W(250), .why = ACTUATOR_WHY_RELOADED};

    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s",
                   board_view(boards_at(s->boards, 0))->info->uuid);
    caps_on_actuator(s->caps, ACTUATOR_EVENT_YIELDED, &reply);
    ok(changes(s, 0) == 1 && look(s, 0).changes[CAPS_CAUSE_DRIVER] == 1, "told apart");
    is_state(s, 0, CAPS_HOLDING, "nobody to yield to");
    is_asked(3, AGAIN_FOUND, 0, "held again at once");
    caps_on_actuator(s->caps, ACTUATOR_EVENT_YIELDED, &reply);
    ok(act->n == 3 && changes(s, 0) == 1, "the same again is no news");
    answer(s, 2, ACTUATOR_DONE, W(250), "");
    is_asked(4, LIMIT, W(200), "and set");
    scene_free(s);

    s = begin("a reload while nobody was there to see it", 0, &conf);
    scene_actuator(s);
    claim(s, 0, CLAIM_HARD, 200);
    is_asked(1, HOLD, 0, "taken over from an earlier daemon");
    struct asked *q = &act->asked[0];
    (void)q->fn(act, &reply, q->user);
    is_int(look(s, 0).changes[CAPS_CAUSE_DRIVER], 1, "told apart");
    is_asked(2, AGAIN_FOUND, 0, "held again at once");
    answer(s, 1, ACTUATOR_DONE, W(250), "");
    is_asked(3, LIMIT, W(200), "and set");
    scene_free(s);
}

static void test_range(void)
{
    struct scene *s = begin("a range that root has narrowed", 0, &conf);
    struct claim c = {.kind = CLAIM_NAMED, .mw = W(170), .until_ns = CLAIM_FOREVER};
    uw_error err = {""};

    scene_actuator(s);
    claim(s, 0, CLAIM_HARD, 160);
    struct asked *q = &act->asked[0];
    struct actuator_reply reply = {
        .result = ACTUATOR_DONE,
        .enforced_mw = W(300),
        .original_mw = W(300),
        .limits = {.min_mw = W(200), .max_mw = W(300), .default_mw = W(300)},
    };
    (void)q->fn(act, &reply, q->user);
    is_asked(2, LIMIT, W(200), "a hard claim: not under it");
    is_int(caps_claim(s->caps, 0, &c, NULL, &err), -ERANGE, "others are refused: %s",
           err.text);
    scene_free(s);
}

int main(void)
{
    test_adopt();
    test_adopt_little();
    test_left_over();
    test_not_asked();
    test_in_flight();
    test_overtaken();
    test_clamped();
    test_unknown();
    test_refused();
    test_roots_range();
    test_range_end();
    test_counts_unknown();
    test_counts_held_down();
    test_held_down_at_target();
    test_steps_before();
    test_steps_refused();
    test_hold();
    test_yield_unsaid();
    test_writing();
    test_events();
    test_release_gone();
    test_hold_unanswered();
    test_unanswered_told();
    test_late();
    test_reloaded();
    test_range();
    return done();
}
