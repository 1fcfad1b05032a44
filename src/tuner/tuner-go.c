#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

/* ---- steps ---- */

void tuner_end_check(struct tuner *t)
{
    if (t->at != ACTIVITY_CHECK)
        return;
    t->at = ACTIVITY_SEARCH;
    t->out_of = ACTIVITY_CHECK;
    reference_check_end(&t->check, loop_now_ns(t->o.loop));
}

/* Ends a gap check when a hold begins or continues. */
static void end_gap(struct tuner *t, uint64_t now)
{
    if (t->at != ACTIVITY_GAP)
        return;
    t->at = ACTIVITY_SEARCH;
    gap_check_end(&t->gap, t->report.windows, now);
}

uint32_t tuner_reference_mw(const struct tuner *t)
{
    if (t->ceiling_mw >= t->report.original_mw)
        return t->report.original_mw;
    return t->ceiling_mw / MW_PER_W * MW_PER_W; /* the search uses whole watts */
}

double tuner_ramp_rate(const struct tuner *t)
{
    double share = t->o.ramp > 0 ? t->o.ramp : SEARCH_RAMP;

    return share * board_caps_most_default_mw(&t->caps);
}

/* The length of the shortest window of the hold. */
static double hold_window_s(const struct tuner *t, const struct savings *a)
{
    return fmax(t->progress.window_s, LEAST_STEPS * savings_mean_time(&a->hold));
}

void tuner_look(struct tuner *t, struct activity_now *ret)
{
    const struct savings *a = regimes_savings(&t->regimes);

    *ret = (struct activity_now){
        .search = t->search,
        .savings = a,
        .caps = &t->caps,
        .original_mw = t->report.original_mw,
        .reference_mw = tuner_reference_mw(t),
        .measured_mw = t->report.reference_mw,
        .held_mw = t->report.held_mw,
        .cap_mw = t->step.cap_mw,
        .ramp_mw_s = t->caps.table->walks ? 0 : tuner_ramp_rate(t),
        .peak_w = t->report.peak_w,
        .trained_s = savings_time_s(t->regimes.savings, t->regimes.n),
        .window_s = hold_window_s(t, a),
        .windows = t->report.windows,
        .inferred = progress_is_inferred(&t->progress),
        .now_ns = loop_now_ns(t->o.loop),
        .energy = &t->energy,
    };
}

/* The step of the activity at work, or of the search. */
static struct search_step next_step(struct tuner *t)
{
    struct activity_now now;
    struct search_step step;

    if (t->at == ACTIVITY_CHECK &&
        tuner_reference_mw(t) + MW_PER_W < t->report.reference_mw)
        tuner_end_check(t); /* others' claims are below the reference now */
    if (t->at != ACTIVITY_CHECK && t->at != ACTIVITY_GAP)
        t->at = ACTIVITY_SEARCH;
    tuner_look(t, &now);
    const struct tuner_activity *a = activities[t->at];
    (a->want ? a : &activity_search)->want(t->activity[t->at], &now, &step);
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
    struct activity_target step = {
        .hold = t->step.kind == SEARCH_HOLD,
        .cap_mw = t->step.cap_mw,
        .at_mw = t->ramp.at_mw,
    };

    if (t->at == ACTIVITY_CHECK) /* the hold goes on after it */
        return t->step.cap_mw;
    return activities_target(t->activity, &step);
}

/* Takes over the step of a hold. */
static void begin_hold(struct tuner *t)
{
    if (t->out_of == ACTIVITY_CHECK) /* the boards are still warm from the check */
        t->step.settle_s = fmax(t->step.settle_s, REFERENCE_CHECK_SETTLE_S);
    t->out_of = ACTIVITY_SEARCH;
    bool other = !t->holding || t->report.held_mw != t->step.cap_mw;
    tuner_note(&t->notes, other, "holds %.0f W: %s", w_of_mw(t->step.cap_mw),
               t->step.why);
    if (other)
        tuner_hold_anew(t);
    t->holding = true;
    t->report.held_mw = t->step.cap_mw;
    (void)snprintf(t->report.why, sizeof t->report.why, "%s", t->step.why);
    if (t->regimes.stretch.kind != STRETCH_HOLD || other)
        regimes_turn(&t->regimes, STRETCH_SEARCH); /* until the cap is in force */
}

int do_go(struct tuner *t, const void *what)
{
    uint64_t now = loop_now_ns(t->o.loop);
    (void)what;

    t->step = next_step(t);
    tell_memory(t);
    bool reference =
        t->step.cap_mw >= tuner_reference_mw(t) && t->step.kind == SEARCH_MEASURE;
    if (t->step.kind == SEARCH_HOLD) {
        end_gap(t, now);
        begin_hold(t);
    } else if (t->at == ACTIVITY_CHECK) {
        regimes_turn(&t->regimes, STRETCH_REFERENCE_CHECK);
        tuner_note(&t->notes, false, "goes to %.0f W: %s", w_of_mw(t->step.cap_mw),
                   t->step.why);
    } else {
        t->holding = t->at == ACTIVITY_GAP; /* a gap check returns to a hold */
        regimes_turn(&t->regimes, reference ? STRETCH_REFERENCE : STRETCH_SEARCH);
        tuner_note(&t->notes, t->search != NULL, "goes to %.0f W: %s",
                   w_of_mw(t->step.cap_mw), t->step.why);
    }
    ramp_to(&t->ramp, target(t), t->step.first_mw, t->step.ramp_mw_s, t->step.urgent,
            now);
    progress_period_rest(t->o.period);
    t->step_ns = now;
    loop_timer_set(t->timer, now, 0);
    return 0;
}

int do_force(struct tuner *t, const void *what)
{
    const struct tuner_moved *m = what;

    if (t->state == TUNER_LATE)
        t->from = TUNER_WALK;
    if (m->limit) {
        pause_on_cap(&t->pause, m->enforced_mw, &t->progress.steps.mark);
        progress_moved(&t->progress, m->was_mw, m->enforced_mw);
    }
    if (t->caps.pending == 0)
        t->caps.enforced_mw = m->enforced_mw;
    progress_forget(&t->progress); /* it began under another cap */
    return do_go(t, NULL);
}

int do_split(struct tuner *t, const void *what)
{
    const struct activity_shift *s = what;
    uint64_t now = loop_now_ns(t->o.loop);

    tuner_hold_anew(t);
    tuner_arm(t);
    if (s->walks) {
        ramp_init(&t->ramp, s->from_mw, MW_PER_W, now);
        ramp_to(&t->ramp, s->to_mw, 0, tuner_ramp_rate(t), false, now);
        return tuner_command(t, t->ramp.at_mw);
    }
    return s->commands ? tuner_command(t, t->caps.commanded_mw) : 0;
}

int tuner_hold_unseen(struct tuner *t, const struct search_step *step, const char *why)
{
    uint64_t now = loop_now_ns(t->o.loop);

    (void)activities_on_news(t->activity, ACTIVITY_END);
    t->holding = true;
    (void)snprintf(t->report.why, sizeof t->report.why, "%s", why);
    t->step = *step;
    t->report.held_mw = step->cap_mw;
    ramp_to(&t->ramp, step->cap_mw, 0, step->ramp_mw_s, false, now);
    t->step_ns = now;
    loop_timer_set(t->timer, now, 0);
    return 0;
}

int do_named(struct tuner *t, const void *what)
{
    struct search_step step = {
        .kind = SEARCH_HOLD,
        .cap_mw = t->caps.named_mw,
        .ramp_mw_s = t->caps.table->walks ? 0 : tuner_ramp_rate(t),
    };

    (void)what;
    t->void_windows = 0;
    window_cancel(&t->progress.window);
    return tuner_hold_unseen(t, &step, "asked for");
}

int do_give_up(struct tuner *t, const void *what)
{
    tuner_end_check(t);
    progress_forget(&t->progress); /* the time of the check is no part of the hold */
    return do_go(t, what);
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
    return tuner_maybe_done(t);
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

int do_leave(struct tuner *t, const void *what)
{
    (void)what;
    tuner_note(&t->notes, true, "no more caps: %s", t->report.ended);
    (void)activities_on_news(t->activity, ACTIVITY_END);
    t->report.ended_ns = loop_now_ns(t->o.loop);
    window_cancel(&t->progress.window);
    progress_period_rest(t->o.period);
    loop_timer_set(t->timer, UINT64_MAX, 0);
    release_all(t);
    return 0;
}

/* The job is over: books what is under way. */
static void close_accounts(struct tuner *t)
{
    regimes_close(&t->regimes);
    window_cancel(&t->progress.window);
    progress_period_rest(t->o.period);
    loop_timer_set(t->timer, UINT64_MAX, 0);
}

int do_end(struct tuner *t, const void *what)
{
    (void)what;
    close_accounts(t);
    release_all(t);
    return 0;
}

/* The boards were released before. */
int do_end_left(struct tuner *t, const void *what)
{
    (void)what;
    close_accounts(t);
    if (!t->report.restored && t->caps.table->back(t->caps.of))
        t->report.restored = true;
    return 0;
}

/* ---- caps ---- */

bool tuner_holds(const struct tuner *t)
{
    return t->step.kind == SEARCH_HOLD && t->at != ACTIVITY_CHECK &&
           t->state != TUNER_PAUSED && !t->stopped;
}

int tuner_command(struct tuner *t, uint32_t mw)
{
    bool hold = tuner_holds(t);
    uint32_t each[BOARDS_MAX];

    pause_on_cap(&t->pause, mw, &t->progress.steps.mark);
    progress_moved(&t->progress, t->caps.commanded_mw, mw);
    for (size_t i = 0; i < t->caps.n; i++)
        each[i] = hold ? activities_board_mw(t->activity, i, mw) : mw;
    board_caps_set(&t->caps, mw, each);
    if (t->caps.refused)
        tuner_arm(t);
    return 0;
}

static int on_set(struct tuner *t, const struct actuator_reply *reply)
{
    pause_on_in_force(&t->pause, t->caps.commanded_mw, &t->progress.steps.mark);
    if (reply->result == ACTUATOR_CLAMPED && reply->text[0])
        tuner_note(&t->notes, true, "%s", reply->text);
    if (board_caps_is_refusal(reply->result)) {
        board_caps_reply_text(&t->caps, reply, t->report.ended, sizeof t->report.ended);
        tuner_arm(t);
    }
    return tuner_maybe_done(t);
}

int tuner_to_original(struct tuner *t)
{
    (void)activities_on_news(t->activity, ACTIVITY_END);
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
    return tuner_command(t, t->report.original_mw);
}

/* ---- pauses ---- */

int do_halt(struct tuner *t, const void *what)
{
    (void)what;
    tuner_end_check(t);
    window_cancel(&t->progress.window);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    (void)activities_on_news(t->activity, ACTIVITY_HALT);
    ramp_to(&t->ramp, t->report.original_mw, 0, 0, true, loop_now_ns(t->o.loop));
    return tuner_command(t, t->report.original_mw);
}

/* A job that ran well makes no steps: keeps the cap for a while, then restores the
 * originals until the next step.
 */
int do_late(struct tuner *t, const void *what)
{
    (void)what;
    t->pause.last = t->progress.steps.mark;
    window_cancel(&t->progress.window);
    return 0;
}

int do_pause(struct tuner *t, const void *what)
{
    tuner_note(&t->notes, true,
               "no step for %.0f s: the original cap until the next step",
               s_between(t->pause.last.at_ns, loop_now_ns(t->o.loop)));
    return do_halt(t, what);
}

int do_forget_pause(struct tuner *t, const void *what)
{
    (void)what;
    t->from = TUNER_WALK;
    return 0;
}

/* The cap is taken to be what stops the job. */
static void count_stall(struct tuner *t)
{
    t->report.stalls++;
    tuner_note(&t->notes, true, "no progress at %.0f W: goes up", w_of_mw(t->ramp.at_mw));
    pause_forgive(&t->pause, &t->progress.steps, loop_now_ns(t->o.loop));
}

int do_stall(struct tuner *t, const void *what)
{
    count_stall(t);
    if (!activities_on_news(t->activity, ACTIVITY_STALL))
        search_on_stall(t->search, t->ramp.at_mw);
    return do_go(t, what);
}

int do_stuck(struct tuner *t, const void *what)
{
    count_stall(t);
    (void)snprintf(t->report.ended, sizeof t->report.ended,
                   "the job made no progress at %.0f W", w_of_mw(t->ramp.at_mw));
    return do_leave(t, what);
}

/* ---- boards that were away ---- */

/* A board is held again, or cannot be. */
static int on_rehold(struct tuner *t, const struct actuator_reply *reply)
{
    if (t->state != TUNER_BOARDS)
        return tuner_maybe_done(t);
    if (reply->result != ACTUATOR_DONE) {
        board_caps_reply_text(&t->caps, reply, t->report.ended, sizeof t->report.ended);
        if (reply->result == ACTUATOR_GONE || reply->result == ACTUATOR_YIELDED)
            t->left_for = TUNER_LEFT_FOR_BOARDS;
        return tuner_event(t, ON_UNMET, NULL);
    }
    if (t->caps.pending > 0)
        return 0;
    ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
    t->caps.commanded_mw = t->report.original_mw;
    return tuner_event(t, ON_BOARDS, NULL);
}

int do_rehold(struct tuner *t, const void *what)
{
    (void)what;
    tuner_end_check(t);
    window_cancel(&t->progress.window);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    if (!t->started) { /* the resumed cap is not in force any more */
        t->holding = false;
        ramp_init(&t->ramp, t->report.original_mw, MW_PER_W, loop_now_ns(t->o.loop));
        t->caps.commanded_mw = t->report.original_mw;
    }
    for (size_t i = 0; i < t->caps.n; i++) {
        if (board_caps_hold(&t->caps, i) < 0) {
            (void)snprintf(t->report.ended, sizeof t->report.ended,
                           "%s: the lease ran out and the actuator does not answer",
                           board_caps_uuid(&t->caps, i));
            return tuner_event(t, ON_UNMET, NULL);
        }
    }
    return 0;
}

int tuner_on_caps(enum board_caps_ask ask, const struct actuator_reply *reply, void *user)
{
    struct tuner *t = user;

    if (ask == BOARD_CAPS_SET)
        return on_set(t, reply);
    return ask == BOARD_CAPS_HOLD ? on_rehold(t, reply) : on_release(t, reply);
}
