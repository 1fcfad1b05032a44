/* The options of a simulated training job (`underwatt-sim train`), parsed by the command,
 * by the world's process and by the virtual node.
 */
#ifndef SIM_JOB_H
#define SIM_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "underwatt/error.h"
#include "underwatt/progress.h"

enum {
    JOB_PHASES_MAX = 16,
    JOB_TEXT_MAX = 512,
    JOB_STEPS_MAX = 100000000,
    JOB_EPOCHS_MAX = 1000000,
    JOB_GRANT_MAX_S = 10000000,
};

struct sim_job_phase {
    enum uw_phase phase;
    double s;       /* duration: load, checkpoint, startup */
    double percent; /* validate: of the epoch's training steps */
};

#define SIM_JOB_ALL "all" /* --gpus: as without it */

struct sim_job {
    char workload[32];
    uint64_t boards; /* bit i: board i; 0: every board */
    uint64_t beyond; /* a number that no machine has a board of; 0: none */
    uint32_t epochs;
    uint32_t steps; /* training steps an epoch; 0: the workload's */
    struct sim_job_phase phase[JOB_PHASES_MAX]; /* of each epoch, in order */
    size_t n_phases;
    double startup_s;   /* once, before the first epoch */
    bool driven;        /* does what a program grants: workload and boards alone count */
    bool steps_alone;   /* its page reports no phases */
    uint32_t change_at; /* training step from which steps change; 0: never */
    /* factors of a step's time and dynamic power from then on */
    double change_time, change_power;
};

/* args: the arguments after "train". -EINVAL with a text that names the option and its
 * values; -ERANGE for a number out of range.
 *
 *   --workload NAME   resnet50; "none" computes nothing and runs until it is killed
 *   --gpus 0,1        default: every board
 *   --epochs N        1
 *   --steps N         training steps an epoch; default: the workload's
 *   --tells steps|phases  what the page reports: steps only, or phases as well (default)
 *   --phases LIST     of an epoch, from startup=TIME (once), load=TIME, train,
 *                     validate=PERCENT% (of the steps), checkpoint=TIME;
 *                     default: load=1s,train,validate=5%,checkpoint=1s
 *   --change STEP:T:P from training step STEP on, a step takes T times the time at P
 *                     times the dynamic power (each 0.2..5), until the job ends
 */
int sim_job_parse(const char *const *args, size_t n, struct sim_job *ret, uw_error *err);

/* The same from one text with blanks between the arguments, as sent over the socket. */
int sim_job_parse_text(const char *text, struct sim_job *ret, uw_error *err);

/* The same for a driven job, of --workload and --gpus alone. */
int sim_job_parse_driven(const char *text, struct sim_job *ret, uw_error *err);

/* Joins arguments to such a text. -E2BIG: too long. */
int sim_job_text(const char *const *args, size_t n, char *ret, size_t size,
                 uw_error *err);

#endif
