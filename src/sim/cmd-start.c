#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/units.h"
#include "sim/main.h"
#include "sim/server.h"
#include "sim/statedir.h"

#define SPEED_MIN 0.01
#define SPEED_MAX 1000.0

struct start_args {
    const char *board, *machine, *may_set;
    unsigned count;
    double speed;
    bool foreground, counted;
};

static int parse_number(const char *name, const char *value, struct start_args *a,
                        uw_error *err)
{
    uint64_t n = 0;

    if (strcmp(name, "--count") == 0) {
        int r = parse_u64(value, &n, err);
        if (r < 0)
            return fail_in(err, r, "--count");
        if (n < 1 || n > SIM_MACHINE_BOARDS_MAX)
            return fail(err, -ERANGE, "--count: %s is outside 1..%d boards", value,
                        SIM_MACHINE_BOARDS_MAX);
        a->count = (unsigned)n;
        a->counted = true;
        return 0;
    }
    int r = parse_double(value, &a->speed, err);
    if (r < 0)
        return fail_in(err, r, "--speed");
    if (!(a->speed >= SPEED_MIN && a->speed <= SPEED_MAX))
        return fail(err, -ERANGE, "--speed: %s is outside %g..%g", value, SPEED_MIN,
                    SPEED_MAX);
    return 0;
}

static int unknown_option(const char *name, uw_error *err)
{
    static const char *const known[] = {"--board", "--count",   "--machine",
                                        "--speed", "--may-set", "--foreground",
                                        "--state", NULL};
    char hint[NEAREST_TEXT];

    return fail(err, -EINVAL,
                "start: unknown option '%.40s'%s: one of --board, --count, --machine, "
                "--speed, --may-set, --foreground, --state",
                name, nearest_of(name, known, hint));
}

static int parse(int argc, char **argv, struct start_args *a, uw_error *err)
{
    for (int i = 0; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--foreground") == 0) {
            a->foreground = true;
            continue;
        }
        bool text = strcmp(name, "--board") == 0 || strcmp(name, "--machine") == 0 ||
                    strcmp(name, "--may-set") == 0;
        if (!text && strcmp(name, "--count") != 0 && strcmp(name, "--speed") != 0)
            return unknown_option(name, err);
        if (i + 1 >= argc)
            return fail(err, -EINVAL, "%s: a value is missing", name);
        const char *value = argv[++i];
        if (strcmp(name, "--board") == 0)
            a->board = value;
        else if (strcmp(name, "--machine") == 0)
            a->machine = value;
        else if (strcmp(name, "--may-set") == 0)
            a->may_set = value;
        else if (parse_number(name, value, a, err))
            return -EINVAL;
    }
    if (a->machine && (a->board || a->counted))
        return fail(err, -EINVAL, "--machine cannot be combined with --board or --count");
    return 0;
}

static int make_machine(const struct start_args *a, struct sim_machine *ret,
                        uw_error *err)
{
    static const char *const who[] = {"root", "anyone", NULL};
    char none[NEAREST_NONE];
    int r = a->machine
                ? sim_machine_read(a->machine, ret, err)
                : sim_machine_builtin(a->board ? a->board : "v100", a->count, ret, err);

    if (r && !a->machine)
        return fail_in(err, r, "--board");
    if (r || !a->may_set)
        return r;
    if (strcmp(a->may_set, "root") == 0)
        ret->may_set = SIM_MAY_ROOT;
    else if (strcmp(a->may_set, "anyone") == 0)
        ret->may_set = SIM_MAY_ANYONE;
    else
        return fail(err, -EINVAL, "--may-set: %s",
                    nearest_none_of(a->may_set, who, none));
    return 0;
}

/* Runs the world's process; if detached, its messages go to the log. */
static int run_world(const struct server_opts *opts, bool detach)
{
    uw_error err = {""};
    char byte = 'E';

    if (detach) {
        auto_(fd_close) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (setsid() < 0 || chdir("/") || null < 0 || dup2(null, 0) < 0 ||
            dup2(null, 1) < 0 || dup2(null, 2) < 0)
            return EXIT_FAIL;
    }
    int r = server_run(opts, &err);
    if (r && detach) {
        /* The starter still reads: one byte, then the text. */
        if (write(opts->ready_fd, &byte, 1) == 1)
            (void)!write(opts->ready_fd, err.text, strlen(err.text));
    } else if (r) {
        return complain(EXIT_FAIL, "%s", err.text);
    }
    return r ? EXIT_FAIL : EXIT_OK;
}

static void welcome(const struct sim_env *env, const struct sim_machine *m, double speed)
{
    const char *option = env->named ? " --state " : "";
    const char *dir = env->named ? env->state_dir : "";

    printf("simulated node up: %zu board%s (%s), clock at %g x real time\n", m->n_boards,
           m->n_boards == 1 ? "" : "s", m->name, speed);
    printf("  state    %s\n", env->state_dir);
    printf("  look     underwatt-sim%s%s exec -- underwatt list\n", option, dir);
    printf("  train    underwatt-sim%s%s exec -- \\\n"
           "               underwatt-sim train --workload resnet50 --gpus 0\n",
           option, dir);
    printf("  end      underwatt-sim%s%s stop\n", option, dir);
}

/* Waits until the world is ready, or reports why it is not. */
static int wait_ready(int fd, char *ret_text, size_t size)
{
    char byte = 'E';
    ssize_t n;

    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1 && byte == '\0')
        return 0;
    size_t at = 0;
    while (n == 1 && at + 1 < size && (n = read(fd, ret_text + at, size - 1 - at)) > 0)
        at += (size_t)n;
    ret_text[at] = '\0';
    return -EIO;
}

static int start_detached(const struct sim_env *env, struct server_opts *opts)
{
    char text[256];
    int fds[2];

    if (pipe2(fds, O_CLOEXEC))
        return complain(EXIT_FAIL, "pipe: %s", strerror(errno));
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return complain(EXIT_FAIL, "fork: %s", strerror(errno));
    if (pid == 0) {
        (void)close(fds[0]);
        opts->ready_fd = fds[1];
        return run_world(opts, true);
    }
    (void)close(fds[1]);
    int r = wait_ready(fds[0], text, sizeof text);
    (void)close(fds[0]);
    if (!r) {
        welcome(env, opts->machine, opts->speed);
        return EXIT_OK;
    }
    (void)waitpid(pid, NULL, 0);
    return complain(EXIT_FAIL, "%s", *text ? text : "the simulated world did not start");
}

int cmd_start(const struct sim_env *env, int argc, char **argv)
{
    struct start_args args = {.count = 1, .speed = 1};
    static struct sim_machine machine;
    uw_error err = {""};

    if (parse(argc, argv, &args, &err) || make_machine(&args, &machine, &err))
        return complain(EXIT_USAGE, "%s", err.text);
    if (!env->library[0])
        return complain(EXIT_FAIL,
                        "no simulated libnvidia-ml.so.1 beside %s or in "
                        "../lib/underwatt/sim: build or install it",
                        env->program);
    struct server_opts opts = {.machine = &machine,
                               .state_dir = env->state_dir,
                               .library = env->library,
                               .speed = args.speed,
                               .ready_fd = -1};
    if (args.foreground)
        return run_world(&opts, false);
    return start_detached(env, &opts);
}
