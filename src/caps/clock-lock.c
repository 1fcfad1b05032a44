#include "caps/clock-lock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "caps/times.h"

enum {
    GRAIN_MHZ = 15,
    BUSY_PERCENT = 50, /* of the SMs' time: the board is under load */
    SEEN_BAD = 3,      /* samples in a row with a clock above the lock */
};

#define SETTLE_NS (2 * NS_PER_S) /* time that the board has to follow a lock */
#define SEEN_NS \
    (10 * NS_PER_S) /* greatest age of a seen clock from which a ramp begins */
#define BELOW_NS (2 * NS_PER_S) /* delay before less than a refused lock is requested */

static void begin_walk(struct clock_lock *k, uint32_t at_mhz, uint64_t now_ns)
{
    ramp_init(&k->ramp, at_mhz, GRAIN_MHZ, now_ns);
    k->stop = (struct cap_stop){0};
}

void clock_lock_init(struct clock_lock *k, const struct gpu_info *info,
                     const struct claims *claims, uint64_t now_ns)
{
    k->can = (info->abilities & GPU_CAN_LOCK_CLOCKS) && info->clock_min_mhz &&
             info->clock_min_mhz < info->clock_max_mhz;
    k->bounds = (struct clock_bounds){.max_mhz = info->clock_max_mhz,
                                      .min_mhz = info->clock_min_mhz};
    clock_decide(claims, &k->bounds, &k->verdict);
    begin_walk(k, k->bounds.max_mhz, now_ns);
}

bool clock_lock_is_wanted(const struct clock_lock *k, bool on)
{
    return k->can && on && !k->given_up && k->verdict.target_mhz < k->bounds.max_mhz;
}

/* The lock is outside root's range for clocks, which the daemon does not know. */
static bool is_refused(const struct clock_lock *k)
{
    return k->failed && k->failed_with == ACTUATOR_REFUSED;
}

/* Whether a stop at the first step ends by time. */
static bool is_timed(const struct clock_lock *k, const struct clock_lock_now *now)
{
    return !k->verdict.way.own && !now->counted;
}

/* A claim with its own ramp starts from the clock that was seen under load: a higher
 * lock has no effect.
 */
static void begin_at_seen(struct clock_lock *k, uint64_t now_ns)
{
    const struct clock_verdict *v = &k->verdict;
    bool begins = !k->asked_mhz && k->ramp.at_mw == k->bounds.max_mhz && !v->at_once &&
                  v->target_mhz < k->bounds.max_mhz;
    bool seen =
        k->seen_mhz && k->seen_mhz < k->bounds.max_mhz && now_ns <= k->seen_ns + SEEN_NS;

    if (begins && seen && v->way.own)
        begin_walk(k, k->seen_mhz > v->target_mhz ? k->seen_mhz : v->target_mhz, now_ns);
}

static void follow(struct clock_lock *k, const struct clock_lock_now *now)
{
    if (k->given_up || !k->can || !now->on) { /* without a request there is no ramp */
        begin_walk(k, k->locked_mhz ? k->locked_mhz : k->bounds.max_mhz, now->at_ns);
        return;
    }
    /* The ramp stops while nothing can be written.  If nothing is locked and the
     * actuator refuses a high lock, the ramp continues until it reaches a permitted
     * lock.
     */
    if (k->failed && (k->locked_mhz || !is_refused(k)))
        k->ramp.at_ns = now->at_ns;
    begin_at_seen(k, now->at_ns);
    (void)clock_walk(&k->ramp, &k->verdict, now->cls, k->bounds.max_mhz, now->at_ns);
    cap_stop_step(&k->stop, &k->ramp, k->verdict.claim, is_timed(k, now), now->at_ns);
}

void clock_lock_decide(struct clock_lock *k, const struct claims *claims,
                       const struct clock_lock_now *now)
{
    if (!k->can)
        return;
    k->bounds.floor_mhz = (uint32_t)lround(now->cls->floor * (double)k->bounds.max_mhz);
    clock_decide(claims, &k->bounds, &k->verdict);
    if (now->held)
        follow(k, now);
}

/* Steps count only once the lock is set: earlier ones ran without it.  For a refused
 * lock there is nothing to wait for.
 */
void clock_lock_progress(struct clock_lock *k, uint64_t claim, unsigned units,
                         uint64_t now_ns)
{
    if (claim != (k->verdict.way.own ? k->verdict.claim : 0))
        return;
    if (k->ramp.waiting &&
        (k->locked_mhz == k->ramp.at_mw || (is_refused(k) && !k->locked_mhz)))
        cap_stop_units(&k->stop, &k->ramp, &k->verdict.way, units, now_ns);
}

/* The lock that should be requested now; 0: none. */
static uint32_t want_mhz(const struct clock_lock *k, bool on)
{
    uint32_t at_mhz = k->ramp.at_mw;

    return clock_lock_is_wanted(k, on) && !k->too_low && at_mhz < k->bounds.max_mhz
               ? at_mhz
               : 0;
}

static bool is_gradual(const struct clock_lock *k)
{
    return !ramp_arrived(&k->ramp) && k->ramp.at_mw != k->verdict.at_once_mhz &&
           k->asked_mhz;
}

/* Whether there is a lock to request or to reset. */
static bool is_used(const struct clock_lock *k)
{
    return k->can || k->asked_mhz || k->locked_mhz;
}

/* Whether a failed request waits for its retry.  A reset waits only for its own. */
static bool waits(const struct clock_lock *k, uint32_t mhz, uint64_t now_ns)
{
    if (!k->failed || now_ns >= k->retry_ns || (!mhz && k->asked_mhz))
        return false;
    bool below = is_refused(k) && !k->locked_mhz && mhz < k->asked_mhz;
    return !below || (!ramp_arrived(&k->ramp) && now_ns < k->asked_ns + BELOW_NS);
}

bool clock_lock_is_due(const struct clock_lock *k, const struct clock_lock_now *now,
                       uint32_t *ret_mhz)
{
    uint32_t mhz = want_mhz(k, now->on);

    if (!is_used(k) || k->asking || waits(k, mhz, now->at_ns) ||
        (mhz == k->asked_mhz && !k->failed) ||
        (is_gradual(k) && now->at_ns < k->asked_ns + CAPS_TICK_NS))
        return false;
    *ret_mhz = mhz;
    return true;
}

void clock_lock_asked(struct clock_lock *k, uint32_t mhz, int r, uint64_t now_ns)
{
    k->failed = r < 0;
    if (r < 0) {
        k->retry_ns = now_ns + (r == -EAGAIN ? 20 * NS_PER_MS : NS_PER_S);
        return;
    }
    k->asking = true;
    k->asked_mhz = mhz;
    k->asked_ns = now_ns;
}

/* Past times do not count: their step has been made. */
static uint64_t sooner(uint64_t next_ns, uint64_t at_ns, uint64_t now_ns)
{
    return at_ns > now_ns && at_ns < next_ns ? at_ns : next_ns;
}

uint64_t clock_lock_next_ns(const struct clock_lock *k, const struct clock_lock_now *now)
{
    uint64_t next = CLAIM_FOREVER, at_ns = now->at_ns;

    if (!is_used(k) || !now->held || k->asking)
        return next;
    uint64_t lower = ramp_next_ns(&k->ramp);
    if (lower != UINT64_MAX)
        next = lower > at_ns + CAPS_TICK_NS ? lower : at_ns + CAPS_TICK_NS;
    if (want_mhz(k, now->on) != k->asked_mhz && !k->failed)
        next = sooner(next, k->asked_ns + CAPS_TICK_NS, at_ns);
    if (k->failed)
        next = sooner(next, k->retry_ns, at_ns);
    return sooner(next, cap_stop_next_ns(&k->stop, is_timed(k, now)), at_ns);
}

void clock_lock_hurry(struct clock_lock *k)
{
    k->retry_ns = 0;
    k->attempts = 0;
    k->given_up = false;
    k->too_low = false;
    k->text[0] = '\0';
}

/* ---- the actuator's answers ---- */

/* Reports a ramp only if it waits for the job, and at its end. */
static bool set_locked(struct clock_lock *k, uint32_t mhz, uint64_t now_ns)
{
    k->locked_mhz = mhz;
    k->bad = 0;
    k->settled_ns = now_ns;
    if (mhz == k->told_mhz || (mhz && !k->ramp.waiting && !ramp_arrived(&k->ramp)))
        return false;
    k->told_mhz = mhz;
    return true;
}

bool clock_lock_held(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns)
{
    k->failed = k->too_low = false;
    k->asked_mhz = locked_mhz;
    bool news = set_locked(k, locked_mhz, now_ns);
    begin_walk(k, locked_mhz ? locked_mhz : k->bounds.max_mhz, now_ns);
    return news;
}

bool clock_lock_told(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns)
{
    if (k->asking || locked_mhz == k->locked_mhz)
        return false;
    k->asked_mhz = locked_mhz; /* a reloaded driver has lost the lock */
    return set_locked(k, locked_mhz, now_ns);
}

bool clock_lock_unlinked(struct clock_lock *k, bool reset, uint64_t now_ns)
{
    k->failed = k->too_low = false;
    k->asked_mhz = 0;
    k->stop = (struct cap_stop){0};
    k->locked_mhz = 0;
    return reset && set_locked(k, 0, now_ns);
}

bool clock_lock_failed(struct clock_lock *k, const struct actuator_reply *reply,
                       uint64_t now_ns)
{
    bool never = reply->result == ACTUATOR_REFUSED || reply->result == ACTUATOR_DENIED;
    bool news = k->failed_with != reply->result;
    uint64_t ns = (never ? CAPS_DENIED_NS : NS_PER_S / 2)
                  << (k->attempts < 6 ? k->attempts : 6);

    k->attempts++;
    k->failures++;
    k->failed = true;
    k->retry_ns = now_ns + (ns < CAPS_DENIED_MOST_NS ? ns : CAPS_DENIED_MOST_NS);
    (void)snprintf(k->text, sizeof k->text, "%s", reply->text);
    k->failed_with = reply->result;
    k->too_low = reply->result == ACTUATOR_REFUSED && k->asked_mhz > k->locked_mhz &&
                 k->locked_mhz;
    return news;
}

bool clock_lock_done(struct clock_lock *k, uint32_t locked_mhz, uint64_t now_ns)
{
    k->writes++;
    bool news = set_locked(k, locked_mhz, now_ns);
    if (k->too_low) { /* the refused lock waits for its retry */
        k->too_low = false;
        return news;
    }
    k->failed = false;
    k->failed_with = ACTUATOR_DONE;
    k->attempts = 0;
    if (!k->given_up)
        k->text[0] = '\0';
    return news;
}

/* ---- whether the board follows the lock ---- */

bool clock_lock_sample(struct clock_lock *k, const char *uuid,
                       const struct gpu_sample *sample)
{
    if (!(sample->has & GPU_HAS_CLOCKS) || !(sample->has & GPU_HAS_UTIL) ||
        sample->util_gpu < BUSY_PERCENT)
        return false;
    k->seen_mhz = sample->sm_mhz;
    k->seen_ns = sample->at_ns;
    if (!k->locked_mhz || k->asking || k->given_up ||
        sample->began_ns < k->settled_ns + SETTLE_NS)
        return false;
    k->bad = clock_is_obeyed(k->locked_mhz, sample->sm_mhz) ? 0 : k->bad + 1;
    if (k->bad < SEEN_BAD)
        return false;
    /* It is not tried again until the claims on the clock change. */
    k->given_up = true;
    k->disobeyed++;
    (void)snprintf(k->text, sizeof k->text,
                   "%s: locked to at most %" PRIu32 " MHz, but runs at %" PRIu32
                   " MHz under load: the lock is reset",
                   uuid, k->locked_mhz, sample->sm_mhz);
    return true;
}

void clock_lock_view(const struct clock_lock *k, const struct clock_lock_now *now,
                     struct caps_clock_view *ret)
{
    *ret = (struct caps_clock_view){.can = k->can,
                                    .on = k->can && now->on,
                                    .bounds = k->bounds,
                                    .verdict = k->verdict,
                                    .locked_mhz = k->locked_mhz,
                                    .seen_mhz = k->seen_mhz,
                                    .seen_ns = k->seen_ns,
                                    .ramping = now->held && !ramp_arrived(&k->ramp),
                                    .waiting = now->held && k->ramp.waiting,
                                    .failed = k->failed || k->given_up,
                                    .given_up = k->given_up,
                                    .writes = k->writes,
                                    .failures = k->failures,
                                    .disobeyed = k->disobeyed};
    memcpy(ret->text, k->text, sizeof ret->text);
}

void clock_lock_count_on(struct clock_lock *k, const struct caps_clock_view *was)
{
    k->writes = was->writes;
    k->failures = was->failures;
    k->disobeyed = was->disobeyed;
}
