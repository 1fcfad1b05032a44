/* The search's decision without its state: which cap to measure next, or to hold, given
 * the measured levels.  Pure and deterministic.  search.c turns a proposal into steps and
 * applies the safety rules.
 */
#ifndef CORE_OPTIMUM_PROPOSE_H
#define CORE_OPTIMUM_PROPOSE_H

#include <stdbool.h>

#include "core/optimum/level.h"

enum { PROPOSE_WHY_MAX = 160, PROPOSE_LENGTH_MAX = 4 };
/* Fraction of the goal's value: least gain for which a look leaves the held cap */
#define LOOK_GAIN 0.001

struct proposal {
    bool hold;
    double cap_w;        /* to measure or to hold */
    unsigned length;     /* of the window, in ordinary windows */
    double best_w;       /* the cap that would be held now */
    double log_t, log_e; /* expected at best_w */
    char why[PROPOSE_WHY_MAX];
};

struct outlook;
/* Always a hold if windows_left == 0, or lo_w == hi_w and that cap is measured.
 * outlook: the caller's memory; its previous content is ignored, the new one is valid
 * for this scene.
 */
void propose(const struct scene *scene, struct outlook *outlook, struct proposal *ret);

#endif
