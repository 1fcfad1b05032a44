#include "spread.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"

enum { BISECTIONS = 40, WARM_S = 600, SETTLE_S = 20, WINDOW_S = 20, WINDOW_STEPS = 20 };
#define SPIN 0.3 /* of dynamic power, when a board waits */
#define SPREAD 0.10

const char *const spread_names[SPREAD_KINDS] = {
    "power 10 %, even", "power 10 %, one board", "speed 10 %, even"};

struct spread {
    const struct plant_board *board;
    const struct plant_workload *work;
    uint32_t start_mw;
    double power[SPREAD_BOARDS];
    struct plant_gpu *gpu[SPREAD_BOARDS];
    struct plant_job *job;
    uint64_t now_ns;
};

/* Steady-state step of a board with this power factor under a cap. */
static double step_s(const struct spread *s, double power, double cap_w)
{
    double x = plant_clock_at(s->board, s->work, cap_w / power);
    return (s->work->gap_s + s->work->tc_s / x + s->work->tm_s) / s->work->steps;
}

static double factor(const struct spread *s, enum spread_kind kind, size_t i)
{
    double at = (double)i / (SPREAD_BOARDS - 1), start_w = w_of_mw(s->start_mw);
    double low = 0.5, high = 2;

    if (kind == SPREAD_POWER_EVEN)
        return 1 - SPREAD / 2 + SPREAD * at;
    if (kind == SPREAD_POWER_ONE)
        return i == SPREAD_BOARDS - 1 ? 1 + SPREAD : 1;
    double want = step_s(s, 1, start_w) * (1 - SPREAD / 2 + SPREAD * at);
    for (int k = 0; k < BISECTIONS; k++) {
        double mid = (low + high) / 2;
        if (step_s(s, mid, start_w) > want)
            high = mid;
        else
            low = mid;
    }
    return high;
}

int spread_new(const struct spread_opts *opts, struct spread **ret, uw_error *err)
{
    auto_(spread_free) struct spread *s = calloc(1, sizeof *s);

    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    s->board = plant_board_find(opts->board);
    s->work = s->board ? plant_workload_find(s->board, opts->workload) : NULL;
    if (!s->work)
        return fail(err, -EINVAL, "no %s on %s", opts->workload, opts->board);
    s->start_mw = opts->start_mw;
    for (size_t i = 0; i < SPREAD_BOARDS; i++) {
        s->power[i] = factor(s, opts->kind, i);
        struct plant_gpu_opts gpu = {.board = s->board,
                                     .seed = i + 1,
                                     .trait = {.power = s->power[i], .spin = SPIN}};
        int r = plant_gpu_new(&gpu, &s->gpu[i], err);
        if (r < 0)
            return r;
        plant_gpu_set_cap(s->gpu[i], s->start_mw);
    }
    struct plant_job_opts job = {.gpus = s->gpu,
                                 .n_gpus = SPREAD_BOARDS,
                                 .workload = opts->workload,
                                 .epochs = 1000000};
    int r = plant_job_new(&job, &s->job, err);
    if (r < 0)
        return r;
    s->now_ns = WARM_S * NS_PER_S;
    plant_job_advance(s->job, s->now_ns);
    *ret = take(s);
    return 0;
}

void spread_free(struct spread *s)
{
    if (!s)
        return;
    plant_job_free(s->job);
    for (size_t i = 0; i < SPREAD_BOARDS; i++)
        plant_gpu_free(s->gpu[i]);
    free(s);
}

static double run(void *of, const uint32_t *cap_mw, double *ret_energy_j)
{
    struct spread *s = of;
    struct plant_job_state before, after;
    double energy_j[SPREAD_BOARDS];

    for (size_t i = 0; i < SPREAD_BOARDS; i++)
        plant_gpu_set_cap(s->gpu[i], cap_mw[i]);
    s->now_ns += SETTLE_S * NS_PER_S;
    plant_job_advance(s->job, s->now_ns);
    double window_s = fmax(WINDOW_S, WINDOW_STEPS * plant_gpu_own_step_s(s->gpu[0]));
    plant_job_state(s->job, &before);
    for (size_t i = 0; i < SPREAD_BOARDS; i++)
        energy_j[i] = plant_gpu_energy_j(s->gpu[i]);
    s->now_ns += ns_of_s(window_s);
    plant_job_advance(s->job, s->now_ns);
    plant_job_state(s->job, &after);
    double steps = after.exact_steps - before.exact_steps;
    for (size_t i = 0; i < SPREAD_BOARDS; i++)
        ret_energy_j[i] = (plant_gpu_energy_j(s->gpu[i]) - energy_j[i]) / steps;
    return window_s / steps;
}

void spread_world(struct spread *s, struct slack_world *ret)
{
    *ret = (struct slack_world){.n = SPREAD_BOARDS, .run = run, .of = s};
    for (size_t i = 0; i < SPREAD_BOARDS; i++) {
        ret->least_mw[i] = s->board->min_mw;
        ret->most_mw[i] = s->board->max_mw;
    }
}

double spread_best_time(struct spread *s, uint64_t budget_mw)
{
    double start_w = w_of_mw(s->start_mw), slowest = 0, low = 0;

    for (size_t i = 0; i < SPREAD_BOARDS; i++)
        slowest = fmax(slowest, step_s(s, s->power[i], start_w));
    double high = slowest;
    for (int k = 0; k < BISECTIONS; k++) {
        double want = (low + high) / 2, sum_w = 0;
        for (size_t i = 0; i < SPREAD_BOARDS; i++) {
            double least = w_of_mw(s->board->min_mw), most = w_of_mw(s->board->max_mw);
            if (step_s(s, s->power[i], most) > want)
                sum_w = INFINITY;
            for (int j = 0; j < BISECTIONS; j++) {
                double mid = (least + most) / 2;
                if (step_s(s, s->power[i], mid) > want)
                    least = mid;
                else
                    most = mid;
            }
            sum_w += most;
        }
        if (sum_w > (double)budget_mw * 1e-3)
            low = want;
        else
            high = want;
    }
    return high / slowest;
}
