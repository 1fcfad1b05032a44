/* A job: the program that was started, the page its processes report on, and its
 * steps as seen from here.
 */
#ifndef JOBS_JOB_H
#define JOBS_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "core/progress/steps.h"
#include "io/loop.h"
#include "jobs/job-progress.h"
#include "underwatt/error.h"

struct job;

struct job_opts {
    const char *const *argv;
    const char *runtime_dir; /* an existing folder of ours for the page; NULL: no page */
    const char *inject;      /* "NAME=value" that makes CMD count launches; or NULL */
    const char *const *env;  /* more "NAME=value" for CMD, ends with NULL; or NULL */
    uint64_t poll_ns;        /* between looks at the page; 0: 100 ms */
    /* After each look; both may be NULL. */
    int (*on_steps)(struct job *job, const struct steps *steps, uint64_t now_ns,
                    void *user);
    /* CMD will run, but its launches are not counted: why.  May be NULL. */
    void (*on_uncounted)(const char *why, void *user);
    /* CMD has ended: status as of waitpid().  The page has been read a last time. */
    int (*on_exit)(struct job *job, int status, void *user);
    void *user;
};

/* Starts CMD.  -ENOENT: no such program; -EACCES: it cannot be run. */
int job_start(struct loop *loop, const struct job_opts *opts, struct job **ret,
              uw_error *err);
/* Forgets a job that still runs: it runs on. */
void job_free(struct job *job);
DEFINE_AUTO(struct job *, job_free);

pid_t job_pid(const struct job *job);
int job_kill(struct job *job, int signo);
bool job_running(const struct job *job);
const struct steps *job_steps(const struct job *job);

/* What its launches show, see job_progress_launches(). */
void job_launches(const struct job *job, char ret[JOB_PROGRESS_LAUNCHES]);
/* See job_progress_rate(). */
struct rate *job_rate(const struct job *job);

/* Is pid the job's process or a descendant of it?  Reads /proc; on a virtual loop
 * only the job's own pid counts.
 */
bool job_owns(const struct job *job, pid_t pid);

/* Every process that reports on the page is stopped (T of ps; CMD's own where none
 * does).  Reads /proc; never on a virtual loop.
 */
bool job_stopped(const struct job *job);

/* What a shell says of that status: 0..255, 128+N for a signal. */
int job_exit_code(int status);

#endif
