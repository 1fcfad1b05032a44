/* Cost of training on a board, and the steady state under a cap.
 *
 * A step is a gap (host work, input stalls) at gap_w, then compute:
 *
 *     V(x)    = max(vmin, 1 - s (1 - x))          relative voltage at clock x
 *     P(x)    = ps_w + d_w x V(x)^2               power while it computes
 *     x(cap)  = the highest x in [xmin, 1] with P(x) <= eta cap
 *     t(x)    = tc_s / x + tm_s                   clock-bound and memory-bound work
 *
 * Times are of one epoch of `steps` steps; gap_s is spread evenly over the steps.  For
 * the RTX 6000 and the V100 the nine numbers are fitted by bench/fit-plant to published
 * sweeps (Krzywaniak, Czarnul, Proficz, "GPU power capping for energy-performance
 * trade-offs in training of deep convolutional neural networks for image recognition",
 * ICCS 2022, Tables 2 and 3).  Six to ten figures do not identify nine numbers: time and
 * energy over the cap are calibrated, clocks are not.  On the other boards x is the SM
 * clock relative to the highest; the effect of locks is as accurate as the voltage curve.
 */
#ifndef PLANT_WORKLOAD_H
#define PLANT_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "plant/board.h"

struct plant_workload {
    const char *board; /* key of the board */
    const char *name;  /* "resnet50" */
    uint32_t batch;
    uint32_t steps; /* per epoch */
    double gap_s, tc_s, tm_s;
    double d_w, gap_w, ps_w;
    double s, vmin, eta;
};

/* "alexnet", "vgg19", "inception3", "inception4", "resnet50", "resnet152" on any
 * board of the catalogue; NULL: no such workload.
 */
const struct plant_workload *plant_workload_find(const struct plant_board *board,
                                                 const char *name);
/* The i-th workload of a board; NULL after the last. */
const struct plant_workload *plant_workload_at(const struct plant_board *board, size_t i);

/* Steady state of one step, of one epoch, or of any piece of work. */
struct plant_steady {
    double time_s;
    double energy_j;
    double power_w;  /* mean: energy_j / time_s */
    double x;        /* relative clock during compute */
    double active_w; /* power during compute */
    double active_s; /* duration of compute */
};

/* One epoch without start-up, validation, loading and checkpoints, which plant_job adds.
 * cap_mw may be outside the board's limits.
 */
struct plant_steady plant_steady(const struct plant_board *board,
                                 const struct plant_workload *work, uint32_t cap_mw);
/* One step of the training loop. */
struct plant_steady plant_steady_step(const struct plant_board *board,
                                      const struct plant_workload *work, uint32_t cap_mw);

/* Power during compute at relative clock x; and the clock under limit_w (never below
 * board->xmin, even if that exceeds the limit: a board does not obey a cap below its
 * floor).
 */
double plant_active_w(const struct plant_workload *work, double x);
/* Dynamic power at relative clock x as a share of d_w: x V(x)^2. */
static inline double plant_share(const struct plant_workload *work, double x)
{
    double v = 1 - work->s * (1 - x);

    v = v > work->vmin ? v : work->vmin;
    return x * v * v;
}
double plant_clock_at(const struct plant_board *board, const struct plant_workload *work,
                      double limit_w);
/* The clock at which dynamic power is this share of d_w. */
double plant_share_clock(const struct plant_workload *work, double xmin, double share);

#endif
