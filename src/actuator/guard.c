#include "actuator/guard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actuator/core.h"
#include "actuator/guard-inside.h"
#include "actuator/others.h"
#include "base/error.h"
#include "base/units.h"

enum {
    RETRY_S = 60,   /* between attempts of a service, after the first quick ones */
    CALL_MS = 3000, /* a job of one board, kernel time */
    LOOK_MS = 1000, /* interval of checks for another program's limit */
    TELL_AFTER = 3, /* failed attempts to restore before the client is notified */
    TOLD_MAX = 2 * GUARD_BOARDS_MAX, /* lines a minute */
    LAPSES_MAX = 20,
    LOOK_US = 1000, /* interval of checks whether a hold's write has begun */
};

static uint64_t now_ns(const struct charge *c)
{
    return loop_now_ns(c->guard->opts.loop);
}

void guard_say(struct guard *guard, const char *text)
{
    lines_say(&guard->told, text);
}

void guard_send(struct guard_session *session, enum proto_type type, uint32_t seq,
                const struct actuator_reply *reply)
{
    struct proto_answer answer = proto_answer(type, seq, reply);

    if (session)
        session->send(&answer, session->user);
}

void guard_refuse(struct guard_session *session, const struct proto_request *request,
                  enum actuator_result result, const char *why)
{
    struct actuator_reply reply = {.result = result};

    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s", request->uuid);
    (void)snprintf(reply.text, sizeof reply.text, "%s: %s", request->uuid, why);
    guard_send(session, (enum proto_type)request->type, request->seq, &reply);
}

/* ---- the worker ---- */

static int run_job(struct loop *loop, void *work)
{
    struct charge *c = work;
    struct job *job = &c->job;

    (void)loop;
    switch (job->kind) {
    case JOB_HOLD:
        work_hold(&c->held, job->client, &job->reply);
        break;
    case JOB_ADOPT:
        work_adopt(&c->held, job->client, &job->reply);
        break;
    case JOB_LIMIT:
        work_limit(&c->held, job->a, &job->reply);
        break;
    case JOB_CLOCKS:
        work_clocks(&c->held, job->a, job->b, &job->reply);
        break;
    case JOB_LOOK:
        work_look(&c->held, &job->reply);
        break;
    case JOB_RESTORE:
        work_restore(&c->held, &job->reply);
        break;
    case JOB_RECOVER:
        work_recover(&c->held, &job->reply);
        break;
    }
    return 0;
}

void guard_tell(struct guard *guard)
{
    if (guard->opts.on_change)
        guard->opts.on_change(guard->opts.user);
}

static enum proto_type type_of(enum job_kind kind)
{
    return kind == JOB_HOLD || kind == JOB_ADOPT ? PROTO_HOLD
           : kind == JOB_LIMIT                   ? PROTO_LIMIT
                                                 : PROTO_CLOCKS;
}

/* Answers the client that asked for the job, if it is still connected. */
static void answer_job(struct charge *c, const struct actuator_reply *reply)
{
    if (c->job.seq)
        guard_send(c->session, type_of(c->job.kind), c->job.seq, reply);
    c->job.seq = 0;
}

static void say_left(struct charge *c, const char *what)
{
    char text[320];

    (void)snprintf(text, sizeof text, "%s: %s", c->held.info->uuid, what);
    guard_say(c->guard, text);
}

static void end_waiting(struct charge *c, enum actuator_result result, const char *why)
{
    for (size_t i = 0; i < N_SETS; i++) {
        if (c->waiting[i].seq)
            guard_refuse(c->session, &c->waiting[i], result, why);
        c->waiting[i].seq = 0;
    }
}

/* The set request that is due now; NULL: none, and *wake_ns is at most the due time of a
 * waiting one.  Limits, which budgets need, go first.
 */
static struct proto_request *next_set(struct charge *c, uint64_t now, uint64_t *wake_ns)
{
    for (size_t i = 0; i < N_SETS; i++) {
        if (!c->waiting[i].seq)
            continue;
        if (now >= c->next_set_ns[i])
            return &c->waiting[i];
        if (c->next_set_ns[i] < *wake_ns)
            *wake_ns = c->next_set_ns[i];
    }
    return NULL;
}

/* Answers the client that waits to take over the board. */
static void end_adopt(struct charge *c, const struct actuator_reply *reply)
{
    if (c->adopt_seq)
        guard_send(c->session, PROTO_HOLD, c->adopt_seq, reply);
    c->adopt_seq = 0;
}

static void tell_lease_over(struct charge *c, const struct actuator_reply *reply)
{
    struct actuator_reply told = *reply;

    if (reply->result == ACTUATOR_DONE)
        (void)snprintf(told.text, sizeof told.text,
                       "%s: the lease was not renewed; the original limit is restored",
                       c->held.info->uuid);
    guard_send(c->session, PROTO_LEASE_OVER, 0, &told);
}

/* Marks the board as free of a holder. */
static void set_free(struct charge *c, const struct actuator_reply *reply)
{
    end_waiting(c, reply->result == ACTUATOR_YIELDED ? ACTUATOR_YIELDED : ACTUATOR_GONE,
                "not held any more");
    end_adopt(c, reply);
    if (c->release_seq)
        guard_send(c->session, PROTO_RELEASE, c->release_seq, reply);
    else if (c->lease_over)
        tell_lease_over(c, reply);
    c->state = STATE_FREE;
    c->session = NULL;
    c->left = false;
    c->lease_over = false;
    c->release_seq = 0;
    c->attempts = 0;
    c->seen_mw = 0;
    c->why[0] = '\0';
}

void guard_want_restore(struct charge *c)
{
    struct actuator_reply gone = {.result = ACTUATOR_GONE};

    (void)snprintf(gone.uuid, sizeof gone.uuid, "%s", c->held.info->uuid);
    (void)snprintf(gone.text, sizeof gone.text, "%s: not held any more", gone.uuid);
    end_adopt(c, &gone);
    c->left = false;
    c->state = STATE_RESTORING;
    c->attempts = 0;
    c->due_ns = now_ns(c);
    end_waiting(c, ACTUATOR_GONE, "not held any more");
}

/* Another actuator restores the board and then releases it: tries the hold again. */
static bool hold_again(struct charge *c, const struct actuator_reply *reply)
{
    if (reply->result != ACTUATOR_TAKEN || !c->held.holder_passes || !c->job.seq ||
        c->release_seq || c->lease_over || now_ns(c) >= c->hold_until_ns)
        return false;
    c->hold_seq = c->job.seq;
    c->job.seq = 0;
    return true;
}

static void after_hold(struct charge *c, const struct actuator_reply *reply)
{
    if (hold_again(c, reply))
        return;
    answer_job(c, reply);
    if (reply->result != ACTUATOR_DONE) {
        struct actuator_reply gone = *reply;
        gone.result = ACTUATOR_GONE; /* answers a release that arrived in between */
        if (c->release_seq)
            guard_send(c->session, PROTO_RELEASE, c->release_seq, &gone);
        c->release_seq = 0;
        c->lease_over = false;
        set_free(c, reply);
        return;
    }
    if ((!c->session && !c->left) || c->lease_over || c->release_seq) {
        guard_want_restore(c);
        return;
    }
    c->state = STATE_HELD;
    c->given_up = c->unrestored = false;
    for (size_t i = 0; i < N_SETS; i++)
        c->next_set_ns[i] = now_ns(c);
    c->next_look_ns = now_ns(c) + LOOK_MS * NS_PER_MS;
}

/* Notes whether the call has found another program's limit, whatever its result: the
 * session leaves the board alone from then on.
 */
static void note_yield(struct charge *c)
{
    if (c->held.yielded && c->session)
        c->session->yielded[c - c->guard->charge] = true;
    c->held.yielded = false;
}

/* The check for a client that takes over the board has ended. */
static void after_adopt(struct charge *c, const struct actuator_reply *reply)
{
    bool can = c->state == STATE_HELD && c->session && c->job.seq;

    note_yield(c);
    c->next_look_ns = now_ns(c) + LOOK_MS * NS_PER_MS;
    if (reply->result == ACTUATOR_YIELDED) {
        guard_say(c->guard, reply->text);
        answer_job(c, reply);
        set_free(c, reply);
    } else if (!can) { /* the client has gone again, or its lease is over */
        struct actuator_reply gone = *reply;
        gone.result = ACTUATOR_GONE;
        answer_job(c, &gone);
    } else if (reply->result == ACTUATOR_DONE) {
        c->left = false;
        answer_job(c, reply);
    } else {
        answer_job(c, reply);
        end_waiting(c, ACTUATOR_GONE, "not held any more");
        c->session = NULL; /* the rest of the grace remains for another client */
        if (reply->result == ACTUATOR_GONE)
            guard_want_restore(c);
    }
}

/* A set or a look has ended. */
static void after_call(struct charge *c, const struct actuator_reply *reply)
{
    struct guard_session *session = c->session;
    bool asked = c->job.kind != JOB_LOOK;

    note_yield(c);
    c->next_look_ns = now_ns(c) + LOOK_MS * NS_PER_MS;
    if (asked) {
        c->next_set_ns[c->job.kind == JOB_LIMIT ? SET_LIMIT : SET_CLOCKS] =
            now_ns(c) + ACTUATOR_WRITE_GAP_MS * NS_PER_MS;
        answer_job(c, reply);
    }
    if (reply->result == ACTUATOR_YIELDED) {
        guard_say(c->guard, reply->text);
        if (!c->left)
            guard_send(session, PROTO_YIELDED, 0, reply);
        set_free(c, reply);
    } else if (reply->result == ACTUATOR_GONE && c->state == STATE_HELD) {
        guard_say(c->guard, reply->text);
        if (!c->left)
            guard_send(session, PROTO_LOST, 0, reply);
        guard_want_restore(c);
    }
}

/* A restore has failed: tries again later, or gives up. */
static void try_again(struct charge *c, const struct actuator_reply *reply)
{
    uint64_t wait_ns = core_retry_ns(++c->attempts);

    if (!wait_ns && c->guard->opts.keep_trying)
        wait_ns = RETRY_S * NS_PER_S;
    (void)snprintf(c->why, sizeof c->why, "%s", reply->text);
    if (c->attempts == 1)
        guard_say(c->guard, reply->text);
    if (c->attempts == TELL_AFTER && c->release_seq) {
        struct actuator_reply told = *reply;
        told.result = ACTUATOR_UNKNOWN;
        guard_send(c->session, PROTO_RELEASE, c->release_seq, &told);
        c->release_seq = 0;
    }
    if (wait_ns) {
        c->due_ns = now_ns(c) + wait_ns;
        c->state = STATE_RESTORING;
        return;
    }
    guard_say_kept(c);
    c->given_up = true;
    work_abandon(&c->held);
    set_free(c, reply);
}

static void after_restore(struct charge *c, const struct actuator_reply *reply)
{
    bool recovery = c->job.kind == JOB_RECOVER;
    bool done = reply->result == ACTUATOR_DONE || reply->result == ACTUATOR_YIELDED;

    if (!done && (!recovery || c->held.has_entry)) {
        try_again(c, reply);
        return;
    }
    if (done) {
        if (recovery || reply->result == ACTUATOR_YIELDED)
            guard_say(c->guard, reply->text);
        c->given_up = c->unrestored = false;
        c->guard->n_restored += reply->original_mw > 0; /* there was an entry */
    } else { /* its holder is alive, or the entry is refused: no retry */
        guard_say_refused(c, reply);
    }
    set_free(c, reply);
}

static void fold(struct charge *c)
{
    struct actuator_reply reply = c->job.reply;

    c->busy = false;
    if (reply.set_mw)
        c->seen_mw = reply.set_mw;
    switch (c->job.kind) {
    case JOB_HOLD:
        after_hold(c, &reply);
        break;
    case JOB_ADOPT:
        after_adopt(c, &reply);
        break;
    case JOB_RESTORE:
    case JOB_RECOVER:
        after_restore(c, &reply);
        break;
    default:
        after_call(c, &reply);
        break;
    }
    guard_step(c);
    guard_move_next(c->guard, NULL);
    guard_tell(c->guard);
}

/* The call is past its deadline: only its own board is taken out of service. */
static void on_hang(struct charge *c)
{
    struct actuator_reply reply = {.result = ACTUATOR_UNKNOWN};
    enum job_kind kind = c->job.kind;

    c->hangs = true;
    (void)snprintf(reply.uuid, sizeof reply.uuid, "%s", c->held.info->uuid);
    (void)snprintf(reply.text, sizeof reply.text,
                   "%s: a call hangs in the driver, the limit in force is unknown",
                   c->held.info->uuid);
    guard_say(c->guard, reply.text);
    answer_job(c, &reply);
    end_adopt(c, &reply);
    if (c->release_seq)
        guard_send(c->session, PROTO_RELEASE, c->release_seq, &reply);
    else if (kind != JOB_RECOVER && kind != JOB_HOLD && kind != JOB_ADOPT)
        guard_send(c->session, PROTO_LOST, 0, &reply);
    c->release_seq = 0;
    if (c->state != STATE_RECOVERING)
        guard_want_restore(c);
    guard_move_next(c->guard, c);
    guard_tell(c->guard);
}

static int on_done(struct loop *loop, void *work, int r)
{
    struct charge *c = work;

    (void)loop;
    if (c->guard->closing || r == -ECANCELED)
        return 0;
    if (r == -ETIMEDOUT)
        on_hang(c);
    else
        fold(c);
    return 0;
}

/* The call has returned after its deadline.  Whatever its result, restores the original.
 */
static void on_late(struct loop *loop, void *work, int r)
{
    struct charge *c = work;

    (void)loop;
    (void)r;
    c->hangs = false;
    c->busy = false;
    if (c->job.kind == JOB_RESTORE || c->job.kind == JOB_RECOVER) {
        fold(c);
        return;
    }
    note_yield(c);
    if (c->held.lock_fd < 0 && !c->held.has_entry) {
        set_free(c, &c->job.reply);
    } else {
        guard_want_restore(c);
        guard_step(c);
    }
    guard_tell(c->guard);
}

void guard_submit(struct charge *c, struct job job)
{
    struct loop_work work = {.fn = run_job, .done = on_done, .late = on_late, .work = c};
    bool first = job.kind == JOB_HOLD || job.kind == JOB_RECOVER;

    work.deadline_ns = (first ? HOLD_MS : CALL_MS) * NS_PER_MS;
    c->job = job;
    c->busy = true;
    c->submitted_ns = now_ns(c);
    c->writing_ns = 0;
    atomic_store(&c->held.writing, false);
    int r =
        c->worker ? 0 : loop_worker_new(c->guard->opts.loop, "board", &c->worker, NULL);
    if (r == 0)
        r = loop_worker_submit(c->worker, &work);
    if (r == 0 && job.kind == JOB_HOLD && c->guard->opts.privileged)
        loop_timer_set(c->timer, now_ns(c) + LOOK_US * NS_PER_US, 0);
    if (r < 0) { /* no thread could be started */
        c->job.reply.result = ACTUATOR_UNKNOWN;
        (void)snprintf(c->job.reply.uuid, sizeof c->job.reply.uuid, "%s",
                       c->held.info->uuid);
        (void)snprintf(c->job.reply.text, sizeof c->job.reply.text, "%s: %s",
                       c->held.info->uuid, strerror(-r));
        c->no_thread = true;
        loop_timer_set(c->timer, now_ns(c), 0);
    }
}

static void do_waiting(struct charge *c, struct proto_request *set)
{
    struct job job = {.kind = set->type == PROTO_LIMIT ? JOB_LIMIT : JOB_CLOCKS,
                      .seq = set->seq,
                      .a = set->a,
                      .b = set->b};

    set->seq = 0;
    guard_submit(c, job);
}

static void do_hold(struct charge *c, enum job_kind kind, uint32_t *seq)
{
    struct job job = {.kind = kind, .client = c->session->client.pid, .seq = *seq};

    *seq = 0;
    c->next_hold_ns = now_ns(c) + ACTUATOR_HOLD_GAP_MS * NS_PER_MS;
    if (kind == JOB_HOLD)
        c->held.keep_original = c->hold_keep;
    guard_submit(c, job);
}

/* The next job of a held board: first its new holder, then its requests, then a check. */
static void step_held(struct charge *c)
{
    uint64_t now = now_ns(c);
    uint64_t wake_ns = c->next_look_ns;
    struct proto_request *set = c->adopt_seq ? NULL : next_set(c, now, &wake_ns);

    if (c->left && !c->adopt_seq && c->grace_ns < wake_ns)
        wake_ns = c->grace_ns;
    if (c->adopt_seq && c->next_hold_ns < wake_ns)
        wake_ns = c->next_hold_ns;
    if (c->adopt_seq && now >= c->next_hold_ns)
        do_hold(c, JOB_ADOPT, &c->adopt_seq);
    else if (set)
        do_waiting(c, set);
    else if (now >= c->next_look_ns)
        guard_submit(c, (struct job){.kind = JOB_LOOK});
    else
        loop_timer_set(c->timer, wake_ns, 0);
}

/* Starts the job that is due for this board, or sets the time of the next one. */
void guard_step(struct charge *c)
{
    uint64_t now = now_ns(c);

    if (c->busy || c->guard->moving.on)
        return;
    if (c->state == STATE_HELD && c->left && !c->adopt_seq && now >= c->grace_ns) {
        say_left(c, "no client has taken it over: restoring");
        guard_want_restore(c);
    }
    if (c->state == STATE_HOLDING) {
        if (now >= c->next_hold_ns)
            do_hold(c, JOB_HOLD, &c->hold_seq);
        else
            loop_timer_set(c->timer, c->next_hold_ns, 0);
    } else if (c->state == STATE_RESTORING) {
        if (now >= c->due_ns)
            guard_submit(c, (struct job){.kind = JOB_RESTORE});
        else
            loop_timer_set(c->timer, c->due_ns, 0);
    } else if (c->state == STATE_HELD) {
        step_held(c);
    }
}

/* A hold is in the worker: notifies its client when the driver takes time to write,
 * because a refusal is immediate.
 */
static void watch_hold(struct charge *c, uint64_t now)
{
    struct actuator_reply reply = {.result = ACTUATOR_DONE};

    if (!c->writing_ns && atomic_load(&c->held.writing))
        c->writing_ns = now;
    if (!c->writing_ns) {
        loop_timer_set(c->timer, now + LOOK_US * NS_PER_US, 0);
    } else if (now < c->writing_ns + GUARD_WRITING_MS * NS_PER_MS) {
        loop_timer_set(c->timer, c->writing_ns + GUARD_WRITING_MS * NS_PER_MS, 0);
    } else if (atomic_load(&c->held.writing)) {
        memcpy(reply.uuid, c->held.info->uuid, sizeof reply.uuid);
        guard_send(c->session, PROTO_WRITING, 0, &reply);
    }
}

static int on_timer(struct loop_timer *timer, uint64_t now, void *user)
{
    struct charge *c = user;

    (void)timer;
    if (c->no_thread) {
        c->no_thread = false;
        fold(c);
    } else if (c->busy && c->job.kind == JOB_HOLD && !c->hangs &&
               c->guard->opts.privileged) {
        watch_hold(c, now);
    } else {
        guard_step(c);
    }
    return 0;
}

/* ---- sessions ---- */

static void renew(struct guard_session *s)
{
    s->lease_ns = loop_now_ns(s->guard->opts.loop) + ACTUATOR_LEASE_MS * NS_PER_MS;
    s->prolonged = false;
    loop_timer_set(s->lease, s->lease_ns, 0);
}

static int on_lease_over(struct loop_timer *timer, uint64_t now, void *user)
{
    struct guard_session *s = user;
    struct guard *guard = s->guard;
    uint64_t more_ns = s->prolonged ? 0 : core_lease_more_ns(s->lease_ns, now);

    if (more_ns > 0) {
        s->prolonged = true;
        loop_timer_set(timer, now + more_ns, 0);
        return 0;
    }
    for (size_t i = 0; i < guard->n; i++) {
        struct charge *c = &guard->charge[i];
        if (c->session != s || c->state == STATE_RESTORING)
            continue;
        char text[256];
        (void)snprintf(text, sizeof text, "%s: process %d did not renew its lease",
                       c->held.info->uuid, s->client.pid);
        lines_say(&guard->lapses, text);
        c->lease_over = true;
        if (c->state == STATE_HELD) {
            guard_want_restore(c);
            guard_step(c);
        }
    }
    return 0;
}

int guard_session_new(struct guard *guard, const struct guard_client *client,
                      guard_send_fn send, void *user, struct guard_session **ret,
                      uw_error *err)
{
    size_t i = 0;

    while (i < SESSIONS_MAX && guard->session[i])
        i++;
    if (i == SESSIONS_MAX)
        return fail(err, -EMFILE, "%d clients are connected already", SESSIONS_MAX);
    struct guard_session *s = calloc(1, sizeof *s);
    if (!s)
        return fail(err, -ENOMEM, "out of memory");
    *s = (struct guard_session){
        .guard = guard, .client = *client, .send = send, .user = user};
    int r =
        loop_timer_new(guard->opts.loop, UINT64_MAX, 0, on_lease_over, s, &s->lease, err);
    if (r < 0) {
        free(s);
        return r;
    }
    renew(s);
    guard->session[i] = s;
    *ret = s;
    return 0;
}

/* The client that holds this board, or is about to hold it, has gone. */
static void leave_board(struct charge *c)
{
    uint64_t grace_ns = c->guard->opts.grace_ns;
    bool ending = c->release_seq || c->lease_over || c->state == STATE_RESTORING;

    c->session = NULL;
    for (size_t i = 0; i < N_SETS; i++)
        c->waiting[i].seq = 0;
    c->release_seq = 0;
    c->adopt_seq = 0;
    c->job.seq = 0;
    if (c->state == STATE_HOLDING && !c->busy) { /* its turn had not come */
        c->hold_seq = 0;
        c->state = STATE_FREE;
        guard_tell(c->guard);
    } else if (c->left) {
        guard_step(c); /* it had not taken over the board: the grace time continues */
    } else if (core_leave(grace_ns, ending) == CORE_LEFT_KEEP) {
        c->left = true;
        c->grace_ns = now_ns(c) + grace_ns;
        say_left(c, "its client has ended, the cap stays for the grace period");
        guard_step(c);
    } else if (c->state == STATE_HELD) {
        guard_want_restore(c);
        guard_step(c);
    }
}

void guard_session_free(struct guard_session *session)
{
    if (!session)
        return;
    struct guard *guard = session->guard;

    for (size_t i = 0; i < SESSIONS_MAX; i++)
        if (guard->session[i] == session)
            guard->session[i] = NULL;
    if (guard->moving.session == session)
        guard->moving.session = NULL;
    for (size_t i = 0; i < guard->n; i++) {
        struct charge *c = &guard->charge[i];
        if (c->session == session)
            leave_board(c);
    }
    loop_timer_free(session->lease);
    free(session);
}

struct charge *guard_find(struct guard *guard, const char *uuid)
{
    for (size_t i = 0; i < guard->n; i++)
        if (strcmp(guard->charge[i].held.info->uuid, uuid) == 0)
            return &guard->charge[i];
    return NULL;
}

static void ask_hold(struct guard_session *s, struct charge *c,
                     const struct proto_request *request)
{
    const struct core_board board = {
        .free = c->state == STATE_FREE,
        .restoring = c->state == STATE_RESTORING,
        .hangs = c->hangs,
        .left = c->left && !c->session,
        .left_uid = c->uid,
        .yielded_to = s->yielded[c - s->guard->charge] && request->a == PROTO_AGAIN_NO,
    };
    enum actuator_result result;
    enum core_hold what = core_hold(&board, s->client.uid);

    const char *refusal = core_hold_refusal(what, &result);
    if (refusal) {
        guard_refuse(s, request, result, refusal);
        return;
    }
    c->hold_keep = request->a == PROTO_AGAIN_KEEP && s->yielded[c - s->guard->charge];
    c->hold_until_ns = now_ns(c) + ACTUATOR_PASSING_MS * NS_PER_MS;
    s->yielded[c - s->guard->charge] = false;
    c->session = s;
    c->uid = s->client.uid;
    if (what == CORE_HOLD_ADOPT) {
        c->adopt_seq = request->seq;
    } else {
        c->state = STATE_HOLDING;
        c->hold_seq = request->seq;
        if (s->guard->away & guard_bit(c) && !s->guard->moving.on)
            guard_move(s->guard, c, s->guard->away & ~guard_bit(c), s, 0);
    }
    guard_step(c);
}

static void ask_release(struct charge *c, const struct proto_request *request)
{
    if (c->release_seq) {
        guard_refuse(c->session, request, ACTUATOR_BUSY, "is being released already");
        return;
    }
    c->release_seq = request->seq;
    if (c->hangs) {
        c->release_seq = 0;
        guard_refuse(c->session, request, ACTUATOR_UNKNOWN, "a call hangs in the driver");
    } else if (c->state == STATE_HELD) {
        guard_want_restore(c);
        guard_step(c);
    }
}

static void ask_board(struct guard_session *s, struct charge *c,
                      const struct proto_request *request)
{
    if (request->type == PROTO_HOLD) {
        ask_hold(s, c, request);
    } else if (request->type == PROTO_DETACH) {
        guard_ask_detach(s, c, request);
    } else if (c->session != s) {
        bool yielded = s->yielded[c - s->guard->charge];
        guard_refuse(
            s, request, yielded ? ACTUATOR_YIELDED : ACTUATOR_GONE,
            yielded ? "another program set the limit: this session does not change it"
                    : "not held");
    } else if (request->type == PROTO_RELEASE) {
        ask_release(c, request);
    } else if (c->state != STATE_HELD) {
        guard_refuse(s, request, ACTUATOR_GONE,
                     c->hangs ? "a call hangs in the driver" : "not held");
    } else {
        struct proto_request *set =
            &c->waiting[request->type == PROTO_LIMIT ? SET_LIMIT : SET_CLOCKS];
        if (set->seq)
            guard_refuse(s, set, ACTUATOR_BUSY,
                         "a newer request replaced this one before it was written");
        *set = *request;
        guard_step(c);
    }
}

/* ---- boards that another Underwatt holds ---- */

static void tell_board(struct guard_session *s, const struct charge *c,
                       const struct holder *holder)
{
    const struct guard_opts *o = &c->guard->opts;
    struct actuator_reply reply;

    if (!s)
        return;
    others_reply(o->journal, c->held.info->uuid, holder, &reply);
    core_tell_rules(o->rules, &reply);
    guard_send(s, PROTO_BOARD, 0, &reply);
}

static bool is_same(const struct holder *a, const struct holder *b)
{
    return a->locked == b->locked && a->pid == b->pid && a->client == b->client &&
           a->stopped == b->stopped;
}

/* Tells all clients if the holder has changed.  Returns whether it has. */
static bool tell_news(struct charge *c, struct holder_locks *locks, struct holder *ret)
{
    struct guard *guard = c->guard;

    *ret = (struct holder){.locked = false};
    if (c->state == STATE_FREE && !c->busy)
        others_look(guard->opts.journal, c->held.info->uuid, locks, ret);
    if (is_same(ret, &c->other))
        return false;
    c->other = *ret;
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        tell_board(guard->session[i], c, ret);
    return true;
}

static void look_for_others(struct guard *guard)
{
    struct holder_locks locks = {.read = false};
    struct holder holder;

    for (size_t i = 0; i < guard->n; i++)
        (void)tell_news(&guard->charge[i], &locks, &holder);
    holder_locks_fini(&locks);
}

/* Tells a new client about each board. */
static void tell_boards(struct guard_session *s)
{
    struct holder_locks locks = {.read = false};
    struct holder holder;

    for (size_t i = 0; i < s->guard->n; i++)
        if (!tell_news(&s->guard->charge[i], &locks, &holder))
            tell_board(s, &s->guard->charge[i], &holder);
    holder_locks_fini(&locks);
}

void guard_request(struct guard_session *session, const struct proto_request *request)
{
    struct guard *guard = session->guard;
    struct actuator_reply reply = {.result = ACTUATOR_DONE};

    renew(session);
    if (request->type == PROTO_HELLO || request->type == PROTO_RENEW) {
        if (request->type == PROTO_RENEW)
            look_for_others(guard);
        guard_send(session, (enum proto_type)request->type, request->seq, &reply);
        if (request->type == PROTO_HELLO)
            tell_boards(session);
        return;
    }
    struct charge *c = guard_find(guard, request->uuid);
    if (c)
        ask_board(session, c, request);
    else
        guard_refuse(session, request, ACTUATOR_GONE, "there is no such board");
}

/* ---- the guard itself ---- */

void guard_free(struct guard *guard)
{
    if (!guard)
        return;
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        guard_session_free(guard->session[i]);
    guard->closing = true;
    bool keep = guard->mover && loop_worker_hangs(guard->mover); /* it is still in use */
    loop_worker_free(guard->mover);
    for (size_t i = 0; i < guard->n; i++) {
        struct charge *c = &guard->charge[i];
        struct actuator_reply reply;
        keep = keep || c->hangs;
        loop_timer_free(c->timer);
        loop_worker_free(c->worker);
        if (loop_is_virtual(guard->opts.loop) && c->held.has_entry && !c->hangs)
            work_restore(&c->held, &reply); /* no other process will restore them */
        if (loop_is_virtual(guard->opts.loop) && !c->hangs)
            work_abandon(&c->held); /* a process that ends gives up its locks, too */
    }
    lines_fini(&guard->told);
    lines_fini(&guard->lapses);
    if (!keep)
        free(guard);
}

static int charge_init(struct guard *guard, size_t i, uw_error *err)
{
    const struct guard_opts *o = &guard->opts;
    struct charge *c = &guard->charge[i];

    c->guard = guard;
    c->held = (struct held){.backend = o->backend,
                            .lib = o->lib,
                            .dev = o->backend->at(o->lib, i),
                            .journal = o->journal,
                            .rules = o->rules,
                            .lock_fd = -1};
    c->held.info = o->backend->info(c->held.dev);
    return loop_timer_new(o->loop, loop_now_ns(o->loop), 0, on_timer, c, &c->timer, err);
}

static struct lines lines_of(const struct guard_opts *opts, const char *what,
                             unsigned max)
{
    return (struct lines){.loop = opts->loop,
                          .say = opts->say,
                          .user = opts->user,
                          .what = what,
                          .max = max};
}

int guard_new(const struct guard_opts *opts, struct guard **ret, uw_error *err)
{
    size_t n = opts->backend->count(opts->lib);

    if (n > GUARD_BOARDS_MAX)
        n = GUARD_BOARDS_MAX;
    auto_(guard_free) struct guard *guard = calloc(1, sizeof *guard);
    if (!guard)
        return fail(err, -ENOMEM, "out of memory");
    guard->opts = *opts;
    guard->told = lines_of(opts, "lines of boards", TOLD_MAX);
    guard->lapses = lines_of(opts, "leases that were not renewed", LAPSES_MAX);
    for (size_t i = 0; i < n; i++) {
        guard->n = i + 1;
        int r = charge_init(guard, i, err);
        if (r < 0)
            return r;
    }
    *ret = take(guard);
    return 0;
}
