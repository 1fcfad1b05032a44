/* The lock of one board's SM clock: which lock its claims want, on which step of the ramp
 * it is, what to ask of the actuator, and whether the board obeys.  Values in, values
 * out: the board's caps ask the actuator and tell events.
 *
 * The actuator alone writes a lock.  It journals the lock before it writes, and resets it
 * whenever the hold ends, however it ends (docs/actuator.md).
 */
#ifndef CAPS_CLOCK_LOCK_H
#define CAPS_CLOCK_LOCK_H

#include "caps/types.h"

struct clock_lock {
    bool can;
    struct clock_bounds bounds;
    struct clock_verdict verdict;
    struct ramp ramp; /* its numbers are MHz */
    uint64_t stay_ns;
    uint32_t asked_mhz;  /* of the actuator last; 0: no lock */
    uint32_t locked_mhz; /* as the actuator said */
    uint32_t told_mhz;   /* of the last event CLOCK */
    uint32_t seen_mhz;   /* last seen while the board was at work … */
    uint64_t seen_ns;    /* … then; 0: never */
    bool watched;        /* somebody asks for it */
    bool asking;         /* its answer is due */
    bool failed;         /* the last request, until retry_ns */
    bool given_up;       /* not obeyed: not asked for again until the claims change */
    bool too_low; /* the lock in force is lower than what is wanted, which was refused:
                   * it is given back */
    enum actuator_result failed_with;
    unsigned attempts, bad;
    uint64_t retry_ns, asked_ns, settled_ns;
    uint64_t writes, failures, disobeyed;
    char text[200];
};

/* What the board's caps know when they ask. */
struct clock_lock_now {
    uint64_t at_ns;
    bool on;      /* the configuration allows locks */
    bool held;    /* the actuator holds the board for us */
    bool counted; /* the job's steps are counted */
    const struct cap_class *cls;
};

void clock_lock_init(struct clock_lock *k, const struct gpu_info *info,
                     const struct claims *claims, uint64_t now_ns);
/* The claims want a lock that may be asked for. */
bool clock_lock_is_wanted(const struct clock_lock *k, bool on);
/* The verdict over the claims, and where the ramp is. */
void clock_lock_decide(struct clock_lock *k, const struct claims *claims,
                       const struct clock_lock_now *now);
/* The job has done steps since the last step down. */
void clock_lock_progress(struct clock_lock *k, uint64_t now_ns);
/* The claims on the clock have changed: nothing waits for a second try. */
void clock_lock_hurry(struct clock_lock *k);

/* The actuator is to be asked now: for a lock to at most *ret_mhz, 0 for none. */
bool clock_lock_is_due(const struct clock_lock *k, const struct clock_lock_now *now,
                       uint32_t *ret_mhz);
/* It was asked: r of actuator_set_clocks(). */
void clock_lock_asked(struct clock_lock *k, uint32_t mhz, int r, uint64_t now_ns);
/* When something is due again without anybody's doing; CLAIM_FOREVER: never. */
uint64_t clock_lock_next_ns(const struct clock_lock *k, const struct clock_lock_now *now);

/* What the actuator says.  True: the lock is another, which is to be told. */
bool clock_lock_held(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns);
bool clock_lock_told(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns);
bool clock_lock_done(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns);
/* The hold is over; reset: the actuator said that the lock is gone with it. */
bool clock_lock_unlinked(struct clock_lock *k, bool reset, uint64_t now_ns);
/* The request failed.  True: for another reason than the last one, which is to be told.
 */
bool clock_lock_failed(struct clock_lock *k, const struct actuator_reply *reply,
                       uint64_t now_ns);

/* The clock under load.  True: the board does not obey, the lock is given back. */
bool clock_lock_sample(struct clock_lock *k, const char *uuid,
                       const struct gpu_sample *sample);

void clock_lock_view(const struct clock_lock *k, const struct clock_lock_now *now,
                     struct caps_clock_view *ret);
/* Counts go on from those of an earlier lock. */
void clock_lock_count_on(struct clock_lock *k, const struct caps_clock_view *was);

#endif
