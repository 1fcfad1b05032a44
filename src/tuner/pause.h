/* Distinguishes a job's unreported pauses (validation, checkpoint, wait for data) from a
 * stall caused by the cap: a job that has made steps under a similar cap is not stalled
 * by its cap.  Pure.
 */
#ifndef TUNER_PAUSE_H
#define TUNER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/progress/steps.h"

struct pause {
    struct step_mark last; /* the last step before the pause */
    uint32_t phase;        /* that the job reports in it, enum uw_phase */
    uint64_t forgiven_ns;  /* time before this is no delay of a step; 0: unset */
    struct {
        uint32_t mw;            /* no cap in force since then was much lower */
        struct step_mark since; /* steps at that time */
    } ran[2];                   /* the newer first */
};

/* A cap has come into force, or a higher one was claimed.  A higher or slightly lower cap
 * is assumed not to stall a running job.
 */
void pause_on_cap(struct pause *p, uint32_t mw, const struct step_mark *now);
/* Whether the job has made enough steps under caps similar to those in force. */
bool pause_ran_well(const struct pause *p, const struct step_mark *now);
/* While the cap is lowered: seconds by which the next step is late although the cap is
 * not the cause; < 0: not yet; 0: it may be the cause.  speed: of simulated time.
 */
double pause_late_s(const struct pause *p, const struct steps *steps, uint64_t now_ns,
                    double speed);
/* Call for each read of the steps in a pause.  Whether a step was made since it began. */
bool pause_on_steps(struct pause *p, struct steps *steps, uint64_t now_ns);
/* Removes earlier pauses from the steps that were just read. */
void pause_mend(const struct pause *p, struct steps *steps);
/* Does not count the time until now as a delay of the job's steps. */
void pause_forgive(struct pause *p, struct steps *steps, uint64_t now_ns);
/* When the originals must be restored; UINT64_MAX: the job reports why it pauses. */
uint64_t pause_long_ns(const struct pause *p, const struct steps *steps, double speed);

#endif
