/* Queries and settings of a program for its own job: goal, cap, energy, the search's
 * state.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "core/optimum/goal.h"
#include "io/file.h"
#include "lib/inside.h"

enum { TREE_DEPTH = 64, PROC_MAX = 4096 };
#define Z95 1.96 /* half of a 95 % interval, in standard errors */

/* ---- finding ---- */

/* 0: none. */
static pid_t parent_of(pid_t pid)
{
    auto_(mem_free) char *text = NULL;
    char path[48], digits[16] = "";
    uint64_t v = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (file_read(path, PROC_MAX, &text, NULL, NULL) < 0)
        return 0;
    const char *after = strrchr(text, ')'); /* ") S PPID …" */
    size_t n = after && strlen(after) > 4 ? strspn(after + 4, "0123456789") : 0;
    if (n == 0 || n >= sizeof digits)
        return 0;
    memcpy(digits, after + 4, n);
    return parse_u64(digits, &v, NULL) == 0 && v <= INT32_MAX ? (pid_t)v : 0;
}

/* Whether the job was begun on request: jobs that the daemon found belong to no program.
 */
static bool is_begun(const struct json_value *job)
{
    const char *source = json_as_text(json_get(job, "source"));

    return source && strcmp(source, "found") != 0;
}

/* Whether pid is the job's first process, or one of its group. */
static bool has_process(const struct json_value *job, pid_t pid)
{
    const struct json_value *members = json_get(job, "members");
    uint64_t of = 0;

    if (json_as_u64(json_get(job, "pid"), &of) && of == (uint64_t)pid)
        return true;
    for (size_t i = 0; i < json_count(members); i++)
        if (json_as_u64(json_at(members, i), &of) && of == (uint64_t)pid)
            return true;
    return false;
}

/* The running job of this user that pid began, or that was begun for it; 0: none. */
static uint64_t job_of(const struct json_value *jobs, pid_t pid)
{
    for (size_t i = 0; i < json_count(jobs); i++) {
        const struct json_value *j = json_at(jobs, i);
        bool running = false, yours = false;
        uint64_t id = 0;
        if (json_get_bool(j, "running", &running, NULL) == 0 && running &&
            json_get_bool(j, "yours", &yours, NULL) == 0 && yours && is_begun(j) &&
            has_process(j, pid) && json_get_u64(j, "id", &id, NULL) == 0)
            return id;
    }
    return 0;
}

/* The job of this process, or of its nearest ancestor that has one. */
static int find_own(const struct door *door, uint64_t *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    pid_t pid = getpid();

    int r = door_ask(door, "GET", "/v1/jobs", NULL, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *jobs = doc ? json_get(json_root(doc), "jobs") : NULL;
    for (int i = 0; i < TREE_DEPTH && pid > 1; i++, pid = parent_of(pid)) {
        *ret = job_of(jobs, pid);
        if (*ret)
            return 0;
    }
    return fail(err, -ENOENT, "this process belongs to no job that the daemon knows");
}

/* Checks that a running job has that number. */
static int check_job(const struct door *door, uint64_t id, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    bool running = false;
    char path[48];

    (void)snprintf(path, sizeof path, "/v1/jobs/%" PRIu64, id);
    int r = door_ask(door, "GET", path, NULL, &doc, err);
    if (r < 0)
        return r;
    if (!doc || json_get_bool(json_root(doc), "running", &running, NULL) < 0)
        return fail(err, -EPROTO, "the daemon's answer is not a job");
    return running ? 0 : fail(err, -ENOENT, "job %" PRIu64 " has ended", id);
}

int uw_job_find(uw_ctx *ctx, uint64_t id, uw_job **ret, uw_error *err)
{
    const struct door *door = NULL;

    if (!ctx || !ret)
        return fail(err, -EINVAL, "ctx or ret is NULL");
    int r = lib_remote(ctx, "a job", &door, err);
    if (r == 0)
        r = id ? check_job(door, id, err) : find_own(door, &id, err);
    return r < 0 ? r : lib_job_found(ctx, id, ret, err);
}

/* ---- goal and cap ---- */

int uw_goal_check(const char *goal, uw_error *err)
{
    struct goal parsed;

    if (!goal)
        return fail(err, -EINVAL, "goal is NULL");
    return goal_parse(goal, &parsed, err) < 0 ? -EINVAL : 0;
}

bool lib_cap_is_figure(const char *cap)
{
    return *cap >= '0' && *cap <= '9';
}

int uw_job_goal(uw_job *job, const char *goal, uw_error *err)
{
    if (!job || (goal && !*goal))
        return fail(err, -EINVAL, job ? "goal is empty: NULL for none" : "job is NULL");
    struct json_out *o = json_out_new();
    json_out_object(o, NULL);
    json_out_text(o, "goal", goal);
    json_out_end(o);
    int r = lib_job_ask(job, "PUT", "/goal", o, NULL, err);
    return r < 0 ? r : lib_job_goal(job, goal ? goal : "", err);
}

int uw_job_cap(uw_job *job, const char *cap, double for_s, const char *why,
               uint64_t *ret_id, uw_error *err)
{
    if (!job || !cap || !*cap || !ret_id)
        return fail(err, -EINVAL, "job, cap or ret_id is NULL or empty");
    if (!isfinite(for_s) || for_s < 0)
        return fail(err, -EINVAL, "a cap for %g s is not valid", for_s);
    bool figure = lib_cap_is_figure(cap);
    const struct lib_claim claim = {.job = uw_job_id(job),
                                    .cap = figure ? cap : NULL,
                                    .preset = figure ? NULL : cap,
                                    .why = why,
                                    .for_s = for_s};
    return lib_claim(lib_job_ctx(job), &claim, ret_id, err);
}

/* ---- results ---- */

static int ask_job(const uw_job *job, struct json **ret, uw_error *err)
{
    int r = lib_job_ask(job, "GET", "", NULL, ret, err);

    if (r == 0 && !*ret)
        return fail(err, -EPROTO, "the daemon's answer is not a job");
    return r;
}

int uw_job_energy(uw_job *job, uw_energy *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    uw_energy e = {.method = "attributed"};

    if (!ret)
        return fail(err, -EINVAL, "ret is NULL");
    int r = ask_job(job, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *v = json_root(doc);
    if (json_get_double(v, "energy_j", &e.energy_j, NULL) < 0 ||
        json_get_double(v, "time_s", &e.time_s, NULL) < 0)
        return fail(err, -EPROTO, "the daemon's answer is not a job");
    (void)json_as_double(json_get(v, "booked_s"), &e.time_s); /* older ones: none */
    if (!json_as_double(json_get(v, "half_j"), &e.half_j))
        e.half_j = (double)NAN;
    e.power_w = e.time_s > 0 ? e.energy_j / e.time_s : 0;
    *ret = e;
    return 0;
}

static double number_at(const struct json_value *v, const char *key)
{
    double ret = 0;

    (void)json_as_double(json_get(v, key), &ret);
    return ret;
}

static uint32_t whole_at(const struct json_value *v, const char *key)
{
    uint64_t ret = 0;

    return json_as_u64(json_get(v, key), &ret) && ret <= UINT32_MAX ? (uint32_t)ret : 0;
}

static void text_at(const struct json_value *v, const char *key, char *ret, size_t size)
{
    const char *text = json_as_text(json_get(v, key));

    (void)snprintf(ret, size, "%s", text ? text : "");
}

static void read_search(const struct json_value *job, const struct json_value *s,
                        uw_search *ret)
{
    const struct json_value *details = json_get(s, "details");
    const struct json_value *saved = json_get(s, "saved");
    uint64_t steps = 0;

    *ret = (uw_search){
        .original_mw = whole_at(details, "original_mw"),
        .reference_mw = whole_at(details, "reference_mw"),
        .best_mw = whole_at(s, "cap_mw"),
        .held_mw = whole_at(details, "held_mw"),
        .lock_mhz = whole_at(json_get(s, "lock"), "clock_mhz"),
        .caps = whole_at(s, "caps"),
        .windows = whole_at(s, "windows"),
        .saved_known = saved && json_get(saved, "fraction"),
        .saved = number_at(saved, "fraction"),
        .saved_half = number_at(saved, "fraction_half"),
        .saved_j = number_at(saved, "energy_j"),
        .saved_half_j = number_at(saved, "energy_half_j"),
        .slowdown = number_at(saved, "slowdown"),
        .slowdown_half = number_at(saved, "slowdown_half"),
        .search_s = number_at(details, "search_s"),
        .step_s = number_at(job, "step_s"),
    };
    if (json_as_u64(json_get(job, "steps"), &steps))
        ret->steps = steps;
    text_at(s, "goal", ret->goal, sizeof ret->goal);
    text_at(s, "status", ret->status, sizeof ret->status);
    text_at(s, "state", ret->text, sizeof ret->text);
    text_at(details, "progress", ret->progress, sizeof ret->progress);
    text_at(details, "why", ret->why, sizeof ret->why);
}

/* The search in the answer; NULL: none. */
static const struct json_value *search_of(const struct json *doc, uw_error *err)
{
    const struct json_value *s = json_get(json_root(doc), "search");

    if (s && json_get(s, "state"))
        return s;
    (void)fail(err, -ENODATA, "the job has no search");
    return NULL;
}

int uw_job_search(uw_job *job, uw_search *ret, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;
    uw_search s;

    if (!ret || ret->size < sizeof ret->size)
        return fail(err, -EINVAL, "uw_search.size: set it to sizeof(uw_search)");
    int r = ask_job(job, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *v = search_of(doc, err);
    if (!v)
        return -ENODATA;
    read_search(json_root(doc), v, &s);
    s.size = ret->size;
    memcpy(ret, &s, ret->size < sizeof s ? ret->size : sizeof s);
    return 0;
}

/* A relative standard error as the half width of an interval; NAN: unknown. */
static double half_of(const struct json_value *v, const char *key, double value)
{
    double rse = (double)NAN;

    (void)json_as_double(json_get(v, key), &rse);
    return Z95 * rse * value;
}

int uw_job_curve(uw_job *job, uw_curve_point *buf, size_t n, size_t *ret_n, uw_error *err)
{
    auto_(json_free) struct json *doc = NULL;

    if (!ret_n || (n > 0 && !buf))
        return fail(err, -EINVAL, "ret_n or buf is NULL");
    int r = ask_job(job, &doc, err);
    if (r < 0)
        return r;
    const struct json_value *s = search_of(doc, err);
    if (!s)
        return -ENODATA;
    const struct json_value *caps = json_get(json_get(s, "details"), "caps");
    *ret_n = json_count(caps);
    for (size_t i = 0; i < *ret_n && i < n; i++) {
        const struct json_value *v = json_at(caps, i);
        uw_curve_point p = {.cap_mw = whole_at(v, "cap_mw"),
                            .windows = whole_at(v, "windows"),
                            .step_s = number_at(v, "step_s"),
                            .step_j = number_at(v, "step_j")};
        p.step_s_half = half_of(v, "step_s_rse", p.step_s);
        p.step_j_half = half_of(v, "step_j_rse", p.step_j);
        buf[i] = p;
    }
    return 0;
}
