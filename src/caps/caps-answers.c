/* What the actuator answers for a board, and what becomes of it. */
#include <errno.h>
#include <stdio.h>

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

/* A budget's claim allows less than what is in force, as far as that is known. */
static bool is_overspent(const struct caps_board *b)
{
    return b->verdict.most_mw < b->bounds.original_mw &&
           (!b->enforced_mw || b->enforced_mw > b->verdict.most_mw);
}

/* Until a right that is missing is asked for again: soon for a budget, seldom for what
 * only saves.
 */
static uint64_t denied_ns(struct caps_board *b)
{
    if (is_overspent(b))
        return back_off(b);
    uint64_t ns = DENIED_NS << (b->attempts < 6 ? b->attempts++ : 6);
    return ns < DENIED_MOST_NS ? ns : DENIED_MOST_NS;
}

struct actuator_range caps_range(const struct caps_board *b)
{
    return b->range.max_mw ? b->range
                           : (struct actuator_range){b->limits.min_mw, b->limits.max_mw};
}

static void take_range(struct caps_board *b, const struct actuator_range *range)
{
    b->range = *range;
    b->bounds.min_mw = caps_range(b).min_mw;
    b->bounds.max_mw = caps_range(b).max_mw;
}

/* Each answer on a board that was looked at tells it. */
static void note_range(struct caps_board *b, const struct actuator_reply *reply)
{
    if (reply->range.max_mw)
        take_range(b, &reply->range);
}

/* restored: by the actuator's word. */
static void unlink_board(struct caps_board *b, bool restored)
{
    b->link = LINK_NONE;
    b->failed = false;
    b->set_mw = b->asked_mw = b->seen_mw = 0;
    b->settled_ns = now_of(b);
    b->stay_ns = 0;
    caps_clock_unlinked(b, restored);
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
        b->unrestored = false;
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
    b->again = false;
    b->attempts = 0;
    b->retry_ns = 0;
    take_range(b, &(struct actuator_range){0}); /* the next one's may be another */
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
    b->link = LINK_NONE;
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
    /* Another's limit in between does not undo what had been walked. */
    bool resumed = b->again && reply->original_mw == b->bounds.original_mw &&
                   b->caps->conf.others == CAPS_REASSERT;

    b->link = LINK_HELD;
    b->held_ns = b->settled_ns = now;
    b->again = false;
    b->unrestored = true;
    b->attempts = 0;
    b->failed_with = ACTUATOR_DONE;
    b->other_mw = 0;
    b->sure = true;
    if (reply->original_mw)
        b->bounds.original_mw = reply->original_mw;
    if (reply->limits.max_mw)
        b->limits = reply->limits;
    take_range(b, &reply->range);
    /* What is set, not what heat leaves of it for a while: that comes back by itself. */
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
    caps_clock_held(b, reply->locked_mhz);
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

    /* It may be in force, though a newer one is on its way: until that is answered nobody
     * can tell what is, and a budget counts the board at its most.
     */
    if (reply->result == ACTUATOR_UNKNOWN)
        b->set_mw = b->enforced_mw = b->seen_mw = 0;
    if (mw != b->asked_mw) { /* the newer one's answer decides what to do */
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
    /* Where the driver rounds, the next sample says what is set. */
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
        return 0; /* it has been let go since */
    note_range(b, reply);
    switch (reply->result) {
    case ACTUATOR_BUSY:
        break;
    case ACTUATOR_DONE:
    case ACTUATOR_CLAMPED:
        caps_clock_told(b, reply->locked_mhz);
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
    unlink_board(b, reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_YIELDED);
    if (reply->result == ACTUATOR_YIELDED) {
        caps_on_yield(b, reply);
    } else if (reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_GONE) {
        b->retry_ns = 0;
        b->sure = b->sure && reply->result == ACTUATOR_DONE;
        caps_tell_cap(b, reply->result == ACTUATOR_DONE ? reply->enforced_mw : 0,
                      reply->text);
    } else { /* the actuator goes on trying */
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
