/* What is shown of a view: what decided, and whether a claim is in force. */
#include <stdio.h>

#include "base/names.h"
#include "base/units.h"
#include "caps/caps.h"

enum cap_by caps_shown_by(const struct caps_view *v)
{
    bool others = v->state == CAPS_FREE && v->holder[0];

    return others && v->verdict.by == CAP_BY_ORIGINAL ? CAP_BY_HOLDER : v->verdict.by;
}

/* The lowest limit that this claim can cause. */
static uint32_t least_mw(const struct caps_view *v, const struct claim *claim)
{
    uint32_t mw = claim->mw;

    if (claim->kind == CLAIM_SOFT && mw < v->bounds.floor_mw)
        mw = v->bounds.floor_mw;
    return mw < v->bounds.min_mw ? v->bounds.min_mw : mw;
}

/* The same for a claim on the clock. */
static uint32_t least_mhz(const struct clock_bounds *k, const struct claim *claim)
{
    uint32_t mhz = claim->mhz;

    if (claim->kind == CLAIM_SOFT && mhz < k->floor_mhz)
        mhz = k->floor_mhz;
    return mhz < k->min_mhz ? k->min_mhz : mhz;
}

static void met(struct caps_claim_look *ret)
{
    ret->met = CAPS_MET;
    (void)snprintf(ret->text, sizeof ret->text, "in force");
}

static void coming(struct caps_claim_look *ret)
{
    ret->met = CAPS_COMING;
    (void)snprintf(ret->text, sizeof ret->text, "on the way");
}

static void unmet(enum caps_unmet why, const char *text, struct caps_claim_look *ret)
{
    ret->met = CAPS_NOT_MET;
    ret->why = why;
    (void)snprintf(ret->text, sizeof ret->text, "not in force: %s", text);
}

static void look_at_clock(const struct caps_view *v, const struct claim *claim,
                          struct caps_claim_look *ret)
{
    const struct caps_clock_view *k = &v->clock;
    uint32_t least = least_mhz(&k->bounds, claim);
    bool held = v->state == CAPS_HELD || v->state == CAPS_HOLDING;
    /* A lower lock is in force because the wanted one was refused. */
    bool refused = k->failed && k->verdict.claim == claim->id;

    if (least >= k->bounds.max_mhz ||
        (k->locked_mhz && k->locked_mhz <= least && !k->given_up && !refused))
        met(ret);
    else if (v->dry_run)
        unmet(CAPS_UNMET_DRY_RUN, "dry run", ret);
    else if (!k->on)
        unmet(CAPS_UNMET_CLOCKS, "locked clocks are off", ret);
    else if (k->failed)
        unmet(CAPS_UNMET_FAILED, k->text, ret);
    else if (!held)
        unmet(CAPS_UNMET_NOT_HELD,
              v->text[0] ? v->text : names_word(NAMES_CAP_STATE, v->state), ret);
    else
        coming(ret);
}

void caps_claim_look(const struct caps_view *v, const struct claim *claim,
                     struct caps_claim_look *ret)
{
    const char *text = v->text[0] ? v->text : names_word(NAMES_CAP_STATE, v->state);
    bool held = v->state == CAPS_HELD || v->state == CAPS_FREE;
    /* refused, or to be refused */
    bool others = v->holder[0] && (v->state == CAPS_HOLDING || v->state == CAPS_LOST);
    bool stays = held && !v->ramping && v->text[0]; /* as rounded by the driver */

    *ret = (struct caps_claim_look){.why = CAPS_UNMET_NONE};
    if (claim->mhz) {
        look_at_clock(v, claim, ret);
    } else if (v->enforced_mw && v->enforced_mw <= least_mw(v, claim)) {
        met(ret);
    } else if (claim->kind != CLAIM_HARD &&
               cap_settable(&v->bounds, claim->mw, false) != claim->mw) {
        char range[160];
        (void)snprintf(range, sizeof range,
                       "root's range ends at %g W, and nothing between it and the "
                       "original, %g W, may be set",
                       w_of_mw(v->bounds.max_mw), w_of_mw(v->bounds.original_mw));
        unmet(CAPS_UNMET_RANGE, range, ret);
    } else if (v->dry_run) {
        unmet(CAPS_UNMET_DRY_RUN, "dry run", ret);
    } else if (others || (!held && v->state != CAPS_HOLDING)) {
        unmet(CAPS_UNMET_NOT_HELD, others ? v->holder : text, ret);
    } else if (v->failed || stays) {
        unmet(v->failed ? CAPS_UNMET_FAILED : CAPS_UNMET_ROUNDED, text, ret);
    } else {
        coming(ret);
    }
}
