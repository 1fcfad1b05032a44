/* A board whose clocks mean what they say: voltage over clock, and what caps and locked
 * SM clocks make of power and speed.  Steady state, closed form, uncalibrated.
 *
 *     V(x)   = max(vmin, 1 - s (1 - x))     relative voltage at clock x
 *     P_i(x) = ps_w + mem_w + d_w x V(x)^2  power while part i of a step runs
 *     t_i(x) = tc_s / x + tm_s              its clock-bound and its other time
 *
 * With s = 1.25 dynamic power goes with x^3.5 near the top, as a V100's matmul does (1530
 * MHz at 276 W, 1315 MHz at 196 W); under (1 - vmin) / s it is linear.  The calibrated
 * workloads (plant/workload.h) reproduce time and energy over the cap, and not this.
 *
 * A step's parts are kernels.  A power controller answers within some 50 ms: parts that
 * alternate faster than that get one clock, that at which their mean power meets the cap;
 * slower ones get each its own.  A lock holds for all of them.
 */
#ifndef PLANT_VF_H
#define PLANT_VF_H

#include <stdbool.h>
#include <stdint.h>

#include "plant/workload.h"

enum { PLANT_VF_PARTS = 4 };

struct plant_vf_part {
    double d_w;   /* dynamic power at the highest clock */
    double mem_w; /* of memory and links: the SM clock does not change it */
    double tc_s, tm_s;
};

struct plant_vf {
    double ps_w, gap_s, gap_w; /* static power; host work between steps */
    double s, vmin, eta;       /* eta: of the cap that the controller holds */
    uint32_t sm_min_mhz, sm_max_mhz, sm_step_mhz;
    struct plant_vf_part part[PLANT_VF_PARTS];
    unsigned n_parts;
    bool slow; /* the controller tells the parts apart */
};

/* Relative dynamic power at clock x. */
double plant_vf_dynamic(const struct plant_vf *vf, double x);
/* The i-th clock that the driver supports, from the highest; 0 after the lowest. */
uint32_t plant_vf_clock_at(const struct plant_vf *vf, unsigned i);
/* One step under a cap (0: none) and a lock (0: none).  x is the mean clock of the parts
 * by their time.  A cap that the lowest clock does not meet is not obeyed.
 */
struct plant_steady plant_vf_step(const struct plant_vf *vf, double cap_w,
                                  uint32_t lock_mhz);

#endif
