/* What the files of the guard share: guard.c (boards, sessions, leases), guard-move.c
 * (letting go of boards for a reset), guard-end.c (recovery, the end, what was not
 * restored).  Nobody else includes it.
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
    STATE_HOLDING,   /* a hold is in the worker, or waits for its turn */
    STATE_HELD,      /* capped or about to be */
    STATE_RESTORING, /* until the original is back */
    STATE_RECOVERING /* an entry that was left behind */
};

enum { SET_LIMIT, SET_CLOCKS, N_SETS }; /* each waits for its turn by itself */

struct charge { /* one board */
    struct guard *guard;
    struct loop_worker *worker;
    struct loop_timer *timer;
    struct held held;    /* the worker's while a job is there */
    struct job job;      /* likewise */
    bool busy;           /* a job is in the worker … */
    bool hangs;          /* … past its deadline */
    bool given_up;       /* not restored after many attempts */
    bool unrestored;     /* recovery can do nothing: damaged, or its holder is stopped */
    uint64_t writing_ns; /* since when a hold's write is known to be with the driver */
    uint64_t submitted_ns; /* the job that is in the worker … */
    uint32_t seen_mw;      /* … the limit that the ones before have read last … */
    char why[200];         /* … and why the last restore has failed */
    bool no_thread;        /* the job could not be handed over: the timer folds it */
    enum state state;
    struct guard_session *session; /* NULL: gone */
    uid_t uid;                     /* of whoever holds it */
    bool left;         /* the holder has gone, nobody has taken it over yet … */
    uint64_t grace_ns; /* … and then it is restored */
    bool lease_over;
    uint32_t hold_seq;      /* the hold to be done next; 0: none … */
    bool hold_keep;         /* … with the original of the one before */
    uint64_t hold_until_ns; /* … if who has the lock gives it up by then */
    uint32_t adopt_seq;     /* the hold that takes it over; 0: none */
    struct proto_request waiting[N_SETS]; /* sets to be done next, where seq is not 0 */
    uint32_t release_seq;                 /* the release to be answered; 0: none */
    unsigned attempts;
    uint64_t due_ns, next_hold_ns, next_look_ns;
    uint64_t next_set_ns[N_SETS]; /* no sooner: a clock does not hold a limit up */
};

struct guard_session {
    struct guard *guard;
    struct guard_client client;
    guard_send_fn send;
    void *user;
    struct loop_timer *lease;
    bool yielded[GUARD_BOARDS_MAX];
};

/* Boards are being let go of, or taken back: no job begins meanwhile. */
struct moving {
    bool on, runs; /* asked for; in the worker, no job is under way any more */
    uint64_t away; /* … and these will be away after it */
    uint32_t seq;  /* of a PROTO_DETACH, whose asker may have gone; 0: of a hold */
    struct guard_session *session;
    char uuid[96];
    uw_error err; /* the worker's */
};

struct guard {
    struct guard_opts opts;
    bool closing;
    unsigned n_restored; /* boards, since the recovery or the end began … */
    unsigned n_absent;   /* … and entries of boards that are not there, kept */
    uint64_t away;       /* boards that the driver is not open on, a bit each */
    struct moving moving;
    struct loop_worker *mover;
    struct guard_session *session[SESSIONS_MAX];
    struct lines told, lapses; /* what happens to boards; leases, which clients let go */
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
void guard_tell(struct guard *guard); /* that a job has ended */
void guard_step(struct charge *c);
void guard_want_restore(struct charge *c);
void guard_submit(struct charge *c, struct job job);
struct charge *guard_find(struct guard *guard, const char *uuid);

/* guard-end.c */

/* The restore of this board has failed for good: said, with all that is known. */
void guard_say_kept(struct charge *c);
/* An entry that cannot be undone: reply tells why. */
void guard_say_refused(struct charge *c, const struct actuator_reply *reply);

/* guard-move.c */

/* From now on these boards are away, as soon as no job is under way.  seq: of the request
 * on c that session waits for; 0: of a hold, which goes on afterwards.
 */
void guard_move(struct guard *guard, const struct charge *c, uint64_t away,
                struct guard_session *session, uint32_t seq);
/* A job has ended, or hangs on that board (NULL: none): can it begin now, or not? */
void guard_move_next(struct guard *guard, const struct charge *hung);
void guard_ask_detach(struct guard_session *session, struct charge *c,
                      const struct proto_request *request);

#endif
