/* Shared by the files of struct scheduler. */
#ifndef NODE_SCHEDULER_INSIDE_H
#define NODE_SCHEDULER_INSIDE_H

#include "core/job/shared.h"
#include "jobs/step-watch.h"
#include "node/scheduler.h"

struct scheduler {
    struct scheduler_opts o;
    struct step_watch *steps; /* NULL: there is no /proc to look at */
    struct loop_timer *timer;
    uint64_t look_ns; /* the next look; 0: none */
    bool open;        /* claims of an earlier daemon were taken over */
    struct shared shared;
};

static inline const struct gpu_info *scheduler_board(const struct scheduler *s,
                                                     size_t board)
{
    return board_view(boards_at(s->o.boards, board))->info;
}

static inline size_t scheduler_boards(const struct scheduler *s)
{
    return boards_count(s->o.boards);
}

/* The rest of a request after its first word, if that is `word`; else NULL. */
const char *scheduler_after(const char *ask, const char *word);

/* Makes the job hold the cap that it requests.  The claim on a board that does not answer
 * at the moment is kept; is_new: the job's request is new.
 */
int scheduler_hold(struct scheduler *s, const struct job_entry *job,
                   const struct job_record *rec, bool is_new, uw_error *err);
/* Withdraws the job's claims. */
void scheduler_hold_none(struct scheduler *s, uint64_t job);

#endif
