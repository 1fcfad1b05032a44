#include "tuner/searches.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "core/policy/cap.h"
#include "io/touches.h"
#include "jobs/job-progress.h"
#include "tuner/searches-inside.h"

enum {
    TICK_S = 1,
    SETTLED_S = 3,      /* time without a change until a job's boards count as known */
    NO_PROGRESS_S = 30, /* time without steps until without_progress() */
    SAVE_S = 30,        /* between writes of sums that only grow */
    ENDED_MAX = 64,     /* jobs that are over and still shown */
    ASKED_S = 10,       /* longest wait for the actuator to report originals */
    STEPS_ON = 3,       /* steps under a lower cap until the job counts as progressing */
    STOOD_S = 2,        /* real time between ticks: this process was suspended */
};

struct job_search *searches_find(const struct searches *ts, uint64_t job)
{
    for (struct job_search *t = ts->first; t; t = t->next)
        if (t->job == job)
            return t;
    return NULL;
}

static void note(struct job_search *t, const char *text, bool important)
{
    if (t->all->o.note)
        t->all->o.note(t->job, text, important, t->all->o.user);
}

static void soon(struct searches *ts)
{
    loop_timer_set(ts->timer, loop_now_ns(ts->o.loop), TICK_S * NS_PER_S);
}

/* ---- state ---- */

static void save(struct job_search *t)
{
    auto_(mem_free) char *text = NULL;

    t->saved_ns = loop_now_ns(t->all->o.loop);
    t->saved_windows = t->memory.known.windows;
    t->saved_held_mw = t->memory.held_mw;
    if (t->all->o.save && searches_state_write(&t->ask, &t->memory, &text, NULL) == 0)
        t->all->o.save(t->job, text, t->all->o.user);
}

/* Copies the tuner's measurements into the memory, which outlives the tuner. */
static void remember(struct job_search *t)
{
    searches_memory_take(&t->memory, tuner_report(t->tuner));
    t->memory.n_uuids = t->n;
    for (size_t i = 0; i < t->n; i++)
        (void)snprintf(t->memory.uuid[i], sizeof t->memory.uuid[i], "%s",
                       board_view(t->board[i])->info->uuid);
}

/* Reports the measurements, for the next run of the job. */
static void learn(struct job_search *t)
{
    if (t->ask.search && t->all->o.learnt)
        t->all->o.learnt(t->job, t->boards, tuner_report(t->tuner), t->all->o.user);
}

static void save_what_grew(struct job_search *t, uint64_t now)
{
    const struct tuner_report *r = tuner_report(t->tuner);
    uint32_t held = r->holding ? r->held_mw : 0;
    bool late = s_between(t->saved_ns, now) >= SAVE_S;

    /* A long ramp has no windows, but its steps are booked. */
    double booked_s = savings_time_s(r->account, r->n_regimes);
    bool grew = r->windows != t->saved_windows || booked_s > t->saved_s;

    if (held == t->saved_held_mw && (!grew || !late))
        return;
    if (held && held != t->saved_held_mw)
        learn(t);
    remember(t);
    save(t);
    t->saved_s = booked_s;
}

/* Whether the memory's caps were measured on the current boards. */
static bool same_boards(const struct job_search *t)
{
    if (t->memory.n_uuids != t->n)
        return false;
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->memory.uuid[i], board_view(t->board[i])->info->uuid) != 0)
            return false;
    return true;
}

/* ---- begin and end of a tuner ---- */

static void on_tuner_note(const char *text, bool important, void *user)
{
    struct job_search *t = user;

    note(t, text, important);
    if (t->claims)
        tuner_claims_why(t->claims, text);
}

static int on_tuner_done(struct tuner *tuner, void *user)
{
    struct job_search *t = user;
    (void)tuner;

    t->closed = true;
    soon(t->all);
    return 0;
}

static void drop_tuner(struct job_search *t)
{
    for (size_t i = 0; i < t->n; i++)
        caps_work(t->all->o.caps, board_view(t->board[i])->at, &(struct caps_work){0});
    tuner_free(take(t->tuner));
    tuner_claims_free(take(t->claims));
    progress_period_free(take(t->period));
    energy_sum_free(take(t->meters));
    t->closing = t->closed = t->silent = false;
    t->asked_ns = 0;
    t->boards = 0;
    t->n = 0;
}

/* Takes the tuner's boards from the mask wanted. */
static int take_boards(struct job_search *t, struct sampler **samplers, uw_error *err)
{
    struct searches *ts = t->all;

    t->n = 0;
    for (size_t i = 0; i < boards_count(ts->o.boards) && i < BOARDS_MAX; i++) {
        struct board *b = boards_at(ts->o.boards, i);
        struct caps_view v;
        if (!(t->wanted & (1ull << i)))
            continue;
        caps_look(ts->o.caps, i, &v);
        struct sampler *s = ts->o.sampler(i, ts->o.user);
        if (!v.can_cap || !s || !v.bounds.original_mw)
            return fail(err, -ENOTSUP, "%s: the board cannot be capped%s%s",
                        board_view(b)->info->uuid, v.text[0] ? ": " : "", v.text);
        samplers[t->n] = s;
        t->board[t->n] = b;
        t->original_mw[t->n] = v.bounds.original_mw;
        t->range[t->n] = v.range;
        t->in_force_mw[t->n++] = v.enforced_mw;
    }
    return t->n > 0 ? 0 : fail(err, -ENODEV, "none of the job's boards exists");
}

static int make_claims(struct job_search *t, enum claim_kind kind, uw_error *err)
{
    char who[CLAIM_TEXT];
    struct tuner_claims_opts opts = {
        .loop = t->all->o.loop,
        .caps = t->all->o.caps,
        .boards = t->board,
        .n = t->n,
        .kind = kind,
        .job = t->job,
        .uid = t->uid,
        .who = who,
        .percent = kind == CLAIM_NAMED ? t->ask.cap.percent : 0,
        .preset = t->preset,
    };

    (void)snprintf(who, sizeof who, "%s of job %" PRIu64,
                   t->ask.search ? "search" : "cap by name", t->job);
    return tuner_claims_new(&opts, &t->claims, err);
}

static int make_progress_period(struct job_search *t, struct sampler *const *samplers,
                                uw_error *err)
{
    struct progress_period_board heard[BOARDS_MAX];
    struct progress_period_opts opts = {
        .loop = t->all->o.loop, .worker = t->all->worker, .board = heard, .n = t->n};

    for (size_t i = 0; i < t->n; i++)
        heard[i] = (struct progress_period_board){
            samplers[i], 0, w_of_mw(board_view(t->board[i])->limits.max_mw)};
    return t->ask.search ? progress_period_new(&opts, &t->period, err) : 0;
}

/* Whether another writer has lowered an original below the known reference cap. */
static bool is_narrowed(const struct job_search *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->original_mw[i] + MW_PER_W < t->memory.known.reference_mw)
            return true;
    return false;
}

/* State for a new tuner; with caps only if they were measured on these boards. */
static struct tuner_known known_of(const struct job_search *t)
{
    struct tuner_known known = t->memory.known;

    if (!same_boards(t) || (t->back && is_narrowed(t)))
        known.n_caps = 0;
    else
        known.held_mw = t->memory.held_mw;
    return known;
}

static struct rate *rate_of_page(void *user)
{
    struct job_search *t = user;
    return t->page ? job_progress_rate(t->page) : NULL;
}

/* Restores the held cap at once, except for a search whose boards were lost or controlled
 * by others in between, which ramps down from the original.
 */
static int resume(struct job_search *t)
{
    bool walks = t->back && t->ask.search;

    t->back = false;
    return t->memory.held_mw && same_boards(t) && !walks
               ? tuner_resume(t->tuner, t->memory.held_mw)
               : 0;
}

/* Makes a tuner without setting a cap. */
static int new_tuner(struct job_search *t, uw_error *err)
{
    struct searches *ts = t->all;
    struct sampler *samplers[BOARDS_MAX];
    struct tuner_earlier earlier;

    int r = take_boards(t, samplers, err);
    if (r < 0) {
        t->n = 0;
        return r;
    }
    struct tuner_known known = known_of(t);
    struct tuner_opts opts = {
        .loop = ts->o.loop,
        .caps = &tuner_claims_caps,
        .boards = t->board,
        .original_mw = t->original_mw,
        .range = t->range,
        .n = t->n,
        .search = t->ask.search,
        .goal = t->ask.goal,
        .cap = t->ask.cap,
        .floor = t->ask.cls ? t->ask.cls->floor : 0,
        .ramp = t->ask.cls ? t->ask.cls->rate : 0,
        .window_s = ts->o.window_s,
        .warm_s = ts->o.warm_s,
        .checks_share = ts->o.checks_share,
        .gap_checks = ts->o.gap_checks,
        .slack = ts->o.slack,
        .clocks = ts->o.clocks,
        .note = on_tuner_note,
        .user = t,
        .rate = rate_of_page,
        .rate_of = t,
        .known = known.n_regimes ? &known : NULL,
    };
    if (t->ask.search && ts->o.earlier &&
        ts->o.earlier(t->job, t->wanted, &earlier, ts->o.user))
        opts.earlier = &earlier;
    r = energy_sum_new(samplers, t->n, &t->meters, err);
    if (r >= 0)
        r = make_claims(t, t->ask.search ? CLAIM_SOFT : CLAIM_NAMED, err);
    opts.caps_of = t->claims;
    opts.meters = t->meters;
    if (r >= 0)
        r = make_progress_period(t, samplers, err);
    opts.period = t->period;
    if (r >= 0)
        r = tuner_new(&opts, &t->tuner, err);
    if (r < 0) {
        drop_tuner(t);
        return r;
    }
    t->boards = t->wanted;
    tuner_claims_tell(t->claims, t->tuner);
    return 0;
}

static int make_tuner(struct job_search *t, uw_error *err)
{
    int r = new_tuner(t, err);

    if (r < 0)
        return r;
    r = resume(t);
    if (r < 0) { /* the tuner must not outlive a job search that did not begin */
        (void)fail(err, r, "the cap that was held cannot be held again");
        drop_tuner(t);
    }
    return r < 0 ? r : 0;
}

static int close_tuner(struct job_search *t)
{
    if (t->closing)
        return 0;
    t->closing = true;
    return tuner_finish(t->tuner, on_tuner_done, t);
}

/* ---- each tick ---- */

/* The tuner has ended: keeps its measurements and frees the tuner. */
static void after_close(struct job_search *t)
{
    t->report = *tuner_report(t->tuner);
    learn(t);
    remember(t);
    t->report.account = t->memory.regime;
    t->report.cap = t->memory.cap;
    if (!t->ended && t->wanted != t->boards) { /* the caps do not apply to other boards */
        t->memory.known.n_caps = 0;
        t->memory.held_mw = 0;
        t->memory.n_uuids = 0;
    }
    if (t->other_goal || t->off) /* the held cap belongs to another goal */
        t->memory.held_mw = 0;
    t->other_goal = false;
    save(t);
    drop_tuner(t);
    t->final = t->ended;
}

static int without_progress(struct job_search *t)
{
    t->silent = true;
    note(t,
         t->ask.search
             ? "the job reports no steps: looking for a period in its boards' power"
             : "the job reports no progress: the cap is set, its saving will be unknown",
         true);
    return tuner_on_silent(t->tuner);
}

/* Passes the figures of the job's work to the caps: they determine the floor, the first
 * cap and the ramp.
 */
static void tell_work(struct job_search *t)
{
    const struct tuner_report *r = tuner_report(t->tuner);
    const struct steps *steps = t->page ? job_progress_steps(t->page) : NULL;
    struct caps_work work = {
        .demand_w = r->demand_w,
        .peak_w = r->peak_w,
        .cls = t->ask.cls,
        .counted = steps && steps_known(steps),
        .progressing =
            steps && steps_known(steps) && steps->mark.steps >= t->down_steps + STEPS_ON,
    };

    for (size_t i = 0; i < t->n; i++)
        caps_work(t->all->o.caps, board_view(t->board[i])->at, &work);
}

static int tick_tuner(struct job_search *t, uint64_t now)
{
    uint64_t since = t->seen_ns > t->began_ns ? t->seen_ns : t->began_ns;
    int r = 0;

    if (since < t->all->stood_ns)
        since = t->all->stood_ns;

    if (t->page)
        r = tuner_on_stopped(t->tuner, job_progress_stopped(t->page, t->pid));
    if (r >= 0 && !t->silent && tuner_waits(t->tuner) &&
        s_between(since, now) > NO_PROGRESS_S)
        r = without_progress(t);
    tell_work(t);
    save_what_grew(t, now);
    return r;
}

/* ---- originals ---- */

/* Whether the originals of all boards are known.  If an earlier daemon may have left a
 * cap, the limit in force is not the original, and a search would never exceed it.
 */
static bool are_originals_known(const struct job_search *t)
{
    for (size_t i = 0; i < BOARDS_MAX; i++) {
        struct caps_view v;
        if (!(t->wanted & (1ull << i)))
            continue;
        caps_look(t->all->o.caps, i, &v);
        if (v.can_cap && !v.dry_run && !v.original_known)
            return false;
    }
    return true;
}

/* Asks the actuator for the originals by claims at the limits in force. */
static int ask_originals(struct job_search *t, uw_error *err)
{
    struct sampler *samplers[BOARDS_MAX];

    int r = take_boards(t, samplers, err);
    if (r >= 0)
        r = make_claims(t, CLAIM_SOFT, err);
    if (r >= 0)
        r = tuner_claims_keep(t->claims, err);
    if (r < 0) {
        drop_tuner(t);
        return r;
    }
    t->asked_ns = loop_now_ns(t->all->o.loop);
    t->boards = t->wanted;
    return 0;
}

/* Whether the actuator has answered for every board, or ASKED_S have passed. */
static bool is_answered(const struct job_search *t, uint64_t now)
{
    for (size_t i = 0; i < t->n; i++) {
        struct caps_view v;
        caps_look(t->all->o.caps, board_view(t->board[i])->at, &v);
        if (v.state == CAPS_HOLDING || v.state == CAPS_LOST)
            return s_between(t->asked_ns, now) >= ASKED_S;
    }
    return true;
}

/* Makes the tuner before the claims that asked for originals are withdrawn. */
static int make_tuner_asked(struct job_search *t, uw_error *err)
{
    auto_(tuner_claims_free) struct tuner_claims *asked = take(t->claims);

    drop_tuner(t);
    return make_tuner(t, err);
}

/* Another job's search on a board of this job; NULL: none.  Two searches on one board
 * would each treat the other's claim as the highest cap allowed and lower their caps in
 * turns, beyond the bounds of their goals.
 */
static const struct job_search *other_search(const struct job_search *t)
{
    const struct job_search *o = t->all->first;

    while (o && (o == t || !o->ask.search || !(o->boards & t->wanted)))
        o = o->next;
    return t->ask.search ? o : NULL;
}

/* Whether no other search has a board of the job; notes each other search once. */
static bool is_its_turn(struct job_search *t)
{
    const struct job_search *o = other_search(t);
    char text[120];

    if (o && !(o->boards & t->wanted & ~o->passed)) { /* it is leaving them */
        t->behind = 0;
        return false;
    }
    if (o && t->behind != o->job) {
        (void)snprintf(text, sizeof text,
                       "job %" PRIu64 " has a search on a board of this job: this "
                       "search waits, as a board has one search at a time",
                       o->job);
        note(t, text, true);
    }
    t->behind = o ? o->job : 0;
    return !o;
}

static int begin_tuner(struct job_search *t)
{
    uw_error err = {""};
    int r;

    if (t->asked_ns)
        r = make_tuner_asked(t, &err);
    else if (are_originals_known(t))
        r = make_tuner(t, &err);
    else
        r = ask_originals(t, &err);
    if (r == -ENOMEM) /* retried by the next tick */
        return 0;
    if (r < 0) {
        t->refused = true;
        (void)snprintf(t->why, sizeof t->why, "%s", err.text);
        note(t, t->why, true);
    }
    return 0;
}

/* Tick while ask_originals() is under way; restarts if the job's boards change. */
static int tick_asked(struct job_search *t, uint64_t now)
{
    if (t->ended || t->off || t->wanted != t->boards || t->wanted & t->barred) {
        drop_tuner(t);
        t->final = t->ended;
        return 0;
    }
    return is_answered(t, now) ? begin_tuner(t) : 0;
}

/* For a tuner that has left its boards because one was lost or controlled by others:
 * whether all boards are available again.
 */
static bool given_back(struct job_search *t, uint64_t now)
{
    if (t->all->o.once)
        return false;
    for (size_t i = 0; i < t->n; i++) {
        struct caps_view v;
        caps_look(t->all->o.caps, board_view(t->board[i])->at, &v);
        bool ours = v.state == CAPS_FREE || v.state == CAPS_HELD;
        if (!ours || v.holder[0] || now < v.retry_ns || !v.can_cap ||
            !v.bounds.original_mw)
            return false;
    }
    note(t, "the job's boards are available again: the search continues", true);
    t->back = true;
    return true;
}

static int tick_one(struct job_search *t, uint64_t now)
{
    bool settled = s_between(t->wanted_ns, now) >= SETTLED_S;

    if (t->closed)
        after_close(t);
    if (t->asked_ns)
        return tick_asked(t, now);
    if (t->ended && !t->tuner) {
        t->final = true;
        return 0;
    }
    bool is_over = t->ended || t->off || t->other_goal;
    if (t->tuner && !t->closing && (is_over || (t->wanted != t->boards && settled)))
        return close_tuner(t);
    if (t->tuner && !t->closing && tuner_report(t->tuner)->board_lost &&
        given_back(t, now))
        return close_tuner(t);
    if (!t->tuner && !t->off && t->wanted && settled && !t->refused &&
        !(t->wanted & t->barred) && is_its_turn(t))
        return begin_tuner(t);
    return t->tuner && !t->closing ? tick_tuner(t, now) : 0;
}

static void job_search_free(struct job_search *t)
{
    if (t->all->o.caps)
        drop_tuner(t);
    job_progress_free(t->page);
    free(t);
}

/* Takes a job out of the list and frees it. */
static void drop(struct job_search **at)
{
    struct job_search *t = *at;

    *at = t->next;
    job_search_free(t);
}

/* Frees the oldest jobs that are over, beyond ENDED_MAX. */
static void forget_oldest(struct searches *ts)
{
    size_t n = 0;

    for (struct job_search *t = ts->first; t; t = t->next)
        n += t->final;
    for (struct job_search **p = &ts->first; *p && n > ENDED_MAX;) {
        if ((*p)->final) {
            drop(p);
            n--;
        } else {
            p = &(*p)->next;
        }
    }
}

/* Whether this process was suspended, as part of a job that a scheduler suspends or in a
 * frozen container: tells the tuners before they hear of steps of that time.
 */
static int see_gap(struct searches *ts, uint64_t now_ns)
{
    double most_s = STOOD_S * fmax(1, loop_speed(ts->o.loop));
    bool stood = ts->ticked_ns && s_between(ts->ticked_ns, now_ns) > most_s;
    int r = 0;

    if (!stood)
        return 0;
    ts->stood_ns = ts->ticked_ns = now_ns;
    for (struct job_search *t = ts->first; t && r >= 0; t = t->next)
        if (t->tuner && !t->closing)
            r = tuner_on_gap(t->tuner);
    return r;
}

static int searches_on_timer(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct searches *ts = user;
    bool alive = false;

    int gap = see_gap(ts, now_ns);
    if (gap < 0)
        return gap;
    ts->ticked_ns = now_ns;
    for (struct job_search *t = ts->first; t; t = t->next) {
        int r = tick_one(t, now_ns);
        if (r < 0)
            return r;
        alive |= !t->final;
    }
    forget_oldest(ts);
    if (!alive) {
        ts->ticks = false;
        loop_timer_set(timer, UINT64_MAX, 0);
    }
    return 0;
}

/* ---- jobs ---- */

static int on_steps(const struct steps *steps, uint64_t now_ns, void *user)
{
    struct job_search *t = user;
    int r = see_gap(t->all, now_ns);

    if (r < 0)
        return r;
    if (steps_seen(steps)) {
        t->seen_ns = now_ns;
        t->silent = false;
    }
    if (t->tuner)
        r = tuner_on_steps(t->tuner, steps, now_ns);
    if (steps->phase != t->phase && !t->ended && t->all->o.phase)
        t->all->o.phase(t->job, t->all->o.user);
    t->phase = steps->phase;
    return r;
}

void searches_hurry(struct searches *ts, uint64_t job, bool on)
{
    struct job_search *t = searches_find(ts, job);

    if (t && !t->ended && t->page)
        job_progress_hurry(t->page, on);
}

/* Makes the tuner, or asks for the originals first.  Checks a new job's values in any
 * case; for a restored job, the limits in force may be caps, so the check would be wrong.
 */
static int begin_at_once(struct job_search *t, bool taken_over, uw_error *err)
{
    int r = 0;

    if (are_originals_known(t))
        return make_tuner(t, err);
    if (!taken_over) {
        r = new_tuner(t, err);
        if (r >= 0)
            drop_tuner(t);
    }
    return r < 0 ? r : ask_originals(t, err);
}

static void set_class(struct job_search *t, const struct cap_class *cls)
{
    if (cls)
        t->cls = *cls;
    t->ask.cls = cls ? &t->cls : NULL;
}

int searches_begin(struct searches *ts, const struct job_entry *job,
                   const struct searches_ask *ask, uw_error *err)
{
    if (searches_find(ts, job->id))
        return fail(err, -EEXIST, "job %" PRIu64 " has a search or cap already", job->id);
    struct job_search *t = calloc(1, sizeof *t), **p;
    if (!t)
        return fail(err, -ENOMEM, "out of memory");
    t->all = ts;
    t->job = job->id;
    t->report.busy = NAN; /* unknown until a tuner has listened */
    t->uid = job->uid;
    t->pid = job->pid;
    t->began_ns = loop_now_ns(ts->o.loop);
    launches_budget_job(&t->launches, &ts->launches);
    t->had = t->wanted = job->boards;
    t->wanted_ns = t->began_ns;
    t->ask = *ask;
    (void)snprintf(t->preset, sizeof t->preset, "%s", ask->preset ? ask->preset : "");
    t->ask.preset = t->preset;
    set_class(t, ask->cls);
    if (ask->state && ask->state[0]) {
        struct searches_ask old;
        struct cap_class cls;
        uw_error why;
        int r = searches_state_read(ask->state, &old, &cls, &t->memory, &why);
        if (r == -ENOMEM) { /* fail rather than lose the saved caps */
            free(t);
            return fail(err, r, "%s", why.text);
        }
        if (r < 0)
            note(t, why.text, true);
    }
    t->ask.state = NULL;
    int r = t->wanted && is_its_turn(t) ? begin_at_once(t, ask->state != NULL, err) : 0;
    if (r < 0) {
        free(t);
        return r;
    }
    for (p = &ts->first; *p; p = &(*p)->next)
        ;
    *p = t;
    if (!ts->ticks) {
        ts->ticks = true;
        ts->ticked_ns = 0;
        loop_timer_set(ts->timer, t->began_ns + TICK_S * NS_PER_S, TICK_S * NS_PER_S);
    }
    return 0;
}

int searches_goal(struct searches *ts, uint64_t job, const struct goal *goal,
                  const struct cap_class *cls, uw_error *err)
{
    struct job_search *t = searches_find(ts, job);

    if (!t || t->ended || !t->ask.search)
        return fail(err, -ENOENT, "job %" PRIu64 " has no search", job);
    t->off = goal == NULL;
    if (goal)
        t->ask.goal = *goal;
    set_class(t, cls);
    t->other_goal = t->tuner != NULL;
    t->refused = false;
    soon(ts);
    return 0;
}

int searches_page(struct searches *ts, uint64_t job, int fd, uw_error *err)
{
    struct job_search *t = searches_find(ts, job);
    struct progress_page *file;
    struct job_progress *page;

    if (!t || t->ended)
        return fail(err, -ENOENT, "job %" PRIu64 " has no search or cap", job);
    if (t->page && job_progress_alive(t->page))
        return fail(err, -EBUSY, "job %" PRIu64 " has a page with live processes", job);
    int r = progress_page_adopt(fd, &file, err);
    if (r < 0)
        return r;
    const struct job_progress_opts opts = {ts->o.loop,   0,          on_steps, t,
                                           &t->launches, ts->touches};
    r = job_progress_new(&opts, file, &page, err);
    if (r < 0) {
        progress_page_disown(file);
        return r;
    }
    job_progress_free(t->page);
    t->page = page;
    return 0;
}

int searches_page_fd(const struct searches *ts, uint64_t job)
{
    const struct job_search *t = ts ? searches_find(ts, job) : NULL;

    return t && t->page ? job_progress_fd(t->page) : -1;
}

/* Sets the boards that the search may use, as of since_ns. */
static void want(struct job_search *t, uint64_t since_ns)
{
    uint64_t wanted = t->had & ~t->passed;

    if (wanted == t->wanted)
        return;
    t->wanted = wanted;
    t->wanted_ns = since_ns;
    t->refused = false;
}

int searches_on_job(struct searches *ts, enum roster_event event,
                    const struct job_entry *job)
{
    struct job_search *t = searches_find(ts, job->id);

    if (!t || t->ended)
        return 0;
    if (event == ROSTER_END) {
        t->ended = true;
        int r = t->page ? job_progress_end(t->page) : 0;
        soon(ts);
        return r;
    }
    t->pid = job->pid;
    if (job->boards != t->had && job->boards) {
        t->had = job->boards;
        want(t, loop_now_ns(ts->o.loop));
    }
    return 0;
}

void searches_pass(struct searches *ts, uint64_t job, uint64_t boards, const char *to)
{
    struct job_search *t = searches_find(ts, job);
    bool more = t && (boards & ~t->passed);

    if (!t || t->ended)
        return;
    (void)snprintf(t->to, sizeof t->to, "%s", to);
    if (boards == t->passed)
        return;
    t->passed = boards;
    want(t, more ? 0 : loop_now_ns(ts->o.loop)); /* the jobs that take them over wait */
    soon(ts);
}

void searches_bar(struct searches *ts, uint64_t job, size_t board, bool barred)
{
    struct job_search *t = searches_find(ts, job);
    uint64_t bit = 1ull << board;

    if (!t || t->ended || ((t->barred & bit) != 0) == barred)
        return;
    t->barred ^= bit;
    t->wanted_ns = loop_now_ns(ts->o.loop);
    if (!barred || !(t->boards & bit))
        return;
    note(t, "another user computes on a board of the job: no cap until that ends", false);
    if (t->tuner)
        (void)close_tuner(t);
    else
        drop_tuner(t);
}

/* The limit or lock in force on a board has changed.  After a lower one, steps are
 * counted to see whether the job progresses.
 */
static void take_in_force(struct job_search *t, size_t i, const struct caps_what *what)
{
    bool down = false;

    if (what->event == CAPS_EVENT_CAP) {
        down = what->enforced_mw < t->in_force_mw[i];
        t->in_force_mw[i] = what->enforced_mw;
    } else {
        uint32_t was_mhz = t->in_force_mhz[i];
        down = what->clock_mhz && (!was_mhz || what->clock_mhz < was_mhz);
        t->in_force_mhz[i] = what->clock_mhz;
    }
    if (down && t->page)
        t->down_steps = job_progress_steps(t->page)->mark.steps;
}

void searches_no_actuator(struct searches *ts, const char *text)
{
    for (struct job_search *t = ts->first; t; t = t->next)
        if (t->tuner)
            (void)tuner_no_caps(t->tuner, text);
}

void searches_on_caps(struct searches *ts, const struct caps_what *what)
{
    for (struct job_search *t = ts->first; t; t = t->next) {
        if (t->asked_ns && what->event == CAPS_EVENT_STATE)
            soon(ts);
        if (what->event != CAPS_EVENT_CAP && what->event != CAPS_EVENT_CLOCK)
            continue;
        for (size_t i = 0; i < t->n; i++)
            if (board_view(t->board[i])->at == what->board)
                take_in_force(t, i, what);
    }
}

/* ---- end of a job ---- */

void searches_forget(struct searches *ts, uint64_t job)
{
    struct job_search **p = &ts->first;

    while (*p && (*p)->job != job)
        p = &(*p)->next;
    if (*p)
        drop(p);
}

/* ---- set-up ---- */

int searches_new(const struct searches_opts *opts, struct searches **ret, uw_error *err)
{
    auto_(searches_free) struct searches *ts = calloc(1, sizeof *ts);

    if (!ts)
        return fail(err, -ENOMEM, "out of memory");
    ts->o = *opts;
    launches_budget_all(&ts->launches);
    int r =
        loop_timer_new(opts->loop, UINT64_MAX, 0, searches_on_timer, ts, &ts->timer, err);
    if (r < 0)
        return r;
    r = loop_worker_new(opts->loop, "period", &ts->worker, err);
    if (r < 0)
        return r;
    (void)touches_new(opts->loop, &ts->touches, NULL); /* the loop then polls the pages */
    *ret = take(ts);
    return 0;
}

void searches_free(struct searches *ts)
{
    if (!ts)
        return;
    while (ts->first)
        drop(&ts->first);
    touches_free(ts->touches);
    loop_worker_free(ts->worker);
    loop_timer_free(ts->timer);
    free(ts);
}
