/* Steps of a job that tells none, from the launches that its processes count: a pure
 * reader of counts over time.
 *
 * A training process launches the work of an iteration and then waits for its result, so
 * its count stands still for a moment once an iteration, and rises by the same number
 * from one such rest to the one of the next iteration.  A step ends where its rest does.
 * That number is looked for, and where it comes again and again (3 of 4 rests, of at
 * least ten, are followed by one that lies just so many launches further, and chance
 * would give 1 of 10) each of its returns is a step.  Launches in between that do not fit
 * (a validation, a log of every tenth step) are a pause or a longer step; a process that
 * never rests, or rests anywhere, has no steps: unknown beats wrong.
 *
 * Looking for it costs tens of microseconds, and counts are the job's to write: what
 * would be looked for without end is looked for less and less often, and never beyond a
 * budget, of the job's own and of all jobs together.
 *
 *     launches_feed()    every LAUNCHES_POLL_MS: some 100 ns a process
 *     launches_slots()   what struct steps takes, beside or instead of told slots
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

/* Searches that may be made: so many at once, so many a second; and no more than those
 * of `of`, which several may share.
 */
struct launches_budget {
    double most, a_second;
    struct launches_budget *of; /* NULL: none */
    double left;
    uint64_t at_ns; /* when that was so */
    uint64_t taken; /* so far */
};
/* Of a job; of all jobs: `of` is NULL.  Both begin full. */
void launches_budget_job(struct launches_budget *ret, struct launches_budget *of);
void launches_budget_all(struct launches_budget *ret);

/* One process: its launches of kernels and graphs so far. */
struct launch_count {
    uint64_t pid, since_ns; /* together its name */
    uint64_t launches;
    bool live;
};

struct launches;

int launches_new(struct launches **ret); /* -ENOMEM; some 70 kB */
void launches_free(struct launches *l);
DEFINE_AUTO(struct launches *, launches_free);

/* Counts read at now_ns, n <= LAUNCHES_PROCESSES; those that are gone are forgotten.
 * Where the budget is spent, the search for steps waits for a later feed, in turn.
 */
void launches_feed(struct launches *l, const struct launch_count *c, size_t n,
                   uint64_t now_ns, struct launches_budget *budget);

/* Slots of the processes whose steps are known, at most LAUNCHES_PROCESSES; how many. */
size_t launches_slots(const struct launches *l, struct step_slot *ret);

enum launches_why {
    LAUNCHES_FOUND,
    LAUNCHES_NOBODY,   /* nobody counts */
    LAUNCHES_FEW,      /* too little was seen yet */
    LAUNCHES_RESTLESS, /* launches never rest: nothing marks an iteration */
    LAUNCHES_UNEVEN,   /* they rest, and nothing repeats */
};
struct launches_found {
    enum launches_why why;
    unsigned processes; /* that count */
    unsigned found;     /* whose steps are known */
    uint64_t launches;  /* a step, of the first of those; 0 unknown */
    double
        confidence; /* 0..1: rests that came where they should, of the worst; 0 unknown */
};
void launches_state(const struct launches *l, struct launches_found *ret);

#endif
