/* The searches of the daemon: one tuner for each job with a goal or a cap by name, on the
 * job's current boards.  It gets steps from the job's progress page and caps by claims.
 */
#ifndef TUNER_SEARCHES_H
#define TUNER_SEARCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board/sampler.h"
#include "caps/caps.h"
#include "jobs/roster.h"
#include "tuner/tuner.h"

struct searches;

struct searches_opts {
    struct loop *loop;
    struct boards *boards;
    struct caps *caps;
    /* Returns the sampler of that board only; NULL: none. */
    struct sampler *(*sampler)(size_t board, void *user);
    double window_s, warm_s; /* 0: the tuner's defaults */
    double checks_share;     /* this and the next three: see struct tuner_opts */
    int gap_checks;
    double slack;
    bool clocks;
    bool once; /* a search that had to leave a board to others ends for good */
    /* Saves the job's state (one line of JSON) after a change. */
    void (*save)(uint64_t job, const char *state, void *user);
    void (*note)(uint64_t job, const char *text, bool important, void *user);
    /* The job tells another phase; may be NULL. */
    void (*phase)(uint64_t job, void *user);
    /* Returns the measurements of an earlier run of the job on the same number of boards
     * of the same model; false: none.  boards: a mask.  May be NULL.
     */
    bool (*earlier)(uint64_t job, uint64_t boards, struct tuner_earlier *ret, void *user);
    /* Called with the search's measurements when it holds a cap and at its end.  May be
     * NULL.
     */
    void (*learnt)(uint64_t job, uint64_t boards, const struct tuner_report *report,
                   void *user);
    void *user;
};
int searches_new(const struct searches_opts *opts, struct searches **ret, uw_error *err);
/* Withdraws all claims. */
void searches_free(struct searches *ts);
DEFINE_AUTO(struct searches *, searches_free);

struct searches_ask {
    bool search; /* search for goal; else set cap */
    struct goal goal;
    struct cap_arg cap;
    const char *preset;          /* whose name the cap has, copied; NULL or "": none */
    const struct cap_class *cls; /* copied; NULL: default */
    const char *state; /* of a restored job: the saved state ("": none); NULL: new job */
};
/* Begins the search of a job of the roster, which may get its boards later.  -EINVAL,
 * -ERANGE (a cap outside a board's range: GPU, value, range), -EEXIST, -ENOMEM.  An
 * invalid state is noted and ignored.
 */
int searches_begin(struct searches *ts, const struct job_entry *job,
                   const struct searches_ask *ask, uw_error *err);
/* Another goal or class for a search, which goes on from what it has measured; goal NULL:
 * none for now, the boards are released; cls as in searches_ask.  -ENOENT: the job has no
 * search.
 */
int searches_goal(struct searches *ts, uint64_t job, const struct goal *goal,
                  const struct cap_class *cls, uw_error *err);
/* Adopts the job's progress page; takes ownership of fd on success only.  -ENOENT, -EBUSY
 * (the job has a page with live processes), -EINVAL (not a valid page in memory).
 */
int searches_page(struct searches *ts, uint64_t job, int fd, uw_error *err);
int searches_page_fd(const struct searches *ts, uint64_t job); /* borrowed; -1: none */

/* Changes of the job's phase are needed at once, see job_progress_hurry(); of its page
 * now, so call it again and again.
 */
void searches_hurry(struct searches *ts, uint64_t job, bool on);

/* Call for each event of the roster. */
int searches_on_job(struct searches *ts, enum roster_event event,
                    const struct job_entry *job);
/* The job's user has lost (barred) or regained the right to claim on this board.  A job
 * has no caps while it is barred on one of its boards; its measurements are kept.
 */
void searches_bar(struct searches *ts, uint64_t job, size_t board, bool barred);
/* Jobs that run in this one have these of its boards, and are searched there in its
 * place.  to: "job 33, which runs in it", for people; boards 0: there are none.
 */
enum { SEARCHES_TO = 80 };
void searches_pass(struct searches *ts, uint64_t job, uint64_t boards, const char *to);
/* The actuator has ended and will not come back: no more caps. */
void searches_no_actuator(struct searches *ts, const char *text);
/* Call for each event of caps. */
void searches_on_caps(struct searches *ts, const struct caps_what *what);

/* The state of a job's search. */
struct searches_view {
    bool on;       /* a search or a cap by name is run for the job */
    char goal[80]; /* "edp", "cap 85% (balanced)"; "": none */
    enum search_status status;
    char state[240]; /* status as text: "measures at 210 W (window 3)" */
    uint32_t cap_mw; /* held, or the best so far; 0: none yet */
    unsigned caps, windows;
    bool page;         /* the job's page was adopted */
    char launches[96]; /* see job_progress_launches() */
    struct savings_saved saved;
    const struct tuner_report *report; /* never NULL for a known job */
};

/* Stores the state of a job's search; false: the job has none (ret->on is false).  Jobs
 * that have ended are kept until searches_forget(), or until 64 later ones have ended.
 */
bool searches_look(struct searches *ts, uint64_t job, struct searches_view *ret);
/* NULL: none.  Borrowed until control returns to the loop. */
const struct steps *searches_steps(const struct searches *ts, uint64_t job);
void searches_forget(struct searches *ts, uint64_t job);

#endif
