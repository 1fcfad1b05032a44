#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "caps/claimant.h"
#include "tuner/tuner.h"

enum { FIRST_S = 10 }; /* the actuator may still be starting */
#define HOLD_LATE_NS (600 * NS_PER_S)

enum ask_kind { ASK_SET, ASK_HOLD, ASK_RELEASE };

struct slot {     /* a board */
    size_t at;    /* index in the set of caps */
    bool watched; /* the clock is watched */
    bool told;    /* the tuner knows that the board was yielded or released */
    struct claim_told now;
    char text[200]; /* of the board's state */
};

struct claims_ask {
    struct claims_ask *next; /* in order of request */
    enum ask_kind kind;
    size_t slot;
    bool replaced; /* by a newer request */
    bool told;     /* slot.now is newer than the request */
    int r;         /* < 0: the claim was refused: text */
    uint64_t asked_ns;
    char text[200];
    actuator_reply_fn fn;
    void *user;
};

struct tuner_claims {
    struct tuner_claims_opts o;
    char why[CLAIM_TEXT];
    struct claimant *claimant;
    struct slot slot[BOARDS_MAX];
    struct claims_ask *asks;
    struct loop_timer *timer;
    struct tuner *tuner;
    bool lost; /* the tuner knows that caps were lost; not all boards are held again */
    uint64_t began_ns;
    uint32_t ceiling_mw, enforced_mw;
};

static void soon(struct tuner_claims *c)
{
    loop_timer_set(c->timer, loop_now_ns(c->o.loop), 0);
}

static const char *uuid_of(const struct tuner_claims *c, size_t i)
{
    return board_view(c->o.boards[i])->info->uuid;
}

static void look_at_force(const struct tuner_claims *c, uint32_t *ret_ceiling,
                          uint32_t *ret_enforced)
{
    *ret_ceiling = UINT32_MAX;
    *ret_enforced = UINT32_MAX;
    for (size_t i = 0; i < c->o.n; i++) {
        const struct claim_told *now = &c->slot[i].now;
        if (now->without_mw < *ret_ceiling)
            *ret_ceiling = now->without_mw;
        if (now->in_force_mw < *ret_enforced)
            *ret_enforced = now->in_force_mw;
    }
    if (*ret_enforced == UINT32_MAX)
        *ret_enforced = 0;
}

/* ---- answers ---- */

static void reply_text(struct actuator_reply *reply, enum actuator_result result,
                       const char *text)
{
    reply->result = result;
    (void)snprintf(reply->text, sizeof reply->text, "%s", text);
}

/* The actuator's result for each reason why a claim has no effect. */
static const struct {
    enum actuator_result result;
    const char *text; /* if the state of the board has none */
} unmet[] = {
    [UNMET_NONE] = {ACTUATOR_DONE, ""},
    [UNMET_YIELDED] = {ACTUATOR_YIELDED, "another's limit is respected"},
    [UNMET_RELEASED] = {ACTUATOR_YIELDED, "the board was released on request"},
    [UNMET_DENIED] = {ACTUATOR_DENIED, ""},
    [UNMET_LOST] = {ACTUATOR_GONE, ""},
    [UNMET_DRY_RUN] = {ACTUATOR_DENIED,
                       "dry run: caps are decided and told, not written"},
    [UNMET_LATE] = {ACTUATOR_UNKNOWN, "the cap has not come into force"},
};

static void reply_unmet(const struct slot *s, struct actuator_reply *reply)
{
    const char *text =
        s->text[0] && s->now.why != UNMET_DRY_RUN ? s->text : unmet[s->now.why].text;

    reply_text(reply, unmet[s->now.why].result, text);
}

/* Sets *reply of a set or release and returns true if the caps have settled. */
static bool set_answered(const struct slot *s, struct actuator_reply *reply)
{
    switch (s->now.progress) {
    case CLAIM_COMING:
        return false;
    case CLAIM_MET:
        reply->result = ACTUATOR_DONE;
        return true;
    case CLAIM_CLAMPED:
    case CLAIM_OVER:
        reply->result = ACTUATOR_CLAMPED;
        return true;
    case CLAIM_UNMET:
        reply_unmet(s, reply);
        return true;
    }
    return false;
}

static bool others_asked(const struct tuner_claims *c, const struct claims_ask *but)
{
    for (const struct claims_ask *a = c->asks; a; a = a->next)
        if (a != but && a->kind == ASK_HOLD)
            return true;
    return false;
}

static bool hold_answered(struct tuner_claims *c, const struct claims_ask *a,
                          struct actuator_reply *reply)
{
    const struct slot *s = &c->slot[a->slot];

    if (!s->now.answers) {
        bool late = loop_now_ns(c->o.loop) >= a->asked_ns + HOLD_LATE_NS;
        if (late)
            reply_text(reply, ACTUATOR_GONE, s->text);
        return late;
    }
    if (!others_asked(c, a)) /* report the next loss again */
        c->lost = false;
    if (s->now.why && s->now.why != UNMET_DRY_RUN && s->now.why != UNMET_LATE)
        reply_unmet(s, reply);
    return true;
}

static bool answered(struct tuner_claims *c, const struct claims_ask *a,
                     struct actuator_reply *reply)
{
    const struct slot *s = &c->slot[a->slot];
    struct caps_view v;

    caps_look(c->o.caps, s->at, &v);
    *reply = (struct actuator_reply){.enforced_mw = s->now.in_force_mw,
                                     .original_mw = s->now.original_mw,
                                     .limits = v.limits};
    (void)snprintf(reply->uuid, sizeof reply->uuid, "%s", uuid_of(c, a->slot));
    if (a->replaced || a->r < 0) {
        reply_text(reply, a->replaced ? ACTUATOR_BUSY : ACTUATOR_REFUSED, a->text);
        return true;
    }
    if (a->kind == ASK_HOLD)
        return hold_answered(c, a, reply);
    if (!a->told)
        return false;
    bool left = a->kind == ASK_RELEASE && v.unrestored; /* the actuator keeps trying */
    if (!set_answered(s, reply) && !(left && v.state == CAPS_FREE))
        return false;
    if (left)
        reply_text(reply, ACTUATOR_UNKNOWN,
                   s->text[0] ? s->text : "the actuator has not restored the limit yet");
    return true;
}

/* Sends one reply that is due.  True: fn was called, c may have been freed. */
static bool answer_one(struct tuner_claims *c, int *ret_r)
{
    for (struct claims_ask **p = &c->asks; *p; p = &(*p)->next) {
        struct claims_ask *a = *p;
        struct actuator_reply reply;
        if (!answered(c, a, &reply))
            continue;
        actuator_reply_fn fn = a->fn;
        void *user = a->user;
        *p = a->next;
        free(a);
        soon(c); /* for the next reply */
        *ret_r = fn(NULL, &reply, user);
        return true;
    }
    return false;
}

/* ---- news for the tuner ---- */

static int tell(struct tuner_claims *c, size_t i, enum actuator_event event)
{
    struct actuator_reply reply = {.enforced_mw = c->slot[i].now.in_force_mw};

    reply_unmet(&c->slot[i], &reply);
    if (reply.result == ACTUATOR_DONE)
        reply.result =
            ACTUATOR_GONE; /* of a board that is held, beside one that is not */
    if (!reply.text[0])
        reply_text(&reply, reply.result, "the caps were lost");
    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s", uuid_of(c, i));
    return tuner_on_event(c->tuner, event, &reply);
}

/* The actuator was lost for a while: the originals are in force, as after a lease that
 * ran out.
 */
static int tell_lost(struct tuner_claims *c)
{
    int r = 0;

    c->lost = true;
    for (size_t i = 0; i < c->o.n && r >= 0; i++)
        r = tell(c, i, ACTUATOR_EVENT_LEASE);
    return r;
}

/* A search restored from an earlier daemon waits for the actuator's first answer, as the
 * cap may still be in force.
 */
static bool awaits_first(const struct tuner_claims *c)
{
    return c->o.kind == CLAIM_SOFT && !tuner_report(c->tuner)->started &&
           s_between(c->began_ns, loop_now_ns(c->o.loop)) < FIRST_S;
}

static int tell_states(struct tuner_claims *c)
{
    for (size_t i = 0; i < c->o.n; i++) {
        enum claim_unmet why = c->slot[i].now.why;
        if (why == UNMET_LOST && !c->lost && !awaits_first(c))
            return tell_lost(c);
        bool over = why == UNMET_YIELDED || why == UNMET_RELEASED || why == UNMET_DENIED;
        bool news = over && !c->slot[i].told;
        c->slot[i].told = over;
        if (news)
            return tell(c, i, ACTUATOR_EVENT_YIELDED);
    }
    return 0;
}

/* When time alone changes something: a hold becomes late, the first answer is overdue. */
static uint64_t next_ns(const struct tuner_claims *c)
{
    uint64_t next = UINT64_MAX, first = c->began_ns + FIRST_S * NS_PER_S;

    for (const struct claims_ask *a = c->asks; a; a = a->next)
        if (a->kind == ASK_HOLD && a->asked_ns + HOLD_LATE_NS < next)
            next = a->asked_ns + HOLD_LATE_NS;
    if (c->tuner && loop_now_ns(c->o.loop) < first && first < next)
        next = first;
    return next;
}

static int claims_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct tuner_claims *c = user;
    uint32_t ceiling, enforced;
    int r = 0;
    (void)now_ns;

    loop_timer_set(timer, next_ns(c), 0);
    if (c->tuner) {
        r = tell_states(c);
        if (r < 0)
            return r;
        look_at_force(c, &ceiling, &enforced);
        if (ceiling != c->ceiling_mw || enforced != c->enforced_mw) {
            c->ceiling_mw = ceiling;
            c->enforced_mw = enforced;
            r = tuner_on_force(c->tuner, ceiling, enforced);
            if (r < 0)
                return r;
        }
    }
    (void)answer_one(c, &r);
    return r;
}

static void note_told(struct tuner_claims *c, size_t i, const struct claim_told *told,
                      const char *text)
{
    struct slot *s = &c->slot[i];

    s->now = *told;
    (void)snprintf(s->text, sizeof s->text, "%s", text);
    for (struct claims_ask *a = c->asks; a; a = a->next)
        a->told |= a->slot == i;
}

static int on_told(size_t board, const struct claim_told *told, const char *text,
                   void *user)
{
    struct tuner_claims *c = user;

    for (size_t i = 0; i < c->o.n; i++)
        if (c->slot[i].at == board)
            note_told(c, i, told, text);
    return claims_on_timer(c->timer, loop_now_ns(c->o.loop), c);
}

/* ---- what the tuner asks ---- */

static void why_percent(const struct tuner_claims *c, const struct caps_view *v,
                        uint32_t mw, char ret[CLAIM_TEXT])
{
    double default_w = w_of_mw(v->limits.default_mw);
    uint32_t plain_mw = mw_of_w(default_w * c->o.percent / 100);

    (void)snprintf(ret, CLAIM_TEXT, "%g %% of this board's default limit, %g W%s",
                   c->o.percent, default_w,
                   mw > plain_mw ? ", raised to its minimum" : "");
}

/* Claims at most mw on board i; mw 0: withdraws the claim.  A search claims even the
 * original, so that the actuator keeps holding the board.
 */
static int state_claim(struct tuner_claims *c, size_t i, uint32_t mw, uw_error *err)
{
    const struct slot *s = &c->slot[i];
    char why[CLAIM_TEXT];
    struct caps_view v;

    caps_look(c->o.caps, s->at, &v);
    if (c->o.kind == CLAIM_NAMED)
        claimant_adopt(c->claimant, s->at); /* made by an earlier daemon */
    if (mw == 0 || (mw >= v.bounds.original_mw && c->o.kind == CLAIM_NAMED)) {
        claimant_drop(c->claimant, s->at);
        return 0;
    }
    memcpy(why, c->why, sizeof why);
    if (c->o.percent > 0)
        why_percent(c, &v, mw, why);
    const struct claimant_ask ask = {
        .mw = mw < v.bounds.original_mw ? mw : v.bounds.original_mw,
        .way = {.own = c->o.kind == CLAIM_SOFT}, /* at once: the tuner has a ramp */
        .why = why};
    return claimant_state(c->claimant, s->at, &ask, err);
}

static int claims_clock(void *caps, size_t board, uint32_t mhz, uw_error *err)
{
    struct tuner_claims *c = caps;
    const struct claimant_ask ask = {.mhz = mhz, .way = CLAIM_AT_ONCE, .why = c->why};

    if (mhz)
        return claimant_state(c->claimant, c->slot[board].at, &ask, err);
    claimant_drop_clock(c->claimant, c->slot[board].at);
    return 0;
}

static void claims_clock_watch(void *caps, size_t board, bool watch)
{
    struct tuner_claims *c = caps;

    c->slot[board].watched = watch;
    caps_watch_clock(c->o.caps, c->slot[board].at, watch);
}

static void claims_clock_look(void *caps, size_t board, struct caps_clock_view *ret)
{
    const struct tuner_claims *c = caps;
    struct caps_view v;

    caps_look(c->o.caps, c->slot[board].at, &v);
    *ret = v.clock;
}

/* ---- the node's budget ---- */

static uint32_t claims_share(void *caps, size_t board, uint32_t *ret_in_force_mw)
{
    const struct tuner_claims *c = caps;
    const struct slot *s = &c->slot[board];
    struct caps_view v;

    caps_look(c->o.caps, s->at, &v);
    *ret_in_force_mw = s->now.in_force_mw;
    return v.share_mw < v.bounds.original_mw ? v.share_mw : 0;
}

static void claims_split(void *caps, const uint32_t *mw)
{
    struct tuner_claims *c = caps;
    uint32_t each[BOARDS_MAX] = {0};

    for (size_t i = 0; mw && i < c->o.n; i++)
        each[c->slot[i].at] = mw[i];
    claimant_split(c->claimant, mw ? each : NULL);
}

/* Withdraws the claim on the board's clock and stops the watch. */
static void leave_clock(struct tuner_claims *c, size_t board)
{
    (void)claims_clock(c, board, 0, NULL);
    if (c->slot[board].watched)
        claims_clock_watch(c, board, false);
}

static int ask(struct tuner_claims *c, enum ask_kind kind, size_t board, uint32_t mw,
               actuator_reply_fn fn, void *user)
{
    struct claims_ask *a = calloc(1, sizeof *a), **p;
    uw_error err = {""};

    if (!a)
        return -EAGAIN;
    for (p = &c->asks; *p; p = &(*p)->next)
        if ((*p)->slot == board && (*p)->kind != ASK_HOLD)
            (*p)->replaced = true;
    *p = a;
    a->kind = kind;
    a->slot = board;
    a->asked_ns = loop_now_ns(c->o.loop);
    a->fn = fn;
    a->user = user;
    if (kind != ASK_HOLD)
        a->r = state_claim(c, board, mw, &err);
    else if (claimant_claim(c->claimant, c->slot[board].at) && c->o.kind == CLAIM_SOFT)
        a->r = state_claim(c, board, UINT32_MAX, &err);
    if (a->r < 0)
        (void)snprintf(a->text, sizeof a->text, "%s", err.text);
    soon(c);
    return 0;
}

static int claims_set(void *caps, size_t board, uint32_t mw, actuator_reply_fn fn,
                      void *user)
{
    return ask(caps, ASK_SET, board, mw, fn, user);
}

static int claims_hold(void *caps, size_t board, actuator_reply_fn fn, void *user)
{
    return ask(caps, ASK_HOLD, board, 0, fn, user);
}

static int claims_release(void *caps, size_t board, actuator_reply_fn fn, void *user)
{
    leave_clock(caps, board);
    claims_split(caps, NULL);
    return ask(caps, ASK_RELEASE, board, 0, fn, user);
}

/* True when no claim of ours is left and the boards are at rest, whoever set the limit.
 */
static bool claims_back(void *caps)
{
    const struct tuner_claims *c = caps;

    for (size_t i = 0; i < c->o.n; i++) {
        struct claim_told now;
        claimant_look(c->claimant, c->slot[i].at, &now);
        if (now.claimed || now.progress != CLAIM_MET)
            return false;
    }
    return true;
}

#define COMMON \
    .set = claims_set, .hold = claims_hold, .release = claims_release, .back = claims_back

const struct tuner_caps tuner_claims_caps = {
    COMMON,
    .share = claims_share,
    .split = claims_split,
    .clock = claims_clock,
    .clock_watch = claims_clock_watch,
    .clock_look = claims_clock_look,
};
const struct tuner_caps tuner_named_caps = {COMMON, .walks = true};

/* ---- life ---- */

int tuner_claims_new(const struct tuner_claims_opts *opts, struct tuner_claims **ret,
                     uw_error *err)
{
    auto_(tuner_claims_free) struct tuner_claims *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    if (opts->n > BOARDS_MAX)
        return fail(err, -E2BIG, "%zu boards are more than %d", opts->n, BOARDS_MAX);
    c->o = *opts;
    c->ceiling_mw = UINT32_MAX;
    c->began_ns = loop_now_ns(opts->loop);
    struct claimant_who who = {.source = opts->kind == CLAIM_NAMED ? CLAIM_OF_JOB_CAP
                                                                   : CLAIM_OF_SEARCH,
                               .uid = opts->uid,
                               .job = opts->job,
                               .fn = on_told,
                               .user = c};
    (void)snprintf(who.name, sizeof who.name, "%s", opts->who);
    for (size_t i = 0; i < opts->n; i++) {
        c->slot[i].at = board_view(opts->boards[i])->at;
        who.boards |= 1ull << c->slot[i].at;
    }
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, claims_on_timer, c, &c->timer, err);
    if (r == 0)
        r = claimant_new(opts->loop, opts->caps, &who, &c->claimant, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < opts->n; i++)
        claimant_look(c->claimant, c->slot[i].at, &c->slot[i].now);
    *ret = take(c);
    return 0;
}

void tuner_claims_free(struct tuner_claims *c)
{
    if (!c)
        return;
    for (size_t i = 0; c->claimant && i < c->o.n; i++)
        leave_clock(c, i);
    claimant_free(c->claimant);
    while (c->asks) {
        struct claims_ask *a = c->asks;
        c->asks = a->next;
        free(a);
    }
    loop_timer_free(c->timer);
    free(c);
}

int tuner_claims_keep(struct tuner_claims *c, uw_error *err)
{
    int r = 0;

    tuner_claims_why(c, "the limit that was found, until its original is known");
    for (size_t i = 0; i < c->o.n && r >= 0; i++)
        r = state_claim(c, i, UINT32_MAX, err);
    return r;
}

void tuner_claims_tell(struct tuner_claims *c, struct tuner *tuner)
{
    c->tuner = tuner;
    soon(c);
}

void tuner_claims_why(struct tuner_claims *c, const char *why)
{
    (void)snprintf(c->why, sizeof c->why, "%s", why);
}
