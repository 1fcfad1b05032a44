#include "capplay.h"

#define CLASS_RATE 0.005 /* a second, of the original, if the step has no ramp */

void cap_play_init(struct cap_play *p, uint32_t original_mw, uint32_t grain_mw,
                   uint64_t now_ns)
{
    *p = (struct cap_play){.original_mw = original_mw, .in_force_mw = original_mw};
    ramp_init(&p->ramp, original_mw, grain_mw, now_ns);
}

void cap_play_state(struct cap_play *p, uint32_t mw, const struct claim_way *way,
                    uint64_t now_ns)
{
    double rate = way->own ? way->rate_mw_s : CLASS_RATE * p->original_mw;

    p->claim++;
    p->way = *way;
    ramp_follow(&p->ramp, mw < p->original_mw ? mw : p->original_mw, way->first_mw, rate,
                false, now_ns);
}

void cap_play_drop(struct cap_play *p, uint64_t now_ns)
{
    p->claim = 0;
    ramp_to(&p->ramp, p->original_mw, 0, 0, false, now_ns);
}

void cap_play_progressed(struct cap_play *p, unsigned units, uint64_t now_ns)
{
    if (p->in_force_mw == p->ramp.at_mw)
        cap_stop_units(&p->stop, &p->ramp, &p->way, units, now_ns);
}

uint64_t cap_play_step(struct cap_play *p, uint64_t now_ns)
{
    p->in_force_mw = ramp_at(&p->ramp, now_ns);
    cap_stop_step(&p->stop, &p->ramp, p->claim, false, now_ns);
    return ramp_next_ns(&p->ramp);
}

void cap_play_told(const struct cap_play *p, struct claim_told *ret)
{
    bool there = ramp_arrived(&p->ramp) && p->in_force_mw == p->ramp.at_mw;

    *ret = (struct claim_told){
        .progress = there ? CLAIM_MET : CLAIM_COMING,
        .claimed = p->claim != 0,
        .walking = !ramp_arrived(&p->ramp),
        .stops = p->ramp.waiting,
        .at_mw = p->ramp.at_mw,
        .answers = true,
        .in_force_mw = p->in_force_mw,
        .without_mw = UINT32_MAX,
        .rules_mw = UINT32_MAX,
        .original_mw = p->original_mw,
        .original_known = true,
    };
}
