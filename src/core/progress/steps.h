/* Progress of a job from the slots that its processes write: whole training steps of the
 * slowest live slot, and when each ended.  Pure.
 *
 * A generation is a span in which the set of live slots did not change and no slot's
 * count went back; only steps of one generation may be compared.
 */
#ifndef CORE_PROGRESS_STEPS_H
#define CORE_PROGRESS_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/progress.h"

enum { STEPS_SLOTS = UW_PROGRESS_SLOTS };

/* One slot as read; live: its process exists. */
struct step_slot {
    uint64_t pid;
    uint64_t steps;
    uint64_t last_step_ns;
    uint32_t phase;
    bool live;
};

/* The end of a step of the whole job. */
struct step_mark {
    uint64_t steps;      /* steps done by the slowest slot */
    uint64_t at_ns;      /* end of the last of them */
    uint64_t generation; /* marks of two generations are not comparable */
};

struct steps {
    struct step_slot seen[STEPS_SLOTS];
    size_t n_seen;
    struct step_mark mark;
    bool has_mark;
    uint32_t phase;    /* enum uw_phase of the slowest slot */
    uint64_t fed_ns;   /* time of the last feed */
    uint64_t phase_ns; /* when the phase was first seen */
    double step_s;     /* smoothed time of a training step; 0 unknown */
    unsigned lies;     /* times that a slot's clock was implausible */
    bool guessed;      /* set by the caller: steps are from launches, not reported */
};

enum steps_outcome {
    STEPS_SAME = 0,      /* nothing new */
    STEPS_ADVANCED = 1,  /* a new mark in the same generation */
    STEPS_RESTARTED = 2, /* a new generation began (its first mark is set) */
};

void steps_init(struct steps *s);

/* Slots read at now_ns (n <= STEPS_SLOTS).  A time in the future, or not after the slot's
 * last one, is replaced by now_ns and counted in lies.
 */
enum steps_outcome steps_feed(struct steps *s, const struct step_slot *slots, size_t n,
                              uint64_t now_ns);

/* Whether a live slot has done at least one step. */
bool steps_known(const struct steps *s);

/* steps_known(), and the phase is reliable: not a pause that is only guessed. */
bool steps_seen(const struct steps *s);

/* Whether the job trains now; a job that names no phase always does. */
bool steps_training(const struct steps *s);

/* Steps and seconds between two marks of one generation; false otherwise. */
bool steps_between(const struct step_mark *a, const struct step_mark *b,
                   double *ret_steps, double *ret_s);

/* Seconds by which the next step is late against `factor` times the smoothed
 * step time (and at least least_s); <= 0: not late, or not training, or unknown.
 */
double steps_late_s(const struct steps *s, uint64_t now_ns, double factor,
                    double least_s);

#endif
