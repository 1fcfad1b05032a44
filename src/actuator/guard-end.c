/* Recovery after holders that died, the end of the program, and the report of boards
 * that are not restored.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "actuator/core.h"
#include "actuator/guard-inside.h"
#include "base/error.h"
#include "base/units.h"

enum { ENTRIES_MAX = 1024 }; /* of the journal */

/* ---- messages ---- */

void guard_say_kept(struct charge *c)
{
    const struct guard_opts *o = &c->guard->opts;
    struct core_kept kept = {.uuid = c->held.info->uuid,
                             .in_force_mw = c->seen_mw,
                             .hangs = c->hangs,
                             .hangs_ns = loop_now_ns(o->loop) - c->submitted_ns,
                             .why = c->why[0] ? c->why : "a call is under way"};
    struct cap_entry entry;
    char text[512];

    if (o->journal && journal_read(o->journal, kept.uuid, &entry, NULL) == 0) {
        kept.original_mw = entry.original_mw;
        kept.entry = true;
        if (!kept.in_force_mw)
            kept.in_force_mw = entry.readback_mw;
    }
    core_kept_text(&kept, text, sizeof text);
    guard_say(c->guard, text);
}

/* Reports a damaged entry, for root. */
static void say_damaged(struct charge *c, const struct actuator_reply *reply)
{
    char in_force[40] = "an unknown limit", text[300];

    if (reply->enforced_mw)
        (void)snprintf(in_force, sizeof in_force, "%g W", w_of_mw(reply->enforced_mw));
    (void)snprintf(text, sizeof text,
                   "%s: not restored: %s is in force, the original is not known: root "
                   "has to set the right limit and remove the damaged entry",
                   reply->uuid, in_force);
    guard_say(c->guard, text);
}

void guard_say_refused(struct charge *c, const struct actuator_reply *reply)
{
    char text[200];

    if (reply->result == ACTUATOR_TAKEN && !c->held.holder_stopped)
        return; /* its holder is alive */
    c->unrestored = true;
    guard_say(c->guard, reply->text);
    if (c->held.damaged) {
        say_damaged(c, reply);
    } else if (reply->result == ACTUATOR_TAKEN) {
        (void)snprintf(text, sizeof text,
                       "%s: not restored: continue or kill that process", reply->uuid);
        guard_say(c->guard, text);
    }
}

/* ---- recovery ---- */

/* An entry whose board is absent: only its boot can be checked. */
static void recover_absent(struct guard *guard, const char *uuid)
{
    const struct journal *journal = guard->opts.journal;
    struct holder holder;
    struct cap_entry entry;
    uw_error err = {""};
    auto_(fd_close) int lock_fd = -1;
    char text[300];

    int r = journal_lock(journal, uuid, getpid(), &lock_fd, &holder, &err);
    if (r == 0)
        r = journal_take(journal, uuid, &entry, &err);
    if (r == JOURNAL_NONE || (r == JOURNAL_TAKEN && !holder.stopped))
        return;
    if (r != 0) {
        guard->n_absent++;
        guard_say(guard, err.text);
        return;
    }
    struct cap_seen nothing = {0};
    struct recovery todo = core_recover(&entry, journal->boot, "", &nothing);
    if (todo.drop) {
        (void)journal_remove(journal, uuid, NULL);
        guard->n_restored++;
    } else {
        guard->n_absent++;
    }
    (void)snprintf(text, sizeof text, "%s: not on this node now: %s", uuid,
                   core_recovery_text(todo.why));
    guard_say(guard, text);
}

int guard_recover(struct guard *guard, uw_error *err)
{
    size_t n = 0;
    auto_(mem_free) char(*uuids)[96] = calloc(ENTRIES_MAX, sizeof *uuids);

    if (!uuids)
        return fail(err, -ENOMEM, "out of memory");
    int r = journal_list(guard->opts.journal, uuids, ENTRIES_MAX, &n, err);
    for (size_t i = 0; r == 0 && i < n; i++) {
        struct charge *c = guard_find(guard, uuids[i]);
        if (!c) {
            recover_absent(guard, uuids[i]);
        } else if (c->state == STATE_FREE) {
            c->state = STATE_RECOVERING;
            guard_submit(c, (struct job){.kind = JOB_RECOVER});
        }
    }
    return r;
}

bool guard_is_recovering(const struct guard *guard)
{
    for (size_t i = 0; i < guard->n; i++)
        if (guard->charge[i].state == STATE_RECOVERING && !guard->charge[i].hangs)
            return true;
    return false;
}

/* ---- the end ---- */

/* Recovers a board again: root, or the holder that was stopped, may have changed it
 * since.
 */
static void look_again(struct charge *c)
{
    const struct guard *guard = c->guard;

    if (c->busy || guard->moving.on || guard->away & guard_bit(c))
        return;
    c->unrestored = false;
    c->state = STATE_RECOVERING;
    guard_submit(c, (struct job){.kind = JOB_RECOVER});
}

void guard_end(struct guard *guard)
{
    lines_fini(&guard->told); /* reported at the end, also if it was reported before */
    guard->opts.grace_ns = 0;
    guard->opts.keep_trying = false;
    guard->n_restored = 0;
    for (size_t i = 0; i < guard->n; i++) {
        struct charge *c = &guard->charge[i];
        bool left = c->left;
        c->left = false; /* a hold that is still in the worker is undone after it */
        c->attempts = 0;
        c->due_ns = loop_now_ns(guard->opts.loop);
        if (left && c->state == STATE_HELD)
            guard_want_restore(c);
        if (c->unrestored && c->state == STATE_FREE)
            look_again(c);
        guard_step(c);
    }
}

void guard_give_up(struct guard *guard)
{
    lines_fini(&guard->told); /* one line for each board */
    for (size_t i = 0; i < guard->n; i++) {
        struct charge *c = &guard->charge[i];
        if (c->state == STATE_FREE && !c->hangs)
            continue;
        c->given_up = true;
        guard_say_kept(c);
    }
}

/* ---- reports ---- */

bool guard_is_idle(const struct guard *guard)
{
    for (size_t i = 0; i < guard->n; i++)
        if (guard->charge[i].state != STATE_FREE && !guard->charge[i].hangs)
            return false;
    return true;
}

bool guard_is_busy(const struct guard *guard)
{
    bool busy = guard->moving.runs;

    for (size_t i = 0; i < guard->n; i++)
        busy = busy || guard->charge[i].busy || guard->charge[i].hangs;
    return busy;
}

unsigned guard_hanging(const struct guard *guard)
{
    unsigned n = guard->mover && loop_worker_hangs(guard->mover);

    for (size_t i = 0; i < guard->n; i++)
        n += guard->charge[i].hangs;
    return n;
}

unsigned guard_unrestored(const struct guard *guard)
{
    unsigned n = guard->n_absent;

    for (size_t i = 0; i < guard->n; i++) {
        const struct charge *c = &guard->charge[i];
        n += c->hangs || c->given_up || c->unrestored;
    }
    return n;
}

enum core_status guard_status(const struct guard *guard)
{
    return core_status(guard->n_restored, guard_unrestored(guard));
}
