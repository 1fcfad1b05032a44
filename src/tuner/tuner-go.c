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
static void end_gap(struct tuner *t, bool moved, uint64_t now)
{
    if (t->at != ACTIVITY_GAP)
        return;
    t->at = ACTIVITY_SEARCH;
    gap_check_end(&t->gap, t->report.windows, moved, now);
}

bool tuner_end_visit(struct tuner *t)
{
    bool visits = t->at == ACTIVITY_CHECK || t->at == ACTIVITY_GAP;

    if (t->at == ACTIVITY_GAP)
        search_end_look(t->search);
    tuner_end_check(t);
    end_gap(t, false, loop_now_ns(t->o.loop));
    return visits;
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
        .rules_mw = board_caps_ceiling_mw(&t->caps, true),
        .measured_mw = t->report.reference_mw,
        .held_mw = t->report.held_mw,
        .cap_mw = t->step.cap_mw,
        .ramp_mw_s = tuner_ramp_rate(t),
        .peak_w = t->report.peak_w,
        .trained_s = savings_time_s(t->regimes.savings, t->regimes.n),
        .window_s = hold_window_s(t, a),
        .windows = t->report.windows,
        .inferred = progress_is_inferred(&t->progress),
        .now_ns = loop_now_ns(t->o.loop),
        .energy = &t->energy,
    };
}

/* The duration of the step from now on: half of the ramp (its first half is within the
 * bound), the settling, and the window, which is as long as the last one if steps vary.
 */
static double takes_s(struct tuner *t, const struct search_step *step)
{
    uint32_t at = board_caps_at_mw(&t->caps);
    uint32_t from = at < step->first_mw ? at : step->first_mw;
    double way_s = step->ramp_mw_s > 0 && from > step->cap_mw
                       ? (from - step->cap_mw) / step->ramp_mw_s
                       : 0;
    double step_s = savings_mean_time(&regimes_savings(&t->regimes)->reference);
    double least_s = fmax(t->progress.window_s, LEAST_STEPS * step_s);
    double last_s = t->energy.window.kept_s / (t->step.length > 1 ? t->step.length : 1);

    return way_s / 2 + step->settle_s + step->settle_steps * step_s +
           step->length * fmax(least_s, last_s);
}

/* slowdown:F: the time left of the bound of the whole job; INFINITY: another goal. */
double tuner_left_s(const struct tuner *t)
{
    struct whole_job_more more = regimes_more(&t->regimes);

    return t->o.goal.kind == GOAL_SLOWDOWN
               ? whole_job_left_s(t->regimes.savings, t->regimes.n, &more,
                                  t->o.goal.param)
               : INFINITY;
}

/* Replaces a step that costs more than the permitted part of the time left. */
static void keep_within(struct tuner *t, struct search_step *step)
{
    double bound = t->o.goal.param;

    t->priced = false;
    if (!t->search || t->o.goal.kind != GOAL_SLOWDOWN || t->at == ACTIVITY_CHECK ||
        step->kind != SEARCH_MEASURE || step->cap_mw >= tuner_reference_mw(t))
        return;
    search_afford(t->search, whole_job_most(bound, tuner_left_s(t), takes_s(t, step)));
    *step = *search_step(t->search);
    if (step->kind == SEARCH_MEASURE && step->cap_mw >= tuner_reference_mw(t))
        t->holding = false; /* no measured cap is within the bound (any more) */
    t->priced = step->kind == SEARCH_MEASURE &&
                !search_takes_at_most(t->search, step->cap_mw, bound);
}

bool tuner_goes_on(struct tuner *t)
{
    if (!t->search || !search_waits(t->search))
        return false;
    search_go_on(t->search);
    struct search_step step = *search_step(t->search);
    keep_within(t, &step);
    return !search_waits(t->search) || step.cap_mw != t->step.cap_mw;
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
    keep_within(t, &step);
    return step;
}

/* Notes once that the curve of an earlier run does not fit this run. */
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

/* The cap to claim for the step. */
static uint32_t target(struct tuner *t)
{
    struct activity_target step = {
        .hold = t->step.kind == SEARCH_HOLD,
        .cap_mw = t->step.cap_mw,
        .at_mw = board_caps_at_mw(&t->caps),
    };

    if (t->at == ACTIVITY_CHECK) /* the hold continues after the check */
        return t->step.cap_mw;
    return activities_target(t->activity, &step);
}

/* Takes over the step of a hold.  held: so was the last step. */
static void begin_hold(struct tuner *t, bool held)
{
    if (t->out_of == ACTIVITY_CHECK) /* the boards are still warm from the check */
        t->step.settle_s = fmax(t->step.settle_s, REFERENCE_CHECK_SETTLE_S);
    t->out_of = ACTIVITY_SEARCH;
    uint32_t mw = board_caps_enforced_mw(&t->caps);
    bool above = !mw || mw > t->step.cap_mw;
    bool other = !t->holding || t->report.held_mw != t->step.cap_mw;
    bool begins = other || t->regimes.stretch.kind != STRETCH_HOLD ||
                  (above && !board_caps_stand(&t->caps)); /* the limit was raised */
    bool again = held && !other && t->report.reached;
    t->lowers = begins && above;
    trials_end(&t->trials, other);
    if (begins)
        tuner_note(&t->notes, other, "%s %.0f W: %s",
                   t->lowers ? "lowers the cap to" : "holds", w_of_mw(t->step.cap_mw),
                   t->step.why);
    if (other)
        tuner_hold_anew(t);
    t->holding = true;
    t->report.held_mw = t->step.cap_mw;
    (void)snprintf(t->report.why, sizeof t->report.why, "%s", t->step.why);
    if (begins) /* until the cap is in force */
        regimes_turn(&t->regimes, again ? STRETCH_BACK : STRETCH_SEARCH);
}

/* Claims mw for the step, with the step's ramp; a cap by name has the ramp of its job. */
static int go_to(struct tuner *t, uint32_t mw)
{
    const struct search_step *step = &t->step;
    const struct claim_way way = {
        .own = t->search != NULL,
        .rate_mw_s = step->urgent ? 0 : step->ramp_mw_s,
        .first_mw = step->first_mw,
        .check_units = step->first_mw ? step->check_steps + 1 : 0,
    };

    t->first_seen = false;
    int r = tuner_command(t, mw, &way);
    if (r >= 0) /* the boards may have been lost before the first step */
        r = tuner_hear_boards(t, loop_now_ns(t->o.loop));
    return r < 0 ? r : tuner_arrive(t);
}

static bool is_measured(const struct tuner *t, uint32_t cap_mw)
{
    for (size_t i = 0; i < t->regimes.n_caps; i++)
        if (t->regimes.cap[i].cap_mw == cap_mw)
            return true;
    return false;
}

static void begin_trial(struct tuner *t, bool reference)
{
    const struct search_step *step = &t->step;

    regimes_turn(&t->regimes, reference ? STRETCH_REFERENCE : STRETCH_SEARCH);
    if (reference)
        trials_reference(&t->trials, step->cap_mw, step->why, t->search != NULL);
    else
        trials_begin(&t->trials, step->cap_mw, step->why, is_measured(t, step->cap_mw));
}

int do_go(struct tuner *t, const void *what)
{
    uint64_t now = loop_now_ns(t->o.loop);
    bool held = t->step.kind == SEARCH_HOLD;
    (void)what;

    t->step = next_step(t);
    tell_memory(t);
    bool reference =
        t->step.cap_mw >= tuner_reference_mw(t) && t->step.kind == SEARCH_MEASURE;
    if (t->step.kind == SEARCH_HOLD) {
        end_gap(t, t->step.cap_mw != t->report.held_mw, now);
        begin_hold(t, held);
    } else if (t->at == ACTIVITY_CHECK) {
        regimes_turn(&t->regimes, STRETCH_REFERENCE_CHECK);
        tuner_note(&t->notes, false, "measuring %.0f W (%s)", w_of_mw(t->step.cap_mw),
                   t->step.why);
    } else {
        begin_trial(t, reference);
    }
    progress_period_rest(t->o.period);
    return go_to(t, target(t));
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
    if (!t->caps.pending)
        t->enforced_mw = m->enforced_mw;
    progress_forget(&t->progress); /* the window began under another cap */
    return t->state == TUNER_LATE ? 0 : do_go(t, NULL); /* the next step goes on there */
}

int tuner_hold_unseen(struct tuner *t, const struct search_step *step, const char *why)
{
    (void)activities_on_news(t->activity, ACTIVITY_END);
    t->holding = true;
    (void)snprintf(t->report.why, sizeof t->report.why, "%s", why);
    t->step = *step;
    t->report.held_mw = step->cap_mw;
    return go_to(t, step->cap_mw);
}

int do_named(struct tuner *t, const void *what)
{
    struct search_step step = {
        .kind = SEARCH_HOLD,
        .cap_mw = t->caps.named_mw,
    };

    (void)what;
    t->void_windows = 0;
    window_cancel(&t->progress.window);
    tuner_note(&t->notes, false, "lowers the cap to %.0f W: requested",
               w_of_mw(step.cap_mw));
    t->lowers = true;
    return tuner_hold_unseen(t, &step, "requested");
}

/* The step costs more time than the model expected. */
int do_spent(struct tuner *t, const void *what)
{
    tuner_note(&t->notes, true,
               "%.0f W takes more time than the bound leaves: raising the cap",
               w_of_mw(t->step.cap_mw));
    search_on_spent(t->search);
    return do_give_up(t, what);
}

int do_give_up(struct tuner *t, const void *what)
{
    tuner_end_check(t);
    progress_forget(&t->progress); /* the time of the check does not count in the hold */
    return do_go(t, what);
}

/* ---- leaving ---- */

static void release_all(struct tuner *t)
{
    t->report.restored = true;
    board_caps_release(&t->caps);
}

int do_leave(struct tuner *t, const void *what)
{
    (void)what;
    tuner_note(&t->notes, true, "the job is no longer capped: %s", t->report.ended);
    (void)activities_on_news(t->activity, ACTIVITY_END);
    t->report.ended_ns = loop_now_ns(t->o.loop);
    window_cancel(&t->progress.window);
    progress_period_rest(t->o.period);
    release_all(t);
    return 0;
}

/* The job is over: books the stretch under way. */
static void close_accounts(struct tuner *t)
{
    regimes_close(&t->regimes);
    window_cancel(&t->progress.window);
    progress_period_rest(t->o.period);
}

int do_end(struct tuner *t, const void *what)
{
    (void)what;
    close_accounts(t);
    if (t->search && t->holding && search_waits(t->search))
        (void)snprintf(t->report.why, sizeof t->report.why, "%s",
                       search_last_why(t->search));
    release_all(t);
    return 0;
}

/* The job is over after the boards were released. */
int do_end_left(struct tuner *t, const void *what)
{
    (void)what;
    close_accounts(t);
    if (!t->report.restored && board_caps_back(&t->caps))
        t->report.restored = true;
    return 0;
}

/* ---- caps ---- */

bool tuner_holds(const struct tuner *t)
{
    return t->step.kind == SEARCH_HOLD && t->at != ACTIVITY_CHECK &&
           t->state != TUNER_PAUSED && t->state != TUNER_BOARDS && !t->stopped;
}

void tuner_note_cap(struct tuner *t)
{
    uint32_t mw = board_caps_at_mw(&t->caps);

    if (mw == t->at_mw)
        return;
    pause_on_cap(&t->pause, mw, &t->progress.steps.mark);
    progress_moved(&t->progress, t->at_mw, mw);
    t->at_mw = mw;
}

int tuner_command(struct tuner *t, uint32_t mw, const struct claim_way *way)
{
    bool hold = tuner_holds(t);
    uint32_t each[BOARDS_MAX];

    for (size_t i = 0; i < t->caps.n; i++)
        each[i] = hold ? activities_board_mw(t->activity, i, mw) : mw;
    board_caps_set(&t->caps, mw, each, way);
    tuner_note_cap(t);
    tuner_note_held(t);
    return 0;
}

int tuner_arrive(struct tuner *t)
{
    if (t->state != TUNER_WALK || t->caps.pending || t->caps.refused)
        return 0;
    switch (activities_walk(t->activity, tuner_holds(t), loop_now_ns(t->o.loop))) {
    case ACTIVITY_THERE:
        t->enforced_mw = board_caps_enforced_mw(&t->caps);
        return tuner_event(t, ON_MET, NULL);
    case ACTIVITY_NEXT:
        return tuner_event(t, ON_GO, NULL);
    default:
        return 0;
    }
}

int tuner_to_original(struct tuner *t)
{
    (void)activities_on_news(t->activity, ACTIVITY_END);
    return tuner_command(t, t->report.original_mw, &CLAIM_AT_ONCE);
}

/* ---- pauses ---- */

/* The cap ends for a while, of which the steps count nowhere. */
static void break_off(struct tuner *t)
{
    tuner_end_check(t);
    window_cancel(&t->progress.window);
    regimes_close(&t->regimes);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
}

int do_halt(struct tuner *t, const void *what)
{
    (void)what;
    break_off(t);
    (void)activities_on_news(t->activity, ACTIVITY_HALT);
    return tuner_command(t, t->report.original_mw, &CLAIM_AT_ONCE);
}

/* A job that ran well makes no steps: keeps the cap for a while, then restores the
 * originals until the next step.
 */
int do_late(struct tuner *t, const void *what)
{
    (void)what;
    t->pause.last = t->progress.steps.mark;
    window_cancel(&t->progress.window);
    if (t->search && t->caps.pending)
        board_caps_stay(&t->caps);
    return 0;
}

int do_pause(struct tuner *t, const void *what)
{
    tuner_note(&t->notes, true,
               "no step for %.0f s: restoring the original cap until the next step",
               s_between(t->pause.last.at_ns, loop_now_ns(t->o.loop)));
    return do_halt(t, what);
}

int do_forget_pause(struct tuner *t, const void *what)
{
    (void)what;
    t->from = TUNER_WALK;
    return 0;
}

/* Counts a stall, which is attributed to the cap. */
static void count_stall(struct tuner *t)
{
    t->report.stalls++;
    tuner_note(&t->notes, true, "no progress at %.0f W: raising the cap",
               w_of_mw(board_caps_at_mw(&t->caps)));
    pause_forgive(&t->pause, &t->progress.steps, loop_now_ns(t->o.loop));
}

int do_stall(struct tuner *t, const void *what)
{
    count_stall(t);
    if (!activities_on_news(t->activity, ACTIVITY_STALL)) {
        t->holding = t->holding && t->step.kind != SEARCH_HOLD;
        search_on_stall(t->search, board_caps_at_mw(&t->caps));
    }
    return do_go(t, what);
}

int do_stuck(struct tuner *t, const void *what)
{
    count_stall(t);
    (void)snprintf(t->report.ended, sizeof t->report.ended,
                   "the job made no progress at %.0f W",
                   w_of_mw(board_caps_at_mw(&t->caps)));
    return do_leave(t, what);
}

/* ---- boards that were away ---- */

int do_rehold(struct tuner *t, const void *what)
{
    (void)what;
    break_off(t);
    if (!t->started) /* the resumed cap is not in force any more */
        t->holding = false;
    if (t->search && t->caps.asked_mw[0]) /* held again, they walk from the originals */
        return tuner_command(t, t->report.original_mw, &CLAIM_AT_ONCE);
    t->caps.commanded_mw = t->report.original_mw;
    return 0;
}
