#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "tuner/tuner-inside.h"

enum { TICK_MS = 250, REFERENCE_WINDOWS = 2, WARM_STEPS = 3 };
#define CHECK_S 10.0   /* time at the first cap, if steps are launches */
#define UNSEEN_S 120.0 /* longest time without steps while a cap is in force */
#define STALL_FACTOR 8.0
#define STALL_LEAST_S 15.0 /* and 2 s of real time, for a faster simulation */

/* ---- steps ---- */

uint32_t tuner_reference_mw(const struct tuner *t)
{
    if (t->ceiling_mw >= t->report.original_mw)
        return t->report.original_mw;
    return t->ceiling_mw / MW_PER_W * MW_PER_W; /* the search uses whole watts */
}

/* The step for a cap by name: two reference windows, then the cap. */
static void fixed_step(struct tuner *t, struct search_step *ret)
{
    struct savings_mean *ref = &regimes_savings(&t->regimes)->reference;
    bool known = ref->windows >= REFERENCE_WINDOWS;

    *ret = (struct search_step){
        .kind = known ? SEARCH_HOLD : SEARCH_MEASURE,
        .cap_mw = known ? t->caps.named_mw : t->report.original_mw,
        .check_steps = 2,
        .settle_s = 2,
        .settle_steps = 1,
    };
    (void)snprintf(ret->why, sizeof ret->why, known ? "asked for" : "reference");
}

double tuner_ramp_rate(const struct tuner *t)
{
    double share = t->o.ramp > 0 ? t->o.ramp : SEARCH_RAMP;

    return share * board_caps_most_default_mw(&t->caps);
}

static uint32_t first_cap(const struct tuner *t, double peak_w)
{
    uint32_t mw = mw_of_w(peak_w * SEARCH_FIRST);
    return mw > t->report.original_mw ? t->report.original_mw : mw;
}

static struct search_step next_step(struct tuner *t)
{
    struct search_step step;

    if (t->check.on && tuner_reference_mw(t) + MW_PER_W < t->report.reference_mw)
        tuner_end_check(t); /* others' claims are below the reference now */
    if (t->check.on)
        return reference_check_step(&t->check, tuner_reference_mw(t));
    if (t->search)
        return *search_step(t->search);
    fixed_step(t, &step);
    if (!t->caps.table->walks) {
        step.ramp_mw_s = tuner_ramp_rate(t);
        step.first_mw = t->report.peak_w > 0 ? first_cap(t, t->report.peak_w) : 0;
    }
    return step;
}

/* Notes once that an earlier run's curve does not fit this run. */
static void tell_memory(struct tuner *t)
{
    struct search_result known = {0};

    if (!t->search || !t->report.earlier_job || t->report.memory == SEARCH_MEMORY_DENIED)
        return;
    search_result(t->search, &known);
    t->report.memory = known.memory;
    if (known.memory == SEARCH_MEMORY_DENIED)
        tuner_note(&t->notes, true,
                   "what job %" PRIu64 " measured does not fit this run and is not used",
                   t->report.earlier_job);
}

/* The target of the ramp for the step. */
static uint32_t target(struct tuner *t)
{
    uint32_t mw = t->step.cap_mw;
    bool hold = t->step.kind == SEARCH_HOLD;

    if (t->check.on)
        return mw;
    mw = slack_search_target(&t->slack, hold, mw);
    return lock_search_target(&t->lock, hold, t->step.cap_mw, mw, t->ramp.at_mw);
}

int tuner_next(struct tuner *t)
{
    uint64_t now = loop_now_ns(t->o.loop);

    t->step = next_step(t);
    tell_memory(t);
    bool reference =
        t->step.cap_mw >= tuner_reference_mw(t) && t->step.kind == SEARCH_MEASURE;
    if (t->step.kind == SEARCH_HOLD)
        gap_check_end(&t->gap, t->report.windows, now);
    if (t->step.kind == SEARCH_HOLD) {
        if (t->check.cools) /* the boards are still warm from the check */
            t->step.settle_s = fmax(t->step.settle_s, REFERENCE_CHECK_SETTLE_S);
        t->check.cools = false;
        bool other = !t->report.holding || t->report.held_mw != t->step.cap_mw;
        tuner_note(&t->notes, other, "holds %.0f W: %s", w_of_mw(t->step.cap_mw),
                   t->step.why);
        if (other)
            tuner_hold_anew(t);
        t->report.holding = true;
        t->report.held_mw = t->step.cap_mw;
        (void)snprintf(t->report.why, sizeof t->report.why, "%s", t->step.why);
        if (t->regimes.stretch.kind != STRETCH_HOLD || other)
            regimes_turn(&t->regimes, STRETCH_SEARCH); /* until the cap is in force */
    } else if (t->check.on) {
        regimes_turn(&t->regimes, STRETCH_REFERENCE_CHECK);
        tuner_note(&t->notes, false, "goes to %.0f W: %s", w_of_mw(t->step.cap_mw),
                   t->step.why);
    } else {
        t->report.holding = t->gap.on; /* a gap check returns to a hold */
        regimes_turn(&t->regimes, reference ? STRETCH_REFERENCE : STRETCH_SEARCH);
        tuner_note(&t->notes, t->search != NULL, "goes to %.0f W: %s",
                   w_of_mw(t->step.cap_mw), t->step.why);
    }
    ramp_to(&t->ramp, target(t), t->step.first_mw, t->step.ramp_mw_s, t->step.urgent,
            now);
    t->first_seen = false;
    t->state = TUNER_WALK;
    progress_period_rest(t->o.period);
    loop_timer_set(t->timer, now, TICK_MS * NS_PER_MS);
    return 0;
}

void tuner_end_check(struct tuner *t)
{
    reference_check_end(&t->check, loop_now_ns(t->o.loop));
}

/* ---- leaving ---- */

static int on_release(struct tuner *t, const struct actuator_reply *reply)
{
    t->report.unsure |= reply->result == ACTUATOR_GONE;
    if (reply->result != ACTUATOR_DONE && reply->result != ACTUATOR_YIELDED &&
        reply->result != ACTUATOR_GONE) {
        t->report.restored = false;
        board_caps_reply_text(&t->caps, reply, t->report.restore,
                              sizeof t->report.restore);
    }
    return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
}

static void release_all(struct tuner *t)
{
    t->report.restored = true;
    for (size_t i = 0; i < t->caps.n; i++) {
        int r = board_caps_release(&t->caps, i);
        if (r == -ENOTCONN) {
            t->report.unsure = true;
        } else if (r != 0) {
            t->report.restored = false;
            (void)snprintf(t->report.restore, sizeof t->report.restore,
                           "%s: cannot be released now; the lease's end restores it",
                           board_caps_uuid(&t->caps, i));
        }
    }
}

static int leave(struct tuner *t)
{
    if (t->state == TUNER_LEFT || t->state == TUNER_OVER)
        return 0;
    tuner_note(&t->notes, true, "no more caps: %s", t->report.ended);
    lock_search_end(&t->lock);
    t->report.ended_ns = loop_now_ns(t->o.loop);
    window_cancel(&t->window);
    progress_period_rest(t->o.period);
    t->state = TUNER_LEFT;
    loop_timer_set(t->timer, UINT64_MAX, 0);
    release_all(t);
    return 0;
}

/* ---- ramps ---- */

/* Whether the step is a hold, without a reference check, and the job runs. */
static bool holds(const struct tuner *t)
{
    return t->step.kind == SEARCH_HOLD && !t->check.on && !tuner_halted(t);
}

int tuner_command(struct tuner *t, uint32_t mw)
{
    bool slack = holds(t);
    uint32_t each[BOARDS_MAX];

    pause_on_cap(&t->pause, mw, &t->steps.mark);
    launch_rate_moved(&t->rate, t->caps.commanded_mw, mw, loop_now_ns(t->o.loop));
    for (size_t i = 0; i < t->caps.n; i++)
        each[i] = slack ? slack_search_cap(&t->slack, i, mw) : mw;
    board_caps_set(&t->caps, mw, each);
    return 0;
}

static int on_set(struct tuner *t, const struct actuator_reply *reply)
{
    pause_on_in_force(&t->pause, t->caps.commanded_mw, &t->steps.mark);
    if (reply->result == ACTUATOR_CLAMPED && reply->text[0])
        tuner_note(&t->notes, true, "%s", reply->text);
    if (board_caps_is_refusal(reply->result))
        board_caps_reply_text(&t->caps, reply, t->report.ended, sizeof t->report.ended);
    return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
}

/* Lets the ramp continue from the first cap once the job has made check_steps more. */
static void check_first(struct tuner *t, uint64_t now)
{
    if (!t->ramp.waiting || t->caps.commanded_mw != t->ramp.at_mw)
        return;
    const struct step_mark *mark = &t->steps.mark;
    if (!t->first_seen || (!t->inferred && mark->generation != t->first.generation)) {
        t->first_seen = true;
        t->first = *mark;
        t->first_ns = now;
        return;
    }
    unsigned more = t->step.check_steps + 1;
    double least_s = t->rate.on ? CHECK_S : more * t->period.period_s;
    bool done = t->inferred
                    ? s_between(t->first_ns, now) >= least_s
                    : steps_known(&t->steps) && mark->steps >= t->first.steps + more;
    if (done)
        ramp_checked(&t->ramp, now);
}

/* ---- pauses ---- */

/* Restores the originals at once; the step is repeated when the job continues. */
static int halt(struct tuner *t, uint64_t now)
{
    tuner_end_check(t);
    window_cancel(&t->window);
    if (t->state == TUNER_ENERGY) /* a later result would be booked at the original */
        t->state = TUNER_WALK;
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    lock_search_off(&t->lock);
    ramp_to(&t->ramp, t->report.original_mw, 0, 0, true, now);
    return tuner_command(t, t->report.original_mw);
}

/* A job that ran well makes no steps: keeps the cap for a while, then restores the
 * originals until the next step.
 */
static int begin_pause(struct tuner *t)
{
    pause_begin(&t->pause, &t->steps.mark);
    window_cancel(&t->window);
    return 0;
}

static int pause_lasts(struct tuner *t, uint64_t now)
{
    double long_s = pause_is_long(&t->pause, &t->steps, now, loop_speed(t->o.loop));

    if (!(long_s > 0))
        return 0;
    t->pause.halted = true;
    tuner_note(&t->notes, true,
               "no step for %.0f s: the original cap until the next step", long_s);
    return halt(t, now);
}

static int pause_is_over(struct tuner *t)
{
    bool halted = t->pause.halted;

    pause_end(&t->pause);
    if (halted)
        tuner_note(&t->notes, true, "the job continues");
    if (t->stopped || !t->report.started)
        return 0;
    if (t->state == TUNER_WALK || (halted && t->state == TUNER_WINDOW))
        return tuner_next(t);
    return t->state == TUNER_WINDOW ? tuner_on_void_window(t) : 0;
}

/* No steps for UNSEEN_S: restores the original, as the effect of a cap is unknown. */
static int steps_unseen(struct tuner *t)
{
    window_cancel(&t->window);
    pause_end(&t->pause);
    if (!t->search)
        return tuner_hold_unseen(t, t->caps.named_mw, "asked for");
    tuner_note(&t->notes, true,
               "the job's steps cannot be followed any more: back to the original cap");
    tuner_end_check(t);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    t->report.holding = false;
    t->gap.on = false;
    t->report.by = TUNER_BY_NOTHING;
    (void)snprintf(t->report.unknown, sizeof t->report.unknown,
                   "the job's steps cannot be followed any more");
    t->has_begun = false;
    t->state = TUNER_WAIT;
    int r = tuner_to_original(t);
    (void)tuner_listen(t);
    return r;
}

static int stalled(struct tuner *t, uint64_t now)
{
    double least_s = fmax(STALL_LEAST_S, 2 * loop_speed(t->o.loop));

    if (t->ramp.at_mw >= t->report.original_mw ||
        steps_late_s(&t->steps, now, STALL_FACTOR, least_s) <= 0)
        return 0;
    if (pause_ran_well(&t->pause, &t->steps.mark))
        return begin_pause(t);
    t->report.stalls++;
    tuner_note(&t->notes, true, "no progress at %.0f W: goes up", w_of_mw(t->ramp.at_mw));
    pause_forgive(&t->pause, &t->steps, now);
    if (slack_search_stall(&t->slack) || lock_search_stall(&t->lock))
        return tuner_next(t);
    if (t->search) {
        search_on_stall(t->search, t->ramp.at_mw);
        return tuner_next(t);
    }
    (void)snprintf(t->report.ended, sizeof t->report.ended,
                   "the job made no progress at %.0f W", w_of_mw(t->ramp.at_mw));
    return leave(t);
}

/* Whether the state needs steps; a cap by name needs none while it ramps or is held. */
static bool needs_steps(const struct tuner *t)
{
    if (!t->search)
        return t->step.kind == SEARCH_MEASURE || t->ramp.waiting;
    return !t->inferred && !t->safe;
}

bool tuner_waits(const struct tuner *t)
{
    return t->state == TUNER_WAIT && !t->listening;
}

static int tuner_on_tick(struct loop_timer *timer, uint64_t now, void *user)
{
    struct tuner *t = user;
    (void)timer;

    if (t->stopped || (t->state != TUNER_WALK && t->state != TUNER_WINDOW))
        return 0;
    if (t->caps.refused)
        return leave(t);
    if (needs_steps(t) && !steps_seen(&t->steps) && s_between(t->seen_ns, now) > UNSEEN_S)
        return steps_unseen(t);
    if (t->pause.on)
        return pause_lasts(t, now);
    if (reference_check_is_late(&t->check, now)) {
        tuner_end_check(t);
        window_cancel(&t->window);
        t->period.booked_ns = 0; /* the time of the check is no part of the hold */
        return tuner_next(t);
    }
    if (t->state == TUNER_WALK && t->caps.pending == 0) {
        if (t->ramp.at_mw < t->report.original_mw &&
            pause_is_due(&t->pause, &t->steps, now, loop_speed(t->o.loop)))
            return begin_pause(t); /* do not lower the cap without a step */
        check_first(t, now);
        uint32_t mw = ramp_at(&t->ramp, now);
        if (mw != t->caps.commanded_mw)
            return tuner_command(t, mw);
        if (ramp_arrived(&t->ramp) && !slack_search_walks(&t->slack, now)) {
            enum lock_search_way way = lock_search_walk(&t->lock, holds(t));
            if (way == LOCK_SEARCH_THERE)
                return tuner_arrived(t, now);
            if (way == LOCK_SEARCH_NEXT)
                (void)tuner_next(t);
        }
    }
    if (t->window.state == WINDOW_OPEN)
        lock_search_see(&t->lock);
    return stalled(t, now);
}

static int begin_when_warm(struct tuner *t, uint64_t now)
{
    double warm_s = t->o.warm_s > 0 ? t->o.warm_s : 10;

    if (!steps_known(&t->steps) || !steps_training(&t->steps) || tuner_rests(t))
        return 0;
    if (!t->has_begun || t->begun.generation != t->steps.mark.generation) {
        t->has_begun = true;
        t->begun = t->steps.mark;
        t->begun_ns = now;
        return 0;
    }
    if (t->steps.mark.steps < t->begun.steps + WARM_STEPS ||
        s_between(t->begun_ns, now) < warm_s)
        return 0;
    t->report.started = true;
    if (t->was_inferred) /* the unit of a step has changed */
        tuner_new_regime(t, NULL);
    t->was_inferred = t->rate.in_regime = false;
    return tuner_next(t);
}

int tuner_on_steps(struct tuner *t, const struct steps *steps, uint64_t now_ns)
{
    /* A search by launch rate ignores steps that are estimated from launches later (an
     * epoch's pauses, recurring clumps): they are no more accurate.
     */
    if (t->inferred && t->rate.on && steps->guessed)
        return 0;
    t->steps = *steps;
    pause_on_steps(&t->pause, &t->steps, now_ns);
    if (steps_seen(steps))
        t->seen_ns = now_ns;
    if (steps_seen(steps) && tuner_on_told(t))
        return 0;
    if (t->report.started && !t->inferred && t->state != TUNER_OVER)
        regimes_on_steps(&t->regimes, &t->steps);
    if (t->pause.on && !t->pause.goes_on)
        return 0;
    if (t->pause.on)
        return pause_is_over(t);
    if (tuner_halted(t))
        return 0;
    switch (t->state) {
    case TUNER_WAIT:
        return begin_when_warm(t, now_ns);
    case TUNER_WINDOW:
        return tuner_on_window(t, now_ns);
    default:
        return 0;
    }
}

int tuner_hold_unseen(struct tuner *t, uint32_t mw, const char *why)
{
    uint64_t now = loop_now_ns(t->o.loop);

    slack_search_end(&t->slack);
    t->report.holding = true;
    (void)snprintf(t->report.why, sizeof t->report.why, "%s", why);
    t->step = (struct search_step){
        .kind = SEARCH_HOLD,
        .cap_mw = mw,
        .ramp_mw_s = t->caps.table->walks ? 0 : tuner_ramp_rate(t),
    };
    t->report.held_mw = mw;
    ramp_to(&t->ramp, mw, 0, t->step.ramp_mw_s, false, now);
    t->state = TUNER_WALK;
    loop_timer_set(t->timer, now, TICK_MS * NS_PER_MS);
    return 0;
}

int tuner_cap_now(struct tuner *t)
{
    if (t->search || t->state != TUNER_WAIT)
        return 0;
    return tuner_hold_unseen(t, t->caps.named_mw, "asked for");
}

int tuner_to_original(struct tuner *t)
{
    slack_search_end(&t->slack);
    lock_search_end(&t->lock);
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
    return tuner_command(t, t->report.original_mw);
}

int tuner_resume(struct tuner *t, uint32_t held_mw)
{
    if (t->state != TUNER_WAIT || t->caps.n == 0)
        return 0;
    if (held_mw > t->report.original_mw)
        held_mw = t->report.original_mw;
    t->report.holding = true;
    t->report.held_mw = held_mw;
    (void)snprintf(t->report.why, sizeof t->report.why, "held before, goes on");
    ramp_init(&t->ramp, held_mw, MW_PER_W, loop_now_ns(t->o.loop));
    return tuner_command(t, held_mw);
}

int tuner_blind(struct tuner *t)
{
    if (!t->search || t->state != TUNER_WAIT || !t->report.holding)
        return 0;
    tuner_note(&t->notes, true,
               "no step was reported since: back to the original cap until one is");
    t->report.holding = false;
    return tuner_to_original(t);
}

static int on_rehold(struct tuner *t, const struct actuator_reply *reply)
{
    uint64_t now = loop_now_ns(t->o.loop);

    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    if (reply->result != ACTUATOR_DONE && t->state == TUNER_REHOLD) {
        board_caps_reply_text(&t->caps, reply, t->report.ended, sizeof t->report.ended);
        t->report.board_lost =
            reply->result == ACTUATOR_GONE || reply->result == ACTUATOR_YIELDED;
        return leave(t);
    }
    if (t->caps.pending > 0 || t->state != TUNER_REHOLD)
        return 0;
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, now);
    t->caps.commanded_mw = t->report.original_mw;
    if (t->listening && !t->inferred) {
        tuner_listen_again(t);
        return 0;
    }
    if (t->pause.halted) { /* continues with the job's next step */
        t->state = TUNER_WALK;
        return 0;
    }
    if (t->report.started)
        return tuner_next(t);
    t->state = TUNER_WAIT; /* a cap by name or a resumed one, without known progress */
    if (t->search && t->report.holding)
        return tuner_resume(t, t->report.held_mw);
    return tuner_cap_now(t);
}

static int on_caps(enum board_caps_ask ask, const struct actuator_reply *reply,
                   void *user)
{
    struct tuner *t = user;

    if (ask == BOARD_CAPS_SET)
        return on_set(t, reply);
    return ask == BOARD_CAPS_HOLD ? on_rehold(t, reply) : on_release(t, reply);
}

/* The leases ran out, as this process was stopped for too long: the originals are in
 * force.  After the event of the last board, holds the boards again and repeats the step.
 */
static int tuner_lease_over(struct tuner *t, const char *text)
{
    if (++t->leases_over < t->caps.n)
        return 0;
    t->leases_over = 0;
    if (t->caps.table->lease_over)
        text = t->caps.table->lease_over;
    tuner_note(&t->notes, true, "%s: the search goes down from the original cap again",
               text);
    tuner_end_check(t);
    window_cancel(&t->window);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    bool walked = t->report.started || t->step.cap_mw > 0;
    if (!t->report.started) { /* the resumed cap is not in force any more */
        t->report.holding = false;
        ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
        t->caps.commanded_mw = t->report.original_mw;
    }
    t->state = walked ? TUNER_REHOLD : TUNER_WAIT;
    for (size_t i = 0; i < t->caps.n; i++) {
        if (board_caps_hold(&t->caps, i) < 0) {
            (void)snprintf(t->report.ended, sizeof t->report.ended,
                           "%s: the lease ran out and the actuator does not answer",
                           board_caps_uuid(&t->caps, i));
            return leave(t);
        }
    }
    return 0;
}

static bool on_the_way(const struct tuner *t)
{
    return t->state == TUNER_WALK || t->state == TUNER_WINDOW || t->state == TUNER_ENERGY;
}

int tuner_on_stopped(struct tuner *t, bool stopped)
{
    uint64_t now = loop_now_ns(t->o.loop);

    if (stopped == t->stopped || t->state == TUNER_LEFT || t->state == TUNER_OVER)
        return 0;
    t->stopped = stopped;
    if (!t->report.started && !t->report.holding)
        return 0;
    if (stopped) {
        tuner_note(&t->notes, true, "the job is stopped: no cap until it continues");
        pause_end(&t->pause);
        return halt(t, now);
    }
    tuner_note(&t->notes, true, "the job continues");
    pause_forgive(&t->pause, &t->steps, now); /* do not count the stop as a stall */
    if (!on_the_way(t))
        return 0;
    if (t->listening && !t->inferred) {
        tuner_listen_again(t);
        return 0;
    }
    if (t->report.started)
        return tuner_next(t);
    t->state = TUNER_WAIT;
    return tuner_cap_now(t);
}

int tuner_on_force(struct tuner *t, uint32_t ceiling_mw, uint32_t enforced_mw)
{
    uint32_t was = t->caps.enforced_mw ? t->caps.enforced_mw : t->caps.commanded_mw;
    uint32_t reference = tuner_reference_mw(t);
    bool moved = t->caps.pending == 0 && enforced_mw && enforced_mw != was;

    if (ceiling_mw != t->ceiling_mw) {
        t->ceiling_mw = ceiling_mw;
        if (t->search)
            search_on_hard_limit(t->search, ceiling_mw >= t->report.original_mw
                                                ? SEARCH_NO_LIMIT
                                                : ceiling_mw);
    }
    if (!on_the_way(t) || tuner_halted(t) || !t->report.started || t->safe)
        return 0;
    bool other = (t->search && search_step(t->search)->cap_mw != t->step.cap_mw) ||
                 (t->step.kind == SEARCH_MEASURE && tuner_reference_mw(t) != reference);
    if (!moved && !other)
        return 0;
    if (moved) {
        pause_on_cap(&t->pause, enforced_mw, &t->steps.mark);
        launch_rate_moved(&t->rate, was, enforced_mw, loop_now_ns(t->o.loop));
    }
    if (t->caps.pending == 0)
        t->caps.enforced_mw = enforced_mw;
    window_cancel(&t->window); /* began under another cap */
    t->period.booked_ns = 0;
    return tuner_next(t);
}

int tuner_on_event(struct tuner *t, enum actuator_event event,
                   const struct actuator_reply *what)
{
    if (t->state == TUNER_OVER || t->state == TUNER_LEFT)
        return 0;
    if (event == ACTUATOR_EVENT_LEASE)
        return tuner_lease_over(t, what->text);
    board_caps_reply_text(&t->caps, what, t->report.ended, sizeof t->report.ended);
    t->report.board_lost = what->result == ACTUATOR_YIELDED;
    return leave(t);
}

/* ---- begin and end ---- */

int tuner_maybe_done(struct tuner *t)
{
    if (t->state != TUNER_OVER || !t->done || t->caps.pending || t->caps.releasing ||
        t->peaks_asked || t->regimes.pending || t->energy.pending)
        return 0;
    tuner_done_fn done = t->done;
    t->done = NULL;
    savings_saved(t->regimes.savings, t->regimes.n, &t->report.saved);
    return done(t, t->done_user);
}

static int on_stretch(void *user)
{
    struct tuner *t = user;
    return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
}

int tuner_finish(struct tuner *t, tuner_done_fn done, void *user)
{
    bool left = t->state == TUNER_LEFT;

    t->done = done;
    t->done_user = user;
    regimes_close(&t->regimes);
    window_cancel(&t->window);
    progress_period_rest(t->o.period);
    loop_timer_set(t->timer, UINT64_MAX, 0);
    t->state = TUNER_OVER;
    if (!left)
        release_all(t);
    else if (!t->report.restored && t->caps.table->back(t->caps.of))
        t->report.restored = true;
    return tuner_maybe_done(t);
}

void tuner_verified(struct tuner *t, bool restored, const char *text)
{
    t->report.restored = restored;
    t->report.unsure = false;
    (void)snprintf(t->report.after, sizeof t->report.after, "%s", text);
    (void)snprintf(t->report.restore, sizeof t->report.restore, "%s",
                   restored ? "" : text);
}

/* Takes over the regimes of an earlier tuner, and the caps measured on these boards, the
 * reference first.
 */
static void take_known(struct tuner *t)
{
    const struct tuner_known *k = t->o.known;
    double share = t->o.checks_share;
    int probes = t->o.gap_checks;

    share = share < 0 ? 0 : share > 0 ? share : VISITS_SHARE;
    t->check.checks.share = share;
    probes = probes < 0 ? 0 : probes > 0 ? probes : LOOKS;
    t->gap.probes.most = (unsigned)probes;
    if (!k || k->n_regimes == 0)
        return;
    t->regimes.n = k->n_regimes;
    memcpy(t->regimes.savings, k->regime, k->n_regimes * sizeof *k->regime);
    t->report.windows = k->windows;
    t->report.changes = k->changes;
    t->was_inferred = k->by_period;
    t->report.stalls = k->stalls;
    t->check.checks = k->checks;
    t->check.checks.share = share;
    if (k->n_caps == 0) { /* other boards: the measurements do not apply */
        regimes_add(&t->regimes);
        return;
    }
    t->report.reference_mw = k->reference_mw;
    t->report.demand_w = k->demand_w;
    t->report.peak_w = k->peak_w;
    t->gap.probes.n = k->gap_checks.n;
    t->gap.probes.last_s = k->gap_checks.last_s;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < k->n_caps && i < TUNER_CAPS_MAX; i++) {
            const struct tuner_cap *c = &k->cap[i];
            if ((c->cap_mw == k->reference_mw) != (pass == 0))
                continue;
            t->regimes.cap[t->regimes.n_caps++] = *c;
            struct search_window w = {
                .cap_mw = c->cap_mw,
                .time_s = savings_mean_time(&c->mean),
                .energy_j = savings_mean_energy(&c->mean),
                .time_rse = savings_mean_time_rse(&c->mean),
                .energy_rse = savings_mean_energy_rse(&c->mean),
                .peak_w = pass == 0 ? k->peak_w : 0,
            };
            if (t->search)
                (void)search_on_window(t->search, &w, NULL);
        }
    }
    if (t->search && t->regimes.n_caps > 0)
        search_on_found(t->search, k->held_mw);
}

static int take_earlier(struct tuner *t, uw_error *err)
{
    const struct tuner_earlier *e = t->o.earlier;
    int r = 0;

    if (!t->search || !e || e->n == 0 || (t->o.known && t->o.known->n_caps > 0))
        return 0;
    for (size_t i = 0; i < e->n && r >= 0; i++)
        r = search_on_earlier(t->search, &e->window[i], e->demand_w, err);
    if (r < 0)
        return fail_in(err, r, "job %" PRIu64, e->job);
    t->report.earlier_job = e->job;
    t->report.memory = SEARCH_MEMORY_KEPT;
    tuner_note(&t->notes, true,
               "begins with %zu caps that job %" PRIu64 ", this job's last run, measured",
               e->n, e->job);
    return 0;
}

static uint32_t highest(const uint32_t *v, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++)
        if (v[i] > top)
            top = v[i];
    return top;
}

/* Initialises the parts from the options. */
static void init_parts(struct tuner *t)
{
    const struct tuner_opts *o = &t->o;
    double ramp = o->ramp > 0 ? o->ramp : SEARCH_RAMP;

    t->notes = (struct tuner_notes){o->note, o->user};
    t->caps = (struct board_caps){
        .table = o->caps,
        .of = o->caps_of,
        .boards = o->boards,
        .original_mw = o->original_mw,
        .range = o->range,
        .n = o->n,
        .cap = o->cap,
        .fn = on_caps,
        .user = t,
    };
    regimes_init(&t->regimes, o->meters, on_stretch, t);
    t->energy = (struct window_energy){
        .meters = o->meters, .n_boards = o->n, .on_piece = tuner_on_piece, .user = t};
    t->rate = (struct launch_rate){.rate = o->rate, .rate_of = o->rate_of};
    t->slack = (struct slack_search){
        .caps = &t->caps, .notes = &t->notes, .goal = o->goal, .most = o->slack};
    t->lock = (struct lock_search){
        .caps = &t->caps,
        .notes = &t->notes,
        .loop = o->loop,
        .goal = o->goal,
        .window_s = o->window_s,
        .ramp = ramp,
        .on = o->clocks && o->search && o->caps->clock && o->goal.kind != GOAL_TIME &&
              !(o->slack > 0 && o->n >= 2),
    };
}

int tuner_new(const struct tuner_opts *opts, struct tuner **ret, uw_error *err)
{
    auto_(tuner_free) struct tuner *t = calloc(1, sizeof *t);

    if (!t)
        return fail(err, -ENOMEM, "out of memory");
    t->o = *opts;
    init_parts(t);
    t->ceiling_mw = UINT32_MAX;
    t->report.cap = t->regimes.cap;
    t->report.account = t->regimes.savings;
    t->report.busy = NAN;
    t->report.original_mw = highest(opts->original_mw, opts->n);
    int r = 0;
    if (opts->search) {
        struct search_setup setup = {
            .goal = opts->goal,
            .gpus = (unsigned)opts->n,
            .floor = opts->floor,
            .ramp = opts->ramp,
        };
        r = board_caps_common(&t->caps, &setup, err);
        if (r >= 0) {
            t->report.original_mw = setup.original_mw;
            r = search_new(&setup, &t->search, err);
        }
    } else {
        r = board_caps_take_named(&t->caps, t->report.original_mw, err);
    }
    if (r >= 0)
        r = take_earlier(t, err);
    if (r < 0)
        return r;
    take_known(t);
    t->o.known = NULL;
    t->o.earlier = NULL;
    steps_init(&t->steps);
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(opts->loop));
    t->caps.commanded_mw = t->report.original_mw;
    change_init(&t->change, 0);
    r = loop_timer_new(opts->loop, UINT64_MAX, 0, tuner_on_tick, t, &t->timer, err);
    if (r < 0)
        return r;
    *ret = take(t);
    return 0;
}

void tuner_free(struct tuner *t)
{
    if (!t)
        return;
    loop_timer_free(t->timer);
    slack_free(t->slack.machine);
    lock_free(t->lock.machine);
    search_free(t->search);
    regimes_fini(&t->regimes);
    free(t);
}

const struct tuner_report *tuner_report(struct tuner *t)
{
    struct search_result known = {0};

    if (t->search)
        search_result(t->search, &known);
    t->report.best_mw = known.has_reference ? known.best_mw : t->caps.named_mw;
    t->report.lock_mhz = t->lock.asked_mhz;
    t->report.lock_mw = t->lock.asked_mhz ? t->caps.commanded_mw : 0;
    t->report.modelled = known.has_reference && known.ref_energy_j > 0;
    if (t->report.modelled) {
        t->report.model_saving = 1 - known.best_energy_j / known.ref_energy_j;
        t->report.model_slowdown = known.best_time_s / known.ref_time_s;
    }
    t->report.n_regimes = t->regimes.n;
    t->report.n_caps = t->regimes.n_caps;
    t->report.checks = t->check.checks;
    t->report.gap_checks = t->gap.probes;
    savings_saved(t->regimes.savings, t->regimes.n, &t->report.saved);
    return &t->report;
}

uint32_t tuner_cap_mw(const struct tuner *t)
{
    return t->caps.commanded_mw;
}

/* The status by state only. */
static enum search_status plain_status(const struct tuner *t, char *ret, size_t size)
{
    static const struct {
        enum search_status is;
        const char *text;
    } by[] = {
        [TUNER_WAIT] = {SEARCH_WAITS_PROGRESS,
                        "waits for training steps (UNDERWATT_PROGRESS)"},
        [TUNER_WALK] = {SEARCH_WALKS, "on the way to"},
        [TUNER_WINDOW] = {SEARCH_MEASURES, "measures at"},
        [TUNER_ENERGY] = {SEARCH_MEASURES, "measures at"},
        [TUNER_REHOLD] = {SEARCH_WAITS_FOR_BOARDS, "waits for its boards"},
        [TUNER_LEFT] = {SEARCH_HAS_LEFT, "measures only"},
        [TUNER_OVER] = {SEARCH_IS_OVER, "over"},
    };

    if (by[t->state].is == SEARCH_WALKS || by[t->state].is == SEARCH_MEASURES)
        (void)snprintf(ret, size, "%s %.0f W (window %u)", by[t->state].text,
                       w_of_mw(t->step.cap_mw), t->report.windows + 1);
    else
        (void)snprintf(ret, size, "%s", by[t->state].text);
    return by[t->state].is;
}

enum search_status tuner_status(const struct tuner *t, char *ret, size_t size)
{
    bool hold = t->step.kind == SEARCH_HOLD && t->report.holding;
    bool waits = t->state == TUNER_WAIT;
    bool works = t->state > TUNER_WAIT && t->state < TUNER_REHOLD;
    bool compares = lock_search_measures(&t->lock);
    double held_w = w_of_mw(t->report.held_mw);

    if (tuner_rests(t)) {
        (void)snprintf(ret, size, "cannot be measured: not capped for now");
        return SEARCH_RESTS;
    }
    if (t->pause.halted && t->state < TUNER_LEFT) {
        (void)snprintf(ret, size, "no step for long: not capped until the next one");
        return SEARCH_IS_PAUSED;
    }
    if (waits && t->listening && !t->report.holding) {
        (void)snprintf(ret, size, "%s",
                       t->safe ? "no steps, no period: not capped"
                               : "reports no steps: looks for a period");
        return t->safe ? SEARCH_IS_SAFE : SEARCH_WAITS_PROGRESS;
    }
    if (t->safe && t->state == TUNER_WINDOW) {
        (void)snprintf(ret, size, "no steps, no period: safe cap %.0f W", held_w);
        return SEARCH_IS_SAFE;
    }
    if (waits && t->report.holding) {
        (void)snprintf(ret, size, "holds %.0f W, waits for training steps", held_w);
        return SEARCH_HOLDS;
    }
    if (works && hold && t->lock.asked_mhz && !t->lock.asked_ns) {
        (void)snprintf(ret, size, "%s %.0f W, %" PRIu32 " MHz",
                       compares ? "compares" : "holds", w_of_mw(t->caps.commanded_mw),
                       t->lock.asked_mhz);
        return compares ? SEARCH_COMPARES : SEARCH_HOLDS;
    }
    if (works && hold && t->state != TUNER_WALK) {
        (void)snprintf(ret, size, "holds %.0f W", w_of_mw(t->step.cap_mw));
        return SEARCH_HOLDS;
    }
    return plain_status(t, ret, size);
}
