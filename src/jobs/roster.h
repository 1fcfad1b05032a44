/* The jobs of this node, registered (by `underwatt run` or a scheduler) or found through
 * the driver's process lists, and the boards of each job.
 *
 * Owns: the jobs' entries and each board's users.
 * May touch: boards (their processes), /proc, control groups and pidfds.  Sets no cap and
 * reads no energy.
 * Thread: the loop's; the boards' workers read the driver's process lists.
 * Explained in: docs/jobs.md, docs/design/same-job.md.
 */
#ifndef JOBS_ROSTER_H
#define JOBS_ROSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/names.h"
#include "board/boards.h"
#include "core/job/split.h"
#include "io/loop.h"
#include "io/proc.h"
#include "underwatt/progress.h"

struct roster;

enum {
    ROSTER_MAX = 256, /* jobs at once */
    /* Entries that run jobs must leave free; found jobs must leave half of them. */
    ROSTER_KEPT = 64,
    ROSTER_USER_MAX = 32, /* run jobs of one user, and as many found ones; not root's;
                           * and as many registered ones without board and process */
    /* Rate limit on new jobs of one user, for run and found jobs each: burst, and
     * milliseconds per job after it.
     */
    ROSTER_BEGINS = 32,
    ROSTER_BEGIN_MS = 2000,
    /* The same for joins of groups: two full groups (JOB_PROCS) at once. */
    ROSTER_JOINS = 256,
    ROSTER_JOIN_MS = 100,
    LABELS_MAX = 16,
    ROSTER_USERS = 64, /* users of one board's energy: BOARD_USERS of board-users.h */
    LABEL_KEY = 32,
    LABEL_VALUE = 64,
    JOB_NAME = 96,
    JOB_GROUP = 64,
    JOB_PROCS = 128, /* recorded processes of a job, to recognise it later */
    JOB_HELD = 112,
};

#define ROSTER_SLURM "slurm:" /* the name of Slurm's job 42 is "slurm:42" */

enum job_source { JOB_SOURCES(NAME_ENUM) };

struct label {
    char key[LABEL_KEY], value[LABEL_VALUE];
};

/* A process of this boot; the start time detects a reused pid. */
struct job_proc {
    pid_t pid;
    uint64_t start; /* starttime of /proc/PID/stat, ticks */
};

struct job_entry {
    uint64_t id; /* as in the ledger; never reused */
    enum job_source source;
    char name[JOB_NAME]; /* "slurm:4711", "k8s:POD-UID" or the command's name */
    uid_t uid;
    char user[32];       /* "": unknown */
    uint64_t boards;     /* bit i: board i of the set */
    uint64_t passed;     /* of boards: where only jobs that run in it are, in its place */
    uint64_t so_far;     /* every board that the job has had */
    uint64_t given;      /* boards that the registration named and the job got */
    uint64_t waits;      /* boards that it named, but that another user has now */
    char held[JOB_HELD]; /* text: which user or process has a board of waits; "": none */
    bool firm; /* begun by an administrator: run jobs of others do not get its boards */
    struct label label[LABELS_MAX];
    size_t n_labels;
    unsigned edition; /* of user, labels and within: counts their changes */
    uint64_t within;  /* of a run job: the registered job of its user in which it runs, by
                       * its processes; 0: none is known */
    pid_t pid;        /* the first process; 0: unknown */
    uint64_t pid_start; /* as in job_proc; 0: unknown */
    unsigned n_pids;    /* the job's processes on boards */
    /* Of a found job: its first processes.  Of a run job with a group: those that began
     * it and joined, pid the first of them.  Of a registered one: see roster_note().
     */
    struct job_proc proc[JOB_PROCS];
    size_t n_procs;
    char group[JOB_GROUP];       /* of a run job; "": its processes have none */
    bool foreign;                /* another user's process is on one of its boards */
    uint64_t began_ns, ended_ns; /* ended_ns 0: running */
    int64_t began_utc_ns, ended_utc_ns;
    uint32_t phase; /* enum phase_kind */
};

/* Whether labels of this key are a scheduler's word: those of the job in which a job runs
 * go before its own.
 */
bool roster_scheduler_key(const char *key);

/* Convert proc[] to the ledger's text, "PID.START PID.START ...", and back; parsing skips
 * invalid words and returns the number of processes.
 */
enum { JOB_PROC_TEXT = 32 };
void job_procs_text(const struct job_entry *job, char *ret, size_t size);
size_t job_procs_parse(const char *text, struct job_proc ret[static JOB_PROCS]);

enum roster_event { ROSTER_BEGIN, ROSTER_CHANGE, ROSTER_END };
typedef void (*roster_event_fn)(enum roster_event event, const struct job_entry *job,
                                void *user);

struct roster_opts {
    struct loop *loop;
    struct boards *boards;
    uint64_t look_ns;  /* interval between reads of a process list; 0: 2 s */
    uint64_t rest_ns;  /* the same for boards without a user; 0: 3 * look_ns */
    bool no_found;     /* do not make jobs of processes outside registered jobs */
    const char *proc;  /* NULL: "/proc"; tests use another folder */
    proc_read_fn read; /* used in place of the proc folder; NULL: none */
    void *read_user;
    uint64_t first_id; /* id of the first job; 0: 1 */
    /* Returns an id for a new job; one below those of the roster's jobs is not used.
     * NULL: the ids follow each other.
     */
    uint64_t (*next_id)(void *user);
    roster_event_fn on_event; /* called after the change */
    /* Called before the jobs on the board or the phase of one change: for
     * attribution_turn(), which calls roster_users() for the time so far.  May be NULL.
     */
    void (*on_turn)(size_t board, void *user);
    /* A board passes to `to`, which had waited for it; from: the job of another user that
     * had the board and does not compute there, or NULL.  Called before the events.  May
     * be NULL.
     */
    void (*on_pass)(size_t board, const struct job_entry *from,
                    const struct job_entry *to, void *user);
    /* Called after a board's process list was read and its events sent.  May be NULL. */
    void (*on_look)(size_t board, void *user);
    void *user;
};
/* Calls no callback; neither does roster_free(). */
int roster_new(const struct roster_opts *opts, struct roster **ret, uw_error *err);
void roster_free(struct roster *r);
DEFINE_AUTO(struct roster *, roster_free);

struct roster_register {
    enum job_source source; /* JOB_FOUND only to restore a job after a restart */
    const char *name;
    uid_t uid;
    /* Boards that the job names; 0: determined by its processes (pid's descendants).  Of
     * a found job: its boards before the restart, kept until their processes are read.
     */
    uint64_t boards;
    bool by_default; /* nobody named boards: see roster_default_boards() */
    /* Of a found job: one of them must still exist.  Of a restored run job: the job goes
     * on with one of them where pid has ended.
     */
    const struct job_proc *proc;
    size_t n_procs;
    const char *group; /* of a run job; NULL or "": none.  See roster_join(). */
    bool firm;         /* as in job_entry */
    pid_t pid;         /* the job ends with this process; 0: only by roster_end() */
    const struct label *label;
    size_t n_labels;
    uint64_t id;        /* 0: a new job; else a job restored after a restart */
    uint64_t pid_start; /* of a restored job: detects a reused pid; 0: not checked */
    int64_t began_utc_ns;
};
/* -EINVAL; -ESRCH: no such process; -EPERM: pid is not uid's; -EBUSY: a registered job
 * names a board of another user's registered job (boards of found and run jobs are taken
 * over; Slurm's jobs share boards as Slurm gives them); -EEXIST: id or the found job
 * exists; -E2BIG: too many jobs, in all or of this user; -EAGAIN: this user begins jobs
 * too fast; -ENOTSUP: a found job with no_found.  A run job never fails because of other
 * users on its boards, but waits for those boards (job_entry.waits).  Sends ROSTER_BEGIN
 * before it returns.
 */
int roster_begin(struct roster *r, const struct roster_register *reg, uint64_t *ret_id,
                 uw_error *err);
int roster_end(struct roster *r, uint64_t id, uw_error *err); /* -ENOENT */
/* The boards of a run job that begins: where its environment, and no user, has named them
 * (by_default), and it runs in a registered job that has not all of them, those of that
 * one.
 */
uint64_t roster_default_boards(const struct roster *r, const struct roster_register *reg);

/* Whether another user has one of these boards, for which a run job of uid would wait.
 * ret: as job_entry.held.
 */
bool roster_held(const struct roster *r, uid_t uid, uint64_t boards,
                 char ret[static JOB_HELD]);

/* The running registered job of that name; 0: none. */
uint64_t roster_named(const struct roster *r, const char *name);
/* Labels and boards of a registered job are those of reg from now on, and its noted
 * processes are forgotten.  -ENOENT: no such job; -EBUSY as of roster_begin().
 */
int roster_renew(struct roster *r, uint64_t id, const struct roster_register *reg,
                 uw_error *err);

/* Notes the processes by which a registered job's own are told from others: they descend
 * from these.  None, and one is on its boards: that one, if nothing was noted.
 */
void roster_note(struct roster *r, uint64_t id, const struct job_proc *proc, size_t n);

/* Sets labels of a registered job, others stay.  1: they were so; -ENOENT, -E2BIG (more
 * than LABELS_MAX): nothing changed.
 */
int roster_label(struct roster *r, uint64_t id, const struct label *label, size_t n,
                 uw_error *err);

/* Several processes that begin one job, side by side: the first one begins it under a
 * name for the group, the others join.  The job ends with the last of them.
 */

/* The running run job of that user and group; 0: none. */
uint64_t roster_group(const struct roster *r, uid_t uid, const char *group);
/* Whether that is a running run job of uid without a group, as after a restart, and this
 * process of uid has a part in it.
 */
bool roster_has_part(const struct roster *r, uint64_t id, uid_t uid, pid_t pid);
/* reg's process, boards and group become the run job's, too.  A process that has joined
 * may join again.  -ENOENT: no such job of reg's user, or of another group; -E2BIG:
 * JOB_PROCS have joined; -EAGAIN: this user joins too fast; -ESRCH, -EPERM as of
 * roster_begin().
 */
int roster_join(struct roster *r, uint64_t id, const struct roster_register *reg,
                uw_error *err);
/* The process has no part in the job any more.  -ENOENT: no such run job, or it had
 * none.
 */
int roster_leave(struct roster *r, uint64_t id, pid_t pid, uw_error *err);
const struct job_entry *roster_find(const struct roster *r, uint64_t id);
size_t roster_count(const struct roster *r);
const struct job_entry *roster_at(const struct roster *r, size_t i);

/* Sets the job's phase; sends ROSTER_CHANGE if it is new. */
void roster_phase(struct roster *r, uint64_t id, uint32_t phase);

/* Whether uid may place a claim on this board, see core/job/owner.h.  The caller checks
 * for administrators.
 */
bool roster_may_claim(const struct roster *r, uid_t uid, size_t board);

/* Whether existing claims of uid on this board may stay; as above. */
bool roster_keeps_claim(const struct roster *r, uid_t uid, size_t board);

/* Reads the board's process list soon: its power rose, or its users were asked for. */
void roster_look(struct roster *r, size_t board);
/* Whether the process list of each board was read, or could not be. */
bool roster_has_looked(const struct roster *r);
/* Another running job that has the board; 0: none.  One that runs in this one, or in the
 * same, is none.
 */
uint64_t roster_other(const struct roster *r, uint64_t id, size_t board);
/* Whether a process is on the board or a job has it. */
bool roster_in_use(const struct roster *r, size_t board);

/* Whether a process of the job is on the board, or the list of its processes is not
 * known.
 */
bool roster_has_process(const struct roster *r, size_t board, uint64_t job);
/* Memory that processes have on the board; 0: unknown, or none is there. */
uint64_t roster_memory(const struct roster *r, size_t board);

/* The board's users since the last call, for core/job/split.h: its jobs, and one entry of
 * job 0 for all processes of no job.  Returns their number.
 */
size_t roster_users(struct roster *r, size_t board,
                    struct split_user ret[static ROSTER_USERS]);

/* Reads of process lists, and how many of them failed. */
struct roster_counts {
    uint64_t looks, failures;
};
void roster_counts(const struct roster *r, struct roster_counts *ret);

#endif
