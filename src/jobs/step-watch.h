/* Which jobs of Slurm have a step on this node: /proc, read in a worker on request.
 *
 * A step is a slurmstepd of root's with the job's number, or a process in a control group
 * that Slurm made for the job.  Owns the worker.  Thread: the loop's.  Explained in
 * docs/jobs.md.
 */
#ifndef JOBS_STEP_WATCH_H
#define JOBS_STEP_WATCH_H

#include "base/auto.h"
#include "io/loop.h"
#include "jobs/roster.h"
#include "underwatt/error.h"

enum { STEP_JOBS_MAX = 1024, STEP_PROCS = 16, STEP_UIDS = 4 };

struct step_job {
    uint64_t job;                     /* Slurm's number */
    struct job_proc proc[STEP_PROCS]; /* its first slurmstepds */
    size_t n_procs;                   /* 0: only other processes */
    uid_t uid[STEP_UIDS]; /* whose processes it has beside root's: the first ones */
    size_t n_uids;        /* 0: its user is unknown */
};
struct step_jobs {
    struct step_job job[STEP_JOBS_MAX];
    size_t n;
};

/* NULL: the job has none. */
const struct step_job *step_jobs_find(const struct step_jobs *jobs, uint64_t job);
/* Whether the job may be this user's: a process of his is there, or nobody's is. */
bool step_job_may_be_of(const struct step_job *job, uid_t uid);
/* Reads the folder root, "/proc".  uid: whose slurmstepds count beside root's.  -EACCES:
 * processes of others are hidden; -E2BIG: more than STEP_JOBS_MAX jobs; other errors of
 * the reads: *ret is not complete.
 */
int step_jobs_read(const char *root, uid_t uid, struct step_jobs *ret);

struct step_watch;
/* r < 0: jobs is NULL.  Borrowed for the call. */
typedef void (*step_watch_fn)(int r, const struct step_jobs *jobs, void *user);

int step_watch_new(struct loop *loop, step_watch_fn fn, void *user,
                   struct step_watch **ret, uw_error *err);
void step_watch_free(struct step_watch *w); /* calls no fn */
DEFINE_AUTO(struct step_watch *, step_watch_free);
/* Asks for a look, of which fn is told later; nothing happens while one is under way. */
void step_watch_look(struct step_watch *w);

#endif
