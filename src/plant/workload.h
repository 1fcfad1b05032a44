/* What training costs on a board, and the steady state under a cap.
 *
 * A step is a gap (host work, input stalls) at gap_w, then compute:
 *
 *     V(x)    = max(vmin, 1 - s (1 - x))          relative voltage at clock x
 *     P(x)    = ps_w + d_w x V(x)^2               power while it computes
 *     x(cap)  = the highest x in [xmin, 1] with P(x) <= eta cap
 *     t(x)    = tc_s / x + tm_s                   clock-bound and memory-bound work
 *
 * Times below are of one epoch of `steps` steps; gap_s is spread evenly over
 * them.  For the RTX 6000 and the V100 the nine numbers are fitted to the
 * published sweeps (Krzywaniak, Czarnul, Proficz, "GPU power capping for
 * energy-performance trade-offs in training of deep convolutional neural networks
 * for image recognition", ICCS 2022, Tables 2 and 3) by bench/fit-plant.  Nine
 * numbers are not identified by six to ten figures: time and energy over the cap
 * are calibrated, clocks are not.  On the other boards x is the SM clock relative to the
 * highest: locks and what they cost are as believable as the voltage curve.
 */
#ifndef PLANT_WORKLOAD_H
#define PLANT_WORKLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "plant/board.h"

struct plant_workload {
    const char *board; /* key of its board */
    const char *name;  /* "resnet50" */
    uint32_t batch;
    uint32_t steps; /* of an epoch */
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
    double x;        /* relative clock while it computes */
    double active_w; /* power while it computes */
    double active_s; /* time of it */
};

/* One epoch, no start-up; the same in every epoch of a job (see plant_job for
 * what a job adds: start-up, validation, loading, checkpoints).  cap_mw outside
 * the board's limits is taken as it is.
 */
struct plant_steady plant_steady(const struct plant_board *board,
                                 const struct plant_workload *work, uint32_t cap_mw);
/* One step of its training loop. */
struct plant_steady plant_steady_step(const struct plant_board *board,
                                      const struct plant_workload *work, uint32_t cap_mw);

/* Power while computing at relative clock x, and the clock it computes at when
 * at most limit_w are allowed (never under board->xmin, even if that breaks the
 * limit: a cap below a board's floor is not obeyed).
 */
double plant_active_w(const struct plant_workload *work, double x);
double plant_clock_at(const struct plant_board *board, const struct plant_workload *work,
                      double limit_w);
/* The clock at which dynamic power is this share of d_w. */
double plant_share_clock(const struct plant_workload *work, double xmin, double share);

#endif
