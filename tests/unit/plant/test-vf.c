/* The plant whose clocks mean what they say. */
#include "virtual/vf.h"

#include <math.h>

#include "tap.h"

static const struct plant_vf matmul = {
    .ps_w = 80,
    .s = 1.25,
    .vmin = 0.7,
    .eta = 1,
    .sm_min_mhz = 135,
    .sm_max_mhz = 1530,
    .sm_step_mhz = 15,
    .part = {{.d_w = 196, .tc_s = 1}},
    .n_parts = 1,
};

static void test_matmul(void)
{
    struct plant_steady free = plant_vf_step(&matmul, 0, 0);
    struct plant_steady capped = plant_vf_step(&matmul, 196, 0);
    struct plant_steady locked = plant_vf_step(&matmul, 0, 1315);

    is_near(free.power_w, 276, 1e-9, "a V100's matmul at 1530 MHz");
    is_near(locked.power_w, 196, 3, "… locked to 1315 MHz");
    is_near(1530 * capped.x, 1315, 8, "… and its clock under 196 W");
    is_near(locked.time_s / free.time_s, 1530 / 1315.0, 1e-9, "time goes with the clock");
    double slope = log(plant_vf_dynamic(&matmul, 1) / plant_vf_dynamic(&matmul, 0.98)) /
                   log(1 / 0.98);
    is_near(slope, 3.5, 0.05, "dynamic power goes with x^3.5 near the top");
    is_near(plant_vf_dynamic(&matmul, 0.4) / plant_vf_dynamic(&matmul, 0.2), 2, 1e-9,
            "and is linear at the lowest voltage");
}

static void test_clocks(void)
{
    unsigned n = 0;

    is_int((int)plant_vf_clock_at(&matmul, 0), 1530, "the highest clock first");
    while (plant_vf_clock_at(&matmul, n))
        n++;
    is_int((int)n, 94, "every 15 MHz");
    is_int((int)plant_vf_clock_at(&matmul, n - 1), 135, "down to the lowest");
    struct plant_steady top = plant_vf_step(&matmul, 0, 0);
    struct plant_steady over = plant_vf_step(&matmul, 0, 2000);
    is_near(over.time_s, top.time_s, 1e-12, "a lock above the highest clock is none");
    struct plant_steady low = plant_vf_step(&matmul, 20, 0);
    is_near(low.x, 135.0 / 1530, 1e-6,
            "a cap under the lowest clock's power is not kept");
    ok(low.power_w > 20, "… %g W", low.power_w);
}

/* Compute at high power, then memory-bound work at low power. */
static void test_parts(void)
{
    struct plant_vf v = matmul;

    v.part[1] = (struct plant_vf_part){.d_w = 60, .mem_w = 20, .tm_s = 1};
    v.n_parts = 2;
    struct plant_steady top = plant_vf_step(&v, 0, 0);
    struct plant_steady fast = plant_vf_step(&v, 200, 0);
    v.slow = true;
    struct plant_steady slow = plant_vf_step(&v, 200, 0);
    is_near(fast.power_w, 200, 1e-6, "fast parts: their mean meets the cap");
    ok(slow.time_s > fast.time_s, "slow ones: the hungry part alone is held down");
    is_near(1 - (1530 - 15) / 1530.0, 1 - plant_vf_step(&v, 0, 1515).x, 1e-9,
            "a lock holds for all of them");

    /* Equal time: the lock saves in the part that a cap does not reach. */
    unsigned i = 0;
    while (plant_vf_step(&v, 0, plant_vf_clock_at(&v, i)).time_s < slow.time_s)
        i++;
    struct plant_steady locked = plant_vf_step(&v, 0, plant_vf_clock_at(&v, i - 1));
    ok(locked.time_s <= slow.time_s && locked.energy_j < slow.energy_j,
       "memory-bound work at low power: %g J capped, %g J locked, no slower",
       slow.energy_j, locked.energy_j);
    v.slow = false;
    struct plant_steady same = plant_vf_step(&v, locked.power_w, 0);
    is_near(same.energy_j / locked.energy_j, 1, 1e-6,
            "where the controller sees the mean, cap and lock are one");
    v.gap_s = 1;
    v.gap_w = 50;
    struct plant_steady gap = plant_vf_step(&v, 0, 0);
    is_near(gap.energy_j, top.energy_j + 50, 1e-9, "gaps cost what they cost");
    is_near(gap.power_w, gap.energy_j / gap.time_s, 1e-9, "power is the mean");
}

int main(void)
{
    test_matmul();
    test_clocks();
    test_parts();
    return done();
}
