/* Internals shared by roster.c (jobs and their events), roster-begin.c (registration and
 * which boards jobs get) and roster-look.c (boards and their processes).
 */
#ifndef JOBS_ROSTER_INSIDE_H
#define JOBS_ROSTER_INSIDE_H

#include "base/rate.h"
#include "core/job/cgroup.h"
#include "jobs/board-users.h"
#include "jobs/roster.h"

/* Identity of a found job. */
struct job_key {
    uid_t uid;
    enum cgroup_kind kind; /* below CGROUP_PODMAN: identified by session */
    char id[CGROUP_ID];
    pid_t session;
};

struct roster_job {
    struct roster *roster;
    struct job_entry e;
    struct job_key key;         /* of a found job */
    uint64_t kept;              /* of a restored found job: boards not read since */
    int pidfd;                  /* -1: none */
    struct loop_fd *source;     /* of pidfd; NULL: roster_alive() is polled */
    bool is_new, changed, over; /* pending events */
};

struct seen { /* a process on a board */
    pid_t pid;
    uint64_t start;
    bool known; /* start, uid and job are */
    uid_t uid;
    bool compute;
    uint64_t used_bytes; /* 0: unknown */
    uint64_t job;        /* 0: none */
};

struct roster_board {
    struct roster *roster; /* NULL: freed while a call was under way */
    size_t at;
    struct board *board;
    struct seen *proc;
    size_t n, room;
    bool looked; /* the list was read, or could not be */
    bool known;  /* the list is complete, as of known_ns */
    uint64_t known_ns;
    uint64_t next_ns, last_ns; /* next and last read of the process list */
    unsigned calls;            /* under way */
    bool no_use;               /* the driver does not report SM use */
    struct board_users users;
};

struct name { /* cached name of a user */
    uid_t uid;
    char user[32];
};

struct roster {
    struct roster_opts opts;
    struct roster_job **job;
    size_t n, room;
    struct roster_board **board;
    size_t n_boards;
    struct name *name;
    size_t n_names, names_room;
    struct loop_worker *worker; /* for getpwuid_r() */
    struct loop_timer *timer;
    uint64_t next_id, pruned_ns;
    struct roster_counts counts;
    struct rates begun[2];              /* found and run jobs, one bucket per user */
    struct rates joined;                /* joins of groups, likewise */
    bool telling;                       /* roster_tell() is running */
    struct seen fresh[BOARD_PROCS_MAX]; /* scratch: the list that was just read */
    struct {
        uint64_t at_ns; /* 0: none */
        struct proc_facts facts;
    } last;                         /* process that was read for a list */
    uint64_t there[ROSTER_MAX + 1]; /* scratch: jobs on one board */
};

/* ---- roster.c ---- */

struct roster_job *roster_job(const struct roster *r, uint64_t id);
/* Ends the job; its boards' on_turn() calls come first.  The entry stays until
 * roster_tell() has sent ROSTER_END.
 */
void roster_job_end(struct roster_job *s);
/* Adds a job, whose ROSTER_BEGIN roster_tell() sends.  NULL: no memory or too many. */
struct roster_job *roster_add(struct roster *r, uint64_t id);
/* Checks the limits for one more run or found job of uid, and counts that job towards the
 * rate limit.  -E2BIG, -EAGAIN.
 */
int roster_room(struct roster *r, enum job_source source, uid_t uid, uw_error *err);
/* Sets e.user, now or when the name has been looked up. */
void roster_name_user(struct roster *r, struct roster_job *s);
/* Whether the job's processes still exist; true if none is known. */
bool roster_alive(const struct roster *r, const struct roster_job *s);
int roster_read(const struct roster *r, pid_t pid, struct proc_facts *ret);
void roster_read_title(const struct roster *r, struct proc_facts *f);
/* Sends the pending events and frees jobs that are over. */
void roster_tell(struct roster *r);
/* Updates boards, n_pids and foreign of each job from the boards' process lists; ends
 * found jobs without processes.
 */
void roster_refresh(struct roster *r);
void roster_schedule(struct roster *r);

/* Whether p still runs as uid; *ret: its facts. */
bool roster_is_there(const struct roster *r, const struct job_proc *p, uid_t uid,
                     struct proc_facts *ret);

/* ---- roster-begin.c ---- */

/* Passes boards to the run jobs that wait for them, where core rules allow it now. */
void roster_share(struct roster *r);

/* The job's first process has ended: another one of its group takes the place, or the job
 * ends.
 */
void roster_first_ended(struct roster_job *s);

/* Forgets the processes of a run job that have ended, but for the first. */
void roster_prune(struct roster_job *s);

/* ---- roster-look.c ---- */

/* Finds out in which registered job each run job runs, where that is not known yet. */
void roster_nest(struct roster *r);
/* The identity of a found job with this process. */
struct job_key roster_key(const struct proc_facts *f);
struct roster_job *roster_found(const struct roster *r, const struct job_key *key);
void roster_board_look(struct roster_board *s);
void roster_board_free(struct roster_board *s);
/* Whether the job has the board, even without a process there. */
bool roster_board_given(const struct roster_board *s, const struct roster_job *job);
/* Call before the board's users change: counts their times and calls on_turn(). */
void roster_board_turn(struct roster_board *s);
/* Updates the board's users after a change. */
void roster_board_users(struct roster_board *s);

#endif
