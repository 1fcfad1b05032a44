/* The kind of a phase, guessed from levels and how long they last.  Pure.
 *
 * Start-up is what comes before anything that looks like training.  Training: the first
 * regime that swings, or works at half of the SMs or more, or draws 1.5 times what the
 * trace began with; what draws 1.5 times as much as that is training instead.  After
 * that, relative to training's mean power above the lowest mean seen:
 *
 * - under 0.35 a pause: idle from 45 s on; before, loading where the SMs work a little,
 *   else a checkpoint (without utilisation: near the floor a checkpoint, above it
 *   loading);
 * - 0.35 to 0.85: validation, until it has lasted 180 s: then change;
 * - above: change where training was left for it, else (after a pause) training.
 */
#ifndef CORE_PROGRESS_KIND_H
#define CORE_PROGRESS_KIND_H

#include "core/progress/phases.h"

/* A regime or a stretch of it. */
struct look {
    double level_w, low_w, high_w;
    double noise_w;
    double sm, mem; /* percent; NAN unknown */
    double lasted_s;
};

struct look_back {
    double floor_w;   /* lowest mean of a regime so far */
    double first_w;   /* mean of the first regime */
    double train_w;   /* of training; 0: none yet */
    bool after_train; /* what was left is training */
};

enum phase_kind phase_guess(const struct look *l, const struct look_back *b);

#endif
