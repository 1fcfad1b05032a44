/* A sensor that looks at fixed moments shows what is faster than them as something
 * slower: what can be known of that all the same.  Pure arithmetic under period.h.
 */
#ifndef CORE_PROGRESS_ALIAS_H
#define CORE_PROGRESS_ALIAS_H

#include <stdbool.h>

#include "core/progress/fold.h"

/* The part of s that turns at hz: 2 / n x sum of x e^(-i 2 pi hz t). */
struct tone {
    double re, im;
};
struct tone tone_of(const struct series *s, double hz);
double tone_size(const struct tone *t);

/* The same tone on boards that work in step.  Their sensors' moments differ: what turns
 * once more between two of them (or the other way) is shown by each board at another
 * phase, by so many turns as its moments are late, so boards that agree at the slow
 * frequency cannot all show a faster one.
 */
struct tone_board {
    struct tone tone;
    double late;  /* of the sensor's moments: 0..1 of the time between two of them … */
    double error; /* … and the standard deviation of that */
};
enum alias {
    ALIAS_OPEN, /* the boards' moments or their work are not so that it shows */
    ALIAS_EXCLUDED,
    ALIAS_SEEN, /* they do not agree at the slow frequency, and do at a faster one */
};
enum alias alias_of(const struct tone_board *board, unsigned n);

/* How far means over window_s of a load can be from its mean_w where it repeats at hz
 * and draws between nothing and most_w.
 */
struct reach {
    double over_w, under_w;
};
struct reach reach_of(double hz, double window_s, double mean_w, double most_w);

#endif
