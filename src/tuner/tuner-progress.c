/* Progress of the job: the news of its sources (progress-source.h), and the behaviour
 * where no steps are certain: listening for a unit, and the safe static cap.
 */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

enum {
    PEAK_S = 60,     /* interval in which the peak for the safe cap is measured */
    MISSED_MOST = 3, /* successive windows of a hold without a period */
};
#define OTHER 0.05 /* least relative change of the period at one cap: a new regime */

/* ---- news ---- */

int tuner_on_progress(struct tuner *t, enum progress_news news)
{
    static const enum tuner_event events[] = {
        [PROGRESS_SURE] = ON_SURE,     [PROGRESS_UNKNOWN] = ON_DUE,
        [PROGRESS_WINDOW] = ON_WINDOW, [PROGRESS_DEAF] = ON_DEAF,
        [PROGRESS_LOST] = ON_LOST,
    };

    if (news == PROGRESS_GOES_ON)
        return 0;
    if (t->report.ruled && t->state == TUNER_MEASURE) { /* the cap is not in force */
        if (news == PROGRESS_WINDOW)
            return 0;
        t->progress.inferred.missed = 0;
    }
    return tuner_event(t, events[news], &t->progress.found);
}

int tuner_on_power(const struct progress_period_heard *h, void *user)
{
    struct tuner *t = user;
    const struct progress_source *source = progress_source(&t->progress);
    bool hears = t->state == TUNER_WAIT || t->state == TUNER_MEASURE;

    if (t->stopped || !hears || !source->on_power)
        return 0;
    return tuner_on_progress(t, source->on_power(&t->progress, h));
}

/* ---- listening ---- */

/* Listens for any unit (anew: in samples from now on) or, for a resumed hold, for the
 * unit of the hold.
 */
static void listen(struct tuner *t, bool anew)
{
    const struct savings_mean *hold = &regimes_savings(&t->regimes)->hold;
    bool resumed = !anew && t->holding && t->progress.unit != TUNER_BY_STEPS;

    progress_listen(&t->progress, &(struct progress_listen){
                                      .anew = anew,
                                      .safe = t->at == ACTIVITY_SAFE,
                                      .hold_s = resumed ? savings_mean_time(hold) : 0,
                                      .sure_ns = t->rest.until_ns,
                                  });
}

/* Gives up a resumed cap whose effect on the job's progress is unknown. */
static void blind(struct tuner *t)
{
    if (!t->search || t->state != TUNER_WAIT || !t->holding)
        return;
    tuner_note(
        &t->notes, true,
        "no step was reported since: restoring the original cap until the next step");
    t->holding = false;
    (void)tuner_to_original(t);
}

int tuner_on_silent(struct tuner *t)
{
    if (!t->search || t->o.period)
        return tuner_event(t, ON_SILENT, NULL);
    blind(t);
    return 0;
}

int do_listen(struct tuner *t, const void *what)
{
    (void)what;
    if (t->progress.unit == TUNER_BY_STEPS) /* the held cap was found by reported steps */
        blind(t);
    t->progress.by = TUNER_BY_NOTHING;
    listen(t, false);
    return 0;
}

int do_listen_again(struct tuner *t, const void *what)
{
    (void)what;
    t->at = ACTIVITY_SEARCH;
    t->holding = false;
    t->progress.by = TUNER_BY_NOTHING;
    listen(t, true);
    return 0;
}

int tuner_infer_no_more(struct tuner *t, const void *what)
{
    progress_forget(&t->progress);
    return do_listen_again(t, what);
}

int do_unresume(struct tuner *t, const void *what)
{
    blind(t);
    return do_listen_again(t, what);
}

int do_blind(struct tuner *t, const void *what)
{
    window_cancel(&t->progress.window);
    tuner_note(&t->notes, true,
               "the job's steps can no longer be followed: restoring the original cap");
    tuner_end_check(t);
    t->at = ACTIVITY_SEARCH;
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    t->holding = false;
    (void)snprintf(t->progress.unknown, sizeof t->progress.unknown,
                   "the job's steps can no longer be followed");
    t->progress.told.waits_ns = loop_now_ns(t->o.loop);
    int r = tuner_to_original(t);
    return r < 0 ? r : do_listen(t, what);
}

/* ---- progress unknown: the safe static cap ---- */

static int on_peak(const struct energy_sum_window *w, void *user)
{
    struct tuner *t = user;

    t->peaks_asked--;
    if (t->state == TUNER_OVER || w->r < 0 || !(w->peak_w > 0) || t->stopped)
        return tuner_maybe_done(t);
    return tuner_event(t, ON_PEAK, w);
}

int do_safe(struct tuner *t, const void *what)
{
    const struct energy_sum_window *w = what;
    struct activity_now now;
    struct search_step step;
    char why[TUNER_TEXT];

    t->report.peak_w = w->peak_w;
    t->at = ACTIVITY_SAFE;
    safe_cap_choose(&t->safe, w->peak_w, tuner_reference_mw(t));
    safe_cap_why(t->progress.unknown, why, sizeof why);
    tuner_note(&t->notes, true, "holds %.0f W: %s", w_of_mw(t->safe.mw), why);
    tuner_look(t, &now);
    activity_safe.want(&t->safe, &now, &step);
    return tuner_hold_unseen(t, &step, why);
}

int do_ask_peak(struct tuner *t, const void *what)
{
    uint64_t now = loop_now_ns(t->o.loop), from = now - ns_of_s(PEAK_S);

    (void)what;
    if (!safe_cap_allowed(&t->safe)) {
        tuner_note(
            &t->notes, true,
            "the job's progress is unknown (%s): the job is not capped, as a bound on "
            "its time cannot be checked",
            t->progress.unknown);
        t->at = ACTIVITY_SAFE;
        listen(t, false);
        return 0;
    }
    if (energy_sum_window(t->o.meters, from, now, on_peak, t) == 0)
        t->peaks_asked++;
    return 0;
}

/* ---- before a search ---- */

/* Whether the job does other work of the same unit than the regime: its steps take
 * another time at the same cap.  Not decided while a rule's cap is in force.
 */
static bool has_changed(struct tuner *t)
{
    const struct savings_mean *ref = &regimes_savings(&t->regimes)->reference;
    double step_s = t->progress.found.period_s;

    return progress_is_inferred(&t->progress) && ref->windows > 0 && !t->holding &&
           !t->report.ruled && fabs(step_s / savings_mean_time(ref) - 1) > OTHER;
}

int do_begin(struct tuner *t, const void *what)
{
    enum progress_turn turn = progress_begin(&t->progress);
    bool inferred = progress_is_inferred(&t->progress);

    t->started = true;
    t->at = ACTIVITY_SEARCH;
    t->report.changes += turn == PROGRESS_OTHER_WORK;
    if (turn != PROGRESS_SAME && (t->report.reference_mw || !inferred))
        tuner_new_regime(t, NULL);
    if (has_changed(t)) {
        t->report.changes++;
        tuner_new_regime(t, NULL);
    }
    return do_go(t, what);
}

int do_unsafe(struct tuner *t, const void *what)
{
    tuner_note(&t->notes, true, "the job's %s: restoring the original cap",
               progress_sources[t->progress.none.likely]->found);
    (void)do_listen_again(t, what);
    return tuner_to_original(t);
}

/* ---- windows ---- */

/* The period was lost, but not because of the cap: restores the original and listens for
 * any period.
 */
int do_unheard(struct tuner *t, const void *what)
{
    tuner_note(&t->notes, true, "the job's %s (%s): restoring the original cap",
               progress_source(&t->progress)->lost, t->progress.unknown);
    tuner_end_check(t);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    (void)tuner_infer_no_more(t, what);
    return tuner_to_original(t);
}

bool tuner_missed_many(const struct tuner *t)
{
    return t->progress.inferred.missed >= (t->step.kind == SEARCH_HOLD ? MISSED_MOST : 2);
}

int do_listen_on(struct tuner *t, const void *what)
{
    (void)what;
    progress_ask(&t->progress, NULL); /* the job may have paused */
    return 0;
}

int do_deaf_stall(struct tuner *t, const void *what)
{
    uint32_t in_force_mw = board_caps_in_force_mw(&t->caps);

    t->report.stalls++;
    t->progress.inferred.missed = 0;
    tuner_note(&t->notes, true, "no %s at %.0f W: raising the cap",
               progress_source(&t->progress)->missing, w_of_mw(in_force_mw));
    search_on_stall(t->search, in_force_mw);
    return do_go(t, what);
}

/* ---- reported steps after inferred ones ---- */

int do_told(struct tuner *t, const void *what)
{
    (void)what;
    progress_count_steps(&t->progress);
    if (t->at == ACTIVITY_SAFE)
        t->at = ACTIVITY_SEARCH;
    return 0;
}

static void note_better(struct tuner *t)
{
    tuner_note(&t->notes, true,
               "the job reports steps now: the search starts again with these steps");
    (void)do_told(t, NULL);
    t->progress.unit = TUNER_BY_STEPS;
    progress_forget(&t->progress);
}

int do_told_better(struct tuner *t, const void *what)
{
    note_better(t);
    tuner_end_check(t);
    tuner_new_regime(t, NULL);
    return do_go(t, what);
}

int do_told_safe(struct tuner *t, const void *what)
{
    (void)what;
    note_better(t);
    t->holding = false;
    return tuner_to_original(t);
}
