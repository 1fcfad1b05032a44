/* The arbiter: combines the claims on a board into one target, with the reason.  Claims
 * on the clock are ignored here (core/cap/clock.h).
 *
 *     wanted = min(named claims, max(min(soft claims), soft floor))
 *     target = max(min(wanted, hard claims, original), board minimum)
 *
 * A claim that raises (a person's on a node of their own, a sweep's) puts its own value
 * in the place of the original where that is lower, as long as max_mw allows it.
 *
 * If the highest settable limit (max_mw) is below the original, a claim between the two
 * cannot be set: a hard one is lowered to max_mw, others have no effect.
 *
 * Pure.  Explained in docs/caps.md.
 */
#ifndef CORE_CAP_ARBITER_H
#define CORE_CAP_ARBITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"
#include "core/cap/claim.h"
#include "core/cap/ramp.h"

/* Bounds of a board's cap besides the claims. */
struct cap_bounds {
    uint32_t original_mw; /* limit in force at the start */
    uint32_t min_mw;      /* the board's minimum */
    uint32_t floor_mw;    /* soft floor of its workload; 0: not known yet */
    uint32_t max_mw;      /* highest settable limit besides the original; 0: no bound */
};

/* The limit to set for mw.  Between max_mw and the original none can be set: max_mw is
 * used if `down`, else the original.
 */
uint32_t cap_settable(const struct cap_bounds *bounds, uint32_t mw, bool down);

/* What determined the target. */
enum cap_by { CAP_DECIDERS(NAME_ENUM) };

struct cap_verdict {
    uint32_t target_mw;
    enum cap_by by;
    uint64_t claim;      /* id of the claim that won (CAP_BY_CLAIM) or was raised by FLOOR
                          * or MINIMUM; 0 with CAP_BY_ORIGINAL */
    uint32_t most_mw;    /* the lowest hard claim or the original, at least the minimum:
                          * the cap must not exceed it at any time */
    uint32_t at_once_mw; /* the lowest claim without a ramp (claim_is_at_once()) or the
                          * original: the highest cap on a ramp to target_mw, which is not
                          * above it */
    bool at_once;        /* target_mw applies without a ramp */
    struct claim_way way; /* of the claim that won */
};

/* Among claims with the same result the harder kind wins, then the lower request, then
 * the older.  An original below the minimum (no board has one) counts as the minimum.
 */
void cap_decide(const struct claims *claims, const struct cap_bounds *bounds,
                struct cap_verdict *ret);

/* How the caps of one class of jobs are lowered. */
struct cap_class {
    double first; /* first cap / observed peak, 0.85..1 */
    double floor; /* soft floor / demand, 0..1 */
    double rate;  /* ramp: fraction of the default limit per second; 0: immediately */
};
#define CAP_CLASS_DEFAULT \
    ((struct cap_class){.first = 0.90, .floor = 0.50, .rate = 0.005})

/* Advances the ramp towards the verdict's target, on the way of the claim that won;
 * returns the cap that should be in force at now_ns, between verdict->target_mw and
 * verdict->at_once_mw.  cls, default_mw and peak_mw (observed peak at the original cap;
 * 0: unknown, no stop at a first cap) are for claims without a way of their own.  When
 * another claim wins during a ramp, the ramp goes on from where it is, at that claim's
 * rate; a ramp has one stop at most.  May be called at any interval.
 */
uint32_t cap_walk(struct ramp *ramp, const struct cap_verdict *verdict,
                  const struct cap_class *cls, uint32_t default_mw, uint32_t peak_mw,
                  uint64_t now_ns);

#endif
