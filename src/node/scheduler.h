/* Jobs of a scheduler (Slurm): its prolog registers them by name, its epilog ends them.
 * Their cap is a claim of its own source (CLAIM_OF_SCHEDULER), held from the registration
 * on.
 *
 * Without an epilog the job ends by core/job/lifetime.h.
 *
 * Owns the looks for their steps; the roster owns the jobs, and their records hold the
 * requests.  Touches the roster, the caps, /proc while there is such a job.  Thread: the
 * loop's; /proc is read in a worker's.  Explained in docs/jobs.md.
 */
#ifndef NODE_SCHEDULER_H
#define NODE_SCHEDULER_H

#include "base/auto.h"
#include "board/boards.h"
#include "caps/caps.h"
#include "config/config.h"
#include "jobs/job-records.h"
#include "node/request.h"
#include "underwatt/error.h"

struct scheduler;

struct scheduler_opts {
    struct loop *loop;
    bool blind; /* processes belong to a virtual world: /proc is not read */
    const struct node_config *config; /* borrowed; read at each use */
    struct boards *boards;
    struct caps *caps;
    struct roster *roster;
    struct job_records *records;
    /* Resolves a preset of the policy to a share. */
    int (*preset)(const char *name, struct cap_arg *ret, void *user, uw_error *err);
    const char *(*class_at)(size_t i, void *user); /* of the policy; NULL: no more */
    /* Begins the search that the record requests, or changes or removes its goal. */
    int (*search)(const struct job_entry *job, struct job_record *rec, void *user,
                  uw_error *err);
    /* Forgets the job's search, which has ended. */
    void (*forget)(uint64_t job, void *user);
    void (*withdraw)(uint64_t claim, enum claim_end how, void *user);
    /* A request of the job cannot be met, for a new reason. */
    void (*refused)(const struct job_entry *job, int r, const uw_error *why, void *user);
    /* The job's record has changed. */
    void (*changed)(const struct job_entry *job, void *user);
    void *user;
};
/* -ENOMEM */
int scheduler_new(const struct scheduler_opts *opts, struct scheduler **ret,
                  uw_error *err);
void scheduler_free(struct scheduler *s);
DEFINE_AUTO(struct scheduler *, scheduler_free);

/* See node_scheduler_put(); the rights were checked. */
int scheduler_put(struct scheduler *s, const struct scheduler_ask *ask, uint64_t *ret_id,
                  uw_error *err);
void scheduler_end(struct scheduler *s, const char *name);

/* The jobs and claims of an earlier daemon, if any, were taken over; before this call no
 * claim is made or changed.
 */
void scheduler_open(struct scheduler *s);
/* 0; -ENOENT: no job of this name runs; -E2BIG. */
int scheduler_amend(struct scheduler *s, const char *name,
                    const struct scheduler_facts *facts, uw_error *err);

/* A user's job has begun: looks at once whether it runs inside one of the scheduler's
 * jobs.
 */
void scheduler_hurry(struct scheduler *s, const struct job_entry *job);

/* Boards, or their sharing, may have changed: meets the jobs' requests as far as possible
 * now.
 */
void scheduler_look(struct scheduler *s);
/* The claim of this job was withdrawn by a user: it is not made again. */
void scheduler_withdrawn(struct scheduler *s, uint64_t job, const char *by);
/* Whether the job requests a cap that a claim of the scheduler holds. */
bool scheduler_caps(const struct job_record *rec);

#endif
