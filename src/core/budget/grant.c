#include "core/budget/grant.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "base/units.h"

static uint32_t lower(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw < b_mw ? a_mw : b_mw;
}

static uint32_t higher(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw > b_mw ? a_mw : b_mw;
}

/* A set of boards, one bit each. */
typedef uint64_t members;

static bool takes_part(members who, size_t i)
{
    return who >> i & 1;
}

/* Whether the board cannot be set to mw, but only to top_mw or most_mw. */
static bool in_gap(const struct grant_board *b, uint32_t mw)
{
    return b->top_mw && mw > b->top_mw && mw < b->most_mw;
}

static uint32_t at_level(const struct grant_board *b, uint32_t level_mw)
{
    uint32_t mw = in_gap(b, level_mw) ? b->top_mw : level_mw;

    return higher(b->min_mw, lower(mw, higher(b->most_mw, b->min_mw)));
}

static uint64_t sum_at(const struct grant_board *b, size_t n, members who,
                       uint32_t level_mw)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        if (takes_part(who, i))
            sum += at_level(&b[i], level_mw);
    return sum;
}

/* The highest level, a multiple of the grain, at which the sum of the shares is within
 * budget_mw; 0: the minimums exceed budget_mw.
 */
static uint32_t level_of(const struct grant_board *b, size_t n, members who,
                         uint64_t budget_mw)
{
    uint32_t low = 0, high = UINT32_MAX / GRANT_GRAIN_MW;

    if (sum_at(b, n, who, UINT32_MAX) <= budget_mw)
        return UINT32_MAX;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (sum_at(b, n, who, mid * GRANT_GRAIN_MW) <= budget_mw)
            low = mid;
        else
            high = mid;
    }
    return low * GRANT_GRAIN_MW;
}

static uint64_t without(uint64_t mw, uint64_t less_mw)
{
    return mw > less_mw ? mw - less_mw : 0;
}

/* Whether the requests of a group fit into the sum of its shares, and each request is
 * within the range of its board.
 */
static bool group_fits(const struct grant_board *b, size_t n, members who, unsigned group,
                       const uint32_t *share_mw)
{
    uint64_t shares = 0, wants = 0;

    for (size_t i = 0; i < n; i++) {
        if (b[i].group != group)
            continue;
        if (!takes_part(who, i) || b[i].want_mw < b[i].min_mw ||
            b[i].want_mw > higher(b[i].most_mw, b[i].min_mw) ||
            in_gap(&b[i], b[i].want_mw))
            return false;
        shares += share_mw[i];
        wants += b[i].want_mw;
    }
    return wants <= shares;
}

/* Equal shares.  A board whose share is in its gap gets top_mw; the rest is shared. */
static void share(const struct grant_board *b, size_t n, members who, uint64_t budget_mw,
                  uint32_t *ret_mw)
{
    members open = who;

    for (bool again = true; again;) {
        uint32_t level = level_of(b, n, open, budget_mw);
        again = false;
        for (size_t i = 0; i < n; i++) {
            if (!takes_part(open, i))
                continue;
            ret_mw[i] = at_level(&b[i], level);
            if (!in_gap(&b[i], level))
                continue;
            open &= ~((members)1 << i);
            budget_mw = without(budget_mw, ret_mw[i]);
            again = true;
        }
    }
}

/* Splits budget_mw equally among the boards in `who`, then applies the requests of
 * groups.  False: the minimums exceed budget_mw; every share is the minimum.
 */
static bool split(const struct grant_board *b, size_t n, members who, uint64_t budget_mw,
                  uint32_t *share_mw, uint32_t *plan_mw)
{
    share(b, n, who, budget_mw, share_mw);
    for (size_t i = 0; i < n; i++)
        if (takes_part(who, i))
            plan_mw[i] = share_mw[i];
    for (size_t i = 0; i < n; i++)
        if (takes_part(who, i) && b[i].group && b[i].want_mw &&
            group_fits(b, n, who, b[i].group, share_mw))
            plan_mw[i] = b[i].want_mw;
    return sum_at(b, n, who, 0) <= budget_mw;
}

/* Plans as if all boards had answered, then splits what late boards leave among the
 * others.  False: the minimums do not fit.
 */
static bool plan(const struct grant_board *b, size_t n, uint64_t budget_mw,
                 struct grant *ret)
{
    uint32_t share_mw[GRANT_BOARDS_MAX] = {0}, plan_mw[GRANT_BOARDS_MAX] = {0};
    members can = 0, late = 0;
    uint64_t left_mw = budget_mw;

    for (size_t i = 0; i < n; i++) {
        if (b[i].fixed)
            left_mw = without(left_mw, b[i].in_force_mw);
        else
            can |= (members)1 << i;
    }
    bool fits = split(b, n, can, left_mw, share_mw, plan_mw);
    for (size_t i = 0; i < n; i++) {
        if (!takes_part(can, i) || !b[i].late || b[i].in_force_mw <= plan_mw[i])
            continue;
        late |= (members)1 << i;
        left_mw = without(left_mw, b[i].in_force_mw);
    }
    if (late)
        fits = split(b, n, can & ~late, left_mw, share_mw, plan_mw) && fits;
    for (size_t i = 0; i < n; i++)
        ret[i] = (struct grant){.share_mw = share_mw[i], .plan_mw = plan_mw[i]};
    return fits;
}

static uint64_t counted(const struct grant_board *b, size_t n, const struct grant *g)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += b[i].fixed ? b[i].in_force_mw : higher(b[i].in_force_mw, g[i].limit_mw);
    return sum;
}

/* Raises limits towards the plan until room_mw is used. */
static void raise_within(const struct grant_board *b, size_t n, uint64_t room_mw,
                         struct grant *ret)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t counts = higher(b[i].in_force_mw, ret[i].limit_mw);
        if (b[i].fixed || ret[i].limit_mw >= ret[i].plan_mw)
            continue;
        uint32_t more = ret[i].plan_mw > counts ? ret[i].plan_mw - counts : 0;
        if (more > room_mw)
            more = (uint32_t)room_mw / GRANT_GRAIN_MW * GRANT_GRAIN_MW;
        room_mw -= more;
        uint32_t to = more ? counts + more : lower(counts, ret[i].plan_mw);
        ret[i].limit_mw = higher(ret[i].limit_mw, to);
    }
}

void grant_step(const struct grant_board *b, size_t n, uint64_t budget_mw,
                struct grant *ret, struct grant_sum *ret_sum)
{
    assert(n <= GRANT_BOARDS_MAX);
    bool fits = plan(b, n, budget_mw, ret);

    for (size_t i = 0; i < n; i++)
        if (!b[i].fixed)
            ret[i].limit_mw = higher(b[i].min_mw, lower(b[i].granted_mw, ret[i].plan_mw));
    uint64_t sum = counted(b, n, ret);
    /* Above the budget no limit is raised, not even up to in_force_mw, which is only an
     * upper limit of the cap in force.
     */
    if (sum <= budget_mw)
        raise_within(b, n, budget_mw - sum, ret);
    *ret_sum = (struct grant_sum){.counted_mw = counted(b, n, ret),
                                  .least_mw = grant_least_mw(b, n),
                                  .is_short = !fits};
    for (size_t i = 0; i < n; i++)
        ret_sum->moves = ret_sum->moves || ret[i].limit_mw != ret[i].plan_mw ||
                         (!b[i].fixed && b[i].in_force_mw > ret[i].limit_mw);
}

uint64_t grant_least_mw(const struct grant_board *b, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += b[i].fixed ? b[i].in_force_mw : b[i].min_mw;
    return sum;
}

int grant_check(const struct grant_board *b, size_t n, uint64_t budget_mw, uw_error *err)
{
    uint64_t least = grant_least_mw(b, n);
    size_t fixed = 0;
    char text[64] = "";

    if (budget_mw >= least)
        return 0;
    for (size_t i = 0; i < n; i++)
        fixed += b[i].fixed;
    if (fixed)
        (void)snprintf(text, sizeof text, ", %zu of which cannot be capped", fixed);
    return fail(err, -ERANGE,
                "a budget of %g W is under %g W, the least that this node's %zu boards "
                "come to%s",
                (double)budget_mw / MW_PER_W, (double)least / MW_PER_W, n, text);
}
