#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/rng.h"
#include "base/units.h"
#include "cli/sweep.h"
#include "plant/plant.h"

enum { KNOWN_MAX = 32 };

static int unknown_board(const char *name)
{
    const char *known[KNOWN_MAX + 1] = {NULL};
    char none[NEAREST_NONE];
    size_t n = 0;
    const struct plant_board *boards = plant_boards(&n);

    for (size_t i = 0; i < n && i < KNOWN_MAX; i++)
        known[i] = boards[i].key;
    return cli_fail(EXIT_USAGE, "sweep: --sim: %s", nearest_none_of(name, known, none));
}

static int unknown_workload(const struct plant_board *board, const char *name)
{
    const char *known[KNOWN_MAX + 1] = {NULL};
    char none[NEAREST_NONE], list[300] = "";
    size_t at = 0;

    for (size_t i = 0; i < KNOWN_MAX && plant_workload_at(board, i); i++)
        known[i] = plant_workload_at(board, i)->name;
    if (name)
        return cli_fail(EXIT_USAGE, "sweep: --workload: %s",
                        nearest_none_of(name, known, none));
    for (size_t i = 0; known[i] && at < sizeof list; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i ? ", " : "",
                               known[i]);
    return cli_fail(EXIT_USAGE, "sweep: --sim %s needs --workload: one of %s", board->key,
                    list);
}

struct simulated {
    const struct sweep_args *args;
    const struct plant_board *board;
    const struct plant_workload *work;
};

/* Without noise, repeated reference runs add nothing. */
static int plan_runs(const struct simulated *sim, const struct sweep_range *range,
                     uint32_t **ret, size_t *ret_n, uw_error *err)
{
    const struct sweep_args *a = sim->args;
    auto_(mem_free) uint32_t *caps = NULL;
    size_t n = 0;

    int r = sweep_grid(range, &caps, &n, err);
    if (r < 0)
        return r;
    if (a->noise > 0)
        return sweep_plan(
            caps, n, &(struct sweep_order){range->default_mw, (unsigned)a->runs, a->seed},
            ret, ret_n, err);
    uint32_t *plan = calloc(n * a->runs, sizeof *plan);
    if (!plan)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n * a->runs; i++)
        plan[i] = caps[i % n];
    *ret = plan;
    *ret_n = n * a->runs;
    return 0;
}

/* Runs one epoch after the other in virtual time: the closed form of the plant, with
 * noise if requested.
 */
static void play(const struct simulated *sim, const uint32_t *plan, size_t n,
                 struct sweep_run *runs)
{
    struct rng g;
    double now_s = 0;

    rng_init(&g, sim->args->seed ^ 0x6e6f697365ull);
    for (size_t i = 0; i < n; i++) {
        struct plant_steady s = plant_steady(sim->board, sim->work, plan[i]);
        double slow = 1 + sim->args->noise * rng_normal(&g);
        double more = 1 + sim->args->noise * rng_normal(&g);
        runs[i] = (struct sweep_run){
            .cap_mw = plan[i],
            .time_s = s.time_s * (slow > 0.01 ? slow : 0.01),
            .energy_j = s.energy_j * (more > 0.01 ? more : 0.01),
            .at_s = now_s,
        };
        now_s += runs[i].time_s;
    }
}

static int show(const struct simulated *sim, struct sweep_run *runs, size_t n)
{
    const struct plant_board *board = sim->board;
    char note[160], method[700];

    (void)snprintf(note, sizeof note, "%s, %s", board->name,
                   board->calibrated ? "calibrated" : "NOT calibrated");
    (void)snprintf(
        method, sizeof method,
        "Simulated in virtual time: one training epoch of %u steps (batch %u) at each "
        "cap, "
        "by a model of a GPU under a power cap (clock, voltage, memory-bound time), in "
        "steady state, without measuring error%s. %s",
        sim->work->steps, sim->work->batch,
        sim->args->noise > 0 ? " except for the random error of --noise" : "",
        board->calibrated
            ? "Its parameters are fitted to the sweeps published by Krzywaniak, Czarnul "
              "and Proficz (ICCS 2022, Tables 2 and 3)."
            : "It was not measured: its range is the maker's, its curves are typical "
              "ones.");
    const struct view v = {
        .simulated = true,
        .board = board->key,
        .board_note = note,
        .workload = sim->work->name,
        .label = sim->work->name,
        .work_unit = "one epoch",
        .least_mw = board->min_mw,
        .most_mw = board->max_mw,
        .boards = 1,
        .method = method,
    };
    return sweep_show(sim->args, board->default_mw, runs, n, sim->args->noise > 0, &v);
}

int sweep_simulated(const struct sweep_args *args)
{
    struct simulated sim = {.args = args, .board = plant_board_find(args->sim)};
    auto_(mem_free) uint32_t *plan = NULL;
    size_t n = 0;
    uw_error err;

    if (!sim.board)
        return unknown_board(args->sim);
    sim.work = args->workload ? plant_workload_find(sim.board, args->workload) : NULL;
    if (!sim.work)
        return unknown_workload(sim.board, args->workload);
    struct sweep_range range = {
        .min_mw = sim.board->min_mw,
        .max_mw = sim.board->max_mw,
        .default_mw = sim.board->default_mw,
        .from_mw = args->from.mw,
        .to_mw = args->to.mw,
        .step_mw = args->step.mw,
        .from_typed = args->from.text,
        .to_typed = args->to.text,
        .step_typed = args->step.text,
    };
    int r = plan_runs(&sim, &range, &plan, &n, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "sweep: %s", err.text);
    auto_(mem_free) struct sweep_run *runs = calloc(n + 1, sizeof *runs);
    if (!runs)
        return cli_fail(EXIT_FAIL, "sweep: out of memory");
    play(&sim, plan, n, runs);
    return show(&sim, runs, n);
}
