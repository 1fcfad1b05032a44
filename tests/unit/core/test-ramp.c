#include "core/cap/ramp.h"

#include "base/rng.h"
#include "tap.h"

#define S(x) ((uint64_t)((x)*1e9))
#define W(x) ((uint32_t)(x)*1000u)

static void table(void)
{
    struct ramp r;

    ramp_init(&r, W(300), 1000, S(0));
    ok(ramp_at(&r, S(10)) == W(300) && ramp_arrived(&r), "nothing to do, nothing done");

    ramp_to(&r, W(200), W(270), 1500, false, S(10));
    ok(r.at_mw == W(270), "the first step goes to the first cap at once");
    ok(ramp_at(&r, S(100)) == W(270),
       "… and stays there until the job is seen to progress");
    ramp_checked(&r, S(100));
    ok(ramp_at(&r, S(102)) == W(267), "then 1.5 W a second");
    ok(ramp_at(&r, S(102.5)) == W(267), "in whole grains");
    ok(ramp_at(&r, S(103)) == W(266), "that lose nothing on the way");
    ok(ramp_at(&r, S(1000)) == W(200) && ramp_arrived(&r),
       "down to the target, not past it");

    ramp_to(&r, W(180), W(270), 1500, false, S(1000));
    ok(r.at_mw == W(200) && ramp_at(&r, S(1002)) == W(197),
       "below the first cap: no stay");
    ramp_to(&r, W(250), W(270), 1500, false, S(1002));
    ok(r.at_mw == W(250) && ramp_arrived(&r), "up at once");
    ramp_to(&r, W(160), W(270), 1500, true, S(1002));
    ok(r.at_mw == W(160), "a hard claim at once");
    ramp_init(&r, W(300), 1000, S(0));
    ramp_to(&r, W(280), W(270), 1500, false, S(0));
    ok(r.at_mw == W(280) && ramp_arrived(&r), "a target above the first cap at once");
    ramp_to(&r, W(200), 0, 1500, false, S(0));
    ramp_bound(&r, W(260));
    ok(r.at_mw == W(260) && r.target_mw == W(200), "a bound on the way: at once");
    ramp_bound(&r, W(270));
    ok(r.at_mw == W(260), "… and never up");
    ramp_bound(&r, W(190));
    ok(r.at_mw == W(190) && ramp_arrived(&r), "… nor back to a target above it");
    ramp_init(&r, W(300), 1000, S(0));
    ramp_to(&r, W(150) + 7, 0, 1500, false, S(0));
    ok(ramp_at(&r, S(500)) == W(150) + 7, "the target is kept to the milliwatt");
}

static void property(void)
{
    struct rng g;
    bool monotone = true, rate = true, inside = true;

    rng_init(&g, 7);
    for (int i = 0; i < 2000; i++) {
        uint32_t from = W(100 + rng_below(&g, 300)), to = W(100 + rng_below(&g, 300));
        uint32_t first = W(100 + rng_below(&g, 300));
        double mw_s = 100 + 5000 * rng_uniform(&g);
        struct ramp r;
        ramp_init(&r, from, 1000, 0);
        ramp_to(&r, to, first, mw_s, false, 0);
        ramp_checked(&r, 0);
        uint32_t start = r.at_mw, last = start;
        uint64_t now = 0;
        for (int k = 0; k < 50; k++) {
            now += rng_below(&g, S(3));
            uint32_t at = ramp_at(&r, now);
            monotone &= to >= from ? at == to : at <= last;
            inside &= at >= (to < from ? to : from);
            rate &= at == to || (double)(start - at) <= mw_s * (double)now * 1e-9 + 1e-6;
            last = at;
        }
    }
    ok(monotone, "never the wrong way");
    ok(inside, "never past the target");
    ok(rate, "never faster than the ramp");
}

int main(void)
{
    table();
    property();
    return done();
}
