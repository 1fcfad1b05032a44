/* Aliasing of a sensor that samples at fixed times: a tone faster than the sampling
 * appears as a slower one.  Arithmetic under period.h that can partly tell the two apart.
 * Pure.
 */
#ifndef CORE_PROGRESS_ALIAS_H
#define CORE_PROGRESS_ALIAS_H

#include <stdbool.h>

#include "core/progress/fold.h"

/* Component of s at hz: 2 / n x sum of x e^(-i 2 pi hz t). */
struct tone {
    double re, im;
};
struct tone tone_of(const struct series *s, double hz);
double tone_size(const struct tone *t);

/* The same tone on boards that work in step, whose sensors sample at different times.  A
 * tone with one turn more (or less) between two samples appears on each board at another
 * phase, by as many turns as its samples are late; boards that agree at the slow
 * frequency cannot all show a faster tone.
 */
struct tone_board {
    struct tone tone;
    double late;  /* sampling delay, in sampling periods */
    double error; /* standard deviation of late */
};
enum alias {
    ALIAS_OPEN, /* cannot be decided from these boards */
    ALIAS_EXCLUDED,
    ALIAS_SEEN, /* the boards agree at a faster frequency, not at the slow one */
};
enum alias alias_of(const struct tone_board *board, unsigned n);

/* Whether the energy that a counter has summed up, less its trend, has the tone that
 * power shows: one that is faster than the readings is gone from it.
 */
bool counter_has_tone(const struct series *power, const struct series *energy, double hz);
/* Whether the readings were taken at one rate and then at another, and both show the
 * tone: a faster one looks different at each.  Rates that are multiples tell nothing.
 */
bool rates_have_tone(const struct series *power, double hz);

/* How far a mean over window_s can be from mean_w, for a load that repeats at hz and
 * draws between 0 and most_w.
 */
struct reach {
    double over_w, under_w;
};
struct reach reach_of(double hz, double window_s, double mean_w, double most_w);

#endif
