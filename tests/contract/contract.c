/* A simulated node twice: the virtual backend on a virtual loop, and the NVML
 * backend with the simulated library on a real one.  Boards, jobs, faults and a
 * board that hangs are the same to whoever asks; so is the code here.  (What one
 * backend promises by itself is in test-backends.c.)
 *
 *     contract virtual
 *     contract nvml LIBRARY PATH-OF-UNDERWATT-SIM STATE-DIR
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/units.h"
#include "gpu/gpu.h"
#include "gpu/nvml/nvml.h"
#include "io/loop.h"
#include "sim/machine.h"
#include "tap.h"
#include "virtual/virtual-loop.h"
#include "virtual/virtual-world.h"

enum { N_BOARDS = 4 };

struct scene {
    struct loop *loop;
    const struct gpu_backend *b;
    struct virtual_world *world; /* NULL: a real process */
    const char *sim, *state;
    void *lib;
    int status;
    bool ended;
};

static uint64_t now_of(void *user)
{
    return loop_now_ns(user);
}

static int on_pause(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    (void)timer;
    (void)now_ns;
    loop_stop(user, 0);
    return 0;
}

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

static int on_end(struct loop_child *child, int status, void *user)
{
    struct scene *s = user;

    (void)child;
    s->status = status;
    s->ended = true;
    return 0;
}

static struct loop_child *start(struct scene *s, const char *const *args)
{
    const char *argv[16] = {s->sim ? s->sim : "underwatt-sim", "--state", s->state};
    size_t n = s->world ? 1 : 3; /* the virtual one has no state directory */
    struct loop_child *child = NULL;
    uw_error err = {""};

    while (*args && n < 15)
        argv[n++] = *args++;
    struct loop_child_opts opts = {
        .argv = argv, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1};
    s->ended = false;
    int r = loop_child_new(s->loop, &opts, on_end, s, &child, &err);
    ok(r == 0, "%s starts %s", *argv, err.text);
    return child;
}

/* One fault, at once, whatever the world is. */
static void fault(struct scene *s, const char *board, const char *kind)
{
    char text[64];
    struct sim_fault f;
    uw_error err = {""};

    (void)snprintf(text, sizeof text, "%s %s", board, kind);
    if (s->world) {
        int r = sim_fault_parse(text, &f, &err);
        if (!r)
            r = virtual_world_fault(s->world, &f, &err);
        ok(r == 0, "fault: %s %s", text, err.text);
        return;
    }
    const char *args[] = {"fault", board, kind, NULL};
    struct loop_child *child = start(s, args);
    for (int i = 0; i < 100 && !s->ended; i++)
        pass(s, 0.02);
    ok(s->ended && s->status == 0, "fault: %s", text);
    loop_child_free(child);
}

static struct gpu_dev *at(struct scene *s, size_t i)
{
    return s->b->at(s->lib, i);
}

static struct gpu_sample sample(struct scene *s, size_t i)
{
    struct gpu_sample now = {0};
    uw_error err = {""};

    int r = s->b->sample(at(s, i), ~0u, &now, &err);
    if (r)
        ok(false, "sample of board %zu: %s", i, err.text);
    return now;
}

static void test_identity(struct scene *s)
{
    const uint32_t can = GPU_CAN_ENERGY | GPU_CAN_INSTANT | GPU_CAN_LIMIT |
                         GPU_CAN_REASONS | GPU_CAN_UTIL | GPU_CAN_TEMP | GPU_CAN_CLOCKS |
                         GPU_CAN_PROCS | GPU_CAN_SET_LIMIT | GPU_CAN_LOCK_CLOCKS;

    is_int(s->b->count(s->lib), N_BOARDS, "four boards");
    ok(s->b->at(s->lib, N_BOARDS) == NULL, "no fifth");
    for (unsigned i = 0; i < N_BOARDS; i++) {
        const struct gpu_info *info = s->b->info(at(s, i));
        is_int(info->index, i, "board %u: index", i);
        ok(strncmp(info->uuid, "GPU-", 4) == 0, "UUID %s", info->uuid);
        for (unsigned k = 0; k < i; k++)
            ok(strcmp(info->uuid, s->b->info(at(s, k))->uuid) != 0, "its own");
        ok(info->simulated && strstr(info->name, "V100"), "simulated %s", info->name);
        is_int(info->arch, GPU_ARCH_VOLTA, "Volta");
        ok((info->abilities & can) == can, "abilities %#x", info->abilities);
        ok(!(info->abilities & GPU_CAN_AVERAGE), "no average field on a Volta");
        ok(strlen(info->pci_bus_id) == 16, "bus id %s", info->pci_bus_id);
        ok(info->has_minor && info->minor == i, "device file %u", info->minor);
        ok(info->clock_max_mhz > 1000 && !info->mig_enabled, "clock, no slices");
    }
}

static void test_sample(struct scene *s)
{
    const uint32_t want = GPU_HAS_POWER | GPU_HAS_INSTANT | GPU_HAS_ENERGY |
                          GPU_HAS_ENFORCED | GPU_HAS_REQUESTED | GPU_HAS_TEMP |
                          GPU_HAS_UTIL | GPU_HAS_CLOCKS | GPU_HAS_REASONS;
    struct gpu_sample a, b;
    uw_error err = {""};

    is_int(s->b->sample(at(s, 0), GPU_HAS_ENERGY, &a, &err), 0, "the energy alone");
    is_int(a.has, GPU_HAS_ENERGY, "is all there is");
    a = sample(s, 0);
    ok(a.began_ns <= a.energy_began_ns && a.energy_began_ns <= a.energy_at_ns &&
           a.energy_at_ns <= a.at_ns,
       "its times are in order");
    is_int(a.has & want, want, "everything is there");
    ok(!(a.has & GPU_HAS_AVERAGE), "but the average, which the board has not");
    ok(a.power_w > 20 && a.power_w < 80, "an idle board: %g W", a.power_w);
    pass(s, 1);
    b = sample(s, 0);
    ok(b.began_ns > a.at_ns, "later");
    double j = (double)(b.energy_mj - a.energy_mj) * 1e-3;
    ok(j > 10 && j < 100, "%g J in about a second", j);
}

static void test_limit(struct scene *s)
{
    struct gpu_limits lim;
    uw_error err = {""};

    is_int(s->b->limits(at(s, 2), &lim, &err), 0, "limits");
    ok(lim.min_mw < lim.default_mw && lim.default_mw <= lim.max_mw, "%u..%u..%u mW",
       lim.min_mw, lim.default_mw, lim.max_mw);
    is_int(s->b->set_limit(at(s, 2), lim.max_mw + 1, &err), -ERANGE, "above the range");
    ok(err.text[0] != '\0', "in words: %s", err.text);
    is_int(s->b->set_limit(at(s, 2), lim.min_mw - 1, &err), -ERANGE, "below the range");
    is_int(sample(s, 2).enforced_mw, lim.default_mw, "nothing has changed");
    is_int(s->b->set_limit(at(s, 2), lim.min_mw, &err), 0, "its lowest %s", err.text);
    is_int(sample(s, 2).enforced_mw, lim.min_mw, "is in force");
    is_int(sample(s, 2).requested_mw, lim.min_mw, "as requested");
    is_int(sample(s, 1).enforced_mw, lim.default_mw, "on that board alone");
    is_int(s->b->set_limit(at(s, 2), lim.default_mw, &err), 0, "and back");
    const struct gpu_info *info = s->b->info(at(s, 2));
    ok((info->abilities & GPU_CAN_LOCK_CLOCKS) && info->clock_min_mhz > 0 &&
           info->clock_min_mhz < info->clock_max_mhz,
       "clocks can be locked to %u..%u MHz", info->clock_min_mhz, info->clock_max_mhz);
    is_int(s->b->lock_clocks(at(s, 2), 600, 900, &err), 0, "clocks locked %s", err.text);
    is_int(s->b->lock_clocks(at(s, 2), 900, 600, &err), -ERANGE, "not upside down: %s",
           err.text);
    is_int(s->b->reset_clocks(at(s, 2), &err), 0, "and reset %s", err.text);
}

static void test_procs(struct scene *s)
{
    const char *args[] = {"train", "--gpus",   "0,1", "--phases",
                          "train", "--epochs", "50",  NULL};
    struct gpu_proc procs[GPU_PROCS_MAX];
    uw_error err = {""};
    size_t n = 99;

    is_int(s->b->procs(at(s, 0), procs, &n, &err), 0, "processes");
    is_int(n, 0, "none");
    struct loop_child *child = start(s, args);
    pass(s, 2);
    for (size_t i = 0; i < N_BOARDS; i++) {
        is_int(s->b->procs(at(s, i), procs, &n, &err), 0, "processes of board %zu", i);
        is_int(n, i < 2, "%d", i < 2);
        if (n == 1)
            ok(procs[0].pid == loop_child_pid(child) && procs[0].compute &&
                   procs[0].used_bytes > 0,
               "the job");
    }
    ok(sample(s, 0).power_w > 2 * sample(s, 3).power_w, "its board works");
    ok(sample(s, 0).util_gpu > 20, "and says so: %u %%", sample(s, 0).util_gpu);
    is_int(loop_child_kill(child, SIGKILL), 0, "kill -9");
    for (int i = 0; i < 100 && !s->ended; i++)
        pass(s, 0.05);
    ok(WIFSIGNALED(s->status), "ends it");
    pass(s, 0.3);
    is_int(s->b->procs(at(s, 0), procs, &n, &err), 0, "processes");
    is_int(n, 0, "none again");
    loop_child_free(child);
}

static void test_faults(struct scene *s)
{
    struct gpu_sample now;
    struct gpu_limits lim;
    struct gpu_proc procs[GPU_PROCS_MAX];
    uw_error err = {""};
    size_t n;

    fault(s, "1", "lost");
    is_int(s->b->sample(at(s, 1), ~0u, &now, &err), -ENODEV, "a lost board: sample");
    ok(err.text[0] != '\0', "in words: %s", err.text);
    is_int(s->b->limits(at(s, 1), &lim, &err), -ENODEV, "limits");
    is_int(s->b->set_limit(at(s, 1), 200000, &err), -ENODEV, "set");
    is_int(s->b->procs(at(s, 1), procs, &n, &err), -ENODEV, "processes");
    is_int(s->b->sample(at(s, 0), ~0u, &now, &err), 0, "another board answers");
    fault(s, "1", "found");
    is_int(s->b->sample(at(s, 1), ~0u, &now, &err), 0, "it is back");
    fault(s, "1", "refuse");
    is_int(s->b->set_limit(at(s, 1), 200000, &err), -EPERM, "refused: no permission");
    is_int(s->b->lock_clocks(at(s, 1), 600, 900, &err), -EPERM, "clocks too");
    ok(sample(s, 1).enforced_mw != 200000, "nothing has changed");
    fault(s, "1", "accept");
    is_int(s->b->set_limit(at(s, 1), 200000, &err), 0, "accepted");
    char before[128], after[128];
    is_int(s->b->driver_mark(s->lib, NULL, before, sizeof before, &err), 0,
           "driver's mark");
    is_int(s->b->driver_mark(s->lib, NULL, after, sizeof after, &err), 0, "again");
    is_str(after, before, "the same");
    uint64_t mj = sample(s, 1).energy_mj;
    fault(s, "all", "reload");
    is_int(s->b->driver_mark(s->lib, NULL, after, sizeof after, &err), 0,
           "after a reload");
    ok(before[0] && strcmp(before, after) != 0, "another: %s, %s", before, after);
    now = sample(s, 1);
    ok(now.enforced_mw == lim.default_mw || now.enforced_mw == 300000,
       "the default limit");
    ok(now.energy_mj < mj, "the counter begins anew");
}

struct call {
    struct scene *s;
    size_t board;
    struct gpu_sample got;
    int r, late;
    bool is_done, is_late;
};

static int do_sample(struct loop *loop, void *work)
{
    struct call *c = work;
    uw_error err;

    (void)loop;
    return c->s->b->sample(at(c->s, c->board), GPU_HAS_POWER, &c->got, &err);
}

static int on_done(struct loop *loop, void *work, int r)
{
    struct call *c = work;

    (void)loop;
    c->r = r;
    c->is_done = true;
    return 0;
}

static void on_late(struct loop *loop, void *work, int r)
{
    struct call *c = work;

    (void)loop;
    c->late = r;
    c->is_late = true;
}

static void test_hang(struct scene *s)
{
    struct loop_worker *worker[2] = {NULL, NULL};
    struct call call[2] = {{.s = s, .board = 3}, {.s = s, .board = 0}};
    uw_error err = {""};

    fault(s, "3", "hang");
    for (int i = 0; i < 2; i++) {
        struct loop_work work = {.fn = do_sample,
                                 .done = on_done,
                                 .late = on_late,
                                 .work = &call[i],
                                 .deadline_ns = 2 * NS_PER_S};
        is_int(loop_worker_new(s->loop, "board", &worker[i], &err), 0, "a worker");
        is_int(loop_worker_submit(worker[i], &work), 0, "and a call");
    }
    pass(s, 0.25);
    ok(call[1].is_done && call[1].r == 0, "the other board is not delayed");
    ok(!call[0].is_done, "the one that hangs is waited for");
    pass(s, 2);
    ok(call[0].is_done && call[0].r == -ETIMEDOUT, "until its deadline");
    ok(loop_worker_hangs(worker[0]), "its worker hangs");
    fault(s, "3", "release");
    for (int i = 0; i < 100 && !call[0].is_late; i++)
        pass(s, s->world ? 100 : 0.05); /* the virtual call takes an hour */
    ok(call[0].is_late, "released, it returns late");
    pass(s, 0.01);
    ok(!loop_worker_hangs(worker[0]), "and its worker works again");
    loop_worker_free(worker[0]);
    loop_worker_free(worker[1]);
}

static bool open_virtual(struct scene *s, void **ret_user)
{
    static struct sim_machine machine;
    uw_error err = {""};

    s->b = &virtual_backend;
    int r = loop_new_virtual(1000 * NS_PER_S, 1700000000, &s->loop, &err);
    if (!r)
        r = sim_machine_builtin("v100", N_BOARDS, &machine, &err);
    if (!r)
        r = virtual_world_new(s->loop, &machine, 3, &s->world, &err);
    *ret_user = s->world;
    return ok(r == 0, "a virtual node %s", err.text);
}

int main(int argc, char **argv)
{
    struct scene s = {0};
    struct gpu_open_opts opts = {0};
    uw_error err = {""};

    if (argc > 1 && strcmp(argv[1], "virtual") == 0) {
        if (!open_virtual(&s, &opts.backend_user))
            return done();
    } else if (argc > 4 && strcmp(argv[1], "nvml") == 0) {
        s.b = &nvml_backend;
        s.sim = argv[3];
        s.state = argv[4];
        opts.source = argv[2];
        if (!ok(loop_new_real((struct loop_clock){0, 1}, &s.loop, &err) == 0, "a loop %s",
                err.text))
            return done();
    } else {
        return skip_all("contract virtual | contract nvml LIBRARY UNDERWATT-SIM STATE");
    }
    opts.clock = (struct gpu_clock){now_of, s.loop};
    if (ok(s.b->open(&opts, &s.lib, &err) == 0, "%s opens %s", s.b->name, err.text)) {
        test_identity(&s);
        test_sample(&s);
        test_limit(&s);
        test_procs(&s);
        test_faults(&s);
        test_hang(&s);
        s.b->close(s.lib);
    }
    virtual_world_free(s.world);
    loop_free(s.loop);
    return done();
}
