/* The commands of underwatt-sim.  Only main.c reads the environment. */
#ifndef SIM_MAIN_H
#define SIM_MAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/state.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAIL = 1,
    EXIT_USAGE = 2,
    EXIT_EXEC = 125,      /* exec failed before the program was started */
    EXIT_CANNOT = 126,    /* the program cannot be executed */
    EXIT_NOT_FOUND = 127, /* the program was not found */
};

struct sim_env {
    char state_dir[SIM_SOCKET_MAX * 2]; /* --state, UNDERWATT_SIM_STATE, or the default */
    char library[512];                  /* path of libnvidia-ml.so.1; "": not found */
    char program[512];                  /* path of this program */
    bool named;                         /* state_dir comes from --state */
    const char *progress;               /* UNDERWATT_PROGRESS; NULL: not set */
    const char *visible;                /* CUDA_VISIBLE_DEVICES */
    const char *library_path;           /* LD_LIBRARY_PATH */
    const char *path;                   /* PATH */
};

struct sim_command {
    const char *name, *args, *help;
    int (*run)(const struct sim_env *env, int argc, char **argv); /* enum exit_code */
};

extern const struct sim_command sim_commands[]; /* ends with a NULL name */

int cmd_start(const struct sim_env *env, int argc, char **argv);
int cmd_status(const struct sim_env *env, int argc, char **argv);
int cmd_stop(const struct sim_env *env, int argc, char **argv);
int cmd_exec(const struct sim_env *env, int argc, char **argv);
int cmd_fault(const struct sim_env *env, int argc, char **argv);
int cmd_reset(const struct sim_env *env, int argc, char **argv);
int cmd_train(const struct sim_env *env, int argc, char **argv);

/* Prints "underwatt-sim: …" to standard error; returns code. */
int complain(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
