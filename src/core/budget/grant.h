/* A budget over boards: what the hard limit of each may be now.  Pure.
 *
 * Watts that may still be in force somewhere count as spent.  So limits that have to come
 * down do so first, and nothing goes up before it was read back that they have:
 *
 *     grant_step(boards, n, budget_mw, ret, &sum)
 *         → the limits are stated, boards walk there, answers come in
 *     … and again after each answer
 *
 * Once the sum of what counts is within the budget no answer, however late, brings it
 * above; while it is above, nothing goes up.  When all answers have come, all of the
 * budget that boards can use is granted, but for less than a grain each.
 *
 * Everybody gets an equal share (max-min fair: who can take less leaves the rest to the
 * others).  Boards of one group may share out the sum of their shares in another way.
 */
#ifndef CORE_BUDGET_GRANT_H
#define CORE_BUDGET_GRANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"

enum { GRANT_BOARDS_MAX = 64 };
#define GRANT_GRAIN_MW 1000u /* shares are whole watts */

struct grant_board {
    uint32_t min_mw;      /* it cannot be held lower */
    uint32_t most_mw;     /* more is of no use to it */
    uint32_t top_mw;      /* nor is anything between this and most_mw: it is at this
                           * then; 0: everything is */
    uint32_t in_force_mw; /* the highest limit that may be in force there: read back, or
                           * asked for and not answered; unknown: the highest it takes */
    uint32_t granted_mw;  /* its hard limit now */
    uint32_t want_mw;     /* another share than an equal one; 0: none */
    unsigned group;       /* … with whom it is shared; 0: with nobody */
    bool fixed;           /* takes no limit: in_force_mw is what it counts at */
    bool late;            /* what is in force does not come down: others make room */
};

struct grant {
    uint32_t limit_mw; /* its hard limit from now on; fixed: 0 */
    uint32_t share_mw; /* an equal share */
    uint32_t plan_mw;  /* what it gets when all answers have come */
};

struct grant_sum {
    uint64_t counted_mw; /* of what may be in force, with these limits */
    uint64_t least_mw;   /* boards cannot do with less */
    bool is_short;       /* that, or what does not come down, leaves no room for the
                          * minimums: who can be lowered is at its minimum */
    bool moves;          /* limits are on their way: more answers are due */
};

/* ret: one a board, as b.  n: GRANT_BOARDS_MAX at the most. */
void grant_step(const struct grant_board *b, size_t n, uint64_t budget_mw,
                struct grant *ret, struct grant_sum *ret_sum);

/* The least that these boards come to: minimums, and what takes no limit. */
uint64_t grant_least_mw(const struct grant_board *b, size_t n);

/* -ERANGE: budget_mw is under the least; text with both values. */
int grant_check(const struct grant_board *b, size_t n, uint64_t budget_mw, uw_error *err);

#endif
