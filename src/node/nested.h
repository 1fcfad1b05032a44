/* Jobs that run inside a scheduler's job of the same user: `underwatt run` or the Python
 * package in a Slurm job.  Their processes and steps are known: the goal of the outer job
 * is searched as theirs, on their boards.
 *
 * Owns: nothing; writes `lent`, `cls_of` of the records.  Touches the searches.  Thread:
 * the loop's.  Explained in docs/jobs.md.
 */
#ifndef NODE_NESTED_H
#define NODE_NESTED_H

#include "jobs/job-records.h"
#include "tuner/searches.h"

struct nested {
    const struct roster *roster;
    const struct job_records *records;
    struct searches *searches;
    /* Gives the job's search the goal of its record and its class, or begins one. */
    int (*give)(const struct job_entry *job, struct job_record *rec, void *user,
                uw_error *err);
    void *user;
};

/* The job or its search begins: notes whether the outer job has a goal for it, and has
 * the outer job's search leave its boards.
 */
void nested_begin(const struct nested *n, const struct job_entry *job,
                  struct job_record *rec);
/* Call each second: goals of outer jobs change, and inner jobs begin and end.  A search
 * that began before its outer job was known gets the outer job's class.
 */
void nested_tick(const struct nested *n);
/* The class of the job's caps: its own, else that of the outer job. */
const char *nested_class(const struct job_records *records, const struct job_entry *job,
                         const struct job_record *rec);
/* The job whose goal the search of this job has; 0: its own goal, or a policy's. */
uint64_t nested_goal_of(const struct job_entry *job, const struct job_record *rec);

#endif
