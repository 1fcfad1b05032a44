/* Phase detection for one job from the telemetry of its boards: uses samples that others
 * request, and the mean power over the boards (core/progress/phases.h).
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
    size_t at; /* the board's index in the sampler */
};

/* Listens to no board yet.  -ENOMEM. */
int job_phase_new(struct loop *loop, struct job_phase **ret);
void job_phase_free(struct job_phase *f);
DEFINE_AUTO(struct job_phase *, job_phase_free);

/* Restarts the detection with the samples of these boards; the first BOARDS_MAX are used.
 * The samplers must outlive f or the next call.  n 0: listens to no board, the phase is
 * unknown.  -ENOMEM: as n 0.
 */
int job_phase_hear(struct job_phase *f, const struct job_phase_board *board, size_t n);

/* The limit or clock of the boards changes now; the resulting change of power must not
 * count as a phase.  most_w: the highest power of one board; INFINITY: unknown.  f may
 * be NULL.
 */
void job_phase_on_cap(struct job_phase *f, double most_w);

struct job_phase_view {
    enum phase_kind kind; /* PHASE_UNKNOWN also while no board is listened to */
    uint64_t since_ns;    /* begin of the phase; 0: unknown */
    uint64_t known_ns;    /* when the phase was detected */
};
void job_phase_view(const struct job_phase *f,
                    struct job_phase_view *ret); /* f may be NULL */

#endif
