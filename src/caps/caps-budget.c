/* The node's budget: one hard claim a board, stated anew with every answer, so that the
 * sum of what may be in force is never brought above it (core/budget/grant.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "caps/caps-inside.h"
#include "core/budget/grant.h"

_Static_assert((int)BOARDS_MAX <= (int)GRANT_BOARDS_MAX, "one grant a board");

/* A board that does not come down for so long: the others make room for it. */
#define LATE_NS (2 * NS_PER_S)
/* One that is to be let go waits for room no longer than this. */
#define ROOM_NS (5 * NS_PER_S)

static bool is_on(const struct caps *c)
{
    return c->conf.budget_mw > 0 && !c->ending;
}

static uint32_t higher(uint32_t a_mw, uint32_t b_mw)
{
    return a_mw > b_mw ? a_mw : b_mw;
}

/* The highest limit that it can come to, by whomever (root's range does not bind others).
 * Of a board that tells of none: that of the others; 0: nobody tells of any.
 */
static uint32_t most_of(const struct caps_board *b)
{
    const struct caps *c = b->caps;
    uint32_t most = b->limits.max_mw;

    for (size_t i = 0; !b->limits.max_mw && i < c->n; i++)
        most = higher(most, c->board[i].limits.max_mw);
    return higher(most, higher(b->enforced_mw, b->seen_mw));
}

static bool is_fixed(const struct caps_board *b)
{
    bool no_place = !claims_find(&b->claims, b->share.claim) && b->claims.n == CLAIMS_MAX;

    return !b->can_cap || b->silent || no_place;
}

/* Read back, or asked for and not answered. */
static uint32_t held_at(const struct caps_board *b)
{
    uint32_t mw = higher(b->enforced_mw, b->seen_mw);

    mw = higher(mw, higher(b->set_mw, b->asked_mw));
    for (size_t k = 0; k < ASKS_MAX; k++)
        mw = higher(mw, b->ask[k].mw);
    return b->enforced_mw ? mw : most_of(b);
}

/* The highest limit that may be in force now. */
static uint32_t in_force(const struct caps_board *b)
{
    bool free = b->link == LINK_RELEASING ||
                ((b->link == LINK_NONE || b->link == LINK_HOLDING) &&
                 (b->state == CAPS_FREE || b->state == CAPS_HOLDING));

    if (b->caps->conf.dry_run)
        return b->verdict.target_mw; /* as if it were obeyed */
    if (is_fixed(b) || b->released)
        return most_of(b);
    if (b->link == LINK_HELD)
        return held_at(b);
    if (!free || !b->sure)
        return most_of(b); /* somebody else's, or nobody knows whose */
    return higher(b->bounds.original_mw, higher(b->enforced_mw, b->seen_mw));
}

/* Its hard limit now.  Where it has none of ours yet that is what is set: an earlier
 * daemon may have given the rest to others.
 */
static uint32_t granted(const struct caps_board *b)
{
    const struct claim *claim = claims_find(&b->claims, b->share.claim);

    if (claim)
        return claim->mw;
    uint32_t set = higher(b->enforced_mw, b->seen_mw);
    return set ? set : b->bounds.min_mw;
}

/* More than this is of no use to it. */
static uint32_t use_of(const struct caps_board *b)
{
    uint32_t mw = b->sure ? b->bounds.original_mw : b->limits.max_mw;

    return higher(mw, b->bounds.min_mw);
}

static struct grant_board board_of(const struct caps_board *b, uint64_t now)
{
    const struct caps_share *s = &b->share;
    bool over = s->over_ns && now >= s->over_ns + LATE_NS;
    /* The actuator restores it as soon as it can. */
    bool lost = b->state == CAPS_LOST && b->link == LINK_NONE && b->caps->act;

    return (struct grant_board){.min_mw = b->bounds.min_mw,
                                .most_mw = use_of(b),
                                .top_mw = b->sure ? b->bounds.max_mw : 0,
                                .in_force_mw = in_force(b),
                                .granted_mw = granted(b),
                                .want_mw = s->want_mw,
                                .group = s->group,
                                .fixed = is_fixed(b),
                                .late = over || lost || b->released};
}

/* ---- stating ---- */

static void why(const struct caps *c, const struct caps_board *b, const struct grant *g,
                char ret[CLAIM_TEXT])
{
    const struct caps_budget_view *v = &c->budget;
    const char *how = v->is_short && g->limit_mw <= b->bounds.min_mw
                          ? "too little: its minimum"
                      : g->limit_mw < g->plan_mw  ? "more when others have come down"
                      : g->plan_mw != g->share_mw ? "watts moved inside its job"
                      : v->late                   ? "less, as others do not come down"
                                                  : "an equal share";

    (void)snprintf(ret, CLAIM_TEXT, "%g W for %zu boards: %s", w_of_mw(c->conf.budget_mw),
                   c->n, how);
}

static void state_claim(struct caps_board *b, const struct grant *g)
{
    const struct claim *old = claims_find(&b->claims, b->share.claim);
    struct claim claim = {.id = old ? old->id : 0,
                          .kind = CLAIM_HARD,
                          .mw = g->limit_mw,
                          .made_ns = old ? old->made_ns : 0,
                          .until_ns = CLAIM_FOREVER,
                          .admin = true};
    uw_error err = {""};

    (void)snprintf(claim.who, sizeof claim.who, "%s", CAPS_BUDGET_WHO);
    why(b->caps, b, g, claim.why);
    if (old && old->mw == claim.mw && strcmp(old->why, claim.why) == 0)
        return;
    int r = caps_claim(b->caps, b->at, &claim, &b->share.claim, &err);
    if (r < 0 && !b->share.failed)
        caps_tell(b, CAPS_EVENT_FAIL, NULL, err.text);
    b->share.failed = r < 0;
}

static void drop_all(struct caps *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct caps_board *b = &c->board[i];
        uint64_t id = b->share.claim;
        b->share = (struct caps_share){0};
        if (claims_find(&b->claims, id))
            (void)caps_withdraw(c, i, id, NULL);
    }
    c->budget = (struct caps_budget_view){0};
}

/* ---- a step ---- */

/* Since when it is above its limit. */
static void note_over(struct caps_board *b, const struct grant_board *in,
                      const struct grant *g, uint64_t now)
{
    if (in->fixed || in->in_force_mw <= g->limit_mw)
        b->share.over_ns = 0;
    else if (!b->share.over_ns)
        b->share.over_ns = now;
}

/* Others have made room for a board that is to be let go, or cannot. */
static void let_out(struct caps *c, uint64_t now)
{
    for (size_t i = 0; i < c->n; i++) {
        struct caps_share *s = &c->board[i].share;
        bool room = c->budget.counted_mw <= c->conf.budget_mw || c->budget.is_short;
        if (!c->board[i].released || s->out || !s->leaving_ns)
            continue;
        s->out = room || now >= s->leaving_ns + ROOM_NS;
        if (s->out)
            caps_step(&c->board[i]);
    }
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static void plan_next(struct caps *c, uint64_t now)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < c->n; i++) {
        const struct caps_share *s = &c->board[i].share;
        if (s->over_ns && now < s->over_ns + LATE_NS)
            next = sooner(next, s->over_ns + LATE_NS);
        if (s->leaving_ns && !s->out)
            next = sooner(next, s->leaving_ns + ROOM_NS);
    }
    if (next != UINT64_MAX)
        loop_timer_set(c->budget_timer, next, 0);
}

static void step(struct caps *c, uint64_t now)
{
    struct grant_board in[BOARDS_MAX];
    struct grant out[BOARDS_MAX];
    struct grant_sum sum;
    bool late = false, unknown = false;

    for (size_t i = 0; i < c->n; i++) {
        in[i] = board_of(&c->board[i], now);
        unknown = unknown || (!c->conf.dry_run && !most_of(&c->board[i]));
        late = late || (in[i].late && in[i].in_force_mw > in[i].granted_mw);
    }
    grant_step(in, c->n, c->conf.budget_mw, out, &sum);
    c->budget = (struct caps_budget_view){.budget_mw = c->conf.budget_mw,
                                          .counted_mw = sum.counted_mw,
                                          .unknown = unknown,
                                          .least_mw = sum.least_mw,
                                          .is_short = sum.is_short,
                                          .late = late};
    for (size_t i = 0; i < c->n; i++) {
        struct caps_board *b = &c->board[i];
        b->share.share_mw = in[i].fixed ? 0 : out[i].share_mw;
        b->share.plan_mw = in[i].fixed ? 0 : out[i].plan_mw;
        note_over(b, &in[i], &out[i], now);
        if (!in[i].fixed)
            state_claim(b, &out[i]);
    }
    let_out(c, now);
    plan_next(c, now);
}

int caps_on_budget(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct caps *c = user;
    (void)timer;

    c->budgeting = true; /* what it changes is no news to it */
    if (is_on(c))
        step(c, now_ns);
    else if (c->budget.budget_mw && !c->ending)
        drop_all(c);
    c->budgeting = false;
    return 0;
}

/* ---- what the rest of caps tells ---- */

void caps_budget_kick(struct caps *c)
{
    if (c->budget_timer && !c->budgeting && (is_on(c) || c->budget.budget_mw))
        loop_timer_set(c->budget_timer, loop_now_ns(c->loop), 0);
}

void caps_budget_anew(struct caps *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->board[i].share.over_ns)
            c->board[i].share.over_ns = loop_now_ns(c->loop);
    caps_budget_kick(c);
}

bool caps_budget_keeps(struct caps_board *b)
{
    struct caps_share *s = &b->share;

    if (!b->released || !is_on(b->caps)) {
        s->leaving_ns = 0;
        s->out = false;
        return false;
    }
    if (s->out || b->link != LINK_HELD)
        return false;
    if (!s->leaving_ns)
        s->leaving_ns = loop_now_ns(b->caps->loop);
    return true;
}

bool caps_budget_owns(const struct caps_board *b, uint64_t id)
{
    return id && id == b->share.claim && is_on(b->caps);
}

/* ---- asking ---- */

/* Boards' own minimums would let it be. */
static bool is_roots(const struct caps *c, struct grant_board *in, const size_t *at,
                     size_t n, uint32_t budget_mw)
{
    for (size_t i = 0; i < n; i++)
        in[i].min_mw = c->board[at[i]].limits.min_mw;
    return grant_check(in, n, budget_mw, NULL) == 0;
}

int caps_budget_check(const struct caps *c, uint32_t budget_mw, uw_error *err)
{
    struct grant_board in[BOARDS_MAX];
    size_t at[BOARDS_MAX], n = 0;
    uw_error why = {""};

    for (size_t i = 0; i < c->n; i++) {
        const struct caps_board *b = &c->board[i];
        if (!b->limits.max_mw && b->silent)
            continue; /* it says nothing now, and is no reason to refuse */
        in[n] = board_of(b, 0);
        in[n].in_force_mw = most_of(b);
        at[n++] = i;
    }
    int r = budget_mw ? grant_check(in, n, budget_mw, &why) : 0;
    if (r == 0)
        return 0;
    return fail(err, r, "budget.node: %.140s%s", why.text,
                is_roots(c, in, at, n, budget_mw) ? " in the range of actuator.yaml"
                                                  : "");
}

void caps_budget_look(const struct caps *c, struct caps_budget_view *ret)
{
    *ret = c->budget;
}

void caps_budget_want(struct caps *c, const size_t *board, const uint32_t *mw, size_t n,
                      unsigned group)
{
    for (size_t i = 0; i < n; i++) {
        if (board[i] >= c->n)
            continue;
        struct caps_share *s = &c->board[board[i]].share;
        s->want_mw = mw ? mw[i] : 0;
        s->group = mw ? group : 0;
    }
    caps_budget_kick(c);
}
