#include "virtual/virtual-world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"
#include "gpu/nvml/nvml.h"
#include "sim/job.h"
#include "sim/report.h"
#include "sim/world.h"
#include "virtual/launching.h"
#include "virtual/virtual-loop.h"

enum {
    PROGRAMS_MAX = SIM_JOBS_MAX,
    LAUNCHES_MS = 20,
    WAIT_STATUS_OF_EXIT = 8, /* shift of an exit code in a waitpid() status */
};

struct program {
    struct virtual_world *world;
    pid_t pid; /* 0: free */
    unsigned job;
    struct report *report;
    struct launching *launching;
    struct sim_job_state last;
    struct proc_facts facts; /* user and cgroup come from its environment */
};

struct virtual_world {
    struct loop *loop;
    struct sim_world *sim;
    struct sim_machine copy;
    uid_t uid;           /* user that sets limits */
    uint64_t counter_ns; /* what a call that reads the counter takes */
    bool uncounted;
    struct loop_timer *timer, *launches;
    struct program program[PROGRAMS_MAX];
    struct uw_progress_page page;
};

struct gpu_dev {
    struct virtual_world *world;
    size_t index;
};

struct library {
    struct virtual_world *world;
    struct gpu_clock clock;
    struct gpu_dev dev[SIM_BOARDS_MAX];
    struct gpu_info info[SIM_BOARDS_MAX];
};

/* ---- time ---- */

static void update(struct virtual_world *w)
{
    sim_world_advance(w->sim, loop_now_ns(w->loop));
}

static void plan(struct virtual_world *w)
{
    loop_timer_set(w->timer, sim_world_next_ns(w->sim), 0);
}

static void program_end(struct program *p, int status)
{
    struct loop *loop = p->world->loop;
    pid_t pid = p->pid;

    sim_world_job_remove(p->world->sim, p->job);
    report_close(p->report);
    launching_close(p->launching);
    *p = (struct program){.world = p->world};
    loop_virtual_exit(loop, pid, status);
}

static void tell(struct program *p)
{
    struct sim_job_state now;

    sim_world_job_state(p->world->sim, p->job, &now);
    if (now.steps == p->last.steps && now.phase == p->last.phase &&
        now.done == p->last.done)
        return;
    p->last = now;
    if (p->report)
        report_write(p->report, now.steps, now.last_step_ns, now.phase);
    if (now.done)
        program_end(p, EXIT_SUCCESS << WAIT_STATUS_OF_EXIT);
}

static int on_event(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct virtual_world *w = user;

    (void)timer;
    (void)now_ns;
    update(w);
    for (size_t i = 0; i < PROGRAMS_MAX; i++)
        if (w->program[i].pid)
            tell(&w->program[i]);
    plan(w);
    return 0;
}

static int on_launches(struct loop_timer *timer, uint64_t now_ns, void *user)
{
    struct virtual_world *w = user;
    struct sim_job_state now;
    bool any = false;

    update(w);
    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        if (!w->program[i].pid || !w->program[i].launching)
            continue;
        sim_world_job_state(w->sim, w->program[i].job, &now);
        launching_tell(w->program[i].launching, &now, now_ns);
        any = true;
    }
    if (!any)
        loop_timer_set(timer, UINT64_MAX, 0);
    plan(w);
    return 0;
}

/* ---- programs ---- */

static const char *from_env(const char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static int open_report(struct virtual_world *w, const struct loop_child_opts *opts,
                       struct report **ret, uw_error *err)
{
    const char *path = from_env(opts->env, "UNDERWATT_PROGRESS");

    if (!path || !*path)
        return 0;
    /* Readers check whether the slot's pid lives: use this process, the virtual pid does
     * not exist.
     */
    if (strcmp(path, VIRTUAL_PROGRESS) == 0)
        return report_open_page(&w->page, (uint64_t)getpid(), ret, err);
    return report_open(path, (uint64_t)getpid(), ret, err);
}

static int start_train(struct virtual_world *w, const struct loop_child_opts *opts,
                       const char *const *args, size_t n, struct program *p,
                       uw_error *err)
{
    struct sim_job job;

    int r = sim_job_parse(args, n, &job, err);
    if (r)
        return r;
    update(w);
    auto_(report_close) struct report *report = NULL;
    auto_(launching_close) struct launching *launching = NULL;
    const char *path = from_env(opts->env, "UNDERWATT_PROGRESS");
    const char *how = from_env(opts->env, VIRTUAL_LAUNCHES);
    if (path && how)
        r = launching_open(path, how, (uint64_t)getpid(), &launching, err);
    else
        r = open_report(w, opts, &report, err);
    if (!r)
        r = sim_world_job_add(w->sim, &job, p->pid, &p->job, err);
    if (r)
        return r;
    p->report = take(report);
    p->launching = take(launching);
    if (p->launching)
        loop_timer_set(w->launches, loop_now_ns(w->loop), LAUNCHES_MS * NS_PER_MS);
    sim_world_job_state(w->sim, p->job, &p->last);
    if (p->report)
        report_write(p->report, p->last.steps, p->last.last_step_ns, p->last.phase);
    plan(w);
    return 0;
}

static void describe(struct program *p, const struct loop_child_opts *opts)
{
    const char *uid = from_env(opts->env, VIRTUAL_UID);
    const char *cgroup = from_env(opts->env, VIRTUAL_CGROUP);
    struct proc_facts *f = &p->facts;
    uint64_t value = 0;

    if (uid && parse_u64(uid, &value, NULL) < 0)
        value = 0;
    *f = (struct proc_facts){
        .pid = p->pid,
        .ppid = 1,
        .session = p->pid,
        .start = loop_now_ns(p->world->loop) / (NS_PER_S / 100) + 1, /* ticks */
        .uid = (uid_t)value,
        .comm = "train",
    };
    int n = snprintf(f->cgroup, sizeof f->cgroup, "0::%s\n", cgroup ? cgroup : "/");
    f->n_cgroup = n > 0 && (size_t)n < sizeof f->cgroup ? (size_t)n : 0;
}

static bool is_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');

    return strcmp(slash ? slash + 1 : path, name) == 0;
}

static int on_start(const struct loop_child_opts *opts, pid_t pid, void *user,
                    uw_error *err)
{
    struct virtual_world *w = user;
    const char *const *args = opts->argv;
    size_t n = 0;
    size_t i = 0;

    if (args[0] && is_name(args[0], "underwatt-sim"))
        args++;
    if (!args[0] || strcmp(args[0], "train") != 0)
        return fail(err, -ENOENT, "%s: a virtual world runs 'underwatt-sim train …' only",
                    opts->argv[0] ? opts->argv[0] : "");
    args++;
    while (args[n])
        n++;
    while (i < PROGRAMS_MAX && w->program[i].pid)
        i++;
    if (i == PROGRAMS_MAX)
        return fail(err, -EAGAIN, "more than %d programs", PROGRAMS_MAX);
    struct program *p = &w->program[i];
    *p = (struct program){.world = w, .pid = pid};
    describe(p, opts);
    int r = start_train(w, opts, args, n, p, err);
    if (r)
        *p = (struct program){.world = w};
    return r;
}

static int on_kill(pid_t pid, int signo, void *user)
{
    struct virtual_world *w = user;

    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        struct program *p = &w->program[i];
        if (p->pid != pid || pid == 0)
            continue;
        if (signo == 0 || signo == SIGWINCH || signo == SIGCHLD)
            return 0;
        update(w);
        if (signo == SIGSTOP || signo == SIGTSTP || signo == SIGCONT) {
            sim_world_job_pause(w->sim, p->job, signo != SIGCONT);
            plan(w);
            return 0;
        }
        program_end(p, signo);
        plan(w);
        return 0;
    }
    return -ESRCH;
}

/* ---- the world ---- */

int virtual_world_new(struct loop *loop, const struct sim_machine *machine, uint64_t seed,
                      struct virtual_world **ret, uw_error *err)
{
    auto_(virtual_world_free) struct virtual_world *w = calloc(1, sizeof *w);

    if (!w)
        return fail(err, -ENOMEM, "out of memory for a virtual world");
    w->loop = loop;
    w->copy = *machine;
    memcpy(w->page.magic, UW_PROGRESS_MAGIC, sizeof w->page.magic);
    w->page.version = UW_PROGRESS_VERSION;
    w->page.slots = UW_PROGRESS_SLOTS;
    int r = sim_world_new(&w->copy, seed, loop_now_ns(loop), &w->sim, err);
    if (!r)
        r = loop_timer_new(loop, UINT64_MAX, 0, on_event, w, &w->timer, err);
    if (!r)
        r = loop_timer_new(loop, UINT64_MAX, 0, on_launches, w, &w->launches, err);
    if (r)
        return r;
    plan(w);
    struct loop_virtual_programs programs = {on_start, on_kill, w};
    loop_virtual_programs(loop, &programs);
    *ret = take(w);
    return 0;
}

void virtual_world_free(struct virtual_world *world)
{
    if (!world)
        return;
    for (size_t i = 0; i < PROGRAMS_MAX; i++) {
        report_close(world->program[i].report);
        launching_close(world->program[i].launching);
    }
    loop_timer_free(world->timer);
    loop_timer_free(world->launches);
    sim_world_free(world->sim);
    free(world);
}

const struct uw_progress_page *virtual_world_progress(const struct virtual_world *world)
{
    return &world->page;
}

double virtual_world_true_j(struct virtual_world *world, size_t board)
{
    update(world);
    return sim_world_true_j(world->sim, board);
}

double virtual_world_true_w(struct virtual_world *world, size_t board)
{
    update(world);
    return sim_world_true_w(world->sim, board);
}

double virtual_world_true_c(struct virtual_world *world, size_t board)
{
    update(world);
    return sim_world_true_c(world->sim, board);
}

void virtual_world_set_ambient(struct virtual_world *world, size_t board,
                               double ambient_c)
{
    update(world);
    sim_world_set_ambient(world->sim, board, ambient_c);
    plan(world);
}

void virtual_world_set_trait(struct virtual_world *world, size_t board,
                             const struct plant_trait *trait)
{
    update(world);
    sim_world_set_trait(world->sim, board, trait);
    plan(world);
}

uint32_t virtual_world_locked_mhz(struct virtual_world *world, size_t board)
{
    update(world);
    return sim_world_locked_mhz(world->sim, board);
}

int virtual_world_fault(struct virtual_world *world, const struct sim_fault *fault,
                        uw_error *err)
{
    update(world);
    int r = sim_world_fault(world->sim, fault, err);
    plan(world);
    return r;
}

int virtual_world_proc(pid_t pid, struct proc_facts *ret, void *world)
{
    const struct virtual_world *w = world;

    for (size_t i = 0; i < PROGRAMS_MAX; i++)
        if (pid > 0 && w->program[i].pid == pid) {
            *ret = w->program[i].facts;
            return 0;
        }
    return -ESRCH;
}

void virtual_world_set_uid(struct virtual_world *world, uid_t uid)
{
    world->uid = uid;
}

void virtual_world_uncounted(struct virtual_world *world)
{
    world->uncounted = true;
}

void virtual_world_set_counter_ns(struct virtual_world *world, uint64_t ns)
{
    world->counter_ns = ns;
}

/* ---- struct gpu_backend ---- */

static void fill_info(const struct sim_identity *id, unsigned index, bool uncounted,
                      struct gpu_info *ret)
{
    uint32_t can = GPU_CAN_LIMIT | GPU_CAN_SET_LIMIT | GPU_CAN_REASONS | GPU_CAN_UTIL |
                   GPU_CAN_TEMP | GPU_CAN_CLOCKS | GPU_CAN_PROCS;

    if (id->abilities & SIM_HAS_ENERGY)
        can |= GPU_CAN_ENERGY;
    if (id->abilities & SIM_HAS_INSTANT)
        can |= GPU_CAN_INSTANT;
    if (id->abilities & SIM_HAS_AVERAGE)
        can |= GPU_CAN_AVERAGE;
    if (id->abilities & SIM_HAS_LOCKED_CLOCKS)
        can |= GPU_CAN_LOCK_CLOCKS;
    if (!uncounted)
        can |= GPU_CAN_LIMITED;
    *ret = (struct gpu_info){
        .index = index,
        .arch = (enum gpu_arch)id->arch,
        .abilities = can,
        .simulated = true,
        .has_persistence = true,
        .has_minor = true,
        .minor = (uint32_t)id->minor,
        .mig_enabled = id->mig,
        .clock_max_mhz = id->sm_max_mhz,
        .clock_min_mhz = id->sm_min_mhz,
    };
    memcpy(ret->uuid, id->uuid, sizeof ret->uuid);
    memcpy(ret->name, id->name, sizeof ret->name);
    memcpy(ret->pci_bus_id, id->bus_id, sizeof ret->pci_bus_id);
}

static int lib_open(const struct gpu_open_opts *opts, void **ret_lib, uw_error *err)
{
    struct virtual_world *w = opts->backend_user;

    if (!w)
        return fail(err, GPU_ABSENT, "no virtual world");
    struct library *lib = calloc(1, sizeof *lib);
    if (!lib)
        return fail(err, -ENOMEM, "out of memory for virtual boards");
    lib->world = w;
    lib->clock = opts->clock;
    for (size_t i = 0; i < sim_world_n_boards(w->sim); i++) {
        lib->dev[i] = (struct gpu_dev){.world = w, .index = i};
        fill_info(sim_world_identity(w->sim, i), (unsigned)i, w->uncounted,
                  &lib->info[i]);
    }
    *ret_lib = lib;
    return 0;
}

static void lib_close(void *lib)
{
    free(lib);
}

static size_t lib_count(const void *lib)
{
    const struct library *l = lib;

    return sim_world_n_boards(l->world->sim);
}

static struct gpu_dev *lib_at(void *lib, size_t i)
{
    struct library *l = lib;

    return i < lib_count(lib) ? &l->dev[i] : NULL;
}

/* The library that a board belongs to, found from the board's place in its array. */
static const struct library *library_of(const struct gpu_dev *dev)
{
    const char *first = (const char *)(dev - dev->index);

    return (const struct library *)(const void *)(first - offsetof(struct library, dev));
}

static const struct gpu_info *dev_info(const struct gpu_dev *dev)
{
    return &library_of(dev)->info[dev->index];
}

static int result(enum sim_result r, uw_error *err)
{
    switch (r) {
    case SIM_OK:
        return 0;
    case SIM_LOST:
        return fail(err, -ENODEV, "GPU is lost");
    case SIM_NO_PERMISSION:
        return fail(err, -EPERM, "Insufficient Permissions");
    case SIM_NOT_SUPPORTED:
        return fail(err, -ENOTSUP, "Not Supported");
    case SIM_INVALID:
        return fail(err, -ERANGE, "Invalid Argument");
    default:
        return fail(err, -EIO, "result %d", (int)r);
    }
}

/* The board's readings now.  A call on a board that hangs takes VIRTUAL_HANG_NS. */
static int now_of(struct gpu_dev *dev, struct sim_readings *ret, uw_error *err)
{
    struct virtual_world *w = dev->world;

    update(w);
    sim_world_readings(w->sim, dev->index, ret);
    if ((ret->faults & SIM_FAULT_LOST) || sim_world_driver_gone(w->sim))
        return result(SIM_LOST, err);
    if (ret->faults & SIM_FAULT_HANG) {
        loop_spend(w->loop, VIRTUAL_HANG_NS);
        return fail(err, -EIO, "hangs");
    }
    return 0;
}

static uint64_t clock_of(const struct gpu_dev *dev)
{
    const struct gpu_clock *clock = &library_of(dev)->clock;

    return clock->now_ns ? clock->now_ns(clock->user) : loop_now_ns(dev->world->loop);
}

static int dev_sample(struct gpu_dev *dev, uint32_t want, struct gpu_sample *ret,
                      uw_error *err)
{
    const struct gpu_info *info = dev_info(dev);
    struct sim_readings now;
    uint32_t has = GPU_HAS_POWER | GPU_HAS_ENFORCED | GPU_HAS_REQUESTED | GPU_HAS_UTIL |
                   GPU_HAS_TEMP | GPU_HAS_CLOCKS | GPU_HAS_REASONS;

    uint64_t began = clock_of(dev);
    int r = now_of(dev, &now, err);
    if (r)
        return r;
    has |= info->abilities & GPU_CAN_INSTANT ? GPU_HAS_INSTANT : 0;
    has |= info->abilities & GPU_CAN_AVERAGE ? GPU_HAS_AVERAGE : 0;
    has |= info->abilities & GPU_CAN_ENERGY ? GPU_HAS_ENERGY : 0;
    has |= info->abilities & GPU_CAN_LIMITED ? GPU_HAS_LIMITED : 0;
    if (has & want & GPU_HAS_ENERGY && dev->world->counter_ns)
        loop_spend(dev->world->loop, dev->world->counter_ns);
    uint64_t at = clock_of(dev);
    *ret = (struct gpu_sample){
        .has = has & want,
        .began_ns = began,
        .at_ns = at,
        .energy_began_ns = began,
        .energy_at_ns = at,
        .power_w = (double)now.power_mw * 1e-3,
        .instant_w = (double)now.instant_mw * 1e-3,
        .average_w = (double)now.average_mw * 1e-3,
        .energy_mj = now.energy_mj,
        .enforced_mw = (uint32_t)now.enforced_mw,
        .requested_mw = (uint32_t)now.requested_mw,
        .util_gpu = (uint32_t)now.util_gpu,
        .util_mem = (uint32_t)now.util_mem,
        .temp_c = (int32_t)now.temp_c,
        .sm_mhz = (uint32_t)now.sm_mhz,
        .mem_mhz = (uint32_t)now.mem_mhz,
        .reasons = now.reasons,
        .limited_ns = now.power_violation_ns,
    };
    return 0;
}

static int dev_limits(struct gpu_dev *dev, struct gpu_limits *ret, uw_error *err)
{
    const struct sim_identity *id = sim_world_identity(dev->world->sim, dev->index);
    struct sim_readings now;

    int r = now_of(dev, &now, err);
    if (!r)
        *ret = (struct gpu_limits){id->min_mw, id->max_mw, id->default_mw};
    return r;
}

/* Spends the time of a set request, whatever its result. */
static void spend_set(struct gpu_dev *dev)
{
    const struct sim_machine *m = &dev->world->copy;
    uint64_t own = m->board[dev->index].plant.set_limit_ns;

    loop_spend(dev->world->loop, m->set_latency_ns ? m->set_latency_ns : own);
    plan(dev->world);
}

static int dev_set_limit(struct gpu_dev *dev, uint32_t mw, uw_error *err)
{
    struct virtual_world *w = dev->world;
    struct sim_readings now;

    int r = now_of(dev, &now, err);
    if (r)
        return r;
    enum sim_result got = sim_world_set_limit(w->sim, dev->index, mw, w->uid);
    spend_set(dev);
    return result(got, err);
}

static int dev_lock_clocks(struct gpu_dev *dev, uint32_t min_mhz, uint32_t max_mhz,
                           uw_error *err)
{
    struct virtual_world *w = dev->world;
    struct sim_readings now;

    int r = now_of(dev, &now, err);
    if (r)
        return r;
    enum sim_result got =
        sim_world_lock_clocks(w->sim, dev->index, min_mhz, max_mhz, w->uid);
    spend_set(dev);
    return result(got, err);
}

static int dev_reset_clocks(struct gpu_dev *dev, uw_error *err)
{
    struct virtual_world *w = dev->world;
    struct sim_readings now;

    int r = now_of(dev, &now, err);
    if (r)
        return r;
    enum sim_result got = sim_world_reset_clocks(w->sim, dev->index, w->uid);
    spend_set(dev);
    return result(got, err);
}

static int dev_procs(struct gpu_dev *dev, struct gpu_proc *ret, size_t *ret_n,
                     uw_error *err)
{
    struct sim_readings now;
    struct sim_procs procs;

    int r = now_of(dev, &now, err);
    if (r)
        return r;
    sim_world_procs(dev->world->sim, dev->index, 0, &procs);
    for (size_t i = 0; i < procs.n; i++)
        ret[i] = (struct gpu_proc){.pid = (pid_t)procs.proc[i].pid,
                                   .used_bytes = procs.proc[i].used_bytes,
                                   .compute = true};
    *ret_n = procs.n;
    return 0;
}

static int dev_use(struct gpu_dev *dev, struct gpu_use *ret, size_t *ret_n, uw_error *err)
{
    struct sim_readings now;
    struct sim_procs procs;
    size_t n = 0;

    int r = now_of(dev, &now, err);
    if (r)
        return r;
    sim_world_procs(dev->world->sim, dev->index, 0, &procs);
    for (size_t i = 0; i < procs.n; i++)
        if (procs.proc[i].util_gpu > 0)
            ret[n++] = (struct gpu_use){.pid = (pid_t)procs.proc[i].pid,
                                        .sm_percent = (uint32_t)procs.proc[i].util_gpu};
    *ret_n = n;
    return 0;
}

/* A simulated board has the sensors of the real model. */
static void dev_sensors(const struct gpu_dev *dev, struct sensor_model *ret)
{
    nvml_sensors(dev_info(dev)->arch, dev_info(dev)->name, ret);
}

static int lib_driver_mark(void *lib, const struct gpu_dev *dev, char *ret, size_t size,
                           uw_error *err)
{
    struct library *l = lib;
    (void)dev;

    update(l->world);
    int n = snprintf(ret, size, "sim-%016llx",
                     (unsigned long long)sim_world_load_id(l->world->sim));
    return n < 0 || (size_t)n >= size ? fail(err, -ERANGE, "driver mark: no room") : 0;
}

const struct gpu_backend virtual_backend = {
    .name = "virtual",
    .open = lib_open,
    .close = lib_close,
    .count = lib_count,
    .at = lib_at,
    .info = dev_info,
    .sample = dev_sample,
    .sensors = dev_sensors,
    .limits = dev_limits,
    .set_limit = dev_set_limit,
    .lock_clocks = dev_lock_clocks,
    .reset_clocks = dev_reset_clocks,
    .procs = dev_procs,
    .use = dev_use,
    .driver_mark = lib_driver_mark,
};
