#include "node/phase-watch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "board/sampler.h"
#include "caps/caps.h"
#include "core/cap/arbiter.h"
#include "core/progress/steps.h"
#include "io/loop.h"
#include "jobs/roster.h"
#include "node/ledger-writer.h"

/* The current phase, since its start or the last change of its limit. */
struct phase_now {
    uint64_t from_ns;
    struct step_mark from;
    bool has_from;
    bool part; /* does not start at the phase's start */
    /* Sums over the samples of all boards: */
    double s, power_s, cap_s, ruled_s; /* seconds; the others weighted by time */
    uint32_t least_mw, most_mw;
    uint32_t first_mw; /* before the first change of the limit; 0: none yet */
};

struct watched {
    uint64_t job, boards;
    struct phase_book book;
    struct phase_returns returns;
    /* For a phase that has ended under a rule's cap: */
    uint64_t ended_ns;
    uint64_t lowered; /* boards whose limits have not been raised again */
    struct phase_now now;
    struct phase_curve curve[BOOK_PHASES];
    struct phase_compared compared;
    struct phase_gain gain;
};

struct phase_board {
    struct sampler *sampler;
    struct sampler_ear ear;
    struct phase_settling settling;
    uint32_t mw; /* limit in force; 0: unknown */
    bool ruled;  /* the limit is a rule's */
    uint64_t sampled_ns;
};

struct phase_watch {
    struct phase_watch_opts o;
    struct phase_board *board; /* o.n_boards */
    struct watched *job[ROSTER_MAX];
    size_t n;
};

/* ---- stretches ---- */

#define SETTLES_S 0.6 /* samples within this time after a change do not count */
#define GAP_S 3.0     /* longer gaps between two samples do not count */
#define LEAST_S 1.5   /* least time of samples of each board */
#define MOVED 0.015   /* change of a limit that ends a stretch of steps */
#define RANGE 0.1     /* largest range of limits that counts as one cap */
enum { LEAST_STEPS = 3 };

static void add_sample(struct phase_now *t, const struct phase_board *b, uint64_t at_ns,
                       double w)
{
    double s = s_between(b->sampled_ns, at_ns);

    if (!b->mw || s <= 0 || s > GAP_S || s_between(t->from_ns, at_ns) < SETTLES_S)
        return;
    t->s += s;
    t->power_s += s * w;
    t->cap_s += s * w_of_mw(b->mw);
    t->ruled_s += b->ruled ? s : 0;
    t->most_mw = b->mw > t->most_mw ? b->mw : t->most_mw;
    t->least_mw = !t->least_mw || b->mw < t->least_mw ? b->mw : t->least_mw;
}

static const struct step_mark *mark_of(const struct phase_watch *w, uint64_t job)
{
    const struct steps *steps = w->o.steps(job, w->o.user);

    return steps && steps_known(steps) ? &steps->mark : NULL;
}

static void begin_stretch(struct phase_watch *w, struct watched *j, bool part)
{
    j->now = (struct phase_now){.from_ns = loop_now_ns(w->o.loop), .part = part};
}

/* Notes the first step that ends in the stretch: the pause before it does not count. */
static void find_step(const struct phase_watch *w, struct watched *j)
{
    const struct step_mark *mark = j->now.has_from ? NULL : mark_of(w, j->job);

    if (!mark || mark->at_ns < j->now.from_ns)
        return;
    j->now.has_from = true;
    j->now.from = *mark;
}

/* The number of steps in the stretch, and their time; false: too few. */
static bool steps_of_stretch(const struct phase_watch *w, const struct watched *j,
                             double *ret_steps, double *ret_s)
{
    const struct step_mark *mark = mark_of(w, j->job);

    return mark && j->now.has_from &&
           steps_between(&j->now.from, mark, ret_steps, ret_s) &&
           *ret_steps >= LEAST_STEPS;
}

static void end_stretch(struct phase_watch *w, struct watched *j)
{
    const struct phase_now *t = &j->now;
    double boards = __builtin_popcountll(j->boards);
    struct phase_stretch s = {.barred = j->gain.none, .units = 1};

    if (j->book.phase == UW_PHASE_UNKNOWN || boards < 1)
        return;
    s.by_steps = steps_of_stretch(w, j, &s.units, &s.time_s);
    if (!s.by_steps) {
        s.units = 1;
        s.time_s = s_between(t->from_ns, loop_now_ns(w->o.loop));
    }
    if (t->s >= LEAST_S * boards) {
        s.cap_w = t->cap_s / t->s;
        s.power_w = boards * t->power_s / t->s;
        s.ruled = t->ruled_s > t->s / 2;
        s.whole = (s.by_steps || (j->book.whole && !t->part)) &&
                  w_of_mw(t->most_mw - t->least_mw) <= RANGE * s.cap_w;
    }
    phase_curve_add(&j->curve[j->book.phase], &s);
    phase_compare(j->curve, BOOK_PHASES, j->returns.lost_s, &j->compared);
    if (j->curve[j->book.phase].ruled_w > 0)
        phase_gain_step(&j->gain, &j->compared);
}

/* A changed limit ends a stretch of steps; in a phase without steps the stretch
 * continues.
 */
static void cap_moved(struct phase_watch *w, struct watched *j, uint32_t was_mw,
                      uint32_t mw)
{
    double steps, s;

    if (!j->now.first_mw)
        j->now.first_mw = was_mw;
    double from_mw = j->now.first_mw;
    if (fabs((double)mw - from_mw) <= MOVED * from_mw ||
        !steps_of_stretch(w, j, &steps, &s))
        return;
    end_stretch(w, j);
    begin_stretch(w, j, true);
}

/* ---- boards ---- */

static void hear(size_t board, const struct gpu_sample *s, void *user)
{
    struct phase_watch *w = user;
    uint64_t at_ns = s->began_ns + (s->at_ns - s->began_ns) / 2;

    if (!(s->has & (GPU_HAS_INSTANT | GPU_HAS_POWER)))
        return;
    struct phase_board *b = &w->board[board];
    double power_w = s->has & GPU_HAS_INSTANT ? s->instant_w : s->power_w;
    phase_settling_sample(&b->settling, at_ns, power_w);
    for (size_t i = 0; i < w->n; i++) {
        if (!(w->job[i]->boards >> board & 1))
            continue;
        find_step(w, w->job[i]);
        add_sample(&w->job[i]->now, b, at_ns, power_w);
    }
    b->sampled_ns = at_ns;
}

static void listen(struct phase_watch *w, size_t i, struct sampler *sampler)
{
    struct phase_board *b = &w->board[i];

    b->sampler = sampler;
    b->ear = (struct sampler_ear){.fn = hear, .user = w, .board = i, .overhears = true};
    sampler_hear(sampler, 0, &b->ear);
}

void phase_watch_hurry(struct phase_watch *w, bool hurry)
{
    for (size_t i = 0; i < w->o.n_boards; i++)
        w->board[i].ear.patient = !hurry;
}

/* ---- jobs ---- */

static struct watched *find(const struct phase_watch *w, uint64_t job)
{
    for (size_t i = 0; i < w->n; i++)
        if (w->job[i]->job == job)
            return w->job[i];
    return NULL;
}

static struct watched *add(struct phase_watch *w, uint64_t job)
{
    struct watched *j = w->n < ROSTER_MAX ? calloc(1, sizeof *j) : NULL;
    struct caps_view v;

    if (!j)
        return NULL;
    j->job = job;
    j->returns.began_ns = loop_now_ns(w->o.loop);
    for (size_t i = 0; i < w->o.n_boards; i++) {
        caps_look(w->o.caps, i, &v);
        phase_book_cap(&j->book, i, v.enforced_mw ? v.enforced_mw : v.bounds.original_mw,
                       loop_now_ns(w->o.loop));
    }
    w->job[w->n++] = j;
    return j;
}

/* ---- returns ---- */

static bool is_ruled(const struct caps_view *v)
{
    const struct claim *c = claims_find(v->claims, v->verdict.claim);

    return c && c->source == CLAIM_OF_RULE;
}

/* Whether the limit is a rule's, and would be higher without rules. */
static bool goes_up_after(const struct caps_view *v)
{
    struct claims others = *v->claims;
    struct cap_verdict verdict;

    if (!is_ruled(v) || !v->enforced_mw)
        return false;
    claims_drop_of(&others, CLAIM_OF_RULE);
    cap_decide(&others, &v->bounds, &verdict);
    return verdict.target_mw > v->enforced_mw;
}

static void say_costly(const struct phase_watch *w, const struct watched *j)
{
    const struct phase_returns *r = &j->returns;
    uint64_t now_ns = loop_now_ns(w->o.loop);
    char text[200];

    (void)snprintf(
        text, sizeof text,
        "phases of job %" PRIu64 " are no longer capped: %u of %u caps were raised "
        "late, by at most %.0f ms, and the job lost %.2g %% of its time",
        j->job, r->late, r->n, 1000 * r->worst_s, 100 * phase_returns_lost(r, now_ns));
    log_event(LOG_LEVEL_NOTICE, LOG_EVENT_RULE, "text=%s", log_quote(text).text);
    ledger_writer_event(w->o.writer, LEDGER_EVENT_RULE, SIZE_MAX, (uid_t)-1, text);
}

/* The limit of a board has been raised again, or was not in the whole following phase. */
static void returned(struct phase_watch *w, struct watched *j, size_t board,
                     uint32_t was_mw, uint32_t mw)
{
    uint64_t now_ns = loop_now_ns(w->o.loop);
    struct phase_return one = {.took_s = s_between(j->ended_ns, now_ns),
                               .depth = 1 - (double)was_mw / mw};
    bool was_off = j->returns.off;

    j->lowered &= ~(1ull << board);
    phase_settling_latency(&w->board[board].settling, &one.l);
    if (j->lowered && one.took_s <= one.l.call_s + PHASE_LATE_S)
        return; /* only the last board counts */
    phase_returned(&j->returns, &one, now_ns);
    if (j->returns.off && !was_off)
        say_costly(w, j);
}

/* Counts the limits of the phase before that should have been raised and are not. */
static void count_missing(struct phase_watch *w, struct watched *j)
{
    struct caps_view v;

    for (size_t i = 0; j->lowered && i < w->o.n_boards; i++) {
        if (!(j->lowered >> i & 1))
            continue;
        caps_look(w->o.caps, i, &v);
        if (!is_ruled(&v) && v.enforced_mw && v.enforced_mw < v.verdict.target_mw)
            returned(w, j, i, v.enforced_mw, v.verdict.target_mw);
    }
}

static void note_lowered(struct phase_watch *w, struct watched *j)
{
    struct caps_view v;

    j->ended_ns = loop_now_ns(w->o.loop);
    j->lowered = 0;
    for (size_t i = 0; i < w->o.n_boards; i++) {
        if (!(j->boards >> i & 1))
            continue;
        caps_look(w->o.caps, i, &v);
        if (goes_up_after(&v))
            j->lowered |= 1ull << i;
    }
}

bool phase_watch_phase(struct phase_watch *w, uint64_t job, uint64_t boards,
                       uint32_t phase)
{
    struct watched *j = find(w, job);

    if (!j)
        j = add(w, job);
    if (!j)
        return false;
    j->boards = boards;
    if (phase == j->book.phase)
        return false;
    count_missing(w, j);
    note_lowered(w, j);
    end_stretch(w, j);
    begin_stretch(w, j, false);
    return phase_book_phase(&j->book, phase, loop_now_ns(w->o.loop));
}

void phase_watch_cap(struct phase_watch *w, size_t board, uint32_t mw)
{
    struct phase_board *b = board < w->o.n_boards ? &w->board[board] : NULL;
    uint64_t now_ns = loop_now_ns(w->o.loop);
    struct caps_view v;

    if (!b)
        return;
    caps_look(w->o.caps, board, &v);
    uint32_t was_mw = b->mw;
    b->mw = mw;
    if (!mw) /* a change from an unknown limit does not count */
        return;
    b->ruled = is_ruled(&v);
    if (was_mw)
        phase_settling_cap(&b->settling, was_mw, mw, v.call_s, now_ns);
    for (size_t i = 0; i < w->n; i++) {
        struct watched *j = w->job[i];
        if (was_mw && mw > was_mw && j->lowered >> board & 1)
            returned(w, j, board, was_mw, mw);
        if (was_mw && j->boards >> board & 1)
            cap_moved(w, j, was_mw, mw);
        phase_book_cap(&j->book, board, mw, now_ns);
    }
}

void phase_watch_end(struct phase_watch *w, uint64_t job)
{
    for (size_t i = 0; i < w->n; i++) {
        if (w->job[i]->job != job)
            continue;
        free(w->job[i]);
        w->job[i] = w->job[--w->n];
        return;
    }
}

/* ---- views ---- */

#define NOTICE_S 0.02 /* from a change of phase to the request, if the job reports it */

void phase_watch_look(const struct phase_watch *w, uint64_t job, uint64_t boards,
                      struct view_phases *ret)
{
    const struct watched *j = w ? find(w, job) : NULL;
    struct phase_latency l;

    *ret = (struct view_phases){.book = j ? &j->book : NULL};
    if (j) {
        ret->costly = j->returns.off;
        ret->lost = phase_returns_lost(&j->returns, loop_now_ns(w->o.loop));
        ret->worst_s = j->returns.worst_s;
        ret->returns = j->returns.n;
        ret->late = j->returns.late;
        ret->compared = j->compared;
        ret->no_gain = j->gain.none;
    }
    for (size_t i = 0; w && i < w->o.n_boards; i++) {
        if (!(boards >> i & 1))
            continue;
        phase_settling_latency(&w->board[i].settling, &l);
        ret->latency.call_s = fmax(ret->latency.call_s, l.call_s);
        ret->latency.down_s = fmax(ret->latency.down_s, l.down_s);
        ret->latency.up_s = fmax(ret->latency.up_s, l.up_s);
    }
    ret->break_even_s = phase_break_even_s(&ret->latency, NOTICE_S);
}

/* ---- life ---- */

int phase_watch_new(const struct phase_watch_opts *opts, struct phase_watch **ret,
                    uw_error *err)
{
    auto_(phase_watch_free) struct phase_watch *w = calloc(1, sizeof *w);

    if (w)
        w->board = calloc(opts->n_boards + 1, sizeof *w->board);
    if (!w || !w->board)
        return fail(err, -ENOMEM, "out of memory");
    w->o = *opts;
    for (size_t i = 0; i < opts->n_boards; i++)
        listen(w, i, opts->sampler[i]);
    *ret = take(w);
    return 0;
}

void phase_watch_free(struct phase_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; w->board && i < w->o.n_boards; i++)
        sampler_deaf(w->board[i].sampler, 0, &w->board[i].ear);
    while (w->n > 0)
        free(w->job[--w->n]);
    free(w->board);
    free(w);
}
