/* Decides when a job of Slurm has ended if its end is not reported: a node's epilog may
 * never run.  Pure: time is an argument.  Explained in docs/jobs.md.
 */
#ifndef CORE_JOB_LIFETIME_H
#define CORE_JOB_LIFETIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIFETIME_LOOK_NS (10 * UINT64_C(1000000000))      /* interval between looks */
#define LIFETIME_ALONE_NS (60 * UINT64_C(1000000000))     /* without a step or process */
#define LIFETIME_UNSEEN_NS (86400 * UINT64_C(1000000000)) /* without any at all */
#define LIFETIME_BACK_NS \
    (600 * UINT64_C(1000000000)) /* least time in which the job may come back */
#define LIFETIME_OPEN_NS \
    (7 * LIFETIME_UNSEEN_NS) /* longest lifetime without a time limit */

struct lifetime {
    uint64_t began_ns; /* time of the last registration */
    uint64_t limit_ns; /* of its time; 0: none */
    bool had;          /* a step or a process of the job was seen */
    uint64_t
        alone_ns; /* since when there is none; 0: there is one, or no look was made */
    uint64_t followed_ns; /* since when a later job has shown a step on its boards; 0 */
};

/* The result of a look. */
enum lifetime_seen {
    LIFETIME_UNKNOWN, /* the look failed */
    LIFETIME_NOBODY,
    LIFETIME_SOMEBODY, /* a step of the job, or one of its processes */
};

enum lifetime_end {
    LIFETIME_GOES_ON,
    LIFETIME_IS_ALONE, /* the last step or process has been gone for LIFETIME_ALONE_NS, …
                        */
    LIFETIME_IS_REPLACED, /* … or is gone, and its boards belong to another job */
    /* The job never had one, and: */
    LIFETIME_IS_LATE,     /* its time limit has been over for LIFETIME_ALONE_NS */
    LIFETIME_IS_FOLLOWED, /* its boards have belonged to another job for LIFETIME_ALONE_NS
                           */
    LIFETIME_IS_UNSEEN,   /* it has no limit, and LIFETIME_UNSEEN_NS are over */
};

/* followed: a job that was registered later has a step, and has a board of this job that
 * is not shared between jobs.
 */
enum lifetime_end lifetime_look(struct lifetime *l, enum lifetime_seen seen,
                                bool followed, uint64_t now_ns);
/* Whether a job that was taken to have ended at ended_ns may still continue: until its
 * time limit, or without a limit for LIFETIME_OPEN_NS; in any case for LIFETIME_BACK_NS.
 */
bool lifetime_may_come_back(const struct lifetime *l, uint64_t ended_ns, uint64_t now_ns);

/* The job whose slurmstepd has this command line, "slurmstepd: [42.batch]"; 0: none. */
uint64_t lifetime_stepd(const char *cmdline, size_t n);

#endif
