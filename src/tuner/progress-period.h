/* The rhythm of a job that tells of no steps: hears its boards' power and says each few
 * seconds whether one period of it is sure, and which stretch of whole, even cycles shows
 * it (core/progress/period.h).  Looks are made on a copy in a worker, beside the loop.
 *
 *     progress_period_new() → progress_period_listen(): fn after each look until
 * progress_period_rest() or the next progress_period_listen(); looks of before tell
 * nothing any more
 */
#ifndef TUNER_PROGRESS_PERIOD_H
#define TUNER_PROGRESS_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"
#include "core/progress/period.h"

struct progress_period;

/* Below this it counts as unknown: of those above, 1 to 2 in 100 are wrong
 * (docs/period.md).
 */
#define PROGRESS_PERIOD_SURE 0.7

struct progress_period_heard {
    uint64_t at_ns; /* of the look */
    bool known;     /* then: */
    double period_s, rse, confidence;
    uint64_t from_ns, to_ns; /* whole cycles that draw alike, … */
    double cycles;           /* … so many */
    /* Always: */
    enum period_why why;
    double best; /* the confidence that was reached */
    double busy; /* see period_busy(), since listening; NAN unknown */
    double util; /* share of that time in which the boards computed; NAN unknown */
};
typedef int (*progress_period_fn)(const struct progress_period_heard *h, void *user);

struct progress_period_board {
    struct sampler *sampler;
    size_t at;     /* the board's place in it */
    double most_w; /* it draws no more; 0: not known */
};

struct progress_period_opts {
    struct loop *loop;
    struct loop_worker *worker; /* NULL: one of its own */
    const struct progress_period_board *board;
    size_t n; /* of one job; beyond PERIOD_BOARDS they are not heard */
};
/* Hears from now on; the samplers outlive it. */
int progress_period_new(const struct progress_period_opts *opts,
                        struct progress_period **ret, uw_error *err);
void progress_period_free(struct progress_period *p);
DEFINE_AUTO(struct progress_period *, progress_period_free);

struct progress_period_want {
    uint64_t from_ns;       /* what was heard before does not count */
    double least_s, most_s; /* the period is between these; 0, 0: any … */
    bool anew;              /* … of what is heard from now on */
    double first_s;         /* first look so long after from_ns … */
    double every_s;         /* … then so often */
    progress_period_fn fn;
    void *user;
};
void progress_period_listen(struct progress_period *p,
                            const struct progress_period_want *want);
void progress_period_rest(struct progress_period *p); /* NULL is fine */

#endif
