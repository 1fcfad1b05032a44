#include "core/cap/arbiter.h"

#include <math.h>

static uint32_t lower(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw < b_mw ? a_mw : b_mw;
}

static uint32_t higher(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw > b_mw ? a_mw : b_mw;
}

uint32_t cap_settable(const struct cap_bounds *bounds, uint32_t mw, bool down)
{
    if (!bounds->max_mw || mw <= bounds->max_mw || mw >= bounds->original_mw)
        return mw;
    return down ? bounds->max_mw : bounds->original_mw;
}

/* The cap from this claim alone; a soft one is raised to the floor.  The lowest level of
 * all claims equals min(named, hard, max(min(soft), floor)).
 */
static uint32_t level(const struct claim *claim, const struct cap_bounds *bounds)
{
    uint32_t mw =
        claim->kind == CLAIM_SOFT ? higher(claim->mw, bounds->floor_mw) : claim->mw;

    return cap_settable(bounds, mw, claim->kind == CLAIM_HARD);
}

/* Whether a takes precedence over b, which is before a in the list. */
static bool wins(const struct claim *a, const struct claim *b,
                 const struct cap_bounds *bounds)
{
    uint32_t a_mw = level(a, bounds), b_mw = level(b, bounds);

    if (a_mw != b_mw)
        return a_mw < b_mw;
    if (a->kind != b->kind)
        return a->kind > b->kind;
    if (a->mw != b->mw)
        return a->mw < b->mw;
    return a->made_ns < b->made_ns;
}

/* The highest cap that the claims can result in: the original, or the highest claim that
 * may lift the cap above it.
 */
static uint32_t ceiling(const struct claims *claims, const struct cap_bounds *bounds)
{
    uint32_t mw = higher(bounds->original_mw, bounds->min_mw);

    for (size_t i = 0; i < claims->n; i++) {
        const struct claim *claim = &claims->claim[i];
        if (claim->raises && (!bounds->max_mw || claim->mw <= bounds->max_mw))
            mw = higher(mw, claim->mw);
    }
    return mw;
}

void cap_decide(const struct claims *claims, const struct cap_bounds *bounds,
                struct cap_verdict *ret)
{
    const uint32_t min_mw = bounds->min_mw;
    const uint32_t original_mw = higher(bounds->original_mw, min_mw);
    const uint32_t top_mw = ceiling(claims, bounds);
    struct cap_verdict v = {.target_mw = top_mw, .most_mw = top_mw, .at_once_mw = top_mw};
    const struct claim *best = NULL;

    for (size_t i = 0; i < claims->n; i++) {
        const struct claim *claim = &claims->claim[i];
        if (!claim->mw)
            continue;
        uint32_t mw = higher(level(claim, bounds), min_mw);
        if (!best || wins(claim, best, bounds))
            best = claim;
        if (claim->kind == CLAIM_HARD)
            v.most_mw = lower(v.most_mw, mw);
        if (claim_is_at_once(claim))
            v.at_once_mw = lower(v.at_once_mw, mw);
    }
    uint32_t wanted_mw = best ? level(best, bounds) : UINT32_MAX;
    if (best &&
        (wanted_mw < original_mw || (top_mw > original_mw && wanted_mw <= top_mw))) {
        v.target_mw = higher(wanted_mw, min_mw);
        v.claim = best->id;
        v.way = best->way;
        v.by = wanted_mw < min_mw     ? CAP_BY_MINIMUM
               : wanted_mw > best->mw ? CAP_BY_FLOOR
                                      : CAP_BY_CLAIM;
    }
    v.at_once = v.target_mw == v.at_once_mw;
    *ret = v;
}

uint32_t cap_walk(struct ramp *ramp, const struct cap_verdict *verdict,
                  const struct cap_class *cls, uint32_t default_mw, uint32_t peak_mw,
                  uint64_t now_ns)
{
    const struct claim_way *way = &verdict->way;
    uint32_t first_mw =
        way->own ? way->first_mw : (uint32_t)lround(cls->first * (double)peak_mw);
    double rate_mw_s = way->own ? way->rate_mw_s : cls->rate * (double)default_mw;

    ramp_follow(ramp, verdict->target_mw, first_mw, rate_mw_s, verdict->at_once, now_ns);
    ramp_bound(ramp, verdict->at_once_mw);
    if (ramp->waiting && way->own && !way->check_units)
        ramp_checked(ramp, now_ns);
    return ramp->at_mw;
}
