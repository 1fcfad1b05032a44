/* The searches of the daemon: for each job that has a goal or a cap by name, a tuner
 * over the boards that the job has now, fed from the job's progress page, capping by
 * claims.  Several at once; a job may have none.
 */
#ifndef NODE_TUNING_H
#define NODE_TUNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/caps.h"
#include "node/roster.h"
#include "node/sampler.h"
#include "node/tuner.h"
#include "node/view.h"

struct tunings;

/* Who states a cap by name: "cap by name of job 12". */
#define TUNING_NAMED "cap by name"

struct tunings_opts {
    struct loop *loop;
    struct boards *boards;
    struct caps *caps;
    /* The sampler of board i (of that board alone); NULL: it has none. */
    struct sampler *(*sampler)(size_t board, void *user);
    double window_s, warm_s; /* 0: the tuner's own */
    double visits_share;     /* see struct tuner_opts */
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
int tunings_new(const struct tunings_opts *opts, struct tunings **ret, uw_error *err);
/* Claims go as well. */
void tunings_free(struct tunings *ts);
DEFINE_AUTO(struct tunings *, tunings_free);

struct tuning_ask {
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
int tunings_begin(struct tunings *ts, const struct job_entry *job,
                  const struct tuning_ask *ask, uw_error *err);
/* What a job taken over was asked for, from its saved state; ret->cls points to *ret_cls
 * or is NULL.  -EINVAL and the like: written on success alone.
 */
int tuning_ask_parse(const char *state, struct tuning_ask *ret, struct cap_class *ret_cls,
                     uw_error *err);
/* The job's page, handed over (taken, on success alone).  -ENOENT, -EBUSY (it has one
 * already whose processes live), -EINVAL (no page, or not kept in memory).
 */
int tunings_page(struct tunings *ts, uint64_t job, int fd, uw_error *err);

/* What the roster tells: boards gained or lost, the end. */
int tunings_on_job(struct tunings *ts, enum roster_event event,
                   const struct job_entry *job);
/* Its user has lost the right to claim on this board (barred), or has it again: nothing
 * of a job stands anywhere while it is barred on one of its boards, and what was learnt
 * is kept.
 */
void tunings_bar(struct tunings *ts, uint64_t job, size_t board, bool barred);
/* What caps tells. */
void tunings_on_caps(struct tunings *ts, const struct caps_what *what);

/* How a job stands; false: it has no tuning (ret->on is false then).  Jobs that have
 * ended are known until tunings_forget(), or 64 later ones.
 */
bool tunings_look(struct tunings *ts, uint64_t job, struct view_search *ret);
/* NULL: none.  Borrowed until the loop turns. */
const struct steps *tunings_steps(const struct tunings *ts, uint64_t job);
const struct tuner_report *tunings_report(struct tunings *ts, uint64_t job);
void tunings_forget(struct tunings *ts, uint64_t job);

#endif
