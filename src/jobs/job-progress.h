/* A job's progress: polls the job's page, tracks the steps of its processes and tells
 * whether they are stopped.  The page was made by this process (`underwatt run` in local
 * mode) or passed to it (the daemon).  If no process reports steps and the page has room
 * for launches, the steps are estimated from the launches.
 */
#ifndef JOBS_JOB_PROGRESS_H
#define JOBS_JOB_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/auto.h"
#include "core/progress/launches.h"
#include "core/progress/rate.h"
#include "core/progress/steps.h"
#include "io/loop.h"
#include "io/progress.h"
#include "underwatt/error.h"

struct job_progress;

typedef int (*job_progress_steps_fn)(const struct steps *steps, uint64_t now_ns,
                                     void *user);

struct job_progress_opts {
    struct loop *loop;
    uint64_t poll_ns;               /* interval between reads; 0: 100 ms */
    job_progress_steps_fn on_steps; /* called after each read; may be NULL */
    void *user;
    /* Limits the CPU time for estimating steps from launches; must outlive the page.
     * NULL: the page gets a budget of its own.
     */
    struct launches_budget *budget;
    struct touches *touches; /* of the loop; NULL: none.  Must outlive the page. */
};
/* Takes ownership of file on success only.  First read: one poll interval from now. */
int job_progress_new(const struct job_progress_opts *opts, struct progress_page *file,
                     struct job_progress **ret, uw_error *err);
void job_progress_free(struct job_progress *p);
DEFINE_AUTO(struct job_progress *, job_progress_free);

int job_progress_fd(const struct job_progress *p); /* of the page; -1: the job is over */
const struct steps *job_progress_steps(const struct job_progress *p);
/* Whether some reporting process was alive at the last read; false before the first. */
bool job_progress_alive(const struct job_progress *p);
/* on: changes of phase are needed at once.  They are heard where the job touches its page
 * (io/touches.h); unless the last one was, the page's phases are looked at every 20 ms.
 */
void job_progress_hurry(struct job_progress *p, bool on);
/* State of the estimation from launches, as text; "": the page has no room for launches.
 */
enum { JOB_PROGRESS_LAUNCHES = 96 };
void job_progress_launches(const struct job_progress *p, char ret[JOB_PROGRESS_LAUNCHES]);
/* Launch rate; borrowed until job_progress_free(); NULL: no room for launches. */
struct rate *job_progress_rate(const struct job_progress *p);
/* The job is over: reads the page a last time and frees the file.  The processes that
 * were alive at the last read with any live process count as live.  Call once.
 */
int job_progress_end(struct job_progress *p);

/* Returns whether every reporting process is stopped (state T), or own if no process
 * reports (own 0: no process).  Reads /proc; false on a virtual loop.
 */
bool job_progress_stopped(const struct job_progress *p, pid_t own);
/* Returns whether pid is own or a descendant of own.  Reads /proc, except on a virtual
 * loop, where only own itself matches.
 */
bool job_progress_owns(const struct loop *loop, pid_t own, pid_t pid);

#endif
