/* Cap, lock of the SM clock, or both: a pure state machine that starts when the search
 * holds a cap.  It tries a lock instead of the cap, optimises its clock, and tries a lock
 * together with the cap.  It holds the best setting if that beats the cap alone, and
 * compares the two again from time to time during the hold.
 *
 *     lock_new(&setup, &l, &err);
 *     loop:
 *         step = lock_step(l);
 *         over:      set the held cap, no lock; lock_free()
 *         otherwise: set step->cap_mw and step->clock_mhz, wait for both to settle,
 *                    measure whole steps of work, lock_on_window()
 *
 * Windows of the cap alone (A) and of the setting tried (B) are interleaved, A B B A, so
 * that drift affects both equally.  A lock is kept only if the goal's value is lower by
 * LOCK_MARGIN plus 2.45 standard errors of the comparison, and, for slowdown:F, if it
 * meets the search's rule for the bound (search.h).  compare.h estimates the noise from
 * the latest LOCK_WINDOWS windows.
 *
 * Cost: at most LOCK_WINDOWS windows, including those of the cap alone, which cost
 * nothing; and at most LOCK_COST of an hour (3.6 s) lost in windows worse than the cap
 * alone (a window of 10 s that is 3 % worse loses 0.3 s).  A hold spends two of every
 * LOCK_CHECK_EVERY windows at the cap alone, where the lock's saving is lost.
 *
 * Safety: no clock below the board's minimum or floor_mhz (the search's soft floor limits
 * caps only: under a lock, power may fall below that floor); no cap but the held one and
 * the reference.  The caller must set a lock before it raises the cap, and lower the cap
 * before it removes the lock.  A stall, a lock that the board does not obey, or twice a
 * cap in force that is not the step's ends the state machine permanently.
 */
#ifndef CORE_OPTIMUM_LOCK_H
#define CORE_OPTIMUM_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/optimum/goal.h"

enum { LOCK_WINDOWS = 24, LOCK_WHY_MAX = 160 };
enum { LOCK_CHECK_FIRST = 20, LOCK_CHECK_EVERY = 60 }; /* windows of a hold per check */
#define LOCK_MARGIN 0.001                              /* of the goal's value */
#define LOCK_FLOOR 0.5
#define LOCK_COST 0.001 /* of an hour */

struct lock_setup {
    struct goal goal;
    struct goal_ref ref;               /* at the reference cap */
    double held_time_s, held_energy_j; /* expected by the search at the held cap */
    double held_time_rse;              /* of held_time_s / ref.time_s; 0: exact */
    uint32_t held_mw, most_mw; /* the held cap; the highest allowed cap: the reference */
    uint32_t min_mhz, max_mhz; /* the board's clocks, the tightest of the job's */
    uint32_t step_mhz;         /* spacing of the clocks; 0: 15 */
    uint32_t floor_mhz;        /* lowest clock; 0: LOCK_FLOOR x seen_ref_mhz */
    double seen_mhz;           /* mean SM clock under load at the held cap */
    double seen_ref_mhz;       /* same at the reference cap; 0: max_mhz */
    double window_s;           /* duration of a window, for the cost; 0: 10 */
};

enum lock_kind { LOCK_MEASURE, LOCK_HOLD };

struct lock_step {
    enum lock_kind kind;
    uint32_t cap_mw;
    uint32_t clock_mhz;     /* 0: no lock */
    bool check;             /* in a hold: a window of the cap alone, for comparison */
    bool over;              /* ended with the cap alone: no more windows are needed */
    char why[LOCK_WHY_MAX]; /* one line for a human */
};

/* A window of whole steps of work at the settled cap and clock of lock_step(). */
struct lock_window {
    uint32_t cap_mw;         /* in force (read back), lowest of the job's GPUs */
    uint32_t seen_mhz;       /* highest SM clock under load; 0: unknown */
    double time_s, energy_j; /* per unit of work, as in struct search_window */
    double time_rse, energy_rse;
    double start_s, lasted_s; /* on any clock; windows are told in the order of time */
};

struct lock;

/* -EINVAL, -ERANGE (the text names value and limit), -ENOMEM.  If there is nothing to try
 * (goal time, clocks unknown, no usable clock), the first step is `over`, with the
 * reason.
 */
int lock_new(const struct lock_setup *setup, struct lock **ret, uw_error *err);
void lock_free(struct lock *l);
DEFINE_AUTO(struct lock *, lock_free);

/* What to do now; valid until the next non-const call. */
const struct lock_step *lock_step(const struct lock *l);
/* -EINVAL (nothing changed): a value is not finite and positive, or an error is outside
 * 0..1.
 */
int lock_on_window(struct lock *l, const struct lock_window *w, uw_error *err);
/* Ends it: the job stalled, the lock failed, or claims of others prevent it. */
void lock_end(struct lock *l, const char *why);

struct lock_result {
    unsigned windows; /* until the hold or the end */
    unsigned tried;   /* settings */
    unsigned checks;  /* during the hold */
    double lost_s;    /* measured, in windows worse than the cap alone */
    bool kept;        /* a lock is held; else: the held cap, no clock, ratios 1 */
    uint32_t cap_mw, clock_mhz;
    double value, value_se; /* ratio of the goal's values, lock / cap alone */
    double time, energy;    /* expected ratios */
};
void lock_result(const struct lock *l, struct lock_result *ret);

#endif
