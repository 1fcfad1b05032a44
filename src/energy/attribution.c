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
    SLACK_MS = 500,   /* a turn may be later by this, to join another wake-up */
    WAITING_MAX = 64, /* ended stretches of a board that wait for their energy */
    JOBS_MAX = 1024,
    TRIES = 3, /* failed queries after meter_passed(), then the stretch is lost */
    END_S = 4, /* time for the last queries */
};
/* Delay before a stretch's energy is queried: the meter has then received all samples
 * around the end of the stretch.
 */
#define SETTLE_S 2.5
#define RETRY_S 5.0
#define PASSED_S 5.0 /* see meter_passed() */

/* ---- stretches ---- */

static void push(struct account *a, struct stretch *s)
{
    struct stretch **at = &a->first;

    while (*at)
        at = &(*at)->next;
    *at = s;
    a->n_waiting++;
}

static void pop(struct account *a)
{
    struct stretch *s = a->first;

    a->first = s->next;
    a->n_waiting--;
    free(s);
}

static bool same_parts(const struct stretch *s, const struct stretch *t)
{
    if (s->n != t->n || s->cap_mw != t->cap_mw || s->unsure || t->unsure)
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (s->part[i].user.job != t->part[i].user.job ||
            s->part[i].phase != t->part[i].phase)
            return false;
    return true;
}

/* Merges s into the last waiting stretch, because the queue is full. */
static void lengthen(struct account *a, const struct stretch *s)
{
    struct stretch *last = a->first;

    while (last->next)
        last = last->next;
    last->end_ns = s->end_ns;
    attribution_add_readings(&last->util, &s->util);
    if (!same_parts(last, s)) {
        last->unsure = true;
        return;
    }
    for (size_t i = 0; i < s->n; i++) {
        last->part[i].user.use_s += s->part[i].user.use_s;
        last->part[i].user.use_known &= s->part[i].user.use_known;
    }
}

static void see(struct account *a)
{
    const struct attribution_opts *o = &a->book->opts;
    uint64_t who = o->who ? o->who(o->user) : ATTRIBUTION_NOBODY;

    a->who = a->seen && a->who != who ? ATTRIBUTION_SOMEBODY : who;
    a->seen = true;
}

/* Makes the stretch that ends now, with its users.  NULL: no memory. */
static struct stretch *gather(struct account *a, uint64_t now)
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
    struct stretch *s = calloc(1, sizeof *s + n * sizeof *s->part);
    if (!s)
        return NULL;
    *s = (struct stretch){
        .begin_ns = a->begin_ns, .end_ns = now, .cap_mw = a->cap_mw, .n = n};
    s->unsure = a->unsure;
    s->util = a->util;
    for (size_t i = 0; i < n; i++) {
        const struct job_entry *job = user[i].job && b->opts.roster
                                          ? roster_find(b->opts.roster, user[i].job)
                                          : NULL;
        s->part[i] = (struct part){
            .user = user[i],
            .phase = job ? job->phase : 0,
            .has_process = job && roster_has_process(b->opts.roster, a->at, job->id)};
    }
    return s;
}

static void turn(struct account *a)
{
    uint64_t now = loop_now_ns(a->book->opts.loop);

    if (!a->open)
        return;
    struct stretch *s = gather(a, now);
    if (!s) { /* the stretch goes on; its users are lost, its energy is not */
        a->unsure = true;
        return;
    }
    if (now <= a->begin_ns) {
        free(s);
        return;
    }
    a->unsure = false;
    a->util = (struct readings){0};
    a->begin_ns = now;
    if (a->n_waiting < WAITING_MAX) {
        push(a, s);
        return;
    }
    lengthen(a, s);
    free(s);
}

/* Begins a board's first stretch if the meter has a sample. */
static void open_account(struct account *a)
{
    struct meter_state state;

    if (a->open || a->away || a->book->ending)
        return;
    meter_state(sampler_meter(a->sampler, 0), &state);
    if (state.last_ns == 0)
        return;
    a->open = true;
    a->begin_ns = loop_now_ns(a->book->opts.loop);
    sampler_mark(a->sampler, a->begin_ns); /* keep exact samples around the start */
    if (a->book->opts.roster) {            /* discard the users' times so far */
        struct split_user user[ROSTER_USERS];
        (void)roster_users(a->book->opts.roster, a->at, user);
    }
}

/* ---- energy of the stretches ---- */

static int attribution_schedule(struct attribution *b);

/* Whether the meter has samples from PASSED_S after end_ns: a query that fails then is
 * not merely early.
 */
static bool meter_passed(struct account *a, uint64_t end_ns)
{
    struct meter_state state;

    meter_state(sampler_meter(a->sampler, 0), &state);
    return (int64_t)(state.last_ns - end_ns) > 0 &&
           s_between(end_ns, state.last_ns) > PASSED_S;
}

static int on_window(struct sampler *sampler, const struct sampler_window *w, void *user)
{
    struct account *a = user;
    struct attribution *b = a->book;
    struct stretch *s = a->first;
    (void)sampler;

    a->asking = false;
    if (!s)
        return 0;
    /* The stretch may have been lengthened since the query. */
    if (w->end_ns != s->end_ns) {
        a->ask_ns = 0;
    } else if (w->r == 0) {
        attribution_rows(a, s, &w->board[0]);
        pop(a);
    } else if (b->ending || (meter_passed(a, s->end_ns) && ++s->tries >= TRIES)) {
        attribution_rows(a, s, NULL);
        pop(a);
    } else {
        a->ask_ns = loop_now_ns(b->opts.loop) + ns_of_s(RETRY_S);
    }
    return attribution_schedule(b);
}

static uint64_t due(const struct account *a)
{
    uint64_t at;

    if (!a->first || a->asking)
        return UINT64_MAX;
    bool at_once = a->book->ending || a->first->end_ns <= a->hurry_ns;
    at = a->first->end_ns + (at_once ? 0 : ns_of_s(SETTLE_S));
    return at > a->ask_ns ? at : a->ask_ns;
}

static void ask(struct account *a)
{
    const struct stretch *s = a->first;

    if (sampler_window(a->sampler, s->begin_ns, s->end_ns, on_window, a) == 0)
        a->asking = true;
    else
        a->ask_ns = loop_now_ns(a->book->opts.loop) + ns_of_s(RETRY_S);
}

/* ---- timer ---- */

/* Stretches end at multiples of the interval in UTC, so that rows can be summed by minute
 * and day.
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

/* Books all waiting stretches as lost. */
static void give_up(struct attribution *b)
{
    for (size_t i = 0; i < b->n; i++) {
        struct account *a = &b->account[i];
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

/* ---- events ---- */

void attribution_turn(struct attribution *b, size_t board)
{
    if (!b || board >= b->n || b->ending)
        return;
    open_account(&b->account[board]);
    turn(&b->account[board]);
    (void)attribution_schedule(b);
}

static void hurry(struct account *a)
{
    if (!a->open || !a->first)
        return;
    a->hurry_ns = a->begin_ns;
    sampler_mark(a->sampler, a->begin_ns);
    sampler_around(a->sampler, a->begin_ns,
                   meter_ready(sampler_meter(a->sampler, 0), a->begin_ns));
}

void attribution_hurry(struct attribution *b, uint64_t boards)
{
    if (!b || b->ending)
        return;
    for (size_t i = 0; i < b->n; i++)
        if (boards >> i & 1)
            hurry(&b->account[i]);
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
    struct account *a = b && board < b->n ? &b->account[board] : NULL;

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

struct attribution_waste attribution_waste(const struct attribution *b, size_t board)
{
    return board < b->n ? b->account[board].waste : (struct attribution_waste){0};
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
    loop_timer_slack(b->timer, 0);
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

struct attribution_part *attribution_part_at(struct attribution_job *job, size_t board)
{
    size_t at = 0;

    while (at < job->n_parts && job->part[at].board < board)
        at++;
    if (at < job->n_parts && job->part[at].board == board)
        return &job->part[at];
    if (array_grow(&job->part, &job->parts_room, job->n_parts, BOARDS_MAX + 1) < 0)
        return NULL;
    struct attribution_part *part = &job->part[at];
    memmove(part + 1, part, (job->n_parts++ - at) * sizeof *part);
    *part = (struct attribution_part){.board = board};
    return part;
}

int attribution_resume(struct attribution *b, uint64_t job, double time_s,
                       const struct attribution_part *part, size_t n)
{
    struct attribution_job *j = n ? attribution_job_at(b, job) : NULL;

    if (!j)
        return n ? -ENOMEM : 0;
    j->time_s = time_s;
    for (size_t i = 0; i < n; i++) {
        struct attribution_part *p = attribution_part_at(j, part[i].board);
        if (!p)
            return -ENOMEM;
        *p = part[i];
    }
    return 0;
}

bool attribution_settled(const struct attribution *b, uint64_t job)
{
    for (size_t i = 0; i < b->n; i++)
        for (const struct stretch *s = b->account[i].first; s; s = s->next)
            for (size_t k = 0; k < s->n; k++)
                if (s->part[k].user.job == job)
                    return false;
    return true;
}

void attribution_forget(struct attribution *b, uint64_t job)
{
    for (size_t i = 0; i < b->n_jobs; i++)
        if (b->job[i].job == job) {
            free(b->job[i].part);
            b->job[i] = b->job[--b->n_jobs];
            return;
        }
}

/* ---- set-up ---- */

int attribution_new(const struct attribution_opts *opts, struct attribution **ret,
                    uw_error *err)
{
    auto_(attribution_free) struct attribution *b = calloc(1, sizeof *b);

    if (!b)
        return fail(err, -ENOMEM, "out of memory for the attribution");
    b->opts = *opts;
    b->opts.before = NULL; /* borrowed for this call only */
    b->interval_ns = opts->interval_ns ? opts->interval_ns : INTERVAL_S * NS_PER_S;
    b->account = calloc(opts->n ? opts->n : 1, sizeof *b->account);
    if (!b->account)
        return fail(err, -ENOMEM, "out of memory for the attribution of %zu boards",
                    opts->n);
    for (size_t i = 0; i < opts->n; i++) {
        b->account[i] = (struct account){.book = b, .at = i, .sampler = opts->sampler[i]};
        if (opts->before)
            b->account[i].sum = opts->before[i];
        if (!opts->roster || !opts->waste)
            continue;
        struct account *a = &b->account[i];
        a->ear = (struct sampler_ear){.fn = attribution_on_sample,
                                      .user = a,
                                      .board = i,
                                      .overhears = true,
                                      .patient = true};
        sampler_hear(a->sampler, 0, &a->ear);
    }
    b->n = opts->n;
    b->turn_ns = loop_now_ns(opts->loop) + NS_PER_S; /* samples exist by then */
    int r = loop_timer_new(opts->loop, b->turn_ns, 0, attribution_on_timer, b, &b->timer,
                           err);
    if (r < 0)
        return r;
    loop_timer_slack(b->timer, SLACK_MS * NS_PER_MS);
    *ret = take(b);
    return 0;
}

void attribution_free(struct attribution *b)
{
    if (!b)
        return;
    loop_timer_free(b->timer);
    for (size_t i = 0; i < b->n; i++) {
        if (b->account[i].ear.fn)
            sampler_deaf(b->account[i].sampler, 0, &b->account[i].ear);
        while (b->account[i].first)
            pop(&b->account[i]);
    }
    free(b->account);
    for (size_t i = 0; i < b->n_jobs; i++)
        free(b->job[i].part);
    free(b->job);
    free(b);
}
