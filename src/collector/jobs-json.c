/* squeue --json: 22.05's plain numbers and texts, the objects and lists of 23.02 on. */
#include "collector/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/utf8.h"
#include "io/json.h"

/* "key": 5, or {"set": true, "infinite": false, "number": 5}; false: unknown. */
static bool number(const struct json_value *v, const char *key, uint64_t *ret)
{
    const struct json_value *at = json_get(v, key);
    bool set = true, infinite = false;

    if (json_as_u64(at, ret))
        return true;
    (void)json_as_bool(json_get(at, "set"), &set);
    (void)json_as_bool(json_get(at, "infinite"), &infinite);
    return set && !infinite && json_as_u64(json_get(at, "number"), ret);
}

static int64_t seconds(const struct json_value *v, const char *key)
{
    uint64_t got = 0;

    return number(v, key, &got) && got <= INT64_MAX / 4 ? (int64_t)got : 0;
}

static const char *text(const struct json_value *v, const char *key)
{
    const char *got = json_as_text(json_get(v, key));

    return got ? got : "";
}

/* "job_state": "RUNNING", or ["RUNNING", "COMPLETING"]. */
static bool has_state(const struct json_value *v, const char *state)
{
    const struct json_value *at = json_get(v, "job_state");
    const char *one = json_as_text(at);

    if (one)
        return strcmp(one, state) == 0;
    for (size_t i = 0; i < json_count(at); i++) {
        const char *word = json_as_text(json_at(at, i));
        if (word && strcmp(word, state) == 0)
            return true;
    }
    return false;
}

static enum job_stage stage(const struct json_value *v)
{
    if (has_state(v, "COMPLETING"))
        return JOB_IS_OTHER;
    if (has_state(v, "RUNNING") || has_state(v, "SUSPENDED"))
        return JOB_IS_RUNNING;
    return has_state(v, "PENDING") ? JOB_IS_PENDING : JOB_IS_OTHER;
}

static uint64_t gpus(const struct json_value *v, const char *types)
{
    uint64_t n = 0, times = 1;

    if (jobs_tres_gpus(text(v, "tres_alloc_str"), &n) ||
        jobs_tres_gpus(text(v, "tres_req_str"), &n))
        return n;
    n = jobs_gres_gpus(text(v, "tres_per_job"), types);
    if (n)
        return n;
    n = jobs_gres_gpus(text(v, "tres_per_node"), types);
    if (n)
        return number(v, "node_count", &times) && times ? n * times : n;
    n = jobs_gres_gpus(text(v, "tres_per_task"), types);
    return number(v, "tasks", &times) && times ? n * times : n;
}

/* The description names the nodes of "ReqNodeNotAvail". */
static const char *reason(const struct json_value *v)
{
    const char *why = text(v, "state_reason"), *more = text(v, "state_description");

    return *why && strncmp(more, why, strlen(why)) == 0 ? more : why;
}

static void fill(const struct json_value *v, const char *types, struct slurm_job *job)
{
    uint64_t minutes = 0, uid = 0;

    job->has_uid = number(v, "user_id", &uid) && uid < UINT32_MAX;
    job->uid = job->has_uid ? (uint32_t)uid : 0;
    job->name = text(v, "name");
    job->user = text(v, "user_name");
    job->account = text(v, "account");
    job->qos = text(v, "qos");
    job->reason = reason(v);
    job->partition = text(v, "partition");
    job->nodes = text(v, "nodes");
    (void)number(v, "array_job_id", &job->array_id);
    job->has_task = job->array_id && number(v, "array_task_id", &job->task);
    if (job->array_id && !job->has_task)
        job->tasks = jobs_task_count(text(v, "array_task_string"));
    (void)number(v, "het_job_id", &job->het_id);
    if (job->het_id)
        (void)number(v, "het_job_offset", &job->het_offset);
    job->submit_s = seconds(v, "submit_time");
    job->eligible_s = seconds(v, "eligible_time");
    job->has_eligible = json_get(v, "eligible_time") != NULL;
    if (number(v, "time_limit", &minutes) && minutes < UINT32_MAX)
        job->limit_s = (int64_t)minutes * 60;
    job->gpus = gpus(v, types);
}

/* squeue's error in place of jobs: its exit status is 0 then. */
static int told_error(const struct json_value *root, uw_error *err)
{
    const struct json_value *first = json_at(json_get(root, "errors"), 0);

    if (!first)
        return 0;
    const char *what = text(first, "description"), *why = text(first, "error");
    return fail(err, -EPROTO, "squeue: %.80s: %.60s",
                *what ? what : "an error without a description",
                *why ? why : "no reason");
}

/* Replaces bytes of a job's name that are not UTF-8: one would invalidate the whole
 * text.
 */
static void mend(char *text, size_t len)
{
    for (size_t at = 0; (at += utf8_bad(text + at, len - at)) < len;)
        text[at++] = '?';
}

int jobs_read_json(char *text_, size_t len, const char *types, struct jobs *ret,
                   uw_error *err)
{
    auto_(jobs_fini) struct jobs jobs = {.n = 0};
    uw_error why = {""};

    mend(text_, len);
    int r = json_read("squeue --json", text_, len, &jobs.doc, &why);
    if (r < 0)
        return fail(err, r == -ENOMEM ? r : -EPROTO, "%s", why.text);
    const struct json_value *root = json_root(jobs.doc);
    const struct json_value *list = json_get(root, "jobs");
    r = told_error(root, err);
    if (r == 0 && !json_is_list(list))
        r = fail(err, -EPROTO, "squeue --json: there is no list of jobs");
    for (size_t i = 0; r == 0 && i < json_count(list); i++) {
        const struct json_value *v = json_at(list, i);
        struct slurm_job *job = NULL;
        uint64_t id = 0;
        if (!number(v, "job_id", &id) || id == 0 || stage(v) == JOB_IS_OTHER)
            continue;
        r = jobs_add(&jobs, &job, err);
        if (r < 0)
            break;
        job->id = id;
        job->stage = stage(v);
        fill(v, types, job);
    }
    if (r < 0)
        return r;
    *ret = jobs;
    jobs = (struct jobs){.n = 0};
    return 0;
}
