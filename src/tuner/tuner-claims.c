#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/cap/arbiter.h"
#include "tuner/tuner.h"

enum {
    POLL_MS = 200,   /* while an answer is due */
    CLAMP_MS = 3000, /* after which another limit than the one asked for counts */
    LATE_MS = 30000,
    FIRST_S = 10, /* in which the actuator may still be starting */
};
#define HOLD_LATE_NS (600 * NS_PER_S)

enum ask_kind { ASK_SET, ASK_HOLD, ASK_RELEASE };

struct slot {          /* a board */
    size_t at;         /* its place in the set of caps */
    uint64_t id;       /* of our claim; 0: there is none */
    uint64_t clock_id; /* the same for the claim on its clock */
    bool watched;      /* its clock is watched */
    bool told;         /* the tuner knows that the board was yielded or released */
};

struct claims_ask {
    struct claims_ask *next; /* in the order in which they came */
    enum ask_kind kind;
    size_t slot;
    uint32_t mw;
    bool replaced;     /* by a newer set */
    int r;             /* < 0: the claim was refused: text */
    uint64_t still_ns; /* since when nothing moves there */
    char text[200];
    actuator_reply_fn fn;
    void *user;
};

struct tuner_claims {
    struct tuner_claims_opts o;
    char who[CLAIM_TEXT], why[CLAIM_TEXT];
    struct slot slot[BOARDS_MAX];
    struct claims_ask *asks;
    struct loop_timer *timer;
    struct tuner *tuner;
    bool lost; /* the tuner knows that caps were lost; not all boards are held again */
    uint64_t began_ns;
    uint32_t ceiling_mw, enforced_mw;
    bool split;  /* the job's part of the budget is split unevenly … */
    bool splits; /* … or was: equal shares may not be in force yet */
};

static void soon(struct tuner_claims *c)
{
    loop_timer_set(c->timer, loop_now_ns(c->o.loop), 0);
}

static const char *uuid_of(const struct tuner_claims *c, size_t i)
{
    return board_view(c->o.boards[i])->info->uuid;
}

/* ---- what is in force, and what others allow ---- */

/* The verdict of a board's claims, without ours where without is set. */
static struct cap_verdict verdict_of(const struct tuner_claims *c, size_t i,
                                     const struct caps_view *v, bool without)
{
    struct claims others = *v->claims;
    struct cap_verdict ret;

    if (without && c->slot[i].id)
        (void)claims_drop(&others, c->slot[i].id);
    for (size_t k = 0; without && c->splits && k < others.n; k++)
        if (others.claim[k].id == v->budget_claim)
            others.claim[k].mw = v->share_mw; /* as without our split */
    cap_decide(&others, &v->bounds, &ret);
    return ret;
}

static uint32_t in_force(const struct caps_view *v)
{
    return v->enforced_mw          ? v->enforced_mw
           : v->state == CAPS_FREE ? v->bounds.original_mw
                                   : 0;
}

/* True when the board's ramp has ended at the target of its claims. */
static bool at_rest(const struct tuner_claims *c, size_t i, const struct caps_view *v)
{
    uint32_t target = verdict_of(c, i, v, false).target_mw;

    if (v->state != CAPS_HELD && v->state != CAPS_FREE)
        return false;
    if (v->state == CAPS_FREE && target < v->bounds.original_mw)
        return false; /* not yet asked of the actuator */
    return !v->ramping && v->ramp_mw == target;
}

static void look_at_force(struct tuner_claims *c, uint32_t *ret_ceiling,
                          uint32_t *ret_enforced)
{
    *ret_ceiling = UINT32_MAX;
    *ret_enforced = UINT32_MAX;
    for (size_t i = 0; i < c->o.n; i++) {
        struct caps_view v;
        caps_look(c->o.caps, c->slot[i].at, &v);
        struct cap_verdict other = verdict_of(c, i, &v, true);
        if (other.by != CAP_BY_ORIGINAL && other.target_mw < *ret_ceiling)
            *ret_ceiling = other.target_mw;
        if (in_force(&v) < *ret_enforced)
            *ret_enforced = in_force(&v);
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

/* True in a state that no claim changes; *reply says which. */
static bool stuck(const struct caps_view *v, struct actuator_reply *reply)
{
    switch (v->state) {
    case CAPS_YIELDED:
        reply_text(reply, ACTUATOR_YIELDED,
                   v->text[0] ? v->text : "another's limit is respected");
        return true;
    case CAPS_RELEASED:
        reply_text(reply, ACTUATOR_YIELDED,
                   v->text[0] ? v->text : "the board was released on request");
        return true;
    case CAPS_DENIED:
        reply_text(reply, ACTUATOR_DENIED, v->text);
        return true;
    case CAPS_LOST:
        reply_text(reply, ACTUATOR_GONE, v->text);
        return true;
    default:
        return false;
    }
}

/* Answers a set or a release once the board is at rest or too late.  True: *reply says
 * which. */
static bool set_answered(struct tuner_claims *c, struct claims_ask *a,
                         const struct caps_view *v, struct actuator_reply *reply)
{
    uint64_t now = loop_now_ns(c->o.loop);
    uint32_t got = in_force(v);
    double still = a->still_ns ? s_between(a->still_ns, now) * 1e3 : 0;

    if (stuck(v, reply))
        return true;
    if (v->dry_run && c->slot[a->slot].id) {
        reply_text(reply, ACTUATOR_DENIED,
                   "dry run: caps are decided and told, not written");
        return true;
    }
    if (!at_rest(c, a->slot, v) || !got || got != v->ramp_mw) {
        if (v->ramping || !a->still_ns)
            a->still_ns = now;
        if (at_rest(c, a->slot, v) && got && still >= CLAMP_MS) {
            reply_text(reply, ACTUATOR_CLAMPED, "");
            return true;
        }
        if (still >= LATE_MS)
            reply_text(reply, ACTUATOR_UNKNOWN,
                       v->text[0] ? v->text : "the cap has not come into force");
        return still >= LATE_MS;
    }
    bool asked = a->kind == ASK_RELEASE || got == a->mw;
    reply->result = asked ? ACTUATOR_DONE : ACTUATOR_CLAMPED;
    return true;
}

static bool others_asked(const struct tuner_claims *c, const struct claims_ask *but)
{
    for (const struct claims_ask *a = c->asks; a; a = a->next)
        if (a != but && a->kind == ASK_HOLD)
            return true;
    return false;
}

static bool hold_answered(struct tuner_claims *c, struct claims_ask *a,
                          const struct caps_view *v, struct actuator_reply *reply)
{
    uint64_t now = loop_now_ns(c->o.loop);

    if (!a->still_ns)
        a->still_ns = now;
    if (v->state == CAPS_LOST || v->state == CAPS_HOLDING) {
        if (now - a->still_ns >= HOLD_LATE_NS)
            reply_text(reply, ACTUATOR_GONE, v->text);
        return now - a->still_ns >= HOLD_LATE_NS;
    }
    if (!others_asked(c, a)) /* the next loss is told again */
        c->lost = false;
    (void)stuck(v, reply);
    return true;
}

static bool answered(struct tuner_claims *c, struct claims_ask *a,
                     struct actuator_reply *reply)
{
    struct caps_view v;

    caps_look(c->o.caps, c->slot[a->slot].at, &v);
    *reply = (struct actuator_reply){
        .enforced_mw = in_force(&v),
        .original_mw = v.bounds.original_mw,
        .limits = v.limits,
    };
    (void)snprintf(reply->uuid, sizeof reply->uuid, "%s", uuid_of(c, a->slot));
    if (a->replaced || a->r < 0) {
        reply_text(reply, a->replaced ? ACTUATOR_BUSY : ACTUATOR_REFUSED, a->text);
        return true;
    }
    if (a->kind == ASK_HOLD)
        return hold_answered(c, a, &v, reply);
    return set_answered(c, a, &v, reply);
}

/* Gives one answer that is due.  True: fn was called, and c may be freed. */
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
        soon(c); /* the next one */
        *ret_r = fn(NULL, &reply, user);
        return true;
    }
    return false;
}

/* ---- news for the tuner ---- */

static int tell(struct tuner_claims *c, size_t i, enum actuator_event event,
                const struct caps_view *v)
{
    struct actuator_reply reply = {.result = ACTUATOR_GONE, .enforced_mw = in_force(v)};

    (void)stuck(v, &reply);
    if (!reply.text[0])
        reply_text(&reply, reply.result, "the caps were lost");
    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s", uuid_of(c, i));
    return tuner_on_event(c->tuner, event, &reply);
}

/* The actuator was lost for a while: the originals are in force, as after a lease. */
static int tell_lost(struct tuner_claims *c, const struct caps_view *v)
{
    int r = 0;

    c->lost = true;
    for (size_t i = 0; i < c->o.n && r >= 0; i++)
        r = tell(c, i, ACTUATOR_EVENT_LEASE, v);
    return r;
}

/* A search taken over from an earlier daemon waits until the actuator has answered: the
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
        struct caps_view v;
        caps_look(c->o.caps, c->slot[i].at, &v);
        if (v.state == CAPS_LOST && !c->lost && !awaits_first(c))
            return tell_lost(c, &v);
        bool over =
            v.state == CAPS_YIELDED || v.state == CAPS_RELEASED || v.state == CAPS_DENIED;
        bool news = over && !c->slot[i].told;
        c->slot[i].told = over;
        if (news)
            return tell(c, i, ACTUATOR_EVENT_YIELDED, &v);
    }
    return 0;
}

static int claims_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct tuner_claims *c = user;
    uint32_t ceiling, enforced;
    int r = 0;

    loop_timer_set(timer, c->asks ? now_ns + POLL_MS * NS_PER_MS : UINT64_MAX, 0);
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

void tuner_claims_on_caps(struct tuner_claims *c, const struct caps_what *what)
{
    for (size_t i = 0; i < c->o.n; i++)
        if (c->slot[i].at == what->board)
            soon(c); /* not from inside an event of caps */
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

/* The claim that an earlier daemon made for the job's cap by name: it is taken over, not
 * made a second time.
 */
static uint64_t find_own(const struct tuner_claims *c, const struct caps_view *v)
{
    for (size_t i = 0; i < v->claims->n && c->o.kind == CLAIM_NAMED; i++) {
        const struct claim *k = &v->claims->claim[i];
        if (k->job == c->o.job && k->source == CLAIM_OF_JOB_CAP)
            return k->id;
    }
    return 0;
}

/* Claims at most mw on board i; 0: no claim.  A search claims the original as well, so
 * that its boards stay held.
 */
static int state_claim(struct tuner_claims *c, size_t i, uint32_t mw, uw_error *err)
{
    struct slot *s = &c->slot[i];
    struct caps_view v;

    caps_look(c->o.caps, s->at, &v);
    if (!s->id)
        s->id = find_own(c, &v);
    if (mw == 0 || (mw >= v.bounds.original_mw && c->o.kind == CLAIM_NAMED)) {
        uint64_t id = s->id;
        s->id = 0;
        if (id)
            (void)caps_withdraw(c->o.caps, s->at, id, NULL);
        return 0;
    }
    struct claim claim = {
        .id = s->id,
        .kind = c->o.kind,
        .source = c->o.kind == CLAIM_NAMED ? CLAIM_OF_JOB_CAP : CLAIM_OF_SEARCH,
        .mw = mw < v.bounds.original_mw ? mw : v.bounds.original_mw,
        .made_ns = loop_now_ns(c->o.loop),
        .until_ns = CLAIM_FOREVER,
        .uid = c->o.uid,
        .job = c->o.job,
        .walked = c->o.kind == CLAIM_SOFT,
    };
    memcpy(claim.who, c->who, sizeof claim.who);
    memcpy(claim.why, c->why, sizeof claim.why);
    if (c->o.percent > 0)
        why_percent(c, &v, mw, claim.why);
    return caps_claim(c->o.caps, s->at, &claim, &s->id, err);
}

static int claims_clock(void *caps, size_t board, uint32_t mhz, uw_error *err)
{
    struct tuner_claims *c = caps;
    struct slot *s = &c->slot[board];

    if (mhz == 0) {
        uint64_t id = s->clock_id;
        s->clock_id = 0;
        return id ? caps_withdraw(c->o.caps, s->at, id, err) : 0;
    }
    struct claim claim = {
        .id = s->clock_id,
        .kind = CLAIM_SOFT,
        .source = CLAIM_OF_SEARCH,
        .mhz = mhz,
        .made_ns = loop_now_ns(c->o.loop),
        .until_ns = CLAIM_FOREVER,
        .uid = c->o.uid,
        .job = c->o.job,
        .walked = true,
    };
    memcpy(claim.who, c->who, sizeof claim.who);
    memcpy(claim.why, c->why, sizeof claim.why);
    return caps_claim(c->o.caps, s->at, &claim, &s->clock_id, err);
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
    struct caps_view v;

    caps_look(c->o.caps, c->slot[board].at, &v);
    *ret_in_force_mw = in_force(&v);
    return v.share_mw < v.bounds.original_mw ? v.share_mw : 0;
}

static void claims_split(void *caps, const uint32_t *mw)
{
    struct tuner_claims *c = caps;
    size_t board[BOARDS_MAX];

    if (!mw && !c->split)
        return;
    c->split = mw != NULL;
    c->splits = true;
    for (size_t i = 0; i < c->o.n; i++)
        board[i] = c->slot[i].at;
    caps_budget_want(c->o.caps, board, mw, c->o.n, 1 + (unsigned)(c->o.job % UINT_MAX));
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
    a->mw = mw;
    a->fn = fn;
    a->user = user;
    if (kind != ASK_HOLD)
        a->r = state_claim(c, board, mw, &err);
    else if (c->slot[board].id && c->o.kind == CLAIM_SOFT)
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
        struct caps_view v;
        caps_look(c->o.caps, c->slot[i].at, &v);
        if (c->slot[i].id || !at_rest(c, i, &v))
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
    (void)snprintf(c->who, sizeof c->who, "%s", opts->who);
    for (size_t i = 0; i < opts->n; i++)
        c->slot[i].at = board_view(opts->boards[i])->at;
    int r = loop_timer_new(opts->loop, UINT64_MAX, 0, claims_on_timer, c, &c->timer, err);
    if (r < 0)
        return r;
    *ret = take(c);
    return 0;
}

void tuner_claims_free(struct tuner_claims *c)
{
    if (!c)
        return;
    claims_split(c, NULL);
    for (size_t i = 0; c->timer && i < c->o.n; i++) {
        leave_clock(c, i);
        (void)state_claim(c, i, 0, NULL);
    }
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
