#include "jobs/job-records.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/progress/steps.h"

/* An ended job is shown, and energy is attributed to it, for this time. */
enum { KEEP_S = 60 };
#define BOOKED_AFTER_S 5.0 /* a phase from telemetry is booked after this time */
#define CONFIDENCE_MIN 0.5 /* a phase with less confidence is shown as unknown */
/* Each booked phase adds rows to the ledger and an event: at most one within this time,
 * however often a job reports another phase.  The ticks, a second apart, are all above
 * it.
 */
#define BOOKED_EVERY_S 0.8

struct job_records {
    struct job_records_opts opts;
    struct job_record *record[ROSTER_MAX + JOB_LOST_MAX];
    size_t n;
};

int job_records_new(const struct job_records_opts *opts, struct job_records **ret)
{
    struct job_records *rs = calloc(1, sizeof *rs);

    if (!rs)
        return -ENOMEM;
    rs->opts = *opts;
    *ret = rs;
    return 0;
}

static void record_free(struct job_record *rec)
{
    job_phase_free(rec->telemetry);
    if (rec->page_fd >= 0)
        (void)close(rec->page_fd);
    free(rec);
}

void job_records_free(struct job_records *rs)
{
    while (rs && rs->n > 0)
        record_free(rs->record[--rs->n]);
    free(rs);
}

struct job_record *job_records_find(const struct job_records *rs, uint64_t id)
{
    for (size_t i = 0; i < job_records_count(rs); i++)
        if (rs->record[i]->id == id)
            return rs->record[i];
    return NULL;
}

struct job_record *job_records_at(const struct job_records *rs, size_t i)
{
    return rs->record[i];
}

size_t job_records_count(const struct job_records *rs)
{
    return rs ? rs->n : 0;
}

static void drop(struct job_records *rs, size_t at)
{
    rs->opts.on_drop(rs->record[at]->id, rs->opts.user);
    record_free(rs->record[at]);
    rs->record[at] = rs->record[--rs->n];
}

void job_records_drop(struct job_records *rs, uint64_t id)
{
    for (size_t i = 0; i < rs->n; i++)
        if (rs->record[i]->id == id) {
            drop(rs, i);
            return;
        }
}

/* ---- jobs that have ended ---- */

static size_t n_lost(const struct job_records *rs)
{
    size_t n = 0;

    for (size_t i = 0; i < rs->n; i++)
        n += rs->record[i]->lost;
    return n;
}

/* The lost job, or else the other ended job, that ended first; SIZE_MAX: none. */
static size_t oldest(const struct job_records *rs, bool is_lost)
{
    size_t ret = SIZE_MAX;

    for (size_t i = 0; i < rs->n; i++) {
        const struct job_record *rec = rs->record[i];
        if (rec->ended_ns && rec->lost == is_lost &&
            (ret == SIZE_MAX || rec->ended_ns < rs->record[ret]->ended_ns))
            ret = i;
    }
    return ret;
}

void job_records_trim(struct job_records *rs)
{
    size_t at = n_lost(rs) > JOB_LOST_MAX ? oldest(rs, true) : SIZE_MAX;

    if (at != SIZE_MAX)
        drop(rs, at);
}

bool job_records_full(const struct job_records *rs)
{
    return rs->n - n_lost(rs) >= ROSTER_MAX;
}

struct job_record *job_records_add(struct job_records *rs, uint64_t id)
{
    size_t at;

    /* When ends of lost jobs were reported, or lost jobs came back, there may be several
     * too many.
     */
    while (job_records_full(rs) && (at = oldest(rs, false)) != SIZE_MAX)
        drop(rs, at);
    if (job_records_full(rs))
        return NULL;
    struct job_record *rec = calloc(1, sizeof *rec);
    if (!rec)
        return NULL;
    rec->id = id;
    rec->page_fd = -1;
    if (rs->opts.phases) /* on failure the job has no phase from telemetry */
        (void)job_phase_new(rs->opts.loop, &rec->telemetry);
    rs->record[rs->n++] = rec;
    return rec;
}

/* ---- phases ---- */

/* The job's boards, or none if another job or process shares one: the power of a shared
 * board cannot be assigned.  A job in which this one runs shares what it has not passed.
 */
static uint64_t own_boards(const struct job_records *rs, const struct job_entry *job)
{
    uint64_t boards = job->foreign ? 0 : job->boards;

    for (size_t i = 0; i < roster_count(rs->opts.roster); i++) {
        const struct job_entry *other = roster_at(rs->opts.roster, i);
        if (other->id != job->id && other->boards & ~other->passed & job->boards)
            boards = 0;
    }
    for (size_t i = 0; i < boards_count(rs->opts.boards); i++)
        if (board_view(boards_at(rs->opts.boards, i))->away)
            boards &= ~(1ull << i);
    return boards;
}

static void hear(const struct job_records *rs, struct job_record *rec, uint64_t boards)
{
    struct job_phase_board board[BOARDS_MAX];
    size_t n = 0;

    if (!rec->telemetry || rec->heard == boards)
        return;
    for (size_t i = 0; i < boards_count(rs->opts.boards); i++)
        if (boards >> i & 1)
            board[n++] = (struct job_phase_board){rs->opts.sampler[i], 0};
    if (job_phase_hear(rec->telemetry, board, n) == 0) /* else retried by the next tick */
        rec->heard = boards;
}

/* Returns whether energy may be attributed to the phase. */
static bool look_at_phase(struct job_record *rec, const struct steps *steps,
                          uint64_t now_ns)
{
    struct job_phase_view seen;

    if (steps && steps->phase != UW_PHASE_UNKNOWN) {
        rec->phase =
            (struct view_phase){.phase = steps->phase,
                                .by = steps->guessed ? PHASE_BY_LAUNCHES : PHASE_BY_JOB,
                                .since_ns = steps->phase_ns};
        return true;
    }
    job_phase_view(rec->telemetry, &seen);
    double right = phase_confidence(seen.kind);
    if (right < CONFIDENCE_MIN)
        rec->phase = (struct view_phase){.phase = UW_PHASE_UNKNOWN};
    else
        rec->phase = (struct view_phase){.phase = seen.kind == PHASE_CHANGE ? PHASE_TRAIN
                                                                            : seen.kind,
                                         .by = PHASE_BY_TELEMETRY,
                                         .since_ns = seen.since_ns,
                                         .confidence = {true, right}};
    return s_between(seen.known_ns, now_ns) >= BOOKED_AFTER_S;
}

static void book_phase(struct job_records *rs, struct job_record *rec,
                       const struct job_entry *job, uint64_t now_ns)
{
    if (job->phase == rec->phase.phase ||
        s_between(rec->booked_ns, now_ns) < BOOKED_EVERY_S)
        return;
    rec->booked_ns = now_ns;
    roster_phase(rs->opts.roster, rec->id, rec->phase.phase);
}

static void follow(struct job_records *rs, struct job_record *rec, uint64_t now_ns)
{
    const struct job_entry *job = roster_find(rs->opts.roster, rec->id);

    if (!job)
        return;
    hear(rs, rec, own_boards(rs, job));
    if (look_at_phase(rec, rs->opts.steps(rec->id, rs->opts.user), now_ns))
        book_phase(rs, rec, job, now_ns);
    if (rs->opts.on_phase)
        rs->opts.on_phase(rec->id, &rec->phase, rs->opts.user);
}

bool job_records_shows(const struct job_record *rec, uint64_t now_ns)
{
    uint64_t keep_ns = rec->lost ? LIFETIME_BACK_NS : KEEP_S * NS_PER_S;

    return now_ns - rec->ended_ns <= keep_ns;
}

static bool is_past(const struct job_record *rec, uint64_t now_ns)
{
    return !job_records_shows(rec, now_ns) &&
           !(rec->lost && lifetime_may_come_back(&rec->life, rec->ended_ns, now_ns));
}

void job_records_tick(struct job_records *rs, uint64_t now_ns)
{
    for (size_t i = rs->n; i-- > 0;) {
        struct job_record *rec = rs->record[i];
        if (rec->ended_ns && is_past(rec, now_ns))
            drop(rs, i);
        else if (!rec->ended_ns)
            follow(rs, rec, now_ns);
    }
}

void job_records_told(struct job_records *rs, uint64_t job)
{
    struct job_record *rec = job_records_find(rs, job);

    if (rec && !rec->ended_ns)
        follow(rs, rec, loop_now_ns(rs->opts.loop));
}

void job_records_on_cap(struct job_records *rs, size_t board, double most_w)
{
    for (size_t i = 0; i < job_records_count(rs); i++)
        if (rs->record[i]->heard >> board & 1)
            job_phase_on_cap(rs->record[i]->telemetry, most_w);
}

void job_records_back(struct job_record *rec)
{
    rec->ended_ns = 0;
    rec->lost = false;
    rec->booked_ns = 0;
}

const struct goal *job_record_goal(const struct job_record *rec)
{
    return rec->ruled                        ? &rec->rule_goal
           : rec->search && !rec->by_default ? &rec->goal
           : rec->lent                       ? &rec->lent_goal
           : rec->search                     ? &rec->goal
                                             : NULL;
}

void job_notes_add(struct job_notes *notes, const char *text)
{
    (void)snprintf(notes->text[++notes->n % JOB_NOTES_MAX], JOB_NOTE, "%s", text);
}

void job_records_end(struct job_records *rs, struct job_record *rec,
                     const struct job_entry *job)
{
    if (rec->telemetry)
        (void)job_phase_hear(rec->telemetry, NULL, 0);
    rec->heard = 0;
    rec->phase = (struct view_phase){.phase = UW_PHASE_UNKNOWN};
    rec->last = *job;
    rec->ended_ns = loop_now_ns(rs->opts.loop);
}
