/* Claims on a board's SM clock: the same formulas, in MHz.
 *
 *     wanted = min(named claims, max(min(soft claims), soft floor))
 *     target = max(min(wanted, hard claims, highest clock), lowest clock)
 *
 * Claims on watts and claims on the clock stand in one list and do not touch each other:
 * a board keeps both.  The original is the highest clock, which is no lock: no driver
 * tells what was locked before.  Pure.
 */
#ifndef CORE_CAP_CLOCK_H
#define CORE_CAP_CLOCK_H

#include "core/cap/arbiter.h"

struct clock_bounds {
    uint32_t max_mhz, min_mhz; /* the board's clocks */
    uint32_t floor_mhz;        /* soft claims do not go below; 0: there is none */
};

struct clock_verdict {
    uint32_t target_mhz; /* max_mhz: no lock */
    enum cap_by by;      /* ORIGINAL: the highest clock */
    uint64_t claim;      /* as in struct cap_verdict, as the rest */
    uint32_t most_mhz, at_once_mhz;
    bool at_once;
};

void clock_decide(const struct claims *claims, const struct clock_bounds *bounds,
                  struct clock_verdict *ret);

/* The lock that should be there at now_ns, max_mhz for none: cap_walk() with the highest
 * clock for default limit and observed peak.  The ramp's numbers are MHz.
 */
uint32_t clock_walk(struct ramp *ramp, const struct clock_verdict *verdict,
                    const struct cap_class *cls, uint32_t max_mhz, uint64_t now_ns);

/* Does a board that is at work obey a lock to at most locked_mhz?  It snaps a lock to a
 * clock that it has: a little above counts as obeyed.
 */
bool clock_is_obeyed(uint32_t locked_mhz, uint32_t seen_mhz);

#endif
