#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/nearest.h"
#include "base/rng.h"
#include "base/units.h"
#include "plant/plant.h"
#include "sim/catalogue.h"
#include "sim/identity.h"

#define PAUSE_SCALE 1e5 /* factor of a step's time while the process is stopped */

enum { PENDING_MAX = 2 * SIM_FAULTS_MAX, FAN_IDLE = 30, FAN_PER_K = 2, FAN_FROM_C = 45 };

struct board {
    struct plant_gpu *gpu;
    struct sim_identity id;
    uint64_t faults; /* enum sim_fault_flag */
    uint32_t locked_min, locked_max;
    bool persistence;
    uint64_t limit_writes, clock_resets;
};

struct job {
    struct plant_job *plant;
    uint64_t boards; /* bit mask */
    pid_t pid;
    bool used, paused, driven;
    bool steps_alone;               /* its page reports no phases */
    uint32_t change_at;             /* step of the change still to come; 0: none */
    double time_scale, power_scale; /* now */
    double next_time, next_power;   /* after the change */
};

struct sim_world {
    uint64_t start_ns, now_ns;
    struct board board[SIM_BOARDS_MAX];
    size_t n_boards;
    struct job job[SIM_JOBS_MAX];
    struct sim_catalogue works;
    struct sim_fault pending[PENDING_MAX]; /* at_ns is absolute */
    size_t n_pending;
    bool may_anyone;
    uint32_t uids[SIM_UIDS_MAX];
    size_t n_uids;
    uint64_t load_id;
    bool driver_gone;
};

/* ---- start and end ---- */

static int board_new(const struct sim_machine_board *m, uint64_t seed, unsigned index,
                     uint64_t start_ns, struct board *ret, uw_error *err)
{
    struct plant_gpu_opts opts = {
        .board = &m->plant,
        .seed = seed + 1000003ull * (index + 1u),
        .start_ns = start_ns,
        .noise_sd = m->speed_noise,
        .noise_memory_s = m->speed_memory_s,
        .ideal = m->ideal,
        .gain = m->gain,
        .trait = m->trait,
    };

    sim_identity_fill(m, seed, index, &ret->id);
    int r = plant_gpu_new(&opts, &ret->gpu, err);
    if (r)
        return r;
    ret->persistence = true;
    if (m->limit_mw)
        plant_gpu_set_cap(ret->gpu, m->limit_mw);
    return 0;
}

int sim_world_new(const struct sim_machine *machine, uint64_t seed, uint64_t start_ns,
                  struct sim_world **ret, uw_error *err)
{
    auto_(sim_world_free) struct sim_world *w = calloc(1, sizeof *w);
    struct rng g;

    if (!w)
        return fail(err, -ENOMEM, "out of memory for a simulated world");
    seed = seed ? seed : machine->seed;
    rng_init(&g, seed ^ start_ns);
    w->start_ns = start_ns;
    w->now_ns = start_ns;
    w->load_id = rng_u64(&g) | 1u;
    w->may_anyone = machine->may_set == SIM_MAY_ANYONE;
    w->n_uids = machine->n_uids;
    memcpy(w->uids, machine->uids, sizeof w->uids);
    for (size_t i = 0; i < machine->n_boards; i++) {
        int r =
            board_new(&machine->board[i], seed, (unsigned)i, start_ns, &w->board[i], err);
        if (r)
            return r;
        w->n_boards++;
    }
    for (size_t i = 0; i < machine->n_faults; i++) {
        w->pending[i] = machine->fault[i];
        w->pending[i].at_ns += start_ns;
    }
    w->n_pending = machine->n_faults;
    int r = sim_catalogue_fill(machine, &w->works, err);
    if (r)
        return r;
    *ret = take(w);
    return 0;
}

void sim_world_free(struct sim_world *world)
{
    if (!world)
        return;
    for (size_t i = 0; i < SIM_JOBS_MAX; i++)
        plant_job_free(world->job[i].plant);
    for (size_t i = 0; i < SIM_BOARDS_MAX; i++)
        plant_gpu_free(world->board[i].gpu);
    free(world);
}

/* ---- faults ---- */

static void reset_driver_state(struct board *b)
{
    plant_gpu_reload(b->gpu);
    b->locked_min = b->locked_max = 0;
    b->persistence = true;
}

static void reload(struct sim_world *w)
{
    for (size_t i = 0; i < w->n_boards; i++)
        reset_driver_state(&w->board[i]);
    w->load_id += 2; /* stays odd: never 0 */
    w->driver_gone = false;
}

void sim_world_reset(struct sim_world *world, size_t i)
{
    struct board *b = &world->board[i];

    reset_driver_state(b);
    if (b->faults & SIM_FAULT_STUCK)
        plant_gpu_stick_counter(b->gpu, false);
    b->faults = 0;
}

static void set_flag(struct board *b, enum sim_fault_flag flag, bool on)
{
    b->faults = on ? b->faults | flag : b->faults & ~(uint64_t)flag;
}

/* Applies the clock lock, unless the board ignores locks. */
static void apply_lock(struct board *b)
{
    bool deaf = b->faults & SIM_FAULT_IGNORE;

    plant_gpu_lock_clocks(b->gpu, deaf ? 0 : b->locked_min, deaf ? 0 : b->locked_max);
}

static const enum sim_fault_kind undoing[SIM_FAULT_K_N] = {
    [SIM_FAULT_K_LOST] = SIM_FAULT_K_FOUND,    [SIM_FAULT_K_HANG] = SIM_FAULT_K_RELEASE,
    [SIM_FAULT_K_REFUSE] = SIM_FAULT_K_ACCEPT, [SIM_FAULT_K_UNLOAD] = SIM_FAULT_K_RELOAD,
    [SIM_FAULT_K_STUCK] = SIM_FAULT_K_UNSTUCK, [SIM_FAULT_K_IGNORE] = SIM_FAULT_K_HEED,
};

static void hit(struct board *b, const struct sim_fault *f)
{
    static const enum sim_fault_flag flags[SIM_FAULT_K_N] = {
        [SIM_FAULT_K_LOST] = SIM_FAULT_LOST,     [SIM_FAULT_K_HANG] = SIM_FAULT_HANG,
        [SIM_FAULT_K_REFUSE] = SIM_FAULT_REFUSE, [SIM_FAULT_K_STUCK] = SIM_FAULT_STUCK,
        [SIM_FAULT_K_IGNORE] = SIM_FAULT_IGNORE,
    };

    for (unsigned k = 0; k < SIM_FAULT_K_N; k++)
        if (flags[k] && (f->kind == k || f->kind == undoing[k]))
            set_flag(b, flags[k], f->kind == k);
    if (f->kind == SIM_FAULT_K_STUCK || f->kind == SIM_FAULT_K_UNSTUCK)
        plant_gpu_stick_counter(b->gpu, f->kind == SIM_FAULT_K_STUCK);
    if (f->kind == SIM_FAULT_K_IGNORE || f->kind == SIM_FAULT_K_HEED)
        apply_lock(b);
    if (f->kind == SIM_FAULT_K_LIMIT)
        plant_gpu_set_cap(b->gpu, f->mw);
}

static void apply(struct sim_world *w, const struct sim_fault *f)
{
    if (f->kind == SIM_FAULT_K_RELOAD)
        reload(w);
    else if (f->kind == SIM_FAULT_K_UNLOAD)
        w->driver_gone = true;
    else
        for (size_t i = 0; i < w->n_boards; i++)
            if (f->board == SIM_ALL_BOARDS || f->board == i)
                hit(&w->board[i], f);
    if (f->for_ns && w->n_pending < PENDING_MAX)
        w->pending[w->n_pending++] = (struct sim_fault){
            .at_ns = w->now_ns + f->for_ns,
            .kind = undoing[f->kind],
            .board = f->board,
        };
}

int sim_world_no_board(const struct sim_world *w, uint64_t board, uw_error *err)
{
    if (w->n_boards == 1)
        return fail(err, -EINVAL, "no board %" PRIu64 ": the only board is 0", board);
    return fail(err, -EINVAL, "board %" PRIu64 " is outside 0..%zu", board,
                w->n_boards - 1);
}

static int check_fault(const struct sim_world *w, const struct sim_fault *f,
                       uw_error *err)
{
    if (f->board != SIM_ALL_BOARDS && f->board >= w->n_boards)
        return sim_world_no_board(w, f->board, err);
    for (size_t i = 0; f->kind == SIM_FAULT_K_LIMIT && i < w->n_boards; i++) {
        const struct sim_identity *id = &w->board[i].id;
        if ((f->board == SIM_ALL_BOARDS || f->board == i) &&
            (f->mw < id->min_mw || f->mw > id->max_mw))
            return fail(err, -EINVAL, "board %zu: %g W is outside %g..%g W", i,
                        w_of_mw(f->mw), w_of_mw(id->min_mw), w_of_mw(id->max_mw));
    }
    if (f->for_ns && w->n_pending == PENDING_MAX)
        return fail(err, -EINVAL, "more than %d faults are pending", PENDING_MAX);
    return 0;
}

int sim_world_fault(struct sim_world *world, const struct sim_fault *fault, uw_error *err)
{
    int r = check_fault(world, fault, err);

    if (!r)
        apply(world, fault);
    return r;
}

/* ---- time ---- */

/* Changes the cost of a job's steps once it has reached step change_at. */
static void change_job(struct job *job)
{
    struct plant_job_state s;

    plant_job_state(job->plant, &s);
    if (job->change_at == 0 || s.steps < job->change_at || job->paused)
        return;
    job->change_at = 0;
    job->time_scale = job->next_time;
    job->power_scale = job->next_power;
    plant_job_scale(job->plant, job->time_scale, job->power_scale);
}

static void advance_boards(struct sim_world *w, uint64_t to_ns)
{
    for (size_t i = 0; i < SIM_JOBS_MAX; i++)
        if (w->job[i].plant) {
            plant_job_advance(w->job[i].plant, to_ns);
            change_job(&w->job[i]);
        }
    for (size_t i = 0; i < w->n_boards; i++)
        plant_gpu_advance(w->board[i].gpu, to_ns);
    w->now_ns = to_ns;
}

/* The earliest fault that is due; n_pending: none. */
static size_t next_fault(const struct sim_world *w, uint64_t now_ns)
{
    size_t best = w->n_pending;

    for (size_t i = 0; i < w->n_pending; i++)
        if (w->pending[i].at_ns <= now_ns &&
            (best == w->n_pending || w->pending[i].at_ns < w->pending[best].at_ns))
            best = i;
    return best;
}

void sim_world_advance(struct sim_world *world, uint64_t now_ns)
{
    size_t i;

    if (now_ns <= world->now_ns && world->n_pending == 0)
        return;
    while ((i = next_fault(world, now_ns)) < world->n_pending) {
        struct sim_fault f = world->pending[i];
        /* keep the order of the others: faults at the same time happen as written */
        memmove(&world->pending[i], &world->pending[i + 1],
                (world->n_pending - i - 1) * sizeof f);
        world->n_pending--;
        if (f.at_ns > world->now_ns)
            advance_boards(world, f.at_ns);
        apply(world, &f);
    }
    if (now_ns > world->now_ns)
        advance_boards(world, now_ns);
}

static uint64_t fault_ns(const struct sim_world *w)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < w->n_pending; i++)
        if (w->pending[i].at_ns < next)
            next = w->pending[i].at_ns;
    return next;
}

uint64_t sim_world_next_ns(const struct sim_world *world)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < SIM_JOBS_MAX; i++) {
        struct plant_job_state s;
        if (!world->job[i].plant)
            continue;
        plant_job_state(world->job[i].plant, &s);
        uint64_t change = plant_job_next_ns(world->job[i].plant);
        uint64_t step = plant_job_when_ns(world->job[i].plant, s.steps + 1);
        next = change < next ? change : next;
        next = step < next ? step : next;
    }
    uint64_t fault = fault_ns(world);
    return fault < next ? fault : next;
}

uint64_t sim_world_driven_ns(const struct sim_world *world)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < SIM_JOBS_MAX; i++) {
        if (!world->job[i].driven)
            continue;
        uint64_t change = plant_job_next_ns(world->job[i].plant);
        next = change < next ? change : next;
    }
    uint64_t fault = next == UINT64_MAX ? next : fault_ns(world);
    return fault < next ? fault : next;
}

size_t sim_world_n_jobs(const struct sim_world *world)
{
    size_t n = 0;

    for (size_t i = 0; i < SIM_JOBS_MAX; i++)
        n += world->job[i].used;
    return n;
}

bool sim_world_busy(const struct sim_world *world)
{
    return sim_world_n_jobs(world) > 0;
}

/* ---- queries ---- */

size_t sim_world_n_boards(const struct sim_world *world)
{
    return world->n_boards;
}

const struct sim_identity *sim_world_identity(const struct sim_world *world, size_t i)
{
    return &world->board[i].id;
}

static uint64_t procs_on(const struct sim_world *w, size_t i)
{
    uint64_t n = 0;

    for (size_t j = 0; j < SIM_JOBS_MAX; j++)
        n += w->job[j].used && (w->job[j].boards >> i & 1);
    return n;
}

static uint64_t job_bytes(const struct board *b)
{
    return b->id.memory_bytes / 10 * 7;
}

static uint64_t fan_percent(const struct board *b, int temp_c)
{
    if (!b->id.fan)
        return 0;
    int percent = FAN_IDLE + FAN_PER_K * (temp_c > FAN_FROM_C ? temp_c - FAN_FROM_C : 0);
    return (uint64_t)(percent > 100 ? 100 : percent);
}

void sim_world_readings(const struct sim_world *world, size_t i, struct sim_readings *ret)
{
    const struct board *b = &world->board[i];
    struct plant_reading now;

    plant_gpu_read(b->gpu, &now);
    uint64_t cap = plant_gpu_cap_mw(b->gpu);
    *ret = (struct sim_readings){
        .at_ns = world->now_ns,
        .faults = b->faults,
        .requested_mw = cap,
        .enforced_mw = cap,
        .limit_writes = b->limit_writes,
        .clock_resets = b->clock_resets,
        .power_mw = now.power_mw,
        .instant_mw = now.instant_mw,
        .average_mw = now.average_mw,
        .energy_mj = now.energy_mj,
        .true_uj = (uint64_t)llround(plant_gpu_energy_j(b->gpu) * 1e6),
        .true_mw = (uint64_t)llround(plant_gpu_power_w(b->gpu) * 1e3),
        .sm_mhz = now.sm_mhz,
        .mem_mhz = now.mem_mhz,
        .util_gpu = now.util_gpu,
        .util_mem = now.util_mem,
        .temp_c = now.temp_c > 0 ? (uint64_t)now.temp_c : 0,
        .fan_percent = fan_percent(b, now.temp_c),
        .reasons = now.reasons,
        .memory_used_bytes = SIM_DRIVER_BYTES + procs_on(world, i) * job_bytes(b),
        .power_violation_ns = now.capped_ns,
        .locked_min_mhz = b->locked_min,
        .locked_max_mhz = b->locked_max,
        .persistence = b->persistence,
    };
}

static bool computes(const struct job *job, size_t board)
{
    return job->used && !job->paused && job->plant && (job->boards >> board & 1);
}

void sim_world_procs(const struct sim_world *world, size_t i, uint64_t utc_us,
                     struct sim_procs *ret)
{
    const struct board *b = &world->board[i];
    struct plant_reading now;
    uint64_t busy = 0;

    memset(ret, 0, sizeof *ret);
    ret->at_us = utc_us;
    if (procs_on(world, i) == 0)
        return;
    plant_gpu_read(b->gpu, &now);
    for (size_t j = 0; j < SIM_JOBS_MAX; j++)
        busy += computes(&world->job[j], i);
    for (size_t j = 0; j < SIM_JOBS_MAX && ret->n < SIM_PROCS_MAX; j++) {
        const struct job *job = &world->job[j];
        uint64_t share =
            computes(job, i) ? busy : 0; /* processes share the board in turn */
        if (job->used && (job->boards >> i & 1))
            ret->proc[ret->n++] = (struct sim_proc){
                .pid = (uint64_t)job->pid,
                .used_bytes = job_bytes(b),
                .util_gpu = share ? now.util_gpu / share : 0,
                .util_mem = share ? now.util_mem / share : 0,
            };
    }
}

uint64_t sim_world_load_id(const struct sim_world *world)
{
    return world->load_id;
}

bool sim_world_driver_gone(const struct sim_world *world)
{
    return world->driver_gone;
}

void sim_world_set_trait(struct sim_world *world, size_t i,
                         const struct plant_trait *trait)
{
    if (i < world->n_boards)
        plant_gpu_set_trait(world->board[i].gpu, trait);
}

double sim_world_true_j(const struct sim_world *world, size_t i)
{
    return i < world->n_boards ? plant_gpu_energy_j(world->board[i].gpu) : 0;
}

uint32_t sim_world_locked_mhz(const struct sim_world *world, size_t i)
{
    return i < world->n_boards ? world->board[i].locked_max : 0;
}

double sim_world_true_w(const struct sim_world *world, size_t i)
{
    return i < world->n_boards ? plant_gpu_power_w(world->board[i].gpu) : 0;
}

double sim_world_true_c(const struct sim_world *world, size_t i)
{
    return i < world->n_boards ? plant_gpu_temp_c(world->board[i].gpu) : 0;
}

void sim_world_set_ambient(struct sim_world *world, size_t i, double ambient_c)
{
    if (i < world->n_boards)
        plant_gpu_set_ambient(world->board[i].gpu, ambient_c);
}

/* ---- requests ---- */

/* SIM_OK: uid may change board i now. */
static enum sim_result may_set(const struct sim_world *w, size_t i, uid_t uid)
{
    bool may = w->may_anyone || uid == 0;

    if (i >= w->n_boards)
        return SIM_INVALID;
    if (w->driver_gone || (w->board[i].faults & SIM_FAULT_LOST))
        return SIM_LOST;
    for (size_t k = 0; !may && k < w->n_uids; k++)
        may = w->uids[k] == uid;
    return may && !(w->board[i].faults & SIM_FAULT_REFUSE) ? SIM_OK : SIM_NO_PERMISSION;
}

enum sim_result sim_world_set_limit(struct sim_world *world, size_t i, uint64_t mw,
                                    uid_t uid)
{
    enum sim_result r = may_set(world, i, uid);

    if (r)
        return r;
    const struct sim_identity *id = &world->board[i].id;
    if (mw < id->min_mw || mw > id->max_mw)
        return SIM_INVALID;
    plant_gpu_set_cap(world->board[i].gpu, (uint32_t)mw);
    world->board[i].limit_writes++;
    return SIM_OK;
}

enum sim_result sim_world_lock_clocks(struct sim_world *world, size_t i, uint64_t min_mhz,
                                      uint64_t max_mhz, uid_t uid)
{
    enum sim_result r = may_set(world, i, uid);

    if (r)
        return r;
    struct board *b = &world->board[i];
    if (!(b->id.abilities & SIM_HAS_LOCKED_CLOCKS))
        return SIM_NOT_SUPPORTED;
    if (min_mhz > max_mhz || max_mhz == 0 || max_mhz > UINT32_MAX)
        return SIM_INVALID;
    b->locked_min = (uint32_t)min_mhz;
    b->locked_max = (uint32_t)max_mhz;
    apply_lock(b);
    return SIM_OK;
}

enum sim_result sim_world_reset_clocks(struct sim_world *world, size_t i, uid_t uid)
{
    enum sim_result r = may_set(world, i, uid);

    if (r)
        return r;
    struct board *b = &world->board[i];
    if (!(b->id.abilities & SIM_HAS_LOCKED_CLOCKS))
        return SIM_NOT_SUPPORTED;
    b->locked_min = b->locked_max = 0;
    b->clock_resets++;
    apply_lock(b);
    return SIM_OK;
}

enum sim_result sim_world_persistence(struct sim_world *world, size_t i, bool on,
                                      uid_t uid)
{
    enum sim_result r = may_set(world, i, uid);

    if (!r)
        world->board[i].persistence = on;
    return r;
}

/* ---- jobs ---- */

static void job_phases(const struct sim_job *job, uint32_t steps,
                       struct plant_job_phase *ret)
{
    for (size_t i = 0; i < job->n_phases; i++) {
        const struct sim_job_phase *p = &job->phase[i];
        ret[i] = (struct plant_job_phase){.phase = p->phase, .s = p->s};
        if (p->phase == UW_PHASE_VALIDATE)
            ret[i].steps = (uint32_t)fmax(1, ceil(steps * p->percent / 100));
    }
}

static int pick_boards(const struct sim_world *w, uint64_t beyond, uint64_t *mask,
                       struct plant_gpu **ret, size_t *ret_n, uw_error *err)
{
    uint64_t all = w->n_boards == 64 ? UINT64_MAX : (1ull << w->n_boards) - 1;

    if (*mask == 0)
        *mask = all;
    if (*mask & ~all)
        beyond = 63 - (uint64_t)__builtin_clzll(*mask);
    if (beyond)
        return fail_in(err, sim_world_no_board(w, beyond, err), "--gpus");
    *ret_n = 0;
    for (size_t i = 0; i < w->n_boards; i++)
        if (*mask >> i & 1)
            ret[(*ret_n)++] = w->board[i].gpu;
    return 0;
}

/* The plant knows a board by its place in the job. */
static int check_free(const struct sim_world *w, uint64_t mask, uw_error *err)
{
    for (size_t i = 0; i < SIM_JOBS_MAX; i++) {
        const struct job *job = &w->job[i];
        if (job->used && job->plant && job->boards & mask)
            return fail(err, -EBUSY, "--gpus: board %d already has a job",
                        __builtin_ctzll(job->boards & mask));
    }
    return 0;
}

enum { WORKLOADS_KNOWN = 32 };

/* There are the workloads of the board's model, and those of the machine file. */
static int no_workload(const struct sim_world *w, const struct plant_board *board,
                       const char *name, uw_error *err)
{
    const char *known[WORKLOADS_KNOWN + 2] = {NULL};
    char none[NEAREST_NONE];
    size_t n = 0;

    for (size_t i = 0; n < WORKLOADS_KNOWN && plant_workload_at(board, i); i++)
        known[n++] = plant_workload_at(board, i)->name;
    for (size_t i = 0; n < WORKLOADS_KNOWN && i < w->works.n; i++)
        if (strcmp(w->works.work[i].board, board->key) == 0)
            known[n++] = w->works.work[i].name;
    known[n++] = "none";
    return fail(err, -EINVAL, "--workload: %s", nearest_none_of(name, known, none));
}

static int make_job(struct sim_world *w, const struct sim_job *job,
                    struct plant_gpu *const *gpus, size_t n, struct plant_job **ret,
                    uw_error *err)
{
    struct plant_job_phase phases[JOB_PHASES_MAX];
    const struct plant_workload *work =
        sim_catalogue_find(plant_gpu_board(gpus[0]), job->workload, &w->works);

    if (!work)
        return no_workload(w, plant_gpu_board(gpus[0]), job->workload, err);
    job_phases(job, job->steps ? job->steps : work->steps, phases);
    struct plant_job_opts opts = {
        .gpus = gpus,
        .n_gpus = n,
        .workload = job->workload,
        .find = sim_catalogue_find,
        .find_user = &w->works,
        .epochs = job->epochs,
        .steps = job->steps,
        .phases = phases,
        .n_phases = job->n_phases,
        .startup_s = job->startup_s,
        .driven = job->driven,
    };
    return plant_job_new(&opts, ret, err);
}

int sim_world_job_add(struct sim_world *world, const struct sim_job *job, pid_t pid,
                      unsigned *ret_id, uw_error *err)
{
    struct plant_gpu *gpus[SIM_BOARDS_MAX] = {NULL};
    struct plant_job *plant = NULL;
    uint64_t mask = job->boards;
    size_t n = 0;
    unsigned id = 0;

    while (id < SIM_JOBS_MAX && world->job[id].used)
        id++;
    if (id == SIM_JOBS_MAX)
        return fail(err, -EBUSY, "more than %d jobs", SIM_JOBS_MAX);
    int r = pick_boards(world, job->beyond, &mask, gpus, &n, err);
    if (!r && strcmp(job->workload, "none") != 0)
        r = check_free(world, mask, err);
    if (!r && strcmp(job->workload, "none") != 0)
        r = make_job(world, job, gpus, n, &plant, err);
    if (r)
        return r;
    world->job[id] = (struct job){.plant = plant,
                                  .boards = mask,
                                  .pid = pid,
                                  .used = true,
                                  .driven = job->driven,
                                  .change_at = job->change_at,
                                  .steps_alone = job->steps_alone,
                                  .time_scale = 1,
                                  .power_scale = 1};
    if (job->change_at) {
        world->job[id].next_time = job->change_time;
        world->job[id].next_power = job->change_power;
    }
    *ret_id = id;
    return 0;
}

void sim_world_job_state(const struct sim_world *world, unsigned id,
                         struct sim_job_state *ret)
{
    struct plant_job_state s;

    *ret = (struct sim_job_state){.phase = UW_PHASE_UNKNOWN};
    if (!world->job[id].plant)
        return;
    plant_job_state(world->job[id].plant, &s);
    bool mute = world->job[id].steps_alone;
    *ret = (struct sim_job_state){.phase = mute ? UW_PHASE_UNKNOWN : s.phase,
                                  .steps = s.steps,
                                  .last_step_ns = s.last_step_ns,
                                  .total_steps = s.total_steps,
                                  .done = s.done};
}

void sim_world_job_pause(struct sim_world *world, unsigned id, bool paused)
{
    struct job *job = &world->job[id];

    if (!job->plant || job->driven || job->paused == paused)
        return;
    job->paused = paused;
    plant_job_scale(job->plant, paused ? PAUSE_SCALE : job->time_scale,
                    paused ? 0 : job->power_scale);
}

void sim_world_job_remove(struct sim_world *world, unsigned id)
{
    if (id >= SIM_JOBS_MAX || !world->job[id].used)
        return;
    plant_job_free(world->job[id].plant);
    world->job[id] = (struct job){.used = false};
}

int sim_world_grant(struct sim_world *world, unsigned id, enum uw_phase phase,
                    uint64_t amount, uw_error *err)
{
    bool steps = phase == UW_PHASE_TRAIN || phase == UW_PHASE_VALIDATE;
    struct plant_job_phase grant = {.phase = phase};

    if (id >= SIM_JOBS_MAX || !world->job[id].driven)
        return fail(err, -EINVAL, "the job is not driven");
    if (phase < UW_PHASE_TRAIN || phase > UW_PHASE_STARTUP)
        return fail(err, -EINVAL, "phase %u is outside %d..%d", (unsigned)phase,
                    UW_PHASE_TRAIN, UW_PHASE_STARTUP);
    if (steps && (amount < 1 || amount > JOB_STEPS_MAX))
        return fail(err, -EINVAL, "%ju steps are outside 1..%d", (uintmax_t)amount,
                    JOB_STEPS_MAX);
    if (!steps && (amount < 1 || amount > JOB_GRANT_MAX_S * NS_PER_S))
        return fail(err, -EINVAL, "%ju ns are outside 1..%llu", (uintmax_t)amount,
                    JOB_GRANT_MAX_S * NS_PER_S);
    if (steps)
        grant.steps = (uint32_t)amount;
    else
        grant.s = s_of_ns(amount);
    return plant_job_grant(world->job[id].plant, &grant, err);
}

bool sim_world_granted(struct sim_world *world, unsigned id, struct plant_granted *ret)
{
    return id < SIM_JOBS_MAX && world->job[id].driven &&
           plant_job_granted(world->job[id].plant, ret);
}
