#include "plant/job.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "plant/state.h"

#define FAR_NS 9e18 /* later times count as never; the sum of both fits 64 bits */

struct plant_job {
    struct plant_gpu *gpu[PLANT_JOB_BOARDS_MAX];
    const struct plant_workload *work[PLANT_JOB_BOARDS_MAX];
    size_t n;
    struct plant_job_phase phase[PLANT_JOB_PHASES_MAX];
    size_t n_phases;
    uint32_t epochs, steps; /* training steps of an epoch */
    double time_scale, power_scale;

    uint64_t now_ns;
    bool stale; /* changed at now_ns: catch_up() must handle it */
    /* end of the phase; next event, or a time before it if stale */
    uint64_t end_ns, next_ns;
    uint32_t epoch;
    int at;                     /* current phase; -1: start-up */
    struct plant_job_phase now; /* the current phase */
    uint64_t target;            /* steps of the phase */
    uint64_t phase_end_ns;      /* of a phase with a fixed duration */
    uint64_t trained;           /* training steps of finished phases */
    uint64_t counted;           /* whole training steps counted */
    uint64_t last_step_ns;      /* end of the last of them */
    bool done;
    uint64_t done_ns;

    bool driven;
    struct plant_job_phase grant[PLANT_JOB_GRANTS_MAX]; /* the first is under way */
    struct plant_granted told[PLANT_JOB_GRANTS_MAX];    /* done, not yet collected */
    size_t n_grants, n_told;
    uint64_t granted; /* grants done */
    uint64_t waited_ns, waits_from_ns;
};

static bool has_steps(const struct plant_job_phase *p)
{
    return p->phase == UW_PHASE_TRAIN || p->phase == UW_PHASE_VALIDATE;
}

/* A driven job without a grant. */
static bool waits(const struct plant_job *job)
{
    return job->driven && job->n_grants == 0;
}

static uint64_t all_steps(const struct plant_job *job)
{
    return (uint64_t)job->epochs * job->steps;
}

/* ---- loads ---- */

/* Validation has forward passes only: it reduces clock-bound work more than memory-bound
 * work.
 */
static struct plant_load load_of(const struct plant_job *job, size_t i)
{
    const struct plant_workload *w = job->work[i];
    struct plant_load l = plant_load_train(w);

    l.tc_s *= job->time_scale;
    l.tm_s *= job->time_scale;
    l.gap_s *= job->time_scale;
    l.d_scale *= job->power_scale;
    if (waits(job))
        return (struct plant_load){.activity = PLANT_HOLD, .hold_w = w->gap_w};
    switch ((int)job->now.phase) {
    case UW_PHASE_TRAIN:
        return l;
    case UW_PHASE_VALIDATE:
        l.gap_s *= 0.5;
        l.tc_s *= 0.25;
        l.tm_s *= 0.4;
        l.d_scale *= 0.85;
        return l;
    case UW_PHASE_CHECKPOINT:
        l.hold_w = w->gap_w + 0.05 * w->d_w;
        break;
    case UW_PHASE_STARTUP:
        l.hold_w = (w->gap_w + job->gpu[i]->board.idle_w) / 2;
        break;
    default:
        l.hold_w = w->gap_w;
        break;
    }
    l.activity = PLANT_HOLD;
    return l;
}

/* The slowest board sets the step time of all boards. */
static void set_paces(struct plant_job *job)
{
    bool paced = !job->done && !waits(job) && has_steps(&job->now);
    double slowest = 0;

    for (size_t i = 0; i < job->n; i++) {
        if (job->gpu[i]->stale)
            gpu_set_speed(job->gpu[i]);
        if (paced)
            slowest = greater(slowest, job->gpu[i]->own_step_s);
    }
    for (size_t i = 0; i < job->n; i++)
        gpu_set_pace(job->gpu[i], slowest);
}

static double steps_now(const struct plant_job *job)
{
    return has_steps(&job->now) ? plant_gpu_steps(job->gpu[0]) : 0;
}

static uint64_t after(uint64_t from_ns, double ns)
{
    return ns < FAR_NS ? from_ns + (uint64_t)ns : UINT64_MAX;
}

/* Time at which `steps` of the current phase will be done, the same from wherever in the
 * segment it is asked; UINT64_MAX: centuries away.
 */
static uint64_t when(const struct plant_job *job, double steps)
{
    const struct segment *s = gpu_last(job->gpu[0]);
    double left = steps - job->gpu[0]->steps;
    uint64_t at_ns = left <= 0 ? 0 : after(s->start_ns, ceil(left / s->rate * 1e9));

    return at_ns > job->now_ns ? at_ns : job->now_ns;
}

/* ---- phases ---- */

static void begin(struct plant_job *job, const struct plant_job_phase *phase)
{
    job->now = *phase;
    job->target = phase->steps;
    /* only training: run all epochs as one phase */
    if (job->n_phases == 1 && job->at == 0)
        job->target *= job->epochs;
    job->phase_end_ns =
        has_steps(phase) ? 0 : after(job->now_ns, (double)ns_of_s(phase->s));
    for (size_t i = 0; i < job->n; i++) {
        struct plant_load l = load_of(job, i);
        plant_gpu_set_load(job->gpu[i], &l);
    }
}

/* The same phase with another load; the count of its steps continues. */
static void change_loads(struct plant_job *job)
{
    for (size_t i = 0; i < job->n; i++) {
        struct plant_load l = load_of(job, i);
        plant_gpu_change_load(job->gpu[i], &l);
    }
}

static void end(struct plant_job *job)
{
    static const struct plant_load idle = {.activity = PLANT_IDLE};

    job->done = true;
    job->done_ns = job->now_ns;
    for (size_t i = 0; i < job->n; i++)
        plant_gpu_set_load(job->gpu[i], &idle);
}

/* Begins the first of the grants; waited: the boards waited for it. */
static void take_up(struct plant_job *job, bool waited)
{
    const struct plant_job_phase *next = &job->grant[0];

    if (!has_steps(next) || next->phase != job->now.phase) {
        job->trained += job->now.phase == UW_PHASE_TRAIN ? job->target : 0;
        begin(job, next);
        return;
    }
    job->target += next->steps;
    if (waited)
        change_loads(job);
}

/* The first of the grants is done. */
static void next_grant(struct plant_job *job)
{
    struct plant_granted *told = &job->told[job->n_told++];

    *told = (struct plant_granted){
        .number = ++job->granted,
        .phase = job->now.phase,
        .at_ns = job->now_ns,
        .steps = job->counted,
        .waited_ns = job->waited_ns,
    };
    for (size_t i = 0; i < job->n; i++)
        told->energy_j += plant_gpu_energy_j(job->gpu[i]);
    job->n_grants--;
    memmove(&job->grant[0], &job->grant[1], job->n_grants * sizeof job->grant[0]);
    if (!waits(job)) {
        take_up(job, false);
        return;
    }
    job->waits_from_ns = job->now_ns;
    change_loads(job);
}

static void next_phase(struct plant_job *job)
{
    if (job->driven) {
        next_grant(job);
        return;
    }
    if (job->now.phase == UW_PHASE_TRAIN && job->at >= 0)
        job->trained += job->target;
    if (++job->at == (int)job->n_phases) {
        job->at = 0;
        job->epoch = job->n_phases == 1 ? job->epochs : job->epoch + 1;
    }
    if (job->epoch == job->epochs)
        end(job);
    else
        begin(job, &job->phase[job->at]);
}

static uint64_t phase_end(const struct plant_job *job)
{
    if (job->done || waits(job))
        return UINT64_MAX;
    return has_steps(&job->now) ? when(job, (double)job->target) : job->phase_end_ns;
}

/* When a board's pace next changes, or `end` if that is earlier. */
static uint64_t before_end(const struct plant_job *job, uint64_t end)
{
    for (size_t i = 0; i < job->n; i++)
        if (job->gpu[i]->end_ns < end)
            end = job->gpu[i]->end_ns;
    return end;
}

/* ---- counting ---- */

/* Whole training steps, and the end of the last; assumes a constant rate since the last
 * count.
 */
static void count(const struct plant_job *job, uint64_t *steps, uint64_t *last_ns,
                  double *exact)
{
    *steps = job->counted;
    *last_ns = job->last_step_ns;
    *exact = (double)job->trained;
    if (job->done || job->now.phase != UW_PHASE_TRAIN)
        return;
    double in_phase = lesser(steps_now(job), (double)job->target);
    double whole = whole_of(in_phase + 1e-6);
    *exact += in_phase;
    if (job->trained + (uint64_t)whole <= job->counted)
        return;
    double ago = greater(0, in_phase - whole) / gpu_last(job->gpu[0])->rate;
    *steps = job->trained + (uint64_t)whole;
    *last_ns = job->now_ns - ns_of_s(ago);
}

static void note(struct plant_job *job)
{
    double exact;
    count(job, &job->counted, &job->last_step_ns, &exact);
}

/* ---- time ---- */

static void changed(struct plant_job *job)
{
    job->stale = true;
}

/* Handles all changes at now_ns at once: counts steps at the old pace, then sets the new
 * one.
 */
static void catch_up(struct plant_job *job)
{
    if (!job->stale)
        return;
    job->stale = false;
    note(job);
    set_paces(job);
    job->end_ns = phase_end(job);
    job->next_ns = before_end(job, job->end_ns);
}

static void go_to(struct plant_job *job, uint64_t at_ns)
{
    for (size_t i = 0; i < job->n; i++)
        job->gpu[i]->now_ns = at_ns;
    job->now_ns = at_ns;
}

void plant_job_advance(struct plant_job *job, uint64_t to_ns)
{
    /* no time passes: boards that change now are computed together later */
    if (to_ns <= job->now_ns && job->next_ns > job->now_ns)
        return;
    catch_up(job);
    while (job->next_ns <= to_ns) {
        bool ends = job->end_ns <= job->next_ns;
        go_to(job, job->next_ns);
        note(job);
        for (size_t i = 0; i < job->n; i++)
            if (job->gpu[i]->end_ns <= job->now_ns)
                gpu_pass_event(job->gpu[i]);
        if (ends)
            next_phase(job);
        changed(job);
        catch_up(job);
    }
    if (to_ns > job->now_ns)
        go_to(job, to_ns);
}

uint64_t plant_job_next_ns(const struct plant_job *job)
{
    catch_up((struct plant_job *)job);
    return job->done ? UINT64_MAX : job->next_ns;
}

uint64_t plant_job_when_ns(const struct plant_job *job, uint64_t steps)
{
    if (job->done || job->now.phase != UW_PHASE_TRAIN || steps < job->trained ||
        steps > job->trained + job->target)
        return UINT64_MAX;
    catch_up((struct plant_job *)job);
    return when(job, (double)(steps - job->trained));
}

void plant_job_state(const struct plant_job *job, struct plant_job_state *ret)
{
    *ret = (struct plant_job_state){
        .phase = job->done ? UW_PHASE_UNKNOWN : job->now.phase,
        .epoch = job->epoch,
        .total_steps = all_steps(job),
        .done = job->done,
        .done_ns = job->done_ns,
    };
    count(job, &ret->steps, &ret->last_step_ns, &ret->exact_steps);
    if (job->n_phases == 1 && !job->done)
        ret->epoch = (uint32_t)(ret->steps / job->steps);
}

void plant_job_scale(struct plant_job *job, double time_scale, double power_scale)
{
    note(job);
    job->time_scale = time_scale;
    job->power_scale = power_scale;
    if (!job->done)
        change_loads(job);
}

/* ---- driven jobs ---- */

int plant_job_grant(struct plant_job *job, const struct plant_job_phase *grant,
                    uw_error *err)
{
    bool waited = waits(job);

    if (!job->driven)
        return fail(err, -EINVAL, "the job is not driven");
    if (has_steps(grant) ? grant->steps == 0 : !(grant->s > 0))
        return fail(err, -EINVAL, "a grant of nothing");
    if (job->n_grants + job->n_told == PLANT_JOB_GRANTS_MAX)
        return PLANT_GRANT_FULL;
    job->grant[job->n_grants++] = *grant;
    changed(job);
    job->next_ns = 0; /* a grant may end at once */
    if (waited) {
        job->waited_ns += job->now_ns - job->waits_from_ns;
        take_up(job, true);
    }
    return 0;
}

bool plant_job_granted(struct plant_job *job, struct plant_granted *ret)
{
    if (job->n_told == 0)
        return false;
    *ret = job->told[0];
    job->n_told--;
    memmove(&job->told[0], &job->told[1], job->n_told * sizeof job->told[0]);
    return true;
}

/* ---- life ---- */

static const struct plant_workload *find(const struct plant_job_opts *o,
                                         const struct plant_gpu *gpu)
{
    return o->find ? o->find(&gpu->board, o->workload, o->find_user)
                   : plant_workload_find(&gpu->board, o->workload);
}

static int check(const struct plant_job_opts *o, uw_error *err)
{
    if (o->n_gpus == 0 || o->n_gpus > PLANT_JOB_BOARDS_MAX)
        return fail(err, -EINVAL, "a job on %zu boards: outside 1..%d", o->n_gpus,
                    PLANT_JOB_BOARDS_MAX);
    if ((o->epochs == 0 && !o->driven) || o->n_phases > PLANT_JOB_PHASES_MAX)
        return fail(err, -EINVAL,
                    "a job of %u epochs of %zu phases: outside 1.. and 0..%d", o->epochs,
                    o->n_phases, PLANT_JOB_PHASES_MAX);
    for (size_t i = 0; i < o->n_gpus; i++) {
        const struct plant_gpu *g = o->gpus[i];
        if (g->job)
            return fail(err, -EBUSY, "board %zu of the job already has a job", i);
        if (!find(o, g))
            return fail(err, -EINVAL, "no workload '%s' on a %s", o->workload,
                        g->board.key);
    }
    return 0;
}

/* Copies the phases; training phases without a number of steps share the remaining ones.
 */
static int copy_phases(struct plant_job *job, const struct plant_job_opts *o,
                       uw_error *err)
{
    static const struct plant_job_phase train = {.phase = UW_PHASE_TRAIN};
    const struct plant_job_phase *from = o->n_phases ? o->phases : &train;
    uint64_t named = 0, open = 0;

    job->n_phases = o->n_phases ? o->n_phases : 1;
    for (size_t i = 0; i < job->n_phases; i++) {
        job->phase[i] = from[i];
        if (from[i].phase != UW_PHASE_TRAIN)
            continue;
        named += from[i].steps;
        open += from[i].steps == 0;
    }
    if (named > job->steps || (open == 0 && named != job->steps) ||
        job->steps - named < open)
        return fail(err, -EINVAL, "training phases of %ju steps do not add up to %u",
                    (uintmax_t)named, job->steps);
    uint64_t left = job->steps - named;
    for (size_t i = 0; i < job->n_phases && open > 0; i++) {
        struct plant_job_phase *p = &job->phase[i];
        if (p->phase != UW_PHASE_TRAIN || p->steps)
            continue;
        p->steps = (uint32_t)(left / open);
        left -= p->steps;
        open--;
    }
    return 0;
}

static const struct job_calls calls = {
    .advance = plant_job_advance, .changed = changed, .catch_up = catch_up};

int plant_job_new(const struct plant_job_opts *opts, struct plant_job **ret,
                  uw_error *err)
{
    int r = check(opts, err);
    if (r < 0)
        return r;

    auto_(plant_job_free) struct plant_job *job = calloc(1, sizeof *job);
    if (!job)
        return fail(err, -ENOMEM, "no memory for a simulated job");
    const struct plant_workload *first = find(opts, opts->gpus[0]);
    job->driven = opts->driven;
    job->time_scale = job->power_scale = 1;
    if (!job->driven) {
        job->steps = opts->steps ? opts->steps : first->steps;
        job->epochs = opts->epochs;
        r = copy_phases(job, opts, err);
        if (r < 0)
            return r;
    }

    for (size_t i = 0; i < opts->n_gpus; i++)
        if (opts->gpus[i]->now_ns > job->now_ns)
            job->now_ns = opts->gpus[i]->now_ns;
    for (size_t i = 0; i < opts->n_gpus; i++) {
        struct plant_gpu *g = opts->gpus[i];
        gpu_advance_alone(g, job->now_ns);
        job->work[i] = find(opts, g);
        job->gpu[i] = g;
        g->job = job;
        g->calls = &calls;
        job->n++;
    }
    job->at = -1;
    job->stale = true;
    job->waits_from_ns = job->now_ns;
    if (job->driven)
        begin(job, &(struct plant_job_phase){.phase = UW_PHASE_UNKNOWN});
    else if (opts->startup_s > 0)
        begin(job,
              &(struct plant_job_phase){.phase = UW_PHASE_STARTUP, .s = opts->startup_s});
    else
        next_phase(job);
    *ret = take(job);
    return 0;
}

void plant_job_free(struct plant_job *job)
{
    if (!job)
        return;
    if (!job->done)
        end(job);
    catch_up(job);
    for (size_t i = 0; i < job->n; i++)
        job->gpu[i]->job = NULL;
    free(job);
}
