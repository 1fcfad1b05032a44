/* A training job: a process that holds simulated boards, steps as fast as the plant
 * allows, and reports its steps.  When the process dies, its connection closes, and the
 * world ends its load.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "sim/job.h"
#include "sim/main.h"
#include "sim/report.h"
#include "sim/statedir.h"

/* Options end with a NULL; --gpus is added from CUDA_VISIBLE_DEVICES if absent. */
static int job_text(const struct sim_env *env, int argc, char **argv, char *ret,
                    size_t size, uw_error *err)
{
    const char *args[64];
    size_t n = 0;
    bool gpus = false;

    for (int i = 0; i < argc; i++) {
        if (n + 2 >= n_elements(args))
            return fail(err, -1, "more than %zu words", n);
        gpus = gpus || strcmp(argv[i], "--gpus") == 0;
        args[n++] = argv[i];
    }
    if (!gpus && env->visible && *env->visible &&
        strspn(env->visible, "0123456789,") == strlen(env->visible)) {
        args[n++] = "--gpus";
        args[n++] = env->visible;
    }
    struct sim_job job;
    int r = sim_job_parse(args, n, &job, err);
    return r ? r : sim_job_text(args, n, ret, size, err);
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
    auto_(report_close) struct report *report = NULL;
    auto_(fd_close) int fd = -1;
    struct sim_reply reply = {0};
    uw_error err = {""};

    if (job_text(env, argc, argv, q.text, sizeof q.text, &err))
        return complain(EXIT_USAGE, "train: %s", err.text);
    if (env->progress && *env->progress &&
        report_open(env->progress, (uint64_t)getpid(), &report, &err))
        (void)complain(EXIT_OK, "train: no progress is reported: %s", err.text);
    int r = statedir_request(env->state_dir, &q, &fd, &reply, &err);
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
