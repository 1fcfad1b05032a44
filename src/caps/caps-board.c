/* One board: from its claims to the limit that the actuator writes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "caps/caps-inside.h"

static uint64_t now_of(const struct caps_board *b)
{
    return loop_now_ns(b->caps->loop);
}

const struct cap_class *caps_class(const struct caps_board *b)
{
    return b->has_cls ? &b->cls : &b->caps->conf.cls;
}

/* ---- telling ---- */

void caps_tell(const struct caps_board *b, enum caps_event event,
               const struct claim *claim, const char *text)
{
    struct caps_what what = {.event = event,
                             .board = b->at,
                             .at_ns = now_of(b),
                             .claim = claim,
                             .target_mw = b->verdict.target_mw,
                             .enforced_mw = b->enforced_mw,
                             .text = text};

    b->caps->on_event(&what, b->caps->user);
}

void caps_tell_cap(struct caps_board *b, uint32_t enforced_mw, const char *text)
{
    if (enforced_mw != b->enforced_mw)
        caps_budget_kick(b->caps);
    b->enforced_mw = enforced_mw;
    if (enforced_mw == b->told_mw)
        return;
    b->told_mw = enforced_mw;
    caps_tell(b, CAPS_EVENT_CAP, claims_find(&b->claims, b->verdict.claim), text);
}

void caps_set_state(struct caps_board *b, enum caps_state state, const char *text)
{
    bool new = state != b->state;

    b->state = state;
    (void)snprintf(b->text, sizeof b->text, "%s", text);
    if (new)
        caps_tell(b, CAPS_EVENT_STATE, NULL, b->text);
}

void caps_tell_done(struct caps_board *b, int r, const char *text)
{
    caps_done_fn fn = b->release_fn;

    b->release_fn = NULL;
    if (fn)
        fn(r, text, b->release_user);
}

/* ---- deciding ---- */

static void tell_over(const struct claim *claim, void *user)
{
    struct caps_board *b = user;

    caps_tell(b, CAPS_EVENT_EXPIRE, claim, "");
    if (claim->mhz)
        caps_clock_hurry(b);
    if (claim->kind != CLAIM_SOFT)
        caps_hurry(b);
}

/* Nothing is walked that is not written; but where nothing of ours is in force and more
 * is refused (root's range), it is the way down that comes to what may be.
 */
static bool is_walked(const struct caps_board *b)
{
    return !b->failed || (b->failed_with == ACTUATOR_REFUSED &&
                          b->enforced_mw >= b->bounds.original_mw);
}

uint32_t caps_due(const struct caps_board *b)
{
    return cap_settable(&b->bounds, b->ramp.at_mw, false);
}

static void follow_ramp(struct caps_board *b, uint64_t now)
{
    const struct cap_class *cls = caps_class(b);

    if (!is_walked(b))
        b->ramp.at_ns = now;
    (void)cap_walk(&b->ramp, &b->verdict, cls, b->limits.default_mw, b->peak_mw, now);
    if (!b->ramp.waiting) {
        b->stay_ns = 0;
    } else if (!b->stay_ns) {
        b->stay_ns = now;
    } else if (!b->counted && now - b->stay_ns >= STAY_NS) {
        ramp_checked(&b->ramp, now);
        b->stay_ns = 0;
    }
}

static void decide(struct caps_board *b, uint64_t now)
{
    (void)claims_expire(&b->claims, now, tell_over, b);
    b->bounds.floor_mw = (uint32_t)lround(caps_class(b)->floor * (double)b->demand_mw);
    cap_decide(&b->claims, &b->bounds, &b->verdict);
    caps_clock_decide(b, now);
    if (b->link == LINK_HELD || b->caps->conf.dry_run)
        follow_ramp(b, now);
}

/* A search at work goes up and down all the time: its board stays held. */
static bool is_searched(const struct caps_board *b)
{
    for (size_t i = 0; i < b->claims.n; i++)
        if (b->claims.claim[i].walked)
            return true;
    return false;
}

/* Should the actuator hold it for us?  Where an earlier daemon may have left a cap, the
 * limit that is set tells nothing of the original: every claim counts.
 */
static bool is_wanted(const struct caps_board *b)
{
    if (!b->can_cap || b->caps->ending || b->caps->conf.dry_run ||
        (b->released && !b->keeps))
        return false;
    if (b->caps->conf.always_hold)
        return true;
    if (!b->sure)
        return b->claims.n > 0;
    return b->verdict.target_mw < b->bounds.original_mw || caps_clock_wanted(b) ||
           is_searched(b);
}

void caps_hurry(struct caps_board *b)
{
    b->retry_ns = 0;
    b->attempts = 0;
}

/* ---- asking ---- */

/* It could not even be asked: soon again. */
static void not_asked(struct caps_board *b, int r)
{
    if (r == -EAGAIN) {
        caps_try_again(b, 20 * NS_PER_MS);
    } else {
        caps_set_state(b, CAPS_LOST, "the actuator is not ready");
        caps_try_again(b, NS_PER_S);
    }
}

static void ask_hold(struct caps_board *b)
{
    struct actuator *act = b->caps->act;
    bool keep = b->caps->conf.others == CAPS_REASSERT;

    b->link = LINK_HOLDING;
    int r = b->again ? actuator_hold_again(act, b->info->uuid, keep, caps_on_hold, b)
                     : actuator_hold(act, b->info->uuid, caps_on_hold, b);
    if (r == 0) {
        /* A second try is told when it is answered otherwise. */
        if (b->failed_with == ACTUATOR_DONE && !b->again)
            caps_set_state(b, CAPS_HOLDING, "");
        return;
    }
    b->link = LINK_NONE;
    not_asked(b, r);
}

static void ask_release(struct caps_board *b)
{
    int r = actuator_release(b->caps->act, b->info->uuid, caps_on_release, b);

    if (r == 0) {
        b->link = LINK_RELEASING;
        return;
    }
    b->failed = true;
    not_asked(b, r);
}

static size_t count_asks(const struct caps_board *b)
{
    size_t n = 0;

    for (size_t i = 0; i < ASKS_MAX; i++)
        n += b->ask[i].mw != 0;
    return n;
}

static void ask_limit(struct caps_board *b, uint32_t mw)
{
    struct ask *ask = b->ask;

    if (count_asks(b) == ASKS_MAX)
        return; /* an answer makes room, and steps again */
    while (ask->mw)
        ask++;
    ask->mw = mw;
    int r = actuator_set_limit(b->caps->act, b->info->uuid, mw, caps_on_set, ask);
    if (r == 0) {
        b->asked_mw = mw;
        b->asked_ns = now_of(b);
        b->failed = false;
        return;
    }
    ask->mw = 0;
    b->failed = true;
    not_asked(b, r);
}

void caps_progress(struct caps_board *b)
{
    /* Those before the answer were done under another limit. */
    bool answered = b->asked_mw == caps_due(b) && !count_asks(b) && is_walked(b);

    if (b->ramp.waiting && (answered || b->caps->conf.dry_run))
        ramp_checked(&b->ramp, now_of(b));
}

/* Nobody holds it for us: does it want to be held, and may we ask now? */
static void step_none(struct caps_board *b, uint64_t now)
{
    bool waits = b->state == CAPS_YIELDED && now < b->retry_ns && !b->released;

    if (b->released) {
        caps_set_state(b, CAPS_RELEASED, "let go on request");
    } else if (!is_wanted(b)) {
        if (!waits || !b->claims.n)
            caps_set_state(b, CAPS_FREE, b->caps->conf.dry_run ? "dry run" : "");
    } else if (!b->caps->act) {
        caps_set_state(b, CAPS_LOST, "there is no actuator");
    } else if (now >= b->retry_ns) {
        ask_hold(b);
    }
}

/* One more step of a ramp, that nobody waits for. */
static bool is_gradual(const struct caps_board *b)
{
    return !ramp_arrived(&b->ramp) && caps_due(b) < b->asked_mw &&
           b->ramp.at_mw != b->verdict.at_once_mw;
}

static void step_held(struct caps_board *b, uint64_t now)
{
    bool wanted = is_wanted(b);

    /* A right that is missing is asked for seldom; the original is asked for at once. */
    if (b->failed && now < b->retry_ns && (wanted || b->state != CAPS_DENIED)) {
        caps_clock_step(b, now);
        return;
    }
    if (!wanted)
        ask_release(b);
    else if (b->failed || (caps_due(b) != b->asked_mw &&
                           (!is_gradual(b) || now >= b->asked_ns + TICK_NS)))
        ask_limit(b, caps_due(b));
    if (wanted)
        caps_clock_step(b, now); /* after the limit, which a budget may need */
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* When something is due again without anybody's doing; CLAIM_FOREVER: never. */
static uint64_t next_ns(const struct caps_board *b, uint64_t now)
{
    uint64_t next = claims_next_ns(&b->claims);
    bool tries = b->link == LINK_NONE
                     ? is_wanted(b) && b->caps->act
                     : b->link == LINK_HELD && b->failed && count_asks(b) < ASKS_MAX;

    if (b->link == LINK_HELD || b->caps->conf.dry_run) {
        uint64_t lower = ramp_next_ns(&b->ramp);
        if (lower != UINT64_MAX)
            next = sooner(next, lower > now + TICK_NS ? lower : now + TICK_NS);
        if (b->link == LINK_HELD && caps_due(b) != b->asked_mw && !b->failed &&
            count_asks(b) < ASKS_MAX)
            next = sooner(next, b->asked_ns + TICK_NS);
        if (b->stay_ns && !b->counted)
            next = sooner(next, b->stay_ns + STAY_NS);
    }
    next = sooner(next, caps_clock_next_ns(b, now));
    if (tries || (b->link == LINK_NONE && b->state == CAPS_YIELDED))
        next = sooner(next, b->retry_ns);
    if (b->released && b->back_ns != CLAIM_FOREVER)
        next = sooner(next, b->back_ns);
    if (b->release_fn && b->link == LINK_NONE)
        next = now;
    return next;
}

void caps_step(struct caps_board *b)
{
    uint64_t now = now_of(b);

    if (b->released && now >= b->back_ns) {
        b->released = false;
        b->sure = false; /* a reset changes what is set */
    }
    b->keeps = caps_budget_keeps(b);
    decide(b, now);
    if (b->link == LINK_NONE)
        step_none(b, now);
    else if (b->link == LINK_HELD)
        step_held(b, now);
    if (b->caps->conf.dry_run && b->verdict.target_mw != b->dry_mw) {
        b->dry_mw = b->verdict.target_mw;
        caps_tell(b, CAPS_EVENT_CAP, claims_find(&b->claims, b->verdict.claim),
                  "dry run: not written");
    }
    uint64_t next = next_ns(b, now);
    if (next != CLAIM_FOREVER)
        loop_timer_set(b->timer, next, 0);
    caps_budget_kick(b->caps);
}
