#include "caps/budget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "caps/caps.h"
#include "caps/claimant.h"
#include "core/budget/grant.h"
#include "io/loop.h"

_Static_assert((int)BOARDS_MAX <= (int)GRANT_BOARDS_MAX, "one grant a board");

/* A board above its limit for this long is late: the others make room for it. */
#define LATE_NS (2 * NS_PER_S)
/* Longest wait of a released board for room. */
#define ROOM_NS (5 * NS_PER_S)

/* A board's part. */
struct share {
    uint32_t mw;          /* of its claim, … */
    char why[CLAIM_TEXT]; /* … as it was stated last */
    uint32_t share_mw;    /* an equal share */
    uint64_t over_ns;     /* above its limit since this time; 0: not above */
    uint64_t leaving_ns;  /* waits since then for room to be released; 0: does not */
    bool out;             /* may be released */
    bool failed;          /* the claim was refused, and the failure reported */
};

struct budget {
    struct loop *loop;
    struct caps *caps;
    size_t n;
    uint32_t mw; /* 0: none */
    struct claimant *claimant;
    struct caps_listener listener;
    struct loop_timer *timer;
    bool stepping;                /* the changes are made by the step itself */
    struct caps_budget_view view; /* result of the last step */
    char late[47];                /* "GPU 0 is released and counts 700 W" */
    struct share share[BOARDS_MAX];
};

static bool is_on(const struct budget *b)
{
    return b->mw > 0 && !caps_is_ending(b->caps);
}

static void kick(struct budget *b)
{
    if (!b->stepping && is_on(b))
        loop_timer_set(b->timer, loop_now_ns(b->loop), 0);
}

/* ---- the state of a board for the budget ---- */

/* Whether the board is above its limit for so long that the other boards make room. */
static bool is_over(const struct share *s, uint64_t now_ns)
{
    return s->over_ns && now_ns >= s->over_ns + LATE_NS;
}

/* Without a claim of this budget, the set limit counts as granted: an earlier daemon may
 * have given the rest to other boards.
 */
static struct grant_board grant_of(const struct budget *b, size_t i, uint64_t now,
                                   const struct caps_force *f)
{
    const struct share *s = &b->share[i];
    bool claimed = claimant_claim(b->claimant, i) != 0;
    bool no_place = !claimed && f->full;
    uint32_t found_mw = f->set_mw ? f->set_mw : f->min_mw;

    return (struct grant_board){.min_mw = f->min_mw,
                                .most_mw = f->use_mw,
                                .top_mw = f->top_mw,
                                .in_force_mw =
                                    no_place && !f->dry_run ? f->most_mw : f->in_force_mw,
                                .granted_mw = claimed ? s->mw : found_mw,
                                .want_mw = f->want_mw,
                                .group = f->group,
                                .fixed = f->fixed || no_place,
                                .late = is_over(s, now) || f->lost || f->released};
}

/* Records the time since when a board is above its limit. */
static void note_over(struct share *s, const struct grant_board *in,
                      const struct grant *g, uint64_t now_ns)
{
    if (in->fixed || in->in_force_mw <= g->limit_mw)
        s->over_ns = 0;
    else if (!s->over_ns)
        s->over_ns = now_ns;
}

/* Whether a released board stays held until other boards have made room. */
static bool on_keeps(size_t board, bool released, bool held, void *user)
{
    struct budget *b = user;
    struct share *s = &b->share[board];

    if (!released || !is_on(b)) {
        s->leaving_ns = 0;
        s->out = false;
        return false;
    }
    if (s->out || !held)
        return false;
    if (!s->leaving_ns)
        s->leaving_ns = loop_now_ns(b->loop);
    return true;
}

/* True if the board may be released: there is room, or it has waited long enough. */
static bool lets_out(struct share *s, const struct caps_budget_view *view,
                     uint64_t now_ns)
{
    bool room = view->counted_mw <= view->budget_mw || view->is_short;

    if (s->out || !s->leaving_ns)
        return false;
    s->out = room || now_ns >= s->leaving_ns + ROOM_NS;
    return s->out;
}

/* When to step again without an answer; UINT64_MAX: never. */
static uint64_t next_ns(const struct share *s, uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;

    if (s->over_ns && now_ns < s->over_ns + LATE_NS)
        next = s->over_ns + LATE_NS;
    if (s->leaving_ns && !s->out && s->leaving_ns + ROOM_NS < next)
        next = s->leaving_ns + ROOM_NS;
    return next;
}

/* ---- claims of the budget ---- */

static void why_of(const struct budget *b, const struct grant_board *in,
                   const struct grant *g, char ret[CLAIM_TEXT])
{
    const char *how =
        b->view.is_short && g->limit_mw <= in->min_mw
            ? "the budget is too small: the board's minimum"
        : g->limit_mw < g->plan_mw  ? "raised when other boards have been lowered"
        : g->plan_mw != g->share_mw ? "watts moved between the boards of the job"
        : b->view.late              ? b->late
                                    : "an equal share";

    (void)snprintf(ret, CLAIM_TEXT, "%g W for %zu boards: %s", w_of_mw(b->mw), b->n, how);
}

static void state(struct budget *b, size_t i, const struct grant_board *in,
                  const struct grant *g)
{
    struct share *s = &b->share[i];
    char why[CLAIM_TEXT];
    uw_error err = {""};

    why_of(b, in, g, why);
    if (claimant_claim(b->claimant, i) && s->mw == g->limit_mw &&
        strcmp(s->why, why) == 0)
        return;
    const struct claimant_ask ask = {.mw = g->limit_mw, .way = CLAIM_AT_ONCE, .why = why};
    int r = claimant_state(b->claimant, i, &ask, &err);
    if (r == 0) {
        s->mw = g->limit_mw;
        memcpy(s->why, why, sizeof s->why);
    } else if (!s->failed) {
        caps_say_failed(b->caps, i, err.text);
    }
    s->failed = r < 0;
}

static void let_out(struct budget *b, uint64_t now)
{
    for (size_t i = 0; i < b->n; i++)
        if (lets_out(&b->share[i], &b->view, now))
            caps_step_board(b->caps, i);
}

/* Whose watts the other boards do not get. */
static void name_late(struct budget *b, const struct caps_force *f)
{
    (void)snprintf(b->late, sizeof b->late, "GPU %u %s and counts %g W", f->index,
                   f->released ? "is released"
                   : f->lost   ? "is lost"
                               : "is not lowered",
                   w_of_mw(f->in_force_mw));
}

static void step(struct budget *b, uint64_t now)
{
    struct grant_board in[BOARDS_MAX] = {0};
    struct grant out[BOARDS_MAX] = {0};
    struct grant_sum sum;
    bool unknown = false, late = false;
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < b->n; i++) {
        struct caps_force f;
        caps_force(b->caps, i, &f);
        in[i] = grant_of(b, i, now, &f);
        unknown = unknown || (!f.dry_run && !f.most_mw);
        if (!late && in[i].late && in[i].in_force_mw > in[i].granted_mw) {
            name_late(b, &f);
            late = true;
        }
    }
    grant_step(in, b->n, b->mw, out, &sum);
    b->view = (struct caps_budget_view){.budget_mw = b->mw,
                                        .counted_mw = sum.counted_mw,
                                        .unknown = unknown,
                                        .least_mw = sum.least_mw,
                                        .is_short = sum.is_short,
                                        .late = late};
    for (size_t i = 0; i < b->n; i++) {
        note_over(&b->share[i], &in[i], &out[i], now);
        caps_share(b->caps, i, in[i].fixed ? 0 : out[i].share_mw,
                   in[i].fixed ? 0 : out[i].plan_mw);
    }
    for (size_t i = 0; i < b->n; i++)
        if (!in[i].fixed)
            state(b, i, &in[i], &out[i]);
    let_out(b, now);
    for (size_t i = 0; i < b->n; i++) {
        uint64_t due = next_ns(&b->share[i], now);
        next = due < next ? due : next;
    }
    if (next != UINT64_MAX)
        loop_timer_set(b->timer, next, 0);
}

static int on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct budget *b = user;
    (void)timer;

    b->stepping = true;
    if (is_on(b))
        step(b, now_ns);
    b->stepping = false;
    return 0;
}

static void on_moved(size_t board, void *user)
{
    (void)board;
    kick(user);
}

static void on_over(size_t board, uint64_t claim, void *user)
{
    (void)board;
    (void)claim;
    kick(user);
}

/* After a reconnection: boards get new time to come down. */
static void on_anew(void *user)
{
    struct budget *b = user;

    for (size_t i = 0; i < b->n; i++)
        if (b->share[i].over_ns)
            b->share[i].over_ns = loop_now_ns(b->loop);
    kick(b);
}

/* ---- life ---- */

int budget_new(struct loop *loop, struct caps *caps, size_t n, struct budget **ret,
               uw_error *err)
{
    auto_(budget_free) struct budget *b = calloc(1, sizeof *b);
    const struct claimant_who who = {
        .source = CLAIM_OF_BUDGET,
        .boards = n < BOARDS_MAX ? (1ull << n) - 1 : UINT64_MAX,
        .name = "budget of this node",
    };

    if (!b)
        return fail(err, -ENOMEM, "out of memory");
    b->loop = loop;
    b->caps = caps;
    b->n = n;
    int r = loop_timer_new(loop, UINT64_MAX, 0, on_timer, b, &b->timer, err);
    if (r == 0)
        r = claimant_new(loop, caps, &who, &b->claimant, err);
    if (r < 0)
        return r;
    b->listener = (struct caps_listener){.moved = on_moved,
                                         .over = on_over,
                                         .anew = on_anew,
                                         .keeps = on_keeps,
                                         .user = b};
    caps_listen(caps, &b->listener);
    *ret = take(b);
    return 0;
}

static void stop(struct budget *b)
{
    for (size_t i = 0; i < b->n; i++) {
        claimant_drop(b->claimant, i);
        b->share[i] = (struct share){0};
        caps_share(b->caps, i, 0, 0);
        caps_budget_want(b->caps, &i, NULL, 1, 0);
    }
    b->view = (struct caps_budget_view){0};
}

void budget_free(struct budget *b)
{
    if (!b)
        return;
    if (b->listener.user)
        caps_unlisten(b->caps, &b->listener);
    claimant_free(b->claimant);
    loop_timer_free(b->timer);
    free(b);
}

void budget_configure(struct budget *b, uint32_t budget_mw)
{
    bool ends = b->mw && !budget_mw;

    b->mw = budget_mw;
    if (ends)
        stop(b);
    kick(b);
}

/* Whether the boards' own minimums would allow the budget. */
static bool is_roots(const struct caps *caps, struct grant_board *in, const size_t *at,
                     size_t n, uint32_t budget_mw)
{
    for (size_t i = 0; i < n; i++) {
        struct caps_force f;
        caps_force(caps, at[i], &f);
        in[i].min_mw = f.own_min_mw;
    }
    return grant_check(in, n, budget_mw, NULL) == 0;
}

int budget_check(const struct caps *caps, size_t n_boards, uint32_t budget_mw,
                 uw_error *err)
{
    struct grant_board in[BOARDS_MAX];
    size_t at[BOARDS_MAX], n = 0;
    uw_error why = {""};

    for (size_t i = 0; i < n_boards; i++) {
        struct caps_force f;
        caps_force(caps, i, &f);
        if (f.silent)
            continue; /* a silent board is no reason for a refusal */
        in[n] = (struct grant_board){.min_mw = f.min_mw,
                                     .most_mw = f.use_mw,
                                     .top_mw = f.top_mw,
                                     .in_force_mw = f.most_mw,
                                     .fixed = f.fixed};
        at[n++] = i;
    }
    int r = budget_mw ? grant_check(in, n, budget_mw, &why) : 0;
    if (r == 0)
        return 0;
    return fail(err, r, "budget.node: %.140s%s", why.text,
                is_roots(caps, in, at, n, budget_mw) ? " in the range of actuator.yaml"
                                                     : "");
}

void budget_look(const struct budget *b, struct caps_budget_view *ret)
{
    *ret = b->view;
}
