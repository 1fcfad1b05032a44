/* The commands of `underwatt`: one file each, all in one table. */
#ifndef CLI_CMD_H
#define CLI_CMD_H

#include <stdbool.h>

#include "gpu/backends.h"

/* X(NAME) stands for `const struct cmd cmd_NAME` in cmd-NAME.c. */
#define CLI_COMMANDS(X) \
    X(list)             \
    X(doctor)           \
    X(measure)          \
    X(run)              \
    X(cap)              \
    X(keep)             \
    X(sweep)            \
    X(explain)          \
    X(jobs)             \
    X(release)          \
    X(report)           \
    X(signal)           \
    X(signals)          \
    X(carbon)           \
    X(price)            \
    X(top)              \
    X(policy)

/* Exit codes are part of the interface: see underwatt(1). */
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAIL = 1,
    EXIT_USAGE = 2,   /* bad arguments or values: nothing was changed */
    EXIT_PARTIAL = 3, /* some boards done, some not */
    /* Commands that start CMD return CMD's status, or one of these. */
    EXIT_BEFORE = 125, /* Underwatt failed before CMD started */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127,
};

/* What main() reads from the environment and the kernel.  NULL: the variable is not set.
 * Nothing else reads the environment.
 */
struct cli_env {
    const char *boards;         /* a boards text (gpu/backends.h): UNDERWATT_BOARDS */
    const char *clock;          /* UNDERWATT_CLOCK: loop_clock_parse() */
    const char *data;           /* UNDERWATT_DATA */
    struct gpu_visible visible; /* boards that the environment leaves to a job */
    const char *cuda_injection; /* CUDA_INJECTION64_PATH */
    const char *path;           /* PATH */
    const char *runtime_dir;    /* XDG_RUNTIME_DIR */
    const char *socket;         /* UNDERWATT_SOCKET: the daemon's */
    const char *sim_state;      /* UNDERWATT_SIM_STATE: of a simulated world */
    const char *slurm_conf;     /* SLURM_CONF */
    const char *slurm_node;     /* SLURMD_NODENAME */
    const char *zone;           /* TZ */
    bool no_color;              /* NO_COLOR is set, to anything */
    bool root;                  /* runs as root (never through sudo) */
    bool dropped; /* was started through sudo and switched to the calling user */
};

struct cmd {
    const char *name;
    const char *args; /* "[OPTIONS] -- CMD [ARG…]" */
    const char *help; /* one line, no full stop */
    /* argv[0] is the command's name. */
    int (*run)(const struct cli_env *env, int argc, char **argv); /* enum exit_code */
};

#define CLI_DECLARE(name) extern const struct cmd cmd_##name;
CLI_COMMANDS(CLI_DECLARE)
#undef CLI_DECLARE

/* Writes "underwatt: …" and a newline to stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, and returns `code`. */
int cli_fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* EXIT_USAGE for -EINVAL and -ERANGE (bad values), else EXIT_FAIL. */
int cli_exit_of(int r);
/* The shell's exit code for a wait status: 0..255, 128+N for signal N. */
int cli_exit_of_status(int status);
/* The shell's exit code for the -errno of a program that cannot be executed. */
int cli_exit_of_exec(int r);

#endif
