/* A job's progress from the slots its processes write: whole training steps of
 * the slowest live slot, and when each ended.  Pure: fed with what was read.
 *
 * A generation is a span in which the set of live slots did not change and no
 * slot went backwards; only steps of one generation may be compared.
 */
#ifndef CORE_PROGRESS_STEPS_H
#define CORE_PROGRESS_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/progress.h"

enum { STEPS_SLOTS = UW_PROGRESS_SLOTS };

/* One slot as it was read; `live` is the reader's word for "its process exists". */
struct step_slot {
    uint64_t pid;
    uint64_t steps;
    uint64_t last_step_ns;
    uint32_t phase;
    bool live;
};

/* The end of a step of the whole job. */
struct step_mark {
    uint64_t steps;      /* steps done, of the slowest slot */
    uint64_t at_ns;      /* when the last of them ended */
    uint64_t generation; /* marks of two generations have no steps between them */
};

struct steps {
    struct step_slot seen[STEPS_SLOTS];
    size_t n_seen;
    struct step_mark mark;
    bool has_mark;
    uint32_t phase;    /* enum uw_phase of the slowest slot, now */
    uint64_t fed_ns;   /* when it was last fed */
    uint64_t phase_ns; /* when the phase was first seen */
    double step_s;     /* smoothed time of a training step; 0 unknown */
    unsigned lies;     /* times a slot's clock could not be right */
    bool guessed;      /* set by who feeds: not told, but from launches */
};

enum steps_outcome {
    STEPS_SAME = 0,      /* nothing new */
    STEPS_ADVANCED = 1,  /* a new mark in the same generation */
    STEPS_RESTARTED = 2, /* a new generation began (its first mark is set) */
};

void steps_init(struct steps *s);

/* Slots read at now_ns (n <= STEPS_SLOTS).  A time that lies in the future or
 * before the slot's last one is replaced by now_ns and counted in lies.
 */
enum steps_outcome steps_feed(struct steps *s, const struct step_slot *slots, size_t n,
                              uint64_t now_ns);

/* True while some live slot has done at least one step. */
bool steps_known(const struct steps *s);

/* … and it can be followed: a pause that is only guessed may be anything. */
bool steps_seen(const struct steps *s);

/* Training now?  A job that names no phase trains always. */
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
