/* Caps in virtual time: from claims to the limits that the driver has. */
#include <errno.h>

#include "unit/caps/caps-scene.h"

/* 300 W of default limit, 1 % a second: 3 W a second. */
#define CONF                                               \
    {                                                      \
        .cls = {.first = 0.9, .floor = 0.5, .rate = 0.01 } \
    }
static const struct caps_conf conf = CONF;

static void test_life(void)
{
    struct scene *s = scene_new("the life of a cap", 2, &conf);

    is_state(s, 0, CAPS_FREE, "nobody wants anything");
    is_limit(s, 0, 300, "the original");
    is_int(look(s, 0).writes, 0, "nothing is written");
    uint64_t id = claim(s, 0, CLAIM_HARD, 200);
    is_state(s, 0, CAPS_HOLDING, "asked at once");
    pass(s, 0.2);
    is_state(s, 0, CAPS_HELD, "held");
    is_limit(s, 0, 200, "a hard claim: at once");
    struct caps_view v = look(s, 0);
    ok(v.verdict.by == CAP_BY_CLAIM && v.verdict.claim == id && v.enforced_mw == W(200) &&
           v.ramp_mw == W(200) && !v.ramping && v.bounds.original_mw == W(300) &&
           v.can_cap && v.claims->n == 1,
       "the view says so");
    ok(last_told(s, CAPS_EVENT_CAP)->enforced_mw == W(200) &&
           last_told(s, CAPS_EVENT_CAP)->claim == id,
       "and the event, with its claim");
    is_state(s, 1, CAPS_FREE, "the other board is left alone");
    withdraw(s, 0, id);
    pass(s, 0.2);
    is_state(s, 0, CAPS_FREE, "withdrawn: given back");
    is_limit(s, 0, 300, "the original is back");
    is_int(last_told(s, CAPS_EVENT_CAP)->enforced_mw, W(300), "told");
    is_int(told(s, CAPS_EVENT_CLAIM), 1, "one claim told");
    is_int(told(s, CAPS_EVENT_WITHDRAW), 1, "one withdrawal told");
    is_int(told(s, CAPS_EVENT_FAIL), 0, "no failure");
    is_int(told(s, CAPS_EVENT_OTHER), 0, "no other writer");
    size_t before = s->n_told;
    pass(s, 3600);
    is_int(s->n_told - before, 0, "an hour of nothing");
    scene_free(s);
}

static void test_refused(void)
{
    /* clang-format off */
    static const struct {
        const char *name;
        size_t board;
        struct claim claim;
        int r;
        const char *text;
    } cases[] = {
        {"no such board", 2, {.kind = CLAIM_HARD, .mw = W(200), .until_ns = CLAIM_FOREVER}, -ENODEV, "no board 2: this node has 2"},
        {"under the minimum", 0, {.kind = CLAIM_NAMED, .mw = W(149), .until_ns = CLAIM_FOREVER}, -ERANGE, "149 W is outside 150..300 W"},
        {"soft under the minimum", 0, {.kind = CLAIM_SOFT, .mw = W(10), .until_ns = CLAIM_FOREVER}, -ERANGE, "10 W is outside"},
        {"above the maximum", 0, {.kind = CLAIM_NAMED, .mw = W(301), .until_ns = CLAIM_FOREVER}, -ERANGE, "301 W is outside"},
        {"hard above the maximum", 0, {.kind = CLAIM_HARD, .mw = W(301), .until_ns = CLAIM_FOREVER}, -ERANGE, "301 W is outside"},
        {"over already", 0, {.kind = CLAIM_NAMED, .mw = W(200), .until_ns = 5}, -EINVAL, "has expired already"},
        {"no kind", 0, {.mw = W(200), .until_ns = CLAIM_FOREVER}, -EINVAL, "claim of kind 0"},
        {"no watts", 0, {.kind = CLAIM_HARD, .until_ns = CLAIM_FOREVER}, -EINVAL, "0 mW"},
    };
    /* clang-format on */
    struct scene *s = scene_new("claims that are refused", 2, &conf);
    size_t before = s->n_told;
    uint64_t id = 77;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uw_error err = {""};
        int r = caps_claim(s->caps, cases[i].board, &cases[i].claim, &id, &err);
        ok(r == cases[i].r && strstr(err.text, cases[i].text), "%s: %d, %s",
           cases[i].name, r, err.text);
    }
    pass(s, 1);
    ok(id == 77 && s->n_told == before && look(s, 0).claims->n == 0 &&
           look(s, 0).state == CAPS_FREE,
       "nothing has changed");
    is_int(caps_withdraw(s->caps, 0, 5, NULL), -ENOENT, "no claim to withdraw");
    is_int(caps_withdraw(s->caps, 9, 5, NULL), -ENOENT, "no board to withdraw from");
    claim(s, 0, CLAIM_HARD, 100);
    pass(s, 0.2);
    is_limit(s, 0, 150, "a hard claim under the minimum: the minimum");
    ok(look(s, 0).verdict.by == CAP_BY_MINIMUM, "and it says so");
    struct claim same = {
        .id = 40, .kind = CLAIM_NAMED, .mw = W(250), .until_ns = CLAIM_FOREVER};
    is_int(caps_claim(s->caps, 0, &same, &id, NULL), 0, "an id of the caller's");
    is_int(id, 40, "is kept");
    is_int(claim(s, 1, CLAIM_NAMED, 250), 41, "new ones go on above it");
    scene_free(s);
}

/* The way down takes its time, the way up none. */
static void test_ramp(void)
{
    struct scene *s = scene_new("ramps against time", 2, &conf);

    uint64_t id = claim(s, 0, CLAIM_NAMED, 240);
    claim(s, 1, CLAIM_SOFT, 240);
    pass(s, 0.1);
    uint64_t t0 = loop_now_ns(s->loop);
    bool near = true, both = true;
    for (int i = 1; i <= 19; i++) {
        pass(s, 1);
        double want = 300 - 3 * (s_between(t0, loop_now_ns(s->loop)) + 0.05);
        near = near && fabs(w_of_mw(limit_of(s, 0)) - want) <= 1.5;
        both = both && limit_of(s, 1) == limit_of(s, 0);
    }
    ok(near, "3 W a second, +- 1.5 W at any second");
    ok(both, "the same for soft claims");
    ok(look(s, 0).ramping && look(s, 0).rate_mw_s == 3000, "the view says how fast");
    pass(s, 2);
    is_limit(s, 0, 240, "after 20 s it is there");
    ok(!look(s, 0).ramping, "and rests");
    uint64_t writes = look(s, 0).writes;
    is_near((double)writes, 60, 3, "a write for each watt: %u", (unsigned)writes);
    pass(s, 60);
    is_int(look(s, 0).writes, writes, "no write at rest");

    struct claim c = *claims_find(look(s, 0).claims, id);
    c.mw = W(280);
    (void)caps_claim(s->caps, 0, &c, NULL, NULL);
    pass(s, 0.2);
    is_limit(s, 0, 280, "up at once");
    claim(s, 0, CLAIM_NAMED, 220);
    pass(s, 10);
    uint64_t hard = claim(s, 0, CLAIM_HARD, 230);
    pass(s, 0.2);
    is_limit(s, 0, 230, "a hard claim on the way down: at once");
    pass(s, 4);
    is_limit(s, 0, 220, "and the rest at its pace");
    withdraw(s, 0, hard);
    caps_configure(s->caps, &(struct caps_conf){.cls = {.first = 0.9, .floor = 0.5}});
    claim(s, 0, CLAIM_NAMED, 160);
    pass(s, 0.2);
    is_limit(s, 0, 160, "another configuration, no ramp: at once");
    scene_free(s);
}

static void test_fast(void)
{
    struct caps_conf fast = CONF;
    fast.cls.rate = 0.2;
    struct scene *s = scene_new("a ramp of 60 W a second", 1, &fast);

    claim(s, 0, CLAIM_NAMED, 180);
    pass(s, 1);
    is_near(w_of_mw(limit_of(s, 0)), 245, 8, "half-way after a second");
    pass(s, 1.3);
    is_limit(s, 0, 180, "there after two");
    uint64_t writes = look(s, 0).writes;
    ok(writes >= 15 && writes <= 21, "in at most ten writes a second: %u",
       (unsigned)writes);
    scene_free(s);
}

static void test_first(void)
{
    struct scene *s = scene_new("first cap and floor", 3, &conf);
    struct caps_work work = {.demand_w = 280, .peak_w = 260, .counted = true};
    const struct cap_class cls = {.first = 0.85, .floor = 0.75, .rate = 0.02};

    caps_work(s->caps, 0, &work);
    claim(s, 0, CLAIM_NAMED, 200);
    pass(s, 0.2);
    is_limit(s, 0, 234, "0.9 of the observed peak at once");
    pass(s, 600);
    is_limit(s, 0, 234, "no further while the job makes no steps");
    ok(look(s, 0).waiting, "the view says that it waits");
    work.progressing = true;
    caps_work(s->caps, 0, &work);
    pass(s, 5);
    is_near(w_of_mw(limit_of(s, 0)), 219, 2, "then 3 W a second");

    work = (struct caps_work){.demand_w = 280, .peak_w = 260};
    caps_work(s->caps, 1, &work);
    claim(s, 1, CLAIM_NAMED, 200);
    pass(s, 29);
    is_limit(s, 1, 234, "nobody counts its steps: a stay all the same");
    pass(s, 40);
    is_limit(s, 1, 200, "of 30 s");

    work.cls = &cls;
    caps_work(s->caps, 2, &work);
    claim(s, 2, CLAIM_SOFT, 160);
    pass(s, 0.2);
    is_limit(s, 2, 221, "a class of its own: 0.85 of the peak");
    pass(s, 60);
    is_limit(s, 2, 210, "0.75 of the demand is its floor");
    ok(look(s, 2).verdict.by == CAP_BY_FLOOR, "and it says so");
    is_near(look(s, 2).cls.rate, 0.02, 0, "the view has the class");
    claim(s, 2, CLAIM_HARD, 170);
    pass(s, 0.2);
    is_limit(s, 2, 170, "a hard claim goes under the floor, at once");
    scene_free(s);
}

static void test_search(void)
{
    struct scene *s = scene_new("a search that walks itself", 1, &conf);
    struct claim c = {.kind = CLAIM_SOFT,
                      .mw = W(300),
                      .until_ns = CLAIM_FOREVER,
                      .job = 5,
                      .source = CLAIM_OF_SEARCH,
                      .way = CLAIM_AT_ONCE};

    (void)caps_claim(s->caps, 0, &c, &c.id, NULL);
    pass(s, 0.2);
    is_state(s, 0, CAPS_HELD, "held while it is at work, at the original too");
    c.mw = W(220);
    (void)caps_claim(s->caps, 0, &c, NULL, NULL);
    pass(s, 0.1);
    is_limit(s, 0, 220, "no ramp but its own");
    c.mw = W(300);
    (void)caps_claim(s->caps, 0, &c, NULL, NULL);
    pass(s, 0.1);
    is_limit(s, 0, 300, "reference windows");
    is_state(s, 0, CAPS_HELD, "held");
    c.mw = W(220);
    (void)caps_claim(s->caps, 0, &c, NULL, NULL);
    claim(s, 0, CLAIM_NAMED, 250);
    pass(s, 1);
    caps_withdraw_job(s->caps, 9);
    is_limit(s, 0, 220, "another job's end changes nothing");
    caps_withdraw_job(s->caps, 5);
    pass(s, 0.2);
    is_limit(s, 0, 250, "the job's end withdraws it");
    is_int(look(s, 0).claims->n, 1, "and no other");
    scene_free(s);
}

static void test_expiry(void)
{
    struct scene *s = scene_new("claims that are over", 2, &conf);

    claim(s, 0, CLAIM_NAMED, 280);
    pass(s, 20);
    is_limit(s, 0, 280, "a claim for ever");
    uint64_t id = claim_for(s, 0, CLAIM_HARD, 180, 60);
    pass(s, 59.9);
    is_limit(s, 0, 180, "a claim for a minute");
    pass(s, 0.3);
    is_limit(s, 0, 280, "over: what was before");
    ok(told(s, CAPS_EVENT_EXPIRE) == 1 && last_told(s, CAPS_EVENT_EXPIRE)->claim == id,
       "told");
    is_near(s_between(s->began_ns, last_told(s, CAPS_EVENT_EXPIRE)->at_ns), 80.5, 1e-3,
            "at its time");
    claim_for(s, 1, CLAIM_HARD, 180, 5);
    pass(s, 5.3);
    is_limit(s, 1, 300, "the only one over: the original");
    is_state(s, 1, CAPS_FREE, "and given back");
    scene_free(s);
}

/* The driver takes 32 ms for each limit; all boards are held. */
static void test_budget(void)
{
    struct caps_conf always = CONF;
    always.always_hold = true;
    struct scene *s = scene_new("a budget for eight boards", 8, &always);

    pass(s, 1);
    for (size_t i = 0; i < 8; i++)
        is_state(s, i, CAPS_HELD, "held from the start");
    uint64_t t0 = loop_now_ns(s->loop);
    for (size_t i = 0; i < 8; i++)
        claim(s, i, CLAIM_HARD, 180);
    pass(s, 0.050);
    bool all = true;
    double last = 0;
    for (size_t i = 0; i < 8; i++) {
        all = all && limit_of(s, i) == W(180) && look(s, i).enforced_mw == W(180);
    }
    for (size_t i = 0; i < s->n_told; i++)
        if (s->told[i].event == CAPS_EVENT_CAP && s->told[i].at_ns >= t0)
            last = s_between(t0, s->told[i].at_ns);
    ok(all, "written and read back within 50 ms");
    is_near(last, 0.032, 0.001, "%.1f ms, all but the driver's 32 at once", last * 1e3);

    /* On a ramp, with a write just made: the driver's pace is the only wait. */
    caps_withdraw(s->caps, 0, look(s, 0).verdict.claim, NULL);
    claim(s, 0, CLAIM_NAMED, 200);
    pass(s, 5);
    claim(s, 0, CLAIM_HARD, 160);
    pass(s, 0.12);
    is_limit(s, 0, 160, "on a ramp it waits for one write and its gap at most");
    scene_free(s);
}

int main(void)
{
    test_life();
    test_refused();
    test_ramp();
    test_fast();
    test_first();
    test_search();
    test_expiry();
    test_budget();
    return done();
}
