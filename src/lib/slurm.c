/* A program in a Slurm job with a goal: reports its steps as a job of its own, which
 * runs within that job and has its goal.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/utf8.h"
#include "io/file.h"
#include "lib/inside.h"

enum { NUMBER = 20, COMMAND_MAX = 4096 };

DEFINE_AUTO(uw_ctx *, uw_ctx_free);

/* A number from Slurm's environment; "": there is none. */
static const char *number(const char *name)
{
    const char *text = secure_getenv(name);
    size_t n = text ? strlen(text) : 0;

    return n > 0 && n < NUMBER && strspn(text, "0123456789") == n ? text : "";
}

/* Whether a search of Slurm's job has a goal, or will have one. */
static bool has_goal(const struct json_value *job)
{
    const char *goal = json_as_text(json_get(json_get(job, "search"), "goal"));
    const char *asked = json_as_text(json_get(job, "asked"));
    bool yours = false, running = false;

    (void)json_get_bool(job, "yours", &yours, NULL);
    (void)json_get_bool(job, "running", &running, NULL);
    return yours && running && (goal || (asked && strncmp(asked, "goal ", 5) == 0));
}

/* One job for several processes, as torchrun or srun starts them: all ranks of a
 * training share the step and, if a launcher of the step starts several trainings,
 * MASTER_PORT.
 */
static void name_group(const char *job, char *ret, size_t size)
{
    const char *port = number("MASTER_PORT"), *step = number("SLURM_STEP_ID");
    bool several = *number("LOCAL_RANK") ||
                   (*step && strcmp(number("SLURM_STEP_NUM_TASKS"), "1") != 0);

    ret[0] = '\0';
    if (several)
        (void)snprintf(ret, size, "step %s.%s %s", job, step, port);
}

/* The program's words, which are the same for runs of the same job; too long: "". */
static void read_command(char *ret, size_t size)
{
    auto_(mem_free) char *text = NULL;
    size_t len = 0;

    ret[0] = '\0';
    if (file_read("/proc/self/cmdline", COMMAND_MAX, &text, &len, NULL) < 0 || len < 2 ||
        len > size)
        return;
    for (size_t i = 0; i + 1 < len; i++)
        ret[i] = (char)((unsigned char)text[i] < ' ' ? ' ' : text[i]);
    ret[len - 1] = '\0';
}

static int begin(uw_ctx *ctx, const char *job, uw_job **ret, uw_error *err)
{
    char name[48], group[64], command[LIB_COMMAND];

    (void)snprintf(name, sizeof name, "%.47s", program_invocation_short_name);
    if (!name[0] || strchr(name, ':') || !utf8_is_plain(name))
        (void)snprintf(name, sizeof name, "program");
    name_group(job, group, sizeof group);
    read_command(command, sizeof command);
    const uw_job_options opts = {.size = sizeof opts,
                                 .name = name,
                                 .command = command[0] ? command : NULL,
                                 .group = group[0] ? group : NULL};

    return uw_job_begin(ctx, &opts, ret, err);
}

int lib_slurm_begin(uw_ctx **ret_ctx, uw_job **ret_job, uw_error *err)
{
    const uw_options opts = {.size = sizeof opts, .flags = UW_DAEMON};
    const char *job = number("SLURM_JOB_ID");
    auto_(uw_ctx_free) uw_ctx *ctx = NULL;
    auto_(json_free) struct json *doc = NULL;
    const struct door *door = NULL;
    char path[NUMBER + 24];

    if (!*job || uw_ctx_open(&opts, &ctx, NULL) < 0 ||
        lib_remote(ctx, "a job", &door, NULL) < 0)
        return LIB_ABSENT;
    (void)snprintf(path, sizeof path, "/v1/jobs/slurm:%s", job);
    if (door_ask(door, "GET", path, NULL, &doc, NULL) < 0 || !doc ||
        !has_goal(json_root(doc)))
        return LIB_ABSENT;
    int r = begin(ctx, job, ret_job, err);
    if (r == 0)
        *ret_ctx = take(ctx);
    return r;
}
