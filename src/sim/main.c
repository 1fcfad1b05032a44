/* underwatt-sim: a simulated node of GPUs, visible to any NVML client. */
#include "sim/main.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/asked.h"
#include "base/auto.h"
#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "io/file.h"

const struct sim_command sim_commands[] = {
    {"start",
     "[--board NAME] [--count N] [--machine FILE] [--speed F]\n"
     "          [--may-set root|anyone]",
     "start a simulated node", cmd_start},
    {"status", "[--json]", "show the node and its boards", cmd_status},
    {"exec", "-- CMD…", "run a program on the simulated node", cmd_exec},
    {"train",
     "[--workload NAME] [--gpus LIST] [--epochs N] [--steps N]\n"
     "          [--phases LIST] [--change STEP:T:P] [--tells steps|phases]",
     "run a simulated training job", cmd_train},
    {"fault", "[BOARD|all] KIND [WATTS] [for TIME]", "cause a fault now", cmd_fault},
    {"reset", "BOARD", "reset a board that no process has open", cmd_reset},
    {"stop", "", "stop the node and remove its files", cmd_stop},
    {NULL, NULL, NULL, NULL},
};

int complain(int code, const char *format, ...)
{
    va_list args;

    (void)fputs("underwatt-sim: ", stderr);
    va_start(args, format);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    (void)fputc('\n', stderr);
    return code;
}

static int written(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain(code ? code : EXIT_FAIL, "cannot write to stdout");
    return code;
}

static int usage(FILE *to, int code)
{
    (void)fputs("usage: underwatt-sim [--state DIR] COMMAND …\n\n", to);
    for (const struct sim_command *c = sim_commands; c->name; c++)
        (void)fprintf(to, "  %-*s%s\n          %s\n", *c->args ? 8 : 0, c->name, c->args,
                      c->help);
    (void)fputs("\nunderwatt-sim --version shows the version.\n"
                "All its output is simulated.  See underwatt-sim(1).\n",
                to);
    return written(code);
}

static int usage_of(const struct sim_command *c)
{
    (void)printf("usage: underwatt-sim [--state DIR] %s%s%s\n\n%s\n", c->name,
                 *c->args ? " " : "", c->args, c->help);
    return written(EXIT_OK);
}

/* The library is beside the program in a build tree, or installed in ../lib…. */
static void find_library(struct sim_env *env)
{
    static const char *const places[] = {
        "nvml/libnvidia-ml.so.1",
        "../lib/underwatt/sim/libnvidia-ml.so.1",
        "../" UW_LIBDIR "/underwatt/sim/libnvidia-ml.so.1",
    };
    ssize_t n = readlink("/proc/self/exe", env->program, sizeof env->program - 1);
    env->program[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(env->program, '/');
    int dir = slash ? (int)(slash - env->program) : 0;

    for (size_t i = 0; i < n_elements(places); i++) {
        int len = snprintf(env->library, sizeof env->library, "%.*s/%s", dir,
                           env->program, places[i]);
        if (len > 0 && (size_t)len < sizeof env->library &&
            access(env->library, R_OK) == 0)
            return;
    }
    env->library[0] = '\0';
}

static int find_state(const char *option, struct sim_env *env, uw_error *err)
{
    const char *given = option ? option : getenv("UNDERWATT_SIM_STATE");
    char cwd[sizeof env->state_dir] = "";

    if (!given || !*given)
        return file_runtime_path(getenv("XDG_RUNTIME_DIR"), "underwatt-sim", getuid(),
                                 env->state_dir, sizeof env->state_dir, err);
    if (given[0] != '/' && !getcwd(cwd, sizeof cwd - 1))
        return fail(err, -errno, "the current folder: %s", strerror(errno));
    int n = snprintf(env->state_dir, sizeof env->state_dir, "%s%s%s", cwd,
                     given[0] == '/' ? "" : "/", given);
    while (n > 1 && (size_t)n < sizeof env->state_dir && env->state_dir[n - 1] == '/')
        env->state_dir[--n] = '\0';
    if (n < 0 || n >= SIM_SOCKET_MAX)
        return fail(err, -ENAMETOOLONG,
                    "--state: the path has %d characters, more than %d: %.60s…", n,
                    SIM_SOCKET_MAX - 1, given);
    return 0;
}

int main(int argc, char **argv)
{
    struct sim_env env = {.progress = getenv("UNDERWATT_PROGRESS"),
                          .visible = getenv("CUDA_VISIBLE_DEVICES"),
                          .library_path = getenv("LD_LIBRARY_PATH"),
                          .path = getenv("PATH")};
    const char *state = NULL;
    uw_error err = {""};
    int i = 1;

    log_set_journal(getenv("JOURNAL_STREAM"));
    if (i + 1 < argc && strcmp(argv[i], "--state") == 0) {
        state = argv[i + 1];
        i += 2;
    }
    if (i >= argc)
        return usage(stderr, EXIT_USAGE);
    if (asked_for(argv[i]) == ASKED_HELP)
        return usage(stdout, EXIT_OK);
    if (asked_for(argv[i]) == ASKED_VERSION) {
        (void)puts("underwatt-sim " UW_VERSION);
        return written(EXIT_OK);
    }
    static const char *const names[] = {"start", "status", "exec", "train",
                                        "fault", "reset",  "stop", NULL};
    char hint[NEAREST_TEXT];
    const struct sim_command *c = sim_commands;
    while (c->name && strcmp(c->name, argv[i]) != 0)
        c++;
    if (!c->name)
        return complain(EXIT_USAGE,
                        "unknown command '%s'%s: one of start, status, exec, train, "
                        "fault, reset, stop",
                        argv[i], nearest_of(argv[i], names, hint));
    if (i + 1 < argc && asked_for(argv[i + 1]) == ASKED_HELP)
        return usage_of(c);
    /* --state is also accepted among the command's options, but not after "--". */
    int kept = i + 1;
    for (int k = i + 1; k < argc; k++) {
        if (strcmp(argv[k], "--") == 0) {
            while (k < argc)
                argv[kept++] = argv[k++];
        } else if (strcmp(argv[k], "--state") == 0 && k + 1 < argc) {
            state = argv[++k];
        } else {
            argv[kept++] = argv[k];
        }
    }
    argv[kept] = NULL;
    if (find_state(state, &env, &err))
        return complain(EXIT_USAGE, "%s", err.text);
    env.named = state != NULL;
    find_library(&env);
    return written(c->run(&env, kept - i - 1, argv + i + 1));
}
