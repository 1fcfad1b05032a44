/* Slurm's files on this machine, as far as the SPANK plugin depends on them
 * (docs/slurm.md).
 */
#ifndef CLI_DOCTOR_SLURM_H
#define CLI_DOCTOR_SLURM_H

#include <stdbool.h>
#include <time.h>

#include "cli/findings.h"
#include "gpu/gpu.h"
#include "slurm/gres.h"
#include "slurm/wish.h"
#include "underwatt/error.h"

enum { DOCTOR_SLURM_PATH = 512 };

struct doctor_slurm {
    bool found;      /* there is a slurm.conf; without one nothing is judged */
    bool configless; /* slurmd has it from slurmctld, and writes it when it starts */
    char conf[DOCTOR_SLURM_PATH], plugstack[DOCTOR_SLURM_PATH];
    int conf_r; /* -errno: slurm.conf or plugstack.conf cannot be read */
    uw_error conf_error;
    bool listed, required;          /* the plugin's line in plugstack.conf */
    char plugin[DOCTOR_SLURM_PATH]; /* its library, as it stands there */
    bool library;                   /* … and is a file */
    char socket[DOCTOR_SLURM_PATH]; /* its argument, with %n filled in; "": none */
    bool socket_there;
    char unknown[DOCTOR_SLURM_PATH]; /* an argument that the plugin does not know; "" */
    char boards[DOCTOR_SLURM_PATH];  /* its table of boards; "": none */
    int boards_r;                    /* … or -errno: it cannot be read, has no form */
    uw_error boards_error;
    struct table table;   /* what stands there */
    char node[128];       /* this machine's name for Slurm */
    bool slurmd;          /* it runs jobs on this machine */
    bool slurmd_older;    /* slurmd runs since before plugstack.conf was written */
    bool prolog_contains; /* PrologFlags has Contain, or what implies it */
    char gres[DOCTOR_SLURM_PATH]; /* gres.conf; "": there is none */
    int gres_r;                   /* GPUs of this node, or -errno */
    uw_error gres_error;
    struct timespec slurmd_began;
    char unread[DOCTOR_SLURM_PATH]; /* changed since: the plugin trusts it no more */
    int types_r;                    /* of slurm.conf's Gres, or -errno */
    uw_error types_error;
    struct gres_types types;
    unsigned named; /* GPUs of this node in gres.conf, wanted by slurm.conf or not */
};

/* conf: of the environment, or NULL; node: this machine's name for Slurm. */
void doctor_slurm_read(const char *conf, const char *node, struct doctor_slurm *ret);
void doctor_slurm_judge(const struct doctor_slurm *s, struct findings *ret);
/* Whether the table has boards whose every cap this board of the node takes. */
void doctor_slurm_judge_board(const struct doctor_slurm *s, const struct gpu_info *info,
                              const struct gpu_limits *limits, struct findings *ret);

#endif
