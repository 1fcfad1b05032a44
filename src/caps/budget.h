/* The node's budget: one hard claim a board, renewed with every answer, so that the sum
 * of limits that may be in force never rises above the budget (core/budget/grant.h).
 * Computes what each board is granted, whether a board is late, and when a released board
 * may go.  Pure: caps make the claims.
 */
#ifndef CAPS_BUDGET_H
#define CAPS_BUDGET_H

#include "caps/types.h"
#include "core/budget/grant.h"

/* A board's part. */
struct budget_share {
    uint64_t claim;             /* the budget's claim; 0: none */
    uint32_t share_mw, plan_mw; /* an equal share; the share by what boards want */
    uint32_t want_mw;           /* wanted within its group; 0: an equal share */
    unsigned group;             /* boards that share the sum of their shares */
    uint64_t over_ns;           /* above its limit since then; 0: not above */
    uint64_t leaving_ns; /* waits since then for room to be released; 0: does not */
    bool out;            /* may be released */
    bool failed;         /* the claim was refused, and the failure reported */
};

/* Above its limit for so long that the other boards make room for it. */
bool budget_is_over(const struct budget_share *s, uint64_t now_ns);

/* One step.  share, in and ret have n elements, one a board; *view is the view of the
 * budget.
 */
void budget_step(struct budget_share *const *share, const struct grant_board *in,
                 size_t n, uint32_t budget_mw, uint64_t now_ns, struct grant *ret,
                 struct caps_budget_view *view);
/* A text for people: why a board has this limit. */
void budget_why(const struct caps_budget_view *view, size_t n,
                const struct grant_board *in, const struct grant *g,
                char ret[CLAIM_TEXT]);

/* Whether a released board stays held until other boards have made room. */
bool budget_keeps(struct budget_share *s, bool released, bool held, uint64_t now_ns);
/* True when the board may go: there is room, or it has waited long enough. */
bool budget_lets_out(struct budget_share *s, const struct caps_budget_view *view,
                     uint64_t now_ns);
/* When to step again without an answer; UINT64_MAX: never. */
uint64_t budget_next_ns(const struct budget_share *s, uint64_t now_ns);

#endif
