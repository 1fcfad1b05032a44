/* What others write, and what holds a board under the limit that is set. */
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "caps/caps-inside.h"

enum {
    REASSERT_DOUBLINGS = 6, /* 64 times the first wait, no longer */
    ROUNDING_MW = 5000,     /* a driver may round what it is asked for */
};

static uint64_t reassert_ns(const struct caps_board *b)
{
    uint64_t ns = b->caps->conf.reassert_ns;

    return ns ? ns : 10 * NS_PER_S;
}

static uint64_t yield_ns(const struct caps_board *b)
{
    uint64_t ns = b->caps->conf.yield_ns;

    return ns ? ns : 600 * NS_PER_S;
}

/* What keeps the enforced limit under the one that is set. */
static enum caps_cause bound_cause(uint64_t reasons)
{
    return reasons & (GPU_REASON_SW_THERMAL | GPU_REASON_HW_THERMAL) ? CAPS_CAUSE_THERMAL
                                                                     : CAPS_CAUSE_BOARD;
}

static enum caps_cause cause_of(const struct caps_board *b, uint32_t mw,
                                enum actuator_why why)
{
    enum {
        HELD_DOWN = GPU_REASON_HW_SLOWDOWN | GPU_REASON_SW_THERMAL |
                    GPU_REASON_HW_THERMAL | GPU_REASON_HW_POWER_BRAKE
    };

    if (why == ACTUATOR_WHY_RELOADED || b->reloaded)
        return CAPS_CAUSE_DRIVER;
    if (b->info->has_persistence && !b->info->persistence && mw == b->limits.default_mw)
        return CAPS_CAUSE_PERSISTENCE;
    /* Where the driver tells the enforced limit alone, a lower one may be nobody's. */
    if (!b->told && (b->reasons & HELD_DOWN) && mw < b->asked_mw)
        return bound_cause(b->reasons);
    return CAPS_CAUSE_OTHER;
}

static const char *cause_text(enum caps_cause cause)
{
    static const char *const texts[CAPS_CAUSES] = {
        [CAPS_CAUSE_OTHER] = "somebody else has set the limit",
        [CAPS_CAUSE_DRIVER] = "the driver was loaded anew",
        [CAPS_CAUSE_PERSISTENCE] = "persistence mode is off, the driver has forgotten it",
        [CAPS_CAUSE_THERMAL] = "heat keeps the limit in force down",
        [CAPS_CAUSE_BOARD] = "the board's management keeps the limit in force down",
    };
    return texts[cause];
}

static void tell_other(struct caps_board *b, enum caps_cause cause, uint32_t mw)
{
    char text[200];

    b->changes[cause]++;
    (void)snprintf(text, sizeof text, "%s: %s: it is %" PRIu32 " mW", b->info->uuid,
                   cause_text(cause), mw);
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

/* Another's limit, counted once however often it is seen; 0: the next sample tells it. */
static enum caps_cause note_other(struct caps_board *b, uint32_t mw,
                                  enum actuator_why why)
{
    enum caps_cause cause = cause_of(b, mw, why);

    if (mw && mw != b->other_mw) {
        tell_other(b, cause, mw);
        b->other_mw = mw;
    }
    return cause;
}

/* Nobody's will: what we had set is gone, and is set again at once.  Persistence mode
 * may be a guess; where the default limit is back soon after, somebody wants it.
 */
static bool is_forgotten(struct caps_board *b, enum caps_cause cause, uint64_t now)
{
    if (cause != CAPS_CAUSE_PERSISTENCE)
        return cause == CAPS_CAUSE_DRIVER;
    bool again = b->forgot_ns && now - b->forgot_ns < yield_ns(b);
    b->forgot_ns = now;
    return !again;
}

/* How long theirs stays, and what is our original from now on. */
static uint64_t yield_for(struct caps_board *b, enum caps_cause cause, uint32_t mw,
                          uint64_t now)
{
    bool reassert = b->caps->conf.others == CAPS_REASSERT;

    if (mw && (!reassert || cause == CAPS_CAUSE_DRIVER)) {
        b->bounds.original_mw = mw;
        b->sure = true;
    }
    if (is_forgotten(b, cause, now))
        return 0;
    if (!reassert)
        return yield_ns(b);
    if (b->held_ns && now - b->held_ns > reassert_ns(b) << REASSERT_DOUBLINGS)
        b->reasserts = 0; /* peace for long: that one was another quarrel */
    uint64_t wait_ns = reassert_ns(b) << b->reasserts;
    b->reasserts += b->reasserts < REASSERT_DOUBLINGS;
    return wait_ns;
}

void caps_on_yield(struct caps_board *b, const struct actuator_reply *what)
{
    uint64_t now = loop_now_ns(b->caps->loop);
    /* One that was left alone already comes back without its value. */
    uint32_t mw = what->enforced_mw ? what->enforced_mw : b->other_mw;
    char text[200], limit[32] = "";

    if (b->link == LINK_HOLDING || (b->link == LINK_NONE && b->state == CAPS_YIELDED))
        return; /* the answer and the event tell the same */
    enum caps_cause cause = note_other(b, mw, what->why);
    uint64_t wait_ns = yield_for(b, cause, mw, now);

    b->link = LINK_NONE;
    caps_clock_unlinked(b, true);
    b->failed = false;
    b->set_mw = b->asked_mw = b->seen_mw = 0;
    b->settled_ns = now;
    b->stay_ns = 0;
    b->again = true;
    b->unrestored = false;
    b->retry_ns = now + wait_ns;
    if (what->enforced_mw)
        caps_tell_cap(b, what->enforced_mw, "");
    if (!wait_ns) {
        (void)snprintf(text, sizeof text, "%s: set again at once", cause_text(cause));
        caps_set_state(b, CAPS_HOLDING, text);
        return;
    }
    if (mw)
        (void)snprintf(limit, sizeof limit, ": %" PRIu32 " mW", mw);
    (void)snprintf(text, sizeof text, "%s%s; %s in %.0f s", cause_text(cause), limit,
                   b->caps->conf.others == CAPS_REASSERT ? "overwritten" : "tried again",
                   s_of_ns(wait_ns));
    caps_set_state(b, CAPS_YIELDED, text);
}

/* ---- samples ---- */

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
        b->set_mw = seen->set_mw; /* as the driver has rounded it */
    if (b->set_mw && seen->set_mw != b->set_mw)
        (void)note_other(b, seen->set_mw, ACTUATOR_WHY_OTHER); /* the actuator sees it
                                                                * too, and yields */
}

/* Nobody of ours holds it: what is set is the original.  True when it is another. */
static bool compare_free(struct caps_board *b, const struct seen *seen, uint64_t at_ns)
{
    uint64_t since_ns =
        b->settled_ns > b->caps->began_ns ? b->settled_ns : b->caps->began_ns;
    bool same = seen->set_mw == b->bounds.original_mw;

    if ((b->sure && same) || (!b->sure && at_ns < since_ns + SETTLING_NS))
        return false;
    if (b->sure)
        (void)note_other(b, seen->set_mw, ACTUATOR_WHY_OTHER);
    b->sure = true;
    b->bounds.original_mw = seen->set_mw;
    return true;
}

/* Another's limit is left alone.  True when it is another, and our original now. */
static bool compare_yielded(struct caps_board *b, const struct seen *seen)
{
    if (seen->set_mw == b->other_mw)
        return false;
    (void)note_other(b, seen->set_mw, ACTUATOR_WHY_OTHER);
    if (b->caps->conf.others != CAPS_YIELD)
        return false;
    b->bounds.original_mw = seen->set_mw;
    return true;
}

/* Under what is set: counted when it begins. */
static void compare_bound(struct caps_board *b, const struct seen *seen)
{
    bool bounded =
        seen->enforced_mw < seen->set_mw && !is_near(seen->enforced_mw, seen->set_mw);

    if (bounded && !b->bounded)
        tell_other(b, bound_cause(b->reasons), seen->enforced_mw);
    b->bounded = bounded;
}

static bool is_asking(const struct caps_board *b)
{
    for (size_t i = 0; i < ASKS_MAX; i++)
        if (b->ask[i].mw)
            return true;
    return b->link == LINK_HOLDING || b->link == LINK_RELEASING;
}

static void note_sample(struct caps_board *b, const struct gpu_sample *sample)
{
    b->told = sample->has & GPU_HAS_REQUESTED;
    if (sample->has & GPU_HAS_REASONS)
        b->reasons = sample->reasons;
    if (sample->has & GPU_HAS_ENERGY) {
        b->reloaded = b->reloaded || sample->energy_mj < b->energy_mj;
        b->energy_mj = sample->energy_mj;
    }
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
    if (seen->set_mw != b->seen_mw)
        caps_budget_kick(b->caps);
    b->seen_mw = seen->set_mw;
    caps_tell_cap(b, seen->enforced_mw, "");
    b->reloaded = false; /* what it explains came with it */
    if (another)
        caps_step(b);
}

void caps_on_sample(struct caps_board *b, const struct gpu_sample *sample)
{
    struct seen seen = {0};

    caps_clock_sample(b, sample);
    if (!(sample->has & (GPU_HAS_ENFORCED | GPU_HAS_REQUESTED)))
        return;
    note_sample(b, sample);
    if (sample->has & GPU_HAS_ENFORCED)
        seen.enforced_mw = sample->enforced_mw;
    seen.set_mw = b->told ? sample->requested_mw : seen.enforced_mw;
    if (!seen.enforced_mw)
        seen.enforced_mw = seen.set_mw;
    if (seen.set_mw && !is_asking(b) && sample->began_ns >= b->settled_ns)
        compare(b, &seen, sample->at_ns);
}
