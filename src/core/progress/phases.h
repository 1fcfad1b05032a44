/* Which phase a board's work is in, and when that changes, from telemetry alone.
 *
 *     phases_feed() each sample: true where phases_event() of the newest events changed
 *
 * What is found is that the pattern changed: a sample, a mean or a swing at some time
 * scale left everything that the present regime has shown since it began (envelope.h),
 * two readings in a row.  The onset is then placed where the likelihood of the readings
 * under the new pattern overtakes that under the old one.  Regimes are remembered: a
 * return to the training pattern is known within two readings and learned no second time.
 *
 * What is guessed is the kind, from levels: see kind.h.  It may be corrected while the
 * regime lasts (a dip is a checkpoint until it lasts too long for one).
 *
 * What cannot be known at first: whether a level that is left and returned to is a phase
 * or the gap of a long step.  Such events are made at once and withdrawn when the cycle
 * repeats; until then, about two steps longer than 4 s, they are false alarms.
 *
 * Pure: reads no clock.  Memory is fixed, some 350 kB a board; a sample costs some us.
 */
#ifndef CORE_PROGRESS_PHASES_H
#define CORE_PROGRESS_PHASES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/names.h"
#include "core/progress/activity.h"

enum phase_kind { JOB_PHASES(NAME_ENUM) PHASE_KINDS };

struct phase_event {
    uint64_t onset_ns;    /* when the phase began, estimated */
    uint64_t fired_ns;    /* when that was known */
    enum phase_kind kind; /* the latest guess */
    enum phase_kind first_kind;
    bool back;             /* a regime seen before */
    uint64_t withdrawn_ns; /* 0: stands; else: was a part of the step, known since then */
};

struct phases;

enum { PHASES_EVENTS = 32 };

/* -ENOMEM. */
int phases_new(struct phases **ret);
void phases_free(struct phases *p);
DEFINE_AUTO(struct phases *, phases_free);

/* A sample; period_s: of an iteration where it is known, else 0.  One that is not later
 * than the last, or without power, is left out.  True: events were added or corrected.
 */
bool phases_feed(struct phases *p, const struct activity *a, double period_s);

/* Events ever made; of them the newest PHASES_EVENTS can be read. */
uint64_t phases_events(const struct phases *p);
/* NULL: not kept (any more). */
const struct phase_event *phases_event(const struct phases *p, uint64_t no);

/* The phase now, and since when; 0: nothing was fed. */
enum phase_kind phases_now(const struct phases *p);
uint64_t phases_since(const struct phases *p);

/* The board's limit is another now (the most it may draw: most_w): what was learned is of
 * another scale.  The phase goes on, its pattern is learned anew from the next sample.
 */
void phases_rescale(struct phases *p, double most_w);

/* How often a board said to be in it was (docs/phases.md: simulated jobs); 0 unknown. */
double phase_confidence(enum phase_kind kind);

#endif
