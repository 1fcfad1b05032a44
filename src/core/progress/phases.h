/* The phase of a board's work, and its changes, from telemetry alone.
 *
 *     phases_feed() each sample: true where phases_event() of the newest events changed
 *
 * A change is detected when a sample, a mean or a swing at some time scale leaves the
 * range that the present regime has shown since it began (envelope.h), in two readings in
 * a row.  The onset is then placed where the likelihood of the readings under the new
 * pattern overtakes that under the old one.  Regimes are remembered: a return to the
 * training pattern is recognised within two readings, and the pattern is not learned
 * again.
 *
 * The kind is guessed from levels, see kind.h.  It may be corrected while the regime
 * lasts (a dip is a checkpoint until it lasts too long for one).
 *
 * At first it is unknown whether a level that is left and returned to is a phase or the
 * gap of a long step.  Such events are reported at once and withdrawn when the cycle
 * repeats; until then, for about two steps longer than 4 s, they are false alarms.
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
    uint64_t onset_ns;    /* estimated begin of the phase */
    uint64_t fired_ns;    /* when the change was detected */
    enum phase_kind kind; /* the latest guess */
    enum phase_kind first_kind;
    bool back;             /* a return to a regime seen before */
    uint64_t withdrawn_ns; /* 0: valid; else when it was found to be a part of a step */
};

struct phases;

enum { PHASES_EVENTS = 32 };

/* -ENOMEM. */
int phases_new(struct phases **ret);
void phases_free(struct phases *p);
DEFINE_AUTO(struct phases *, phases_free);

/* Feeds a sample; ignored if not later than the last one or without power.  True: events
 * were added or corrected.
 */
bool phases_feed(struct phases *p, const struct activity *a);

/* Number of events so far; the newest PHASES_EVENTS of them can be read. */
uint64_t phases_events(const struct phases *p);
/* NULL: not kept. */
const struct phase_event *phases_event(const struct phases *p, uint64_t no);

/* The phase now, and its begin; 0: no sample was fed. */
enum phase_kind phases_now(const struct phases *p);
uint64_t phases_since(const struct phases *p);

/* The board's limit has changed (most_w: the most it may draw now).  The phase continues;
 * its pattern is learned again from the next sample.
 */
void phases_rescale(struct phases *p, double most_w);

/* Share of correct guesses of this kind, on simulated jobs (docs/design/phases.md); 0
 * unknown.
 */
double phase_confidence(enum phase_kind kind);

#endif
