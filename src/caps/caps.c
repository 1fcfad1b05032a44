#include "caps/caps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "base/units.h"
#include "caps/caps-inside.h"
#include "caps/claim-sources.h"

/* ---- all boards ---- */

void caps_tell_done(struct caps_board *b, int r, const char *text)
{
    caps_done_fn fn = b->release_fn;

    b->release_fn = NULL;
    if (fn)
        fn(r, text, b->release_user);
}

static int on_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct caps_board *b = user;

    (void)timer;
    (void)now;
    caps_step(b);
    if (b->link == LINK_NONE)
        caps_tell_done(b, b->unrestored ? -EIO : 0,
                       b->unrestored ? "the actuator has not restored the limit yet"
                                     : "the board is not held");
    return 0;
}

static int board_init(struct caps *c, size_t i, struct boards *boards, uw_error *err)
{
    const struct board_view *view = board_view(boards_at(boards, i));
    struct caps_board *b = &c->board[i];
    const struct gpu_sample *first = &view->first;

    *b = (struct caps_board){.caps = c, .at = i, .info = view->info, .others.told = true};
    for (size_t k = 0; k < ASKS_MAX; k++)
        b->ask[k].board = b;
    b->can_cap = view->has_limits && view->limits.max_mw > 0 &&
                 (view->info->abilities & GPU_CAN_SET_LIMIT);
    b->silent = !view->has_limits && !view->has_first &&
                (view->info->abilities & GPU_CAN_SET_LIMIT);
    b->limits = view->limits;
    b->bounds.min_mw = view->limits.min_mw;
    b->bounds.max_mw = view->limits.max_mw;
    b->bounds.original_mw = view->limits.default_mw;
    if (view->has_first && (first->has & GPU_HAS_ENFORCED) && first->enforced_mw)
        b->bounds.original_mw = b->enforced_mw = b->told_mw = first->enforced_mw;
    if (view->has_first && (first->has & GPU_HAS_REQUESTED) && first->requested_mw)
        b->bounds.original_mw = b->seen_mw = first->requested_mw;
    b->dry_mw = b->bounds.original_mw;
    b->back_ns = CLAIM_FOREVER;
    ramp_init(&b->ramp, b->bounds.original_mw, GRAIN_MW, c->began_ns);
    clock_lock_init(&b->clock, b->info, &b->claims, c->began_ns);
    return loop_timer_new(c->loop, c->began_ns, 0, on_timer, b, &b->timer, err);
}

int caps_new(const struct caps_opts *opts, struct caps **ret, uw_error *err)
{
    size_t n = boards_count(opts->boards);
    auto_(caps_free) struct caps *c = calloc(1, sizeof *c + n * sizeof c->board[0]);

    if (!c)
        return fail(err, -ENOMEM, "out of memory");
    c->loop = opts->loop;
    c->conf = opts->conf;
    c->on_event = opts->on_event;
    c->user = opts->user;
    c->last_id = opts->first_id ? opts->first_id - 1 : 0;
    c->began_ns = loop_now_ns(opts->loop);
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++) {
        r = board_init(c, i, opts->boards, err);
        if (r >= 0)
            c->n = i + 1;
    }
    if (r < 0)
        return r;
    *ret = take(c);
    return 0;
}

void caps_free(struct caps *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n; i++)
        loop_timer_free(c->board[i].timer);
    loop_timer_free(c->end_timer);
    free(c);
}

static void step_all(struct caps *c)
{
    for (size_t i = 0; i < c->n; i++)
        caps_step(&c->board[i]);
}

void caps_configure(struct caps *c, const struct caps_conf *conf)
{
    bool clock_news = conf->clocks != c->conf.clocks;

    c->conf = *conf;
    for (size_t i = 0; clock_news && i < c->n; i++)
        clock_lock_hurry(&c->board[i].clock);
    step_all(c);
}

void caps_count_on(struct caps *c, size_t board, const struct caps_view *was)
{
    if (board >= c->n)
        return;
    struct caps_board *b = &c->board[board];

    b->writes = was->writes;
    b->failures = was->failures;
    memcpy(b->others.changes, was->changes, sizeof b->others.changes);
    clock_lock_count_on(&b->clock, &was->clock);
}

/* ---- the actuator ---- */

void caps_use_actuator(struct caps *c, struct actuator *act)
{
    if (act == c->act)
        return;
    c->act = act;
    for (struct caps_listener *l = c->listeners; l; l = l->next)
        if (l->anew)
            l->anew(l->user);
    for (size_t i = 0; i < c->n; i++) {
        caps_cut(&c->board[i]);
        caps_step(&c->board[i]);
    }
    for (size_t i = 0; i < c->n; i++)
        if (c->board[i].link == LINK_NONE)
            caps_tell_done(&c->board[i], -ENOTCONN,
                           "the actuator is gone and restores the limit itself");
    caps_check_end(c);
}

void caps_no_actuator(struct caps *c, const char *text)
{
    (void)snprintf(c->absent, sizeof c->absent, "%s", text);
    caps_use_actuator(c, NULL);
    for (size_t i = 0; i < c->n; i++)
        caps_step(&c->board[i]);
}

static struct caps_board *find_board(struct caps *c, const char *uuid)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->board[i].info->uuid, uuid) == 0)
            return &c->board[i];
    return NULL;
}

void caps_on_actuator(struct caps *c, enum actuator_event event,
                      const struct actuator_reply *what)
{
    if (event == ACTUATOR_EVENT_ENDED) {
        caps_use_actuator(c, NULL);
        return;
    }
    struct caps_board *b = find_board(c, what->uuid);
    if (!b)
        return;
    if (event == ACTUATOR_EVENT_WRITING) {
        b->writing = b->link == LINK_HOLDING;
        return;
    }
    if (event == ACTUATOR_EVENT_BOARD)
        caps_on_holder(b, what);
    else if (event == ACTUATOR_EVENT_YIELDED)
        caps_on_yield(b, what);
    else
        caps_on_lost(b, what, event == ACTUATOR_EVENT_LEASE);
    caps_step(b);
    caps_check_end(c);
}

void caps_look_for_holders(struct caps *c)
{
    if (c->act)
        (void)actuator_look(c->act, NULL, NULL);
}

/* ---- claims ---- */

static int find_capped(struct caps *c, size_t board, const struct claim *claim,
                       struct caps_board **ret, uw_error *err)
{
    if (board >= c->n)
        return fail(err, -ENODEV, "there is no board %zu: this node has %zu", board,
                    c->n);
    struct caps_board *b = &c->board[board];
    *ret = b;
    /* A claim of an earlier run waits until the board is reopened. */
    if (b->silent)
        return claim->id
                   ? 0
                   : fail(err, -EAGAIN, "%s: this board does not answer", b->info->uuid);
    if (!b->can_cap)
        return fail(err, -ENOTSUP, "%s: this board takes no power limit", b->info->uuid);
    if (claim->mhz && !b->clock.can)
        return fail(err, -ENOTSUP, "%s: this board's clocks cannot be locked",
                    b->info->uuid);
    if (claim->mhz && !c->conf.clocks)
        return fail(err, -ENOTSUP,
                    "%s: locked clocks are off (caps.clocks in underwattd.yaml)",
                    b->info->uuid);
    return 0;
}

static int check_clock(const struct caps_board *b, const struct claim *claim,
                       uw_error *err)
{
    const struct clock_bounds *k = &b->clock.bounds;
    bool low = claim->mhz < k->min_mhz && claim->kind != CLAIM_HARD;

    if (claim->mhz && !b->silent && (low || claim->mhz > k->max_mhz))
        return fail(err, -ERANGE,
                    "%s: %" PRIu32 " MHz is outside %" PRIu32 "..%" PRIu32 " MHz",
                    b->info->uuid, claim->mhz, k->min_mhz, k->max_mhz);
    return 0;
}

static int check_range(const struct caps_board *b, const struct claim *claim,
                       uint64_t now, uw_error *err)
{
    bool low = claim->mw < b->limits.min_mw && claim->kind != CLAIM_HARD;

    if (claim->mw && !b->silent && (low || claim->mw > b->limits.max_mw))
        return fail(err, -ERANGE, "%s: %g W is outside %g..%g W", b->info->uuid,
                    w_of_mw(claim->mw), w_of_mw(b->limits.min_mw),
                    w_of_mw(b->limits.max_mw));
    if (claim->until_ns <= now)
        return fail(err, -EINVAL, "%s: the claim has expired already", b->info->uuid);
    return 0;
}

/* A renewal with the same value does not count as a change. */
static bool is_news(const struct claim *old, const struct claim *claim)
{
    if (claim->kind == CLAIM_SOFT && (!old || old->kind == CLAIM_SOFT))
        return false;
    return !old || old->kind != claim->kind || old->mw != claim->mw ||
           old->mhz != claim->mhz;
}

int caps_claim(struct caps *c, size_t board, const struct claim *claim, uint64_t *ret_id,
               uw_error *err)
{
    uint64_t now = loop_now_ns(c->loop);
    struct claim copy = *claim;
    struct caps_board *b = NULL;

    int r = claim_source_check(claim, err);
    if (r == 0)
        r = find_capped(c, board, claim, &b, err);
    if (r < 0 || !b)
        return r;
    r = check_range(b, claim, now, err);
    if (r == 0)
        r = check_clock(b, claim, err);
    if (r < 0)
        return r;
    copy.id = claim->id ? claim->id : c->last_id + 1;
    copy.made_ns = claim->made_ns ? claim->made_ns : now;
    const struct claim *old = claims_find(&b->claims, copy.id);
    bool news = is_news(old, &copy);
    bool clock_news = copy.mhz != (old ? old->mhz : 0);
    r = claims_put(&b->claims, &copy, err);
    if (r < 0)
        return fail_in(err, r, "%s", b->info->uuid);

    if (copy.id > c->last_id)
        c->last_id = copy.id;
    if (news)
        caps_hurry(b);
    if (clock_news)
        clock_lock_hurry(&b->clock);
    cap_decide(&b->claims, &b->bounds, &b->verdict);
    caps_tell(b, CAPS_EVENT_CLAIM, claims_find(&b->claims, copy.id), "");
    caps_step(b);
    if (ret_id)
        *ret_id = copy.id;
    return 0;
}

void caps_explain(struct caps *c, size_t board, uint64_t id, const char *why)
{
    if (board < c->n)
        claims_explain(&c->board[board].claims, id, why);
}

static void drop_claim(struct caps_board *b, const struct claim *claim)
{
    const struct claim gone = *claim;

    (void)claims_drop(&b->claims, gone.id);
    bool yields = b->state == CAPS_YIELDED && b->claims.n == 0;
    if (gone.kind != CLAIM_SOFT && !yields) /* another's limit is left for its time */
        caps_hurry(b);
    if (gone.mhz)
        clock_lock_hurry(&b->clock);
    cap_decide(&b->claims, &b->bounds, &b->verdict);
    caps_tell(b, CAPS_EVENT_WITHDRAW, &gone, "");
    caps_over(b, gone.id);
}

int caps_drop(struct caps *c, size_t board, uint64_t id, uw_error *err)
{
    struct caps_board *b = board < c->n ? &c->board[board] : NULL;
    const struct claim *claim = b ? claims_find(&b->claims, id) : NULL;

    if (!claim)
        return fail(err, -ENOENT, "there is no claim %" PRIu64 " on board %zu", id,
                    board);
    drop_claim(b, claim);
    caps_step(b);
    return 0;
}

int caps_withdraw(struct caps *c, size_t board, uint64_t id, uw_error *err)
{
    const struct claim *claim =
        board < c->n ? claims_find(&c->board[board].claims, id) : NULL;

    if (claim && (claim_source_row(claim->source)->may & MAY_NOT_END))
        return claim_source_refuse(claim, err);
    return caps_drop(c, board, id, err);
}

void caps_listen(struct caps *c, struct caps_listener *l)
{
    l->next = c->listeners;
    c->listeners = l;
}

void caps_unlisten(struct caps *c, struct caps_listener *l)
{
    struct caps_listener **p = &c->listeners;

    while (*p && *p != l)
        p = &(*p)->next;
    if (*p)
        *p = l->next;
}

void caps_withdraw_job(struct caps *c, uint64_t job)
{
    for (size_t i = 0; job && i < c->n; i++) {
        struct caps_board *b = &c->board[i];
        bool any = false;
        for (size_t k = b->claims.n; k-- > 0;) {
            if (b->claims.claim[k].job != job)
                continue;
            drop_claim(b, &b->claims.claim[k]);
            any = true;
        }
        if (any)
            caps_step(b);
    }
}

/* ---- work and samples of the boards ---- */

void caps_work(struct caps *c, size_t board, const struct caps_work *work)
{
    if (board >= c->n)
        return;
    struct caps_board *b = &c->board[board];

    b->demand_mw = mw_of_w(work->demand_w);
    b->peak_mw = mw_of_w(work->peak_w);
    b->counted = work->counted;
    b->has_cls = work->cls != NULL;
    if (work->cls)
        b->cls = *work->cls;
    if (work->progressing) {
        caps_progress(b, 0, 0);
        clock_lock_progress(&b->clock, 0, 0, loop_now_ns(c->loop));
    }
    caps_step(b);
}

void caps_progressed(struct caps *c, size_t board, uint64_t claim, unsigned units)
{
    if (board >= c->n || !claim)
        return;
    struct caps_board *b = &c->board[board];

    caps_progress(b, claim, units);
    clock_lock_progress(&b->clock, claim, units, loop_now_ns(c->loop));
    caps_step(b);
}

void caps_seen(struct caps *c, size_t board, const struct gpu_sample *sample)
{
    if (board < c->n)
        caps_on_sample(&c->board[board], sample);
}

bool caps_watches_clock(const struct caps *c, size_t board)
{
    if (board >= c->n)
        return false;
    const struct clock_lock *k = &c->board[board].clock;
    return k->locked_mhz || k->watched;
}

void caps_watch_clock(struct caps *c, size_t board, bool watch)
{
    if (board < c->n)
        c->board[board].clock.watched = watch;
}

/* ---- a budget ---- */

bool caps_is_ending(const struct caps *c)
{
    return c->ending;
}

void caps_share(struct caps *c, size_t board, uint32_t share_mw, uint32_t plan_mw)
{
    if (board >= c->n)
        return;
    c->board[board].share.share_mw = share_mw;
    c->board[board].share.plan_mw = plan_mw;
}

void caps_step_board(struct caps *c, size_t board)
{
    if (board < c->n)
        caps_step(&c->board[board]);
}

void caps_say_failed(struct caps *c, size_t board, const char *text)
{
    if (board < c->n)
        caps_tell(&c->board[board], CAPS_EVENT_FAIL, NULL, text);
}

void caps_budget_want(struct caps *c, const size_t *board, const uint32_t *mw, size_t n,
                      unsigned group)
{
    for (size_t i = 0; i < n; i++) {
        if (board[i] >= c->n)
            continue;
        struct caps_board *b = &c->board[board[i]];
        b->share.want_mw = mw ? mw[i] : 0;
        b->share.group = mw ? group : 0;
        caps_moved(b);
    }
}

/* ---- release ---- */

static uint64_t back_at(uint64_t now, uint64_t hold_off_ns)
{
    return hold_off_ns && hold_off_ns < CLAIM_FOREVER - now ? now + hold_off_ns
                                                            : CLAIM_FOREVER;
}

void caps_back_after(struct caps *c, size_t board, uint64_t hold_off_ns)
{
    if (board >= c->n || !c->board[board].released)
        return;
    c->board[board].back_ns = back_at(loop_now_ns(c->loop), hold_off_ns);
    caps_step(&c->board[board]);
}

int caps_release(struct caps *c, size_t board, uint64_t hold_off_ns, caps_done_fn fn,
                 void *user, uw_error *err)
{
    uint64_t now = loop_now_ns(c->loop);

    if (board >= c->n)
        return fail(err, -ENODEV, "there is no board %zu: this node has %zu", board,
                    c->n);
    struct caps_board *b = &c->board[board];
    if (b->released)
        return fail(err, -EBUSY, "%s is released already", b->info->uuid);
    b->released = true;
    b->released_ns = now;
    b->back_ns = back_at(now, hold_off_ns);
    b->release_fn = fn;
    b->release_user = user;
    b->retry_ns = 0;
    caps_step(b);
    return 0;
}

void caps_released_since(struct caps *c, size_t board, uint64_t since_ns)
{
    if (board < c->n && c->board[board].released)
        c->board[board].released_ns = since_ns;
}

int caps_take_back(struct caps *c, size_t board, uw_error *err)
{
    if (board >= c->n)
        return fail(err, -ENODEV, "there is no board %zu: this node has %zu", board,
                    c->n);
    struct caps_board *b = &c->board[board];
    if (!b->released)
        return fail(err, -ENOENT, "%s is not released", b->info->uuid);
    b->released = false;
    if (b->link != LINK_HELD) /* otherwise it was never released */
        b->sure = false;      /* a reset may have changed the limit */
    b->attempts = 0;
    caps_hurry(b);
    caps_step(b);
    return 0;
}

/* ---- the end ---- */

/* The boards whose originals are not confirmed; "" none. */
static void name_unrestored(const struct caps *c, char *ret, size_t size)
{
    size_t len = 0;

    ret[0] = '\0';
    for (size_t i = 0; i < c->n; i++) {
        const struct caps_board *b = &c->board[i];
        if (!(b->unrestored || b->unanswered) || len >= size)
            continue;
        int n = snprintf(ret + len, size - len, "%s%s",
                         len ? ", " : "not confirmed: ", b->info->uuid);
        len += n > 0 ? (size_t)n : 0;
    }
}

void caps_check_end(struct caps *c)
{
    bool over = loop_now_ns(c->loop) >= c->end_ns;
    caps_done_fn fn = c->end_fn;
    char text[200];

    if (!fn)
        return;
    for (size_t i = 0; !over && i < c->n; i++)
        if (c->board[i].link != LINK_NONE)
            return;
    c->end_fn = NULL;
    name_unrestored(c, text, sizeof text);
    fn(text[0] ? (over ? -ETIMEDOUT : -EIO) : 0, text, c->end_user);
}

static int on_end_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct caps *c = user;

    if (now < c->end_ns)
        loop_timer_set(timer, c->end_ns, 0);
    caps_check_end(c);
    return 0;
}

int caps_end(struct caps *c, caps_done_fn fn, void *user)
{
    uint64_t now = loop_now_ns(c->loop);

    if (c->ending)
        return -EBUSY;
    int r = loop_timer_new(c->loop, now, 0, on_end_timer, c, &c->end_timer, NULL);
    if (r < 0)
        return r;
    c->ending = true;
    step_all(c);
    c->end_fn = fn;
    c->end_user = user;
    c->end_ns = now + END_NS;
    return 0;
}

/* ---- views ---- */

enum caps_state caps_state(const struct caps *c, size_t board)
{
    return board < c->n ? c->board[board].state : (enum caps_state)0;
}

bool caps_let_go(const struct caps *c, size_t board)
{
    const struct caps_board *b = board < c->n ? &c->board[board] : NULL;

    return b && b->released && b->link == LINK_NONE && !b->unrestored && !b->release_fn;
}

void caps_look(const struct caps *c, size_t board, struct caps_view *ret)
{
    *ret = (struct caps_view){.dry_run = c->conf.dry_run};
    if (board >= c->n)
        return;
    const struct caps_board *b = &c->board[board];
    bool walks = b->link == LINK_HELD || c->conf.dry_run;

    ret->state = b->state;
    ret->can_cap = b->can_cap;
    ret->let_go = caps_let_go(c, board);
    ret->writing = b->writing && b->link == LINK_HOLDING;
    ret->unrestored = (b->unrestored || b->unanswered) && b->link == LINK_NONE;
    ret->released_ns = b->released ? b->released_ns : 0;
    ret->back_ns = b->back_ns;
    ret->retry_ns = b->retry_ns;
    ret->limits = b->limits;
    ret->range = caps_range(b);
    ret->bounds = b->bounds;
    ret->original_known = b->sure;
    ret->verdict = b->verdict;
    ret->ramp_mw = walks            ? caps_due(b)
                   : b->enforced_mw ? b->enforced_mw
                                    : b->bounds.original_mw;
    ret->enforced_mw = b->enforced_mw;
    ret->ramping = walks && !ramp_arrived(&b->ramp);
    ret->waiting = walks && b->ramp.waiting;
    for (size_t i = 0; i < ASKS_MAX; i++)
        ret->asking |= b->ask[i].mw != 0;
    ret->failed = b->failed;
    ret->share_mw = b->share.share_mw;
    ret->plan_mw = b->share.plan_mw;
    ret->rate_mw_s = ret->ramping ? b->ramp.rate_mw_s : 0;
    ret->call_s = b->call_s;
    ret->claims = &b->claims;
    ret->cls = *caps_class(b);
    ret->writes = b->writes;
    ret->failures = b->failures;
    memcpy(ret->changes, b->others.changes, sizeof ret->changes);
    bool other = b->holder.there && b->link != LINK_HELD;
    ret->taken_by = b->state == CAPS_LOST && b->taken_by ? b->taken_by
                    : other                              ? b->holder.pid
                                                         : 0;
    (void)snprintf(ret->holder, sizeof ret->holder, "%s", other ? b->holder.text : "");
    memcpy(ret->text, b->text, sizeof ret->text);
    struct clock_lock_now now = caps_clock_now(b);
    clock_lock_view(&b->clock, &now, &ret->clock);
}
