/* Pauses of a job that it does not tell of (a validation, a checkpoint, a wait for data),
 * told from a cap that stops the job: a job that made steps under caps like those in
 * force is not stopped by its cap.  Pure.
 */
#ifndef TUNER_PAUSE_H
#define TUNER_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/progress/steps.h"

struct pause {
    bool on;      /* no step since `last` */
    bool goes_on; /* a step has been told since */
    bool told;    /* the job tells of a phase without steps by now */
    bool halted;  /* it lasts: the originals are in force until a step is told */
    struct step_mark last;
    uint64_t
        forgiven_ns; /* what its steps did before counts as no delay; 0: all counts */
    struct {
        uint32_t mw;            /* since then no cap in force was much lower */
        struct step_mark since; /* steps at that time */
    } ran[2];                   /* the newer first */
};

/* A cap is asked for, or set by others.  One that is higher, or a little lower, stops no
 * job that runs.
 */
void pause_on_cap(struct pause *p, uint32_t mw, const struct step_mark *now);
/* … and has come into force. */
void pause_on_in_force(struct pause *p, uint32_t mw, const struct step_mark *now);
/* The job made steps under caps like those in force. */
bool pause_ran_well(const struct pause *p, const struct step_mark *now);
/* On the way down: the next step is late, and the cap is not the cause.  speed: of
 * simulated time.
 */
bool pause_is_due(const struct pause *p, const struct steps *steps, uint64_t now_ns,
                  double speed);
void pause_begin(struct pause *p, const struct step_mark *last);
void pause_end(struct pause *p);
/* Steps were read: what happened in the pause is taken out of them. */
void pause_on_steps(struct pause *p, struct steps *steps, uint64_t now_ns);
/* The time until now is no delay of the job's steps. */
void pause_forgive(struct pause *p, struct steps *steps, uint64_t now_ns);
/* Seconds without a step after which the originals come back; 0: not yet so long, or the
 * job tells why.
 */
double pause_is_long(const struct pause *p, const struct steps *steps, uint64_t now_ns,
                     double speed);

#endif
