/* The searches of the daemon: for each job that has a goal or a cap by name, a tuner
 * over the boards that the job has now, fed from the job's progress page, capping by
 * claims.  Several at once; a job may have none.
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

/* Who states a cap by name: "cap by name of job 12". */
struct searches_opts {
    struct loop *loop;
    struct boards *boards;
    struct caps *caps;
    /* The sampler of board i (of that board alone); NULL: it has none. */
    struct sampler *(*sampler)(size_t board, void *user);
    double window_s, warm_s; /* 0: the tuner's own */
    double checks_share;     /* see struct tuner_opts */
    int looks;               /* same */
    double slack;            /* same */
    bool clocks;             /* same */
    /* State to be kept with the job (one line of JSON), whenever it has changed. */
    void (*save)(uint64_t job, const char *state, void *user);
    void (*note)(uint64_t job, const char *text, bool important, void *user);
    /* What an earlier run of the job measured on as many boards like these (bits); false:
     * nothing.  Or NULL.
     */
    bool (*earlier)(uint64_t job, uint64_t boards, struct tuner_earlier *ret, void *user);
    /* What its search has measured on these boards, when it holds a cap and at its end.
     * Or NULL.
     */
    void (*learnt)(uint64_t job, uint64_t boards, const struct tuner_report *report,
                   void *user);
    void *user;
};
int searches_new(const struct searches_opts *opts, struct searches **ret, uw_error *err);
/* Claims go as well. */
void searches_free(struct searches *ts);
DEFINE_AUTO(struct searches *, searches_free);

struct searches_ask {
    bool search; /* for goal; else cap */
    struct goal goal;
    struct cap_arg cap;
    const struct cap_class *cls; /* copied; NULL: default */
    const char *state; /* as it was saved, of a job taken over ("": nothing was); NULL: a
                        * new job */
};
/* A job of the roster (its boards may come later).  -EINVAL, -ERANGE (a cap outside
 * a board's range: GPU, value, range), -EEXIST, -ENOMEM.  A state that cannot be read
 * is left out, and said.
 */
int searches_begin(struct searches *ts, const struct job_entry *job,
                   const struct searches_ask *ask, uw_error *err);
/* The job's page, handed over (taken, on success alone).  -ENOENT, -EBUSY (it has one
 * already whose processes live), -EINVAL (no page, or not kept in memory).
 */
int searches_page(struct searches *ts, uint64_t job, int fd, uw_error *err);

/* What the roster tells: boards gained or lost, the end. */
int searches_on_job(struct searches *ts, enum roster_event event,
                    const struct job_entry *job);
/* Its user has lost the right to claim on this board (barred), or has it again: nothing
 * of a job stands anywhere while it is barred on one of its boards, and what was learnt
 * is kept.
 */
void searches_bar(struct searches *ts, uint64_t job, size_t board, bool barred);
/* What caps tells. */
void searches_on_caps(struct searches *ts, const struct caps_what *what);

/* How a job's search stands. */
struct searches_view {
    bool on;       /* a search or a cap by name is run for the job */
    char goal[32]; /* "edp"; "" none */
    enum search_status status;
    char state[96];  /* the same for people: "measuring 210 W" */
    uint32_t cap_mw; /* best so far, or held; 0: none yet */
    unsigned caps, windows;
    bool page;         /* the job's page is here: its steps are counted */
    char launches[96]; /* what they show, in words; "": nobody asked to count */
    bool saved_known;
    double saved, saved_half;       /* fraction of the energy at the original cap, 95 % */
    double slowdown, slowdown_half; /* time over the time at the original cap */
    double saved_j, saved_half_j;
    const struct tuner_report *report; /* all of it; NULL: nothing yet */
};

/* How a job stands; false: it has no tuning (ret->on is false then).  Jobs that have
 * ended are known until searches_forget(), or 64 later ones.
 */
bool searches_look(struct searches *ts, uint64_t job, struct searches_view *ret);
/* NULL: none.  Borrowed until the loop turns. */
const struct steps *searches_steps(const struct searches *ts, uint64_t job);
void searches_forget(struct searches *ts, uint64_t job);

#endif
