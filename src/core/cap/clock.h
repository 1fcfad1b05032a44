/* Claims on a board's SM clock: the formulas of arbiter.h, in MHz.
 *
 *     wanted = min(named claims, max(min(soft claims), soft floor))
 *     target = max(min(wanted, hard claims, highest clock), lowest clock)
 *
 * Claims on watts and on the clock are in one list and independent: a board keeps both.
 * The original is the highest clock, which means no lock, as no driver reports an earlier
 * lock.  Pure.
 */
#ifndef CORE_CAP_CLOCK_H
#define CORE_CAP_CLOCK_H

#include "core/cap/arbiter.h"

struct clock_bounds {
    uint32_t max_mhz, min_mhz; /* the board's clocks */
    uint32_t floor_mhz;        /* lowest clock for soft claims; 0: none */
};

struct clock_verdict {
    uint32_t target_mhz; /* max_mhz: no lock */
    enum cap_by by;      /* CAP_BY_ORIGINAL: the highest clock */
    uint64_t claim;      /* this and the rest as in struct cap_verdict */
    uint32_t most_mhz, at_once_mhz;
    bool at_once;
    struct claim_way way;
};

void clock_decide(const struct claims *claims, const struct clock_bounds *bounds,
                  struct clock_verdict *ret);

/* The lock that should be in force at now_ns; max_mhz: none.  As cap_walk() with the
 * highest clock as default limit and observed peak; the ramp is in MHz.
 */
uint32_t clock_walk(struct ramp *ramp, const struct clock_verdict *verdict,
                    const struct cap_class *cls, uint32_t max_mhz, uint64_t now_ns);

/* Whether the clock of a busy board agrees with a lock to at most locked_mhz.  Boards
 * round a lock to one of their clocks: 2 % or 30 MHz above it are accepted.
 */
bool clock_is_obeyed(uint32_t locked_mhz, uint32_t seen_mhz);

#endif
