#include "energy/attribution.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "energy/attribution-inside.h"

enum {
    INTERVAL_S = 10,
    WAITING_MAX = 64, /* stretches of a board whose energy is not known yet */
    JOBS_MAX = 1024,
    TRIES = 3, /* after the meter has gone on */
    END_S = 4,
};
/* By then the meter knows both sides of a stretch's end as well as it ever will, so that
 * one stretch ends just where the next begins.
 */
#define SETTLE_S 2.5
#define RETRY_S 5.0
#define GONE_ON_S 5.0 /* samples so long after a stretch: the meter has gone on */

/* ---- stretches ---- */

static void push(struct savings_of *a, struct stretch_of *s)
{
    struct stretch_of **at = &a->first;

    while (*at)
        at = &(*at)->next;
    *at = s;
    a->n_waiting++;
}

static void pop(struct savings_of *a)
{
    struct stretch_of *s = a->first;

    a->first = s->next;
    a->n_waiting--;
    free(s);
}

static bool same_parts(const struct stretch_of *s, const struct stretch_of *t)
{
    if (s->n != t->n || s->cap_mw != t->cap_mw || s->unsure || t->unsure)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->part[i].user.job != t->part[i].user.job ||
            s->part[i].phase != t->part[i].phase)
            return false;
    return true;
}

/* So much waits already: the last one gets longer. */
static void lengthen(struct savings_of *a, const struct stretch_of *s)
{
    struct stretch_of *last = a->first;

    while (last->next)
        last = last->next;
    last->end_ns = s->end_ns;
    if (!same_parts(last, s)) {
        last->unsure = true;
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        last->part[i].user.use_s += s->part[i].user.use_s;
        last->part[i].user.use_known &= s->part[i].user.use_known;
    }
}

static void see(struct savings_of *a)
{
    const struct attribution_opts *o = &a->book->opts;
    uint64_t who = o->who ? o->who(o->user) : ATTRIBUTION_NOBODY;

    a->who = a->seen && a->who != who ? ATTRIBUTION_SOMEBODY : who;
    a->seen = true;
}

/* Who was there in the stretch that ends now.  NULL: no memory. */
static struct stretch_of *gather(struct savings_of *a, uint64_t now)
{
    struct attribution *b = a->book;
    struct split_user user[ROSTER_USERS];
    size_t n = 0;

    if (b->opts.roster) {
        n = roster_users(b->opts.roster, a->at, user);
    } else {
        see(a);
        if (a->who != ATTRIBUTION_NOBODY)
            user[n++] =
                (struct split_user){.job = a->who == ATTRIBUTION_SOMEBODY ? 0 : a->who};
        a->seen = false;
    }
    struct stretch_of *s = calloc(1, sizeof *s + n * sizeof *s->part);
    if (!s)
        return NULL;
    *s = (struct stretch_of){
        .begin_ns = a->begin_ns, .end_ns = now, .cap_mw = a->cap_mw, .n = n};
    s->unsure = a->unsure;
    for (size_t i = 0; i < n; i++) {
        const struct job_entry *job = user[i].job && b->opts.roster
                                          ? roster_find(b->opts.roster, user[i].job)
                                          : NULL;
        s->part[i] = (struct part_of){user[i], job ? job->phase : 0};
    }
    return s;
}

static void turn(struct savings_of *a)
{
    uint64_t now = loop_now_ns(a->book->opts.loop);

    if (!a->open)
        return;
    struct stretch_of *s = gather(a, now);
    if (!s) { /* whose it was is forgotten, its energy is not */
        a->unsure = true;
        return;
    }
    if (now <= a->begin_ns) {
        free(s);
        return;
    }
    a->unsure = false;
    a->begin_ns = now;
    if (a->n_waiting < WAITING_MAX) {
        push(a, s);
        return;
    }
    lengthen(a, s);
    free(s);
}

/* A board's first stretch begins with its first sample. */
static void open_account(struct savings_of *a)
{
    struct meter_state state;

    if (a->open || a->away || a->book->ending)
        return;
    meter_state(sampler_meter(a->sampler, 0), &state);
    if (state.last_ns == 0)
        return;
    a->open = true;
    a->begin_ns = loop_now_ns(a->book->opts.loop);
    sampler_mark(a->sampler, a->begin_ns); /* the first one stays exact for ever */
    if (a->book->opts.roster) {            /* what was before is no part of it */
        struct split_user user[ROSTER_USERS];
        (void)roster_users(a->book->opts.roster, a->at, user);
    }
}

/* ---- their energy ---- */

static int attribution_schedule(struct attribution *b);

static bool gone_on(struct savings_of *a, uint64_t end_ns)
{
    struct meter_state state;

    meter_state(sampler_meter(a->sampler, 0), &state);
    return (int64_t)(state.last_ns - end_ns) > 0 &&
           s_between(end_ns, state.last_ns) > GONE_ON_S;
}

static int on_window(struct sampler *sampler, const struct sampler_window *w, void *user)
{
    struct savings_of *a = user;
    struct attribution *b = a->book;
    struct stretch_of *s = a->first;
    (void)sampler;

    a->asking = false;
    if (!s)
        return 0;
    /* It may have been lengthened meanwhile: then what was asked is not it. */
    if (w->end_ns != s->end_ns) {
        a->ask_ns = 0;
    } else if (w->r == 0) {
        attribution_rows(a, s, &w->board[0]);
        pop(a);
    } else if (b->ending || (gone_on(a, s->end_ns) && ++s->tries >= TRIES)) {
        attribution_rows(a, s, NULL);
        pop(a);
    } else {
        a->ask_ns = loop_now_ns(b->opts.loop) + ns_of_s(RETRY_S);
    }
    return attribution_schedule(b);
}

static uint64_t due(const struct savings_of *a)
{
    uint64_t at;

    if (!a->first || a->asking)
        return UINT64_MAX;
    at = a->first->end_ns + (a->book->ending ? 0 : ns_of_s(SETTLE_S));
    return at > a->ask_ns ? at : a->ask_ns;
}

static void ask(struct savings_of *a)
{
    const struct stretch_of *s = a->first;

    if (sampler_window(a->sampler, s->begin_ns, s->end_ns, on_window, a) == 0)
        a->asking = true;
    else
        a->ask_ns = loop_now_ns(a->book->opts.loop) + ns_of_s(RETRY_S);
}

/* ---- time ---- */

/* Stretches end with whole intervals of UTC, so that a minute's and a day's rows are
 * that minute's and that day's.
 */
static uint64_t next_end(const struct attribution *b, uint64_t now)
{
    uint64_t utc = (uint64_t)loop_utc_ns(b->opts.loop);
    uint64_t wait = b->interval_ns - utc % b->interval_ns;

    return now + (wait < b->interval_ns / 4 ? wait + b->interval_ns : wait);
}

static int finish(struct attribution *b)
{
    int (*fn)(struct attribution *, void *) = take(b->on_end);

    loop_timer_set(b->timer, UINT64_MAX, 0);
    return fn ? fn(b, b->on_end_user) : 0;
}

static int attribution_schedule(struct attribution *b)
{
    uint64_t at = b->ending ? b->end_by_ns : b->turn_ns;
    bool waits = false;

    for (size_t i = 0; i < b->n; i++) {
        uint64_t d = due(&b->account[i]);
        at = d < at ? d : at;
        waits |= b->account[i].first != NULL;
    }
    if (b->ending && !waits)
        return finish(b);
    loop_timer_set(b->timer, at, 0);
    return 0;
}

static void give_up(struct attribution *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct savings_of *a = &b->account[i];
        while (a->first) {
            attribution_rows(a, a->first, NULL);
            pop(a);
        }
    }
}

static int attribution_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct attribution *b = user;
    (void)timer;

    if (!b->ending && now_ns >= b->turn_ns) {
        for (size_t i = 0; i < b->n; i++) {
            turn(&b->account[i]);
            open_account(&b->account[i]);
        }
        b->turn_ns = next_end(b, now_ns);
    }
    if (b->ending && now_ns >= b->end_by_ns)
        give_up(b);
    for (size_t i = 0; i < b->n; i++)
        if (due(&b->account[i]) <= now_ns)
            ask(&b->account[i]);
    return attribution_schedule(b);
}

/* ---- what others tell ---- */

void attribution_turn(struct attribution *b, size_t board)
{
    if (board >= b->n || b->ending)
        return;
    open_account(&b->account[board]);
    turn(&b->account[board]);
    (void)attribution_schedule(b);
}

void attribution_see(struct attribution *b)
{
    for (size_t i = 0; i < b->n && !b->opts.roster; i++)
        if (b->account[i].open)
            see(&b->account[i]);
}

void attribution_cap(struct attribution *b, size_t board, uint32_t cap_mw)
{
    if (board >= b->n || b->account[board].cap_mw == cap_mw)
        return;
    attribution_turn(b, board);
    b->account[board].cap_mw = cap_mw;
}

void attribution_detach(struct attribution *b, size_t board, bool away)
{
    struct savings_of *a = board < b->n ? &b->account[board] : NULL;

    if (!a || a->away == away)
        return;
    if (away) {
        turn(a);
        a->open = false;
    }
    a->away = away;
    if (!away)
        open_account(a);
    (void)attribution_schedule(b);
}

bool attribution_board_settled(const struct attribution *b, size_t board)
{
    return board >= b->n || !b->account[board].first;
}

int attribution_end(struct attribution *b, int (*fn)(struct attribution *b, void *user),
                    void *user)
{
    uint64_t now = loop_now_ns(b->opts.loop);

    if (b->ending)
        return -EALREADY;
    for (size_t i = 0; i < b->n; i++) {
        turn(&b->account[i]);
        b->account[i].open = false;
        b->account[i].ask_ns = 0;
    }
    b->ending = true;
    b->end_by_ns = now + END_S * NS_PER_S;
    b->on_end = fn;
    b->on_end_user = user;
    loop_timer_set(b->timer, now, 0);
    return 0;
}

/* ---- sums ---- */

const struct attribution_board *attribution_board(const struct attribution *b,
                                                  size_t board)
{
    return board < b->n ? &b->account[board].sum : NULL;
}

const struct attribution_job *attribution_job(const struct attribution *b, uint64_t job)
{
    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->job[i].job == job)
            return &b->job[i];
    return NULL;
}

struct attribution_job *attribution_job_at(struct attribution *b, uint64_t job)
{
    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->job[i].job == job)
            return &b->job[i];
    if (array_grow(&b->job, &b->jobs_room, b->n_jobs, JOBS_MAX) < 0)
        return NULL;
    b->job[b->n_jobs] = (struct attribution_job){.job = job};
    return &b->job[b->n_jobs++];
}

bool attribution_settled(const struct attribution *b, uint64_t job)
{
    for (size_t i = 0; i < b->n; i++)
        for (const struct stretch_of *s = b->account[i].first; s; s = s->next)
            for (size_t k = 0; k < s->n; k++)
                if (s->part[k].user.job == job)
                    return false;
    return true;
}

void attribution_forget(struct attribution *b, uint64_t job)
{
    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->job[i].job == job) {
            b->job[i] = b->job[--b->n_jobs];
            return;
        }
}

/* ---- life ---- */

int attribution_new(const struct attribution_opts *opts, struct attribution **ret,
                    uw_error *err)
{
    auto_(attribution_free) struct attribution *b = calloc(1, sizeof *b);

    if (!b)
        return fail(err, -ENOMEM, "out of memory for the books");
    b->opts = *opts;
    b->opts.before = NULL; /* the caller's */
    b->interval_ns = opts->interval_ns ? opts->interval_ns : INTERVAL_S * NS_PER_S;
    b->account = calloc(opts->n ? opts->n : 1, sizeof *b->account);
    if (!b->account)
        return fail(err, -ENOMEM, "out of memory for the books of %zu boards", opts->n);
    for (size_t i = 0; i < opts->n; i++) {
        b->account[i] =
            (struct savings_of){.book = b, .at = i, .sampler = opts->sampler[i]};
        if (opts->before)
            b->account[i].sum = opts->before[i];
    }
    b->n = opts->n;
    b->turn_ns = loop_now_ns(opts->loop) + NS_PER_S; /* the first samples */
    int r = loop_timer_new(opts->loop, b->turn_ns, 0, attribution_on_timer, b, &b->timer,
                           err);
    if (r < 0)
        return r;
    *ret = take(b);
    return 0;
}

void attribution_free(struct attribution *b)
{
    if (!b)
        return;
    loop_timer_free(b->timer);
    for (size_t i = 0; i < b->n; i++)
        while (b->account[i].first)
            pop(&b->account[i]);
    free(b->account);
    free(b->job);
    free(b);
}
