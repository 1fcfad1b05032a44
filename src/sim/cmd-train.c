/* A training job: a process that holds simulated boards, steps as fast as the plant
 * allows, and reports its steps.  When the process dies, its connection closes, and the
 * world ends its load.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "sim/devices.h"
#include "sim/job.h"
#include "sim/main.h"
#include "sim/report.h"
#include "sim/statedir.h"

/* The world's numbers of the boards that this process may use, for its own numbers in
 * list; NULL: all of these.
 */
static int world_numbers(const struct sim_page *page, uint64_t may, const char *list,
                         char ret[JOB_TEXT_MAX], uw_error *err)
{
    unsigned n = sim_devices_count(page, may);
    char copy[JOB_TEXT_MAX] = "", *rest = copy, *word = NULL;
    int used = 0;

    for (unsigned i = 0; i < n && !list; i++)
        used +=
            snprintf(copy + used, sizeof copy - (size_t)used, "%s%u", i ? "," : "", i);
    if (list)
        (void)snprintf(copy, sizeof copy, "%s", list);
    used = 0;
    while ((word = strsep(&rest, ","))) {
        uint64_t i = 0;
        int r = parse_u64(word, &i, err);
        if (r < 0)
            return r;
        if (i >= n)
            return fail(
                err, -1,
                "--gpus: this process may use %u boards, and %s is not one of them", n,
                word);
        used += snprintf(ret + used, JOB_TEXT_MAX - (size_t)used, "%s%u", used ? "," : "",
                         sim_devices_at(page, may, (unsigned)i));
    }
    return 0;
}

/* Adds --gpus from CUDA_VISIBLE_DEVICES if absent or "all".  page: of a world of whose
 * boards this process may use some, or NULL.
 */
static int job_text(const struct sim_env *env, const struct sim_page *page, int argc,
                    char **argv, char *ret, size_t size, uw_error *err)
{
    const char *args[64] = {NULL}, *gpus = NULL;
    char numbers[JOB_TEXT_MAX];
    struct sim_job job;
    size_t n = 0;

    for (int i = 0; i < argc; i++) {
        if (n + 2 >= n_elements(args))
            return fail(err, -1, "more than %zu words", n);
        args[n++] = argv[i];
    }
    int r = sim_job_parse(args, n, &job, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i + 1 < n; i += 2) /* each option has a value */
        gpus = strcmp(args[i], "--gpus") == 0 ? args[i + 1] : gpus;
    if (gpus && strcmp(gpus, SIM_JOB_ALL) == 0) /* all that this process may use */
        gpus = NULL;
    if (!gpus && env->visible && *env->visible &&
        strspn(env->visible, "0123456789,") == strlen(env->visible))
        gpus = env->visible;
    if (page)
        r = world_numbers(page, sim_devices(page), gpus, numbers, err);
    if (page || gpus) {
        args[n++] = "--gpus"; /* the last one counts */
        args[n++] = page ? numbers : gpus;
    }
    return r < 0 ? r : sim_job_text(args, n, ret, size, err);
}

static int follow(int fd, struct sim_reply *reply, struct report *report, uw_error *err)
{
    for (;;) {
        if (report)
            report_write(report, reply->steps, reply->last_step_ns,
                         (enum uw_phase)reply->phase);
        if (reply->done)
            return 0;
        int r = statedir_wait(fd, reply, err);
        if (r)
            return r;
    }
}

int cmd_train(const struct sim_env *env, int argc, char **argv)
{
    struct sim_request q = {.version = SIM_VERSION, .op = SIM_OP_JOB};
    auto_(statedir_unmap) const struct sim_page *page = NULL;
    auto_(report_close) struct report *report = NULL;
    auto_(fd_close) int fd = -1;
    struct sim_reply reply = {0};
    uw_error err = {""};

    if (job_text(env, NULL, argc, argv, q.text, sizeof q.text, &err))
        return complain(EXIT_USAGE, "train: %s", err.text);
    int r = statedir_map(env->state_dir, &page, &err);
    if (!r && sim_devices(page) != UINT64_MAX &&
        job_text(env, page, argc, argv, q.text, sizeof q.text, &err))
        return complain(EXIT_USAGE, "train: %s", err.text);
    if (env->progress && *env->progress &&
        report_open(env->progress, (uint64_t)getpid(), &report, &err))
        (void)complain(EXIT_OK, "train: no progress is reported: %s", err.text);
    if (!r)
        r = statedir_request(env->state_dir, &q, &fd, &reply, &err);
    if (r)
        return complain(EXIT_FAIL, "train: %s", err.text);
    if (reply.result)
        return complain(reply.result == SIM_INVALID ? EXIT_USAGE : EXIT_FAIL, "train: %s",
                        reply.text);
    r = follow(fd, &reply, report, &err);
    if (r)
        return complain(EXIT_FAIL, "train: %s", err.text);
    printf("simulated training done: %llu steps\n", (unsigned long long)reply.steps);
    return EXIT_OK;
}
