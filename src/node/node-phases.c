/* What each job does now: as its processes tell it, else as its boards' telemetry shows.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/names.h"
#include "base/units.h"
#include "node/node-inside.h"

#define BOOKED_AFTER_S 5.0 /* what is seen is booked once it has stood so long */
#define TOLD_FROM 0.5      /* what is right less often is not told */

/* Boards that are this job's alone: of others nobody can say whose the power is. */
static uint64_t own_boards(const struct node *node, const struct job_entry *job)
{
    uint64_t boards = job->foreign ? 0 : job->boards;

    for (size_t i = 0; i < roster_count(node->roster); i++) {
        const struct job_entry *other = roster_at(node->roster, i);
        if (other->id != job->id && other->boards & job->boards)
            boards = 0;
    }
    for (size_t i = 0; i < node->n; i++)
        if (node_is_detached(node, i))
            boards &= ~(1ull << i);
    return boards;
}

static void hear(struct node *node, struct node_job_rec *rec, uint64_t boards)
{
    struct job_phase_board board[BOARDS_MAX];
    size_t n = 0;

    if (!rec->follow || rec->followed == boards)
        return;
    for (size_t i = 0; i < node->n; i++)
        if (boards >> i & 1)
            board[n++] = (struct job_phase_board){node->board[i].sampler, 0};
    if (job_phase_hear(rec->follow, board, n) == 0) /* else the next tick tries again */
        rec->followed = boards;
}

static void look_at_phase(struct node_job_rec *rec, const struct steps *steps,
                          uint64_t now_ns)
{
    struct job_phase_view seen;

    if (steps && steps->phase != UW_PHASE_UNKNOWN) {
        rec->phase =
            (struct view_phase){.phase = steps->phase,
                                .by = steps->guessed ? PHASE_BY_LAUNCHES : PHASE_BY_JOB,
                                .since_ns = steps->phase_ns};
        rec->phase_booked = true;
        return;
    }
    job_phase_view(rec->follow, &seen);
    double right = phase_confidence(seen.kind);
    if (right < TOLD_FROM)
        rec->phase = (struct view_phase){.phase = UW_PHASE_UNKNOWN};
    else
        rec->phase = (struct view_phase){.phase = seen.kind == PHASE_CHANGE ? PHASE_TRAIN
                                                                            : seen.kind,
                                         .by = PHASE_BY_TELEMETRY,
                                         .since_ns = seen.since_ns,
                                         .confidence = {true, right}};
    rec->phase_booked = s_between(seen.known_ns, now_ns) >= BOOKED_AFTER_S;
}

void node_phases_tick(struct node *node, struct node_job_rec *rec, uint64_t now_ns)
{
    const struct job_entry *job = roster_find(node->roster, rec->id);

    if (!job)
        return;
    hear(node, rec, own_boards(node, job));
    look_at_phase(rec, searches_steps(node->tunings, rec->id), now_ns);
    if (rec->phase_booked)
        roster_phase(node->roster, rec->id, rec->phase.phase);
}

void node_phases_on_caps(struct node *node, const struct caps_what *what)
{
    double most_w = what->event == CAPS_EVENT_CAP && what->enforced_mw
                        ? w_of_mw(what->enforced_mw)
                        : INFINITY;

    if (what->event != CAPS_EVENT_CAP && what->event != CAPS_EVENT_CLOCK)
        return;
    for (size_t i = 0; i < node->n_jobs; i++)
        if (node->job[i]->followed >> what->board & 1)
            job_phase_on_cap(node->job[i]->follow, most_w);
}

void node_phases_end(struct node_job_rec *rec)
{
    if (rec->follow)
        (void)job_phase_hear(rec->follow, NULL, 0);
    rec->followed = 0;
    rec->phase = (struct view_phase){.phase = UW_PHASE_UNKNOWN};
}
