/* Claimants: what they may state, what they are told, and what ends their claims. */
#include <errno.h>

#include "caps/claim-sources.h"
#include "caps/claimant.h"
#include "unit/caps/caps-scene.h"

static const struct caps_conf conf = {.cls = {.first = 0.9, .floor = 0.5, .rate = 0.05}};

enum { HEARD_MAX = 256 };

/* A claimant and what it was told, by board. */
struct hearer {
    struct claimant *c;
    struct claim_told last[2];
    char text[2][200];
    unsigned n[2];
    bool inside; /* a call of its own is under way */
    bool frees;  /* frees the claimant when it is told */
};

static int on_told(size_t board, const struct claim_told *told, const char *text,
                   void *user)
{
    struct hearer *h = user;

    if (h->inside)
        ok(false, "told from inside a call of its own");
    h->last[board] = *told;
    (void)snprintf(h->text[board], sizeof h->text[board], "%s", text);
    h->n[board]++;
    if (h->frees) {
        claimant_free(h->c);
        h->c = NULL;
    }
    return 0;
}

static void hear(struct scene *s, struct hearer *h, enum claim_source source)
{
    struct claimant_who who = {.source = source,
                               .job = 7,
                               .boards = 3,
                               .name = "test",
                               .fn = on_told,
                               .user = h};
    uw_error err = {""};

    *h = (struct hearer){.c = NULL};
    if (claimant_new(s->loop, s->caps, &who, &h->c, &err) < 0)
        ok(false, "a claimant: %s", err.text);
}

static int state(struct hearer *h, size_t board, double w, uw_error *err)
{
    const struct claimant_ask ask = {.mw = W(w), .why = "because"};

    h->inside = true;
    int r = claimant_state(h->c, board, &ask, err);
    h->inside = false;
    return r;
}

static void must_state(struct hearer *h, size_t board, double w)
{
    uw_error err = {""};

    if (state(h, board, w, &err) < 0)
        ok(false, "states %.0f W: %s", w, err.text);
}

static void is_told(const struct hearer *h, size_t board, enum claim_progress progress,
                    double w, const char *name)
{
    const struct claim_told *t = &h->last[board];

    ok(t->progress == progress && t->in_force_mw == W(w), "%s: %d (%d) at %u mW", name,
       (int)t->progress, (int)progress, t->in_force_mw);
}

/* ---- the table ---- */

static void check_rows(void)
{
    static const struct {
        enum claim_source source;
        enum claim_kind kind;
        uint32_t mhz;
        int r;
    } cases[] = {
        {CLAIM_OF_PERSON, CLAIM_HARD, 0, 0},
        {CLAIM_OF_PERSON, CLAIM_SOFT, 1200, 0},
        {CLAIM_OF_JOB_CAP, CLAIM_NAMED, 0, 0},
        {CLAIM_OF_JOB_CAP, CLAIM_HARD, 0, -EPERM},
        {CLAIM_OF_JOB_CAP, CLAIM_NAMED, 1200, -EPERM},
        {CLAIM_OF_SEARCH, CLAIM_SOFT, 1200, 0},
        {CLAIM_OF_SEARCH, CLAIM_NAMED, 0, -EPERM},
        {CLAIM_OF_BUDGET, CLAIM_SOFT, 0, -EPERM},
        {CLAIM_OF_RULE, CLAIM_NAMED, 0, -EPERM},
        {CLAIM_OF_RULE, CLAIM_HARD, 0, 0},
        {CLAIM_OF_SCHEDULER, CLAIM_NAMED, 0, 0},
        {CLAIM_OF_LIMIT, CLAIM_HARD, 0, 0},
        {CLAIM_OF_LIMIT, CLAIM_SOFT, 0, -EPERM},
        {CLAIM_OF_GRANT, CLAIM_HARD, 0, 0},
        {CLAIM_OF_GRANT, CLAIM_HARD, 1200, -EPERM},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct claim claim = {.source = cases[i].source,
                                    .kind = cases[i].kind,
                                    .mhz = cases[i].mhz,
                                    .mw = cases[i].mhz ? 0 : W(200)};
        uw_error err = {""};
        int r = claim_source_check(&claim, &err);
        ok(r == cases[i].r && (r == 0) == !err.text[0], "%s, %s%s: %d %s",
           names_word(NAMES_CLAIM_SOURCE, claim.source),
           names_word(NAMES_CLAIM_KIND, claim.kind), claim.mhz ? ", clock" : "", r,
           err.text);
    }
}

/* A claim whose reason alone changes. */
static void explains(void)
{
    struct scene *s = scene_new("another reason", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_SEARCH);
    claimant_explain(h.c, 0, "no claim has it");
    must_state(&h, 0, 200);
    pass(s, 20);
    struct caps_view v = look(s, 0);
    const struct claim before = *claims_find(v.claims, claimant_claim(h.c, 0));
    size_t n_told = s->n_told;
    unsigned heard = h.n[0];
    pass(s, 1);
    claimant_explain(h.c, 0, "it is held");
    claimant_explain(h.c, 1, "no claim has it");
    pass(s, 1);
    v = look(s, 0);
    const struct claim *now = claims_find(v.claims, claimant_claim(h.c, 0));
    ok(v.claims->n == 1 && strcmp(before.why, "because") == 0 &&
           strcmp(now->why, "it is held") == 0,
       "the claim has it: %s", now->why);
    ok(now->id == before.id && now->made_ns == before.made_ns && now->mw == before.mw,
       "… and is the same");
    ok(s->n_told == n_told && h.n[0] == heard, "… nothing is told");
    is_told(&h, 0, CLAIM_MET, 200, "… the cap stays");
    claimant_free(h.c);
    scene_free(s);
}

/* ---- what is told ---- */

static void tells_the_way(void)
{
    struct scene *s = scene_new("coming, met, replaced, dropped", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_JOB_CAP);
    pass(s, 0.1);
    ok(h.n[0] == 1 && !h.last[0].claimed && h.last[0].progress == CLAIM_MET,
       "told of a board without a claim");
    ok(h.last[0].without_mw == UINT32_MAX, "nobody else asks for less");
    must_state(&h, 0, 200);
    ok(h.n[0] == 1, "nothing is told from inside the call");
    pass(s, 0.2);
    ok(h.last[0].claimed && h.last[0].progress == CLAIM_COMING, "the ramp is on its way");
    pass(s, 20);
    is_told(&h, 0, CLAIM_MET, 200, "the cap is in force");
    ok(h.last[0].original_known && h.last[0].original_mw == W(300),
       "the original is known");
    unsigned before = h.n[0];
    pass(s, 60);
    ok(h.n[0] == before, "nothing is told while nothing changes");
    must_state(&h, 0, 200);
    pass(s, 0.1);
    ok(h.n[0] == before + 1, "each statement is answered, also the same again");
    claimant_drop(h.c, 0);
    pass(s, 2);
    is_told(&h, 0, CLAIM_MET, 300, "dropped");
    ok(!h.last[0].claimed, "no claim is left");
    claimant_free(h.c);
    scene_free(s);
}

static void tells_of_others(void)
{
    struct scene *s = scene_new("others' claims", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 220);
    pass(s, 20);
    uint64_t id = claim(s, 0, CLAIM_HARD, 180);
    pass(s, 5);
    is_told(&h, 0, CLAIM_CLAMPED, 180, "a lower claim of another");
    ok(h.last[0].without_mw == W(180), "what the others' claims come to: %u mW",
       h.last[0].without_mw);
    ok(h.last[1].without_mw == UINT32_MAX, "on that board alone");
    withdraw(s, 0, id);
    pass(s, 5);
    is_told(&h, 0, CLAIM_MET, 220, "in force again");
    claimant_free(h.c);
    scene_free(s);
}

static void tells_a_floor(void)
{
    struct scene *s = scene_new("a soft claim under the floor", 2, &conf);
    const struct caps_work work = {.demand_w = 400, .peak_w = 300};
    struct hearer h;

    caps_work(s->caps, 0, &work);
    hear(s, &h, CLAIM_OF_SEARCH);
    must_state(&h, 0, 160);
    pass(s, 60);
    is_told(&h, 0, CLAIM_CLAMPED, 200, "held up by the floor");
    claimant_free(h.c);
    scene_free(s);
}

static void tells_who_takes_it_away(void)
{
    struct scene *s = scene_new("another writer, a lost board, an actuator", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 250);
    must_state(&h, 1, 250);
    pass(s, 20);
    fault(s, "0 limit 270W");
    pass(s, 3);
    ok(h.last[0].progress == CLAIM_UNMET && h.last[0].why == UNMET_YIELDED &&
           h.text[0][0],
       "the limit of another program stays: %s", h.text[0]);
    is_told(&h, 1, CLAIM_MET, 250, "the other board goes on");
    scene_no_actuator(s);
    pass(s, 1);
    ok(h.last[1].progress == CLAIM_UNMET && h.last[1].why == UNMET_LOST &&
           !h.last[1].answers,
       "no actuator: %s", h.text[1]);
    scene_actuator(s);
    pass(s, 20);
    is_told(&h, 1, CLAIM_MET, 250, "a new actuator");
    claimant_free(h.c);
    scene_free(s);
}

static void tells_a_dry_run(void)
{
    struct caps_conf dry = conf;
    struct hearer h;

    dry.dry_run = true;
    struct scene *s = scene_new("a dry run", 2, &dry);
    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 200);
    pass(s, 1);
    ok(h.last[0].progress == CLAIM_UNMET && h.last[0].why == UNMET_DRY_RUN,
       "not written");
    claimant_free(h.c);
    scene_free(s);
}

/* ---- the way of a claim ---- */

static void must_walk(struct hearer *h, double w, double rate_w_s, double first_w,
                      unsigned check_units)
{
    const struct claimant_ask ask = {.mw = W(w),
                                     .way = {.own = true,
                                             .rate_mw_s = W(rate_w_s),
                                             .first_mw = W(first_w),
                                             .check_units = check_units},
                                     .why = "step by step"};
    uw_error err = {""};

    if (claimant_state(h->c, 0, &ask, &err) < 0)
        ok(false, "walks to %.0f W: %s", w, err.text);
}

static void walks_as_asked(void)
{
    struct scene *s = scene_new("a claim's own way", 2, &conf);
    const struct caps_work work = {.peak_w = 200, .counted = true, .progressing = true};
    struct hearer h;

    hear(s, &h, CLAIM_OF_SEARCH);
    must_walk(&h, 220, 2, 270, 3);
    claimant_progressed(h.c, 9);
    pass(s, 1);
    is_told(&h, 0, CLAIM_COMING, 270, "its first cap at once");
    ok(h.last[0].walking && h.last[0].stops && h.last[0].at_mw == W(270),
       "told of the stop; units from before it was in force do not count");
    caps_work(s->caps, 0, &work);
    claimant_progressed(h.c, 2);
    unsigned before = h.n[0];
    pass(s, 60);
    ok(h.last[0].stops && h.n[0] == before,
       "steps of the board's job do not end it, nor does time");
    claimant_progressed(h.c, 1);
    pass(s, 10);
    ok(h.last[0].walking && !h.last[0].stops && h.last[0].at_mw <= W(252) &&
           h.last[0].at_mw >= W(248),
       "its own units do: 2 W a second, at %u mW", h.last[0].at_mw);
    pass(s, 16);
    is_told(&h, 0, CLAIM_MET, 220, "there");
    ok(!h.last[0].walking, "and no more on the way");
    must_walk(&h, 260, 2, 270, 3);
    pass(s, 0.2);
    is_told(&h, 0, CLAIM_MET, 260, "up at once");
    must_state(&h, 0, 230);
    pass(s, 30);
    is_told(&h, 0, CLAIM_MET, 230, "then as the class says");
    const struct claimant_ask at_once = {.mw = W(160), .way = CLAIM_AT_ONCE};
    (void)claimant_state(h.c, 0, &at_once, NULL);
    pass(s, 0.2);
    is_told(&h, 0, CLAIM_MET, 160, "or at once");
    claimant_free(h.c);
    scene_free(s);
}

/* The ramp goes on from where it is, on the way of the claim that wins then. */
static void another_wins(void)
{
    struct scene *s = scene_new("another claim wins on the way", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_SEARCH);
    must_walk(&h, 200, 1, 0, 0);
    pass(s, 20);
    uint32_t was = h.last[0].at_mw;
    ok(was <= W(281) && was >= W(279), "1 W a second: %u mW", was);
    uint64_t id = claim(s, 0, CLAIM_NAMED, 150);
    pass(s, 2);
    ok(h.last[0].at_mw <= was - W(28) && h.last[0].at_mw >= was - W(32),
       "a named one wins: the class's 15 W a second, from there: %u mW", h.last[0].at_mw);
    was = h.last[0].at_mw;
    withdraw(s, 0, id);
    pass(s, 10);
    ok(h.last[0].walking && h.last[0].at_mw <= was - W(9) &&
           h.last[0].at_mw >= was - W(11),
       "it is gone: 1 W a second again: %u mW", h.last[0].at_mw);
    claim(s, 0, CLAIM_HARD, 180);
    pass(s, 0.2);
    is_told(&h, 0, CLAIM_CLAMPED, 180, "a hard one at once");
    claimant_free(h.c);
    scene_free(s);
}

static int lock(struct hearer *h, uint32_t mhz, double rate_mhz_s)
{
    const struct claimant_ask ask = {
        .mhz = mhz, .way = {.own = true, .rate_mw_s = rate_mhz_s}, .why = "slower"};

    h->inside = true;
    int r = claimant_state(h->c, 0, &ask, NULL);
    h->inside = false;
    return r;
}

static void is_clock(const struct hearer *h, enum claim_progress progress, uint32_t mhz,
                     const char *name)
{
    const struct claim_clock *k = &h->last[0].clock;

    ok(k->progress == progress && k->locked_mhz == mhz, "%s: %d (%d) at %u MHz", name,
       (int)k->progress, (int)progress, k->locked_mhz);
}

static void tells_of_the_clock(void)
{
    struct caps_conf clocks = conf;
    struct hearer h;

    clocks.clocks = true;
    struct scene *s = scene_new("a claim on the clock", 2, &clocks);
    hear(s, &h, CLAIM_OF_SEARCH);
    pass(s, 0.1);
    is_clock(&h, CLAIM_MET, 0, "no lock");
    ok(lock(&h, 1200, 20) == 0, "a lock is asked for");
    pass(s, 5);
    ok(h.last[0].clock.claimed && h.last[0].clock.walking &&
           h.last[0].clock.progress == CLAIM_COMING,
       "on the way, at %u MHz", h.last[0].clock.locked_mhz);
    unsigned before = h.n[0];
    pass(s, 5);
    ok(h.n[0] == before, "steps of the lock are no news");
    pass(s, 15);
    is_clock(&h, CLAIM_MET, 1200, "there");
    ok(!h.last[0].clock.walking && !h.last[0].claimed && h.last[0].progress == CLAIM_MET,
       "and no claim on watts");
    const struct claim hard = {.kind = CLAIM_HARD, .mhz = 900, .until_ns = CLAIM_FOREVER};
    uint64_t id = 0;
    (void)caps_claim(s->caps, 0, &hard, &id, NULL);
    pass(s, 1);
    is_clock(&h, CLAIM_CLAMPED, 900, "a lower lock of another");
    withdraw(s, 0, id);
    pass(s, 1);
    is_clock(&h, CLAIM_MET, 1200, "up again");
    clocks.clocks = false;
    caps_configure(s->caps, &clocks);
    pass(s, 1);
    ok(h.last[0].clock.progress == CLAIM_UNMET, "clocks are off");
    clocks.clocks = true;
    caps_configure(s->caps, &clocks);
    pass(s, 60);
    is_clock(&h, CLAIM_MET, 1200, "on again");
    caps_withdraw_job(s->caps, 7);
    pass(s, 1);
    is_clock(&h, CLAIM_OVER, 0, "its job has ended");
    ok(lock(&h, 1000, 0) == 0, "another, at once");
    pass(s, 0.5);
    is_clock(&h, CLAIM_MET, 1000, "locked");
    claimant_drop_clock(h.c, 0);
    pass(s, 0.5);
    is_clock(&h, CLAIM_MET, 0, "dropped");
    ok(!h.last[0].clock.claimed, "no claim is left");
    claimant_free(h.c);
    scene_free(s);
}

/* ---- the end of claims ---- */

static void ends_by_others(void)
{
    struct scene *s = scene_new("ended by others", 2, &conf);
    struct hearer h;
    uw_error err = {""};

    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 200);
    pass(s, 20);
    withdraw(s, 0, claimant_claim(h.c, 0));
    pass(s, 1);
    ok(h.last[0].progress == CLAIM_OVER && !claimant_claim(h.c, 0),
       "withdrawn by another: over");
    must_state(&h, 0, 240);
    pass(s, 20);
    is_told(&h, 0, CLAIM_MET, 240, "stated anew");
    caps_withdraw_job(s->caps, 7);
    pass(s, 1);
    ok(h.last[0].progress == CLAIM_OVER, "its job has ended: over");
    ok(state(&h, 0, 100, &err) == -ERANGE && !claimant_claim(h.c, 0),
       "under the minimum: %s", err.text);
    claimant_free(h.c);
    scene_free(s);
}

static void keeps_its_rights(void)
{
    struct scene *s = scene_new("what a source may not", 2, &conf);
    struct claimant_who who = {
        .source = CLAIM_OF_RULE, .boards = 1, .name = "rule night"};
    const struct claimant_ask ask = {.mw = W(200)}, clock = {.mhz = 1200};
    struct claimant *rule = NULL;
    uw_error err = {""};

    (void)claimant_new(s->loop, s->caps, &who, &rule, &err);
    ok(claimant_state(rule, 1, &ask, &err) == -EPERM, "not its board: %s", err.text);
    ok(claimant_state(rule, 0, &clock, &err) == -EPERM, "no clock: %s", err.text);
    ok(look(s, 0).claims->n == 0, "and nothing is claimed");
    ok(claimant_state(rule, 0, &ask, &err) == 0, "its board");
    ok(caps_withdraw(s->caps, 0, claimant_claim(rule, 0), &err) == -EPERM &&
           look(s, 0).claims->n == 1,
       "nobody else ends it: %s", err.text);
    claimant_drop(rule, 0);
    ok(look(s, 0).claims->n == 0, "it does");
    claimant_free(rule);
    scene_free(s);
}

static void names_each_claim(void)
{
    struct scene *s = scene_new("a claim's own name and kind", 1, &conf);
    struct claimant_ask ask = {.mw = W(200), .who = "rule fuse", .kind = CLAIM_HARD};
    struct hearer h;

    hear(s, &h, CLAIM_OF_RULE);
    ok(claimant_state(h.c, 0, &ask, NULL) == 0 &&
           look(s, 0).claims->claim[0].kind == CLAIM_HARD &&
           strcmp(look(s, 0).claims->claim[0].who, "rule fuse") == 0,
       "as the statement says");
    ask.kind = CLAIM_NAMED;
    ok(claimant_state(h.c, 0, &ask, NULL) == -EPERM, "a kind that its source may have");
    must_state(&h, 0, 190);
    ok(look(s, 0).claims->n == 1 && look(s, 0).claims->claim[0].kind == CLAIM_SOFT &&
           strcmp(look(s, 0).claims->claim[0].who, "test") == 0,
       "else the source's kind and the claimant's name: %s",
       look(s, 0).claims->claim[0].who);
    claimant_free(h.c);
    scene_free(s);
}

/* ---- leases ---- */

static void rule_is_renewed(void)
{
    struct scene *s = scene_new("a lease that withdraws", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_RULE);
    must_state(&h, 0, 200);
    for (int i = 0; i < 5; i++) {
        pass(s, 25);
        claimant_renew(h.c, NULL);
    }
    is_told(&h, 0, CLAIM_MET, 200, "as long as it is renewed");
    ok(told(s, CAPS_EVENT_CLAIM) == 1, "a renewal is no event");
    pass(s, 29);
    ok(look(s, 0).claims->n == 1, "29 s later");
    pass(s, 2);
    ok(look(s, 0).claims->n == 0 && h.last[0].progress == CLAIM_OVER, "31 s later: over");
    ok(told(s, CAPS_EVENT_EXPIRE) == 1, "as a claim whose time is over");
    pass(s, 3);
    is_limit(s, 0, 300, "the original");
    claimant_free(h.c);
    scene_free(s);
}

static void grant_falls_to_safe(void)
{
    struct scene *s = scene_new("a lease that falls to the safe share", 2, &conf);
    const uint32_t safe_mw[BOARDS_MAX] = {W(170), 0};
    struct hearer h;

    hear(s, &h, CLAIM_OF_GRANT);
    must_state(&h, 0, 260);
    must_state(&h, 1, 250);
    claimant_renew(h.c, safe_mw);
    pass(s, 20);
    is_limit(s, 0, 260, "granted");
    pass(s, 15);
    is_limit(s, 0, 170, "its safe share");
    is_limit(s, 1, 300, "no safe share is known: no claim");
    must_state(&h, 0, 280);
    claimant_renew(h.c, safe_mw);
    pass(s, 5);
    is_limit(s, 0, 280, "granted again");
    claimant_free(h.c);
    scene_free(s);
}

static void has_no_lease(void)
{
    struct scene *s = scene_new("no lease", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 200);
    pass(s, 600);
    is_limit(s, 0, 200, "after ten minutes");
    claimant_free(h.c);
    pass(s, 5);
    is_limit(s, 0, 300, "its claims go with it");
    scene_free(s);
}

static void sweep_raises(void)
{
    scene_found_w = 200;
    struct scene *s = scene_new("found at 200 W", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_SWEEP);
    must_state(&h, 0, 280);
    pass(s, 2);
    is_told(&h, 0, CLAIM_MET, 280, "a sweep may raise");
    is_limit(s, 0, 280, "it is set");
    must_state(&h, 0, 170);
    pass(s, 20);
    is_told(&h, 0, CLAIM_MET, 170, "and lower");
    must_state(&h, 0, 200);
    pass(s, 2);
    is_state(s, 0, CAPS_HELD, "its board stays held at the original");
    claimant_free(h.c);
    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 280);
    pass(s, 2);
    is_told(&h, 0, CLAIM_MET, 200, "a job's cap may not: the original");
    claimant_free(h.c);
    pass(s, 2);
    is_limit(s, 0, 200, "as it was found");
    scene_free(s);
    scene_found_w = 0;
}

static void may_be_freed_when_told(void)
{
    struct scene *s = scene_new("freed from inside the call", 2, &conf);
    struct hearer h;

    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 200);
    h.frees = true;
    pass(s, 5);
    ok(!h.c && h.n[0] + h.n[1] == 1, "told once");
    is_limit(s, 0, 300, "no claim is left");
    scene_free(s);
}

static void adopts(void)
{
    struct scene *s = scene_new("a claim of an earlier daemon", 2, &conf);
    const struct claim old = {.id = 41,
                              .kind = CLAIM_NAMED,
                              .source = CLAIM_OF_JOB_CAP,
                              .mw = W(210),
                              .job = 7,
                              .until_ns = CLAIM_FOREVER};
    struct hearer h;

    (void)caps_claim(s->caps, 0, &old, NULL, NULL);
    hear(s, &h, CLAIM_OF_JOB_CAP);
    claimant_adopt(h.c, 0);
    claimant_adopt(h.c, 1);
    ok(claimant_claim(h.c, 0) == 41 && claimant_claim(h.c, 1) == 0, "is taken over");
    must_state(&h, 0, 230);
    ok(look(s, 0).claims->n == 1 && look(s, 0).claims->claim[0].mw == W(230),
       "and changed, not made a second time");
    claimant_free(h.c);
    ok(look(s, 0).claims->n == 0, "and withdrawn");
    scene_free(s);
}

/* Another Underwatt holds the board: nothing of a claim that is withdrawn is left. */
static void leaves_another_alone(void)
{
    struct scene *s = scene_new("a claim on a board of another Underwatt", 2, &conf);
    struct actuator_reply taken = {.result = ACTUATOR_TAKEN,
                                   .pid = 12,
                                   .original_mw = W(300),
                                   .text = "held by a test"};
    struct hearer h;

    (void)snprintf(taken.uuid, sizeof taken.uuid, "%s",
                   board_view(boards_at(s->boards, 0))->info->uuid);
    caps_on_actuator(s->caps, ACTUATOR_EVENT_BOARD, &taken);
    fault(s, "0 limit 240W");
    pass(s, 2);
    hear(s, &h, CLAIM_OF_JOB_CAP);
    must_state(&h, 0, 300);
    pass(s, 1);
    claimant_drop(h.c, 0);
    pass(s, 1);
    is_told(&h, 0, CLAIM_MET, 240, "at rest at the other's limit");
    claimant_free(h.c);
    scene_free(s);
}

int main(void)
{
    check_rows();
    explains();
    tells_the_way();
    tells_of_others();
    tells_a_floor();
    tells_who_takes_it_away();
    tells_a_dry_run();
    walks_as_asked();
    another_wins();
    tells_of_the_clock();
    ends_by_others();
    keeps_its_rights();
    names_each_claim();
    rule_is_renewed();
    grant_falls_to_safe();
    has_no_lease();
    sweep_raises();
    may_be_freed_when_told();
    adopts();
    leaves_another_alone();
    return done();
}
