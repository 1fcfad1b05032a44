/* Judges the facts about this machine.  Pure: facts in, findings out. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/findings.h"
#include "cli/machine.h"
#include "cli/survey.h"

/* The energy counter of a board against its power, over a few seconds. */
struct doctor_energy {
    bool answered;             /* the board answered */
    unsigned changes;          /* how often the counter moved */
    double counter_j, power_j; /* over the same time; only where changes > 1 */
    double time_s;
};

struct doctor_rapl {
    int r; /* result of opening: 0, GPU_ABSENT or -errno */
    size_t n, readable;
    uw_error error; /* error of the first unreadable domain */
};

/* Formats the path of the actuator.  tests/system/test-sudoers.py checks it with visudo.
 */
#define DOCTOR_SUDOERS "%%underwatt-admin ALL = (root) NOPASSWD: %s --local"

struct doctor_facts {
    struct machine machine;
    bool root;         /* runs as root */
    const char *named; /* the requested library; NULL: the system's */
    int library_r;     /* gpu_boards_look() */
    uw_error library_error;
    struct gpu_about about;
    const struct survey *survey;        /* NULL: no library was found */
    const struct doctor_energy *energy; /* one a board of the survey, or NULL */
    struct doctor_rapl rapl;
    double loop_speed;        /* of this command's clock */
    char actuator[512];       /* the actuator that sudo would start; "": none */
    uw_error actuator_unsafe; /* why a user other than root can change it; "": root alone
                                 can */
};

/* Findings about library, driver and device files: why no board can be used. */
void doctor_judge_access(const struct doctor_facts *facts, struct findings *ret);
/* All findings. */
void doctor_judge(const struct doctor_facts *facts, struct findings *ret);

#endif
