/* Cap, lock of the SM clock, or both: a pure state machine that begins where a search has
 * found a cap and holds it.  It tries a lock in the cap's place, climbs in the clock, and
 * tries the lock beside the cap; keeps what is better than the cap alone, and goes on
 * comparing the two while that is held.
 *
 *     lock_new(&setup, &l, &err);
 *     loop:
 *         step = lock_step(l);
 *         over:      nothing of it is left: the held cap, no lock; lock_free()
 *         otherwise: go to step->cap_mw and step->clock_mhz, wait for both to settle,
 *                    measure whole steps of work, lock_on_window()
 *
 * Windows of the cap alone (A) and of what is tried (B) are interleaved, A B B A, so that
 * what drifts falls on both.  A lock is kept only if the goal's value is lower by
 * LOCK_MARGIN and 2.33 standard errors of the comparison more, and, for slowdown:F, if
 * its time is expected within F and, 99 times of 100, within F and 0.2 % of it (where
 * windows have no errors: measured within F): the search's rule.  Windows that scatter
 * more than they claim are believed less.
 *
 * Cost: no more than LOCK_WINDOWS windows, those of the cap alone among them, which cost
 * nothing; and no more than LOCK_COST of an hour is lost in windows that are worse than
 * the cap (3.6 s: of a window of 10 s that is 3 % worse, 0.3 s are lost).  In a hold two
 * windows of the cap alone in LOCK_CHECK_EVERY: what the lock saves is lost in those.
 *
 * Safety: no clock below the board's lowest or floor_mhz (the search's soft floor is one
 * of caps: a lock may come to less power than that), no cap but the held one and the
 * reference.  The way: a lock before the cap rises, and a cap before its lock goes.  A
 * stall, a lock that is not seen in force, a cap in force that is not the step's: over,
 * at once, and for good.
 */
#ifndef CORE_OPTIMUM_LOCK_H
#define CORE_OPTIMUM_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/optimum/goal.h"

enum { LOCK_WINDOWS = 24, LOCK_WHY_MAX = 160 };
enum { LOCK_CHECK_FIRST = 20, LOCK_CHECK_EVERY = 60 }; /* windows of a hold */
#define LOCK_MARGIN 0.001                              /* of the goal's value */
#define LOCK_FLOOR 0.5
#define LOCK_COST 0.001 /* of an hour */

struct lock_setup {
    struct goal goal;
    struct goal_ref ref;               /* at the reference cap */
    double held_time_s, held_energy_j; /* at the held cap, as the search expects them */
    double held_time_rse;              /* of held_time_s over ref.time_s; 0: exact */
    uint32_t held_mw, most_mw; /* the cap held; the highest allowed: the reference */
    uint32_t min_mhz, max_mhz; /* the board's clocks; the tightest of the job's */
    uint32_t step_mhz;         /* from one to the next; 0: 15 */
    uint32_t floor_mhz;        /* never lower; 0: LOCK_FLOOR of seen_ref_mhz */
    double seen_mhz;           /* mean SM clock under load at the held cap */
    double seen_ref_mhz;       /* … at the reference cap; 0: max_mhz */
    double window_s;           /* of a window, for the cost; 0: 10 */
};

enum lock_kind { LOCK_MEASURE, LOCK_HOLD };

struct lock_step {
    enum lock_kind kind;
    uint32_t cap_mw;
    uint32_t clock_mhz;     /* 0: no lock */
    bool check;             /* of a hold: the cap alone, to compare the lock with it */
    bool over;              /* the cap alone, for good: nothing more is to be told */
    char why[LOCK_WHY_MAX]; /* one line for a human */
};

/* A window of whole steps of work at the settled cap and clock of lock_step(). */
struct lock_window {
    uint32_t cap_mw;         /* really in force, lowest of the job's GPUs */
    uint32_t seen_mhz;       /* highest SM clock seen under load; 0: not known */
    double time_s, energy_j; /* a unit of work, as the search's */
    double time_rse, energy_rse;
};

struct lock;

/* -EINVAL, -ERANGE with a text that names value and limit; -ENOMEM.  Where nothing is to
 * be tried (goal time, unknown clocks, none to go to) it is over at once, and says why.
 */
int lock_new(const struct lock_setup *setup, struct lock **ret, uw_error *err);
void lock_free(struct lock *l);
DEFINE_AUTO(struct lock *, lock_free);

/* What to do now; valid until the next call that tells it something. */
const struct lock_step *lock_step(const struct lock *l);
/* 0.  -EINVAL (nothing changed): a value is not finite and positive, an error not in
 * 0..1.
 */
int lock_on_window(struct lock *l, const struct lock_window *w, uw_error *err);
/* The job stalled, the lock could not be made, others' claims are in the way: over. */
void lock_end(struct lock *l, const char *why);

struct lock_result {
    unsigned windows; /* until the hold, or the end */
    unsigned tried;   /* settings */
    unsigned checks;  /* of a hold */
    double lost_s;    /* in windows worse than the cap alone, as measured */
    bool kept;        /* a lock is held: */
    uint32_t cap_mw, clock_mhz;
    double value, value_se; /* of the goal, over that of the cap alone */
    double time, energy;    /* the same of these, by expectation */
};
void lock_result(const struct lock *l, struct lock_result *ret);

#endif
