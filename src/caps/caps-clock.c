/* One board's SM clock: from its claims to the lock, and whether the board obeys.
 *
 * A lock is written by the actuator alone, which journals it before and resets it
 * whenever the hold ends, however it ends (docs/actuator.md).
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "caps/caps-inside.h"

enum {
    GRAIN_MHZ = 15,
    BUSY_PERCENT = 50, /* of the SMs' time: under load */
    SEEN_BAD = 3,      /* samples in a row that show a clock above the lock */
};

#define SETTLE_NS (2 * NS_PER_S) /* after a lock the board has come down */
#define BELOW_NS (2 * NS_PER_S)  /* until less than what was refused is asked for */

static uint64_t now_of(const struct caps_board *b)
{
    return loop_now_ns(b->caps->loop);
}

static bool is_on(const struct caps_board *b)
{
    return b->clock.can && b->caps->conf.clocks;
}

static void begin_walk(struct caps_board *b, uint32_t at_mhz)
{
    ramp_init(&b->clock.ramp, at_mhz, GRAIN_MHZ, now_of(b));
    b->clock.stay_ns = 0;
}

void caps_clock_init(struct caps_board *b)
{
    struct caps_clock *k = &b->clock;
    const struct gpu_info *info = b->info;

    k->can = (info->abilities & GPU_CAN_LOCK_CLOCKS) && info->clock_min_mhz &&
             info->clock_min_mhz < info->clock_max_mhz;
    k->bounds = (struct clock_bounds){.max_mhz = info->clock_max_mhz,
                                      .min_mhz = info->clock_min_mhz};
    clock_decide(&b->claims, &k->bounds, &k->verdict);
    begin_walk(b, k->bounds.max_mhz);
}

bool caps_clock_wanted(const struct caps_board *b)
{
    return is_on(b) && !b->clock.given_up &&
           b->clock.verdict.target_mhz < b->clock.bounds.max_mhz;
}

/* Out of the range of root's configuration, which we do not know. */
static bool is_refused(const struct caps_clock *k)
{
    return k->failed && k->failed_with == ACTUATOR_REFUSED;
}

static void follow(struct caps_board *b, uint64_t now)
{
    struct caps_clock *k = &b->clock;

    if (k->given_up || !is_on(b)) { /* what is not asked for is not walked */
        begin_walk(b, k->locked_mhz ? k->locked_mhz : k->bounds.max_mhz);
        return;
    }
    /* Nothing is walked that is not written; but where nothing is locked and more is
     * refused, it is the way down that comes to what may be.
     */
    if (k->failed && (k->locked_mhz || !is_refused(k)))
        k->ramp.at_ns = now;
    (void)clock_walk(&k->ramp, &k->verdict, caps_class(b), k->bounds.max_mhz, now);
    if (!k->ramp.waiting) {
        k->stay_ns = 0;
    } else if (!k->stay_ns) {
        k->stay_ns = now;
    } else if (!b->counted && now - k->stay_ns >= STAY_NS) {
        ramp_checked(&k->ramp, now);
        k->stay_ns = 0;
    }
}

void caps_clock_decide(struct caps_board *b, uint64_t now)
{
    struct caps_clock *k = &b->clock;

    if (!k->can)
        return;
    k->bounds.floor_mhz =
        (uint32_t)lround(caps_class(b)->floor * (double)k->bounds.max_mhz);
    clock_decide(&b->claims, &k->bounds, &k->verdict);
    if (b->link == LINK_HELD)
        follow(b, now);
}

/* Steps count once the lock is there: those before were done without it.  Where none may
 * be there is nothing to wait for.
 */
void caps_clock_progress(struct caps_board *b)
{
    struct caps_clock *k = &b->clock;

    if (k->ramp.waiting &&
        (k->locked_mhz == k->ramp.at_mw || (is_refused(k) && !k->locked_mhz)))
        ramp_checked(&k->ramp, now_of(b));
}

/* What the actuator is to have locked now; 0: nothing. */
static uint32_t want_mhz(const struct caps_board *b)
{
    uint32_t at_mhz = b->clock.ramp.at_mw;

    return caps_clock_wanted(b) && !b->clock.too_low && at_mhz < b->clock.bounds.max_mhz
               ? at_mhz
               : 0;
}

static bool is_gradual(const struct caps_board *b)
{
    const struct caps_clock *k = &b->clock;

    return !ramp_arrived(&k->ramp) && k->ramp.at_mw != k->verdict.at_once_mhz &&
           k->asked_mhz;
}

/* There is a lock to ask for, or one to give back. */
static bool is_used(const struct caps_clock *k)
{
    return k->can || k->asked_mhz || k->locked_mhz;
}

/* Whether what has failed waits for its next try; a reset waits for none but its own. */
static bool waits(const struct caps_board *b, uint32_t mhz, uint64_t now)
{
    const struct caps_clock *k = &b->clock;

    if (!k->failed || now >= k->retry_ns || (!mhz && k->asked_mhz))
        return false;
    bool below = is_refused(k) && !k->locked_mhz && mhz < k->asked_mhz;
    return !below || (!ramp_arrived(&k->ramp) && now < k->asked_ns + BELOW_NS);
}

void caps_clock_step(struct caps_board *b, uint64_t now)
{
    struct caps_clock *k = &b->clock;
    uint32_t mhz = want_mhz(b);

    if (!is_used(k) || k->asking || waits(b, mhz, now) ||
        (mhz == k->asked_mhz && !k->failed) ||
        (is_gradual(b) && now < k->asked_ns + TICK_NS))
        return;
    int r = actuator_set_clocks(b->caps->act, b->info->uuid, mhz ? k->bounds.min_mhz : 0,
                                mhz, caps_on_clocks, b);
    k->failed = r < 0;
    if (r < 0) {
        k->retry_ns = now + (r == -EAGAIN ? 20 * NS_PER_MS : NS_PER_S);
        return;
    }
    k->asking = true;
    k->asked_mhz = mhz;
    k->asked_ns = now;
}

/* What is due by now was looked at already: another look at once would be no better. */
static uint64_t sooner(uint64_t next_ns, uint64_t at_ns, uint64_t now)
{
    return at_ns > now && at_ns < next_ns ? at_ns : next_ns;
}

uint64_t caps_clock_next_ns(const struct caps_board *b, uint64_t now)
{
    const struct caps_clock *k = &b->clock;
    uint64_t next = CLAIM_FOREVER;

    if (!is_used(k) || b->link != LINK_HELD || k->asking)
        return next;
    uint64_t lower = ramp_next_ns(&k->ramp);
    if (lower != UINT64_MAX)
        next = lower > now + TICK_NS ? lower : now + TICK_NS;
    if (want_mhz(b) != k->asked_mhz && !k->failed)
        next = sooner(next, k->asked_ns + TICK_NS, now);
    if (k->failed)
        next = sooner(next, k->retry_ns, now);
    if (k->stay_ns && !b->counted)
        next = sooner(next, k->stay_ns + STAY_NS, now);
    return next;
}

void caps_clock_hurry(struct caps_board *b)
{
    b->clock.retry_ns = 0;
    b->clock.attempts = 0;
    b->clock.given_up = false;
    b->clock.too_low = false;
    b->clock.text[0] = '\0';
}

/* ---- what became of it ---- */

static void tell(struct caps_board *b, enum caps_event event, const char *text)
{
    const struct caps_what what = {
        .event = event,
        .board = b->at,
        .at_ns = now_of(b),
        .claim = claims_find(&b->claims, b->clock.verdict.claim),
        .target_mw = b->verdict.target_mw,
        .enforced_mw = b->enforced_mw,
        .clock_mhz = b->clock.locked_mhz,
        .text = text,
    };

    b->caps->on_event(&what, b->caps->user);
}

/* The lock of ours that is there, by the actuator's word. */
static void set_locked(struct caps_board *b, uint32_t mhz)
{
    struct caps_clock *k = &b->clock;
    k->locked_mhz = mhz;
    k->bad = 0;
    k->settled_ns = now_of(b);
    /* Steps of a ramp are not told one by one, but where it waits for the job. */
    if (mhz != k->told_mhz && (!mhz || k->ramp.waiting || ramp_arrived(&k->ramp))) {
        k->told_mhz = mhz;
        tell(b, CAPS_EVENT_CLOCK, "");
    }
}

void caps_clock_held(struct caps_board *b, uint32_t locked_mhz)
{
    struct caps_clock *k = &b->clock;

    k->failed = k->too_low = false;
    k->asked_mhz = locked_mhz;
    set_locked(b, locked_mhz);
    begin_walk(b, locked_mhz ? locked_mhz : k->bounds.max_mhz);
}

void caps_clock_told(struct caps_board *b, uint32_t locked_mhz)
{
    if (b->clock.asking || locked_mhz == b->clock.locked_mhz)
        return;
    b->clock.asked_mhz = locked_mhz; /* a driver that was loaded anew has forgotten it */
    set_locked(b, locked_mhz);
}

void caps_clock_unlinked(struct caps_board *b, bool reset)
{
    b->clock.failed = b->clock.too_low = false;
    b->clock.asked_mhz = 0;
    b->clock.stay_ns = 0;
    b->clock.locked_mhz = 0;
    if (reset)
        set_locked(b, 0);
}

static void fail_clock(struct caps_board *b, const struct actuator_reply *reply)
{
    struct caps_clock *k = &b->clock;
    bool never = reply->result == ACTUATOR_REFUSED || reply->result == ACTUATOR_DENIED;
    uint64_t ns = (never ? DENIED_NS : NS_PER_S / 2)
                  << (k->attempts < 6 ? k->attempts : 6);

    k->attempts++;
    k->failures++;
    k->failed = true;
    k->retry_ns = now_of(b) + (ns < DENIED_MOST_NS ? ns : DENIED_MOST_NS);
    (void)snprintf(k->text, sizeof k->text, "%s", reply->text);
    if (k->failed_with != reply->result)
        tell(b, CAPS_EVENT_FAIL, k->text);
    k->failed_with = reply->result;
    k->too_low = reply->result == ACTUATOR_REFUSED && k->asked_mhz > k->locked_mhz &&
                 k->locked_mhz;
}

static void on_done(struct caps_board *b, const struct actuator_reply *reply)
{
    struct caps_clock *k = &b->clock;

    k->writes++;
    set_locked(b, reply->locked_mhz);
    if (k->too_low) { /* what was refused is so still, until its next try */
        k->too_low = false;
        return;
    }
    k->failed = false;
    k->failed_with = ACTUATOR_DONE;
    k->attempts = 0;
    if (!k->given_up)
        k->text[0] = '\0';
}

int caps_on_clocks(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct caps_board *b = user;

    if (act != b->caps->act || !b->clock.asking)
        return 0;
    b->clock.asking = false;
    if (b->link != LINK_HELD)
        return 0; /* it has been let go since, and the lock with it */
    switch (reply->result) {
    case ACTUATOR_BUSY:
        b->clock.asked_mhz = b->clock.locked_mhz;
        break;
    case ACTUATOR_DONE:
        on_done(b, reply);
        break;
    case ACTUATOR_YIELDED:
        caps_on_yield(b, reply);
        break;
    case ACTUATOR_GONE:
        caps_on_lost(b, reply, false);
        break;
    default:
        fail_clock(b, reply);
        break;
    }
    caps_step(b);
    caps_check_end(b->caps);
    return 0;
}

/* ---- does it obey? ---- */

/* A lock that is not obeyed helps nobody: it is given back, and not tried again until the
 * claims on the clock change.
 */
static void give_up(struct caps_board *b, uint32_t seen_mhz)
{
    struct caps_clock *k = &b->clock;

    k->given_up = true;
    k->disobeyed++;
    (void)snprintf(k->text, sizeof k->text,
                   "%s: locked to at most %" PRIu32 " MHz, but runs at %" PRIu32
                   " MHz under load: the lock is given back",
                   b->info->uuid, k->locked_mhz, seen_mhz);
    tell(b, CAPS_EVENT_FAIL, k->text);
    caps_step(b);
}

void caps_clock_sample(struct caps_board *b, const struct gpu_sample *sample)
{
    struct caps_clock *k = &b->clock;

    if (!(sample->has & GPU_HAS_CLOCKS) || !(sample->has & GPU_HAS_UTIL) ||
        sample->util_gpu < BUSY_PERCENT)
        return;
    k->seen_mhz = sample->sm_mhz;
    k->seen_ns = sample->at_ns;
    if (!k->locked_mhz || k->asking || k->given_up ||
        sample->began_ns < k->settled_ns + SETTLE_NS)
        return;
    k->bad = clock_is_obeyed(k->locked_mhz, sample->sm_mhz) ? 0 : k->bad + 1;
    if (k->bad >= SEEN_BAD)
        give_up(b, sample->sm_mhz);
}

void caps_clock_look(const struct caps_board *b, struct caps_clock_view *ret)
{
    const struct caps_clock *k = &b->clock;
    bool walks = b->link == LINK_HELD;

    *ret = (struct caps_clock_view){.can = k->can,
                                    .on = is_on(b),
                                    .bounds = k->bounds,
                                    .verdict = k->verdict,
                                    .locked_mhz = k->locked_mhz,
                                    .seen_mhz = k->seen_mhz,
                                    .seen_ns = k->seen_ns,
                                    .ramping = walks && !ramp_arrived(&k->ramp),
                                    .failed = k->failed || k->given_up,
                                    .given_up = k->given_up,
                                    .writes = k->writes,
                                    .failures = k->failures,
                                    .disobeyed = k->disobeyed};
    memcpy(ret->text, k->text, sizeof ret->text);
}

void caps_clock_count_on(struct caps_board *b, const struct caps_clock_view *was)
{
    b->clock.writes = was->writes;
    b->clock.failures = was->failures;
    b->clock.disobeyed = was->disobeyed;
}
