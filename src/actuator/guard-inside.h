/* Shared by the files of the guard: guard.c (boards, sessions, leases), guard-move.c
 * (detaching boards for a reset), guard-end.c (recovery, shutdown, boards that were not
 * restored).  No other file includes this.
 */
#ifndef ACTUATOR_GUARD_INSIDE_H
#define ACTUATOR_GUARD_INSIDE_H

#include "actuator/guard.h"
#include "actuator/lines.h"
#include "actuator/work.h"

enum {
    SESSIONS_MAX = 16,
    HOLD_MS = 10000, /* the first call of a board may wake it up */
};

enum job_kind {
    JOB_HOLD,
    JOB_ADOPT,
    JOB_LIMIT,
    JOB_CLOCKS,
    JOB_LOOK,
    JOB_RESTORE,
    JOB_RECOVER,
};

struct job {
    enum job_kind kind;
    pid_t client;
    uint32_t seq, a, b;
    struct actuator_reply reply;
};

enum state {
    STATE_FREE,
    STATE_HOLDING,   /* a hold runs in the worker, or is queued */
    STATE_HELD,      /* a client holds the board, or its grace runs */
    STATE_RESTORING, /* the original limit is being restored */
    STATE_RECOVERING /* an entry left by an earlier actuator is being undone */
};

enum { SET_LIMIT, SET_CLOCKS, N_SETS }; /* each is queued separately */

struct charge { /* one board */
    struct guard *guard;
    struct loop_worker *worker;
    struct loop_timer *timer;
    struct held held;    /* owned by the worker while a job runs */
    struct job job;      /* likewise */
    bool busy;           /* a job runs in the worker … */
    bool hangs;          /* … past its deadline */
    bool given_up;       /* not restored after many attempts */
    bool unrestored;     /* recovery is impossible: the entry is damaged, or its holder is
                            stopped */
    uint64_t writing_ns; /* when the driver was first seen processing a hold's write; 0:
                            not seen */
    uint64_t submitted_ns; /* submission time of the job in the worker … */
    uint32_t seen_mw;      /* … the limit last read by earlier jobs … */
    char why[200];         /* … and the error of the last failed restore */
    bool no_thread;        /* the job could not be submitted: the timer completes it */
    enum state state;
    struct guard_session *session; /* NULL: the client has disconnected */
    uid_t uid;                     /* of the holder */
    bool left; /* the holder has disconnected, and no client has taken the board over … */
    uint64_t grace_ns; /* … until this time, when the board is restored */
    bool lease_over;
    uint32_t hold_seq;      /* seq of the hold to run next; 0: none … */
    bool hold_keep;         /* … which keeps the original limit of the hold before */
    uint64_t hold_until_ns; /* … and waits until then for the lock */
    uint32_t adopt_seq;     /* seq of the hold that takes the board over; 0: none */
    struct proto_request waiting[N_SETS]; /* requests to set, to run next; seq 0: none */
    uint32_t release_seq;                 /* seq of the release to answer; 0: none */
    struct holder other; /* another Underwatt that holds the board, as told to clients */
    unsigned attempts;
    uint64_t due_ns, next_hold_ns, next_look_ns;
    uint64_t next_set_ns[N_SETS]; /* earliest time of the next set; a clock lock does not
                                     delay a limit */
};

struct guard_session {
    struct guard *guard;
    struct guard_client client;
    guard_send_fn send;
    void *user;
    struct loop_timer *lease;
    uint64_t lease_ns; /* the end of the lease … */
    bool prolonged;    /* … which was noticed late: the lease lasts longer, once */
    bool yielded[GUARD_BOARDS_MAX];
};

/* Boards are being detached or attached again: no job begins meanwhile. */
struct moving {
    bool on, runs; /* requested; running in the worker, while no job runs */
    uint64_t away; /* … and the boards that are detached afterwards */
    uint32_t seq;  /* of a PROTO_DETACH, whose client may have disconnected; 0: on behalf
                      of a hold */
    struct guard_session *session;
    char uuid[96];
    uw_error err; /* written by the worker */
};

struct guard {
    struct guard_opts opts;
    bool closing;
    unsigned n_restored; /* boards restored since the recovery or the shutdown began … */
    unsigned n_absent;   /* … and kept entries of absent boards */
    uint64_t away;       /* bits of the detached boards */
    struct moving moving;
    struct loop_worker *mover;
    struct guard_session *session[SESSIONS_MAX];
    struct lines told, lapses; /* log lines of boards, and of expired leases */
    size_t n;
    struct charge charge[GUARD_BOARDS_MAX];
};

static inline uint64_t guard_bit(const struct charge *c)
{
    return 1ull << (c - c->guard->charge);
}

/* guard.c */
void guard_say(struct guard *guard, const char *text);
void guard_send(struct guard_session *session, enum proto_type type, uint32_t seq,
                const struct actuator_reply *reply);
void guard_refuse(struct guard_session *session, const struct proto_request *request,
                  enum actuator_result result, const char *why);
void guard_tell(struct guard *guard); /* reports that a job has ended */
void guard_step(struct charge *c);
void guard_want_restore(struct charge *c);
void guard_submit(struct charge *c, struct job job);
struct charge *guard_find(struct guard *guard, const char *uuid);

/* guard-end.c */

/* Logs all that is known of a board whose restore has failed for good. */
void guard_say_kept(struct charge *c);
/* Logs an entry that cannot be undone; reply has the reason. */
void guard_say_refused(struct charge *c, const struct actuator_reply *reply);

/* guard-move.c */

/* Detaches these boards as soon as no job runs.  seq: of the request on c for which the
 * session waits; 0: on behalf of a hold, which continues afterwards.
 */
void guard_move(struct guard *guard, const struct charge *c, uint64_t away,
                struct guard_session *session, uint32_t seq);
/* Called when a job has ended, or hangs on that board (NULL: none): begins the detach, or
 * refuses it.
 */
void guard_move_next(struct guard *guard, const struct charge *hung);
void guard_ask_detach(struct guard_session *session, struct charge *c,
                      const struct proto_request *request);

#endif
