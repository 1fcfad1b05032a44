/* Inside of the roster: what it holds; for roster*.c alone. */
#ifndef JOBS_ROSTER_INSIDE_H
#define JOBS_ROSTER_INSIDE_H

#include "base/rate.h"
#include "core/job/cgroup.h"
#include "jobs/roster.h"

/* By what a found job is known. */
struct job_key {
    uid_t uid;
    enum cgroup_kind kind; /* under CGROUP_PODMAN: by session */
    char id[CGROUP_ID];
    pid_t session;
};

struct slot { /* one job */
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

struct user { /* of a board, in the stretch under way */
    uint64_t job;
    bool there;
    bool rate_known;
    double rate; /* SMs' time in a second */
    double there_s, known_s, use_s;
};

struct seat {              /* one board */
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
    struct user user[ROSTER_USERS];
    size_t n_users;
    uint64_t counted_ns; /* up to when users' times are counted */
};

struct name { /* of a user, once asked for */
    uid_t uid;
    char user[32];
};

struct roster {
    struct roster_opts opts;
    struct slot **slot;
    size_t n, room;
    struct seat **seat;
    size_t n_seats;
    struct name *name;
    size_t n_names, names_room;
    struct loop_worker *worker; /* looks names up */
    struct loop_timer *timer;
    uint64_t next_id;
    struct roster_counts counts;
    struct rates begun[2];              /* run jobs and found ones, a bucket a user */
    bool telling;                       /* events are being told */
    struct seen fresh[BOARD_PROCS_MAX]; /* of the list that is being taken over */
};

/* roster.c */
struct slot *roster_slot(const struct roster *r, uint64_t id);
/* It is over: its boards turn before it is gone. */
void slot_end(struct slot *s);
/* A new job, not told yet.  NULL: no memory, or too many. */
struct slot *roster_add(struct roster *r, uint64_t id);
/* May uid have one more job that no scheduler knows?  0, -E2BIG, -EAGAIN; once it is
 * asked for the job is taken to begin.
 */
int roster_room(struct roster *r, enum job_source source, uid_t uid, uw_error *err);
/* Its name, once it is known. */
void roster_name_user(struct roster *r, struct slot *s);
/* Is its first process still there?  Jobs without one are. */
bool roster_alive(const struct roster *r, const struct slot *s);
int roster_read(const struct roster *r, pid_t pid, struct proc_facts *ret);
/* Jobs are told about: begun, changed, ended; the last ones are forgotten then. */
void roster_tell(struct roster *r);
/* Boards, processes and strangers of each job, from the seats. */
void roster_refresh(struct roster *r);
void roster_schedule(struct roster *r);

/* Its process is there still, and the same; its facts. */
bool roster_is_there(const struct roster *r, const struct job_proc *p, uid_t uid,
                     struct proc_facts *ret);

/* roster-share.c */
/* Who else has the board, so that a run job of uid's cannot: a job (*ret_job) or, where
 * that is NULL, a process.  False: nobody.
 */
bool seat_held(const struct seat *s, uid_t uid, const struct job_entry **ret_job,
               pid_t *ret_pid);
/* Boards that run jobs wait for become theirs, as soon as they may. */
void roster_share(struct roster *r);

/* roster-look.c */
/* By what a found job of this process is known. */
struct job_key roster_key(const struct proc_facts *f);
struct slot *roster_found(const struct roster *r, const struct job_key *key);
void seat_look(struct seat *s);
void seat_free(struct seat *s);

/* roster-users.c */
/* Count times up to now with those who were there. */
void seat_count(struct seat *s);
/* Who is there from now on. */
void seat_users(struct seat *s);
/* Would seat_users() change anything?  procs: those that will be there. */
bool seat_users_differ(const struct seat *s, const struct seen *procs, size_t n);
/* The job has the board, whether or not a process of its is there. */
bool seat_given(const struct seat *s, const struct slot *job);
/* The board's users are about to change. */
void seat_turn(struct seat *s);
void seat_ask_use(struct seat *s);

#endif
