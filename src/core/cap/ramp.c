#include "core/cap/ramp.h"

#include "base/units.h"

void ramp_init(struct ramp *r, uint32_t cap_mw, uint32_t grain_mw, uint64_t now_ns)
{
    *r = (struct ramp){
        .at_mw = cap_mw,
        .target_mw = cap_mw,
        .grain_mw = grain_mw ? grain_mw : 1,
        .at_ns = now_ns,
    };
}

void ramp_to(struct ramp *r, uint32_t target_mw, uint32_t first_mw, double rate_mw_s,
             bool urgent, uint64_t now_ns)
{
    r->target_mw = target_mw;
    r->first_mw = first_mw;
    r->rate_mw_s = urgent ? 0 : rate_mw_s;
    r->at_ns = now_ns;
    r->left_mw = 0;
    r->waiting = false;
    if (target_mw >= r->at_mw || urgent || rate_mw_s <= 0) {
        r->at_mw = target_mw;
    } else if (first_mw && r->at_mw > first_mw) {
        r->at_mw = target_mw > first_mw ? target_mw : first_mw;
        r->waiting = r->at_mw != target_mw;
    }
}

void ramp_checked(struct ramp *r, uint64_t now_ns)
{
    if (r->waiting)
        r->at_ns = now_ns;
    r->waiting = false;
}

uint32_t ramp_at(struct ramp *r, uint64_t now_ns)
{
    if (r->waiting || r->at_mw <= r->target_mw) {
        r->at_ns = now_ns;
        return r->at_mw;
    }
    double dt = s_between(r->at_ns, now_ns);
    r->at_ns = now_ns;
    if (dt <= 0)
        return r->at_mw;
    r->left_mw += r->rate_mw_s * dt;
    if (r->left_mw >= (double)(r->at_mw - r->target_mw)) {
        r->at_mw = r->target_mw;
        r->left_mw = 0;
        return r->at_mw;
    }
    uint32_t due = (uint32_t)r->left_mw / r->grain_mw * r->grain_mw;
    r->at_mw -= due;
    r->left_mw -= (double)due;
    return r->at_mw;
}

void ramp_follow(struct ramp *r, uint32_t target_mw, uint32_t first_mw, double rate_mw_s,
                 bool urgent, uint64_t now_ns)
{
    (void)ramp_at(r, now_ns);
    if (!ramp_arrived(r) && r->first_mw)
        first_mw = r->first_mw;
    double rate = urgent || rate_mw_s <= 0 ? 0 : rate_mw_s;
    bool first_known = first_mw && !r->first_mw && r->at_mw > first_mw;
    bool same_way = rate > 0 && rate == r->rate_mw_s && !first_known;

    if (target_mw == r->target_mw && (ramp_arrived(r) || same_way))
        return;
    struct ramp was = *r;
    ramp_to(r, target_mw, first_mw, rate, urgent, now_ns);
    if (r->at_mw == was.at_mw && !ramp_arrived(r)) {
        r->left_mw = was.left_mw;
        r->waiting = was.waiting;
    }
}

void ramp_bound(struct ramp *r, uint32_t most_mw)
{
    if (r->target_mw > most_mw)
        r->target_mw = most_mw;
    if (r->at_mw <= most_mw)
        return;
    r->at_mw = most_mw;
    r->left_mw = 0;
    r->waiting = r->waiting && !ramp_arrived(r);
}

uint64_t ramp_next_ns(const struct ramp *r)
{
    if (r->waiting || r->at_mw <= r->target_mw || r->rate_mw_s <= 0)
        return UINT64_MAX;
    uint32_t way_mw = r->at_mw - r->target_mw;
    double due = (double)(way_mw < r->grain_mw ? way_mw : r->grain_mw) - r->left_mw;

    /* One us later than due, so that rounding does not make it too early. */
    return r->at_ns + (due > 0 ? ns_of_s(due / r->rate_mw_s) : 0) + NS_PER_US;
}

bool ramp_arrived(const struct ramp *r)
{
    return r->at_mw == r->target_mw;
}
