/* The iteration period of a training job, from telemetry of its boards: the shortest time
 * after which the whole pattern of power and utilisation repeats.  For a step made of
 * micro-batches that is the step, if its end looks different from the rest; for long and
 * short steps in turn it is the pair; for a pattern in which one cycle in more than
 * PERIOD_PARTS is longer (a stall of the input every 20 steps) it is the common cycle.
 * Unknown is reported rather than guessed.
 *
 *     period_feed()    each sample, some 100 ns; times may jitter, values may be missing
 *     period_find()    every ten seconds, some ms: on a period_copy() outside the loop
 *
 * Method: newest spans of many lengths are folded at each period that repeats 3 to 100
 * times in them (phase dispersion: Stellingwerf 1978).  The residual around the folded
 * profile must be far less than by chance (F test with the degrees of freedom that its
 * autocorrelation allows), each part of the span must show the profile by itself, a
 * longer period is chosen only where it explains significantly more, and no frequency
 * that sampling could confuse with it may fit better.  The period itself is the
 * regression of the parts' phases on time, its error from their scatter.
 *
 * Pure: reads no clock; memory is fixed at period_new(), some 70 kB a board.
 */
#ifndef CORE_PROGRESS_PERIOD_H
#define CORE_PROGRESS_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/progress/activity.h"

#define PERIOD_LEAST_S 0.1
#define PERIOD_MOST_S 120.0
enum { PERIOD_BOARDS = 64, PERIOD_PARTS = 8 };

struct period;

enum period_why {
    PERIOD_FOUND,
    PERIOD_FEW,   /* too short a history */
    PERIOD_FLAT,  /* no signal varies by more than the readings' noise */
    PERIOD_NONE,  /* signals vary, but nothing repeats significantly */
    PERIOD_ALIAS, /* faster than the samples can resolve */
    PERIOD_MIXED, /* two patterns that are not one job's step */
};

struct period_found {
    enum period_why why;
    double period_s; /* 0 unknown */
    double rse;      /* relative standard error of period_s */
    /* 0..1: probability that it is within 2 % of the truth; 0 unknown */
    double confidence;
    double periods; /* number of periods folded */
    uint64_t from_ns, to_ns;
};

/* boards: of one job, 1..PERIOD_BOARDS.  -EINVAL, -ENOMEM. */
int period_new(unsigned boards, struct period **ret);
int period_copy(const struct period *p, struct period **ret);
void period_free(struct period *p);
DEFINE_AUTO(struct period *, period_free);

/* How the boards' power readings are made (see meter.h), if known.  Readings of a sensor
 * that samples at fixed times cannot tell a period from a far shorter one; a sensor that
 * averages all the time between can, as it attenuates the shorter one.
 */
struct period_sensor {
    double update_s; /* time between new readings; 0: not known */
    double window_s; /* length of time averaged */
    double most_w;   /* most power of a board; 0: not known */
};
void period_sensor(struct period *p, const struct period_sensor *sensor);

/* A sample of one board; ignored if closer than 10 ms to that board's last sample. */
void period_feed(struct period *p, unsigned board, const struct activity *a);
/* Forgets all samples: other work begins. */
void period_forget(struct period *p);

/* The period now, from the newest spans. */
void period_find(const struct period *p, struct period_found *ret);
/* The time of a unit of work between two times (a window at one cap), if the period is
 * known to lie within least_s..most_s: fewer cycles are enough.
 */
void period_between(const struct period *p, uint64_t from_ns, uint64_t to_ns,
                    double least_s, double most_s, struct period_found *ret);

/* The longest run of whole cycles between two times with typical power (no pause, no
 * start-up, no other cap).  False: none.
 */
bool period_run(const struct period *p, uint64_t from_ns, uint64_t to_ns, double period_s,
                uint64_t *ret_from_ns, uint64_t *ret_to_ns);

/* For jobs without a period: SM activity between two times, the mean over boards of
 * utilisation x clock relative to the highest clock seen; NAN unknown.  It rises with
 * stalls inside kernels as well as with work, and does not measure speed under a cap: for
 * display only, never for a search.
 */
double period_busy(const struct period *p, uint64_t from_ns, uint64_t to_ns);

#endif
