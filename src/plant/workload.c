#include "plant/workload.h"

#include <math.h>
#include <string.h>

#include "plant/table.h"

static const struct plant_workload *table_at(size_t i)
{
    if (i < PLANT_FITTED)
        return &plant_fitted[i];
    return i < PLANT_FITTED + PLANT_TYPICAL ? &plant_typical[i - PLANT_FITTED] : NULL;
}

const struct plant_workload *plant_workload_at(const struct plant_board *board, size_t i)
{
    const struct plant_workload *w;

    for (size_t k = 0; (w = table_at(k)); k++)
        if (strcmp(w->board, board->key) == 0 && i-- == 0)
            return w;
    return NULL;
}

const struct plant_workload *plant_workload_find(const struct plant_board *board,
                                                 const char *name)
{
    const struct plant_workload *w;

    for (size_t i = 0; (w = plant_workload_at(board, i)); i++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

double plant_active_w(const struct plant_workload *work, double x)
{
    return work->ps_w + work->d_w * plant_share(work, x);
}

double plant_share_clock(const struct plant_workload *work, double xmin, double share)
{
    if (share >= 1)
        return 1;
    if (plant_share(work, xmin) >= share)
        return xmin;
    /* below the knee, where V is vmin, power is linear in the clock */
    double flat_v2 = work->vmin * work->vmin;
    if (share * work->s <= (work->s - (1 - work->vmin)) * flat_v2)
        return share / flat_v2;
    /* above it x V(x)^2 is increasing and convex: Halley's method converges from 1, with
     * an error about the cube of its last step
     */
    double x = 1, step = 1;
    for (int i = 0; i < 40 && step > 1e-5; i++) {
        double v = 1 - work->s * (1 - x), off = x * v * v - share;
        double slope = v * (v + 2 * x * work->s);
        double bend = work->s * (2 * v + x * work->s);
        step = off * slope / (slope * slope - off * bend);
        x -= step;
    }
    return x;
}

double plant_clock_at(const struct plant_board *board, const struct plant_workload *work,
                      double limit_w)
{
    return plant_share_clock(work, board->xmin, (limit_w - work->ps_w) / work->d_w);
}

struct plant_steady plant_steady(const struct plant_board *board,
                                 const struct plant_workload *work, uint32_t cap_mw)
{
    struct plant_steady r = {0};

    r.x = plant_clock_at(board, work, work->eta * cap_mw * 1e-3);
    r.active_w = plant_active_w(work, r.x);
    r.active_s = work->tc_s / r.x + work->tm_s;
    r.time_s = work->gap_s + r.active_s;
    r.energy_j = work->gap_s * work->gap_w + r.active_s * r.active_w;
    r.power_w = r.energy_j / r.time_s;
    return r;
}

struct plant_steady plant_steady_step(const struct plant_board *board,
                                      const struct plant_workload *work, uint32_t cap_mw)
{
    struct plant_steady r = plant_steady(board, work, cap_mw);

    r.time_s /= work->steps;
    r.energy_j /= work->steps;
    r.active_s /= work->steps;
    return r;
}
