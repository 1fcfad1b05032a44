/* The period of a job that reports no steps: listens to its boards' power and determines
 * every few seconds whether one period is certain, and in which stretch of whole, even
 * cycles (core/progress/period.h).  A worker analyses a copy of the data.
 *
 *     progress_period_new() → progress_period_listen(): fn after each analysis, until
 *     progress_period_rest() or the next progress_period_listen(), which discard an
 *     analysis under way
 */
#ifndef TUNER_PROGRESS_PERIOD_H
#define TUNER_PROGRESS_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"
#include "core/progress/period.h"

struct progress_period;

/* Least confidence of a known period; of such periods, 1 to 2 in 100 are wrong
 * (docs/design/period.md).
 */
#define PROGRESS_PERIOD_SURE 0.7

struct progress_period_heard {
    uint64_t at_ns; /* time of the analysis */
    bool known;
    /* If known: */
    double period_s, rse, confidence;
    uint64_t from_ns, to_ns; /* stretch of whole cycles with similar power */
    double cycles;           /* number of these cycles */
    /* Always: */
    enum period_why why;
    double best; /* the highest confidence reached */
    double busy; /* see period_busy(), since listening began; NAN: unknown */
    double util; /* mean SM utilisation in that time, 0..1; NAN: unknown */
};
typedef int (*progress_period_fn)(const struct progress_period_heard *h, void *user);

struct progress_period_board {
    struct sampler *sampler;
    size_t at;     /* the board's index in the sampler */
    double most_w; /* its highest power; 0: unknown */
};

struct progress_period_opts {
    struct loop *loop;
    struct loop_worker *worker; /* NULL: creates one */
    const struct progress_period_board *board;
    size_t n; /* boards of one job; the first PERIOD_BOARDS are used */
};
/* Records power from now on; the samplers must outlive it. */
int progress_period_new(const struct progress_period_opts *opts,
                        struct progress_period **ret, uw_error *err);
void progress_period_free(struct progress_period *p);
DEFINE_AUTO(struct progress_period *, progress_period_free);

struct progress_period_want {
    uint64_t from_ns;       /* earlier samples are not used */
    double least_s, most_s; /* bounds of the period; 0, 0: any */
    bool anew;              /* discard the samples so far */
    double first_s;         /* from from_ns to the first analysis */
    double every_s;         /* interval of analyses */
    progress_period_fn fn;
    void *user;
};
/* p may be NULL, here and below: nothing is heard. */
void progress_period_listen(struct progress_period *p,
                            const struct progress_period_want *want);
void progress_period_rest(struct progress_period *p);

#endif
