/* The sweep's requests to the actuator: right to cap, hold, limits, release. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "sweep/sweeper-inside.h"

static size_t board_of(const struct sweeper *s, const char *uuid)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(sweeper_uuid(s, i), uuid) == 0)
            return i;
    return s->n;
}

/* Ends the sweep with a failure, before or after CMD has run. */
static int cannot(struct sweeper *s, const char *text)
{
    if (!s->stop)
        (void)fail(&s->result.error, 0, "%s", text);
    enum sweeper_end end = s->started ? SWEEPER_FAILED : SWEEPER_BEFORE;
    return s->asking > 0 ? sweeper_stop(s, end) : sweeper_end_with(s, end);
}

/* ---- the right ---- */

static int probe_next(struct sweeper *s);

static int on_probe_released(struct actuator *act, const struct actuator_reply *reply,
                             void *user)
{
    struct sweeper *s = user;
    (void)act;
    (void)reply;

    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    s->asking--;
    s->held[s->probe] = false;
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    return sweeper_start_sampling(s);
}

static int on_probe(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct sweeper *s = user;

    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    s->asking--;
    if (reply->result == ACTUATOR_TAKEN && !s->stop) {
        s->probe++;
        return probe_next(s);
    }
    if (reply->result != ACTUATOR_DONE)
        return cannot(s, reply->text);
    s->held[s->probe] = true;
    s->asking++;
    return actuator_release(act, reply->uuid, on_probe_released, s);
}

/* No board is named: proves the right on the first board that no other client holds. */
static int probe_next(struct sweeper *s)
{
    for (; s->probe < s->n; s->probe++) {
        struct board_view *v = board_view(s->all[s->probe]);
        if (!v->has_limits || v->error.text[0])
            continue;
        s->asking++;
        return actuator_hold(s->act, sweeper_uuid(s, s->probe), on_probe, s);
    }
    return cannot(s, "no board here can be capped, or all are held by others");
}

static int on_ready(struct actuator *act, int r, const char *text, void *user)
{
    struct sweeper *s = user;
    (void)act;

    s->right_known = true;
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    if (r < 0)
        return cannot(s, text);
    return s->named ? sweeper_hold_used(s) : probe_next(s);
}

/* ---- events of held boards ---- */

static int on_event(struct actuator *act, enum actuator_event event,
                    const struct actuator_reply *what, void *user)
{
    struct sweeper *s = user;
    size_t i = board_of(s, what->uuid);
    (void)act;

    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    if (event == ACTUATOR_EVENT_LEASE && i < s->n) {
        s->held[i] = false;
        s->spoilt = true;
        sweeper_note(
            s, "underwatt was stopped for a while and the original limits were restored: "
               "the run under way does not count");
        return 0;
    }
    if (event == ACTUATOR_EVENT_ENDED) {
        memset(s->held, 0, sizeof s->held);
        s->result.restored = false;
        (void)snprintf(s->result.restore, sizeof s->result.restore,
                       "the actuator is gone");
    }
    if (event == ACTUATOR_EVENT_LOST) {
        s->result.restored = false;
        (void)snprintf(s->result.restore, sizeof s->result.restore,
                       "%.150s; its limit is restored when it answers",
                       what->text[0] ? what->text : what->uuid);
    }
    if (i < s->n)
        s->held[i] = false;
    if (!s->stop)
        (void)fail(&s->result.error, 0, "%s",
                   what->text[0] ? what->text : "the actuator ended");
    return sweeper_stop(s, s->started ? SWEEPER_FAILED : SWEEPER_BEFORE);
}

int sweeper_start_right(struct sweeper *s)
{
    struct actuator_opts opts = {
        .on_ready = on_ready,
        .on_event = on_event,
        .user = s,
        .library = s->o.actuator_library,
        .program = s->o.actuator_program,
        .simulated = board_view(s->all[0])->info->simulated,
        .rules = s->o.rules,
    };
    int r;

    s->stage = SWEEPER_S_RIGHT;
    if (loop_is_virtual(s->o.loop))
        r = actuator_start_virtual(s->o.loop, s->o.backend, boards_lib(s->boards), &opts,
                                   &s->act, &s->result.error);
    else
        r = actuator_start_local(s->o.loop, &opts, &s->act, &s->result.error);
    return r < 0 ? sweeper_end_with(s, SWEEPER_BEFORE) : 0;
}

/* ---- holding ---- */

static void narrow(struct sweeper *s, const struct actuator_range *range)
{
    struct actuator_range *all = &s->allowed;

    if (!range->max_mw)
        return;
    all->min_mw = range->min_mw > all->min_mw ? range->min_mw : all->min_mw;
    if (!all->max_mw || range->max_mw < all->max_mw)
        all->max_mw = range->max_mw;
}

static int on_hold(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct sweeper *s = user;
    size_t i = board_of(s, reply->uuid);
    (void)act;

    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    s->asking--;
    if (reply->result == ACTUATOR_DONE && i < s->n) {
        s->held[i] = true;
        s->original_mw[i] = reply->original_mw;
        narrow(s, &reply->range);
    } else {
        int r = cannot(s, reply->text);
        if (r < 0)
            return r;
    }
    if (s->asking > 0 || s->stage >= SWEEPER_S_RELEASE)
        return 0;
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    int r = sweeper_fit_plan(s, &s->result.error);
    if (r == -ENOMEM || (r < 0 && s->started && !s->found_run))
        return sweeper_end_with(s, s->started ? SWEEPER_FAILED : SWEEPER_BEFORE);
    if (r < 0)
        return sweeper_end_with(s, SWEEPER_USAGE);
    return s->sampler ? sweeper_after_hold(s) : sweeper_start_sampling(s);
}

int sweeper_hold_used(struct sweeper *s)
{
    if (s->sampler)
        s->stage = SWEEPER_S_HOLD;
    s->spoilt = false;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->use[i] || s->held[i])
            continue;
        int r = actuator_hold(s->act, sweeper_uuid(s, i), on_hold, s);
        if (r < 0)
            return cannot(s, "the actuator accepts no more requests");
        s->asking++;
    }
    return 0;
}

/* ---- setting ---- */

static int on_set(struct actuator *act, const struct actuator_reply *reply, void *user)
{
    struct sweeper *s = user;
    size_t i = board_of(s, reply->uuid);
    char text[sizeof reply->text + 64];
    (void)act;

    if (s->stage >= SWEEPER_S_RELEASE)
        return 0;
    s->asking--;
    bool lease_over = reply->result == ACTUATOR_GONE && i < s->n && !s->held[i];
    if (reply->result != ACTUATOR_DONE && !lease_over && !s->stop) {
        if (reply->result == ACTUATOR_CLAMPED)
            (void)snprintf(text, sizeof text, "%s: the driver enforces %g W, not %g W",
                           reply->uuid, w_of_mw(reply->enforced_mw),
                           w_of_mw(sweeper_cap(s)));
        else
            (void)snprintf(text, sizeof text, "%s", reply->text);
        int r = cannot(s, text);
        if (r < 0)
            return r;
    }
    if (s->asking > 0 || s->stage >= SWEEPER_S_RELEASE)
        return 0;
    if (s->stop)
        return sweeper_end_with(s, s->result.end);
    return s->spoilt ? sweeper_next_run(s) : sweeper_settle(s);
}

int sweeper_set_caps(struct sweeper *s, uint32_t mw)
{
    s->stage = SWEEPER_S_CAP;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->use[i])
            continue;
        int r = actuator_set_limit(s->act, sweeper_uuid(s, i), mw, on_set, s);
        if (r < 0)
            return cannot(s, "the actuator accepts no more requests");
        s->asking++;
    }
    return 0;
}

/* ---- release ---- */

static int on_release(struct actuator *act, const struct actuator_reply *reply,
                      void *user)
{
    struct sweeper *s = user;
    (void)act;

    s->asking--;
    if (reply->result != ACTUATOR_DONE && s->result.restored) {
        s->result.restored = false;
        (void)snprintf(s->result.restore, sizeof s->result.restore, "%s", reply->text);
    }
    return sweeper_released(s);
}

void sweeper_release(struct sweeper *s)
{
    s->asking = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (!s->held[i])
            continue;
        s->held[i] = false;
        if (actuator_release(s->act, sweeper_uuid(s, i), on_release, s) < 0) {
            s->result.restored = false;
            (void)snprintf(s->result.restore, sizeof s->result.restore,
                           "%s: the actuator is gone", sweeper_uuid(s, i));
            continue;
        }
        s->asking++;
    }
}
