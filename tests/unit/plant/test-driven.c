/* Driven jobs: boards that do the steps that a program grants. */
#include "plant/job.h"

#include <errno.h>
#include <math.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "tap.h"

#define START (7 * NS_PER_S)
enum { BOARDS = 2 };

static const struct plant_job_phase one = {.phase = UW_PHASE_TRAIN, .steps = 1};

struct node {
    struct plant_gpu *gpu[BOARDS];
    struct plant_job *job[BOARDS]; /* one a board, or the first on all */
};

static void node_init(struct node *n, const char *board, bool coarse)
{
    *n = (struct node){0};
    for (unsigned i = 0; i < BOARDS; i++) {
        struct plant_gpu_opts o = {.board = plant_board_find(board),
                                   .seed = i,
                                   .start_ns = START,
                                   .coarse = coarse};
        (void)plant_gpu_new(&o, &n->gpu[i], NULL);
    }
}

static void node_fini(struct node *n)
{
    for (unsigned i = 0; i < BOARDS; i++)
        plant_job_free(n->job[i]);
    for (unsigned i = 0; i < BOARDS; i++)
        plant_gpu_free(n->gpu[i]);
}

/* The i-th job, on this many boards from the i-th on. */
static struct plant_job *drive(struct node *n, size_t i, size_t n_gpus)
{
    struct plant_job_opts o = {
        .gpus = n->gpu + i, .n_gpus = n_gpus, .workload = "resnet50", .driven = true};

    (void)plant_job_new(&o, &n->job[i], NULL);
    return n->job[i];
}

static struct plant_steady steady(const char *board, uint32_t cap_mw)
{
    const struct plant_board *b = plant_board_find(board);

    return plant_steady_step(b, plant_workload_find(b, "resnet50"), cap_mw);
}

static double gap_w(const char *board)
{
    return plant_workload_find(plant_board_find(board), "resnet50")->gap_w;
}

static void grant(struct plant_job *job, const struct plant_job_phase *what)
{
    (void)plant_job_grant(job, what, NULL);
}

/* Goes from event to event until the next grant is done. */
static struct plant_granted await(struct plant_job *job)
{
    struct plant_granted done;

    while (!plant_job_granted(job, &done))
        plant_job_advance(job, plant_job_next_ns(job));
    return done;
}

/* A program that is never late: while one step is under way the next is granted. */
static struct plant_granted loop(struct plant_job *job, unsigned steps)
{
    struct plant_granted done = {0};

    grant(job, &one);
    for (unsigned i = 1; i < steps; i++) {
        grant(job, &one);
        done = await(job);
    }
    return steps > 0 ? await(job) : done;
}

/* Step by step is the steady state at every cap. */
static void caps(const char *board, bool coarse, double tolerance)
{
    const struct plant_board *b = plant_board_find(board);

    for (uint32_t i = 0; i < 4; i++) {
        uint32_t mw = b->max_mw - i * ((b->max_mw - b->min_mw) / 3000) * 1000;
        struct plant_steady want = steady(board, mw);
        struct node n;

        node_init(&n, board, coarse);
        plant_gpu_set_cap(n.gpu[0], mw);
        struct plant_granted from = loop(drive(&n, 0, 1), coarse ? 3 : 3000);
        struct plant_granted to = loop(n.job[0], 200);
        is_int((int)(to.steps - from.steps), 200, "%s, %u W: 200 steps", board,
               mw / MW_PER_W);
        is_near(s_between(from.at_ns, to.at_ns) / 200 / want.time_s, 1, tolerance,
                "… each takes the steady step's time, %.1f ms", want.time_s * 1e3);
        is_near((to.energy_j - from.energy_j) / 200 / want.energy_j, 1, tolerance,
                "… and its energy, %.1f J", want.energy_j);
        ok(to.waited_ns == from.waited_ns, "… and the board never waits");
        node_fini(&n);
    }
}

/* A program three times slower than its board. */
static void slow_host(void)
{
    struct plant_steady step = steady("v100", 200000);
    struct plant_granted done = {0}, first = {0};
    struct node n;

    node_init(&n, "v100", true);
    plant_gpu_set_cap(n.gpu[0], 200000);
    struct plant_job *job = drive(&n, 0, 1);
    for (int i = 0; i < 11; i++) {
        grant(job, &one);
        done = await(job);
        first = i == 0 ? done : first;
        plant_job_advance(job, done.at_ns + ns_of_s(2 * step.time_s));
    }
    double period = s_between(first.at_ns, done.at_ns) / 10;
    is_near(period / step.time_s, 3, 1e-6,
            "a host three times slower: three times as long");
    is_near((double)(done.waited_ns - first.waited_ns) * 1e-10, 2 * step.time_s, 1e-6,
            "… of which its board waits two");
    double j = step.energy_j + 2 * step.time_s * gap_w("v100");
    is_near((done.energy_j - first.energy_j) / 10 / j, 1, 1e-4,
            "… at the power of the gap: %.1f J a step", j);
    node_fini(&n);
}

static void nothing(void)
{
    struct plant_job_state s;
    struct plant_granted done;
    struct node n;

    node_init(&n, "v100", true);
    struct plant_job *job = drive(&n, 0, BOARDS);
    double before = plant_gpu_energy_j(n.gpu[0]);
    ok(plant_job_next_ns(job) == UINT64_MAX, "nothing granted: nothing will happen");
    plant_job_advance(job, START + 100 * NS_PER_S);
    is_near(plant_gpu_energy_j(n.gpu[0]) - before, 100 * gap_w("v100"), 1e-6,
            "… and no step costs energy");
    plant_job_state(job, &s);
    ok(s.steps == 0 && !s.done && !plant_job_granted(job, &done), "… nor is one counted");
    plant_job_scale(job, 2, 1);
    plant_job_advance(job, START + 200 * NS_PER_S);
    is_near(plant_gpu_energy_j(n.gpu[0]) - before, 200 * gap_w("v100"), 1e-6,
            "a change of a step's cost begins none");
    plant_job_free(take(n.job[0]));
    plant_gpu_advance(n.gpu[0], START + 300 * NS_PER_S);
    is_near(plant_gpu_energy_j(n.gpu[0]) - before,
            200 * gap_w("v100") + 100 * plant_board_find("v100")->idle_w, 1e-6,
            "without the job the board is idle");
    node_fini(&n);
}

static void refused(void)
{
    static const struct plant_job_phase none = {.phase = UW_PHASE_TRAIN};
    static const struct plant_job_phase no_time = {.phase = UW_PHASE_LOAD, .steps = 3};
    struct plant_job_opts o = {.n_gpus = 1, .workload = "resnet50", .epochs = 1};
    struct node n;
    uw_error err;

    node_init(&n, "v100", true);
    struct plant_job *job = drive(&n, 0, 1);
    is_int(plant_job_grant(job, &none, &err), -EINVAL, "a grant of no step");
    is_int(plant_job_grant(job, &no_time, &err), -EINVAL, "a grant of no time");
    o.gpus = &n.gpu[1];
    (void)plant_job_new(&o, &n.job[1], NULL);
    is_int(plant_job_grant(n.job[1], &one, &err), -EINVAL, "a job that is not driven");
    node_fini(&n);
}

static void full(void)
{
    struct node n;
    uw_error err;

    node_init(&n, "v100", true);
    struct plant_job *job = drive(&n, 0, 1);
    is_int(plant_job_grant(job, &one, &err), 0, "a step");
    is_int(plant_job_grant(job, &one, &err), 0, "the next while it is under way");
    is_int(plant_job_grant(job, &one, &err), PLANT_GRANT_FULL, "no third");
    plant_job_advance(job, START + 10 * NS_PER_S);
    is_int(plant_job_grant(job, &one, &err), PLANT_GRANT_FULL,
           "nor another before those done are collected");
    is_int((int)await(job).number, 1, "the first one done");
    is_int(plant_job_grant(job, &one, &err), 0, "makes room");
    is_int((int)await(job).number, 2, "the second one done");
    struct plant_granted last = await(job);
    ok(last.number == 3 && last.steps == 3, "three grants, three steps");
    node_fini(&n);
}

static void phases(void)
{
    static const struct {
        struct plant_job_phase grant;
        uint64_t steps; /* in all, after it */
    } list[] = {
        {{.phase = UW_PHASE_LOAD, .s = 2}, 0},
        {{.phase = UW_PHASE_TRAIN, .steps = 30}, 30},
        {{.phase = UW_PHASE_VALIDATE, .steps = 40}, 30},
        {{.phase = UW_PHASE_TRAIN, .steps = 20}, 50},
        {{.phase = UW_PHASE_TRAIN, .steps = 20}, 70},
        {{.phase = UW_PHASE_CHECKPOINT, .s = 1.5}, 70},
        {{.phase = UW_PHASE_CHECKPOINT, .s = 1.5}, 70},
    };
    double w[8] = {0};
    struct plant_granted before = {.at_ns = START}, done;
    struct node n;

    node_init(&n, "v100", true);
    struct plant_job *job = drive(&n, 0, BOARDS);
    for (size_t i = 0; i < n_elements(list); i++) {
        const struct plant_job_phase *p = &list[i].grant;
        grant(job, p);
        done = await(job);
        double s = s_between(before.at_ns, done.at_ns);
        w[p->phase] = (done.energy_j - before.energy_j) / s;
        ok(done.phase == p->phase && done.number == i + 1 && done.steps == list[i].steps,
           "grant %zu is done, %ju training steps in all", i + 1, (uintmax_t)done.steps);
        if (p->phase == UW_PHASE_TRAIN)
            is_near(s, p->steps * steady("v100", 300000).time_s, 1e-6, "… in their time");
        else if (p->s > 0)
            ok(done.at_ns - before.at_ns == ns_of_s(p->s), "… to the nanosecond");
        before = done;
    }
    ok(w[UW_PHASE_TRAIN] > w[UW_PHASE_VALIDATE] &&
           w[UW_PHASE_VALIDATE] > w[UW_PHASE_CHECKPOINT] &&
           w[UW_PHASE_CHECKPOINT] > w[UW_PHASE_LOAD],
       "each phase at its power");
    ok(done.waited_ns == 0, "who grants at once never makes the boards wait");
    node_fini(&n);
}

/* A cap in the middle of a step; looked at often or once, the end is the same. */
static void capped(void)
{
    struct plant_granted a, b;
    struct node n;

    node_init(&n, "v100", false);
    for (size_t i = 0; i < BOARDS; i++) {
        grant(drive(&n, i, 1), &one);
        plant_job_advance(n.job[i], START + 100 * NS_PER_MS);
        plant_gpu_set_cap(n.gpu[i], 150000);
    }
    a = await(n.job[0]);
    for (uint64_t now = START; now < START + NS_PER_S; now += NS_PER_MS)
        plant_job_advance(n.job[1], now);
    b = await(n.job[1]);
    ok(a.at_ns == b.at_ns && fabs(a.energy_j / b.energy_j - 1) < 1e-12,
       "from event to event or by the millisecond: the same end");
    double s = s_between(START, a.at_ns);
    ok(s > steady("v100", 300000).time_s && s < steady("v100", 150000).time_s,
       "a cap within a step slows its rest: %.1f ms", s * 1e3);
    node_fini(&n);
}

/* Two programs that wait for one another after each step. */
static void ranks(void)
{
    double slow = steady("v100", 150000).time_s, fast = steady("v100", 300000).time_s;
    struct plant_granted done[BOARDS] = {0};
    struct node n;

    node_init(&n, "v100", true);
    plant_gpu_set_cap(n.gpu[1], 150000);
    for (size_t i = 0; i < BOARDS; i++)
        (void)drive(&n, i, 1);
    uint64_t now = START;
    for (int k = 0; k < 10; k++) {
        for (size_t i = 0; i < BOARDS; i++) {
            plant_job_advance(n.job[i], now);
            grant(n.job[i], &one);
            done[i] = await(n.job[i]);
        }
        now = done[0].at_ns > done[1].at_ns ? done[0].at_ns : done[1].at_ns;
    }
    is_near(s_between(START, now), 10 * slow, 1e-6,
            "two ranks: the slower sets the pace");
    is_near((double)done[0].waited_ns * 1e-9, 9 * (slow - fast), 1e-6,
            "… and the other's board waits");
    ok(done[1].waited_ns < 10 * NS_PER_US && done[0].steps == 10 && done[1].steps == 10,
       "each did its own ten steps");
    node_fini(&n);
}

int main(void)
{
    caps("v100", true, 1e-4);
    caps("h100", true, 1e-4);
    caps("h100", false, 5e-3);
    slow_host();
    nothing();
    refused();
    full();
    phases();
    capped();
    ranks();
    return done();
}
