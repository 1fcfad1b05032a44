#include "vfboards.h"

const struct vfboard vfboards[VFBOARDS] = {
    {"a40", 100, 300, 210, 1740},
    {"a100", 100, 400, 210, 1410},
    {"h100", 200, 700, 345, 1980},
};

static double between(struct rng *rng, double a, double b)
{
    return a + (b - a) * rng_uniform(rng);
}

struct plant_vf vfboard_made_up(size_t board, bool slow, struct rng *rng)
{
    double max_w = vfboards[board].max_w;
    double memory = between(rng, 0.1, 0.6); /* share of time outside compute kernels */
    double bound = between(rng, 0.6, 0.95); /* the part of it that no clock speeds up */
    double gap = between(rng, 0, 0.1);
    struct plant_vf v = {
        .ps_w = max_w * between(rng, 0.15, 0.25),
        .gap_s = gap,
        .s = between(rng, 0.9, 1.4),
        .vmin = between(rng, 0.6, 0.75),
        .eta = 0.99,
        .sm_min_mhz = vfboards[board].min_mhz,
        .sm_max_mhz = vfboards[board].max_mhz,
        .sm_step_mhz = 15,
        .n_parts = 2,
        .slow = slow,
    };

    v.gap_w = v.ps_w * 1.2;
    v.part[0] = (struct plant_vf_part){.d_w = max_w * between(rng, 0.5, 0.85),
                                       .mem_w = max_w * 0.03,
                                       .tc_s = 0.95 * (1 - memory),
                                       .tm_s = 0.05 * (1 - memory)};
    v.part[1] = (struct plant_vf_part){.d_w = max_w * between(rng, 0.15, 0.4),
                                       .mem_w = max_w * between(rng, 0.05, 0.15),
                                       .tc_s = (1 - bound) * memory,
                                       .tm_s = bound * memory};
    return v;
}
