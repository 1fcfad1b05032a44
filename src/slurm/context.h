/* The SPANK plugin: options for srun, sbatch and salloc, and a thin client of underwattd
 * in slurmd's prolog and epilog (docs/slurm.md).  The room owns no state but what one
 * submission has been told; it may touch the daemon's socket, slurm.conf, gres.conf, the
 * table of boards, and /proc for when slurmd started and how srun was called.  It runs
 * inside srun, sbatch, salloc, slurmd and slurmstepd, on their thread: nothing here may
 * exit, abort, start a thread, change a signal, leave a descriptor open, or fail a job.
 */
#ifndef SLURM_CONTEXT_H
#define SLURM_CONTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Marks symbols that Slurm looks up by name as visible. */
#pragma GCC visibility push(default)
#include <slurm/spank.h>
#pragma GCC visibility pop

#include "slurm/wish.h"
#include "underwatt/error.h"

/* The plugin's arguments in plugstack.conf. */
struct arguments {
    const char *socket; /* may have %n, the node's name */
    const char *boards; /* the table; NULL: none */
    const char *gres;   /* NULL: beside slurm.conf */
    const char *times;  /* file to which hooks append their own time; NULL: none */
};
/* Reads the arguments.  -EINVAL: one is unknown or empty; the others are used. */
int context_arguments(int argc, char **argv, struct arguments *ret, uw_error *err);

/* The bytes of a regular file of at most 64 KiB: *ret, to be freed, and its length, or
 * -errno.
 */
int context_file(const char *path, char **ret, uw_error *err);

/* The options, in the order of their values. */
enum option { OPTION_CAP, OPTION_GOAL, OPTION_CLASS, OPTIONS };
extern struct spank_option context_option[OPTIONS];
/* Parses the value of an option into a request. */
int context_wish(enum option which, const char *value, struct wish *ret, uw_error *err);

/* srun, sbatch, salloc: registers the options with their check, and hands on
 * SLURM_GPU_POWER_CAP.  wrong: what is wrong with the arguments, or NULL.
 */
void submission_begin(spank_t sp, const struct arguments *args, const uw_error *wrong);
/* All options have been read. */
void submission_end(spank_t sp);
/* Tells the prolog that the job's cap takes precedence over its goal: the variable for
 * Slurm and the prolog; the job's commands see it with the prefix SLURM_.
 */
#define CAP_FIRST_SET "UNDERWATT_CAP_FIRST"
#define CAP_FIRST "SPANK_" CAP_FIRST_SET
/* A value of an option: 0, or -1 with a line for the user. */
int submission_option(int which, const char *value, int remote);

/* A point in time, and the time that the thread has spent until then. */
struct hook_time {
    uint64_t at_ns;             /* CLOCK_MONOTONIC */
    uint64_t cpu_ns, queued_ns; /* computing, waiting for a CPU */
};

/* A hook of slurmd, under way. */
struct hook {
    const char *what; /* "prolog" */
    struct arguments args;
    uint64_t until_ns;       /* from the entry on */
    struct hook_time before; /* set if times are recorded */
    uint32_t job;
    uid_t uid;
    const char *node, *gpus; /* of the environment; "": none */
    bool concerned;          /* the job has GPUs, or one of the plugin's options */
};
/* False: the job cannot be identified. */
bool hook_begin(struct hook *h, const char *what, spank_t sp, int argc, char **argv);
/* The user's value of an option, or NULL. */
const char *hook_option(spank_t sp, enum option which);
/* A variable of slurmd's environment for prolog and epilog, or NULL. */
const char *hook_env(const char *name);
/* Sends the request to the daemon and logs errors in one line; note: an earlier error, or
 * "".
 */
void hook_ask(const struct hook *h, const char *request, int len, const char *note);
/* Adds the hook's own time to the file for it. */
void hook_end(const struct hook *h);

void prolog(spank_t sp, int argc, char **argv);
void epilog(spank_t sp, int argc, char **argv);

#endif
