#include "caps/other-writers.h"

#include "base/units.h"

enum { REASSERT_DOUBLINGS = 6 }; /* up to 64 times the first wait */

static uint64_t reassert_ns(const struct caps_conf *conf)
{
    return conf->reassert_ns ? conf->reassert_ns : 10 * NS_PER_S;
}

static uint64_t yield_ns(const struct caps_conf *conf)
{
    return conf->yield_ns ? conf->yield_ns : 600 * NS_PER_S;
}

enum caps_cause other_writers_bound(const struct other_writers *o)
{
    return o->reasons & (GPU_REASON_SW_THERMAL | GPU_REASON_HW_THERMAL)
               ? CAPS_CAUSE_THERMAL
               : CAPS_CAUSE_BOARD;
}

enum caps_cause other_writers_cause(const struct other_writers *o,
                                    const struct other_change *change)
{
    enum {
        HELD_DOWN = GPU_REASON_HW_SLOWDOWN | GPU_REASON_SW_THERMAL |
                    GPU_REASON_HW_THERMAL | GPU_REASON_HW_POWER_BRAKE
    };
    const struct gpu_info *info = change->info;

    if (change->why == ACTUATOR_WHY_RELOADED || o->reloaded)
        return CAPS_CAUSE_DRIVER;
    if (info->has_persistence && !info->persistence && change->mw == change->default_mw)
        return CAPS_CAUSE_PERSISTENCE;
    /* If the driver reports only the enforced limit, heat may have lowered it. */
    if (!o->told && (o->reasons & HELD_DOWN) && change->mw < change->asked_mw)
        return other_writers_bound(o);
    return CAPS_CAUSE_OTHER;
}

/* Persistence mode is a guess: if the default limit returns soon after the cap is set
 * again, another program sets it.
 */
static bool is_forgotten(struct other_writers *o, const struct caps_conf *conf,
                         enum caps_cause cause, uint64_t now_ns)
{
    if (cause != CAPS_CAUSE_PERSISTENCE)
        return cause == CAPS_CAUSE_DRIVER;
    bool again = o->forgot_ns && now_ns - o->forgot_ns < yield_ns(conf);
    o->forgot_ns = now_ns;
    return !again;
}

uint64_t other_writers_wait_ns(struct other_writers *o, const struct caps_conf *conf,
                               enum caps_cause cause, uint64_t now_ns)
{
    if (is_forgotten(o, conf, cause, now_ns))
        return 0;
    if (conf->others != CAPS_REASSERT)
        return yield_ns(conf);
    if (o->held_ns && now_ns - o->held_ns > reassert_ns(conf) << REASSERT_DOUBLINGS)
        o->reasserts = 0; /* held undisturbed for long: starts counting again */
    uint64_t wait_ns = reassert_ns(conf) << o->reasserts;
    o->reasserts += o->reasserts < REASSERT_DOUBLINGS;
    return wait_ns;
}

void other_writers_sample(struct other_writers *o, const struct gpu_sample *sample)
{
    o->told = sample->has & GPU_HAS_REQUESTED;
    if (sample->has & GPU_HAS_REASONS)
        o->reasons = sample->reasons;
    if (sample->has & GPU_HAS_ENERGY) {
        o->reloaded = o->reloaded || sample->energy_mj < o->energy_mj;
        o->energy_mj = sample->energy_mj;
    }
}
