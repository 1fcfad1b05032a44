/* squeue's long format with selected fields: for versions without JSON, and a tenth of
 * its size.  Times are seconds (SLURM_TIME_FORMAT), lists of tasks are complete
 * (SLURM_BITSTR_LEN): collector/slurm.c sets both.
 */
#include "collector/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"

enum field {
    ID,
    ARRAY_ID,
    ARRAY_TASK,
    HET_ID,
    HET_OFFSET,
    STATE,
    REASON,
    PARTITION,
    ACCOUNT,
    QOS,
    USER,
    UID,
    SUBMIT,
    ELIGIBLE,
    LIMIT,
    NODES,
    TRES,
    PER_JOB,
    PER_NODE,
    PER_TASK,
    N_NODES,
    N_TASKS,
    NAME, /* the last one */
    FIELDS,
};
static const char *const words[FIELDS] = {
    [ID] = "JobID",
    [ARRAY_ID] = "ArrayJobID",
    [ARRAY_TASK] = "ArrayTaskID",
    [HET_ID] = "HetJobID",
    [HET_OFFSET] = "HetJobOffset",
    [STATE] = "State",
    [REASON] = "Reason",
    [PARTITION] = "Partition",
    [ACCOUNT] = "Account",
    [QOS] = "QOS",
    [USER] = "UserName",
    [UID] = "UserID",
    [SUBMIT] = "SubmitTime",
    [ELIGIBLE] = "EligibleTime",
    [LIMIT] = "TimeLimit",
    [NODES] = "NodeList",
    [TRES] = "tres-alloc",
    [PER_JOB] = "tres-per-job",
    [PER_NODE] = "tres-per-node",
    [PER_TASK] = "tres-per-task",
    [N_NODES] = "NumNodes",
    [N_TASKS] = "NumTasks",
    [NAME] = "Name",
};

int jobs_format(const char *nonce, char *ret, size_t size)
{
    int n = 0;

    for (int i = 0; i < FIELDS && n >= 0 && (size_t)n < size; i++) {
        int more = snprintf(ret + n, size - (size_t)n, "%s%s:%s%s", i > 0 ? "," : "",
                            words[i], i == NAME ? "" : "|", i == NAME ? "" : nonce);
        n = more < 0 ? more : n + more;
    }
    return n >= 0 && (size_t)n < size ? 0 : -ENAMETOOLONG;
}

/* ---- fields ---- */

static uint64_t number(const char *text)
{
    uint64_t v = 0;

    return parse_u64(text, &v, NULL) == 0 ? v : 0;
}

static int64_t seconds(const char *text)
{
    uint64_t v = number(text);

    return v <= INT64_MAX / 4 ? (int64_t)v : 0;
}

static bool is_told(const char *text)
{
    return *text && strcmp(text, "N/A") != 0 && strcmp(text, "(null)") != 0;
}

/* "2-03:04:05", "3:04:05", "10:00"; 0: UNLIMITED, NOT_SET. */
static int64_t limit(char *text)
{
    char *dash = strchr(text, '-');
    int64_t days = 0, s = 0;

    if (dash) {
        *dash = '\0';
        days = (int64_t)(number(text) % 100000);
        text = dash + 1;
    }
    for (char *next = text; text; text = next) {
        next = strchr(text, ':');
        if (next)
            *next++ = '\0';
        uint64_t v = 0;
        if (parse_u64(text, &v, NULL) < 0 || s > 100000000)
            return 0;
        s = s * 60 + (int64_t)(v % 100000);
    }
    return days * 86400 + s;
}

static enum job_stage stage(const char *state)
{
    if (strcmp(state, "RUNNING") == 0 || strcmp(state, "SUSPENDED") == 0)
        return JOB_IS_RUNNING;
    return strcmp(state, "PENDING") == 0 ? JOB_IS_PENDING : JOB_IS_OTHER;
}

static uint64_t gpus(char *const field[FIELDS], const char *types)
{
    uint64_t n = 0, times = 1;

    if (jobs_tres_gpus(field[TRES], &n) ||
        (n = jobs_gres_gpus(field[PER_JOB], types)) > 0)
        return n;
    n = jobs_gres_gpus(field[PER_NODE], types);
    times = number(field[n ? N_NODES : N_TASKS]);
    if (n == 0)
        n = jobs_gres_gpus(field[PER_TASK], types);
    return times && times < 1000000 ? n * times : n;
}

static void fill(char *const field[FIELDS], const char *types, struct slurm_job *job)
{
    uint64_t array_id = number(field[ARRAY_ID]), uid = 0;

    job->has_uid = parse_u64(field[UID], &uid, NULL) == 0 && uid < UINT32_MAX;
    job->uid = job->has_uid ? (uint32_t)uid : 0;
    job->name = field[NAME];
    job->user = field[USER];
    job->account = is_told(field[ACCOUNT]) ? field[ACCOUNT] : "";
    job->qos = is_told(field[QOS]) ? field[QOS] : "";
    job->reason = field[REASON];
    job->partition = field[PARTITION];
    job->nodes = field[NODES];
    if (is_told(field[ARRAY_TASK])) {
        job->array_id = array_id;
        job->has_task = parse_u64(field[ARRAY_TASK], &job->task, NULL) == 0;
        job->tasks = jobs_task_count(field[ARRAY_TASK]);
    }
    job->het_id = number(field[HET_ID]);
    job->het_offset = job->het_id ? number(field[HET_OFFSET]) : 0;
    job->submit_s = seconds(field[SUBMIT]);
    job->eligible_s = seconds(field[ELIGIBLE]);
    job->has_eligible = true;
    job->limit_s = limit(field[LIMIT]);
    job->gpus = gpus(field, types);
}

/* ---- lines ---- */

struct form {
    char between[JOBS_NONCE + 1]; /* separator of the fields */
    const char *types;
};

/* 1: a line of the form, 0: the continuation of a name. */
static int take_line(struct jobs *jobs, char *line, const struct form *of, uw_error *err)
{
    char *field[FIELDS];
    struct slurm_job *job = NULL;

    for (int i = 0; i < NAME; i++) {
        char *end = strstr(line, of->between);
        if (!end)
            return 0;
        *end = '\0';
        field[i] = line;
        line = end + strlen(of->between);
    }
    field[NAME] = line;
    uint64_t id = number(field[ID]);
    if (id == 0 || stage(field[STATE]) == JOB_IS_OTHER)
        return 1;
    int r = jobs_add(jobs, &job, err);
    if (r < 0)
        return r;
    job->id = id;
    job->stage = stage(field[STATE]);
    fill(field, of->types, job);
    return 1;
}

int jobs_read_text(char *text, size_t len, const char *nonce, const char *types,
                   struct jobs *ret, uw_error *err)
{
    auto_(jobs_fini) struct jobs jobs = {.text = text};
    struct form form = {.types = types};
    char *next = text;
    bool has_form = len == 0;

    if (memchr(text, '\0', len))
        return fail(err, -EPROTO, "squeue: its output has a NUL byte");
    if (len > 0 && text[len - 1] != '\n')
        return fail(err, -EPROTO, "squeue: its output is torn");
    (void)snprintf(form.between, sizeof form.between, "|%s", nonce);
    for (char *line = text; *line; line = next) {
        next = strchr(line, '\n');
        *next++ = '\0';
        int r = take_line(&jobs, line, &form, err);
        if (r < 0)
            return r;
        has_form |= r > 0;
    }
    if (!has_form)
        return fail(err, -EPROTO,
                    "squeue: its output does not have the requested fields");
    *ret = jobs;
    jobs = (struct jobs){.n = 0};
    return 0;
}
