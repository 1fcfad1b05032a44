/* Jobs that a scheduler's prolog registers by name, and whose epilog ends them: Slurm's.
 * Their cap is a claim of its own (CLAIM_OF_SCHEDULER), held from the registration on.
 *
 * Where no epilog comes the job ends by itself (core/job/lifetime.h).
 *
 * Owns the looks for their steps; the jobs are the roster's, what they asked for is in
 * their records.  Touches the roster, the caps, /proc while there is such a job.  Thread:
 * the loop's; /proc is read in a worker's.  Explained in docs/jobs.md.
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
    bool blind; /* processes are those of a virtual world: /proc is left alone */
    const struct node_config *config; /* borrowed; read at each use */
    struct boards *boards;
    struct caps *caps;
    struct roster *roster;
    struct job_records *records;
    /* The share of a preset of the policy. */
    int (*preset)(const char *name, struct cap_arg *ret, void *user, uw_error *err);
    bool (*has_class)(const char *name, void *user); /* of the policy */
    /* Begins the search that the record asks for, gives it another goal or none. */
    int (*search)(const struct job_entry *job, struct job_record *rec, void *user,
                  uw_error *err);
    /* Forgets the job's search, which has ended. */
    void (*forget)(uint64_t job, void *user);
    void (*withdraw)(uint64_t claim, enum claim_end how, void *user);
    /* What the job asked for is not had, for another reason than before. */
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

/* The jobs and claims of an earlier daemon, if any, were taken over: before, no claim is
 * made or changed.
 */
void scheduler_open(struct scheduler *s);
/* 0; -ENOENT: no job of this name runs; -E2BIG. */
int scheduler_amend(struct scheduler *s, const char *name,
                    const struct scheduler_facts *facts, uw_error *err);

/* A user's job has begun: looks at once whether it runs in one of the scheduler's. */
void scheduler_hurry(struct scheduler *s, const struct job_entry *job);

/* Boards, or who shares them, may have changed: gives the jobs what they can have now of
 * what they ask for.
 */
void scheduler_look(struct scheduler *s);
/* Somebody has withdrawn the claim of this job: it is not made again. */
void scheduler_withdrawn(struct scheduler *s, uint64_t job, const char *by);
/* Whether it asks for a cap that is held by a claim of the scheduler's. */
bool scheduler_caps(const struct job_record *rec);

#endif
