/* The phase of a job's boards, overheard from samplers of simulated boards. */
#include "jobs/job-phase.h"

#include <math.h>

#include "base/units.h"
#include "plant/plant.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

enum { BOARDS = 2 };

struct scene {
    struct loop *loop;
    struct virtual_world *world;
    struct boards *boards;
    struct sampler *sampler[BOARDS];
    struct loop_timer *pause;
    struct loop_child *child;
    struct job_phase *follow;
};

static uint64_t clock_of(void *user)
{
    return loop_now_ns(user);
}

static int on_pause(struct loop_timer *timer, uint64_t now, void *user)
{
    struct scene *s = user;
    (void)timer;
    (void)now;

    loop_stop(s->loop, 0);
    return 0;
}

static void pass(struct scene *s, double seconds)
{
    loop_timer_set(s->pause, loop_now_ns(s->loop) + ns_of_s(seconds), 0);
    if (loop_run(s->loop, NULL) < 0)
        ok(false, "the loop runs");
}

static int on_boards(struct boards *set, int r, const uw_error *err, void *user)
{
    struct scene *s = user;
    (void)set;
    (void)err;

    loop_stop(s->loop, r);
    return 0;
}

static bool scene_open(struct scene *s)
{
    struct sim_machine machine;
    uw_error err = {""};

    *s = (struct scene){0};
    int r = loop_new_virtual(1000000000, 1700000000, &s->loop, &err);
    if (r >= 0)
        r = sim_machine_builtin("v100", BOARDS, &machine, &err);
    if (r >= 0)
        r = virtual_world_new(s->loop, &machine, 1, &s->world, &err);
    struct gpu_open_opts gpu = {.clock = {clock_of, s->loop}, .backend_user = s->world};
    if (r >= 0)
        r = boards_open(s->loop, &virtual_backend, &gpu, on_boards, s, &s->boards, &err);
    if (r >= 0)
        r = loop_timer_new(s->loop, UINT64_MAX, 0, on_pause, s, &s->pause, &err);
    if (r >= 0)
        r = loop_run(s->loop, &err);
    for (size_t i = 0; i < BOARDS && r >= 0; i++) {
        struct board *b = boards_at(s->boards, i);
        struct sampler_opts opts = {.period_ns = 500 * NS_PER_MS, .seed = i + 1};
        r = sampler_new(s->loop, &b, 1, &opts, &s->sampler[i], &err);
    }
    if (r >= 0)
        r = job_phase_new(s->loop, &s->follow);
    return ok(r >= 0, "a scene %s", err.text);
}

static void scene_close(struct scene *s)
{
    job_phase_free(s->follow);
    loop_child_free(s->child);
    for (size_t i = 0; i < BOARDS; i++)
        sampler_free(s->sampler[i]);
    boards_free(s->boards);
    loop_timer_free(s->pause);
    virtual_world_free(s->world);
    loop_free(s->loop);
}

static int on_exit_of(struct loop_child *child, int status, void *user)
{
    (void)child;
    (void)user;
    is_int(status, 0, "the job ends well");
    return 0;
}

/* 2 min of training, 40 s without a step, and so on. */
static void train(struct scene *s)
{
    const char *argv[] = {
        "underwatt-sim", "train", "--workload", "resnet50",       "--gpus", "0,1",
        "--epochs",      "100",   "--phases",   "train,load=40s", NULL};
    const char *env[] = {NULL};
    struct loop_child_opts child = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    uw_error err = {""};

    ok(loop_child_new(s->loop, &child, on_exit_of, s, &s->child, &err) == 0,
       "a job begins %s", err.text);
}

static enum phase_kind now(struct scene *s)
{
    struct job_phase_view look;

    job_phase_view(s->follow, &look);
    return look.kind;
}

/* Both boards at the job's rate, as a node has them where nobody searches. */
static void hear(struct scene *s)
{
    struct job_phase_board board[BOARDS] = {{s->sampler[0], 0}, {s->sampler[1], 0}};

    is_int(job_phase_hear(s->follow, board, BOARDS), 0, "hears both boards");
}

static void test_phases(void)
{
    struct scene s;
    struct job_phase_view look;
    unsigned pauses = 0, trains = 0;

    if (!scene_open(&s)) {
        scene_close(&s);
        return;
    }
    for (size_t i = 0; i < BOARDS; i++)
        sampler_rate(s.sampler[i], 0, SAMPLER_JOB, false);
    pass(&s, 10);
    hear(&s);
    pass(&s, 60);
    is_int(now(&s), PHASE_STARTUP, "boards at rest: nothing that looks like training");
    train(&s);
    for (int i = 0; i < 1200; i++) {
        pass(&s, 1);
        pauses += now(&s) == PHASE_VALIDATE || now(&s) == PHASE_LOAD ||
                  now(&s) == PHASE_CHECKPOINT || now(&s) == PHASE_IDLE;
        trains += now(&s) == PHASE_TRAIN || now(&s) == PHASE_CHANGE;
    }
    ok(pauses > 50 && trains > 600, "20 minutes: %u s of training, %u s of pauses",
       trains, pauses);
    job_phase_view(s.follow, &look);
    ok(look.since_ns > 0 && look.known_ns >= look.since_ns &&
           look.since_ns < loop_now_ns(s.loop),
       "since when, and since when known");
    is_int(job_phase_hear(s.follow, NULL, 0), 0, "hears nobody any more");
    job_phase_view(s.follow, &look);
    ok(look.kind == PHASE_UNKNOWN && look.since_ns == 0, "and knows nothing");
    pass(&s, 5);
    is_int(now(&s), PHASE_UNKNOWN, "nor later");
    scene_close(&s);
}

static void test_nobody(void)
{
    struct job_phase_view look;

    job_phase_view(NULL, &look);
    is_int(look.kind, PHASE_UNKNOWN, "none at all knows nothing");
    job_phase_on_cap(NULL, 100);
    job_phase_free(NULL);
}

int main(void)
{
    test_nobody();
    test_phases();
    return done();
}
