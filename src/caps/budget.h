/* The node's budget: one hard claim a board, stated anew with every answer, so that the
 * sum of what may be in force is never brought above it (core/budget/grant.h).  What each
 * board is to be granted, when a board is late, when one that is released may go.  Values
 * in, values out: caps state the claims.
 */
#ifndef CAPS_BUDGET_H
#define CAPS_BUDGET_H

#include "caps/types.h"
#include "core/budget/grant.h"

/* A board's part. */
struct budget_share {
    uint64_t claim;             /* ours; 0: none stands */
    uint32_t share_mw, plan_mw; /* equal, and with what was wanted */
    uint32_t want_mw;           /* 0: an equal one … */
    unsigned group;             /* … else with whom it is shared out */
    uint64_t over_ns;           /* above its limit since then; 0: is not */
    uint64_t leaving_ns;        /* to be released since then, once there is room … */
    bool out;                   /* … which there is */
    bool failed;                /* the claim was refused: told */
};

/* Above its limit for so long that the others make room for it. */
bool budget_is_over(const struct budget_share *s, uint64_t now_ns);

/* One step: share, in and ret have n elements, one a board.
 * *view is what is shown.
 */
void budget_step(struct budget_share *const *share, const struct grant_board *in,
                 size_t n, uint32_t budget_mw, uint64_t now_ns, struct grant *ret,
                 struct caps_budget_view *view);
/* Why a board has this limit, for people. */
void budget_why(const struct caps_budget_view *view, size_t n,
                const struct grant_board *in, const struct grant *g,
                char ret[CLAIM_TEXT]);

/* A released board that is held has to wait until others have made room. */
bool budget_keeps(struct budget_share *s, bool released, bool held, uint64_t now_ns);
/* It may go now: there is room, or it has waited for long enough. */
bool budget_lets_out(struct budget_share *s, const struct caps_budget_view *view,
                     uint64_t now_ns);
/* When a share is due again without an answer; UINT64_MAX: never. */
uint64_t budget_next_ns(const struct budget_share *s, uint64_t now_ns);

#endif
