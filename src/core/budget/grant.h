/* A power budget over boards: the hard limit that each board may have now.  Pure.
 * Explained in docs/caps.md.
 *
 * Limits that may still be in force count as used.  So limits that must fall are lowered
 * first, and no limit is raised before lower ones have been read back:
 *
 *     loop:
 *         grant_step(boards, n, budget_mw, ret, &sum)
 *         set the limits, wait for the next answer of a board
 *
 * Once the counted sum is within the budget, no late answer can raise it above; while it
 * is above, no limit is raised.  When all boards have answered, all of the budget that
 * they can use is granted, except less than a grain per board.
 *
 * Shares are equal (max-min fair: what a board cannot use goes to the others).  Boards of
 * one group may redistribute the sum of their shares.
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
    uint32_t min_mw;      /* lowest limit that can be set */
    uint32_t most_mw;     /* highest limit that it can use */
    uint32_t top_mw;      /* no limit between top_mw and most_mw can be set: top_mw is
                           * used instead; 0: no such gap */
    uint32_t in_force_mw; /* the highest limit that may be in force: read back, or
                           * requested and not answered; unknown: its highest limit */
    uint32_t granted_mw;  /* its hard limit now */
    uint32_t want_mw;     /* the share wanted within its group; 0: an equal share */
    unsigned group;       /* boards that redistribute their shares; 0: no group */
    bool fixed;           /* cannot be limited: counts with in_force_mw */
    bool late;            /* does not lower its limit: the other boards get less */
};

struct grant {
    uint32_t limit_mw; /* its hard limit from now on; fixed: 0 */
    uint32_t share_mw; /* its equal share */
    uint32_t plan_mw;  /* its limit once all boards have answered */
};

struct grant_sum {
    uint64_t counted_mw; /* sum of the limits that may be in force with these grants */
    uint64_t least_mw;   /* as grant_least_mw() */
    bool is_short;       /* the budget does not cover the minimums beside fixed and late
                          * boards: all others are at their minimum */
    bool moves;          /* limits are still changing: more answers will come */
};

/* ret: one per board, in the order of b.  n: up to GRANT_BOARDS_MAX. */
void grant_step(const struct grant_board *b, size_t n, uint64_t budget_mw,
                struct grant *ret, struct grant_sum *ret_sum);

/* The smallest possible sum: the minimums, and in_force_mw of fixed boards. */
uint64_t grant_least_mw(const struct grant_board *b, size_t n);

/* -ERANGE: budget_mw is below grant_least_mw(); the text names both values. */
int grant_check(const struct grant_board *b, size_t n, uint64_t budget_mw, uw_error *err);

#endif
