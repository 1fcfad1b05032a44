/* Jobs under schedules of caps, clock locks, air and changes of their steps at random,
 * played twice: from event to event, and in steps of a millisecond.  What both hold must
 * be equal but for the rounding of sums (REST); what sums over the steps give, but for a
 * switch of power within a step (STEP_W, STEP_C).
 *
 * Usage: test-stepped [SEED [SCHEDULES]]
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/units.h"
#include "plant/plant.h"
#include "tap.h"

enum { BOARDS = 4, CHANGES = 40, STEP_NS = 1000000 };
#define START (1000 * NS_PER_S)
#define REST 1e-9   /* relative: energy, steps, heat of both ways */
#define SOME_J 2000 /* 10 s of a board: of less, one switch is much */
#define STEP_W 5e-3 /* relative: energy, against the sum of the power in each step */
#define STEP_C 0.02 /* K: heat, against Euler's method */

struct node {
    struct plant_gpu *gpu[BOARDS];
    struct plant_job *job;
    double air_c[BOARDS];
    double sum_j[BOARDS], sum_c[BOARDS], sum_steps; /* over the steps */
};

struct worst {
    double joules, steps, heat, sum_w, sum_c, sum_steps;
    unsigned long readings;
};

static bool open_node(struct node *n, const char *board, bool coarse, uint64_t seed)
{
    struct plant_job_opts o = {
        .gpus = n->gpu, .n_gpus = BOARDS, .workload = "resnet50", .epochs = 1000};

    *n = (struct node){0};
    for (unsigned i = 0; i < BOARDS; i++) {
        struct plant_gpu_opts g = {.board = plant_board_find(board),
                                   .seed = seed + i,
                                   .start_ns = START,
                                   .noise_sd = seed % 3 == 0 ? 0.01 : 0,
                                   .coarse = coarse,
                                   .trait = {.work = 1 + 0.05 * i, .spin = i % 2 * 0.3}};
        if (plant_gpu_new(&g, &n->gpu[i], NULL) < 0)
            return false;
        n->sum_c[i] = plant_gpu_temp_c(n->gpu[i]);
        n->air_c[i] = g.board->ambient_c;
    }
    return plant_job_new(&o, &n->job, NULL) == 0;
}

static void close_node(struct node *n)
{
    plant_job_free(n->job);
    for (unsigned i = 0; i < BOARDS; i++)
        plant_gpu_free(n->gpu[i]);
}

/* The same change of both, from the same random numbers. */
static void change(struct node *n, struct rng g)
{
    size_t i = rng_below(&g, BOARDS);
    struct plant_gpu *one = n->gpu[i];
    const struct plant_board *b = plant_gpu_board(one);

    switch (rng_below(&g, 8)) {
    case 0:
        plant_gpu_lock_clocks(one, b->sm_min_mhz,
                              b->sm_min_mhz +
                                  (uint32_t)rng_below(&g, b->sm_max_mhz - b->sm_min_mhz));
        break;
    case 1:
        plant_gpu_lock_clocks(one, 0, 0);
        break;
    case 2:
        n->air_c[i] = 20 + 20 * rng_uniform(&g);
        plant_gpu_set_ambient(one, n->air_c[i]);
        break;
    case 3:
        plant_job_scale(n->job, 0.5 + rng_uniform(&g), 0.5 + 0.5 * rng_uniform(&g));
        break;
    default:
        for (i = 0; i < BOARDS; i++)
            if (rng_below(&g, 3))
                plant_gpu_set_cap(n->gpu[i], b->min_mw + (uint32_t)rng_below(
                                                             &g, b->max_mw - b->min_mw));
    }
}

/* To to_ns in steps; each counts with the power, the pace and the heat of its middle. */
static void step_to(struct node *n, uint64_t to_ns)
{
    uint64_t now = plant_gpu_now_ns(n->gpu[0]);

    while (now < to_ns) {
        uint64_t end = now + STEP_NS < to_ns ? now + STEP_NS : to_ns;
        double s = s_between(now, end);
        plant_job_advance(n->job, now + (end - now) / 2);
        for (unsigned i = 0; i < BOARDS; i++) {
            const struct plant_board *b = plant_gpu_board(n->gpu[i]);
            double target = n->air_c[i] + b->resistance_kpw * plant_gpu_mean_w(n->gpu[i]);
            n->sum_j[i] += plant_gpu_power_w(n->gpu[i]) * s;
            n->sum_c[i] += (target - n->sum_c[i]) / b->tau_s * s;
        }
        n->sum_steps += plant_gpu_rate(n->gpu[0]) * s;
        plant_job_advance(n->job, end);
        now = end;
    }
}

/* Relative, to `least` where that is more. */
static void keep(double *worst, double got, double want, double least)
{
    *worst = fmax(*worst, fabs(got - want) / fmax(fabs(want), least));
}

static bool same_reading(struct plant_gpu *a, struct plant_gpu *b)
{
    struct plant_reading ra, rb;

    plant_gpu_read(a, &ra);
    plant_gpu_read(b, &rb);
    return memcmp(&ra, &rb, sizeof ra) == 0;
}

static void compare(struct node *jump, struct node *step, struct worst *w)
{
    struct plant_job_state s;

    for (unsigned i = 0; i < BOARDS; i++) {
        struct plant_gpu *a = jump->gpu[i], *b = step->gpu[i];
        keep(&w->joules, plant_gpu_energy_j(a), plant_gpu_energy_j(b), 1);
        keep(&w->steps, plant_gpu_steps(a), plant_gpu_steps(b), 1);
        keep(&w->heat, plant_gpu_temp_c(a), plant_gpu_temp_c(b), 1);
        keep(&w->sum_w, plant_gpu_energy_j(a), step->sum_j[i], SOME_J);
        w->sum_c = fmax(w->sum_c, fabs(plant_gpu_temp_c(a) - step->sum_c[i]));
        w->readings += !same_reading(a, b);
    }
    plant_job_state(jump->job, &s);
    keep(&w->sum_steps, s.exact_steps, step->sum_steps, 1);
}

static bool play(const char *board, bool coarse, uint64_t seed, struct worst *w)
{
    struct node jump, step;
    struct rng g;
    uint64_t now = START;
    bool opened =
        open_node(&jump, board, coarse, seed) && open_node(&step, board, coarse, seed);

    rng_init(&g, seed);
    for (int k = 0; opened && k < CHANGES; k++) {
        struct rng of_change;
        now += ns_of_s(rng_below(&g, 3) ? 0.3 * rng_uniform(&g) : 6 * rng_uniform(&g));
        plant_job_advance(jump.job, now);
        step_to(&step, now);
        compare(&jump, &step, w);
        rng_init(&of_change, rng_u64(&g));
        change(&jump, of_change);
        change(&step, of_change);
    }
    close_node(&jump);
    close_node(&step);
    return opened;
}

static void schedules(const char *board, bool coarse, uint64_t seed, uint64_t n)
{
    const char *how = coarse ? "coarse" : "fine";
    struct worst w = {0};
    bool played = true;

    for (uint64_t k = 0; k < n; k++)
        played = play(board, coarse, seed + k, &w) && played;
    ok(played, "%s, %s: %ju schedules", board, how, (uintmax_t)n);
    printf("# both ways differ by %.1g of energy, %.1g of steps, %.1g of heat; sums by "
           "%.1g, %.1g, %.1g K\n",
           w.joules, w.steps, w.heat, w.sum_w, w.sum_steps, w.sum_c);
    ok(w.joules < REST && w.steps < REST && w.heat < REST && w.readings == 0,
       "the same joules, steps, heat and readings");
    ok(w.sum_w < STEP_W && w.sum_steps < STEP_W && w.sum_c < STEP_C,
       "and those that the steps sum to");
}

/* Caps of all boards at one time, in either order, looked at in between or not. */
static void at_once(void)
{
    struct node n[2];
    struct rng g;
    double worst = 0, looked = 0;
    uint64_t now = START;
    bool opened =
        open_node(&n[0], "v100", false, 1) && open_node(&n[1], "v100", false, 1);

    rng_init(&g, 1);
    for (int k = 0; opened && k < CHANGES; k++) {
        uint32_t mw[BOARDS];
        now += NS_PER_S + rng_below(&g, 10 * NS_PER_S);
        for (size_t i = 0; i < BOARDS; i++)
            mw[i] = 150000 + (uint32_t)rng_below(&g, 150000);
        for (size_t i = 0; i < BOARDS; i++) {
            size_t other = BOARDS - 1 - i;
            plant_gpu_advance(n[0].gpu[i], now);
            plant_gpu_set_cap(n[0].gpu[i], mw[i]);
            plant_gpu_advance(n[1].gpu[other], now);
            plant_gpu_set_cap(n[1].gpu[other], mw[other]);
        }
        for (size_t i = 0; i < BOARDS; i++) {
            keep(&worst, plant_gpu_energy_j(n[0].gpu[i]), plant_gpu_energy_j(n[1].gpu[i]),
                 1);
            keep(&worst, plant_gpu_rate(n[0].gpu[i]), plant_gpu_rate(n[1].gpu[i]), 1);
            keep(&looked, plant_gpu_rate(n[0].gpu[i]), plant_gpu_rate(n[0].gpu[0]), 1);
        }
    }
    ok(opened && worst == 0, "four caps at one time: whichever comes first");
    ok(looked < 1e-9, "all boards keep one pace, whichever is looked at");
    close_node(&n[0]);
    close_node(&n[1]);
}

int main(int argc, char **argv)
{
    static const char *const boards[] = {"v100", "a100", "h100"};
    uint64_t seed = 1, n = 3;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL)) ||
        (argc > 2 && parse_u64(argv[2], &n, NULL)))
        return 2;
    for (size_t i = 0; i < n_elements(boards); i++) {
        schedules(boards[i], false, seed, n);
        schedules(boards[i], true, seed, n);
    }
    at_once();
    return done();
}
