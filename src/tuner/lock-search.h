/* Locks of the SM clock for a job whose searched cap is held, in the cap's place or
 * beside it: core/optimum/lock.h says what to try and what to keep; here its locks are
 * asked for and its windows told.
 *
 * Safety: where the cap rises the lock is in force before, where it falls the lock stays
 * until it has fallen.  A lock is walked down from the clock that is seen, by the cap's
 * share of the highest clock a second.
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

struct lock_search {
    struct board_caps *caps;
    const struct tuner_notes *notes;
    struct loop *loop;
    struct goal goal;
    double window_s, ramp; /* ramp: share of the highest clock a second */
    bool on;               /* clocks may be locked for this job */

    struct lock *machine; /* NULL: none under way */
    uint32_t out_mw;      /* not tried again where this cap is held; 0: none */
    uint32_t held_mw;     /* the cap that it began at */
    struct ramp walk;     /* of the lock, in MHz */
    double rate_mhz_s;
    uint32_t asked_mhz; /* last; 0: no lock */
    uint64_t asked_ns;  /* … then; 0: it is in force */
    bool rises;         /* a higher cap waits until the lock is in force */
    bool watched;
    uint64_t seen_ns[BOARDS_MAX]; /* the last that was counted */
    double seen_sum;              /* of the clocks seen in the window under way, … */
    unsigned seen_n;
    uint32_t seen_most_mhz;
};

/* What is held, and a window of it. */
struct lock_search_seen {
    const struct search *search;
    const struct savings *savings;
    uint32_t cap_mw, reference_mw;
    const struct search_window *window;
};
enum lock_search_verdict {
    LOCK_SEARCH_STAYS = 0,
    LOCK_SEARCH_GOES, /* to another cap, another lock, or both */
    LOCK_SEARCH_OVER, /* the cap alone again, for the rest of the hold */
};
/* A window of the hold is told. */
enum lock_search_verdict lock_search_on_window(struct lock_search *l,
                                               const struct lock_search_seen *seen);
/* Where the ramp, which is at at_mw, has to go for a step of the search, which without
 * locks is to mw.  hold: the step is a hold at cap_mw.
 */
uint32_t lock_search_target(struct lock_search *l, bool hold, uint32_t cap_mw,
                            uint32_t mw, uint32_t at_mw);

enum lock_search_way {
    LOCK_SEARCH_THERE = 0, /* nothing is due any more */
    LOCK_SEARCH_WALKS,     /* the lock is on its way, or is being given back */
    LOCK_SEARCH_NEXT,      /* a cap has waited for it, or the lock is over: go there */
};
/* The cap is where it should be.  hold: it is held, and the job runs. */
enum lock_search_way lock_search_walk(struct lock_search *l, bool hold);
/* A window is open: what the boards' clocks show now. */
void lock_search_see(struct lock_search *l);
/* A lock is there, or a cap that only comes with one. */
bool lock_search_moved(const struct lock_search *l);
/* Another measurement would be in its way. */
bool lock_search_measures(const struct lock_search *l);
/* The job made no progress.  True: there was a lock; there is none now. */
bool lock_search_stall(struct lock_search *l);
/* No lock for now; it comes back with its hold. */
void lock_search_off(struct lock_search *l);
void lock_search_end(struct lock_search *l);
/* What was tried before tells nothing any more. */
void lock_search_forget(struct lock_search *l);

#endif
