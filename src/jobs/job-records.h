/* What the node keeps of each job beside the roster's entry: what was asked for it, and
 * the phase that its processes or its boards' telemetry show.
 *
 * Owns: the records of jobs that run, and for a minute those of jobs that have ended.
 * Touches: the roster (which it tells the phase to), the samplers of the jobs' boards.
 * Thread: the loop's.  Explained in docs/jobs.md and docs/phases.md.
 */
#ifndef JOBS_JOB_RECORDS_H
#define JOBS_JOB_RECORDS_H

#include "base/names.h"
#include "base/units.h"
#include "core/optimum/goal.h"
#include "jobs/job-key.h"
#include "jobs/job-phase.h"
#include "jobs/roster.h"

struct steps;
struct job_records;

enum { JOB_CLASS = 64 };

enum phase_by { PHASE_TELLERS(NAME_ENUM) };

/* What a job does now. */
struct view_phase {
    uint32_t phase; /* as in job_entry */
    enum phase_by by;
    uint64_t since_ns;            /* 0 unknown */
    struct view_value confidence; /* how often telemetry is right there */
};

struct job_record {
    uint64_t id;
    bool admin; /* an administrator began it: its caps need no other right */
    bool asked; /* a search or a cap by name */
    bool search;
    struct goal goal;
    struct cap_arg cap;
    char cls[JOB_CLASS];            /* "": default */
    char key[JOB_KEY_TEXT];         /* of the same job run again; "": none */
    double before_j, before_half_j; /* attributed by earlier runs of the daemon */
    struct job_entry last;          /* as it was when it ended */
    uint64_t ended_ns;              /* 0: runs */
    struct view_phase phase;        /* now */

    /* For job-records.c alone. */
    struct job_phase *telemetry; /* NULL: not asked for */
    uint64_t heard;              /* boards that it hears */
};

struct job_records_opts {
    struct loop *loop;
    struct roster *roster;
    struct boards *boards;
    struct sampler *const *sampler;                         /* one a board; borrowed */
    bool phases;                                            /* telemetry is followed */
    const struct steps *(*steps)(uint64_t job, void *user); /* NULL: none known */
    void (*on_drop)(uint64_t job, void *user); /* an ended job's record goes */
    void *user;
};
/* -ENOMEM */
int job_records_new(const struct job_records_opts *opts, struct job_records **ret);
void job_records_free(struct job_records *rs); /* on_drop() is not called */
DEFINE_AUTO(struct job_records *, job_records_free);

struct job_record *job_records_find(const struct job_records *rs, uint64_t id);
/* Of jobs that run and of those that have ended; i < job_records_count(). */
struct job_record *job_records_at(const struct job_records *rs, size_t i);
size_t job_records_count(const struct job_records *rs); /* rs NULL: 0 */
/* NULL: ROSTER_MAX run, or out of memory. */
struct job_record *job_records_add(struct job_records *rs, uint64_t id);
void job_records_drop(struct job_records *rs, uint64_t id);

/* The job has ended: its record stays for a minute. */
void job_records_end(struct job_records *rs, struct job_record *rec,
                     const struct job_entry *job);
/* Each second: phases are looked at, records of jobs that ended long ago go. */
void job_records_tick(struct job_records *rs, uint64_t now_ns);
/* A board's limit or clock changes; most_w: see job_phase_on_cap(). */
void job_records_on_cap(struct job_records *rs, size_t board, double most_w);

#endif
