#include <math.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

enum { MOST_WINDOWS = 3 };
#define TARGET_RSE 0.003 /* error of the time per step, window of length 1 */

/* The length of the window, relative to window_s.  It is 1 after a void window, so that
 * a cap that cannot be measured is in force only briefly.
 */
static unsigned step_length(const struct tuner *t)
{
    return t->step.length && t->void_windows == 0 ? t->step.length : 1;
}

int do_measure(struct tuner *t, const void *what)
{
    unsigned length = step_length(t);
    double window_s = length * t->progress.window_s;
    struct window_rule rule = {
        .settle_s = t->step.settle_s,
        .settle_steps = t->step.settle_steps,
        .least_s = window_s,
        .least_steps = length * LEAST_STEPS,
        .target_rse = TARGET_RSE / sqrt(length),
        .most_s =
            (t->at == ACTIVITY_CHECK ? t->check.most_windows : MOST_WINDOWS) * window_s,
    };
    (void)what;

    if (t->step.kind == SEARCH_HOLD)
        regimes_turn(&t->regimes, STRETCH_HOLD);
    t->progress.inferred.full_w = t->report.demand_w * (double)t->caps.n;
    t->progress.inferred.reference_mw = t->report.reference_mw;
    progress_ask(&t->progress, &rule);
    return 0;
}

/* An earlier regime has returned, and the search holds the cap found then: copies that
 * regime's windows to the new regime.
 */
static void take_back(struct tuner *t)
{
    struct search_window known[TUNER_CAPS_MAX];
    size_t n = search_known(t->search, known, TUNER_CAPS_MAX);

    for (size_t i = 0; i < n; i++)
        regimes_on_cap(&t->regimes, &known[i]);
    if (n == 0)
        return;
    t->report.reference_mw = known->cap_mw;
    t->report.demand_w = known->energy_j / known->time_s / (double)t->caps.n;
    regimes_mean_add(&regimes_savings(&t->regimes)->reference, known);
}

void tuner_new_regime(struct tuner *t, const struct search_window *now)
{
    regimes_turn(&t->regimes, STRETCH_SEARCH); /* ends the stretch of the old regime */
    counterfactual_break(&regimes_savings(&t->regimes)->pairs);
    regimes_add(&t->regimes);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    t->report.reference_mw = 0;
    t->report.allowed_mw = 0;
    t->report.lifted_mw = 0;
    (void)activities_on_news(t->activity, ACTIVITY_REGIME);
    if (t->at == ACTIVITY_GAP)
        t->at = ACTIVITY_SEARCH;
    if (!t->search)
        return;
    search_on_change(t->search, now);
    if (search_step(t->search)->kind == SEARCH_HOLD)
        take_back(t);
}

/* The job has changed, as window w shows.  one: w has a single cap on all boards. */
static int changed(struct tuner *t, const struct search_window *w, bool one)
{
    t->report.changes++;
    trials_end(&t->trials, true);
    tuner_note(&t->notes, true, "the job has changed: searches again");
    tuner_new_regime(t, one && w->energy_rse < 1 ? w : NULL);
    t->holding = false; /* the next hold belongs to the new regime */
    return tuner_event(t, ON_GO, NULL);
}

void tuner_hold_anew(struct tuner *t)
{
    change_init(&t->change, 0);
    savings_hold_anew(regimes_savings(&t->regimes));
    t->hold_at_mw = 0;
}

static struct pair_seen reference_seen(struct tuner *t, const struct search_window *w)
{
    const struct savings *a = regimes_savings(&t->regimes);

    if (a->hold.windows == 0 && t->regimes.n > 1)
        a--; /* the hold before the job changed */
    return reference_check_seen(a->hold.windows > 0 ? a : NULL, t->progress.told.begun_ns,
                                &t->energy.window, w, loop_now_ns(t->o.loop));
}

/* Evaluates a window at the highest cap possible now, which others' claims may have
 * lowered; the highest such cap so far is the reference.
 */
static void judge_reference(struct tuner *t, const struct search_window *w)
{
    struct savings *a = regimes_savings(&t->regimes);
    double boards = (double)t->caps.n;

    if (t->report.lifted_mw ||
        (a->reference.windows > 0 && w->cap_mw + MW_PER_W < t->report.reference_mw))
        return;
    if (w->cap_mw > t->report.reference_mw + MW_PER_W)
        savings_reference_anew(a);
    if (a->reference.windows == 0) {
        t->report.reference_mw = w->cap_mw;
        t->report.allowed_mw = tuner_reference_mw(t);
    }
    regimes_mean_add(&a->reference, w);
    if (t->step.kind != SEARCH_HOLD) {
        struct pair_seen seen = reference_seen(t, w);
        counterfactual_on_reference(&a->pairs, &seen);
    }
    t->report.demand_w =
        savings_mean_energy(&a->reference) / savings_mean_time(&a->reference) / boards;
    if (w->peak_w > 0)
        t->report.peak_w = w->peak_w;
}

/* A cap by name has no reference checks: if other claims allow more than in the reference
 * windows, the steps of this regime cannot be compared with anything.
 */
static void lose_reference(struct tuner *t)
{
    uint32_t mw = tuner_reference_mw(t);
    bool again = t->report.lifted_mw > 0;

    if (t->search || t->report.allowed_mw == 0 || mw <= t->report.lifted_mw ||
        mw <= t->report.allowed_mw + MW_PER_W)
        return;
    t->report.lifted_mw = mw;
    savings_reference_lost(regimes_savings(&t->regimes));
    if (again)
        return;
    tuner_note(&t->notes, true,
               "the saving is unknown: other claims allow %.0f W now, and allowed %.0f W "
               "when the reference was measured",
               w_of_mw(mw), w_of_mw(t->report.allowed_mw));
}

/* Evaluates a window of the hold.  True: the job has changed permanently. */
static bool judge_hold(struct tuner *t, const struct search_window *w)
{
    struct savings *a = regimes_savings(&t->regimes);

    if (t->hold_at_mw && t->hold_at_mw != w->cap_mw) /* others' claims have changed */
        tuner_hold_anew(t);
    t->hold_at_mw = w->cap_mw;
    lose_reference(t);
    regimes_mean_add(&a->hold, w);
    struct pair_seen seen = reference_check_hold_seen(w, loop_now_ns(t->o.loop));
    (void)counterfactual_on_hold(&a->pairs, &seen);
    return change_on_window(&t->change, w->time_s, w->energy_j, w->time_rse,
                            w->energy_rse) != CHANGE_NONE;
}

/* Evaluates the window of a reference check.  If others' claims allow a higher cap than
 * the old reference now, that cap becomes the reference.
 */
static void judge_check(struct tuner *t, const struct search_window *w)
{
    struct pair_seen seen = reference_seen(t, w);

    if (w->cap_mw > t->report.reference_mw + MW_PER_W)
        judge_reference(t, w);
    else if (w->cap_mw + MW_PER_W >= t->report.reference_mw)
        counterfactual_on_reference(&regimes_savings(&t->regimes)->pairs, &seen);
    tuner_end_check(t);
}

/* Passes a window of the hold to the activities: another window, or another step. */
static int ask_activities(struct tuner *t, const struct search_window *w)
{
    struct activity_now now;
    enum activity_id id;

    tuner_look(t, &now);
    now.window = w;
    switch (activities_on_hold(t->activity, &now, &id)) {
    case ACTIVITY_STAYS:
        return tuner_event(t, ON_STAY, NULL);
    case ACTIVITY_BEGINS:
        t->at = id;
        break;
    case ACTIVITY_GOES:
        tuner_hold_anew(t);
        break;
    case ACTIVITY_OVER:
        break;
    }
    return tuner_event(t, ON_GO, NULL);
}

/* Passes the window to the search; notes what a trial has shown. */
static void search_judge(struct tuner *t, const struct search_window *w, bool trial)
{
    char text[SEARCH_WHY_MAX] = "";
    uw_error err;

    int r = search_on_window(t->search, w, &err);
    if (r < 0) {
        tuner_note(&t->notes, true, "a window was skipped: %s", err.text);
    } else if (trial) {
        search_trial(t->search, w->cap_mw, t->holding ? t->report.held_mw : 0, text);
        trials_result(&t->trials, text);
    }
}

int do_judge(struct tuner *t, const void *what)
{
    const struct search_window *w = what;
    bool checks = t->at == ACTIVITY_CHECK;
    bool hold = t->step.kind == SEARCH_HOLD;
    /* Before a cap by name, also at a limit that another program has lowered. */
    bool reference = w->cap_mw >= tuner_reference_mw(t) || (!t->search && !hold);

    t->report.windows++;
    bool one = checks || !activities_moved(t->activity); /* one cap, no lock */
    if (one)
        regimes_on_cap(&t->regimes, w);
    if (checks)
        judge_check(t, w);
    else if (reference && one)
        judge_reference(t, w);
    if (hold && judge_hold(t, w))
        return changed(t, w, one);
    if (t->search && one && w->energy_rse < 1)
        search_judge(t, w, !hold && !checks);
    if (!hold || (t->search && search_step(t->search)->cap_mw != t->step.cap_mw) ||
        (one && tuner_goes_on(t)))
        return tuner_event(t, ON_GO, NULL);
    return ask_activities(t, w);
}

int do_rest(struct tuner *t, const void *what)
{
    t->void_windows = 0;
    double rest_s = rest_begin(&t->rest, loop_now_ns(t->o.loop));
    tuner_note(
        &t->notes, true,
        "the job cannot be measured at %.0f W: restoring the original cap for %.0f min",
        w_of_mw(t->step.cap_mw), rest_s / 60);
    tuner_end_check(t);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    t->holding = false;
    t->progress.told.waits_ns = loop_now_ns(t->o.loop);
    if (progress_is_inferred(&t->progress))
        (void)tuner_infer_no_more(t, what);
    t->at = ACTIVITY_REST;
    return tuner_to_original(t);
}

bool tuner_rests(const struct tuner *t)
{
    return t->state == TUNER_WAIT && rest_lasts(&t->rest, loop_now_ns(t->o.loop));
}

int do_void(struct tuner *t, const void *what)
{
    (void)what;
    return tuner_event(t, ON_VOID, NULL);
}

int do_again(struct tuner *t, const void *what)
{
    if (!t->report.ruled)
        t->void_windows = (t->void_windows + 1) % VOID_MOST;
    return do_measure(t, what);
}

/* The cap of a window: the limit in force; while it is unknown, the cap claimed, which
 * others' claims may lower.
 */
static uint32_t window_cap_mw(const struct tuner *t)
{
    uint32_t mw = t->aside_mw ? t->aside_mw : board_caps_in_force_mw(&t->caps);

    return board_caps_enforced_mw(&t->caps) || mw < t->ceiling_mw ? mw : t->ceiling_mw;
}

/* The energy of all pieces is known: evaluates the window, unless a rule's cap is in
 * force since it was closed.
 */
static int window_told(struct tuner *t)
{
    struct search_window out = {
        .cap_mw = window_cap_mw(t),
        .length = step_length(t),
    };
    bool ruled = t->report.ruled && !t->aside_mw;

    if (t->void_windows == 0 && window_energy_hidden(&t->energy))
        tuner_note(
            &t->notes, true,
            "the energy at %.0f W is unknown: steps of %.4g s are in step with the "
            "power sensor, which sees the same part of each",
            w_of_mw(out.cap_mw), t->energy.window.time_s);
    if (ruled || !window_energy_step(&t->energy, &out) ||
        (t->step.kind == SEARCH_MEASURE && !(out.energy_rse < 1)))
        return tuner_event(t, ON_VOID, NULL);
    t->void_windows = 0;
    rest_forget(&t->rest);
    return tuner_event(t, ON_JOULES, &out);
}

static void note_lost(struct tuner *t, const char *why)
{
    tuner_note(&t->notes, true, "a window was lost: %s", why);
    if (!t->told_lost)
        tuner_note(&t->notes, true,
                   "lost windows delay the results, which stay valid; if the machine is "
                   "busy, leave a processor free");
    t->told_lost = true;
}

int tuner_on_piece(const char *lost, void *user)
{
    struct tuner *t = user;

    if (t->state != TUNER_ENERGY)
        return tuner_maybe_done(t);
    if (lost)
        note_lost(t, lost);
    return t->energy.pending == 0 ? window_told(t) : 0;
}

int do_joules(struct tuner *t, const void *what)
{
    (void)what;
    window_energy_ask(&t->energy, &t->progress.window);
    return t->energy.pending == 0 ? window_told(t) : 0;
}
