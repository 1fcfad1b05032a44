#include "core/cap/stop.h"

#include "base/units.h"

#define STOP_NS (30 * NS_PER_S)

static void end(struct cap_stop *stop, struct ramp *ramp, uint64_t now_ns)
{
    ramp_checked(ramp, now_ns);
    *stop = (struct cap_stop){0};
}

void cap_stop_step(struct cap_stop *stop, struct ramp *ramp, uint64_t claim, bool timed,
                   uint64_t now_ns)
{
    if (!ramp->waiting) {
        *stop = (struct cap_stop){0};
        return;
    }
    if (claim != stop->claim)
        stop->units = 0;
    stop->claim = claim;
    if (!stop->since_ns)
        stop->since_ns = now_ns;
    else if (timed && now_ns - stop->since_ns >= STOP_NS)
        end(stop, ramp, now_ns);
}

void cap_stop_units(struct cap_stop *stop, struct ramp *ramp, const struct claim_way *way,
                    unsigned units, uint64_t now_ns)
{
    unsigned most = way->own ? way->check_units : 0;

    if (!ramp->waiting)
        return;
    stop->units += units < most ? units : most;
    if (stop->units >= most)
        end(stop, ramp, now_ns);
}

uint64_t cap_stop_next_ns(const struct cap_stop *stop, bool timed)
{
    return timed && stop->since_ns ? stop->since_ns + STOP_NS : UINT64_MAX;
}
