/* Driven jobs of a world: registration, grants, and what bounds them. */
#include <errno.h>

#include "base/auto.h"
#include "base/units.h"
#include "sim/world.h"
#include "tap.h"

#define START (5 * NS_PER_S)
enum { PID = 77 };

/* clang-format off */
static const struct {
    const char *text;
    int r;
    const char *says; /* a part of the error */
} bad[] = {
    {"--workload none", -EINVAL, "'none' has no steps"},
    {"--epochs 3", -EINVAL, "not one of: --workload, --gpus"},
    {"--gpus 0 --steps 7", -EINVAL, "--steps: not one of"},
    {"--gpus 0,0", -EINVAL, "twice"},
};

static const struct {
    enum uw_phase phase;
    uint64_t amount;
    const char *says;
} wrong[] = {
    {UW_PHASE_UNKNOWN, 1, "phase 0 is outside 1..5"},
    {(enum uw_phase)6, 1, "phase 6 is outside 1..5"},
    {UW_PHASE_TRAIN, 0, "0 steps are outside 1..100000000"},
    {UW_PHASE_VALIDATE, 100000001, "100000001 steps are outside 1..100000000"},
    {UW_PHASE_LOAD, 0, "0 ns are outside 1..10000000000000000"},
    {UW_PHASE_CHECKPOINT, UINT64_MAX, "ns are outside 1..10000000000000000"},
};
/* clang-format on */

static struct sim_world *world_of(unsigned boards)
{
    static struct sim_machine machine;
    struct sim_world *w = NULL;

    (void)sim_machine_builtin("v100", boards, &machine, NULL);
    (void)sim_world_new(&machine, 1, START, &w, NULL);
    return w;
}

static unsigned drive(struct sim_world *w, const char *text)
{
    struct sim_job job;
    unsigned id = SIM_JOBS_MAX;

    (void)sim_job_parse_driven(text, &job, NULL);
    (void)sim_world_job_add(w, &job, PID, &id, NULL);
    return id;
}

static int grant(struct sim_world *w, unsigned id, uint64_t steps)
{
    return sim_world_grant(w, id, UW_PHASE_TRAIN, steps, NULL);
}

/* From event to event, as the server goes, until a grant is done. */
static struct plant_granted await(struct sim_world *w, unsigned id)
{
    struct plant_granted done = {0};

    while (!sim_world_granted(w, id, &done)) {
        uint64_t next = sim_world_driven_ns(w);
        if (next == UINT64_MAX)
            break;
        sim_world_advance(w, next);
    }
    return done;
}

static void test_options(void)
{
    struct sim_job job;
    uw_error err;

    is_int(sim_job_parse_driven("", &job, &err), 0, "no options");
    ok(job.driven && job.boards == 0, "a driven job on every board");
    is_str(job.workload, "resnet50", "… of the default workload");
    is_int(sim_job_parse_driven("--gpus 1,3 --workload vgg19", &job, &err), 0, "both");
    ok(job.boards == 10, "boards 1 and 3");
    is_str(job.workload, "vgg19", "vgg19");
}

static void test_bad(void)
{
    struct sim_job job;
    uw_error err;

    for (size_t i = 0; i < n_elements(bad); i++) {
        job = (struct sim_job){.workload = "canary"};
        is_int(sim_job_parse_driven(bad[i].text, &job, &err), bad[i].r, "'%s' is refused",
               bad[i].text);
        if (!ok(strstr(err.text, bad[i].says) != NULL, "… and says '%s'", bad[i].says))
            printf("# got: %s\n", err.text);
        is_str(job.workload, "canary", "… nothing is changed");
    }
}

static void test_life(void)
{
    auto_(sim_world_free) struct sim_world *w = world_of(2);
    struct sim_procs procs;
    struct sim_job second = {.workload = "resnet50", .boards = 1, .epochs = 1};
    unsigned other;
    uw_error err;

    unsigned id = drive(w, "--gpus 0");
    ok(sim_world_busy(w), "a driven job is a job");
    ok(sim_world_driven_ns(w) > START + NS_PER_S, "nothing happens until it is granted");
    is_int(sim_world_job_add(w, &second, PID, &other, &err), -EBUSY,
           "no other on its board");
    is_int(grant(w, id, 10), 0, "ten steps");
    is_int(grant(w, id, 10), 0, "ten more behind them");
    is_int(grant(w, id, 10), PLANT_GRANT_FULL, "no third grant");
    sim_world_advance(w, START + NS_PER_S);
    sim_world_procs(w, 0, 0, &procs);
    ok(procs.n == 1 && procs.proc[0].pid == PID && procs.proc[0].util_gpu > 50,
       "its process computes on its board");
    sim_world_procs(w, 1, 0, &procs);
    ok(procs.n == 0, "… and on no other");
    sim_world_job_pause(w, id, true);
    struct plant_granted first = await(w, id);
    ok(first.number == 1 && first.steps == 10 && first.at_ns < START + 5 * NS_PER_S,
       "a stopped process's boards do what was granted");
    struct plant_granted last = await(w, id);
    ok(last.number == 2 && last.steps == 20 && last.waited_ns == 0, "… all of it");
    sim_world_advance(w, last.at_ns + NS_PER_S);
    sim_world_procs(w, 0, 0, &procs);
    ok(procs.n == 1 && procs.proc[0].util_gpu == 0, "… and then wait");
    sim_world_job_remove(w, id);
    ok(!sim_world_busy(w) && sim_world_driven_ns(w) == UINT64_MAX, "it ends at once");
    is_int(sim_world_grant(w, id, UW_PHASE_TRAIN, 1, &err), -EINVAL, "a job that ended");
    is_str(err.text, "the job is not driven", "… can be granted nothing");
    struct plant_granted none;
    ok(!sim_world_granted(w, id, &none) && !sim_world_granted(w, UINT32_MAX, &none),
       "… and tells nothing");
}

static void test_wrong(void)
{
    auto_(sim_world_free) struct sim_world *w = world_of(1);
    unsigned id = drive(w, "");
    uw_error err;

    for (size_t i = 0; i < n_elements(wrong); i++) {
        is_int(sim_world_grant(w, id, wrong[i].phase, wrong[i].amount, &err), -EINVAL,
               "grant %zu is refused", i);
        if (!ok(strstr(err.text, wrong[i].says) != NULL, "… and says '%s'",
                wrong[i].says))
            printf("# got: %s\n", err.text);
    }
    ok(sim_world_driven_ns(w) > START + NS_PER_S, "… and nothing was granted");
    is_int(sim_world_grant(w, id, UW_PHASE_CHECKPOINT, 3, &err), 0, "three nanoseconds");
    ok(await(w, id).at_ns == START + 3, "… take three");
}

/* A fault of the schedule comes at its time, whatever is granted. */
static void test_fault(void)
{
    struct sim_fault limit = {.kind = SIM_FAULT_K_LIMIT, .board = 0, .mw = 150000};
    struct plant_granted done[2];

    for (int i = 0; i < 2; i++) {
        auto_(sim_world_free) struct sim_world *w = world_of(1);
        unsigned id = drive(w, "");
        (void)grant(w, id, 20);
        sim_world_advance(w, START + NS_PER_S);
        if (i == 1)
            (void)sim_world_fault(w, &limit, NULL);
        done[i] = await(w, id);
    }
    double slower = s_between(done[0].at_ns, done[1].at_ns);
    ok(slower > 1 && slower < 2, "a limit of another writer slows it: %.2f s", slower);
}

int main(void)
{
    test_options();
    test_bad();
    test_life();
    test_wrong();
    test_fault();
    return done();
}
