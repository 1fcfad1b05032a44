/* Judging what was found on this machine.  Pure: facts in, findings out. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/findings.h"
#include "cli/machine.h"
#include "cli/survey.h"

/* A board's energy counter against its power, over a few seconds. */
struct doctor_energy {
    bool looked;               /* the board answered */
    unsigned changes;          /* how often the counter moved */
    double counter_j, power_j; /* over the same time; only where changes > 1 */
    double time_s;
};

struct doctor_rapl {
    int r; /* of opening: 0, GPU_ABSENT */
    size_t n, readable;
    uw_error error; /* of the first that is not readable */
};

/* For the actuator's path; tests/system/test-sudoers.py has visudo read it. */
#define DOCTOR_SUDOERS "%%underwatt-admin ALL = (root) NOPASSWD: %s --local"

struct doctor_facts {
    struct machine machine;
    bool root;         /* runs as root */
    const char *named; /* the library that was asked for; NULL: the system's */
    int look_r;        /* gpu_boards_look() */
    uw_error look_error;
    struct gpu_about look;
    const struct survey *survey;        /* NULL: not asked (no library) */
    const struct doctor_energy *energy; /* one a board of the survey, or NULL */
    struct doctor_rapl rapl;
    double loop_speed;  /* of this command's clock */
    char actuator[512]; /* the program that sudo would start; "" none */
    uw_error
        actuator_unsafe; /* why others than root could have changed it; "" they cannot */
};

/* Why there is no board to work with: library, driver, doors. */
void doctor_judge_access(const struct doctor_facts *facts, struct findings *ret);
/* All of it. */
void doctor_judge(const struct doctor_facts *facts, struct findings *ret);

#endif
