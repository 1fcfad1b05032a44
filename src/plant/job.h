/* A training job on one or more boards in lockstep: the slowest board sets the pace.
 *
 *     start-up, then in each epoch its phases in order, e.g. load, train, validate,
 *     checkpoint
 *
 * Training is the workload's own step.  A validation step has forward passes only (less
 * time, 0.85 of the dynamic power, half of the gap); load, checkpoint and start-up hold
 * the boards at a low power for a given time. plant_job_next_ns() lets a caller skip from
 * event to event.
 *
 * A driven job has no phases of its own: its boards do what plant_job_grant() grants and
 * wait between grants at the power of the workload's gap.
 */
#ifndef PLANT_JOB_H
#define PLANT_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "plant/gpu.h"
#include "underwatt/error.h"
#include "underwatt/progress.h"

struct plant_job;

enum { PLANT_JOB_BOARDS_MAX = 64, PLANT_JOB_PHASES_MAX = 16, PLANT_JOB_GRANTS_MAX = 2 };

struct plant_job_phase {
    enum uw_phase phase; /* UW_PHASE_TRAIN, _VALIDATE, _LOAD, _CHECKPOINT, _STARTUP */
    uint32_t steps;      /* train (0: the remaining steps of the epoch), validate */
    double s;            /* duration: load, checkpoint, startup */
};

struct plant_job_opts {
    struct plant_gpu *const *gpus; /* borrowed until plant_job_free() */
    size_t n_gpus;
    const char *workload; /* "resnet50": each board uses its own table's numbers */
    /* Looks up workloads, which must outlive the job; NULL: plant_workload_find(). */
    const struct plant_workload *(*find)(const struct plant_board *board,
                                         const char *name, void *user);
    void *find_user;
    uint32_t epochs;
    uint32_t steps; /* training steps of an epoch; 0: the workload's */
    const struct plant_job_phase *phases; /* of an epoch; n_phases 0: train only */
    size_t n_phases;
    double startup_s; /* before the first epoch */
    bool driven;      /* epochs, steps, phases and startup_s do not count */
};

/* Begins at the latest of the boards' times, to which the others advance. -EINVAL: no
 * such workload on a board, no boards, too many, an invalid number of phases or steps;
 * -EBUSY: a board has a job; -ENOMEM.
 */
int plant_job_new(const struct plant_job_opts *opts, struct plant_job **ret,
                  uw_error *err);
/* The boards become idle at their current time. */
void plant_job_free(struct plant_job *job);
DEFINE_AUTO(struct plant_job *, plant_job_free);

/* Advances the job and its boards; after the end of the job the boards idle. */
void plant_job_advance(struct plant_job *job, uint64_t to_ns);
/* When its pace or phase next changes; UINT64_MAX once done. */
uint64_t plant_job_next_ns(const struct plant_job *job);
/* When `steps` training steps will be done if nothing changes: exact if not after
 * plant_job_next_ns(), else call again then.  UINT64_MAX: not in this phase.
 */
uint64_t plant_job_when_ns(const struct plant_job *job, uint64_t steps);

struct plant_job_state {
    enum uw_phase phase;
    uint32_t epoch;        /* from 0 */
    uint64_t steps;        /* whole training steps done since the start */
    uint64_t last_step_ns; /* end of the last of them; 0: none */
    uint64_t total_steps;
    double exact_steps; /* with the fraction of the current one */
    bool done;
    uint64_t done_ns; /* end of the job; 0: not yet */
};
void plant_job_state(const struct plant_job *job, struct plant_job_state *ret);

/* ---- driven jobs ---- */

enum { PLANT_GRANT_FULL = 1 };

/* Grants the next phase: `steps` of training or validation, `s` of another.  It begins
 * once the grant before it is done.  Steps of the same phase follow one another as in one
 * loop.  PLANT_GRANT_FULL: PLANT_JOB_GRANTS_MAX grants are under way, wait or were not
 * collected; -EINVAL: the job is not driven, or nothing is granted.
 */
int plant_job_grant(struct plant_job *job, const struct plant_job_phase *grant,
                    uw_error *err);

struct plant_granted {
    uint64_t number; /* of the grant, from 1 */
    enum uw_phase phase;
    uint64_t at_ns;     /* when it was done */
    uint64_t steps;     /* whole training steps until then */
    uint64_t waited_ns; /* time until then in which the boards waited for a grant */
    double energy_j;    /* of all boards until then, as plant_gpu_energy_j() */
};
/* Collects the oldest grant that is done; false: none. */
bool plant_job_granted(struct plant_job *job, struct plant_granted *ret);

/* From now on a training step costs this factor of time and dynamic power (1, 1: as
 * calibrated): a lasting change, for tests of the tuner.
 */
void plant_job_scale(struct plant_job *job, double time_scale, double power_scale);

#endif
