/* Next caps for the boards of a synchronous job, from how busy each is.  Pure.
 *
 * A step of a board takes time like cap ^ -steep near the cap in force; the board's busy
 * share grows with it.  All boards equally busy is where no watt waits.
 */
#ifndef CORE_SLACK_BALANCE_H
#define CORE_SLACK_BALANCE_H

#include <stddef.h>
#include <stdint.h>

struct balance_board {
    uint32_t cap_mw;            /* in force, what busy was seen at */
    uint32_t least_mw, most_mw; /* it may get */
    double busy;                /* waits_busy() */
    double steep;               /* > 0 */
};

/* No budget: caps of boards that wait go down until they are as busy as `busiest`, all
 * others stay.  gain: part of the way, 0..1; most: highest part of a cap that a step may
 * take away.  Boards less than dead (in logarithms) away stay.  Multiples of grain_mw.
 * Returns how many caps differ.
 */
struct balance_rule {
    double gain, most, dead;
    uint32_t grain_mw;
};
size_t balance_down(const struct balance_board *b, size_t n, double busiest,
                    const struct balance_rule *rule, uint32_t *ret_mw);

/* A budget: watts move from boards that wait to those that do not, so that the sum of
 * caps is as near below budget_mw as the grain allows.  Where the lowest caps together
 * are above it, those.  Returns how many caps differ.
 */
size_t balance_within(const struct balance_board *b, size_t n, uint64_t budget_mw,
                      const struct balance_rule *rule, uint32_t *ret_mw);

#endif
