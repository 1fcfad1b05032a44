#include "caps/budget.h"

#include <stdio.h>

#include "base/units.h"

_Static_assert((int)BOARDS_MAX <= (int)GRANT_BOARDS_MAX, "one grant a board");

/* A board above its limit for this long is late: the others make room for it. */
#define LATE_NS (2 * NS_PER_S)
/* Longest wait of a released board for room. */
#define ROOM_NS (5 * NS_PER_S)

bool budget_is_over(const struct budget_share *s, uint64_t now_ns)
{
    return s->over_ns && now_ns >= s->over_ns + LATE_NS;
}

void budget_why(const struct caps_budget_view *view, size_t n,
                const struct grant_board *in, const struct grant *g, char ret[CLAIM_TEXT])
{
    const char *how = view->is_short && g->limit_mw <= in->min_mw
                          ? "too little: its minimum"
                      : g->limit_mw < g->plan_mw  ? "more when others have come down"
                      : g->plan_mw != g->share_mw ? "watts moved inside its job"
                      : view->late                ? "less, as others do not come down"
                                                  : "an equal share";

    (void)snprintf(ret, CLAIM_TEXT, "%g W for %zu boards: %s", w_of_mw(view->budget_mw),
                   n, how);
}

/* Records since when a board is above its limit. */
static void note_over(struct budget_share *s, const struct grant_board *in,
                      const struct grant *g, uint64_t now_ns)
{
    if (in->fixed || in->in_force_mw <= g->limit_mw)
        s->over_ns = 0;
    else if (!s->over_ns)
        s->over_ns = now_ns;
}

void budget_step(struct budget_share *const *share, const struct grant_board *in,
                 size_t n, uint32_t budget_mw, uint64_t now_ns, struct grant *ret,
                 struct caps_budget_view *view)
{
    struct grant_sum sum;
    bool late = false;

    for (size_t i = 0; i < n; i++)
        late = late || (in[i].late && in[i].in_force_mw > in[i].granted_mw);
    grant_step(in, n, budget_mw, ret, &sum);
    *view = (struct caps_budget_view){.budget_mw = budget_mw,
                                      .counted_mw = sum.counted_mw,
                                      .least_mw = sum.least_mw,
                                      .is_short = sum.is_short,
                                      .late = late};
    for (size_t i = 0; i < n; i++) {
        share[i]->share_mw = in[i].fixed ? 0 : ret[i].share_mw;
        share[i]->plan_mw = in[i].fixed ? 0 : ret[i].plan_mw;
        note_over(share[i], &in[i], &ret[i], now_ns);
    }
}

bool budget_keeps(struct budget_share *s, bool released, bool held, uint64_t now_ns)
{
    if (!released) {
        s->leaving_ns = 0;
        s->out = false;
        return false;
    }
    if (s->out || !held)
        return false;
    if (!s->leaving_ns)
        s->leaving_ns = now_ns;
    return true;
}

bool budget_lets_out(struct budget_share *s, const struct caps_budget_view *view,
                     uint64_t now_ns)
{
    bool room = view->counted_mw <= view->budget_mw || view->is_short;

    if (s->out || !s->leaving_ns)
        return false;
    s->out = room || now_ns >= s->leaving_ns + ROOM_NS;
    return s->out;
}

uint64_t budget_next_ns(const struct budget_share *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    if (s->over_ns && now_ns < s->over_ns + LATE_NS)
        next = s->over_ns + LATE_NS;
    if (s->leaving_ns && !s->out && s->leaving_ns + ROOM_NS < next)
        next = s->leaving_ns + ROOM_NS;
    return next;
}
