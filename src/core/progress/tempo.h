/* Whether the steps of a training job take longer or less long than before, from the
 * power of its boards alone: a larger batch, frozen layers, a slow network.  The mean
 * power may stay what it was, so phases.h does not see it; it is told (phases_tempo()).
 *
 *     tempo_begin() when a phase of training begins
 *     tempo_feed()  each sample
 *     tempo_look()  as often: true once for each change
 *
 * The period (period.h) of the newest few steps is compared with that of those before;
 * two such windows that differ by clear evidence, to the same side, are a change.  It
 * began where what came before, continued, and what came since, continued backwards,
 * together explain the readings best.
 *
 * Pure: reads no clock.  Memory is fixed, some 130 kB; a look that compares takes about
 * a millisecond, once a step or each 2 s, whichever is longer.
 */
#ifndef CORE_PROGRESS_TEMPO_H
#define CORE_PROGRESS_TEMPO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/progress/activity.h"

struct tempo;

struct tempo_change {
    uint64_t onset_ns;
    double was_s, is_s; /* of a step */
};

/* -ENOMEM. */
int tempo_new(struct tempo **ret);
void tempo_free(struct tempo *t);
DEFINE_AUTO(struct tempo *, tempo_free);

/* A pattern begins, at from_ns: what was seen before counts no more. */
void tempo_begin(struct tempo *t, uint64_t from_ns);
/* A sample; one that is not later than the last, or without power, is left out. */
void tempo_feed(struct tempo *t, const struct activity *a);
/* Has the pace changed, as far as is known at now_ns?  Then it begins anew. */
bool tempo_look(struct tempo *t, uint64_t now_ns, struct tempo_change *ret);
/* Time of a step; 0: not known (yet). */
double tempo_period_s(const struct tempo *t);

#endif
