/* Training jobs: phases, pace, work and time across cap changes. */
#include "plant/job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "tap.h"

#define START (7 * NS_PER_S)
enum { BOARDS = 4 };

struct node {
    struct plant_gpu *gpu[BOARDS];
    struct plant_job *job;
};

static void node_init(struct node *n, bool coarse)
{
    *n = (struct node){0};
    for (unsigned i = 0; i < BOARDS; i++) {
        struct plant_gpu_opts o = {.board = plant_board_find("v100"),
                                   .seed = i,
                                   .start_ns = START,
                                   .coarse = coarse};
        (void)plant_gpu_new(&o, &n->gpu[i], NULL);
    }
}

static void node_fini(struct node *n)
{
    plant_job_free(n->job);
    for (unsigned i = 0; i < BOARDS; i++)
        plant_gpu_free(n->gpu[i]);
}

static struct plant_job_opts opts_of(const struct node *n)
{
    return (struct plant_job_opts){
        .gpus = n->gpu, .n_gpus = BOARDS, .workload = "resnet50", .epochs = 2};
}

static struct plant_job_state state_of(const struct plant_job *job)
{
    struct plant_job_state s;
    plant_job_state(job, &s);
    return s;
}

static double truth(const struct node *n)
{
    double sum = 0;
    for (unsigned i = 0; i < BOARDS; i++)
        sum += plant_gpu_energy_j(n->gpu[i]);
    return sum;
}

/* A whole run at one cap is plant_steady() times epochs and boards. */
static void whole(void)
{
    const struct plant_board *b = plant_board_find("v100");
    struct plant_steady s = plant_steady(b, plant_workload_find(b, "resnet50"), 200000);
    struct node n;

    node_init(&n, true);
    for (unsigned i = 0; i < BOARDS; i++)
        plant_gpu_set_cap(n.gpu[i], 200000);
    struct plant_job_opts o = opts_of(&n);
    is_int(plant_job_new(&o, &n.job, NULL), 0, "a job of two epochs on four boards");
    while (!state_of(n.job).done)
        plant_gpu_advance(n.gpu[1], plant_job_next_ns(n.job));
    struct plant_job_state st = state_of(n.job);
    is_int(st.steps, 2 * 782, "all of its steps are done");
    ok(st.last_step_ns == st.done_ns || st.done_ns - st.last_step_ns < 10,
       "the last of them at its end");
    is_near(s_between(START, st.done_ns), 2 * s.time_s, 1e-6, "in twice an epoch's time");
    is_near(truth(&n), 2.0 * BOARDS * s.energy_j, 1e-3, "for its energy on each board");
    uint64_t later = st.done_ns + 100 * NS_PER_S;
    plant_gpu_advance(n.gpu[0], later);
    is_near(truth(&n), 2.0 * BOARDS * s.energy_j + BOARDS * 100 * b->idle_w, 1e-3,
            "then the boards idle");
    ok(plant_gpu_now_ns(n.gpu[3]) == later, "a board takes its job's others along");
    node_fini(&n);
}

/* The capped board is the slowest, and all go at its pace. */
static void slowest(void)
{
    const struct plant_board *b = plant_board_find("v100");
    const struct plant_workload *w = plant_workload_find(b, "resnet50");
    struct plant_steady slow = plant_steady_step(b, w, 160000);
    struct plant_steady fast = plant_steady_step(b, w, 300000);
    struct node n;

    node_init(&n, true);
    struct plant_job_opts o = opts_of(&n);
    (void)plant_job_new(&o, &n.job, NULL);
    plant_gpu_advance(n.gpu[0], START + 10 * NS_PER_S);
    plant_gpu_set_cap(n.gpu[2], 160000);
    plant_gpu_advance(n.gpu[0], START + 11 * NS_PER_S);
    double steps = state_of(n.job).exact_steps;
    double e0 = plant_gpu_energy_j(n.gpu[0]), e2 = plant_gpu_energy_j(n.gpu[2]);
    plant_gpu_advance(n.gpu[0], START + 111 * NS_PER_S);
    steps = state_of(n.job).exact_steps - steps;
    is_near(100 / steps, slow.time_s, 1e-6, "a step takes what the slowest board takes");
    is_near((plant_gpu_energy_j(n.gpu[2]) - e2) / steps, slow.energy_j,
            0.01 * slow.energy_j, "the slowest board's energy is its own");
    double waits = (slow.time_s - fast.time_s) * w->gap_w;
    is_near((plant_gpu_energy_j(n.gpu[0]) - e0) / steps, fast.energy_j + waits,
            0.01 * fast.energy_j, "the others wait at the gap's power");
    node_fini(&n);
}

/* Steps are conserved whatever happens to the caps and whoever looks. */
static void conserved(void)
{
    struct node a, b;
    struct rng rng;
    uint64_t t = START, steps = 0, last = 0;
    bool monotonic = true, told = true;

    node_init(&a, false);
    node_init(&b, false);
    struct plant_job_opts o = opts_of(&a);
    (void)plant_job_new(&o, &a.job, NULL);
    o = opts_of(&b);
    (void)plant_job_new(&o, &b.job, NULL);
    rng_init(&rng, 3);
    while (!state_of(a.job).done) {
        unsigned i = (unsigned)rng_below(&rng, BOARDS);
        uint32_t cap = 150000 + (uint32_t)rng_below(&rng, 150) * 1000;
        t += NS_PER_S / 10 + rng_below(&rng, 20 * NS_PER_S);
        plant_gpu_advance(a.gpu[0], t);
        while (plant_gpu_now_ns(b.gpu[0]) < t) {
            uint64_t to = plant_gpu_now_ns(b.gpu[0]) + rng_below(&rng, NS_PER_S / 5);
            uint64_t when = plant_job_when_ns(b.job, steps + 1);
            uint64_t next = plant_job_next_ns(b.job);
            to = to < t ? to : t;
            plant_job_advance(b.job, to);
            struct plant_job_state s = state_of(b.job);
            monotonic = monotonic && s.steps >= steps && s.last_step_ns >= last;
            if (s.steps > steps && when <= next && when <= to && s.steps == steps + 1)
                told = told && llabs((long long)(s.last_step_ns - when)) < 200;
            steps = s.steps;
            last = s.last_step_ns;
        }
        plant_gpu_set_cap(a.gpu[i], cap);
        plant_gpu_set_cap(b.gpu[i], cap);
    }
    struct plant_job_state x = state_of(a.job), y = state_of(b.job);
    ok(monotonic, "steps and their times never fall");
    ok(told, "a step ends when it was said to");
    ok(x.done_ns == y.done_ns, "one jump or many parts: the same end");
    ok(x.steps == y.steps && x.steps == x.total_steps, "… the same steps, all of them");
    ok(fabs(truth(&a) / truth(&b) - 1) < 1e-12, "… the same energy");
    node_fini(&a);
    node_fini(&b);
}

/* Going from step to step by plant_job_when_ns() counts each of them. */
static uint64_t miscounted(struct plant_job *job, uint64_t until)
{
    uint64_t wrong = 0, steps = state_of(job).steps;

    while (steps < until) {
        uint64_t when = plant_job_when_ns(job, steps + 1);
        uint64_t next = plant_job_next_ns(job);
        plant_job_advance(job, when < next ? when : next);
        struct plant_job_state s = state_of(job);
        wrong += when <= next && s.steps != steps + 1;
        wrong += when > next && s.steps != steps;
        steps = s.steps;
    }
    return wrong;
}

static void step_by_step(void)
{
    static const struct plant_job_phase list[] = {
        {.phase = UW_PHASE_TRAIN},
        {.phase = UW_PHASE_CHECKPOINT, .s = 1},
    };
    struct node n;

    node_init(&n, false);
    struct plant_job_opts o = opts_of(&n);
    o.phases = list;
    o.n_phases = 2;
    (void)plant_job_new(&o, &n.job, NULL);
    is_int(miscounted(n.job, 1000), 0, "a thousand steps, each counted at its very end");
    node_fini(&n);

    node_init(&n, true);
    o = opts_of(&n);
    o.epochs = 1000000;
    (void)plant_job_new(&o, &n.job, NULL);
    plant_job_advance(n.job, START + 10000000 * NS_PER_S);
    uint64_t now = state_of(n.job).steps;
    ok(now > 20000000, "a hundred days of training");
    is_int(miscounted(n.job, now + 1000), 0, "… and each step still is");
    node_fini(&n);
}

static void phases(void)
{
    static const struct plant_job_phase list[] = {
        {.phase = UW_PHASE_LOAD, .s = 3},
        {.phase = UW_PHASE_TRAIN},
        {.phase = UW_PHASE_VALIDATE, .steps = 40},
        {.phase = UW_PHASE_CHECKPOINT, .s = 2},
    };
    static const enum uw_phase want[] = {
        UW_PHASE_STARTUP,    UW_PHASE_LOAD,   UW_PHASE_TRAIN, UW_PHASE_VALIDATE,
        UW_PHASE_CHECKPOINT, UW_PHASE_LOAD,   UW_PHASE_TRAIN, UW_PHASE_VALIDATE,
        UW_PHASE_CHECKPOINT, UW_PHASE_UNKNOWN};
    double power[8] = {0};
    struct node n;
    size_t at = 0;
    bool right = true, steady = true;

    node_init(&n, true);
    struct plant_job_opts o = opts_of(&n);
    o.steps = 100;
    o.phases = list;
    o.n_phases = n_elements(list);
    o.startup_s = 15;
    (void)plant_job_new(&o, &n.job, NULL);
    struct plant_job_state s = state_of(n.job);
    while (!s.done) {
        struct plant_job_state was = s;
        uint64_t before = plant_gpu_now_ns(n.gpu[0]);
        double e = truth(&n);
        plant_job_advance(n.job, plant_job_next_ns(n.job));
        s = state_of(n.job);
        double dt = s_between(before, plant_gpu_now_ns(n.gpu[0]));
        if (dt > 0)
            power[was.phase] = (truth(&n) - e) / dt / BOARDS;
        steady = steady && (was.phase == UW_PHASE_TRAIN || s.steps == was.steps);
        at += s.phase != was.phase;
        right = right && at < n_elements(want) && s.phase == want[at];
    }
    ok(right && at == n_elements(want) - 1, "start-up once, then each epoch's phases");
    ok(steady, "only training counts steps");
    is_int(s.steps, 200, "the named number of steps");
    ok(power[UW_PHASE_TRAIN] > power[UW_PHASE_VALIDATE] &&
           power[UW_PHASE_VALIDATE] > power[UW_PHASE_CHECKPOINT] &&
           power[UW_PHASE_CHECKPOINT] > power[UW_PHASE_LOAD] && power[UW_PHASE_LOAD] > 42,
       "each phase has its power: %.0f > %.0f > %.0f > %.0f W", power[UW_PHASE_TRAIN],
       power[UW_PHASE_VALIDATE], power[UW_PHASE_CHECKPOINT], power[UW_PHASE_LOAD]);
    node_fini(&n);
}

static void scaled(void)
{
    struct node n;

    node_init(&n, true);
    struct plant_job_opts o = opts_of(&n);
    (void)plant_job_new(&o, &n.job, NULL);
    plant_job_advance(n.job, START + 20 * NS_PER_S);
    double before = state_of(n.job).exact_steps;
    plant_job_scale(n.job, 1.25, 0.9);
    is_near(state_of(n.job).exact_steps, before, 1e-9, "a change loses no work");
    plant_job_advance(n.job, START + 40 * NS_PER_S);
    double after = state_of(n.job).exact_steps - before;
    is_near(before / after, 1.25, 1e-3, "… and makes each step slower from then on");
    node_fini(&n);
}

/* Work for longer than 64 bits of nanoseconds hold is not done at once. */
static void endless(void)
{
    struct node n;

    node_init(&n, true);
    struct plant_job_opts o = opts_of(&n);
    o.steps = 100000000;
    o.epochs = 1;
    (void)plant_job_new(&o, &n.job, NULL);
    plant_job_advance(n.job, START + 20 * NS_PER_S);
    double before = state_of(n.job).exact_steps;
    plant_job_scale(n.job, 1e5, 0); /* as a stopped process's */
    ok(plant_job_when_ns(n.job, o.steps) == UINT64_MAX,
       "a hundred million steps of a stopped process: never done");
    plant_job_advance(n.job, START + 40 * NS_PER_S);
    struct plant_job_state s = state_of(n.job);
    ok(!s.done && s.exact_steps < before + 0.01, "… nor counted: %.3f steps after %.3f",
       s.exact_steps, before);
    plant_job_scale(n.job, 1, 1);
    plant_job_advance(n.job, START + 60 * NS_PER_S);
    is_near(state_of(n.job).exact_steps / before, 2, 1e-3, "it goes on where it was");
    node_fini(&n);
}

/* Boards that differ: the slowest sets the pace, the others spin or sleep. */
static void unequal(void)
{
    struct node n;
    struct plant_reading seen;
    double own[BOARDS], mean[BOARDS];

    node_init(&n, true);
    for (unsigned i = 0; i < BOARDS; i++) {
        plant_gpu_set_cap(n.gpu[i], 200000);
        plant_gpu_set_trait(n.gpu[i], &(struct plant_trait){.power = 1 + 0.05 * i,
                                                            .spin = i == 0 ? 0.5 : 0});
    }
    struct plant_job_opts o = opts_of(&n);
    (void)plant_job_new(&o, &n.job, NULL);
    plant_job_advance(n.job, START + 20 * NS_PER_S);
    for (unsigned i = 0; i < BOARDS; i++) {
        own[i] = plant_gpu_own_step_s(n.gpu[i]);
        mean[i] = plant_gpu_mean_w(n.gpu[i]);
    }
    ok(own[0] < own[1] && own[1] < own[2] && own[2] < own[3],
       "under one cap who draws more is slower: %.4f < … < %.4f s", own[0], own[3]);
    for (unsigned i = 0; i < BOARDS; i++)
        is_near(plant_gpu_rate(n.gpu[i]), 1 / own[3], 1e-9, "board %u keeps the pace", i);
    ok(mean[1] < mean[2] && mean[2] < mean[3], "who waits draws less: %.1f < %.1f < %.1f",
       mean[1], mean[2], mean[3]);
    plant_gpu_read(n.gpu[0], &seen);
    uint32_t spins = seen.util_gpu;
    plant_gpu_read(n.gpu[1], &seen);
    ok(spins > seen.util_gpu, "who spins seems busy: %u %% against %u %%", spins,
       seen.util_gpu);
    plant_gpu_set_trait(n.gpu[0], &(struct plant_trait){.power = 1});
    ok(plant_gpu_mean_w(n.gpu[0]) < mean[0],
       "… and draws more than asleep: %.1f < %.1f W", plant_gpu_mean_w(n.gpu[0]),
       mean[0]);

    plant_gpu_set_trait(n.gpu[0], &(struct plant_trait){.work = 1.5});
    ok(plant_gpu_own_step_s(n.gpu[0]) > own[3], "a larger stage takes longer");
    is_near(plant_gpu_rate(n.gpu[3]), 1 / plant_gpu_own_step_s(n.gpu[0]), 1e-9,
            "… and is who sets the pace from then on");
    node_fini(&n);
}

static void refused(void)
{
    static const struct plant_job_phase wrong[] = {{.phase = UW_PHASE_TRAIN, .steps = 9}};
    struct node n;
    struct plant_job *job = NULL;
    uw_error err;

    node_init(&n, true);
    struct plant_job_opts o = opts_of(&n);
    o.workload = "resnet51";
    is_int(plant_job_new(&o, &job, &err), -EINVAL, "no such workload");
    is_str(err.text, "no workload 'resnet51' on a v100", "… says which");
    o = opts_of(&n);
    o.epochs = 0;
    is_int(plant_job_new(&o, &job, &err), -EINVAL, "no epochs");
    o = opts_of(&n);
    o.n_gpus = 0;
    is_int(plant_job_new(&o, &job, &err), -EINVAL, "no boards");
    o = opts_of(&n);
    o.steps = 10;
    o.phases = wrong;
    o.n_phases = 1;
    is_int(plant_job_new(&o, &job, &err), -EINVAL, "phases that do not make an epoch");
    ok(!job, "nothing was made");
    o = opts_of(&n);
    is_int(plant_job_new(&o, &n.job, &err), 0, "the boards were not kept");
    is_int(plant_job_new(&o, &job, &err), -EBUSY, "a board has one job");
    plant_job_free(n.job);
    is_int(plant_job_new(&o, &n.job, &err), 0, "… at a time");
    node_fini(&n);
}

int main(void)
{
    whole();
    slowest();
    conserved();
    step_by_step();
    phases();
    scaled();
    endless();
    unequal();
    refused();
    return done();
}
