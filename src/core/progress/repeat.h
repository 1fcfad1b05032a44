/* The period of one span of samples: candidates, their proof, and the choice between
 * them.  Pure arithmetic under period.h.
 */
#ifndef CORE_PROGRESS_REPEAT_H
#define CORE_PROGRESS_REPEAT_H

#include <stdbool.h>

#include "core/progress/fold.h"
#include "core/progress/period.h"

enum { VIEW_SERIES = 6, VIEW_LEAST = 12 };

/* Signals of one job over one span, of one board or of several. */
struct view {
    unsigned n;
    struct series s[VIEW_SERIES];
    double total[VIEW_SERIES];
    double span_s, dt_s; /* dt_s: typical time between samples */
};

struct repeat {
    enum period_why why;
    double hz, rse;
    double cycles;    /* that were folded */
    double surprise;  /* see struct fold */
    double explained; /* share of the variance, of the signal that shows it best */
    double samples;   /* a cycle */
    double margin;    /* by how much the best part off the truth would … */
};

/* The period among least_hz..most_hz. */
void repeat_find(const struct view *v, double least_hz, double most_hz,
                 struct repeat *ret);

/* Does a frequency that these samples show as hz (or as the harmonic of it that carries
 * the pattern) explain more than hz itself?  Only uneven samples can tell.
 */
bool repeat_is_alias(const struct view *v, double hz);
/* Does a fraction of the period, seen in finer samples, explain as much? */
bool repeat_has_fraction(const struct view *v, double hz);
/* Does a multiple of the period explain more, so that it is no more than a part? */
bool repeat_is_part(const struct view *v, double hz);
/* Does one that they cannot show explain more than any that they can? */
bool repeat_is_too_fast(const struct view *v);
/* Is the pattern at hz no more than two shorter ones laid over each other, whose common
 * multiple it is?  Two jobs on a board are, a step is not.
 */
bool repeat_is_mixture(const struct view *v, double hz);

/* The signals' mean goes, and what moves slower than width_s; total and dt_s are set. */
void view_finish(struct view *v);

#endif
