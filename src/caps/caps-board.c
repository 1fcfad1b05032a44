/* One board: from its claims and samples to requests to the actuator. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "actuator/core.h"
#include "base/names.h"
#include "base/units.h"
#include "caps/caps-inside.h"
#include "caps/claim-sources.h"

static uint64_t now_of(const struct caps_board *b)
{
    return loop_now_ns(b->caps->loop);
}

struct actuator_range caps_range(const struct caps_board *b)
{
    if (b->told && b->link != LINK_HELD) /* depends on the original, which may change */
        return core_told_range(&b->from, &b->to, &b->limits, b->bounds.original_mw);
    return b->range.max_mw ? b->range
                           : (struct actuator_range){b->limits.min_mw, b->limits.max_mw};
}

void caps_set_original(struct caps_board *b, uint32_t mw)
{
    b->bounds.original_mw = mw;
    const struct actuator_range range = caps_range(b);
    b->bounds.min_mw = range.min_mw;
    b->bounds.max_mw = range.max_mw;
}

struct clock_lock_now caps_clock_now(const struct caps_board *b)
{
    return (struct clock_lock_now){.at_ns = now_of(b),
                                   .on = b->caps->conf.clocks,
                                   .held = b->link == LINK_HELD,
                                   .counted = b->counted,
                                   .cls = caps_class(b)};
}

const struct cap_class *caps_class(const struct caps_board *b)
{
    return b->has_cls ? &b->cls : &b->caps->conf.cls;
}

/* ---- reports ---- */

void caps_moved(const struct caps_board *b)
{
    for (struct caps_listener *l = b->caps->listeners; l; l = l->next)
        l->moved(b->at, l->user);
}

void caps_over(const struct caps_board *b, uint64_t claim)
{
    for (struct caps_listener *l = b->caps->listeners; l; l = l->next)
        l->over(b->at, claim, l->user);
}

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
    caps_moved(b);
}

void caps_tell_cap(struct caps_board *b, uint32_t enforced_mw, const char *text)
{
    bool moved = enforced_mw != b->enforced_mw;

    b->enforced_mw = enforced_mw;
    if (moved)
        caps_moved(b);
    if (enforced_mw == b->told_mw)
        return;
    b->told_mw = enforced_mw;
    caps_tell(b, CAPS_EVENT_CAP, claims_find(&b->claims, b->verdict.claim), text);
}

void caps_tell_clock(const struct caps_board *b, enum caps_event event, const char *text)
{
    const struct caps_what what = {
        .event = event,
        .board = b->at,
        .at_ns = now_of(b),
        .claim = claims_find(&b->claims, b->clock.verdict.claim),
        .target_mw = b->verdict.target_mw,
        .enforced_mw = b->enforced_mw,
        .clock_mhz = b->clock.locked_mhz,
        .text = text,
    };

    b->caps->on_event(&what, b->caps->user);
}

void caps_set_state(struct caps_board *b, enum caps_state state, const char *text)
{
    bool new = state != b->state;

    b->state = state;
    (void)snprintf(b->text, sizeof b->text, "%s", text);
    if (new)
        caps_tell(b, CAPS_EVENT_STATE, NULL, b->text);
}

/* ---- decisions ---- */

static void tell_expired(const struct claim *claim, void *user)
{
    struct caps_board *b = user;

    caps_tell(b, CAPS_EVENT_EXPIRE, claim, "");
    caps_over(b, claim->id);
    if (claim->mhz)
        clock_lock_hurry(&b->clock);
    if (claim->kind != CLAIM_SOFT)
        caps_hurry(b);
}

/* The ramp stops while its limits cannot be written.  Exception: no limit of this daemon
 * is in force and the actuator refuses high ones (root's range): only lower ones can be
 * set.
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

/* Whether a stop at the first cap ends by time. */
static bool is_timed(const struct caps_board *b)
{
    return !b->verdict.way.own && !b->counted;
}

static void follow_ramp(struct caps_board *b, uint64_t now)
{
    const struct cap_class *cls = caps_class(b);

    if (!is_walked(b))
        b->ramp.at_ns = now;
    (void)cap_walk(&b->ramp, &b->verdict, cls, b->limits.default_mw, b->peak_mw, now);
    cap_stop_step(&b->stop, &b->ramp, b->verdict.claim, is_timed(b), now);
}

static void decide(struct caps_board *b, uint64_t now)
{
    (void)claims_expire(&b->claims, now, tell_expired, b);
    b->bounds.floor_mw = (uint32_t)lround(caps_class(b)->floor * (double)b->demand_mw);
    cap_decide(&b->claims, &b->bounds, &b->verdict);
    struct clock_lock_now clock_now = caps_clock_now(b);
    clock_lock_decide(&b->clock, &b->claims, &clock_now);
    if (b->link == LINK_HELD || b->caps->conf.dry_run)
        follow_ramp(b, now);
}

/* Whether a claim keeps the board held, whatever its value. */
static bool is_kept(const struct caps_board *b)
{
    for (size_t i = 0; i < b->claims.n; i++)
        if (claim_source_row(b->claims.claim[i].source)->may & MAY_KEEP)
            return true;
    return false;
}

/* Whether the actuator should hold the board.  After an earlier daemon the original is
 * unknown, so every claim counts.
 */
static bool is_wanted(const struct caps_board *b)
{
    if (!b->can_cap || b->caps->ending || b->caps->conf.dry_run ||
        (b->released && !b->keeps))
        return false;
    if (b->caps->conf.always_hold)
        return true;
    if (!b->sure || b->caps->conf.hold_claimed)
        return b->claims.n > 0;
    return b->verdict.target_mw != b->bounds.original_mw ||
           clock_lock_is_wanted(&b->clock, b->caps->conf.clocks) || is_kept(b);
}

void caps_hurry(struct caps_board *b)
{
    b->retry_ns = 0;
    b->attempts = 0;
}

/* ---- requests ---- */

/* The request could not be sent: tries again soon. */
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
    b->writing = false;
    int r = b->others.again
                ? actuator_hold_again(act, b->info->uuid, keep, caps_on_hold, b)
                : actuator_hold(act, b->info->uuid, caps_on_hold, b);
    if (r == 0) {
        /* The state after a failure is kept until the retry is answered. */
        if (b->state == CAPS_FREE ||
            (b->failed_with == ACTUATOR_DONE && !b->others.again))
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
        return; /* the next answer makes room and steps again */
    while (ask->mw)
        ask++;
    ask->mw = mw;
    ask->at_ns = now_of(b);
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

void caps_progress(struct caps_board *b, uint64_t claim, unsigned units)
{
    /* Steps before the answer ran under another limit. */
    bool answered = b->asked_mw == caps_due(b) && !count_asks(b) && is_walked(b);

    if (claim != (b->verdict.way.own ? b->verdict.claim : 0))
        return;
    if (b->ramp.waiting && (answered || b->caps->conf.dry_run))
        cap_stop_units(&b->stop, &b->ramp, &b->verdict.way, units, now_of(b));
}

/* Not held: requests a hold where one is wanted and may be requested now. */
static void step_none(struct caps_board *b, uint64_t now)
{
    bool waits = b->state == CAPS_YIELDED && now < b->retry_ns && !b->released;

    if (b->released) {
        caps_set_state(b, CAPS_RELEASED, "released by an administrator");
    } else if (!is_wanted(b)) {
        if (!waits || !b->claims.n)
            caps_set_state(b, CAPS_FREE, b->caps->conf.dry_run ? "dry run" : "");
    } else if (!b->caps->act) {
        caps_set_state(b, CAPS_LOST,
                       b->caps->absent[0] ? b->caps->absent
                                          : "not connected to the actuator");
    } else if (now >= b->retry_ns) {
        ask_hold(b);
    }
}

/* Whether the next change is an ordinary step of the ramp, which may be delayed. */
static bool is_gradual(const struct caps_board *b)
{
    return !ramp_arrived(&b->ramp) && caps_due(b) < b->asked_mw &&
           b->ramp.at_mw != b->verdict.at_once_mw;
}

static void step_clock(struct caps_board *b, uint64_t now)
{
    struct clock_lock *k = &b->clock;
    struct clock_lock_now clock_now = caps_clock_now(b);
    uint32_t mhz = 0;

    if (!clock_lock_is_due(k, &clock_now, &mhz))
        return;
    int r = actuator_set_clocks(b->caps->act, b->info->uuid, mhz ? k->bounds.min_mhz : 0,
                                mhz, caps_on_clocks, b);
    clock_lock_asked(k, mhz, r, now);
}

static void step_held(struct caps_board *b, uint64_t now)
{
    bool wanted = is_wanted(b);

    /* A missing right is retried rarely; the original is requested at once. */
    if (b->failed && now < b->retry_ns && (wanted || b->state != CAPS_DENIED)) {
        step_clock(b, now);
        return;
    }
    if (!wanted)
        ask_release(b);
    else if (b->failed || (caps_due(b) != b->asked_mw &&
                           (!is_gradual(b) || now >= b->asked_ns + CAPS_TICK_NS)))
        ask_limit(b, caps_due(b));
    if (wanted)
        step_clock(b, now); /* after the limit, as a budget may depend on that */
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* When the next step is due without an event; CLAIM_FOREVER: never. */
static uint64_t next_ns(const struct caps_board *b, uint64_t now)
{
    uint64_t next = claims_next_ns(&b->claims);
    bool tries = b->link == LINK_NONE
                     ? is_wanted(b) && b->caps->act
                     : b->link == LINK_HELD && b->failed && count_asks(b) < ASKS_MAX;

    if (b->link == LINK_HELD || b->caps->conf.dry_run) {
        uint64_t lower = ramp_next_ns(&b->ramp);
        if (lower != UINT64_MAX)
            next = sooner(next, lower > now + CAPS_TICK_NS ? lower : now + CAPS_TICK_NS);
        if (b->link == LINK_HELD && caps_due(b) != b->asked_mw && !b->failed &&
            count_asks(b) < ASKS_MAX)
            next = sooner(next, b->asked_ns + CAPS_TICK_NS);
        next = sooner(next, cap_stop_next_ns(&b->stop, is_timed(b)));
    }
    struct clock_lock_now clock_now = caps_clock_now(b);
    next = sooner(next, clock_lock_next_ns(&b->clock, &clock_now));
    if (tries || (b->link == LINK_NONE && b->state == CAPS_YIELDED))
        next = sooner(next, b->retry_ns);
    if (b->released && b->back_ns != CLAIM_FOREVER)
        next = sooner(next, b->back_ns);
    if (b->release_fn && b->link == LINK_NONE)
        next = now;
    return next;
}

/* Whether a listener wants a released board held for now. */
static bool keeps(const struct caps_board *b)
{
    bool any = false;

    for (struct caps_listener *l = b->caps->listeners; l; l = l->next)
        any |= l->keeps && l->keeps(b->at, b->released, b->link == LINK_HELD, l->user);
    return any;
}

void caps_step(struct caps_board *b)
{
    uint64_t now = now_of(b);

    if (b->released && now >= b->back_ns) {
        b->released = false;
        b->sure = false; /* a reset may have changed the limit */
    }
    b->keeps = keeps(b);
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
    caps_moved(b);
}

/* ---- limits that may be in force ---- */

static uint32_t higher(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw > b_mw ? a_mw : b_mw;
}

/* The highest limit that any program can set (root's range does not bind others); where
 * the board reports none, that of the other boards; 0: no board reports one.
 */
static uint32_t most_of(const struct caps_board *b)
{
    const struct caps *c = b->caps;
    uint32_t most = b->limits.max_mw;

    for (size_t i = 0; !b->limits.max_mw && i < c->n; i++)
        most = higher(most, c->board[i].limits.max_mw);
    return higher(most, higher(b->enforced_mw, b->seen_mw));
}

static bool is_fixed(const struct caps_board *b)
{
    return !b->can_cap || b->silent;
}

/* The highest limit read back, or requested and not answered. */
static uint32_t held_at(const struct caps_board *b)
{
    uint32_t mw = higher(b->enforced_mw, b->seen_mw);

    mw = higher(mw, higher(b->set_mw, b->asked_mw));
    for (size_t k = 0; k < ASKS_MAX; k++)
        mw = higher(mw, b->ask[k].mw);
    return b->enforced_mw ? mw : most_of(b);
}

/* The highest limit that may be in force now. */
static uint32_t in_force(const struct caps_board *b)
{
    bool free = b->link == LINK_RELEASING ||
                ((b->link == LINK_NONE || b->link == LINK_HOLDING) &&
                 (b->state == CAPS_FREE || b->state == CAPS_HOLDING));

    if (b->caps->conf.dry_run)
        return b->verdict.target_mw; /* counts as written */
    if (is_fixed(b) || b->released)
        return most_of(b);
    if (b->link == LINK_HELD)
        return held_at(b);
    if (!free || !b->sure)
        return most_of(b); /* another program's limit, or unknown */
    return higher(b->bounds.original_mw, higher(b->enforced_mw, b->seen_mw));
}

/* The highest power that the board can use. */
static uint32_t use_of(const struct caps_board *b)
{
    uint32_t mw = b->sure ? b->bounds.original_mw : b->limits.max_mw;

    return higher(mw, b->bounds.min_mw);
}

void caps_force(const struct caps *c, size_t board, struct caps_force *ret)
{
    *ret = (struct caps_force){.fixed = true};
    if (board >= c->n)
        return;
    const struct caps_board *b = &c->board[board];

    *ret = (struct caps_force){
        .index = b->info->index,
        .in_force_mw = in_force(b),
        .set_mw = higher(b->enforced_mw, b->seen_mw),
        .most_mw = most_of(b),
        .min_mw = b->bounds.min_mw,
        .own_min_mw = b->limits.min_mw,
        .use_mw = use_of(b),
        .top_mw = b->sure ? b->bounds.max_mw : 0,
        .want_mw = b->share.want_mw,
        .group = b->share.group,
        .fixed = is_fixed(b),
        .silent = b->silent && !b->limits.max_mw,
        .full = b->claims.n == CLAIMS_MAX,
        .released = b->released,
        .lost = b->state == CAPS_LOST && b->link == LINK_NONE && b->caps->act,
        .dry_run = b->caps->conf.dry_run,
    };
}

/* ---- samples ---- */

enum { ROUNDING_MW = 5000 }; /* a driver may round the requested limit */

static void tell_other(struct caps_board *b, enum caps_cause cause, uint32_t mw)
{
    char text[200];

    b->others.changes[cause]++;
    (void)snprintf(text, sizeof text, "%s: %s: %" PRIu32 " mW is in force", b->info->uuid,
                   names_text(NAMES_CAP_CAUSE, cause), mw);
    const struct caps_what what = {.event = CAPS_EVENT_OTHER,
                                   .board = b->at,
                                   .at_ns = loop_now_ns(b->caps->loop),
                                   .claim = claims_find(&b->claims, b->verdict.claim),
                                   .target_mw = b->verdict.target_mw,
                                   .enforced_mw = mw,
                                   .cause = cause,
                                   .text = text};
    b->caps->on_event(&what, b->caps->user);
}

enum caps_cause caps_note_other(struct caps_board *b, uint32_t mw, enum actuator_why why)
{
    const struct other_change change = {.info = b->info,
                                        .default_mw = b->limits.default_mw,
                                        .asked_mw = b->asked_mw,
                                        .mw = mw,
                                        .why = why};
    enum caps_cause cause = other_writers_cause(&b->others, &change);

    if (mw && mw != b->others.mw) {
        tell_other(b, cause, mw);
        b->others.mw = mw;
    }
    return cause;
}

struct seen {
    uint32_t set_mw, enforced_mw;
};

static bool is_near(uint32_t a_mw, uint32_t b_mw)
{
    return (a_mw > b_mw ? a_mw - b_mw : b_mw - a_mw) <= ROUNDING_MW;
}

static void compare_held(struct caps_board *b, const struct seen *seen)
{
    if (!b->set_mw && is_near(seen->set_mw, b->asked_mw))
        b->set_mw = seen->set_mw; /* as rounded by the driver */
    if (b->set_mw && seen->set_mw != b->set_mw)
        (void)caps_note_other(b, seen->set_mw,
                              ACTUATOR_WHY_OTHER); /* the actuator sees it
                                                    * too, and yields */
}

void caps_take_other(struct caps_board *b, uint32_t mw)
{
    if (b->sure)
        (void)caps_note_other(b, mw, ACTUATOR_WHY_OTHER);
    b->sure = true;
    caps_set_original(b, mw);
}

/* Asks the actuator whether another Underwatt has set this limit: caps_on_looked().
 * False: it cannot be asked.
 */
static bool ask_look(struct caps_board *b, uint32_t mw)
{
    struct actuator *act = b->caps->act;

    if (!act || actuator_look(act, caps_on_looked, b) < 0)
        return false;
    b->look_mw = mw;
    return true;
}

/* Not held: the limit that is set is the original.  True when it has changed. */
static bool compare_free(struct caps_board *b, const struct seen *seen, uint64_t at_ns)
{
    uint64_t since_ns =
        b->settled_ns > b->caps->began_ns ? b->settled_ns : b->caps->began_ns;
    bool same = seen->set_mw == b->bounds.original_mw;

    if (b->holder.there || b->look_mw)
        return false;
    if ((b->sure && same) || (!b->sure && at_ns < since_ns + SETTLING_NS))
        return false;
    if (b->sure && ask_look(b, seen->set_mw))
        return false;
    caps_take_other(b, seen->set_mw);
    return true;
}

/* The original was read after a hold that the driver has not answered.  True: news. */
static bool compare_unanswered(struct caps_board *b, const struct seen *seen)
{
    if (!b->unanswered || !b->sure || seen->set_mw != b->bounds.original_mw)
        return false;
    b->unanswered = false; /* its write only sets the original */
    return true;
}

/* Yielded: another program's limit is left alone.  True if it is the new original. */
static bool compare_yielded(struct caps_board *b, const struct seen *seen)
{
    if (seen->set_mw == b->others.mw || b->holder.there)
        return false;
    (void)caps_note_other(b, seen->set_mw, ACTUATOR_WHY_OTHER);
    if (b->caps->conf.others != CAPS_YIELD)
        return false;
    caps_set_original(b, seen->set_mw);
    return true;
}

/* Counts when the enforced limit falls below the one that is set. */
static void compare_bound(struct caps_board *b, const struct seen *seen)
{
    bool bounded =
        seen->enforced_mw < seen->set_mw && !is_near(seen->enforced_mw, seen->set_mw);

    if (bounded && !b->others.bounded)
        tell_other(b, other_writers_bound(&b->others), seen->enforced_mw);
    b->others.bounded = bounded;
}

static bool is_asking(const struct caps_board *b)
{
    for (size_t i = 0; i < ASKS_MAX; i++)
        if (b->ask[i].mw)
            return true;
    return b->link == LINK_HOLDING || b->link == LINK_RELEASING;
}

static void compare(struct caps_board *b, const struct seen *seen, uint64_t at_ns)
{
    bool another = false;

    if (b->link == LINK_HELD)
        compare_held(b, seen);
    else if (b->state == CAPS_FREE || b->state == CAPS_DENIED)
        another = compare_free(b, seen, at_ns);
    else if (b->state == CAPS_YIELDED)
        another = compare_yielded(b, seen);
    compare_bound(b, seen);
    bool moved = compare_unanswered(b, seen) || seen->set_mw != b->seen_mw;
    b->seen_mw = seen->set_mw;
    if (moved)
        caps_moved(b);
    caps_tell_cap(b, seen->enforced_mw, "");
    b->others.reloaded = false; /* explains changes of this sample only */
    if (another)
        caps_step(b);
}

void caps_on_sample(struct caps_board *b, const struct gpu_sample *sample)
{
    struct seen seen = {0};

    if (clock_lock_sample(&b->clock, b->info->uuid, sample)) {
        caps_tell_clock(b, CAPS_EVENT_FAIL, b->clock.text);
        caps_step(b);
    }
    if (!(sample->has & (GPU_HAS_ENFORCED | GPU_HAS_REQUESTED)))
        return;
    other_writers_sample(&b->others, sample);
    if (sample->has & GPU_HAS_ENFORCED)
        seen.enforced_mw = sample->enforced_mw;
    seen.set_mw = b->others.told ? sample->requested_mw : seen.enforced_mw;
    if (!seen.enforced_mw)
        seen.enforced_mw = seen.set_mw;
    if (seen.set_mw && !is_asking(b) && sample->began_ns >= b->settled_ns)
        compare(b, &seen, sample->at_ns);
}
