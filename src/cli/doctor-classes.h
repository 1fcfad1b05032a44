/* Compares the classes in the plugin's table of boards (docs/slurm.md) with those that
 * this node's daemon knows.  Only doctor_classes_ask() does I/O.
 */
#ifndef CLI_DOCTOR_CLASSES_H
#define CLI_DOCTOR_CLASSES_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cmd.h"
#include "cli/doctor-slurm.h"
#include "cli/findings.h"
#include "slurm/wish.h"

enum { DOCTOR_CLASSES_MAX = 128 };

struct doctor_classes {
    bool told; /* a daemon has reported all its classes; without them nothing is judged */
    size_t n;
    char name[DOCTOR_CLASSES_MAX][WISH_TEXT];
    char file[DOCTOR_SLURM_PATH]; /* of the policy */
    bool in_force, refused;       /* a policy; the file as it is now */
};

void doctor_classes_ask(const struct cli_env *env, const char *boards,
                        struct doctor_classes *ret);
void doctor_classes_judge(const struct doctor_slurm *s, const struct doctor_classes *c,
                          struct findings *ret);

#endif
