/* The node's record of each job in addition to the roster's entry: the user's requests,
 * and the phase that the job's processes report or the telemetry of its boards shows.
 *
 * Owns: the records of running jobs, of ended jobs for one minute, and of JOB_LOST_MAX
 * jobs that may come back for as long as they may (core/job/lifetime.h). Touches: the
 * roster (sets a job's phase), the samplers of the jobs' boards. Thread: the loop's.
 * Explained in docs/jobs.md and docs/design/phases.md.
 */
#ifndef JOBS_JOB_RECORDS_H
#define JOBS_JOB_RECORDS_H

#include "base/names.h"
#include "base/units.h"
#include "core/job/lifetime.h"
#include "core/optimum/goal.h"
#include "core/policy/cap.h"
#include "jobs/job-key.h"
#include "jobs/job-phase.h"
#include "jobs/roster.h"

struct steps;
struct job_records;

enum { JOB_CLASS = 64, JOB_ASK = 120, JOB_REFUSED = 240, JOB_LOST_MAX = 64 };

enum phase_by { PHASE_TELLERS(NAME_ENUM) };

/* The current phase of a job. */
struct view_phase {
    uint32_t phase; /* as in job_entry */
    enum phase_by by;
    uint64_t since_ns;       /* 0: unknown */
    struct maybe confidence; /* of a phase from telemetry: phase_confidence() */
};

/* Claims of the policy that have decided on its boards; the first ones. */
enum { JOB_CAPPED_MAX = 8 };
struct job_capped_by {
    char who[64]; /* "rule dirty-grid", "class dev" */
    uint32_t lowest_mw;
    double time_s; /* on one board or more */
};
struct job_capped {
    size_t n;
    struct job_capped_by by[JOB_CAPPED_MAX];
};

/* The last messages of a job's search and of the policy for it, oldest first. */
enum { JOB_NOTES_MAX = 8, JOB_NOTE = 320 };
struct job_notes {
    uint64_t n;                         /* all so far: the last one has this number */
    char text[JOB_NOTES_MAX][JOB_NOTE]; /* number k is text[k % JOB_NOTES_MAX] */
};

/* Prefix of `refused` for a job whose boards its scheduler does not know. */
#define JOB_UNKNOWN_GPUS "GPUs: "

struct job_record {
    uint64_t id;
    bool admin; /* begun by an administrator: its caps need no further permission */
    bool asked; /* a search or a cap was requested explicitly */
    bool search;
    bool by_default; /* the goal is a default, and a policy's class takes precedence */
    struct goal goal;
    struct cap_arg cap;
    char preset[POLICY_PRESET_NAME]; /* the preset that named the cap; "": none */
    bool ruled;                      /* a policy gives its search this goal for now */
    struct goal rule_goal;
    bool lent; /* the outer job has this goal, which is searched as this job's */
    struct goal lent_goal;
    char cls[JOB_CLASS]; /* "": default */
    uint64_t cls_of;     /* job whose class its search uses; 0: its own, or the default */
    char key[JOB_KEY_TEXT]; /* see job-key.h; "": none */
    /* Of a scheduler's job (node/scheduler.h): its request, "cap 300 W", "preset
     * balanced", "goal edp", "": none; and why the request or a part of it is not met,
     * "": met.
     */
    char ask[JOB_ASK], refused[JOB_REFUSED];
    bool off;   /* its user has ended the requested search */
    bool again; /* its search could not begin, after a restart or with a lent goal:
                   retried at each look */
    struct lifetime life;
    bool lost; /* taken to have ended, but may come back: the record is kept */
    struct job_entry last; /* copy of the entry at the job's end */
    uint64_t ended_ns;     /* 0: running */
    struct view_phase phase;
    struct job_capped capped;
    struct job_notes notes;
    int page_fd; /* of a run job without a search: its page, for a later search; -1: none
                  */
    uint64_t confirmed_ns; /* time until which the scheduler confirms the job; 0: no
                              confirmation */

    /* Used by job-records.c only. */
    struct job_phase *telemetry; /* NULL: phase detection is off */
    uint64_t heard;              /* mask of the boards that telemetry listens to */
    uint64_t booked_ns;          /* when another phase was booked last; 0: never */
};

struct job_records_opts {
    struct loop *loop;
    struct roster *roster;
    struct boards *boards;
    struct sampler *const *sampler;                         /* one per board; borrowed */
    bool phases;                                            /* detect from telemetry */
    const struct steps *(*steps)(uint64_t job, void *user); /* returns NULL: none */
    /* Called at each look with the phase of a running job, from any source.  May be NULL.
     */
    void (*on_phase)(uint64_t job, const struct view_phase *phase, void *user);
    void (*on_drop)(uint64_t job, void *user); /* called before a record is freed */
    void *user;
};
/* -ENOMEM */
int job_records_new(const struct job_records_opts *opts, struct job_records **ret);
void job_records_free(struct job_records *rs); /* on_drop() is not called */
DEFINE_AUTO(struct job_records *, job_records_free);

struct job_record *job_records_find(const struct job_records *rs, uint64_t id);
/* Records of running and of ended jobs; i < job_records_count(). */
struct job_record *job_records_at(const struct job_records *rs, size_t i);
size_t job_records_count(const struct job_records *rs); /* rs NULL: 0 */
/* NULL: ROSTER_MAX jobs run, or out of memory. */
struct job_record *job_records_add(struct job_records *rs, uint64_t id);
bool job_records_full(const struct job_records *rs); /* ROSTER_MAX jobs run */
void job_records_drop(struct job_records *rs, uint64_t id);

/* The goal of its search, in order of precedence: a policy's goal, the requested goal,
 * the goal of the outer job, a default.  NULL: none.
 */
const struct goal *job_record_goal(const struct job_record *rec);

void job_notes_add(struct job_notes *notes, const char *text);

/* The job has ended; its record is kept for a minute. */
void job_records_end(struct job_records *rs, struct job_record *rec,
                     const struct job_entry *job);
/* Call after a job became lost: of more than JOB_LOST_MAX the one that ended first is
 * dropped.
 */
void job_records_trim(struct job_records *rs);
/* Whether an ended job is still to be shown: for a minute, for ten if it is lost. */
bool job_records_shows(const struct job_record *rec, uint64_t now_ns);
/* A lost job continues. */
void job_records_back(struct job_record *rec);
/* Call each second: updates phases, drops expired records of ended jobs. */
void job_records_tick(struct job_records *rs, uint64_t now_ns);
/* The job's processes report another phase: updates the job's phase.  Its energy is
 * booked under the new phase at once, unless another change was less than a second ago:
 * then by a tick.
 */
void job_records_told(struct job_records *rs, uint64_t job);
/* A board's limit or clock changes; most_w: see job_phase_on_cap(). */
void job_records_on_cap(struct job_records *rs, size_t board, double most_w);

#endif
