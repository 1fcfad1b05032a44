#include "actuator/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/units.h"

static void answer(const struct held *h, struct actuator_reply *reply,
                   enum actuator_result result, const uw_error *err)
{
    reply->result = result;
    (void)snprintf(reply->uuid, sizeof reply->uuid, "%s", h->info->uuid);
    reply->original_mw = h->has_entry ? h->entry.original_mw : 0;
    reply->limits = h->limits;
    reply->range = core_range(h->rules, &h->limits, reply->original_mw);
    reply->locked_mhz = h->locked_mhz;
    bool plain = result == ACTUATOR_DONE || !err;
    (void)snprintf(reply->text, sizeof reply->text, "%s", plain ? "" : err->text);
}

static void tell(struct actuator_reply *reply, const struct cap_seen *seen)
{
    reply->enforced_mw = seen->enforced_mw;
    reply->set_mw = seen->set_mw;
}

/* Maps the driver's error to a result for the client. */
static enum actuator_result result_of(int r)
{
    switch (r) {
    case -EPERM:
        return ACTUATOR_DENIED;
    case -ENOTSUP:
    case -ERANGE:
        return ACTUATOR_REFUSED;
    case -ENODEV:
        return ACTUATOR_GONE;
    default:
        return ACTUATOR_UNKNOWN;
    }
}

/* Adds the board to a backend's error, which names none.  Returns r. */
static int of_board(const struct held *h, int r, uw_error *err)
{
    return r < 0 ? fail_in(err, r, "%s", h->info->uuid) : r;
}

static int look(const struct held *h, struct cap_seen *ret, uw_error *err)
{
    struct gpu_sample sample = {0};

    int r =
        h->backend->sample(h->dev, GPU_HAS_ENFORCED | GPU_HAS_REQUESTED, &sample, err);
    *ret = (struct cap_seen){0};
    if (r < 0)
        return of_board(h, r, err);
    *ret = core_seen(&sample);
    if (!ret->readable)
        return fail(err, -EIO, "%s: the power limit cannot be read", h->info->uuid);
    return 0;
}

static void driver_mark(const struct held *h, char *ret, size_t size)
{
    ret[0] = '\0';
    if (h->backend->driver_mark &&
        h->backend->driver_mark(h->lib, h->dev, ret, size, NULL) != 0)
        ret[0] = '\0';
    journal_clean_mark(ret);
}

void work_abandon(struct held *h)
{
    h->has_entry = false;
    h->locked_mhz = 0;
    if (h->lock_fd >= 0)
        journal_unlock(h->lock_fd);
    h->lock_fd = -1;
}

/* Removes the entry: nothing is left to undo. */
static void drop(struct held *h)
{
    if (h->has_entry && h->journal)
        (void)journal_remove(h->journal, h->info->uuid, NULL);
    work_abandon(h);
}

static int note(const struct held *h, uw_error *err)
{
    return h->journal ? journal_note(h->journal, &h->entry, err) : 0;
}

/* Stores the loaded driver in the entry.  A driver that was loaded again with the same
 * limit that was found at first looks unchanged: at the end, an entry of the driver
 * before would be dropped with Underwatt's limit in force.
 */
static void renew_mark(struct held *h)
{
    char mark[sizeof h->entry.driver];

    driver_mark(h, mark, sizeof mark);
    if (!mark[0] || strcmp(mark, h->entry.driver) == 0)
        return;
    if (h->entry.driver[0]) { /* the driver has lost the lock */
        h->entry.clocks = false;
        h->locked_mhz = 0;
    }
    memcpy(h->entry.driver, mark, sizeof mark);
}

/* Another program has set the limit: gives up this hold and leaves that limit. */
static void yield_to(struct held *h, const struct cap_seen *seen,
                     struct actuator_reply *reply)
{
    char mark[sizeof h->entry.driver];
    uw_error err;

    driver_mark(h, mark, sizeof mark);
    bool reloaded = mark[0] && h->entry.driver[0] && strcmp(mark, h->entry.driver) != 0;
    (void)fail(&err, 0,
               "%s: %s, %" PRIu32 " mW; Underwatt had set %" PRIu32 " mW; not changed",
               h->info->uuid,
               reloaded ? "the driver was reloaded and enforces another limit"
                        : "another program has set the limit",
               seen->set_mw, h->entry.readback_mw);
    int r = 0;
    if (h->entry.clocks && !reloaded && h->backend->reset_clocks)
        r = h->backend->reset_clocks(h->dev, NULL);
    if (r == 0)
        h->locked_mhz = 0;
    /* Underwatt's lock must not stay behind: the restore tries again. */
    answer(h, reply, r == 0 ? ACTUATOR_YIELDED : ACTUATOR_GONE, &err);
    h->yielded = true;
    reply->why = reloaded ? ACTUATOR_WHY_RELOADED : ACTUATOR_WHY_OTHER;
    tell(reply, seen);
    if (r == 0)
        drop(h);
}

/* Restores the limit. */
static int restore_limit(struct held *h, const struct recovery *todo,
                         struct cap_seen *after, uw_error *err)
{
    if (!todo->set_original)
        return 0;
    int r = of_board(h, h->backend->set_limit(h->dev, h->entry.original_mw, err), err);
    if (r == 0)
        r = look(h, after, err);
    if (r == 0 && after->set_mw != h->entry.original_mw)
        r = fail(err, -EIO, "%s: set back to %" PRIu32 " mW, but %" PRIu32 " mW is set",
                 h->info->uuid, h->entry.original_mw, after->set_mw);
    return r;
}

/* Restores the clocks, and removes them from the entry once done: otherwise the next
 * attempt for the limit would reset another program's lock.
 */
static int restore_clocks(struct held *h, const struct recovery *todo, uw_error *err)
{
    if (!todo->reset_clocks || !h->backend->reset_clocks)
        return 0;
    int r = of_board(h, h->backend->reset_clocks(h->dev, err), err);
    if (r < 0)
        return r;
    h->entry.clocks = false;
    h->locked_mhz = 0;
    return 0;
}

void work_restore(struct held *h, struct actuator_reply *reply)
{
    char mark[sizeof h->entry.driver];
    struct cap_seen seen, after;
    uw_error err = {""}, clock_err = {""};

    if (!h->has_entry) {
        drop(h);
        answer(h, reply, ACTUATOR_DONE, NULL);
        return;
    }
    int r = look(h, &seen, &err);
    driver_mark(h, mark, sizeof mark);
    struct recovery todo = core_recover(
        &h->entry, h->journal ? h->journal->boot : h->entry.boot, mark, &seen);

    after = seen;
    if (todo.why == RECOVERY_UNREADABLE)
        r = r < 0 ? r : -EIO;
    else
        r = 0;
    if (r == 0)
        r = restore_limit(h, &todo, &after, &err);
    int clock_r = restore_clocks(h, &todo, &clock_err);
    if (r < 0 || clock_r < 0) {
        if (todo.reset_clocks && clock_r == 0)
            (void)note(h, NULL); /* as in unlock() */
        answer(h, reply, result_of(r < 0 ? r : clock_r), r < 0 ? &err : &clock_err);
        tell(reply, &after);
        return;
    }
    h->locked_mhz = 0;
    (void)fail(&err, 0, "%s: %s%s", h->info->uuid, core_recovery_text(todo.why),
               todo.reset_clocks ? "; the clock lock is reset" : "");
    answer(h, reply,
           todo.why == RECOVERY_RESTORE || todo.why == RECOVERY_AT_ORIGINAL
               ? ACTUATOR_DONE
               : ACTUATOR_YIELDED,
           &err);
    if (todo.why == RECOVERY_OTHER_DRIVER)
        reply->why = ACTUATOR_WHY_RELOADED;
    tell(reply, &after);
    drop(h);
}

/* Locks the board and adopts its entry, if there is one. */
static int adopt(struct held *h, pid_t client, struct actuator_reply *reply,
                 uw_error *err)
{
    struct holder holder = {.pid = 0};

    h->damaged = false;
    if (!h->journal)
        return 0;
    int r = journal_lock(h->journal, h->info->uuid, client, &h->lock_fd, &holder, err);
    reply->pid = holder_pid(&holder);
    h->holder_stopped = holder.stopped;
    h->holder_passes = holder_passes(&holder);
    if (r != 0)
        return r;
    r = journal_take(h->journal, h->info->uuid, &h->entry, err);
    h->has_entry = r == 0;
    h->damaged = r == -EBADMSG;
    return r < 0 ? r : 0;
}

/* left_mw: the limit found in force. */
static void say_recovered(const struct held *h, uint32_t left_mw, const char *clocks,
                          struct actuator_reply *reply)
{
    if (left_mw == reply->original_mw)
        (void)snprintf(reply->text, sizeof reply->text,
                       "%s: %g W was in force%s, a killed actuator had left its entry",
                       h->info->uuid, w_of_mw(left_mw), clocks);
    else
        (void)snprintf(reply->text, sizeof reply->text,
                       "%s: %g W put back%s, a killed actuator had left %g W",
                       h->info->uuid, w_of_mw(reply->original_mw), clocks,
                       w_of_mw(left_mw));
}

void work_recover(struct held *h, struct actuator_reply *reply)
{
    uw_error err = {""};
    struct cap_seen seen;

    int r = adopt(h, getpid(), reply, &err);
    if (r == 0 && h->has_entry) {
        const char *clocks = h->entry.clocks ? " and the clock lock reset" : "";
        uint32_t left_mw = look(h, &seen, NULL) == 0 ? seen.set_mw : 0;
        work_restore(h, reply);
        if (reply->result == ACTUATOR_DONE)
            say_recovered(h, left_mw, clocks, reply);
        return;
    }
    answer(h, reply,
           r == JOURNAL_TAKEN ? ACTUATOR_TAKEN
           : r < 0            ? ACTUATOR_REFUSED
                              : ACTUATOR_DONE,
           &err);
    if (h->damaged && look(h, &seen, NULL) == 0) /* for root, who has to decide */
        tell(reply, &seen);
    work_abandon(h);
}

/* The board is locked and has no holder: reads it, writes its entry, checks the right. */
static int begin(struct held *h, uw_error *err)
{
    struct cap_seen seen = {0};

    if (!h->backend->set_limit || !h->backend->limits)
        return fail(err, -ENOTSUP, "%s: this board takes no power limit", h->info->uuid);
    int r = of_board(h, h->backend->limits(h->dev, &h->limits, err), err);
    if (r == 0)
        r = look(h, &seen, err);
    if (r < 0)
        return r;
    if (!(h->info->abilities & GPU_CAN_SET_LIMIT))
        return fail(err, -ENOTSUP, "%s: this board takes no power limit", h->info->uuid);

    const struct cap_entry was = h->entry;
    h->entry = (struct cap_entry){.original_mw = seen.set_mw,
                                  .intended_mw = seen.set_mw,
                                  .readback_mw = seen.set_mw};
    (void)snprintf(h->entry.uuid, sizeof h->entry.uuid, "%s", h->info->uuid);
    (void)snprintf(h->entry.boot, sizeof h->entry.boot, "%s",
                   h->journal ? h->journal->boot : "virtual");
    driver_mark(h, h->entry.driver, sizeof h->entry.driver);
    if (h->keep_original && was.original_mw && strcmp(was.driver, h->entry.driver) == 0 &&
        strcmp(was.boot, h->entry.boot) == 0)
        h->entry.original_mw = was.original_mw;
    if (h->journal)
        r = journal_write(h->journal, &h->entry, err);
    if (r < 0)
        return r;
    h->has_entry = true;
    atomic_store(&h->writing, true);
    r = of_board(h, h->backend->set_limit(h->dev, seen.set_mw, err), err);
    atomic_store(&h->writing, r == 0);
    return r;
}

void work_hold(struct held *h, pid_t client, struct actuator_reply *reply)
{
    uw_error err = {""};

    if (core_check_board(h->rules, h->info->uuid, &err) != ACTUATOR_DONE) {
        answer(h, reply, ACTUATOR_REFUSED, &err);
        return;
    }
    int r = adopt(h, client, reply, &err);
    if (r == 0 && h->has_entry) {
        work_restore(h, reply);
        if (h->has_entry || (h->journal && h->lock_fd >= 0))
            r = fail(&err, -EIO, "%s: an earlier cap cannot be undone: %s", h->info->uuid,
                     reply->text);
        else
            r = adopt(h, client, reply, &err);
    }
    if (r != 0) {
        answer(h, reply, r == JOURNAL_TAKEN ? ACTUATOR_TAKEN : ACTUATOR_REFUSED, &err);
        work_abandon(h);
        return;
    }

    struct cap_seen seen;
    r = begin(h, &err);
    if (r == 0)
        r = look(h, &seen, &err);
    if (r == -EPERM)
        (void)fail(&err, r,
                   "%s: no permission to set its power limit: this needs root (sudo "
                   "underwatt …), "
                   "and CAP_SYS_ADMIN where root is in a container",
                   h->info->uuid);
    answer(h, reply, r == 0 ? ACTUATOR_DONE : result_of(r), &err);
    if (r == 0)
        tell(reply, &seen);
    else
        drop(h);
}

void work_adopt(struct held *h, pid_t client, struct actuator_reply *reply)
{
    work_look(h, reply);
    if (reply->result == ACTUATOR_DONE && h->lock_fd >= 0)
        journal_lock_name(h->lock_fd, client);
}

/* Before a write: stores the checks' result, then reads the state in force into *seen.
 * False: nothing may be written, and the reply gives the reason.
 */
static bool may_write(struct held *h, enum actuator_result checked, struct cap_seen *seen,
                      struct actuator_reply *reply, uw_error *err)
{
    if (checked != ACTUATOR_DONE) {
        answer(h, reply, checked, err);
        reply->enforced_mw = reply->set_mw = h->entry.readback_mw;
        return false;
    }
    int r = look(h, seen, err);
    if (r < 0) {
        answer(h, reply, r == -ENODEV ? ACTUATOR_GONE : ACTUATOR_UNKNOWN, err);
        return false;
    }
    if (core_is_foreign(&h->entry, seen)) {
        yield_to(h, seen, reply);
        return false;
    }
    renew_mark(h);
    return true;
}

void work_limit(struct held *h, uint32_t mw, struct actuator_reply *reply)
{
    struct cap_seen before, after = {0};
    uw_error err = {""};

    enum actuator_result result = core_check_limit(h->info, &h->limits, mw, &err);
    if (result == ACTUATOR_DONE)
        result = core_check_rules(h->rules, h->info->uuid, &h->limits,
                                  h->entry.original_mw, mw, &err);
    if (!may_write(h, result, &before, reply, &err))
        return;
    uint32_t was_mw = h->entry.intended_mw;
    h->entry.intended_mw = mw;
    h->entry.readback_mw = before.set_mw;
    int r = note(h, &err);
    if (r < 0) {
        h->entry.intended_mw = was_mw;
        answer(h, reply, ACTUATOR_REFUSED, &err);
        tell(reply, &before);
        return;
    }
    r = of_board(h, h->backend->set_limit(h->dev, mw, &err), &err);
    (void)look(h, &after, r < 0 ? NULL : &err);
    result = core_judge(mw, r, &before, &after);
    if (result == ACTUATOR_YIELDED) {
        h->entry.readback_mw = mw;
        yield_to(h, &after, reply);
        return;
    }
    if (after.readable)
        h->entry.readback_mw = after.set_mw;
    renew_mark(h);
    if (result == ACTUATOR_REFUSED || result == ACTUATOR_DENIED)
        h->entry.intended_mw = h->entry.readback_mw;
    (void)note(h, NULL); /* the entry written before is valid as well */
    if (result == ACTUATOR_CLAMPED)
        (void)fail(&err, 0, "%s: asked for %" PRIu32 " mW, %" PRIu32 " mW is in force",
                   h->info->uuid, mw, after.enforced_mw);
    answer(h, reply, result, &err);
    tell(reply, &after);
}

/* The lock is in the journal before it is set: recovery resets it. */
static int lock(struct held *h, uint32_t min_mhz, uint32_t max_mhz,
                enum actuator_result *ret, uw_error *err)
{
    bool was = h->entry.clocks, locked = was;
    uint32_t was_mhz = h->locked_mhz;

    h->entry.clocks = true;
    int r = note(h, err);
    if (r < 0) {
        h->entry.clocks = was;
        *ret = ACTUATOR_REFUSED;
        return r;
    }
    r = of_board(h, h->backend->lock_clocks(h->dev, min_mhz, max_mhz, err), err);
    *ret = core_judge_clocks(r, &locked);
    renew_mark(h); /* a driver that was loaded again may have removed it */
    h->entry.clocks = was || locked;
    h->locked_mhz = locked ? max_mhz : was_mhz;
    (void)note(h, NULL); /* the entry written before is valid as well */
    return r;
}

static int unlock(struct held *h, enum actuator_result *ret, uw_error *err)
{
    int r = h->entry.clocks ? of_board(h, h->backend->reset_clocks(h->dev, err), err) : 0;

    *ret = r == 0 ? ACTUATOR_DONE : result_of(r);
    if (r < 0)
        return r;
    h->entry.clocks = false;
    h->locked_mhz = 0;
    (void)note(h, NULL); /* a stale entry costs one reset */
    return 0;
}

void work_clocks(struct held *h, uint32_t min_mhz, uint32_t max_mhz,
                 struct actuator_reply *reply)
{
    struct cap_seen seen;
    uw_error err = {""};

    enum actuator_result result =
        core_check_clocks(h->rules, h->info, min_mhz, max_mhz, &err);
    if (result == ACTUATOR_DONE &&
        (!h->backend->lock_clocks || !h->backend->reset_clocks)) {
        (void)fail(&err, 0, "%s: this board's clocks cannot be locked", h->info->uuid);
        result = ACTUATOR_REFUSED;
    }
    if (!may_write(h, result, &seen, reply, &err))
        return;
    if (max_mhz)
        (void)lock(h, min_mhz, max_mhz, &result, &err);
    else
        (void)unlock(h, &result, &err);
    answer(h, reply, result, &err);
    tell(reply, &seen);
}

void work_look(struct held *h, struct actuator_reply *reply)
{
    struct cap_seen seen;
    uw_error err = {""};

    int r = look(h, &seen, &err);
    if (r == 0 && core_is_foreign(&h->entry, &seen)) {
        yield_to(h, &seen, reply);
        return;
    }
    answer(h, reply,
           r == 0         ? ACTUATOR_DONE
           : r == -ENODEV ? ACTUATOR_GONE
                          : ACTUATOR_UNKNOWN,
           &err);
    tell(reply, &seen);
}
