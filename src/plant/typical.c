#include "plant/table.h"

/* Uncalibrated.  Times are a V100's, split evenly into clock-bound and memory-bound
 * compute, divided by a speed-up; full power is a share of the board's maximum limit;
 * with this voltage curve power is about cubic in the clock near the top, as for a V100's
 * matmul (1530 MHz at 276 W, 1315 MHz at 196 W).
 */
#define NETWORK(key, name, batch, steps, gap, compute, share, speed, max_w) \
    {                                                                       \
        key, name, batch, steps, (gap) / (speed), (compute)*0.55 / (speed), \
            (compute)*0.45 / (speed), (max_w)*0.78 * (share), (max_w)*0.25, \
            (max_w)*0.22, 1.0, 0.6, 0.99                                    \
    }
#define BOARD(key, speed, max_w)                                               \
    NETWORK(key, "alexnet", 128, 782, 19.0, 20.8, 0.90, speed, max_w),         \
        NETWORK(key, "vgg19", 128, 782, 65.7, 426.4, 1.00, speed, max_w),      \
        NETWORK(key, "inception3", 128, 782, 57.4, 327.2, 0.98, speed, max_w), \
        NETWORK(key, "inception4", 64, 1563, 93.4, 754.1, 1.00, speed, max_w), \
        NETWORK(key, "resnet50", 128, 782, 41.6, 224.9, 0.97, speed, max_w),   \
        NETWORK(key, "resnet152", 64, 1563, 78.5, 603.1, 1.00, speed, max_w)

const struct plant_workload plant_typical[PLANT_TYPICAL] = {
    BOARD("a100", 2.2, 400.0),
    BOARD("h100", 4.0, 700.0),
    BOARD("b200", 7.0, 1000.0),
};
