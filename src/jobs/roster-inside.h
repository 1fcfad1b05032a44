/* One class in three files: roster.c (jobs and what is told of them), roster-begin.c
 * (jobs that somebody tells us of, and which boards they get), roster-look.c (boards and
 * the processes there).  No other file includes this.
 */
#ifndef JOBS_ROSTER_INSIDE_H
#define JOBS_ROSTER_INSIDE_H

#include "base/rate.h"
#include "core/job/cgroup.h"
#include "jobs/board-users.h"
#include "jobs/roster.h"

/* By what a found job is known. */
struct job_key {
    uid_t uid;
    enum cgroup_kind kind; /* under CGROUP_PODMAN: by session */
    char id[CGROUP_ID];
    pid_t session;
};

struct roster_job { /* one job */
    struct roster *roster;
    struct job_entry e;
    struct job_key key; /* found ones */
    uint64_t kept; /* found, taken over: boards that it was on, not looked at since */
    int pidfd;     /* -1: none */
    struct loop_fd *source; /* tells its end; NULL: looked at now and then */
    bool asked_user;
    bool is_new, changed, over; /* events to be told */
};

struct seen { /* a process on a board */
    pid_t pid;
    uint64_t start;
    bool known; /* whose it is */
    uid_t uid;
    bool compute;
    uint64_t job; /* 0: none */
};

struct roster_board {      /* one board */
    struct roster *roster; /* NULL: freed while a call was under way */
    size_t at;
    struct board *board;
    struct seen *proc;
    size_t n, room;
    bool known;                /* the list is complete … */
    uint64_t known_ns;         /* … as of then */
    uint64_t next_ns, last_ns; /* looks */
    unsigned calls;            /* under way */
    bool no_use;               /* the driver tells no use */
    struct board_users users;
};

struct name { /* of a user, once asked for */
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
    struct loop_worker *worker; /* looks names up */
    struct loop_timer *timer;
    uint64_t next_id;
    struct roster_counts counts;
    struct rates begun[2];              /* run jobs and found ones, a bucket a user */
    bool telling;                       /* events are being told */
    struct seen fresh[BOARD_PROCS_MAX]; /* of the list that is being taken over */
    uint64_t there[ROSTER_MAX + 1];     /* who is on the board that is looked at */
};

/* ---- roster.c ---- */

struct roster_job *roster_job(const struct roster *r, uint64_t id);
/* It is over: its boards turn before it is gone. */
void roster_job_end(struct roster_job *s);
/* A new job, not told yet.  NULL: no memory, or too many. */
struct roster_job *roster_add(struct roster *r, uint64_t id);
/* May uid have one more job that no scheduler knows?  0, -E2BIG, -EAGAIN; once it is
 * asked for the job is taken to begin.
 */
int roster_room(struct roster *r, enum job_source source, uid_t uid, uw_error *err);
/* Its name, once it is known. */
void roster_name_user(struct roster *r, struct roster_job *s);
/* Is its first process still there?  Jobs without one are. */
bool roster_alive(const struct roster *r, const struct roster_job *s);
int roster_read(const struct roster *r, pid_t pid, struct proc_facts *ret);
/* Jobs are told about: begun, changed, ended; the last ones are forgotten then. */
void roster_tell(struct roster *r);
/* Boards, processes and strangers of each job, from the boards. */
void roster_refresh(struct roster *r);
void roster_schedule(struct roster *r);

/* Its process is there still, and the same; its facts. */
bool roster_is_there(const struct roster *r, const struct job_proc *p, uid_t uid,
                     struct proc_facts *ret);

/* ---- roster-begin.c ---- */

/* Boards that run jobs wait for become theirs, as soon as they may. */
void roster_share(struct roster *r);

/* ---- roster-look.c ---- */

/* By what a found job of this process is known. */
struct job_key roster_key(const struct proc_facts *f);
struct roster_job *roster_found(const struct roster *r, const struct job_key *key);
void roster_board_look(struct roster_board *s);
void roster_board_free(struct roster_board *s);
/* The job has the board, whether or not a process of its is there. */
bool roster_board_given(const struct roster_board *s, const struct roster_job *job);
/* The board's users are about to change: the times are counted up to now. */
void roster_board_turn(struct roster_board *s);
/* Who is there from now on. */
void roster_board_users(struct roster_board *s);

#endif
