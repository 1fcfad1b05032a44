#include "core/cap/clock.h"

void clock_decide(const struct claims *claims, const struct clock_bounds *bounds,
                  struct clock_verdict *ret)
{
    const struct cap_bounds same = {.original_mw = bounds->max_mhz,
                                    .min_mw = bounds->min_mhz,
                                    .floor_mw = bounds->floor_mhz};
    struct claims clocks; /* 9 KB: only the entries in use are set */
    struct cap_verdict v;

    clocks.n = 0;
    for (size_t i = 0; i < claims->n; i++) {
        if (!claims->claim[i].mhz)
            continue;
        struct claim *c = &clocks.claim[clocks.n++];
        *c = claims->claim[i];
        c->mw = c->mhz;
        c->mhz = 0;
    }
    cap_decide(&clocks, &same, &v);
    *ret = (struct clock_verdict){.target_mhz = v.target_mw,
                                  .by = v.by,
                                  .claim = v.claim,
                                  .most_mhz = v.most_mw,
                                  .at_once_mhz = v.at_once_mw,
                                  .at_once = v.at_once,
                                  .way = v.way};
}

uint32_t clock_walk(struct ramp *ramp, const struct clock_verdict *verdict,
                    const struct cap_class *cls, uint32_t max_mhz, uint64_t now_ns)
{
    const struct cap_verdict v = {.target_mw = verdict->target_mhz,
                                  .by = verdict->by,
                                  .claim = verdict->claim,
                                  .most_mw = verdict->most_mhz,
                                  .at_once_mw = verdict->at_once_mhz,
                                  .at_once = verdict->at_once,
                                  .way = verdict->way};

    return cap_walk(ramp, &v, cls, max_mhz, max_mhz, now_ns);
}

bool clock_is_obeyed(uint32_t locked_mhz, uint32_t seen_mhz)
{
    enum { SNAP_MHZ = 30 };
    uint32_t more_mhz = locked_mhz / 50 > SNAP_MHZ ? locked_mhz / 50 : SNAP_MHZ;

    return seen_mhz <= locked_mhz + more_mhz;
}
