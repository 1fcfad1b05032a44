/* A board with realistic clocks: voltage over clock, and the effect of caps and locked SM
 * clocks on power and speed.  Steady state, closed form, uncalibrated.
 *
 *     V(x)   = max(vmin, 1 - s (1 - x))     relative voltage at clock x
 *     P_i(x) = ps_w + mem_w + d_w x V(x)^2  power while part i of a step runs
 *     t_i(x) = tc_s / x + tm_s              its clock-bound time and other time
 *
 * With s = 1.25 dynamic power is proportional to x^3.5 near the top, as for a V100's
 * matmul (1530 MHz at 276 W, 1315 MHz at 196 W); where V is vmin it is linear.  The
 * calibrated workloads (plant/workload.h) reproduce time and energy over the cap, but not
 * this.
 *
 * A step's parts are kernels.  A power controller responds within about 50 ms: parts that
 * alternate faster get one clock, at which their mean power meets the cap; slower parts
 * get a clock each.  A lock holds for all parts.
 */
#ifndef VIRTUAL_VF_H
#define VIRTUAL_VF_H

#include <stdbool.h>
#include <stdint.h>

#include "plant/workload.h"

enum { PLANT_VF_PARTS = 4 };

struct plant_vf_part {
    double d_w;   /* dynamic power at the highest clock */
    double mem_w; /* power of memory and links, independent of the SM clock */
    double tc_s, tm_s;
};

struct plant_vf {
    double ps_w, gap_s, gap_w; /* static power; host work between steps */
    double s, vmin, eta;       /* eta: share of the cap that the controller keeps */
    uint32_t sm_min_mhz, sm_max_mhz, sm_step_mhz;
    struct plant_vf_part part[PLANT_VF_PARTS];
    unsigned n_parts;
    bool slow; /* the controller sets a clock for each part */
};

/* Relative dynamic power at clock x. */
double plant_vf_dynamic(const struct plant_vf *vf, double x);
/* The i-th supported clock, from the highest; 0 after the lowest. */
uint32_t plant_vf_clock_at(const struct plant_vf *vf, unsigned i);
/* One step under a cap (0: none) and a lock (0: none). x is the mean clock of the parts,
 * weighted by time.  A cap that the lowest clock exceeds is exceeded.
 */
struct plant_steady plant_vf_step(const struct plant_vf *vf, double cap_w,
                                  uint32_t lock_mhz);

#endif
