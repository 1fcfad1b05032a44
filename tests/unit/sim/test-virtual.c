/* The virtual node: a job runs, is capped, reports, is killed; faults happen. */
#include "virtual/virtual-world.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/units.h"
#include "sim/report.h"
#include "tap.h"
#include "virtual/virtual-loop.h"

struct scene {
    struct loop *loop;
    struct virtual_world *world;
    void *lib;
    struct loop_child *child;
    int status;
    bool ended;
    uint64_t ended_ns;
};

static uint64_t now_of(void *user)
{
    return loop_now_ns(user);
}

static int on_end(struct loop_child *child, int status, void *user)
{
    struct scene *s = user;

    (void)child;
    s->status = status;
    s->ended = true;
    s->ended_ns = loop_now_ns(s->loop);
    return 0;
}

static int on_pause(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

/* Let so many seconds of virtual time pass. */
static void pass(struct scene *s, double seconds)
{
    struct loop_timer *timer = NULL;
    uint64_t at = loop_now_ns(s->loop) + ns_of_s(seconds);
    uw_error err = {""};

    if (loop_timer_new(s->loop, at, 0, on_pause, s->loop, &timer, &err) ||
        loop_run(s->loop, &err))
        printf("# %s\n", err.text);
    loop_timer_free(timer);
}

static bool open_scene(struct scene *s, const char *model, unsigned count)
{
    static struct sim_machine machine;
    uw_error err = {""};

    *s = (struct scene){.status = -1};
    int r = loop_new_virtual(1000 * NS_PER_S, 1700000000, &s->loop, &err);
    if (!r)
        r = sim_machine_builtin(model, count, &machine, &err);
    if (!r)
        r = virtual_world_new(s->loop, &machine, 7, &s->world, &err);
    struct gpu_open_opts opts = {.clock = {now_of, s->loop}, .backend_user = s->world};
    if (!r)
        r = virtual_backend.open(&opts, &s->lib, &err);
    return ok(r == 0, "a node of %u %s opens %s", count, model, err.text);
}

static void close_scene(struct scene *s)
{
    virtual_backend.close(s->lib);
    loop_child_free(s->child);
    virtual_world_free(s->world);
    loop_free(s->loop);
}

static int start(struct scene *s, const char *const *argv, const char *const *env,
                 uw_error *err)
{
    struct loop_child_opts opts = {
        .argv = argv, .env = env, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};

    s->ended = false;
    return loop_child_new(s->loop, &opts, on_end, s, &s->child, err);
}

static struct gpu_sample sample(struct scene *s, size_t i)
{
    struct gpu_sample now = {0};
    uw_error err = {""};

    int r = virtual_backend.sample(virtual_backend.at(s->lib, i), ~0u, &now, &err);
    if (r)
        printf("# sample: %s\n", err.text);
    return now;
}

static void test_job(void)
{
    static const char *const argv[] = {
        "underwatt-sim", "train",         "--gpus",     "0,1",      "--steps", "200",
        "--phases",      "load=2s,train", "--workload", "resnet50", NULL};
    static const char *const env[] = {"UNDERWATT_PROGRESS=" VIRTUAL_PROGRESS, NULL};
    struct scene s;
    uw_error err = {""};

    if (!open_scene(&s, "v100", 3))
        return;
    is_int(virtual_backend.count(s.lib), 3, "three boards");
    struct gpu_dev *dev = virtual_backend.at(s.lib, 0);
    const struct gpu_info *info = virtual_backend.info(dev);
    ok(info->simulated && strstr(info->name, "imulated"), "'%s' says so", info->name);
    is_int(start(&s, argv, env, &err), 0, "a job starts %s", err.text);
    const struct uw_progress_slot *slot = &virtual_world_progress(s.world)->slot[0];
    pass(&s, 1);
    is_int(slot->phase, UW_PHASE_LOAD, "it loads data first");
    is_int(slot->steps, 0, "and has done no step");
    pass(&s, 20);
    is_int(slot->phase, UW_PHASE_TRAIN, "then it trains");
    uint64_t steps = slot->steps;
    ok(steps > 20, "and has done %llu steps", (unsigned long long)steps);
    ok(slot->last_step_ns <= loop_now_ns(s.loop) &&
           slot->last_step_ns > loop_now_ns(s.loop) - 2 * NS_PER_S,
       "the last one not long ago");
    struct gpu_sample busy = sample(&s, 0);
    struct gpu_sample idle = sample(&s, 2);
    ok(busy.power_w > 2 * idle.power_w, "%g W there, %g W on the idle board",
       busy.power_w, idle.power_w);
    struct gpu_proc procs[GPU_PROCS_MAX];
    size_t n = 99;
    is_int(virtual_backend.procs(dev, procs, &n, &err), 0, "its processes");
    ok(n == 1 && procs[0].pid == loop_child_pid(s.child), "the job's pid");
    double j0 = virtual_world_true_j(s.world, 0);
    uint64_t e0 = sample(&s, 0).energy_mj;
    pass(&s, 10);
    double true_j = virtual_world_true_j(s.world, 0) - j0;
    double counted = (double)(sample(&s, 0).energy_mj - e0) * 1e-3;
    is_near(counted / true_j, 1, 0.15, "the counter follows the truth, gain error aside");
    for (int i = 0; i < 100 && !s.ended; i++)
        pass(&s, 10);
    ok(s.ended && WIFEXITED(s.status) && WEXITSTATUS(s.status) == 0, "it ends with 0");
    is_int(slot->steps, 200, "after 200 steps");
    is_int(virtual_backend.procs(dev, procs, &n, &err), 0, "its processes");
    is_int(n, 0, "are gone");
    close_scene(&s);
}

static void test_phases(void)
{
    static const char *const argv[] = {"train", "--steps", "40", "--epochs", "2", NULL};
    static const char *const env[] = {"UNDERWATT_PROGRESS=" VIRTUAL_PROGRESS, NULL};
    struct scene s;
    double highest_w[8] = {0}, s_of[8] = {0};
    uw_error err = {""};

    if (!open_scene(&s, "v100", 1))
        return;
    is_int(start(&s, argv, env, &err), 0, "a job of all phases %s", err.text);
    const struct uw_progress_slot *slot = &virtual_world_progress(s.world)->slot[0];
    for (int i = 0; i < 10000 && !s.ended; i++) {
        unsigned phase = slot->phase & 7;
        pass(&s, 0.02);
        if (phase != (slot->phase & 7))
            continue;
        s_of[phase] += 0.02;
        highest_w[phase] = fmax(highest_w[phase], virtual_world_true_w(s.world, 0));
    }
    is_int(slot->steps, 80, "two epochs of 40 steps");
    is_near(s_of[UW_PHASE_LOAD], 2, 0.1, "two loads of a second");
    is_near(s_of[UW_PHASE_CHECKPOINT], 2, 0.1, "two checkpoints of a second");
    ok(s_of[UW_PHASE_VALIDATE] > 0.1 &&
           s_of[UW_PHASE_VALIDATE] < 0.1 * s_of[UW_PHASE_TRAIN],
       "validation %g s, training %g s", s_of[UW_PHASE_VALIDATE], s_of[UW_PHASE_TRAIN]);
    ok(highest_w[UW_PHASE_LOAD] < 0.6 * highest_w[UW_PHASE_TRAIN],
       "loading takes %g W, training %g W", highest_w[UW_PHASE_LOAD],
       highest_w[UW_PHASE_TRAIN]);
    close_scene(&s);
}

static void test_limit(void)
{
    static const char *const argv[] = {"train", "--phases", "train", "--gpus", "0", NULL};
    static const char *const env[] = {"UNDERWATT_PROGRESS=" VIRTUAL_PROGRESS, NULL};
    struct scene s;
    struct gpu_limits lim;
    uw_error err = {""};

    if (!open_scene(&s, "v100", 1))
        return;
    struct gpu_dev *dev = virtual_backend.at(s.lib, 0);
    is_int(virtual_backend.limits(dev, &lim, &err), 0, "limits");
    is_int(start(&s, argv, env, &err), 0, "a job starts %s", err.text);
    const struct uw_progress_slot *slot = &virtual_world_progress(s.world)->slot[0];
    pass(&s, 5);
    is_int(virtual_backend.set_limit(dev, lim.max_mw + 1, &err), -ERANGE, "too high");
    is_int(sample(&s, 0).enforced_mw, lim.default_mw, "changes nothing");
    uint64_t before = loop_now_ns(s.loop);
    is_int(virtual_backend.set_limit(dev, 180000, &err), 0, "180 W");
    pass(&s, 0.001);
    (void)before;
    is_int(sample(&s, 0).enforced_mw, 180000, "is in force");
    pass(&s, 2);
    double j0 = virtual_world_true_j(s.world, 0);
    pass(&s, 20);
    double mean = (virtual_world_true_j(s.world, 0) - j0) / 20;
    ok(mean < 181 && mean > 120, "mean power is %g W", mean);
    virtual_world_set_uid(s.world, 1000);
    is_int(virtual_backend.set_limit(dev, 190000, &err), 0, "anyone may");
    is_int(virtual_backend.lock_clocks(dev, 600, 900, &err), 0, "clocks can be locked");
    pass(&s, 1);
    ok(sample(&s, 0).sm_mhz <= 900, "and then are");
    is_int(virtual_backend.reset_clocks(dev, &err), 0, "and unlocked");
    is_int(loop_child_kill(s.child, SIGSTOP), 0, "stopped");
    pass(&s, 1);
    uint64_t steps = slot->steps;
    j0 = virtual_world_true_j(s.world, 0);
    pass(&s, 10);
    mean = (virtual_world_true_j(s.world, 0) - j0) / 10;
    ok(mean < 100, "it takes %g W", mean);
    ok(steps > 0 && slot->steps == steps, "and does no step after %llu",
       (unsigned long long)steps);
    is_int(loop_child_kill(s.child, SIGCONT), 0, "continued");
    pass(&s, 1);
    j0 = virtual_world_true_j(s.world, 0);
    pass(&s, 10);
    mean = (virtual_world_true_j(s.world, 0) - j0) / 10;
    ok(mean > 120 && slot->steps > steps, "it takes %g W again, and does steps", mean);
    is_int(loop_child_kill(s.child, SIGKILL), 0, "kill -9");
    pass(&s, 0.5);
    ok(s.ended && WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGKILL, "ends it so");
    ok(virtual_world_true_w(s.world, 0) < 60, "its load ended at once: %g W",
       virtual_world_true_w(s.world, 0));
    close_scene(&s);
}

static void fault(struct scene *s, const char *text)
{
    struct sim_fault f;
    uw_error err = {""};

    int r = sim_fault_parse(text, &f, &err);
    if (!r)
        r = virtual_world_fault(s->world, &f, &err);
    ok(r == 0, "fault: %s %s", text, err.text);
}

static void test_faults(void)
{
    struct scene s;
    struct gpu_sample now;
    char mark[64], other[64];
    uw_error err = {""};

    if (!open_scene(&s, "h100", 2))
        return;
    struct gpu_dev *dev = virtual_backend.at(s.lib, 1);
    fault(&s, "1 lost for 5s");
    is_int(virtual_backend.sample(dev, ~0u, &now, &err), -ENODEV, "board 1 is lost");
    is_int(virtual_backend.sample(virtual_backend.at(s.lib, 0), ~0u, &now, &err), 0,
           "board 0 is not");
    pass(&s, 6);
    is_int(virtual_backend.sample(dev, ~0u, &now, &err), 0, "it comes back");
    fault(&s, "1 refuse");
    is_int(virtual_backend.set_limit(dev, 400000, &err), -EPERM, "refused");
    fault(&s, "1 accept");
    is_int(virtual_backend.set_limit(dev, 400000, &err), 0, "accepted");
    fault(&s, "1 limit 300W");
    is_int(sample(&s, 1).enforced_mw, 300000, "somebody else set the limit");
    fault(&s, "1 stuck");
    uint64_t stuck = sample(&s, 1).energy_mj;
    pass(&s, 3);
    is_int(sample(&s, 1).energy_mj, stuck, "the counter stands still");
    fault(&s, "1 unstuck");
    pass(&s, 1);
    ok(sample(&s, 1).energy_mj > stuck, "and goes on");
    is_int(virtual_backend.driver_mark(s.lib, NULL, mark, sizeof mark, &err), 0,
           "driver mark");
    fault(&s, "reload");
    (void)virtual_backend.driver_mark(s.lib, NULL, other, sizeof other, &err);
    ok(strcmp(mark, other) != 0, "another load, another mark");
    now = sample(&s, 1);
    ok(now.enforced_mw != 300000 && now.energy_mj < stuck, "limit and counter are reset");
    close_scene(&s);
}

static void test_refused(void)
{
    static const char *const other[] = {"python", "train.py", NULL};
    static const char *const wrong[] = {"train", "--workload", "gpt9", NULL};
    static const char *const board[] = {"train", "--gpus", "5", NULL};
    struct scene s;
    uw_error err = {""};

    if (!open_scene(&s, "rtx6000", 2))
        return;
    is_int(start(&s, other, NULL, &err), -ENOENT, "no other program: %s", err.text);
    ok(start(&s, wrong, NULL, &err) < 0 && strstr(err.text, "gpt9"),
       "no such workload: %s", err.text);
    ok(start(&s, board, NULL, &err) < 0 && strstr(err.text, "0..1"), "no such board: %s",
       err.text);
    close_scene(&s);
}

int main(void)
{
    test_job();
    test_phases();
    test_limit();
    test_faults();
    test_refused();
    return done();
}
