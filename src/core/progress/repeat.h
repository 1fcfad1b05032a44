/* Finds the period of one span of samples: candidates, their proof, and the choice
 * between them.  Pure arithmetic under period.h.
 */
#ifndef CORE_PROGRESS_REPEAT_H
#define CORE_PROGRESS_REPEAT_H

#include <stdbool.h>

#include "core/progress/fold.h"
#include "core/progress/period.h"

enum { VIEW_SERIES = 6, VIEW_LEAST = 12 };

/* Signals of one job over one span, of one or more boards. */
struct view {
    unsigned n;
    struct series s[VIEW_SERIES];
    double total[VIEW_SERIES];
    double span_s, dt_s; /* dt_s: typical time between samples */
};

struct repeat {
    enum period_why why;
    double hz, rse;
    double cycles;    /* number folded */
    double surprise;  /* see struct fold */
    double explained; /* share of the variance, of the signal that shows it best */
    double samples;   /* per cycle */
};

/* Finds the period within least_hz..most_hz. */
void repeat_find(const struct view *v, double least_hz, double most_hz,
                 struct repeat *ret);

/* Whether a frequency that aliases to hz (or to its strongest harmonic) explains more
 * than hz itself.  Only uneven sample times can tell.
 */
bool repeat_is_alias(const struct view *v, double hz);
/* Whether a fraction of the period, in finer samples, explains as much. */
bool repeat_has_fraction(const struct view *v, double hz);
/* Whether a multiple of the period explains more, so that the period is only a part. */
bool repeat_is_part(const struct view *v, double hz);
/* Whether a frequency above the samples' rate explains more than any below it. */
bool repeat_is_too_fast(const struct view *v);
/* Whether the pattern at hz is the sum of two shorter ones with hz as common multiple:
 * two jobs on a board are, a step is not.
 */
bool repeat_is_mixture(const struct view *v, double hz);

/* Removes mean and drift from the signals; sets span_s, dt_s and total. */
void view_finish(struct view *v);

#endif
