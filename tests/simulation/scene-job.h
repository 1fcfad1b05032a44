/* A training job of a scene: the child process, its progress page and the steps read from
 * that page.
 */
#ifndef TESTS_SIMULATION_SCENE_JOB_H
#define TESTS_SIMULATION_SCENE_JOB_H

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
    const char *runtime_dir; /* existing folder for the page; NULL: no page */
    const char *inject;      /* "NAME=value" that makes CMD count launches; or NULL */
    const char *const *env;  /* more "NAME=value" for CMD, ends with NULL; or NULL */
    uint64_t poll_ns;        /* interval between reads of the page; 0: 100 ms */
    /* CMD will run, but its launches cannot be counted.  May be NULL. */
    void (*on_uncounted)(const char *why, void *user);
    /* CMD has ended; status: see waitpid().  Called after the last read of the page;
     * may be NULL.
     */
    int (*on_exit)(struct job *job, int status, void *user);
    void *user;
};

/* Starts CMD.  -ENOENT: no such program; -EACCES: the program cannot be executed. */
int job_start(struct loop *loop, const struct job_opts *opts, struct job **ret,
              uw_error *err);
/* Does not end a running child process. */
void job_free(struct job *job);
DEFINE_AUTO(struct job *, job_free);

pid_t job_pid(const struct job *job);
int job_kill(struct job *job, int signo);
const struct steps *job_steps(const struct job *job);

#endif
