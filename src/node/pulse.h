/* The rhythm of a job that tells of no steps: hears its boards' power and says each few
 * seconds whether one period of it is sure, and which stretch of whole, even cycles shows
 * it (core/progress/period.h).  Looks are made on a copy in a worker, beside the loop.
 *
 *     pulse_new() → pulse_listen(): fn after each look until pulse_rest() or the next
 *     pulse_listen(); looks of before tell nothing any more
 */
#ifndef NODE_PULSE_H
#define NODE_PULSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/progress/period.h"
#include "node/sampler.h"

struct pulse;

/* Below this it counts as unknown: of those above, 1 to 2 in 100 are wrong
 * (docs/period.md).
 */
#define PULSE_SURE 0.7

struct pulse_heard {
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
typedef int (*pulse_fn)(const struct pulse_heard *h, void *user);

struct pulse_board {
    struct sampler *sampler;
    size_t at;     /* the board's place in it */
    double most_w; /* it draws no more; 0: not known */
};

struct pulse_opts {
    struct loop *loop;
    struct loop_worker *worker; /* NULL: one of its own */
    const struct pulse_board *board;
    size_t n; /* of one job; beyond PERIOD_BOARDS they are not heard */
};
/* Hears from now on; the samplers outlive it. */
int pulse_new(const struct pulse_opts *opts, struct pulse **ret, uw_error *err);
void pulse_free(struct pulse *p);
DEFINE_AUTO(struct pulse *, pulse_free);

struct pulse_want {
    uint64_t from_ns;       /* what was heard before does not count */
    double least_s, most_s; /* the period is between these; 0, 0: any … */
    bool anew;              /* … of what is heard from now on */
    double first_s;         /* first look so long after from_ns … */
    double every_s;         /* … then so often */
    pulse_fn fn;
    void *user;
};
void pulse_listen(struct pulse *p, const struct pulse_want *want);
void pulse_rest(struct pulse *p); /* NULL is fine */

#endif
