/* Detaches boards, so that they can be reset, and attaches them again.  The driver
 * closes all boards at once (gpu.h: attach), so every job waits; caps stay in force.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuator/guard-inside.h"
#include "actuator/others.h"
#include "base/units.h"

static void answer_move(struct guard *guard, enum actuator_result result,
                        const char *text)
{
    struct moving *m = &guard->moving;
    struct actuator_reply reply = {.result = result};

    memcpy(reply.uuid, m->uuid, sizeof reply.uuid);
    (void)snprintf(reply.text, sizeof reply.text, "%s", text);
    if (m->seq)
        guard_send(m->session, PROTO_DETACH, m->seq, &reply);
    else if (result != ACTUATOR_DONE)
        guard_say(guard,
                  reply.text); /* the hold finds the board detached and reports that */
}

/* Lets the jobs continue. */
static void end_move(struct guard *guard, enum actuator_result result, const char *text)
{
    answer_move(guard, result, text);
    guard->moving = (struct moving){.on = false};
    for (size_t i = 0; i < guard->n; i++)
        guard_step(&guard->charge[i]);
    guard_tell(guard);
}

/* Runs in the worker.  A driver that was closed must be opened again, because caps may
 * be in force.
 */
static int run_move(struct loop *loop, void *work)
{
    struct guard *guard = work;
    const struct guard_opts *o = &guard->opts;
    struct moving *m = &guard->moving;
    (void)loop;

    int r = o->backend->attach ? o->backend->attach(o->lib, m->away, &m->err) : 0;
    if (r == 0 || r == -EBUSY || r == -ENOTSUP)
        return r;
    m->away = guard->away;
    return o->backend->attach(o->lib, m->away, NULL) == 0 ? -EAGAIN : -EIO;
}

static int on_moved(struct loop *loop, void *work, int r)
{
    struct guard *guard = work;
    char text[300];
    (void)loop;

    if (guard->closing || r == -ECANCELED)
        return 0;
    if (r == 0)
        guard->away = guard->moving.away;
    (void)snprintf(text, sizeof text, "%s: %s", guard->moving.uuid,
                   r == -ETIMEDOUT ? "the driver hangs" : guard->moving.err.text);
    if (r == -EIO || r == -ETIMEDOUT) { /* still attached: the driver was not called */
        answer_move(guard, ACTUATOR_UNKNOWN, text);
        if (guard->opts.on_broken)
            guard->opts.on_broken(text, guard->opts.user);
        return 0;
    }
    end_move(guard,
             r == 0          ? ACTUATOR_DONE
             : r == -ENOTSUP ? ACTUATOR_REFUSED
             : r == -EBUSY   ? ACTUATOR_BUSY
                             : ACTUATOR_UNKNOWN,
             r == 0 ? "" : text);
    return 0;
}

static void submit_move(struct guard *guard)
{
    struct loop_work work = {.fn = run_move,
                             .done = on_moved,
                             .work = guard,
                             .deadline_ns = HOLD_MS * NS_PER_MS * 2};
    int r = guard->mover
                ? 0
                : loop_worker_new(guard->opts.loop, "driver", &guard->mover, NULL);

    guard->moving.runs = true;
    if (r == 0)
        r = loop_worker_submit(guard->mover, &work);
    if (r < 0)
        end_move(guard, ACTUATOR_UNKNOWN, strerror(-r));
}

/* Whether another process holds the board's entry, or that cannot be told; text: why. */
static bool is_held(const struct guard *guard, const char *uuid, char *text, size_t size)
{
    const struct journal *journal = guard->opts.journal;
    struct holder holder;
    uw_error err = {""};

    int r = journal ? journal_look(journal, uuid, &holder, &err) : 0;
    if (r == JOURNAL_TAKEN)
        (void)others_text(journal, uuid, &holder, err.text, sizeof err.text);
    if (r != 0)
        (void)snprintf(text, size, "%s: %s%s", uuid, err.text,
                       r == JOURNAL_TAKEN && holder.client ? ": end that command first"
                                                           : "");
    return r != 0;
}

void guard_move_next(struct guard *guard, const struct charge *hung)
{
    char text[280];

    if (!guard->moving.on || guard->moving.runs)
        return;
    for (size_t i = 0; i < guard->n && !hung; i++)
        if (guard->charge[i].hangs)
            hung = &guard->charge[i];
    if (hung) {
        (void)snprintf(text, sizeof text, "%s: a call hangs in the driver",
                       hung->held.info->uuid);
        end_move(guard, ACTUATOR_BUSY, text);
        return;
    }
    for (size_t i = 0; i < guard->n; i++)
        if (guard->charge[i].busy)
            return;
    /* just before the driver closes: who takes a board has the driver open for it */
    if ((guard->moving.away & ~guard->away) &&
        is_held(guard, guard->moving.uuid, text, sizeof text)) {
        end_move(guard, ACTUATOR_BUSY, text);
        return;
    }
    submit_move(guard);
}

void guard_move(struct guard *guard, const struct charge *c, uint64_t away,
                struct guard_session *session, uint32_t seq)
{
    guard->moving =
        (struct moving){.on = true, .away = away, .session = session, .seq = seq};
    (void)snprintf(guard->moving.uuid, sizeof guard->moving.uuid, "%s",
                   c->held.info->uuid);
    guard_move_next(guard, NULL);
}

void guard_ask_detach(struct guard_session *s, struct charge *c,
                      const struct proto_request *request)
{
    struct guard *guard = s->guard;
    struct actuator_reply done = {.result = ACTUATOR_DONE};

    if (c->hangs)
        guard_refuse(s, request, ACTUATOR_BUSY, "a call hangs in the driver");
    else if (c->state != STATE_FREE || c->held.has_entry)
        guard_refuse(s, request, ACTUATOR_BUSY,
                     "the board is held, or its original limit is being restored");
    else if (c->given_up)
        guard_refuse(s, request, ACTUATOR_BUSY,
                     "the original limit could not be restored");
    else if (guard->moving.on)
        guard_refuse(s, request, ACTUATOR_BUSY, "another board is being detached");
    else if (!(guard->away & guard_bit(c))) {
        guard_move(guard, c, guard->away | guard_bit(c), s, request->seq);
    } else {
        memcpy(done.uuid, request->uuid, sizeof done.uuid);
        guard_send(s, PROTO_DETACH, request->seq, &done);
    }
}
