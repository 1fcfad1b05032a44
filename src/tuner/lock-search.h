/* Locks of the SM clock during the hold of a searched cap, in place of the cap or with
 * it.  core/optimum/lock.h decides what to try and what to keep; this file requests the
 * locks and passes on the windows.
 *
 * Safety: a lock is in force before the cap rises, and stays until the cap has fallen.
 * The caps walk a lock down from the observed clock, at the ramp rate of caps relative to
 * the highest clock.
 */
#ifndef TUNER_LOCK_SEARCH_H
#define TUNER_LOCK_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/optimum/goal.h"
#include "core/optimum/lock.h"
#include "core/optimum/search.h"
#include "io/loop.h"
#include "tuner/board-caps.h"
#include "tuner/notes.h"
#include "tuner/savings.h"

enum lock_phase {
    LOCK_OFF = 0, /* clocks may not be locked for this job */
    LOCK_IDLE,
    LOCK_WATCHES, /* the clocks are read, from here on */
    LOCK_WORKS,   /* the machine is under way */
    LOCK_RISES,   /* likewise; a higher cap waits until the lock is in force */
};

/* activity_lock's state; what stands before phase, and LOCK_IDLE, is set by the caller.
 */
struct lock_search {
    struct board_caps *caps;
    const struct tuner_notes *notes;
    struct loop *loop;
    struct goal goal;
    double window_s, ramp; /* ramp: share of the highest clock per second */

    enum lock_phase phase;
    struct lock *machine;         /* not NULL: LOCK_WORKS, LOCK_RISES */
    uint32_t out_mw;              /* do not try again while this cap is held; 0: none */
    uint32_t held_mw;             /* the held cap when the machine began */
    double rate_mhz_s;            /* at which a lock goes down */
    uint32_t asked_mhz;           /* last request; 0: no lock */
    uint64_t asked_ns;            /* time of the last request; 0: it is in force */
    uint64_t seen_ns[BOARDS_MAX]; /* time of the last counted clock */
    double seen_sum; /* sum, number and maximum of the clocks in the window */
    unsigned seen_n;
    uint32_t seen_most_mhz;
};

#endif
