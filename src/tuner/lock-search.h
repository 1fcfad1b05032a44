/* Locks of the SM clock during the hold of a searched cap, in place of the cap or with
 * it.  core/optimum/lock.h decides what to try and what to keep; this file requests the
 * locks and passes on the windows.
 *
 * Safety: a lock is in force before the cap rises, and stays until the cap has fallen.  A
 * lock ramps down from the observed clock, at the ramp rate of caps relative to the
 * highest clock.
 */
#ifndef TUNER_LOCK_SEARCH_H
#define TUNER_LOCK_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cap/ramp.h"
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

struct lock_search {
    struct board_caps *caps;
    const struct tuner_notes *notes;
    struct loop *loop;
    struct goal goal;
    double window_s, ramp; /* ramp: share of the highest clock per second */

    enum lock_phase phase;
    struct lock *machine; /* not NULL: LOCK_WORKS, LOCK_RISES */
    uint32_t out_mw;      /* do not try again while this cap is held; 0: none */
    uint32_t held_mw;     /* the held cap when the machine began */
    struct ramp walk;     /* of the lock, in MHz */
    double rate_mhz_s;
    uint32_t asked_mhz;           /* last request; 0: no lock */
    uint64_t asked_ns;            /* time of the last request; 0: it is in force */
    uint64_t seen_ns[BOARDS_MAX]; /* time of the last counted clock */
    double seen_sum; /* sum, number and maximum of the clocks in the window */
    unsigned seen_n;
    uint32_t seen_most_mhz;
};

/* A window of the hold. */
struct lock_search_seen {
    const struct search *search;
    const struct savings *savings;
    uint32_t cap_mw, reference_mw;
    const struct search_window *window;
};
enum lock_search_verdict {
    LOCK_SEARCH_STAYS = 0,
    LOCK_SEARCH_GOES, /* to another cap, another lock, or both */
    LOCK_SEARCH_OVER, /* the cap without a lock, for the rest of the hold */
};
/* Call after each window of the hold. */
enum lock_search_verdict lock_search_on_window(struct lock_search *l,
                                               const struct lock_search_seen *seen);
/* The target of the cap's ramp, now at at_mw, for a step whose target without locks is
 * mw.  hold: the step is a hold at cap_mw.
 */
uint32_t lock_search_target(struct lock_search *l, bool hold, uint32_t cap_mw,
                            uint32_t mw, uint32_t at_mw);

enum lock_search_way {
    LOCK_SEARCH_THERE = 0, /* the lock is as it should be */
    LOCK_SEARCH_WALKS,     /* the lock is ramping, or is being removed */
    LOCK_SEARCH_NEXT,      /* the caller must call tuner_next(): the cap may follow now */
};
/* Moves the lock; call it when the cap is at its target.  hold: the cap is held, and the
 * job runs.
 */
enum lock_search_way lock_search_walk(struct lock_search *l, bool hold);
/* Adds the boards' clocks to the open window. */
void lock_search_see(struct lock_search *l);
/* Whether a lock, or a cap that needs a lock, is set. */
bool lock_search_moved(const struct lock_search *l);
/* Whether it measures, so that other measurements must wait. */
bool lock_search_measures(const struct lock_search *l);
/* The job made no progress.  True: a lock was set and has been removed. */
bool lock_search_stall(struct lock_search *l);
/* Removes the lock until the hold continues. */
void lock_search_off(struct lock_search *l);
void lock_search_end(struct lock_search *l);
/* The job has changed: discards all results. */
void lock_search_forget(struct lock_search *l);

#endif
