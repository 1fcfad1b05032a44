/* What a search holds against an oracle of the training loop (0.1 W grid over what the
 * search may use).
 */
#ifndef SIMULATION_VERDICT_H
#define SIMULATION_VERDICT_H

#include <math.h>

#include "core/optimum/goal.h"
#include "plant/plant.h"

/* What the oracle's cap gives, and what the held one does, in the goal's own measure. */
struct verdict {
    uint32_t held_mw, oracle_mw;
    double regret, slowdown;
};

static inline struct verdict judge(const char *board_key, const char *workload,
                                   const struct goal *goal, uint32_t held_mw)
{
    const struct plant_board *board = plant_board_find(board_key);
    const struct plant_workload *work = plant_workload_find(board, workload);
    struct plant_steady ref = plant_steady_step(board, work, board->default_mw);
    struct goal_ref gref = {ref.energy_j, ref.time_s, board->max_mw * 1e-3};
    struct plant_steady held = plant_steady_step(board, work, held_mw);
    struct verdict v = {.held_mw = held_mw};
    double best = INFINITY;

    for (uint32_t mw = board->min_mw; mw <= board->default_mw; mw += 100) {
        struct plant_steady at = plant_steady_step(board, work, mw);
        double value = goal_relative(goal, at.energy_j, at.time_s, &gref);
        if (value < best) {
            best = value;
            v.oracle_mw = mw;
        }
    }
    struct goal plain = *goal;
    if (goal->kind == GOAL_SLOWDOWN) /* told apart: broken bounds and regret */
        plain.kind = GOAL_ENERGY;
    v.regret = goal_relative(&plain, held.energy_j, held.time_s, &gref) / best - 1;
    v.slowdown = held.time_s / ref.time_s;
    return v;
}

#endif
