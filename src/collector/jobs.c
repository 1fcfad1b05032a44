#include "collector/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "io/json.h"

void jobs_fini(struct jobs *jobs)
{
    free(jobs->job);
    free(jobs->text);
    json_free(jobs->doc);
    *jobs = (struct jobs){.n = 0};
}

int jobs_add(struct jobs *jobs, struct slurm_job **ret, uw_error *err)
{
    int r = array_grow(&jobs->job, &jobs->cap, jobs->n, JOBS_MAX);

    if (r == -E2BIG)
        return fail(err, r, "squeue: more than %d jobs", JOBS_MAX);
    if (r < 0)
        return fail(err, r, "squeue: out of memory");
    *ret = &jobs->job[jobs->n++];
    **ret = (struct slurm_job){.name = "",
                               .user = "",
                               .account = "",
                               .qos = "",
                               .reason = "",
                               .partition = "",
                               .nodes = "",
                               .tasks = 1};
    return 0;
}

/* ---- which jobs wait ---- */

/* Reasons with which a job would not run on an idle cluster either, or has agreed to
 * wait.  Any other reason counts, also an unknown one: an overlooked job would wait
 * longer.
 */
static const char *const waits_for_nobody[] = {
    "AccountNotAllowed",
    "AssociationTimeLimit",
    "BadConstraints",
    "BeginTime",
    "DeadLine",
    "Dependency",
    "DependencyNeverSatisfied",
    "InvalidAccount",
    "InvalidQOS",
    "JobArrayTaskLimit",
    "JobHeldAdmin",
    "JobHeldUser",
    "JobHoldMaxRequeue",
    "PartitionConfig",
    "PartitionDown",
    "PartitionInactive",
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "QOSNotAllowed",
    "QOSTimeLimit",
    "QOSUsageThreshold",
    "Reservation",
    "ReservationDeleted",
};
/* The same for limits that one job alone exceeds, or that are used up for days. */
static const char *const within[] = {"PerJob",  "PerNode",    "QOSMin",
                                     "Minutes", "held state", "requeued held"};

static bool is_for_nobody(const char *reason)
{
    size_t len = strcspn(reason, ", ");

    for (size_t i = 0; i < n_elements(waits_for_nobody); i++)
        if (strlen(waits_for_nobody[i]) == len &&
            memcmp(waits_for_nobody[i], reason, len) == 0)
            return true;
    for (size_t i = 0; i < n_elements(within); i++)
        if (strstr(reason, within[i]) &&
            (strcmp(within[i], "Minutes") != 0 || !strstr(reason, "RunMinutes")))
            return true; /* RunMinutes: jobs that end free some */
    return false;
}

#define NOT_AVAIL "ReqNodeNotAvail"

const char *job_unavailable(const struct slurm_job *job)
{
    static const char before[] = "UnavailableNodes:";

    if (strncmp(job->reason, NOT_AVAIL, sizeof NOT_AVAIL - 1) != 0)
        return NULL;
    const char *at = strstr(job->reason, before);
    return at && at[sizeof before - 1] ? at + sizeof before - 1 : NULL;
}

/* Slurm gives this reason for busy and planned nodes, too; waiting for these counts. */
static bool wants_absent_node(const struct slurm_job *job)
{
    return strncmp(job->reason, NOT_AVAIL, sizeof NOT_AVAIL - 1) == 0 &&
           (job->node_away || strstr(job->reason, "maintenance"));
}

bool job_waits(const struct slurm_job *job, int64_t now_s)
{
    if (job->stage != JOB_IS_PENDING || is_for_nobody(job->reason) ||
        wants_absent_node(job))
        return false;
    return !job->has_eligible || (job->eligible_s > 0 && job->eligible_s <= now_s);
}

/* ---- numbers within texts ---- */

/* Reads the decimal at *p, at most max, and moves *p behind it. */
static bool take_number(const char **p, uint64_t max, uint64_t *ret)
{
    uint64_t v = 0;
    const char *at = *p;

    if (*at < '0' || *at > '9')
        return false;
    for (; *at >= '0' && *at <= '9'; at++)
        v = v > max / 10 ? max : v * 10 + (uint64_t)(*at - '0');
    *ret = v > max ? max : v;
    *p = at;
    return true;
}

enum { GPUS_MAX = 100000000 };

static bool is_word(const char *at, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(at, word, len) == 0;
}

bool jobs_tres_gpus(const char *tres, uint64_t *ret)
{
    uint64_t all = 0, typed = 0, v = 0;
    bool has_all = false, has_typed = false;

    for (const char *p = tres; *p; p += strcspn(p, ","), p += *p == ',') {
        size_t len = strcspn(p, "=,");
        const char *number = p + len + 1;
        if (p[len] != '=' || !take_number(&number, GPUS_MAX, &v))
            continue;
        if (is_word(p, len, "gres/gpu")) {
            has_all = true;
            all = v;
        } else if (len > 9 && memcmp(p, "gres/gpu:", 9) == 0) {
            has_typed = true;
            typed += v;
        }
    }
    if (has_all || has_typed)
        *ret = has_all ? all : typed;
    return has_all || has_typed;
}

static bool is_type(const char *types, const char *at, size_t len)
{
    for (const char *p = types; *p; p += strcspn(p, ","), p += *p == ',')
        if (len > 0 && strcspn(p, ",") == len && memcmp(p, at, len) == 0)
            return true;
    return false;
}

/* The number of one entry: "gpu", "gpu:2", "gpu:a100:2", with or without "gres:" or
 * "gres/".
 */
static uint64_t gres_entry(const char *at, size_t len, const char *types)
{
    uint64_t v = 1;
    size_t from = len > 5 && memcmp(at, "gres", 4) == 0 && strchr(":/", at[4]) ? 5 : 0;

    at += from;
    len -= from;
    if (len < 3 || memcmp(at, "gpu", 3) != 0 || (len > 3 && !strchr(":=", at[3])))
        return 0;
    for (size_t i = len; i > 3; i--) {
        if (at[i - 1] != ':' && at[i - 1] != '=')
            continue;
        const char *number = at + i;
        bool counts = i < len && take_number(&number, GPUS_MAX, &v) && number == at + len;
        bool alone = i == 4 && at[3] == ':'; /* it may be a type, such as "3g.20gb" */
        return counts && !(alone && is_type(types, at + i, len - i)) ? v : 1;
    }
    return 1;
}

void jobs_gres_types(const char *gres, char types[static JOBS_TYPES])
{
    size_t used = strlen(types);

    for (const char *p = gres; *p; p += strcspn(p, ","), p += *p == ',') {
        if (strncmp(p, "gpu:", 4) != 0)
            continue;
        const char *type = p + 4;
        size_t len = strspn(type, "0123456789");
        if (len == 0 || type[len] != ':' || is_type(types, type, len) ||
            used + len + 2 > JOBS_TYPES)
            continue;
        memcpy(types + used, type, len);
        used += len;
        types[used++] = ',';
        types[used] = '\0';
    }
}

uint64_t jobs_gres_gpus(const char *gres, const char *types)
{
    uint64_t sum = 0;

    for (const char *p = gres; *p && sum < GPUS_MAX; p += strcspn(p, ","), p += *p == ',')
        sum += gres_entry(p, strcspn(p, ",("), types);
    return sum > GPUS_MAX ? GPUS_MAX : sum;
}

uint64_t jobs_task_count(const char *list)
{
    uint64_t sum = 0, from, to, step;

    for (const char *p = list; *p && *p != '%'; p += *p == ',') {
        if (!take_number(&p, JOBS_TASKS_MAX, &from))
            break;
        to = from;
        step = 1;
        if (*p == '-' && (p++, !take_number(&p, JOBS_TASKS_MAX, &to)))
            break;
        if (*p == ':' && (p++, !take_number(&p, JOBS_TASKS_MAX, &step)))
            break;
        sum += to < from ? 0 : (to - from) / (step ? step : 1) + 1;
        if (sum > JOBS_TASKS_MAX)
            sum = JOBS_TASKS_MAX;
        if (*p && *p != ',')
            break;
    }
    return sum ? sum : 1;
}
