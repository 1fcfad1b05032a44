/* The next caps for the boards of a synchronous job, from their busy shares.  Pure.
 *
 * Model: near the cap in force, a board's time per step and its busy share are
 * proportional to cap ^ -steep.  No power is wasted when all boards are equally busy.
 */
#ifndef CORE_SLACK_BALANCE_H
#define CORE_SLACK_BALANCE_H

#include <stddef.h>
#include <stdint.h>

struct balance_board {
    uint32_t cap_mw;            /* in force when busy was measured */
    uint32_t least_mw, most_mw; /* range of its next cap */
    double busy;                /* waits_busy() */
    double steep;               /* > 0 */
};

/* gain: fraction of the way to equal busy shares, 0..1; most: largest fraction of a cap
 * that one step may change; dead: log ratio of busy shares up to which a cap stays; new
 * caps are multiples of grain_mw.
 */
struct balance_rule {
    double gain, most, dead;
    uint32_t grain_mw;
};

/* Without a budget: lowers the caps of boards that wait towards the busy share `busiest`;
 * all others stay.  Returns how many caps change.
 */
size_t balance_down(const struct balance_board *b, size_t n, double busiest,
                    const struct balance_rule *rule, uint32_t *ret_mw);

/* Under a budget: moves watts from boards that wait to those that do not; the sum of caps
 * is within budget_mw, as close as the grain allows, or that of the lowest caps if they
 * exceed it.  Returns how many caps change.
 */
size_t balance_within(const struct balance_board *b, size_t n, uint64_t budget_mw,
                      const struct balance_rule *rule, uint32_t *ret_mw);

#endif
