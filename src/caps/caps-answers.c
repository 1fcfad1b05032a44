/* The actuator's answers for a board, and their effects. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/names.h"
#include "base/units.h"
#include "caps/caps-inside.h"

static uint64_t now_of(const struct caps_board *b)
{
    return loop_now_ns(b->caps->loop);
}

void caps_try_again(struct caps_board *b, uint64_t wait_ns)
{
    b->retry_ns = now_of(b) + wait_ns;
}

/* 0.5 s, doubled to 32 s. */
static uint64_t back_off(struct caps_board *b)
{
    return NS_PER_S / 2 << (b->attempts < 6 ? b->attempts++ : 6);
}

/* Whether a budget's claim allows less than the limit in force, or that limit is
 * unknown.
 */
static bool is_overspent(const struct caps_board *b)
{
    return b->verdict.most_mw < b->bounds.original_mw &&
           (!b->enforced_mw || b->enforced_mw > b->verdict.most_mw);
}

/* Delay before a missing right is tried again: short for a budget, long for a saving. */
static uint64_t denied_ns(struct caps_board *b)
{
    if (is_overspent(b))
        return back_off(b);
    uint64_t ns = CAPS_DENIED_NS << (b->attempts < 6 ? b->attempts++ : 6);
    return ns < CAPS_DENIED_MOST_NS ? ns : CAPS_DENIED_MOST_NS;
}

static void take_range(struct caps_board *b, const struct actuator_range *range)
{
    b->range = *range;
    caps_set_original(b, b->bounds.original_mw);
}

/* Every answer about a board that the actuator examined contains the range. */
static void note_range(struct caps_board *b, const struct actuator_reply *reply)
{
    if (reply->range.max_mw)
        take_range(b, &reply->range);
}

/* restored: confirmed by the actuator. */
static void unlink_board(struct caps_board *b, bool restored)
{
    b->link = LINK_NONE;
    caps_set_original(b, b->bounds.original_mw);
    b->failed = false;
    b->set_mw = b->asked_mw = b->seen_mw = 0;
    b->settled_ns = now_of(b);
    b->stop = (struct cap_stop){0};
    if (clock_lock_unlinked(&b->clock, restored, now_of(b)))
        caps_tell_clock(b, CAPS_EVENT_CLOCK, "");
}

/* How long another program's limit is left alone; it may become the original. */
static uint64_t yield_for(struct caps_board *b, enum caps_cause cause, uint32_t mw,
                          uint64_t now)
{
    if (mw && (b->caps->conf.others != CAPS_REASSERT || cause == CAPS_CAUSE_DRIVER)) {
        caps_set_original(b, mw);
        b->sure = true;
    }
    return other_writers_wait_ns(&b->others, &b->caps->conf, cause, now);
}

void caps_on_yield(struct caps_board *b, const struct actuator_reply *what)
{
    uint64_t now = loop_now_ns(b->caps->loop);
    /* A limit that is already left alone is reported without its value. */
    uint32_t mw = what->enforced_mw ? what->enforced_mw : b->others.mw;
    char text[200], limit[32] = "";

    if (b->link == LINK_HOLDING || (b->link == LINK_NONE && b->state == CAPS_YIELDED))
        return; /* answer and event report the same yield */
    enum caps_cause cause = caps_note_other(b, mw, what->why);
    uint64_t wait_ns = yield_for(b, cause, mw, now);

    unlink_board(b, true);
    b->others.again = true;
    b->unrestored = b->unanswered = false;
    b->retry_ns = now + wait_ns;
    if (what->enforced_mw)
        caps_tell_cap(b, what->enforced_mw, "");
    if (!wait_ns) {
        (void)snprintf(text, sizeof text, "%s: set again at once",
                       names_text(NAMES_CAP_CAUSE, cause));
        caps_set_state(b, CAPS_HOLDING, text);
        return;
    }
    if (mw)
        (void)snprintf(limit, sizeof limit, ": %" PRIu32 " mW", mw);
    if (wait_ns >= CAPS_YIELD_FOREVER_NS)
        (void)snprintf(text, sizeof text, "%s%s", names_text(NAMES_CAP_CAUSE, cause),
                       limit);
    else
        (void)snprintf(
            text, sizeof text, "%s%s; %s in %.0f s", names_text(NAMES_CAP_CAUSE, cause),
            limit, b->caps->conf.others == CAPS_REASSERT ? "overwritten" : "tried again",
            s_of_ns(wait_ns));
    caps_set_state(b, CAPS_YIELDED, text);
}

void caps_on_lost(struct caps_board *b, const struct actuator_reply *what, bool at_once)
{
    bool known = b->link == LINK_NONE && b->state == CAPS_LOST;

    unlink_board(b, what->result == ACTUATOR_DONE);
    b->sure = false;
    if (at_once)
        b->retry_ns = 0;
    else if (!known)
        caps_try_again(b, back_off(b));
    if (what->result == ACTUATOR_DONE)
        b->unrestored = b->unanswered = false;
    caps_tell_cap(b, what->result == ACTUATOR_DONE ? what->enforced_mw : 0, what->text);
    caps_set_state(b, CAPS_LOST, what->text);
}

void caps_cut(struct caps_board *b)
{
    unlink_board(b, false);
    for (size_t i = 0; i < ASKS_MAX; i++)
        b->ask[i].mw = 0;
    b->clock.asking = false;
    b->sure = false;
    b->others.again = false;
    b->attempts = 0;
    b->retry_ns = 0;
    b->look_mw = 0;
    b->holder.there = false;
    b->told = false; /* the next actuator may have another range */
    take_range(b, &(struct actuator_range){0});
}

void caps_on_holder(struct caps_board *b, const struct actuator_reply *what)
{
    bool taken = what->result == ACTUATOR_TAKEN;

    if (b->link == LINK_HELD) /* the answers of the hold have been exact */
        return;
    b->settled_ns = now_of(b); /* the limits before may have been that holder's */
    if (b->holder.there && !taken && b->state == CAPS_LOST) {
        caps_hurry(b); /* a claim waits for the board */
        b->failed_with = ACTUATOR_DONE;
    }
    b->holder.there = taken;
    b->holder.pid = what->pid;
    (void)snprintf(b->holder.text, sizeof b->holder.text, "%.159s", what->text);
    b->told = true;
    b->from = what->from;
    b->to = what->to;
    b->sure |= taken && what->original_mw;
    caps_set_original(b, taken && what->original_mw ? what->original_mw
                                                    : b->bounds.original_mw);
}

int caps_on_looked(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct caps_board *b = user;
    uint32_t mw = b->look_mw;
    bool free = b->link == LINK_NONE &&
                (b->state == CAPS_FREE || b->state == CAPS_DENIED) && !b->holder.there;

    if (act != b->caps->act || !mw)
        return 0;
    b->look_mw = 0;
    if (reply->result == ACTUATOR_DONE && free && mw != b->bounds.original_mw) {
        caps_take_other(b, mw);
        caps_step(b);
    }
    return 0;
}

static void fail_board(struct caps_board *b, enum caps_state state,
                       const struct actuator_reply *reply, uint64_t wait_ns)
{
    b->failures++;
    caps_try_again(b, wait_ns);
    if (b->failed_with != reply->result)
        caps_tell(b, CAPS_EVENT_FAIL, NULL, reply->text);
    b->failed_with = reply->result;
    caps_set_state(b, state, reply->text);
}

static void on_hold_failed(struct caps_board *b, const struct actuator_reply *reply)
{
    bool lost = reply->result == ACTUATOR_GONE && b->writing;

    b->link = LINK_NONE;
    b->taken_by = reply->result == ACTUATOR_TAKEN ? reply->pid : 0;
    if (b->taken_by)
        caps_look_for_holders(b->caps); /* for its name */
    if (reply->result == ACTUATOR_UNKNOWN || lost) {
        b->unanswered = true;
        b->settled_ns = now_of(b);
        caps_tell_cap(b, 0, reply->text);
    }
    switch (reply->result) {
    case ACTUATOR_DENIED:
    case ACTUATOR_REFUSED:
        fail_board(b, CAPS_DENIED, reply, denied_ns(b));
        break;
    case ACTUATOR_YIELDED:
        caps_on_yield(b, reply);
        break;
    default:
        fail_board(b, CAPS_LOST, reply, back_off(b));
        break;
    }
}

static void on_held(struct caps_board *b, const struct actuator_reply *reply)
{
    uint64_t now = now_of(b);
    /* A yield in between does not undo the steps of the ramp. */
    bool resumed = b->others.again && reply->original_mw == b->bounds.original_mw &&
                   b->caps->conf.others == CAPS_REASSERT;

    b->link = LINK_HELD;
    b->holder.there = false;
    b->others.held_ns = b->settled_ns = now;
    b->others.again = false;
    b->unrestored = true;
    b->unanswered = false;
    b->attempts = 0;
    b->failed_with = ACTUATOR_DONE;
    b->others.mw = 0;
    b->sure = true;
    if (reply->original_mw)
        b->bounds.original_mw = reply->original_mw;
    if (reply->limits.max_mw)
        b->limits = reply->limits;
    take_range(b, &reply->range);
    /* The set limit, not one lowered by heat, which is temporary. */
    uint32_t at_mw = reply->set_mw        ? reply->set_mw
                     : reply->enforced_mw ? reply->enforced_mw
                                          : b->bounds.original_mw;
    b->asked_mw = at_mw;
    b->set_mw = 0;
    b->seen_mw = reply->set_mw;
    if (resumed)
        b->ramp.at_ns = now;
    else
        ramp_init(&b->ramp, at_mw, GRAIN_MW, now);
    if (clock_lock_held(&b->clock, reply->locked_mhz, now))
        caps_tell_clock(b, CAPS_EVENT_CLOCK, "");
    caps_tell_cap(b, reply->enforced_mw, "");
    caps_set_state(b, CAPS_HELD, "");
}

int caps_on_hold(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct caps_board *b = user;

    if (act != b->caps->act || b->link != LINK_HOLDING)
        return 0;
    if (reply->result == ACTUATOR_DONE)
        on_held(b, reply);
    else
        on_hold_failed(b, reply);
    caps_step(b);
    caps_check_end(b->caps);
    return 0;
}

static void on_set_failed(struct caps_board *b, uint32_t mw,
                          const struct actuator_reply *reply)
{
    bool denied = reply->result == ACTUATOR_DENIED;

    /* The limit may be in force, and a newer request may be in flight: until that is
     * answered the state is unknown, and a budget counts the board at its most.
     */
    if (reply->result == ACTUATOR_UNKNOWN)
        b->set_mw = b->enforced_mw = b->seen_mw = 0;
    if (mw != b->asked_mw) { /* the answer to the newer request decides */
        b->failures++;
        return;
    }
    b->failed = true;
    fail_board(b, denied ? CAPS_DENIED : CAPS_HELD, reply,
               denied ? denied_ns(b) : back_off(b));
}

static void on_set_done(struct caps_board *b, uint32_t mw,
                        const struct actuator_reply *reply)
{
    b->writes++;
    b->failed = false;
    b->attempts = 0;
    b->failed_with = ACTUATOR_DONE;
    /* After rounding by the driver, the next sample shows what is set. */
    b->set_mw = reply->result == ACTUATOR_DONE ? mw : 0;
    b->seen_mw = reply->set_mw;
    caps_tell_cap(b, reply->enforced_mw, reply->text);
    if (reply->enforced_mw > mw) {
        b->failures++;
        caps_tell(b, CAPS_EVENT_FAIL, NULL, reply->text);
    }
    caps_set_state(b, CAPS_HELD, reply->text);
}

int caps_on_set(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct ask *ask = user;
    struct caps_board *b = ask->board;
    uint32_t mw = ask->mw;

    if (act != b->caps->act || !mw)
        return 0;
    ask->mw = 0;
    b->settled_ns = now_of(b);
    if (b->link != LINK_HELD)
        return 0; /* the board has been released in the meantime */
    note_range(b, reply);
    switch (reply->result) {
    case ACTUATOR_BUSY:
        break;
    case ACTUATOR_DONE:
    case ACTUATOR_CLAMPED:
        b->call_s = s_between(ask->at_ns, now_of(b));
        if (clock_lock_told(&b->clock, reply->locked_mhz, now_of(b)))
            caps_tell_clock(b, CAPS_EVENT_CLOCK, "");
        on_set_done(b, mw, reply);
        break;
    case ACTUATOR_YIELDED:
        caps_on_yield(b, reply);
        break;
    case ACTUATOR_GONE:
        b->failures++;
        caps_on_lost(b, reply, false);
        break;
    default:
        on_set_failed(b, mw, reply);
        break;
    }
    caps_step(b);
    caps_check_end(b->caps);
    return 0;
}

int caps_on_release(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct caps_board *b = user;
    int r = 0;

    if (act != b->caps->act || b->link != LINK_RELEASING)
        return 0;
    /* GONE confirms nothing: an actuator that ends answers this, and then restores. */
    if (reply->result == ACTUATOR_GONE && b->unrestored)
        r = -EIO;
    unlink_board(b, reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_YIELDED);
    if (reply->result == ACTUATOR_YIELDED) {
        caps_on_yield(b, reply);
    } else if (reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_GONE) {
        b->retry_ns = 0;
        b->sure = b->sure && reply->result == ACTUATOR_DONE;
        caps_tell_cap(b, reply->result == ACTUATOR_DONE ? reply->enforced_mw : 0,
                      reply->text);
    } else { /* the actuator keeps trying */
        r = -EIO;
        b->sure = false;
        fail_board(b, CAPS_LOST, reply, back_off(b));
    }
    b->unrestored = r < 0;
    caps_step(b);
    caps_tell_done(b, r, reply->text);
    caps_check_end(b->caps);
    return 0;
}

int caps_on_clocks(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct caps_board *b = user;

    if (act != b->caps->act || !b->clock.asking)
        return 0;
    b->clock.asking = false;
    if (b->link != LINK_HELD)
        return 0; /* the board has been released in the meantime, and its lock reset */
    switch (reply->result) {
    case ACTUATOR_BUSY:
        b->clock.asked_mhz = b->clock.locked_mhz;
        break;
    case ACTUATOR_DONE:
        if (clock_lock_done(&b->clock, reply->locked_mhz, now_of(b)))
            caps_tell_clock(b, CAPS_EVENT_CLOCK, "");
        break;
    case ACTUATOR_YIELDED:
        caps_on_yield(b, reply);
        break;
    case ACTUATOR_GONE:
        caps_on_lost(b, reply, false);
        break;
    default:
        if (clock_lock_failed(&b->clock, reply, now_of(b)))
            caps_tell_clock(b, CAPS_EVENT_FAIL, b->clock.text);
        break;
    }
    caps_step(b);
    caps_check_end(b->caps);
    return 0;
}
