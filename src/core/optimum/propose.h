/* The search's judgement apart from its state: given what was measured, where to
 * look next, or which cap to keep.  A function of its argument: no memory, no
 * chance.  search.c turns it into steps and keeps the safety rules.
 */
#ifndef CORE_OPTIMUM_PROPOSE_H
#define CORE_OPTIMUM_PROPOSE_H

#include <stdbool.h>

#include "core/optimum/level.h"

enum { PROPOSE_WHY_MAX = 160, PROPOSE_LENGTH_MAX = 4 };

struct proposal {
    bool hold;
    double cap_w;        /* measure here, or keep this */
    unsigned length;     /* … by a window so many times the ordinary length */
    double best_w;       /* what would be kept now … */
    double log_t, log_e; /* … and what is expected there */
    char why[PROPOSE_WHY_MAX];
};

/* windows_left == 0 or lo_w == hi_w measured: always a hold. */
struct outlook; /* room for the work, kept by the caller; no memory in it */
void propose(const struct scene *scene, struct outlook *room, struct proposal *ret);

#endif
