/* Output of squeue, recorded from 22.05 and made by hand for 23.11, and what it comes to.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/figures.h"
#include "collector/jobs.h"
#include "io/file.h"
#include "oom.h"
#include "tap.h"

#define NONCE "00f1e2d3"
enum { NOW_S = 1795705529 }; /* 10 s after the jobs were submitted */

static const char *folder;

static char *load(const char *name, size_t *ret_len)
{
    char path[512], *text = NULL;
    uw_error err = {""};

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, JOBS_TEXT_MAX, &text, ret_len, &err) < 0)
        printf("Bail out! %s\n", err.text);
    return text;
}

static int read_file(const char *name, struct jobs *ret, uw_error *err)
{
    size_t len = 0;
    char *text = load(name, &len);

    if (strstr(name, ".txt"))
        return jobs_read_text(text, len, NONCE, "", ret, err);
    int r = jobs_read_json(text, len, "", ret, err);
    free(text);
    return r;
}

static const struct slurm_job *find(const struct jobs *jobs, uint64_t id)
{
    static const struct slurm_job none = {.name = "(none)"};

    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->job[i].id == id)
            return &jobs->job[i];
    return &none;
}

static const struct queue_figures *of(const struct queues *q, const char *word)
{
    static const struct queue_figures none = {.depth = 999};

    for (size_t i = 0; i < q->n; i++)
        if (strcmp(q->of[i].word, word) == 0)
            return &q->of[i];
    return &none;
}

static void figures(const char *name, const struct queues *q, const char *word,
                    unsigned depth, unsigned gpus, unsigned wait_s)
{
    const struct queue_figures *f = of(q, word);

    ok(f->depth == depth && f->gpus == gpus && f->wait_s == wait_s,
       "%s: queue '%s': %ju jobs, %ju GPUs, %jd s", name, word, (uintmax_t)f->depth,
       (uintmax_t)f->gpus, (intmax_t)f->wait_s);
}

/* The same jobs in both forms. */
static void recorded(const char *name)
{
    struct jobs jobs = {.n = 0};
    struct queues q;
    uw_error err = {""};

    is_int(read_file(name, &jobs, &err), 0, "%s: read (%s)", name, err.text);
    is_int(jobs.n, 17, "%s: jobs", name);
    const struct slurm_job *j = find(&jobs, 1);
    ok(j->stage == JOB_IS_RUNNING && j->gpus == 2 && j->limit_s == 600, "%s: job 1",
       name);
    is_str(j->name, "train me", "… its name");
    is_str(j->nodes, "n1", "… its node");
    ok(!j->array_id && !j->het_id && j->tasks == 1, "… no array, no component");
    j = find(&jobs, 2);
    ok(j->gpus == 6 && strcmp(j->nodes, "n[1-2]") == 0, "%s: job 2 on two nodes", name);
    is_str(j->qos, "high", "… its QoS");
    is_str(j->account, "teama", "… its account");
    is_str(j->user, "games", "… its user");
    ok(j->has_uid && j->uid == 5, "… and that one's number");
    j = find(&jobs, 17);
    ok(j->array_id == 3 && j->has_task && j->task == 1 && j->stage == JOB_IS_RUNNING,
       "%s: job 17 is task 1 of array 3", name);
    j = find(&jobs, 3);
    is_int(j->tasks, 57, "%s: 57 tasks of array 3 wait", name);
    ok(!job_waits(j, NOW_S), "… for its own limit");
    ok(find(&jobs, 15)->het_id == 14 && find(&jobs, 15)->het_offset == 1,
       "%s: job 15 is component 1 of 14", name);
    ok(!job_waits(find(&jobs, 4), NOW_S), "%s: held: does not wait", name);
    ok(!job_waits(find(&jobs, 5), NOW_S), "%s: dependent: does not wait", name);
    ok(!job_waits(find(&jobs, 6), NOW_S), "%s: begins later: does not wait", name);
    ok(!job_waits(find(&jobs, 16), NOW_S), "%s: over the limit: does not wait", name);
    ok(!job_waits(find(&jobs, 1), NOW_S), "%s: runs: does not wait", name);
    is_int(find(&jobs, 16)->limit_s, 5 * 86400, "%s: five days", name);
    is_int(find(&jobs, 8)->gpus, 4, "%s: two GPUs for each of two tasks", name);
    ok(find(&jobs, 99)->id == 0, "%s: a name makes up no job", name);
    queues_init(&q);
    is_int(queues_partition(&q, "idle-one"), 0, "a partition of the cluster");
    queues_add(&q, &jobs, NOW_S);
    figures(name, &q, "", 8, 41, 10);
    figures(name, &q, "main", 8, 33, 10);
    figures(name, &q, "gpu_long", 2, 16, 10);
    figures(name, &q, "idle_one", 0, 0, 0);
    jobs_fini(&jobs);
}

static void newer(void)
{
    static const char name[] = "squeue-23.11.json";
    struct jobs jobs = {.n = 0};
    struct queues q;
    uw_error err = {""};

    is_int(read_file(name, &jobs, &err), 0, "%s: read (%s)", name, err.text);
    is_int(jobs.n, 9, "%s: jobs, without those that end", name);
    const struct slurm_job *j = find(&jobs, 1);
    ok(j->gpus == 6 && j->limit_s == 0 && j->stage == JOB_IS_RUNNING,
       "%s: unlimited, GPUs with a type", name);
    ok(find(&jobs, 17)->has_task && find(&jobs, 17)->task == 1, "%s: a task", name);
    is_int(find(&jobs, 3)->tasks, 4, "%s: tasks of an array", name);
    is_int(find(&jobs, 9)->gpus, 8, "%s: four GPUs on each of two nodes", name);
    is_int(find(&jobs, 10)->gpus, 6, "%s: two GPUs for each of three tasks", name);
    queues_init(&q);
    queues_add(&q, &jobs, NOW_S);
    figures(name, &q, "", 7, 20, 10);
    figures(name, &q, "gpu_long", 1, 8, 10);
    jobs_fini(&jobs);
}

/* ---- what is refused ---- */

#define T "|" NONCE
#define ROW(id, between, state, name)                                                  \
    id between "1" T "N/A" T "N/A" T "N/A" T state T "None" T "main" T "a|b|c" T "q" T \
               "u" T "5" T "1" T "1" T "UNLIMITED" T T T T T T "1" T "1" T name "\n"

static void refused(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "squeue --json"},
        {"squeue: error: no such option", "squeue --json"},
        {"{}", "there is no list of jobs"},
        {"{\"jobs\": {}}", "there is no list of jobs"},
        {"{\"jobs\": null}", "there is no list of jobs"},
        {"{\"jobs\": [], \"errors\": [{}]}", "an error without a description"},
        {"{\"jobs\": [{\"job_id\": 1}", "squeue --json"},
    };
    struct jobs jobs = {.n = 7};
    uw_error err = {""};

    is_int(read_file("squeue-22.05-away.json", &jobs, &err), -EPROTO,
           "slurmctld does not answer: no empty queue");
    is_str(err.text, "squeue: Failed while looking for jobs: Unspecified error", "… why");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *text = strdup(bad[i].text);
        int r = jobs_read_json(text, strlen(text), "", &jobs, &err);
        ok(r == -EPROTO && strstr(err.text, bad[i].says), "'%s': %s", bad[i].text,
           err.text);
        free(text);
    }
    is_int(jobs_read_text(strdup("1" T), 10, NONCE, "", &jobs, &err), -EPROTO,
           "a torn line");
    is_int(jobs_read_text(strdup("1 main train\n"), 13, NONCE, "", &jobs, &err), -EPROTO,
           "fields of another kind: %s", err.text);
    is_int(jobs.n, 7, "nothing was changed");
}

static void forged(void)
{
    static const char text[] = ROW("1", T, "PENDING", "one")
        ROW("2", "|00000000", "PENDING", "forged") "3" T "\n\n|\n" ROW(
            "x", T, "PENDING", "no id") ROW("4", T, "PENDING", "a|b");
    struct jobs jobs = {.n = 0};
    uw_error err = {""};

    is_int(jobs_read_text(strdup(text), sizeof text - 1, NONCE, "", &jobs, &err), 0,
           "lines within names: %s", err.text);
    ok(jobs.n == 2 && jobs.job[0].id == 1 && jobs.job[1].id == 4, "are no jobs");
    is_str(jobs.job[1].name, "a|b", "a name may have a bar");
    is_str(jobs.job[0].account, "a|b|c", "so may any field");
    jobs_fini(&jobs);
    char format[1000];
    ok(jobs_format(NONCE, format, sizeof format) == 0 &&
           strncmp(format, "JobID:|" NONCE ",ArrayJobID:|" NONCE ",", 37) == 0,
       "the format: %s", format);
    is_int(jobs_format(NONCE, format, 40), -ENAMETOOLONG, "… does not fit");
}

/* ---- parts ---- */

static void parts(void)
{
    static const struct {
        const char *text;
        int n; /* -1: not told */
    } tres[] = {{"cpu=1,gres/gpu=8", 8},
                {"gres/gpu:a100=2,gres/gpu:h100=3", 5},
                {"gres/gpu=4,gres/gpu:a100=4", 4},
                {"cpu=1,mem=1000M", -1},
                {"", -1},
                {"gres/gpumem=80", -1},
                {"gres/gpu=", -1},
                {"gres/gpu=99999999999999999999", 100000000}};
    static const struct {
        const char *text;
        int n;
    } gres[] = {{"gres:gpu:2", 2},
                {"gres:gpu", 1},
                {"gpu:a100:3(S:0-1),gres/gpu:h100:1", 4},
                {"gres:gpu:a100", 1},
                {"gpu:3g.20gb,gpu:4090:2", 3},
                {"gres/gpu:4090", 1},
                {"gres:gpu:4090,gres:gpu:2080:3", 4},
                {"gres/gpu=4090", 4090},
                {"gres/gpu:4090=2", 2},
                {"gpu:409", 409},
                {"gpu:4090:2080", 2080},
                {"gres/gpu=2", 2},
                {"gres:gpumem:80", 0},
                {"gres:nic:2", 0},
                {"N/A", 0},
                {"", 0}},
      lists[] = {{"2-4%1", 3},
                 {"1,3,5-9:2", 5},
                 {"7", 1},
                 {"", 1},
                 {"x", 1},
                 {"5-1", 1},
                 {"0-4000000", 4000001},
                 {"1-", 1},
                 {"1-5:0", 5},
                 {"0-99999999999999999999", 4000001},
                 {"1,...", 1}};
    uint64_t n = 0;

    for (size_t i = 0; i < sizeof tres / sizeof *tres; i++)
        ok(jobs_tres_gpus(tres[i].text, &n) == (tres[i].n >= 0) &&
               (tres[i].n < 0 || n == (uint64_t)tres[i].n),
           "TRES '%s': %d", tres[i].text, tres[i].n);
    for (size_t i = 0; i < sizeof gres / sizeof *gres; i++)
        is_int(jobs_gres_gpus(gres[i].text, "4090,2080,"), gres[i].n, "GRES '%s'",
               gres[i].text);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        is_int(jobs_task_count(lists[i].text), lists[i].n, "tasks '%s'", lists[i].text);
}

/* What sinfo prints of nodes. */
static void types(void)
{
    char got[JOBS_TYPES] = "", long_[300];

    jobs_gres_types("gpu:4090:8(S:0-1),gpu:a100:1,shard:4090:2", got);
    jobs_gres_types("gpu:8", got);
    jobs_gres_types("gpu:4090:4,gpu:2080:1,gpu:3g.20gb:2,gpu::1,(null)", got);
    is_str(got, "4090,2080,", "types that are numbers, once each");
    (void)snprintf(long_, sizeof long_, "gpu:%0250d:1,gpu:7:1", 1);
    jobs_gres_types(long_, got);
    is_str(got, "4090,2080,7,", "what does not fit is left out");
}

static void reasons(void)
{
    static const struct {
        const char *reason;
        bool waits;
    } cases[] = {{"None", true},
                 {"Priority", true},
                 {"Resources", true},
                 {"Licenses", true},
                 {"QOSMaxJobsPerUserLimit", true},
                 {"AssocGrpGRES", true},
                 {"SomethingNew", true},
                 {"Nodes required for job are DOWN, DRAINED or reserved", true},
                 {"JobHeldAdmin", false},
                 {"DependencyNeverSatisfied", false},
                 {"ReqNodeNotAvail, UnavailableNodes:n1", true},
                 {"ReqNodeNotAvail, May be reserved for other job", true},
                 {"ReqNodeNotAvail, Reserved for maintenance", false},
                 {"BadConstraints", false},
                 {"QOSMaxGRESPerJob", false},
                 {"AssocGrpCPUMinutesLimit", false},
                 {"AssocGrpCPURunMinutesLimit", true},
                 {"QOSGrpGRESRunMinutes", true},
                 {"launch failed requeued held", false},
                 {"BeginTime", false}};
    struct slurm_job job = {.stage = JOB_IS_PENDING, .has_eligible = true};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        job.reason = cases[i].reason;
        job.eligible_s = NOW_S;
        ok(job_waits(&job, NOW_S) == cases[i].waits, "%s: %s", job.reason,
           cases[i].waits ? "waits" : "does not count");
        job.eligible_s = NOW_S + 1;
        ok(!job_waits(&job, NOW_S), "… not before it is eligible");
    }
}

/* ---- size, memory ---- */

/* 100,000 jobs that wait. */
static void many(void)
{
    enum { N = 100000, ROOM = 420 };
    char *text = malloc((size_t)N * ROOM);
    struct jobs jobs = {.n = 0};
    struct queues q;
    size_t len = 0;
    uw_error err = {""};

    for (int i = 1; text && i <= N; i++)
        len += (size_t)snprintf(text + len, ROOM,
                                "%d" T "%d" T "N/A" T "N/A" T "N/A" T "PENDING" T
                                "Priority" T "main,long" T "teama" T "normal" T "games" T
                                "5" T "1795705519" T "1795705519" T "1:00:00" T T
                                "cpu=1,mem=1000M,node=1,billing=1,gres/gpu=1" T "N/A" T
                                "N/A" T "N/A" T "1" T "1" T "train\n",
                                i, i);
    is_int(jobs_read_text(text, len, NONCE, "", &jobs, &err), 0,
           "%d jobs, %zu bytes (%s)", N, len, err.text);
    queues_init(&q);
    queues_add(&q, &jobs, NOW_S);
    figures("many", &q, "long", N, N, 10);
    jobs_fini(&jobs);
}

static int try_text(void *user)
{
    struct jobs jobs = {.n = 0};
    size_t len = strlen(user);
    char *text = strdup(user);

    if (!text)
        return -ENOMEM;
    int r = jobs_read_text(text, len, NONCE, "", &jobs, NULL);
    if (r == 0)
        jobs_fini(&jobs);
    return r;
}

static int try_json(void *user)
{
    struct jobs jobs = {.n = 0};

    int r = jobs_read_json(user, strlen(user), "", &jobs, NULL);
    if (r == 0)
        jobs_fini(&jobs);
    return r;
}

static void no_memory(void)
{
    char text[] = ROW("1", T, "PENDING", "one");
    char doc[] = "{\"jobs\": [{\"job_id\": 1, \"job_state\": \"PENDING\"}]}";

    oom_each("jobs_read_text", try_text, text);
    oom_each("jobs_read_json", try_json, doc);
}

static void partitions(void)
{
    struct queues q;
    char name[16];
    int r = 0;

    queues_init(&q);
    for (int i = 1; i < FIGURES_MAX; i++) {
        (void)snprintf(name, sizeof name, "p%d", i);
        r |= queues_partition(&q, name);
    }
    is_int(r, 0, "%d partitions", FIGURES_MAX - 1);
    is_int(queues_partition(&q, "p1"), 0, "the same again");
    is_int(queues_partition(&q, "more"), -E2BIG, "one too many");
    is_int(queues_partition(&q, ""), -E2BIG, "none without a name");
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : "tests/data/slurm";
    recorded("squeue-22.05.json");
    recorded("squeue-22.05.txt");
    newer();
    refused();
    forged();
    parts();
    types();
    reasons();
    many();
    partitions();
    no_memory();
    return done();
}
