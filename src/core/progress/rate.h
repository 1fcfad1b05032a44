/* Progress of a job whose launches never rest: the launches themselves.  Pure: fed with
 * counts over time.
 *
 * A loop that runs ahead of its boards launches at their pace, evenly or in clumps, and
 * nothing marks an iteration.  As long as it launches the same kernels, so many launches
 * are so many iterations, whatever that number is: the ratio of two rates under two caps
 * is the ratio of the job's speeds.  The rate of a stretch comes with a standard error
 * from its parts, which grows with clumps and slow noise; a stretch that drifts, or is in
 * two states, has none.  Pauses and phases at another level (a validation) are left out:
 * a level that jumps, and jumps back, is another phase; one that stays is another job.
 *
 * What it cannot know: whether each launch does the work that it did before (a new batch
 * size under the very step of a cap).  Whoever uses it compares the mix of launches, and
 * the rate at the same cap.
 */
#ifndef CORE_PROGRESS_RATE_H
#define CORE_PROGRESS_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

enum {
    RATE_PROCESSES = 63,
    RATE_STREAMS = 5,              /* kernels, their streams folded onto so many … */
    RATE_KINDS = RATE_STREAMS + 1, /* … and graphs */
};

struct rate_process {
    uint64_t pid, since_ns;    /* together its name */
    uint64_t kind[RATE_KINDS]; /* launches so far */
};

struct rate;

int rate_new(struct rate **ret); /* -ENOMEM; some 80 kB */
void rate_free(struct rate *r);
DEFINE_AUTO(struct rate *, rate_free);

/* Counts read at now_ns, n <= RATE_PROCESSES; who has launched nothing is left out.
 * Other processes than before, or counts that go back: everything begins anew.
 */
void rate_feed(struct rate *r, const struct rate_process *p, size_t n, uint64_t now_ns);

/* The cap becomes `by` times what it was: the level may change by what that can do. */
void rate_moved(struct rate *r, uint64_t now_ns, double by);

enum rate_why {
    RATE_FOUND,
    RATE_NOBODY, /* launches */
    RATE_FEW,    /* too short a stretch at one level so far */
    RATE_OTHER,  /* at another level now: a pause, a validation */
    RATE_DRIFTS, /* the rate is not one, but changes on the way */
    RATE_UNEVEN, /* its error is above RATE_RSE_MOST */
};
#define RATE_RSE_MOST 0.02

struct rate_found {
    enum rate_why why;
    uint64_t generation; /* rates of two have nothing in common */
    double rse;          /* relative standard error of per_s; NAN: not known */
    double needs_s;      /* a stretch this long would have RATE_RSE_GOOD; NAN */
    unsigned processes;  /* that launch */
    /* RATE_FOUND alone: */
    double per_s;            /* launches, of all */
    double confidence;       /* 0..0.95 */
    uint64_t from_ns, to_ns; /* the longest stretch at one level */
    double mix[RATE_KINDS];  /* their shares; sum 1 */
};
#define RATE_RSE_GOOD 0.003

/* Over what was fed from from_ns on. */
void rate_find(const struct rate *r, uint64_t from_ns, struct rate_found *ret);

/* 0..1: so much of one mix is something else in the other. */
double rate_apart(const struct rate_found *a, const struct rate_found *b);

/* After a cap has changed, the queue between program and boards fills or drains before
 * launches come at the boards' pace again: so long at most.  CUDA holds some 1,024
 * launches a stream; see docs/launches.md.
 */
enum { RATE_QUEUE = 1024 };
#define RATE_QUEUE_MOST_S 30.0
double rate_settle_s(const struct rate_found *f);

#endif
