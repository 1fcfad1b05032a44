/* Whether the cap of a window below the reference had an effect.  A window without one is
 * one more window of the reference.  It had none if time and energy are the reference's
 * and the driver says so: by its counter and a cap that is not near the mean power, or by
 * the reasons for the clock in two windows; or if the driver does not say and the cap is
 * 1.5 times the mean power or higher.
 */
#ifndef CORE_OPTIMUM_EFFECT_H
#define CORE_OPTIMUM_EFFECT_H

#include "core/optimum/level.h"
#include "core/optimum/window.h"

enum effect {
    EFFECT_ANY, /* it had one, or that is not known */
    EFFECT_NONE,
    EFFECT_AGAIN, /* none in this window: one more at the same cap must agree */
};

struct effect_of {
    const struct level *reference;
    double offset_t, offset_e; /* subtracted from the logarithms of the window's values */
    /* Least variances of the differences from the reference, where the noise between
     * windows is known; only with the driver's word.
     */
    double var_t, var_e;
    unsigned gpus;
    bool bounded; /* the goal has a bound relative to the reference */
    bool again;   /* the window before was EFFECT_AGAIN at this cap */
};

enum effect effect_of(const struct search_window *w, const struct effect_of *of);

#endif
