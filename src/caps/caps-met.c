/* The words of caps.h, and what became of a claim of a view. */
#include <stdio.h>

#include "base/units.h"
#include "caps/caps.h"

const char *caps_cause_name(enum caps_cause cause)
{
    static const char *const names[CAPS_CAUSES] = {
        [CAPS_CAUSE_OTHER] = "other",
        [CAPS_CAUSE_DRIVER] = "driver",
        [CAPS_CAUSE_PERSISTENCE] = "persistence",
        [CAPS_CAUSE_THERMAL] = "thermal",
        [CAPS_CAUSE_BOARD] = "board",
    };
    return (unsigned)cause < CAPS_CAUSES ? names[cause] : "?";
}

const char *caps_state_name(enum caps_state state)
{
    static const char *const names[] = {
        [CAPS_FREE] = "free",       [CAPS_HOLDING] = "holding",   [CAPS_HELD] = "held",
        [CAPS_YIELDED] = "yielded", [CAPS_RELEASED] = "released", [CAPS_LOST] = "lost",
        [CAPS_DENIED] = "denied",
    };
    return (unsigned)state < sizeof names / sizeof *names ? names[state] : "?";
}

/* The least that this claim can bring about. */
static uint32_t least_mw(const struct caps_view *v, const struct claim *claim)
{
    uint32_t mw = claim->mw;

    if (claim->kind == CLAIM_SOFT && mw < v->bounds.floor_mw)
        mw = v->bounds.floor_mw;
    return mw < v->bounds.min_mw ? v->bounds.min_mw : mw;
}

/* … of a claim on the clock. */
static uint32_t least_mhz(const struct clock_bounds *k, const struct claim *claim)
{
    uint32_t mhz = claim->mhz;

    if (claim->kind == CLAIM_SOFT && mhz < k->floor_mhz)
        mhz = k->floor_mhz;
    return mhz < k->min_mhz ? k->min_mhz : mhz;
}

static enum caps_met clock_met(const struct caps_view *v, const struct claim *claim,
                               char *text, size_t size)
{
    const struct caps_clock_view *k = &v->clock;
    uint32_t least = least_mhz(&k->bounds, claim);
    bool held = v->state == CAPS_HELD || v->state == CAPS_HOLDING;
    /* A lower lock that stands as ours could not be made. */
    bool refused = k->failed && k->verdict.claim == claim->id;

    if (least >= k->bounds.max_mhz ||
        (k->locked_mhz && k->locked_mhz <= least && !k->given_up && !refused)) {
        (void)snprintf(text, size, "in force");
        return CAPS_MET;
    }
    if (v->dry_run || !k->on || k->failed || !held) {
        (void)snprintf(text, size, "not in force: %s",
                       v->dry_run   ? "dry run"
                       : !k->on     ? "locked clocks are off"
                       : k->failed  ? k->text
                       : v->text[0] ? v->text
                                    : caps_state_name(v->state));
        return CAPS_NOT_MET;
    }
    (void)snprintf(text, size, "on the way");
    return CAPS_COMING;
}

enum caps_met caps_claim_met(const struct caps_view *v, const struct claim *claim,
                             char *text, size_t size)
{
    if (claim->mhz)
        return clock_met(v, claim, text, size);
    bool held = v->state == CAPS_HELD || v->state == CAPS_FREE;
    bool stays = held && !v->ramping && v->text[0]; /* as the driver has rounded it */

    if (v->enforced_mw && v->enforced_mw <= least_mw(v, claim)) {
        (void)snprintf(text, size, "in force");
        return CAPS_MET;
    }
    if (claim->kind != CLAIM_HARD &&
        cap_settable(&v->bounds, claim->mw, false) != claim->mw) {
        (void)snprintf(text, size,
                       "not in force: root's range ends at %g W, and nothing between it "
                       "and the original, %g W, may be set",
                       w_of_mw(v->bounds.max_mw), w_of_mw(v->bounds.original_mw));
        return CAPS_NOT_MET;
    }
    if (v->dry_run || v->failed || stays || (!held && v->state != CAPS_HOLDING)) {
        (void)snprintf(text, size, "not in force: %s",
                       v->dry_run   ? "dry run"
                       : v->text[0] ? v->text
                                    : caps_state_name(v->state));
        return CAPS_NOT_MET;
    }
    (void)snprintf(text, size, "on the way");
    return CAPS_COMING;
}
