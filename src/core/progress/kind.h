/* Guesses the kind of a phase from power levels and durations.  Pure.
 *
 * Start-up is all before the first training.  Training is the first regime that swings,
 * or uses half of the SMs or more, or draws 1.5 times the power at the start of the
 * trace; a later regime that draws 1.5 times as much as that is training instead.  After
 * that, relative to training's mean power above the lowest mean seen:
 *
 * - under 0.35 a pause: idle from 45 s on; before, loading if the SMs work a little, else
 *   a checkpoint (without utilisation: near the floor a checkpoint, above it loading);
 * - 0.35 to 0.85: validation, and after 180 s a change;
 * - above: a change if it follows training directly, else (after a pause) training.
 */
#ifndef CORE_PROGRESS_KIND_H
#define CORE_PROGRESS_KIND_H

#include "core/progress/phases.h"

/* Features of a regime, or of a part of it. */
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
    bool after_train; /* the previous regime is training */
};

enum phase_kind phase_guess(const struct look *l, const struct look_back *b);

#endif
