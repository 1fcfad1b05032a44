#include "node/viewer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/units.h"
#include "core/meter/mean.h"
#include "node/nested.h"
#include "node/phase-watch.h"
#include "node/rights.h"

enum { LOST_S = 3600 };

/* Per-board counters for the view. */
struct counted {
    struct mean_power mean;
    double throttle_s[VIEW_REASONS];
    uint64_t lost_ns;    /* last loss of a claim's right; 0: never */
    char lost_text[240]; /* the claim, its owner and the reason */
};

struct viewer {
    struct loop *loop;
    struct viewer_sources from; /* boards NULL: they are closed */
    struct kept_board *kept;    /* NULL: the boards are open, or never were */
    size_t n_kept;
    struct counted *counted; /* an entry for each board, … */
    struct view_board *board;
    size_t room; /* … as many as there ever were */
    struct view_job *job;
    size_t cap_jobs;
};

int viewer_new(struct loop *loop, struct viewer **ret)
{
    struct viewer *v = calloc(1, sizeof *v);

    if (!v)
        return -ENOMEM;
    v->loop = loop;
    *ret = v;
    return 0;
}

void viewer_free(struct viewer *v)
{
    if (!v)
        return;
    free(v->kept);
    free(v->counted);
    free(v->board);
    free(v->job);
    free(v);
}

int viewer_room(struct viewer *v, size_t n)
{
    if (n <= v->room)
        return 0;
    auto_(mem_free) void *counted = calloc(n, sizeof *v->counted);
    auto_(mem_free) void *board = calloc(n, sizeof *v->board);
    if (!counted || !board)
        return -ENOMEM;
    if (v->room) {
        memcpy(counted, v->counted, v->room * sizeof *v->counted);
        memcpy(board, v->board, v->room * sizeof *v->board);
    }
    free(v->counted);
    free(v->board);
    v->counted = take(counted);
    v->board = take(board);
    v->room = n;
    return 0;
}

void viewer_open(struct viewer *v, const struct viewer_sources *from)
{
    v->from = *from;
}

void viewer_close(struct viewer *v)
{
    v->from = (struct viewer_sources){.boards = NULL};
    for (size_t i = 0; i < v->room; i++)
        v->counted[i] = (struct counted){.lost_ns = 0};
}

static size_t n_open(const struct viewer *v)
{
    return v->from.boards ? boards_count(v->from.boards) : 0;
}

static const struct gpu_info *info_of(const struct viewer *v, size_t i)
{
    return v->from.boards ? board_view(boards_at(v->from.boards, i))->info
                          : &v->kept[i].info;
}

/* ---- once a second ---- */

static void count_throttling(struct counted *c, const struct gpu_sample *s, double dt)
{
    for (unsigned k = 0; s->has & GPU_HAS_REASONS && k < VIEW_REASONS; k++)
        if (s->reasons & (1ull << k))
            c->throttle_s[k] += dt;
}

static void average(struct mean_power *mean, const struct gpu_sample *s)
{
    bool counted = s->has & GPU_HAS_ENERGY;

    if (s->has & GPU_HAS_AVERAGE)
        mean_reading(mean, s->average_w);
    else if (s->has & GPU_HAS_POWER)
        mean_reading(mean, s->power_w);
    if (s->has)
        mean_tick(mean, counted, s->energy_mj, counted ? s->energy_at_ns : s->at_ns);
}

void viewer_tick(struct viewer *v, double dt)
{
    for (size_t i = 0; i < n_open(v); i++) {
        const struct sampler_now *now = sampler_board(v->from.sampler[i], 0);
        if (released_boards_is_blind(v->from.released, i)) {
            v->counted[i].mean = (struct mean_power){0};
            continue;
        }
        if (now->failures == 0)
            count_throttling(&v->counted[i], &now->last, dt);
        average(&v->counted[i].mean, &now->last);
    }
}

struct maybe viewer_power(const struct viewer *v, size_t i, uint64_t from_ns)
{
    struct maybe power = {false, 0};

    power.known = mean_known(&v->counted[i].mean, from_ns, &power.v);
    return power;
}

void viewer_lost(struct viewer *v, size_t i, const char *text)
{
    v->counted[i].lost_ns = loop_now_ns(v->loop);
    (void)snprintf(v->counted[i].lost_text, sizeof v->counted[i].lost_text, "%s", text);
}

/* ---- boards ---- */

static void look_at_use(const struct viewer *v, size_t i, struct view_board *b)
{
    struct attribution_waste w = attribution_waste(v->from.attribution, i);

    b->use = w.class;
    if (w.since_ns)
        b->use_for_s = s_between(w.since_ns, loop_now_ns(v->loop));
    b->memory_bytes = roster_memory(v->from.roster, i);
}

static void look_at_board(struct viewer *v, size_t i, uint64_t now_ns, uint64_t fresh_ns)
{
    const struct counted *c = &v->counted[i];
    struct view_board *b = &v->board[i];
    struct board *board = boards_at(v->from.boards, i);
    const struct sampler_now *now = sampler_board(v->from.sampler[i], 0);
    const struct attribution_board *energy = attribution_board(v->from.attribution, i);
    bool blind = released_boards_is_blind(v->from.released, i);
    bool fresh = !blind && now_ns - now->last.at_ns <= fresh_ns;

    *b = (struct view_board){.info = board_view(board)->info,
                             .calls = board_calls(board),
                             .energy_j = energy->energy_j,
                             .idle_j = energy->idle_j,
                             .unattributed_j = energy->unattributed_j,
                             .attributed_j = energy->attributed_j,
                             .today_j = energy->today_j};
    memcpy(b->use_j, energy->use_j, sizeof b->use_j);
    memcpy(b->use_s, energy->use_s, sizeof b->use_s);
    charges_board(v->from.charges, i, &b->charged);
    if (!blind)
        look_at_use(v, i, b);
    if (!blind) {
        b->failures = now->failures;
        b->power_w = viewer_power(v, i, now_ns > fresh_ns ? now_ns - fresh_ns : 0);
    }
    if (fresh)
        b->last = now->last;
    if (c->lost_ns && s_between(c->lost_ns, now_ns) < LOST_S) {
        b->lost_ns = c->lost_ns;
        b->lost_text = c->lost_text;
    }
    memcpy(b->throttle_s, c->throttle_s, sizeof b->throttle_s);
    caps_look(v->from.caps, i, &b->cap);
    if (b->cap.state == CAPS_HELD && b->cap.enforced_mw) { /* newer than the sample */
        b->last.has |= GPU_HAS_ENFORCED;
        b->last.enforced_mw = b->cap.enforced_mw;
    } else if (!fresh) {
        b->cap.enforced_mw = 0;
    }
}

static void look_at_boards(struct viewer *v, uint64_t fresh_ns)
{
    for (size_t i = 0; i < n_open(v); i++)
        look_at_board(v, i, loop_now_ns(v->loop), fresh_ns);
}

/* View of a closed board: identity and claims, without readings. */
static void await_board(struct viewer *v, size_t i)
{
    struct view_board *b = &v->board[i];

    b->info = &v->kept[i].info;
    b->cap.claims = &v->kept[i].claims;
    b->cap.state = CAPS_LOST;
    b->cap.enforced_mw = 0;
    b->cap.ramping = b->cap.waiting = b->cap.failed = false;
    (void)snprintf(b->cap.text, sizeof b->cap.text, "waiting for the boards");
    b->last = (struct gpu_sample){0};
    b->power_w.known = false;
    b->use = WASTE_WORKING;
    b->use_for_s = 0;
    b->memory_bytes = 0;
    b->n_jobs = 0;
}

void viewer_keep(struct viewer *v)
{
    size_t n = n_open(v);

    if (n == 0 || v->kept)
        return;
    struct kept_board *kept = calloc(n, sizeof *kept);
    if (!kept)
        return; /* the boards leave the view until they are open again */
    look_at_boards(v, UINT64_MAX);
    for (size_t i = 0; i < n; i++) {
        kept[i].info = *v->board[i].info;
        kept[i].claims = *v->board[i].cap.claims;
    }
    v->kept = kept;
    v->n_kept = n;
    for (size_t i = 0; i < n; i++)
        await_board(v, i);
}

void viewer_drop(struct viewer *v)
{
    free(take(v->kept));
    v->n_kept = 0;
}

const struct kept_board *viewer_kept(const struct viewer *v, size_t *ret_n)
{
    *ret_n = v->n_kept;
    return v->kept;
}

const struct caps_view *viewer_kept_cap(const struct viewer *v, size_t i)
{
    return &v->board[i].cap;
}

int viewer_board(const struct viewer *v, const char *name, size_t *ret, uw_error *err)
{
    const struct gpu_info *info[BOARDS_MAX] = {NULL};
    size_t n = v->from.boards ? n_open(v) : v->n_kept;

    for (size_t i = 0; i < n; i++)
        info[i] = info_of(v, i);
    return rights_board_named(info, n, name, ret, err);
}

/* ---- jobs ---- */

static void look_at_energy(const struct viewer *v, struct view_job *ret)
{
    const struct attribution_job *b = attribution_job(v->from.attribution, ret->job->id);
    struct half_sum half = {0};

    charges_job(v->from.charges, ret->job->id, &ret->charged);
    ret->settled =
        ret->job->ended_ns && attribution_settled(v->from.attribution, ret->job->id);
    if (b) {
        ret->booked_s = b->time_s;
        ret->part = b->part;
        ret->n_parts = b->n_parts;
    }
    for (size_t i = 0; i < ret->n_parts; i++) {
        ret->energy_j += ret->part[i].energy_j;
        half_sum_add(&half, &ret->part[i].half);
    }
    /* Nothing may be booked yet to a job that an earlier daemon began. */
    ret->half_j = (struct maybe){ret->booked_s > 0, half_sum_j(&half)};
}

/* The claim of the job's scheduler on a board; NULL: none. */
static const struct claim *held_on(const struct claims *claims, uint64_t job)
{
    for (size_t k = 0; claims && k < claims->n; k++)
        if (claims->claim[k].job == job && claims->claim[k].source == CLAIM_OF_SCHEDULER)
            return &claims->claim[k];
    return NULL;
}

/* The cap of a job's scheduler, and the lowest cap of another claim with precedence. */
static void look_at_held(const struct viewer *v, struct view_job *ret)
{
    for (size_t i = 0; i < n_open(v); i++) {
        const struct caps_view *cap = &v->board[i].cap;
        const struct claim *own = held_on(cap->claims, ret->job->id);
        if (!own)
            continue;
        ret->cap_held = true;
        const struct claim *c = claims_find(cap->claims, cap->verdict.claim);
        uint32_t mw = cap->verdict.target_mw;
        if (!c || c->job == own->job || mw >= own->mw ||
            (ret->lower_mw && mw >= ret->lower_mw))
            continue;
        ret->lower_mw = mw;
        ret->lower_who = c->who;
    }
}

static void look_at_job(struct viewer *v, const struct job_entry *job,
                        struct view_job *ret)
{
    const struct steps *steps = searches_steps(v->from.searches, job->id);
    const struct job_record *rec = job_records_find(v->from.records, job->id);
    uint64_t end = job->ended_ns ? job->ended_ns : loop_now_ns(v->loop);

    *ret = (struct view_job){.job = job, .time_s = s_between(job->began_ns, end)};
    if (rec) {
        ret->phase = rec->phase;
        ret->capped = &rec->capped;
        ret->notes = &rec->notes;
        ret->ask = rec->ask[0] ? rec->ask : NULL;
        ret->refused = rec->refused[0] ? rec->refused : NULL;
        look_at_held(v, ret);
        ret->goal_of = nested_goal_of(job, rec);
    }
    phase_watch_look(v->from.phases, job->id, job->boards, &ret->phases);
    look_at_energy(v, ret);
    if (steps) {
        ret->steps = steps->has_mark ? steps->mark.steps : 0;
        ret->step_s = steps->step_s;
    }
    (void)searches_look(v->from.searches, job->id, &ret->search);
    for (size_t i = 0; i < n_open(v) && !job->ended_ns; i++) {
        struct view_board *b = &v->board[i];
        if (job->boards & (1ull << i) && b->n_jobs < n_elements(b->job))
            b->job[b->n_jobs++] = job->id;
    }
}

static size_t look_at_jobs(struct viewer *v)
{
    size_t n = 0;

    if (array_reserve((void **)&v->job, &v->cap_jobs, VIEW_JOBS_MAX, sizeof *v->job,
                      VIEW_JOBS_MAX) < 0)
        return 0;
    for (size_t i = 0; i < roster_count(v->from.roster) && n < VIEW_JOBS_MAX; i++)
        look_at_job(v, roster_at(v->from.roster, i), &v->job[n++]);
    for (size_t i = 0; i < job_records_count(v->from.records) && n < VIEW_JOBS_MAX; i++) {
        const struct job_record *rec = job_records_at(v->from.records, i);
        if (rec->ended_ns && job_records_shows(rec, loop_now_ns(v->loop)))
            look_at_job(v, &rec->last, &v->job[n++]);
    }
    return n;
}

void viewer_look(struct viewer *v, uint64_t fresh_ns, struct node_view *ret)
{
    look_at_boards(v, fresh_ns);
    for (size_t i = 0; i < v->n_kept; i++) /* claims expire while boards are closed */
        (void)claims_expire(&v->kept[i].claims, loop_now_ns(v->loop), NULL, NULL);
    ret->board = v->board;
    ret->n_boards = v->from.boards ? n_open(v) : v->n_kept;
    ret->n_jobs = v->from.boards ? look_at_jobs(v) : 0;
    ret->job = v->job;
}
