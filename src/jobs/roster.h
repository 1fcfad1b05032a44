/* The jobs of this node: registered (by `underwatt run`, by a scheduler) or found
 * through the driver's process list; who owns which board since when.
 *
 * Owns: the entries of jobs, running and ended ones, and each board's users.
 * May touch: boards (their processes), /proc, control groups and pidfds.  It sets no cap
 * and asks for no energy.
 * Thread: the loop's; the driver's process lists come from the boards' workers.
 * Explained in: docs/jobs.md, docs/same-job.md.
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
    ROSTER_MAX = 256,       /* jobs at once */
    ROSTER_KEPT = 64,       /* … of which run ones leave so many, found ones half */
    ROSTER_USER_MAX = 32,   /* of one user's, run; and as many found (root: any number) */
    ROSTER_BEGINS = 32,     /* of one user's run jobs at once … */
    ROSTER_BEGIN_MS = 2000, /* … then one in this time; and found ones alike */
    LABELS_MAX = 16,
    ROSTER_USERS = 64, /* of one board's energy; BOARD_USERS of board-users.h */
    LABEL_KEY = 32,
    LABEL_VALUE = 64,
    JOB_NAME = 96,
    JOB_PROCS = 16, /* of a found job: enough to know it again by */
};

enum job_source { JOB_SOURCES(NAME_ENUM) };

struct label {
    char key[LABEL_KEY], value[LABEL_VALUE];
};

/* A process of this boot: another start is another process. */
struct job_proc {
    pid_t pid;
    uint64_t start; /* /proc/PID/stat's ticks */
};

/* No phase that a job tells: seen in telemetry alone. */

struct job_entry {
    uint64_t id; /* of the ledger: never used twice */
    enum job_source source;
    char name[JOB_NAME]; /* "slurm:4711", "k8s:POD-UID", command's name … */
    uid_t uid;
    char user[32];   /* "" unknown */
    uint64_t boards; /* bit i: board i of the set */
    uint64_t given;  /* those of them that its registration named */
    uint64_t waits;  /* named as well, but another user has them (for now) */
    char held[112];  /* … and who; "" nobody */
    bool firm; /* an administrator began it: run jobs of others do not get its boards */
    struct label label[LABELS_MAX];
    size_t n_labels;
    pid_t pid;          /* its first process; 0: none known */
    uint64_t pid_start; /* … when it began: /proc/PID/stat's ticks; 0 unknown */
    unsigned n_pids;    /* its processes seen on boards */
    struct job_proc proc[JOB_PROCS]; /* … of a found job, the first ones */
    size_t n_procs;
    bool foreign;                /* somebody else's process is on one of its boards */
    uint64_t began_ns, ended_ns; /* ended 0: runs */
    int64_t began_utc_ns, ended_utc_ns;
    uint32_t phase; /* enum phase_kind */
};

/* Its processes as the ledger has them, "PID.START …", and back: their number. */
enum { JOB_PROC_TEXT = 32 };
void job_procs_text(const struct job_entry *job, char *ret, size_t size);
size_t job_procs_parse(const char *text, struct job_proc ret[static JOB_PROCS]);

enum roster_event { ROSTER_BEGIN, ROSTER_CHANGE, ROSTER_END };
typedef void (*roster_event_fn)(enum roster_event event, const struct job_entry *job,
                                void *user);

struct roster_opts {
    struct loop *loop;
    struct boards *boards;
    uint64_t look_ns;  /* between looks at the process lists; 0: 2 s */
    uint64_t rest_ns;  /* … of boards where nobody was seen; 0: 3 looks */
    bool no_found;     /* processes of no registered job are nobody's */
    const char *proc;  /* NULL: "/proc"; tests give another */
    proc_read_fn read; /* reads processes in place of proc's tree; NULL: none */
    void *read_user;
    uint64_t first_id;        /* of the first job; 0: 1 */
    roster_event_fn on_event; /* after the change */
    /* Who is on the board, or what a job there does, is about to change: for
     * attribution_turn(), which asks roster_users() for those who were there.  May be
     * NULL.
     */
    void (*on_turn)(size_t board, void *user);
    /* A board that `to` had named is its now; from: who had named it before and does not
     * compute there, or NULL.  The events follow.  May be NULL.
     */
    void (*on_pass)(size_t board, const struct job_entry *from,
                    const struct job_entry *to, void *user);
    /* A board's processes were looked at, and what that changed was told. */
    void (*on_look)(size_t board, void *user);
    void *user;
};
/* Jobs are begun and found from now on; on_event is never called from inside this or
 * roster_free().
 */
int roster_new(const struct roster_opts *opts, struct roster **ret, uw_error *err);
void roster_free(struct roster *r);
DEFINE_AUTO(struct roster *, roster_free);

struct roster_register {
    enum job_source source; /* FOUND: taken over alone */
    const char *name;
    uid_t uid;
    /* Named; 0: found by its processes (pid's descendants).  Of a found job: those that
     * it was on, and is taken to be on until they are looked at.
     */
    uint64_t boards;
    const struct job_proc *proc; /* of a found job: one of them has to be there still */
    size_t n_procs;
    bool firm; /* as in job_entry */
    pid_t pid; /* the job ends when this process does (pidfd); 0: by roster_end() */
    const struct label *label;
    size_t n_labels;
    uint64_t id;        /* 0: a new one; else taken over after a restart */
    uint64_t pid_start; /* of a job taken over: another start is another process; 0 */
    int64_t began_utc_ns;
};
/* -EINVAL, -ESRCH (no such process), -EPERM (pid is not uid's), -EBUSY (a scheduler's
 * registration: a board is another scheduler's job's; it goes before found and run ones),
 * -EEXIST (id, or the found job, is there already), -E2BIG (too many, or too many of this
 * user's), -EAGAIN (this user begins too many in a short time).  A run job never fails
 * for what others do on its boards: it waits for those (job_entry.waits).  ROSTER_BEGIN
 * comes before it returns.
 */
int roster_begin(struct roster *r, const struct roster_register *reg, uint64_t *ret_id,
                 uw_error *err);
int roster_end(struct roster *r, uint64_t id, uw_error *err); /* -ENOENT */
const struct job_entry *roster_find(const struct roster *r, uint64_t id);
size_t roster_count(const struct roster *r);
const struct job_entry *roster_at(const struct roster *r, size_t i);

/* What the job does now (as in its entry): ROSTER_CHANGE where that is new. */
void roster_phase(struct roster *r, uint64_t id, uint32_t phase);

/* May uid claim on this board?  See core/job/owner.h; root always.  Who is an
 * administrator is for the caller to know.
 */
bool roster_may_claim(const struct roster *r, uid_t uid, size_t board);

/* May what uid claimed on this board stand?  As above. */
bool roster_keeps_claim(const struct roster *r, uid_t uid, size_t board);

/* A board woke up (its power rose), or somebody asks who is there: look soon. */
void roster_look(struct roster *r, size_t board);
/* Is anybody on the board: a process, or a job that it was given to? */
bool roster_in_use(const struct roster *r, size_t board);

/* Who used the board since this was last called, for core/job/split.h: the jobs on it,
 * and where there are processes of no job, one entry of job 0.  Their number.
 */
size_t roster_users(struct roster *r, size_t board,
                    struct split_user ret[static ROSTER_USERS]);

/* Looks made at process lists, and how many failed. */
struct roster_counts {
    uint64_t looks, failures;
};
void roster_counts(const struct roster *r, struct roster_counts *ret);

#endif
