/* When a job of Slurm is over whose end nobody tells: a node's epilog may never run.
 * Pure: time is an argument.  Explained in docs/jobs.md.
 */
#ifndef CORE_JOB_LIFETIME_H
#define CORE_JOB_LIFETIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIFETIME_LOOK_NS (10 * UINT64_C(1000000000))      /* from one look to the next */
#define LIFETIME_ALONE_NS (60 * UINT64_C(1000000000))     /* without step and process */
#define LIFETIME_UNSEEN_NS (86400 * UINT64_C(1000000000)) /* without any, ever */
#define LIFETIME_BACK_NS \
    (600 * UINT64_C(1000000000))                  /* in which it may at least come back */
#define LIFETIME_OPEN_NS (7 * LIFETIME_UNSEEN_NS) /* without a limit: at most */

struct lifetime {
    uint64_t began_ns;    /* when it was registered last */
    uint64_t limit_ns;    /* of its time; 0: none */
    bool had;             /* a step or a process of it was seen */
    uint64_t alone_ns;    /* since when none is; 0: one is there, or nobody has looked */
    uint64_t followed_ns; /* since when a later job has shown a step on its boards; 0 */
};

/* What a look has shown. */
enum lifetime_seen {
    LIFETIME_UNKNOWN, /* it could not be seen */
    LIFETIME_NOBODY,
    LIFETIME_SOMEBODY, /* a step of the job, or one of its processes */
};

enum lifetime_end {
    LIFETIME_GOES_ON,
    LIFETIME_IS_ALONE, /* its last step or process is gone for LIFETIME_ALONE_NS, … */
    LIFETIME_IS_REPLACED, /* … or gone, and its boards are another's */
    /* It never had one, and: */
    LIFETIME_IS_LATE,     /* its time is over for as long */
    LIFETIME_IS_FOLLOWED, /* its boards have been another's for as long */
    LIFETIME_IS_UNSEEN,   /* it has no limit, and LIFETIME_UNSEEN_NS are over */
};

/* followed: a job that was registered later has a step, and a board of this one's that
 * several jobs do not have at once.
 */
enum lifetime_end lifetime_look(struct lifetime *l, enum lifetime_seen seen,
                                bool followed, uint64_t now_ns);
/* Whether a job that ended so at ended_ns may go on: until its time is over, or without a
 * limit for LIFETIME_OPEN_NS, and for LIFETIME_BACK_NS at least.
 */
bool lifetime_may_come_back(const struct lifetime *l, uint64_t ended_ns, uint64_t now_ns);

/* The job whose slurmstepd has this command line, "slurmstepd: [42.batch]"; 0: none. */
uint64_t lifetime_stepd(const char *cmdline, size_t n);

#endif
