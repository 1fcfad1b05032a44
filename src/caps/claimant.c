#include "caps/claimant.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "caps/caps.h"
#include "caps/claim-sources.h"

/* ---- one claimant ---- */

#define CLAMP_NS (3 * NS_PER_S) /* after which another limit than the target counts */
#define LATE_NS (30 * NS_PER_S)

struct board_claims {
    uint64_t id, clock_id; /* 0: there is none */
    uint32_t mw;           /* power of the claim on watts */
    uint32_t mhz;          /* frequency of the claim on the clock */
    uint32_t safe_mw;
    bool raises;       /* above the original, too */
    bool over;         /* others ended the claim on watts */
    bool clock_over;   /* … on the clock */
    bool stale;        /* stated or dropped since the last report */
    bool moved;        /* to be checked */
    uint64_t still_ns; /* nothing has changed since this time */
    uint64_t due_ns;   /* when time alone changes the report; UINT64_MAX: never */
    struct claim_told told;
    bool was_told;
};

struct claimant {
    struct caps *caps;
    struct caps_listener listener;
    struct loop *loop;
    struct claimant_who who;
    struct loop_timer *timer, *lease; /* NULL: has no listener, has no lease */
    bool splits; /* an uneven split was requested: equal shares may not be in force yet */
    struct board_claims board[BOARDS_MAX];
};

static bool has_board(const struct claimant *c, size_t board)
{
    return board < BOARDS_MAX && (c->who.boards >> board & 1u);
}

static void look_soon(struct claimant *c, size_t board)
{
    if (!c->who.fn)
        return; /* has no listener */
    c->board[board].moved = true;
    loop_timer_set(c->timer, loop_now_ns(c->loop), 0);
}

/* ---- state of a claim ---- */

/* 0: unknown; for a free board only while its original is not confirmed. */
static uint32_t in_force(const struct caps_view *v)
{
    if (v->enforced_mw)
        return v->enforced_mw;
    return v->state == CAPS_FREE && !v->unrestored ? v->bounds.original_mw : 0;
}

/* Whether the ramp has ended at the target of all claims. */
static bool at_rest(const struct caps_view *v)
{
    uint32_t target = v->verdict.target_mw;

    if (v->state != CAPS_HELD && v->state != CAPS_FREE)
        return false;
    if (v->state == CAPS_FREE && target != v->bounds.original_mw)
        return false; /* not requested from the actuator yet */
    return !v->ramping && v->ramp_mw == target;
}

static bool is_of_policy(enum claim_source source)
{
    return source == CLAIM_OF_RULE || source == CLAIM_OF_LIMIT;
}

/* Drops the claims of a policy: they come and go on their own, and do not change the
 * optimum that is searched.
 */
static void drop_rules(struct claims *claims)
{
    claims_drop_of(claims, CLAIM_OF_RULE);
    claims_drop_of(claims, CLAIM_OF_LIMIT);
}

static bool is_ruled(const struct claimant *c, const struct caps_view *v)
{
    struct claims others = *v->claims;
    struct cap_verdict verdict;

    if (is_of_policy(c->who.source))
        return false;
    drop_rules(&others);
    if (others.n == v->claims->n)
        return false;
    cap_decide(&others, &v->bounds, &verdict);
    return v->verdict.target_mw < verdict.target_mw;
}

/* The target of others' claims. */
static uint32_t without(const struct claimant *c, size_t board, const struct caps_view *v,
                        bool rules)
{
    struct claims others = *v->claims;
    struct cap_verdict verdict;

    (void)claims_drop(&others, c->board[board].id);
    if (!rules)
        drop_rules(&others);
    for (size_t i = 0; c->splits && i < others.n; i++)
        if (others.claim[i].source == CLAIM_OF_BUDGET && v->share_mw)
            others.claim[i].mw = v->share_mw;
    cap_decide(&others, &v->bounds, &verdict);
    return verdict.by == CAP_BY_ORIGINAL ? UINT32_MAX : verdict.target_mw;
}

static enum claim_unmet blocked(const struct caps_view *v, bool claimed)
{
    switch (v->state) {
    case CAPS_YIELDED:
        return UNMET_YIELDED;
    case CAPS_RELEASED:
        return UNMET_RELEASED;
    case CAPS_DENIED:
        return UNMET_DENIED;
    case CAPS_LOST:
        return UNMET_LOST;
    case CAPS_FREE:
    case CAPS_HOLDING:
    case CAPS_HELD:
        break;
    }
    return v->dry_run && claimed ? UNMET_DRY_RUN : UNMET_NONE;
}

static bool as_asked(const struct board_claims *b, const struct caps_view *v)
{
    uint32_t original = v->bounds.original_mw;
    bool above = b->mw > original && !b->raises;

    return !b->id || in_force(v) == (above ? original : b->mw);
}

/* Sets the time when it is late, and returns whether it is late. */
static bool waits_over(struct board_claims *b, uint64_t now, uint64_t wait_ns)
{
    if (now >= b->still_ns + wait_ns)
        return true;
    b->due_ns = b->still_ns + wait_ns;
    return false;
}

static enum claim_progress progress_of(struct board_claims *b, const struct caps_view *v,
                                       uint64_t now, enum claim_unmet *ret_why)
{
    bool rests = at_rest(v) && in_force(v);

    *ret_why = blocked(v, b->id != 0);
    b->due_ns = UINT64_MAX;
    if (b->over)
        return CLAIM_OVER;
    if (*ret_why)
        return CLAIM_UNMET;
    if (!b->id && v->holder[0] && !v->unrestored)
        return CLAIM_MET; /* the limit in force is another Underwatt's */
    if (rests && in_force(v) == v->ramp_mw)
        return as_asked(b, v) ? CLAIM_MET : CLAIM_CLAMPED;
    if (v->ramping)
        b->still_ns = now;
    if (rests)
        return waits_over(b, now, CLAMP_NS) ? CLAIM_CLAMPED : CLAIM_COMING;
    if (!waits_over(b, now, LATE_NS))
        return CLAIM_COMING;
    *ret_why = UNMET_LATE;
    return CLAIM_UNMET;
}

static enum claim_progress clock_progress(const struct board_claims *b,
                                          const struct caps_view *v)
{
    const struct caps_clock_view *k = &v->clock;
    uint32_t most = k->bounds.max_mhz, target = k->verdict.target_mhz;
    uint32_t lock = target < most ? target : 0, own = b->mhz < most ? b->mhz : 0;

    if (b->clock_over)
        return CLAIM_OVER;
    if (b->clock_id && (blocked(v, true) || !k->on || k->failed))
        return CLAIM_UNMET;
    if (k->ramping || k->locked_mhz != lock)
        return CLAIM_COMING;
    return !b->clock_id || lock == own ? CLAIM_MET : CLAIM_CLAMPED;
}

static void look(struct claimant *c, size_t board, uint64_t now,
                 const struct caps_view *v, struct claim_told *ret)
{
    struct board_claims *b = &c->board[board];
    enum claim_unmet why = UNMET_NONE;
    enum claim_progress progress = progress_of(b, v, now, &why);

    *ret = (struct claim_told){
        .progress = progress,
        .why = progress == CLAIM_UNMET ? why : UNMET_NONE,
        .released_ns = v->released_ns,
        .claimed = b->id != 0,
        .walking = v->ramping,
        .stops = v->waiting,
        .at_mw = v->ramp_mw,
        .answers = v->state != CAPS_LOST && v->state != CAPS_HOLDING,
        .taken = v->holder[0] != '\0',
        .in_force_mw = in_force(v),
        .without_mw = without(c, board, v, false),
        .rules_mw = without(c, board, v, true),
        .ruled = is_ruled(c, v),
        .original_mw = v->bounds.original_mw,
        .original_known = v->original_known,
        .unrestored = v->unrestored,
        .clock = {.progress = clock_progress(b, v),
                  .claimed = b->clock_id != 0,
                  .walking = v->clock.ramping,
                  .stops = v->clock.waiting,
                  .locked_mhz = v->clock.locked_mhz},
    };
}

void claimant_look(const struct claimant *c, size_t board, struct claim_told *ret)
{
    struct claimant copy = *c; /* a copy: only times are changed */
    struct caps_view v;

    *ret = (struct claim_told){.why = UNMET_NONE};
    if (!has_board(c, board))
        return;
    caps_look(c->caps, board, &v);
    look(&copy, board, loop_now_ns(c->loop), &v, ret);
}

static bool is_same_clock(const struct claim_clock *a, const struct claim_clock *b)
{
    return a->progress == b->progress && a->claimed == b->claimed &&
           a->walking == b->walking && a->stops == b->stops &&
           (a->walking || a->locked_mhz == b->locked_mhz);
}

static bool is_same(const struct claim_told *a, const struct claim_told *b)
{
    return a->progress == b->progress && a->why == b->why && a->claimed == b->claimed &&
           a->walking == b->walking && a->stops == b->stops && a->answers == b->answers &&
           a->taken == b->taken && a->in_force_mw == b->in_force_mw &&
           a->without_mw == b->without_mw && a->rules_mw == b->rules_mw &&
           a->ruled == b->ruled && a->original_mw == b->original_mw &&
           a->original_known == b->original_known && a->unrestored == b->unrestored &&
           is_same_clock(&a->clock, &b->clock);
}

/* Whether there is anything to report. */
static bool has_news(struct claimant *c, size_t board, uint64_t now,
                     struct caps_view *ret_view)
{
    struct board_claims *b = &c->board[board];
    struct claim_told told;

    caps_look(c->caps, board, ret_view);
    look(c, board, now, ret_view, &told);
    b->moved = false;
    if (b->was_told && !b->stale && is_same(&told, &b->told))
        return false;
    b->told = told;
    b->was_told = true;
    b->stale = false;
    return true;
}

static void set_timer(struct claimant *c)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < BOARDS_MAX; i++) {
        uint64_t due = c->board[i].moved ? 0 : c->board[i].due_ns;
        if (has_board(c, i) && due < next)
            next = due;
    }
    if (next != UINT64_MAX)
        loop_timer_set(c->timer, next, 0);
}

static int on_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct claimant *c = user;
    struct caps_view v;

    (void)timer;
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        const struct board_claims *b = &c->board[i];
        if (!has_board(c, i) || (!b->moved && now < b->due_ns))
            continue;
        if (!has_news(c, i, now, &v) || !c->who.fn)
            continue;
        set_timer(c); /* the others wait for the next turn, as fn may free c */
        const struct claim_told told = b->told;
        const char *text = told.taken && !v.text[0] ? v.holder : v.text;
        return c->who.fn(i, &told, text, c->who.user);
    }
    set_timer(c);
    return 0;
}

static void on_moved(size_t board, void *user)
{
    struct claimant *c = user;

    if (has_board(c, board))
        look_soon(c, board);
}

static void on_over(size_t board, uint64_t claim, void *user)
{
    struct claimant *c = user;
    struct board_claims *b = &c->board[board];

    if (b->clock_id == claim) {
        b->clock_id = 0;
        b->clock_over = true;
        look_soon(c, board);
    }
    if (b->id != claim)
        return;
    b->id = 0;
    b->over = true;
    look_soon(c, board);
}

/* ---- stating ---- */

static void anew(struct claimant *c, size_t board)
{
    struct board_claims *b = &c->board[board];

    b->over = false;
    b->stale = true;
    b->still_ns = loop_now_ns(c->loop);
    look_soon(c, board);
}

static void anew_clock(struct claimant *c, size_t board)
{
    c->board[board].clock_over = false;
    c->board[board].stale = true;
    look_soon(c, board);
}

int claimant_state(struct claimant *c, size_t board, const struct claimant_ask *ask,
                   uw_error *err)
{
    const struct claim_source_row *row = claim_source_row(c->who.source);

    if (!has_board(c, board))
        return fail(err, -EPERM, "board %zu is not one of %s", board, c->who.name);
    struct board_claims *b = &c->board[board];
    uint64_t *id = ask->mhz ? &b->clock_id : &b->id;
    struct claim claim = {
        .id = *id,
        .kind = ask->kind ? ask->kind : row->kind,
        .source = c->who.source,
        .mw = ask->mw,
        .mhz = ask->mhz,
        .made_ns = loop_now_ns(c->loop),
        .until_ns = ask->until_ns ? ask->until_ns : CLAIM_FOREVER,
        .uid = c->who.uid,
        .job = c->who.job,
        .admin = (row->may & MAY_NOT_END) != 0,
        .raises = (row->may & MAY_RAISE) && ask->mw,
        .way = ask->way,
    };
    (void)snprintf(claim.who, sizeof claim.who, "%s", ask->who ? ask->who : c->who.name);
    (void)snprintf(claim.why, sizeof claim.why, "%s", ask->why ? ask->why : "");
    int r = caps_claim(c->caps, board, &claim, id, err);
    if (r < 0)
        return r;
    if (ask->mw) {
        b->mw = ask->mw;
        b->raises = claim.raises;
        anew(c, board);
    } else {
        b->mhz = ask->mhz;
        anew_clock(c, board);
    }
    if (c->lease)
        loop_timer_set(c->lease, loop_now_ns(c->loop) + row->lease_ns, 0);
    return 0;
}

void claimant_explain(struct claimant *c, size_t board, const char *why)
{
    if (has_board(c, board))
        caps_explain(c->caps, board, c->board[board].id, why);
}

void claimant_drop(struct claimant *c, size_t board)
{
    if (!has_board(c, board))
        return;
    uint64_t id = c->board[board].id;

    c->board[board].id = 0;
    if (id)
        (void)caps_drop(c->caps, board, id, NULL);
    anew(c, board);
}

void claimant_drop_clock(struct claimant *c, size_t board)
{
    if (!has_board(c, board))
        return;
    uint64_t id = c->board[board].clock_id;

    c->board[board].clock_id = 0;
    if (!id && !c->board[board].clock_over)
        return;
    if (id)
        (void)caps_drop(c->caps, board, id, NULL);
    anew_clock(c, board);
}

void claimant_adopt(struct claimant *c, size_t board)
{
    struct caps_view v;

    if (!has_board(c, board) || c->board[board].id)
        return;
    caps_look(c->caps, board, &v);
    for (size_t i = 0; i < v.claims->n; i++) {
        const struct claim *k = &v.claims->claim[i];
        if (k->job != c->who.job || k->source != c->who.source || !k->mw)
            continue;
        c->board[board].id = k->id;
        c->board[board].mw = k->mw;
    }
}

uint64_t claimant_claim(const struct claimant *c, size_t board)
{
    return has_board(c, board) ? c->board[board].id : 0;
}

void claimant_split(struct claimant *c, const uint32_t *mw)
{
    size_t board[BOARDS_MAX], n = 0;
    uint32_t want_mw[BOARDS_MAX];

    if (!mw && !c->splits)
        return;
    c->splits = true; /* until it ends: see without() */
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        if (!has_board(c, i))
            continue;
        want_mw[n] = mw ? mw[i] : 0;
        board[n++] = i;
    }
    caps_budget_want(c->caps, board, mw ? want_mw : NULL, n,
                     1 + (unsigned)(c->who.job % UINT_MAX));
}

void claimant_progressed(struct claimant *c, unsigned units)
{
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        if (!has_board(c, i))
            continue;
        caps_progressed(c->caps, i, c->board[i].id, units);
        caps_progressed(c->caps, i, c->board[i].clock_id, units);
    }
}

/* ---- leases ---- */

void claimant_renew(struct claimant *c, const uint32_t *safe_mw)
{
    uint64_t lease_ns = claim_source_row(c->who.source)->lease_ns;

    for (size_t i = 0; i < BOARDS_MAX; i++)
        c->board[i].safe_mw = safe_mw && has_board(c, i) ? safe_mw[i] : 0;
    if (c->lease)
        loop_timer_set(c->lease, loop_now_ns(c->loop) + lease_ns, 0);
}

/* Ends the claim as one whose time is over. */
static void expire(struct claimant *c, size_t board, uint64_t id, uint64_t now)
{
    struct caps_view v;

    caps_look(c->caps, board, &v);
    const struct claim *claim = id ? claims_find(v.claims, id) : NULL;
    if (!claim)
        return;
    struct claim last = *claim;
    last.until_ns = now + 1;
    if (caps_claim(c->caps, board, &last, NULL, NULL) < 0)
        (void)caps_drop(c->caps, board, id, NULL);
}

static void fall_to_safe(struct claimant *c, size_t board, uint64_t now)
{
    const struct claimant_ask ask = {.mw = c->board[board].safe_mw,
                                     .way = CLAIM_AT_ONCE,
                                     .why = "safe share: the grant was not renewed"};

    if (!c->board[board].id)
        return;
    if (!ask.mw || claimant_state(c, board, &ask, NULL) < 0)
        expire(c, board, c->board[board].id, now);
}

static int on_lease(struct loop_timer *timer, uint64_t now, void *user)
{
    struct claimant *c = user;
    enum claim_lease_end end = claim_source_row(c->who.source)->at_end;

    for (size_t i = 0; i < BOARDS_MAX && end != LEASE_KEEP; i++) {
        if (!has_board(c, i))
            continue;
        if (end == LEASE_SAFE)
            fall_to_safe(c, i, now);
        else
            expire(c, i, c->board[i].id, now);
        expire(c, i, c->board[i].clock_id, now);
    }
    loop_timer_set(timer, UINT64_MAX, 0);
    return 0;
}

/* ---- life ---- */

int claimant_new(struct loop *loop, struct caps *caps, const struct claimant_who *who,
                 struct claimant **ret, uw_error *err)
{
    auto_(claimant_free) struct claimant *c = calloc(1, sizeof *c);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->caps = caps;
    c->loop = loop;
    c->who = *who;
    for (size_t i = 0; i < BOARDS_MAX; i++)
        c->board[i].due_ns = UINT64_MAX;
    int r = 0;
    if (who->fn)
        r = loop_timer_new(loop, UINT64_MAX, 0, on_timer, c, &c->timer, err);
    if (r == 0 && claim_source_row(who->source)->lease_ns)
        r = loop_timer_new(loop, UINT64_MAX, 0, on_lease, c, &c->lease, err);
    if (r < 0)
        return r;
    c->listener = (struct caps_listener){.moved = on_moved, .over = on_over, .user = c};
    caps_listen(caps, &c->listener);
    for (size_t i = 0; i < BOARDS_MAX; i++)
        if (has_board(c, i))
            look_soon(c, i);
    *ret = take(c);
    return 0;
}

static void withdraw_all(struct claimant *c)
{
    claimant_split(c, NULL);
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        claimant_drop_clock(c, i);
        claimant_drop(c, i);
    }
}

void claimant_free(struct claimant *c)
{
    if (!c)
        return;
    if (c->listener.user) {
        if (claim_source_row(c->who.source)->at_end != LEASE_KEEP)
            withdraw_all(c);
        caps_unlisten(c->caps, &c->listener);
    }
    loop_timer_free(c->timer);
    loop_timer_free(c->lease);
    free(c);
}
