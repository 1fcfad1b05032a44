/* Whose joules: the energy of one board over one stretch, split between its jobs,
 * idle and an unattributed rest.  Pure.
 */
#ifndef CORE_JOB_SPLIT_H
#define CORE_JOB_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum split_method {
    SPLIT_IDLE,  /* no job: all of it is idle */
    SPLIT_SOLE,  /* one job, alone: all of it is the job's */
    SPLIT_USE,   /* by the SM time of each process, as the driver tells it */
    SPLIT_EQUAL, /* no use, or none that the driver tells: each that is there the same */
    SPLIT_UNATTRIBUTED, /* nobody can say: no job is known, but processes are there */
};

/* Who is on the board.  job 0: processes that belong to no job (all of them as one). */
struct split_user {
    uint64_t job;
    bool use_known;
    double use_s; /* SM time within the stretch */
};

struct split_share {
    uint64_t job;
    double energy_j;
};

struct split { /* Σ share + idle_j + unattributed_j is the energy; none is negative */
    enum split_method method;
    double idle_j, unattributed_j;
};

/* One user alone that is a job: sole, though it sleep.  Several: in proportion to their
 * SM time where it is known of all of them; what those of no job used is unattributed.
 * Where the use of one is not known, or nobody used anything (who holds a board pays for
 * what it takes at rest): equal parts, that of no job unattributed.  Nobody: idle.  Only
 * users of no job: unattributed.
 *
 * share: n entries, one a user, in their order (0 J for job 0).
 */
void split_energy(const struct split_user *user, size_t n, double energy_j,
                  struct split_share *share, struct split *ret);

#endif
