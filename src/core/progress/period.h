/* The iteration period of a training job, from what telemetry shows of its boards: the
 * shortest time after which the whole pattern of power and utilisation repeats.  Of a
 * step made of micro-batches that is the step, where its end looks different from the
 * rest; of long and short steps in turn it is the pair; of a pattern in which one cycle
 * in more than PERIOD_PARTS is longer (a stall of the input every 20 steps) it is the
 * common cycle. Unknown is said rather than guessed.
 *
 *     period_feed() each sample          some 100 ns; times may jitter, values may be
 * missing period_find() every ten seconds    some ms: on a copy (period_copy()) beside
 * the loop
 *
 * Method: newest spans of many lengths are folded at each period that repeats 3 to 100
 * times in them (phase dispersion: Stellingwerf 1978); what remains around the folded
 * profile must be far less than chance would leave (F test with the degrees of freedom
 * that the autocorrelation of the remainder allows), each part of the span must show the
 * profile by itself, a longer period wins only where it explains significantly more, and
 * none of the frequencies that sampling could mistake for it may fit better.  The period
 * itself is the regression of the parts' phases on time, its error from their scatter.
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
    PERIOD_FEW,   /* too little was seen yet */
    PERIOD_FLAT,  /* nothing moves by more than the readings' own noise */
    PERIOD_NONE,  /* it moves, and nothing repeats surely enough */
    PERIOD_ALIAS, /* faster than the samples can tell */
    PERIOD_MIXED, /* two patterns that are not of one job's step */
};

struct period_found {
    enum period_why why;
    double period_s;   /* 0 unknown */
    double rse;        /* relative standard error of it */
    double confidence; /* 0..1: that it is within 2 % of the truth; 0 unknown */
    double periods;    /* how many were folded */
    uint64_t from_ns, to_ns;
};

/* boards: of one job, 1..PERIOD_BOARDS.  -EINVAL, -ENOMEM. */
int period_new(unsigned boards, struct period **ret);
int period_copy(const struct period *p, struct period **ret);
void period_free(struct period *p);
DEFINE_AUTO(struct period *, period_free);

/* How the boards' readings of power come about (see meter.h), where it is known. Readings
 * of a sensor that looks at fixed moments cannot tell a period from a far shorter one;
 * one that averages all the time between can, as it shows the shorter one much weakened.
 */
struct period_sensor {
    double update_s; /* a new reading this often; 0: not known */
    double window_s; /* the mean of so long a time */
    double most_w;   /* no board draws more; 0: not known */
};
void period_sensor(struct period *p, const struct period_sensor *sensor);

/* A sample of one board; one that is not later than its last is left out. */
void period_feed(struct period *p, unsigned board, const struct activity *a);
/* Something else begins: what was fed counts no more. */
void period_forget(struct period *p);

/* The period now, from the newest spans. */
void period_find(const struct period *p, struct period_found *ret);
/* The time of a unit of work between two moments (a window at one cap), where the period
 * is known to lie between two lengths: fewer cycles are enough.
 */
void period_between(const struct period *p, uint64_t from_ns, uint64_t to_ns,
                    double least_s, double most_s, struct period_found *ret);

/* The longest run of whole cycles between two moments, all of which draw what the typical
 * one does (no pause of the job, no start-up, no other cap).  False: there is none.
 */
bool period_run(const struct period *p, uint64_t from_ns, uint64_t to_ns, double period_s,
                uint64_t *ret_from_ns, uint64_t *ret_to_ns);

/* Where no period exists: how busy the SMs were between two moments, mean over the boards
 * of utilisation x clock relative to the highest clock seen; NAN unknown.  It rises with
 * stalls inside kernels as well as with work, and says nothing of speed under a cap: for
 * show, never for a search.
 */
double period_busy(const struct period *p, uint64_t from_ns, uint64_t to_ns);

#endif
