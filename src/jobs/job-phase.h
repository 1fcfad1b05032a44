/* The phase that a job's boards are in, from what is read of them anyway: hears their
 * samples and asks for none (core/progress/phases.h).  One a job, over the mean of its
 * boards.
 */
#ifndef JOBS_JOB_PHASE_H
#define JOBS_JOB_PHASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"
#include "core/progress/phases.h"
#include "io/loop.h"

struct job_phase;

struct job_phase_board {
    struct sampler *sampler;
    size_t at; /* the board's place in it */
};

/* Nothing is heard yet.  -ENOMEM. */
int job_phase_new(struct loop *loop, struct job_phase **ret);
void job_phase_free(struct job_phase *f);
DEFINE_AUTO(struct job_phase *, job_phase_free);

/* From now on it hears these boards (up to BOARDS_MAX, whose samplers outlive that) and
 * begins anew; n 0: none, and nothing is known.  -ENOMEM: none.
 */
int job_phase_hear(struct job_phase *f, const struct job_phase_board *board, size_t n);

/* The limit or the clock of its boards changes now: their power will, too, and that is no
 * phase.  most_w: the most one of them may draw; INFINITY unknown.  NULL is fine.
 */
void job_phase_on_cap(struct job_phase *f, double most_w);

struct job_phase_view {
    enum phase_kind kind; /* PHASE_UNKNOWN: where nothing is heard, too */
    uint64_t since_ns;    /* 0 unknown */
    uint64_t known_ns;    /* … and since when that is known */
};
void job_phase_view(const struct job_phase *f,
                    struct job_phase_view *ret); /* NULL is fine */

#endif
