/* Detects the steps of a job that reports none, from the launches that its processes
 * count.  Pure.
 *
 * A training process launches the work of an iteration and then waits for its result: its
 * count stands still for a moment once an iteration, and rises by the same number from
 * one such rest to that of the next iteration.  A step ends with its rest.  If a number
 * recurs (3 of 4 rests, of at least ten, are followed by one that many launches later,
 * and chance would give 1 of 10), each recurrence is a step.  Launches that do not fit (a
 * validation, a log of every tenth step) are a pause or a longer step.  A process that
 * never rests, or rests irregularly, has unknown steps.
 *
 * A search costs tens of microseconds, and jobs control their counts: failed searches are
 * repeated at growing intervals, and budgets of the job and of all jobs bound them.
 *
 *     launches_feed()    every LAUNCHES_POLL_MS: some 100 ns a process
 *     launches_slots()   input of struct steps, beside or instead of reported slots
 */
#ifndef CORE_PROGRESS_LAUNCHES_H
#define CORE_PROGRESS_LAUNCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "core/progress/steps.h"

enum {
    LAUNCHES_POLL_MS = 25,
    LAUNCHES_PROCESSES = 63,
    LAUNCHES_AT_ONCE = 4, /* searches a feed */
};

/* Token bucket of searches: `most` at once, a_second refilled.  A search also takes one
 * from `of`, which several budgets may share.
 */
struct launches_budget {
    double most, a_second;
    struct launches_budget *of; /* NULL: none */
    double left;
    uint64_t at_ns; /* time of left */
    uint64_t taken; /* searches so far */
};
/* A job's budget, within `of`; the budget of all jobs.  Both start full. */
void launches_budget_job(struct launches_budget *ret, struct launches_budget *of);
void launches_budget_all(struct launches_budget *ret);

/* One process: its launches of kernels and graphs so far. */
struct launch_count {
    uint64_t pid, since_ns; /* together the identity of the process */
    uint64_t launches;
    bool live;
};

struct launches;

int launches_new(struct launches **ret); /* -ENOMEM; some 70 kB */
void launches_free(struct launches *l);
DEFINE_AUTO(struct launches *, launches_free);

/* Counts read at now_ns, n <= LAUNCHES_PROCESSES; processes that are missing are
 * forgotten.  If the budget is spent, searches wait for a later feed, in turn.
 */
void launches_feed(struct launches *l, const struct launch_count *c, size_t n,
                   uint64_t now_ns, struct launches_budget *budget);

/* Slots of the processes with known steps, at most LAUNCHES_PROCESSES; returns their
 * number.
 */
size_t launches_slots(const struct launches *l, struct step_slot *ret);

enum launches_why {
    LAUNCHES_FOUND,
    LAUNCHES_NOBODY,   /* no process counts launches */
    LAUNCHES_FEW,      /* too short a history */
    LAUNCHES_RESTLESS, /* launches never rest: nothing marks an iteration */
    LAUNCHES_UNEVEN,   /* rests do not recur regularly */
};
struct launches_found {
    enum launches_why why;
    unsigned processes; /* that count */
    unsigned found;     /* with known steps */
    uint64_t launches;  /* a step, of the first of these processes; 0 unknown */
    /* 0..1: share of rests that came where expected, of the worst process; 0 unknown */
    double confidence;
};
void launches_state(const struct launches *l, struct launches_found *ret);

#endif
