/* The lock of one board's SM clock: the lock that the claims want, the step of its ramp,
 * the next request to the actuator, and whether the board obeys.  Pure: the board's caps
 * make the requests and report the events.
 *
 * Only the actuator writes a lock.  It journals the lock before the write and resets it
 * at the end of the hold, whatever ends it (docs/design/actuator.md).
 */
#ifndef CAPS_CLOCK_LOCK_H
#define CAPS_CLOCK_LOCK_H

#include "caps/types.h"
#include "core/cap/stop.h"

struct clock_lock {
    bool can;
    struct clock_bounds bounds;
    struct clock_verdict verdict;
    struct ramp ramp; /* in MHz */
    struct cap_stop stop;
    uint32_t asked_mhz;  /* last requested from the actuator; 0: no lock */
    uint32_t locked_mhz; /* as the actuator reported */
    uint32_t told_mhz;   /* of the last event CLOCK */
    uint32_t seen_mhz;   /* last sampled under load */
    uint64_t seen_ns;    /* time of that sample; 0: never */
    bool watched;        /* caps_watch_clock() */
    bool asking;         /* a request is in flight */
    bool failed;         /* the last request, until retry_ns */
    bool given_up;       /* not obeyed: no request until the claims change */
    bool too_low;        /* the lock in force is lower than the wanted one, which was
                          * refused: it is reset */
    enum actuator_result failed_with;
    unsigned attempts, bad;
    uint64_t retry_ns, asked_ns, settled_ns;
    uint64_t writes, failures, disobeyed;
    char text[200];
};

/* What the board's caps pass in. */
struct clock_lock_now {
    uint64_t at_ns;
    bool on;      /* the configuration allows locks */
    bool held;    /* the actuator holds the board for us */
    bool counted; /* the job's steps are counted */
    const struct cap_class *cls;
};

void clock_lock_init(struct clock_lock *k, const struct gpu_info *info,
                     const struct claims *claims, uint64_t now_ns);
/* Whether the claims want a lock that may be requested. */
bool clock_lock_is_wanted(const struct clock_lock *k, bool on);
/* Computes the verdict over the claims, and the ramp. */
void clock_lock_decide(struct clock_lock *k, const struct claims *claims,
                       const struct clock_lock_now *now);
/* The job has done work since the last step of the ramp: this claim's units; 0: steps. */
void clock_lock_progress(struct clock_lock *k, uint64_t claim, unsigned units,
                         uint64_t now_ns);
/* The claims on the clock have changed: cancels the delay of retries. */
void clock_lock_hurry(struct clock_lock *k);

/* Whether to request now a lock to at most *ret_mhz; 0: a reset. */
bool clock_lock_is_due(const struct clock_lock *k, const struct clock_lock_now *now,
                       uint32_t *ret_mhz);
/* A request was made; r: result of actuator_set_clocks(). */
void clock_lock_asked(struct clock_lock *k, uint32_t mhz, int r, uint64_t now_ns);
/* When the next step is due without an event; CLAIM_FOREVER: never. */
uint64_t clock_lock_next_ns(const struct clock_lock *k, const struct clock_lock_now *now);

/* The actuator's answers.  True: the lock has changed, which must be reported. */
bool clock_lock_held(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns);
bool clock_lock_told(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns);
bool clock_lock_done(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns);
/* The hold has ended; reset: the actuator confirmed that the lock is reset. */
bool clock_lock_unlinked(struct clock_lock *k, bool reset, uint64_t now_ns);
/* The request failed.  True: with a new result, which must be reported. */
bool clock_lock_failed(struct clock_lock *k, const struct actuator_reply *reply,
                       uint64_t now_ns);

/* Checks a sample under load.  True: the board does not obey; the lock will be reset. */
bool clock_lock_sample(struct clock_lock *k, const char *uuid,
                       const struct gpu_sample *sample);

void clock_lock_view(const struct clock_lock *k, const struct clock_lock_now *now,
                     struct caps_clock_view *ret);
/* Continues the counters of an earlier lock. */
void clock_lock_count_on(struct clock_lock *k, const struct caps_clock_view *was);

#endif
