/* A job's progress as the node sees it: its page read again and again, the steps of its
 * processes, whether they are stopped.  The page was made here (`underwatt run` in local
 * mode) or handed over by its maker (the daemon).  Where nobody tells steps and the page
 * has room for launches, the steps are those that the launches show.
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
    uint64_t poll_ns;               /* between looks; 0: 100 ms */
    job_progress_steps_fn on_steps; /* after each look; may be NULL */
    void *user;
    /* What the job may cost in looking for steps, which outlives the page; NULL: one of
     * the page's own.
     */
    struct launches_budget *budget;
};
/* Takes the file over, on success alone.  Looks from the next poll on. */
int job_progress_new(const struct job_progress_opts *opts, struct progress_page *file,
                     struct job_progress **ret, uw_error *err);
void job_progress_free(struct job_progress *p);
DEFINE_AUTO(struct job_progress *, job_progress_free);

const char *job_progress_path(
    const struct job_progress *p); /* "": handed over, or over */
const struct steps *job_progress_steps(const struct job_progress *p);
/* Did some process that reports live at the last look?  (False before the first.) */
bool job_progress_alive(const struct job_progress *p);
/* What the launches show so far, in words for a human; "": the page has no room for them.
 */
enum { JOB_PROGRESS_LAUNCHES = 96 };
void job_progress_launches(const struct job_progress *p, char ret[JOB_PROGRESS_LAUNCHES]);
/* Their rate; borrowed until job_progress_free(), NULL: no room for them. */
struct rate *job_progress_rate(const struct job_progress *p);
/* A last look: the job is over, who was alive when anybody last was counts as live.  The
 * file is let go of.  Once.
 */
int job_progress_end(struct job_progress *p);

/* Every process that reports is stopped (T of ps); own's alone where none does (0: no
 * such).  Reads /proc; never on a virtual loop.
 */
bool job_progress_stopped(const struct job_progress *p, pid_t own);
/* Is pid own or a descendant of it?  Reads /proc; on a virtual loop own alone. */
bool job_progress_owns(const struct loop *loop, pid_t own, pid_t pid);

#endif
