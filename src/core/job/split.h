/* Splits the energy of one board in an interval between its jobs, idle and an
 * unattributed rest.  Pure.
 */
#ifndef CORE_JOB_SPLIT_H
#define CORE_JOB_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum split_method {
    SPLIT_IDLE,         /* no user: all energy is idle */
    SPLIT_SOLE,         /* a single job: all energy is the job's */
    SPLIT_USE,          /* in proportion to SM time, as reported by the driver */
    SPLIT_EQUAL,        /* SM time unknown or 0: equal parts */
    SPLIT_UNATTRIBUTED, /* processes, but no job */
};

/* A user of the board: a job, or (job 0) all processes without a job. */
struct split_user {
    uint64_t job;
    bool use_known;
    double use_s; /* SM time in the interval */
};

struct split_share {
    uint64_t job;
    double energy_j;
};

struct split { /* Σ share + idle_j + unattributed_j is the energy; none is negative */
    enum split_method method;
    double idle_j, unattributed_j;
};

/* A single job gets all energy, also while it sleeps.  Several users share the energy in
 * proportion to their SM time if all times are known; else, or if all are 0 (jobs that
 * hold a board pay for its idle power), in equal parts.  The part of job 0 is
 * unattributed.
 *
 * share: n entries in the order of user (0 J for job 0).
 */
void split_energy(const struct split_user *user, size_t n, double energy_j,
                  struct split_share *share, struct split *ret);

#endif
