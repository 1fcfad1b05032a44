/* The arbiter: the claims of a board to one target, and why.  (Claims on its clock are
 * passed over: core/cap/clock.h.)
 *
 *     wanted = min(named claims, max(min(soft claims), soft floor))
 *     target = max(min(wanted, hard claims, original), board minimum)
 *
 * Where limits end under the original (max_mw), a claim between the two cannot be met as
 * it stands: a hard one gets that end, any other nothing.
 *
 * Pure.
 */
#ifndef CORE_CAP_ARBITER_H
#define CORE_CAP_ARBITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/names.h"
#include "core/cap/claim.h"
#include "core/cap/ramp.h"

/* What bounds a board's cap beside the claims. */
struct cap_bounds {
    uint32_t original_mw; /* the limit found at the start */
    uint32_t min_mw;      /* the board's minimum */
    uint32_t floor_mw;    /* soft floor of its workload; 0: not known yet */
    uint32_t max_mw;      /* no limit above this but the original; 0: any */
};

/* The nearest limit that may be set: in between the upper end and the original there is
 * none, and down says which of the two it is then.
 */
uint32_t cap_settable(const struct cap_bounds *bounds, uint32_t mw, bool down);

/* What decided. */
enum cap_by { CAP_DECIDERS(NAME_ENUM) };

struct cap_verdict {
    uint32_t target_mw;
    enum cap_by by;
    uint64_t claim;      /* id of the one that won (CAP_BY_CLAIM), or of the one that
                          * FLOOR or MINIMUM held up; 0 with CAP_BY_ORIGINAL */
    uint32_t most_mw;    /* the lowest hard claim or the original, not under the minimum:
                          * never above this, from the first tick */
    uint32_t at_once_mw; /* most_mw or the lowest walked claim (at the floor at least):
                          * what is in force without a ramp, target_mw or above it */
    bool at_once;        /* target_mw is: a hard claim decided, or a walked one */
};

/* Of claims that come to the same the harder kind wins, then what asked for less, then
 * the older.  An original under the minimum (no board has one) counts as the minimum.
 */
void cap_decide(const struct claims *claims, const struct cap_bounds *bounds,
                struct cap_verdict *ret);

/* How boards of one class of job are walked down. */
struct cap_class {
    double first; /* first cap: this fraction of the observed peak, 0.85..1 */
    double floor; /* soft floor: this fraction of the demand, 0..1 */
    double rate;  /* ramp: this fraction of the default limit a second; 0: at once */
};
#define CAP_CLASS_DEFAULT \
    ((struct cap_class){.first = 0.90, .floor = 0.50, .rate = 0.005})

/* Verdict and ramp together: the cap that should be in force at now_ns.  peak_mw: the
 * observed peak at the original cap; 0 unknown, then there is no stay at a first cap.
 * Never above verdict->at_once_mw, never under verdict->target_mw.  May be called as
 * often as one likes: what has been walked counts, whatever changes meanwhile.
 */
uint32_t cap_walk(struct ramp *ramp, const struct cap_verdict *verdict,
                  const struct cap_class *cls, uint32_t default_mw, uint32_t peak_mw,
                  uint64_t now_ns);

#endif
