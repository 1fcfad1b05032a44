/* Progress of a job whose launches never rest, measured by the launches themselves.
 * Pure: fed with counts over time.
 *
 * A loop that runs ahead of its boards launches at their pace, evenly or in clumps, and
 * nothing marks an iteration.  While it launches the same kernels, an iteration has a
 * fixed number of launches: the ratio of two rates under two caps is the ratio of the
 * job's speeds.  The rate of a stretch comes with a standard error from its parts, which
 * grows with clumps and slow noise; a stretch that drifts, or has two levels, has no
 * rate.  Pauses and phases at another level (a validation) are left out: a level that
 * jumps, and jumps back, is another phase; one that stays is another job.
 *
 * It cannot know whether each launch does the same work as before (a new batch size right
 * at the change of a cap).  Callers compare the mix of launches, and the rate at the same
 * cap.
 */
#ifndef CORE_PROGRESS_RATE_H
#define CORE_PROGRESS_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"

enum {
    RATE_PROCESSES = 63,
    RATE_STREAMS = 5,              /* kernels, by stream modulo this number */
    RATE_KINDS = RATE_STREAMS + 1, /* kernels of each stream, then graphs */
};

struct rate_process {
    uint64_t pid, since_ns;    /* together the identity of the process */
    uint64_t kind[RATE_KINDS]; /* launches so far */
};

struct rate;

int rate_new(struct rate **ret); /* -ENOMEM; some 80 kB */
void rate_free(struct rate *r);
DEFINE_AUTO(struct rate *, rate_free);

/* Counts read at now_ns, n <= RATE_PROCESSES; processes without launches are ignored.
 * Other processes than before, or counts that go back, start a new generation.
 */
void rate_feed(struct rate *r, const struct rate_process *p, size_t n, uint64_t now_ns);

/* The cap becomes `by` times the former one: allows the level to change accordingly. */
void rate_moved(struct rate *r, uint64_t now_ns, double by);

enum rate_why {
    RATE_FOUND,
    RATE_NOBODY, /* no process launches */
    RATE_FEW,    /* too short a stretch at one level */
    RATE_OTHER,  /* at another level now: a pause, a validation */
    RATE_DRIFTS, /* the rate changes during the stretch */
    RATE_UNEVEN, /* the error is above RATE_RSE_MOST */
};
#define RATE_RSE_MOST 0.02

struct rate_found {
    enum rate_why why;
    uint64_t generation; /* rates of different generations are not comparable */
    double rse;          /* relative standard error of per_s; NAN: not known */
    /* length of a stretch that would have RATE_RSE_GOOD; NAN: not known */
    double needs_s;
    unsigned processes; /* that launch */
    /* with RATE_FOUND only: */
    double per_s;            /* launches of all processes */
    double confidence;       /* 0..0.95 */
    uint64_t from_ns, to_ns; /* the longest stretch at one level */
    double mix[RATE_KINDS];  /* shares of the kinds; sum 1 */
};
#define RATE_RSE_GOOD 0.003

/* From the samples since from_ns. */
void rate_find(const struct rate *r, uint64_t from_ns, struct rate_found *ret);

/* 0..1: distance between the mixes, 0: equal. */
double rate_apart(const struct rate_found *a, const struct rate_found *b);

/* After a cap has changed, the queue between program and boards fills or drains before
 * launches follow the boards' pace again: this long at most.  CUDA holds some 1,024
 * launches a stream; see docs/design/launches.md.
 */
enum { RATE_QUEUE = 1024 };
#define RATE_QUEUE_MOST_S 30.0
double rate_settle_s(const struct rate_found *f);

#endif
