#include <math.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

enum { MOST_WINDOWS = 3 };
#define REST_S 300.0 /* length of the first rest; doubled for each further one */
#define REST_MOST_S 3600.0
#define TARGET_RSE 0.003 /* of the time per step in a window of length 1 */

/* The length of the window, relative to window_s.  1 after a void window, so that a cap
 * that cannot be measured is not in force for long.
 */
static unsigned step_length(const struct tuner *t)
{
    return t->step.length && t->void_windows == 0 ? t->step.length : 1;
}

int do_measure(struct tuner *t, const void *what)
{
    uint64_t now = loop_now_ns(t->o.loop);
    unsigned length = step_length(t);
    double window_s = length * tuner_window_s(t);
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
    window_arm(&t->window, &rule, now);
    if (is_inferred(t->source) || t->at == ACTIVITY_SAFE)
        tuner_listen_window(t, now);
    return 0;
}

/* An earlier regime is back, and the search holds the cap found then: copies that
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
    gap_check_forget(&t->gap);
    if (t->at == ACTIVITY_GAP)
        t->at = ACTIVITY_SEARCH;
    lock_search_forget(&t->lock);
    if (!t->search)
        return;
    search_on_change(t->search, now);
    if (search_step(t->search)->kind == SEARCH_HOLD)
        take_back(t);
}

/* The job has changed, as window w shows.  one: w has one cap on all boards. */
static int changed(struct tuner *t, const struct search_window *w, bool one)
{
    t->report.changes++;
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
    return reference_check_seen(a->hold.windows > 0 ? a : NULL, t->begun_ns,
                                &t->energy.window, w, loop_now_ns(t->o.loop));
}

/* Evaluates a window at the highest cap possible now, which others' claims may have
 * lowered; the highest such cap so far is the reference.
 */
static void judge_reference(struct tuner *t, const struct search_window *w)
{
    struct savings *a = regimes_savings(&t->regimes);
    double boards = (double)t->caps.n;

    if (a->reference.windows > 0 && w->cap_mw + MW_PER_W < t->report.reference_mw)
        return;
    if (w->cap_mw > t->report.reference_mw + MW_PER_W)
        savings_reference_anew(a);
    if (a->reference.windows == 0)
        t->report.reference_mw = w->cap_mw;
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

/* Evaluates a window of the hold.  True: the job has changed permanently. */
static bool judge_hold(struct tuner *t, const struct search_window *w)
{
    struct savings *a = regimes_savings(&t->regimes);

    if (t->hold_at_mw != w->cap_mw) { /* others' claims have changed */
        if (t->hold_at_mw)
            change_init(&t->change, 0);
        if (t->hold_at_mw)
            savings_hold_anew(a);
        t->hold_at_mw = w->cap_mw;
    }
    regimes_mean_add(&a->hold, w);
    struct pair_seen seen = reference_check_hold_seen(w, loop_now_ns(t->o.loop));
    (void)counterfactual_on_hold(&a->pairs, &seen);
    return change_on_unsure(&t->change, w->time_s, w->energy_j, w->time_rse,
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

/* The shortest window of the hold. */
static double hold_window_s(struct tuner *t)
{
    double step_s = savings_mean_time(&regimes_savings(&t->regimes)->hold);

    return fmax(tuner_window_s(t), LEAST_STEPS * step_s);
}

/* Begins a check of the reference, if that is due. */
static bool check_reference(struct tuner *t)
{
    struct reference_check_hold hold = {
        .savings = regimes_savings(&t->regimes),
        .trained_s = regimes_trained_s(&t->regimes),
        .window_s = hold_window_s(t),
        .kept_s = t->energy.window.kept_s,
    };

    if (!t->search || slack_search_measures(&t->slack) ||
        lock_search_measures(&t->lock) ||
        tuner_reference_mw(t) < t->report.held_mw + MW_PER_W ||
        tuner_reference_mw(t) + MW_PER_W < t->report.reference_mw ||
        !reference_check_begin(&t->check, &hold, loop_now_ns(t->o.loop)))
        return false;
    t->at = ACTIVITY_CHECK;
    return true;
}

/* Begins a check of a gap between measured caps, if that is due. */
static bool check_gap(struct tuner *t)
{
    if (!t->search || slack_search_moved(&t->slack) || slack_search_measures(&t->slack) ||
        lock_search_moved(&t->lock) || lock_search_measures(&t->lock))
        return false;
    double worse =
        gap_check_allows(&t->gap, regimes_savings(&t->regimes), hold_window_s(t));
    if (!(worse > 0) || !search_probe_gap(t->search, worse))
        return false;
    gap_check_begin(&t->gap, t->report.windows, loop_now_ns(t->o.loop));
    t->at = ACTIVITY_GAP;
    return true;
}

/* Passes a window of the hold to slack; *ret_moved: the boards' caps change. */
static int on_slack(struct tuner *t, const struct search_window *w, bool *ret_moved)
{
    struct slack_search_seen seen = {
        .search = t->search,
        .savings = regimes_savings(&t->regimes),
        .cap_mw = t->step.cap_mw,
        .window = w,
        .board_j = t->energy.board_j,
        .took_s = t->energy.window.time_s * t->energy.window.steps,
        .now_ns = loop_now_ns(t->o.loop),
    };
    struct tuner_split split;

    *ret_moved = false;
    if (!t->search || is_inferred(t->source)) /* inferred steps are too inaccurate */
        return 0;
    split.verdict =
        slack_search_on_window(&t->slack, &seen, &split.from_mw, &split.to_mw);
    if (split.verdict == SLACK_SEARCH_STAYS)
        return 0;
    *ret_moved = true;
    return split.verdict == SLACK_SEARCH_OVER ? tuner_event(t, ON_GO, NULL)
                                              : tuner_event(t, ON_SPLIT, &split);
}

/* Passes a window of the hold to the locks of the clock; *ret_moved as above. */
static int on_lock(struct tuner *t, const struct search_window *w, bool *ret_moved)
{
    struct lock_search_seen seen = {
        .search = t->search,
        .savings = regimes_savings(&t->regimes),
        .cap_mw = t->step.cap_mw,
        .reference_mw = tuner_reference_mw(t),
        .window = w,
    };

    *ret_moved = false;
    if (is_inferred(t->source))
        return 0;
    enum lock_search_verdict v = lock_search_on_window(&t->lock, &seen);
    if (v == LOCK_SEARCH_STAYS)
        return 0;
    *ret_moved = true;
    if (v == LOCK_SEARCH_GOES)
        tuner_hold_anew(t);
    return tuner_event(t, ON_GO, NULL);
}

int do_judge(struct tuner *t, const void *what)
{
    const struct search_window *w = what;
    bool checks = t->at == ACTIVITY_CHECK;
    bool hold = t->step.kind == SEARCH_HOLD;
    uw_error err;

    t->report.windows++;
    bool locked = lock_search_moved(&t->lock) && !checks;
    bool one =
        checks || (!slack_search_moved(&t->slack) && !locked); /* one cap, no lock */
    if (one)
        regimes_on_cap(&t->regimes, w);
    if (checks)
        judge_check(t, w);
    else if (w->cap_mw >= tuner_reference_mw(t) && !locked)
        judge_reference(t, w);
    if (hold && judge_hold(t, w))
        return changed(t, w, one);
    if (t->search && one && w->energy_rse < 1) {
        int r = search_on_window(t->search, w, &err);
        if (r < 0)
            tuner_note(&t->notes, true, "a window was left out: %s", err.text);
    }
    if (!hold || (t->search && search_step(t->search)->cap_mw != t->step.cap_mw))
        return tuner_event(t, ON_GO, NULL);
    bool moved;
    int r = on_slack(t, w, &moved);
    if (r < 0 || moved)
        return r;
    r = on_lock(t, w, &moved);
    if (r < 0 || moved)
        return r;
    bool away = check_reference(t) || check_gap(t);
    return tuner_event(t, away ? ON_GO : ON_STAY, NULL);
}

int do_rest(struct tuner *t, const void *what)
{
    (void)what;
    t->void_windows = 0;
    t->rest_s = t->rest_s > 0 ? fmin(2 * t->rest_s, REST_MOST_S) : REST_S;
    t->rest_ns = loop_now_ns(t->o.loop) + ns_of_s(t->rest_s);
    tuner_note(&t->notes, true,
               "the job cannot be measured at %.0f W: the original cap for %.0f min",
               w_of_mw(t->step.cap_mw), t->rest_s / 60);
    tuner_end_check(t);
    t->at = ACTIVITY_SEARCH;
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    t->holding = false;
    t->has_begun = false;
    if (is_inferred(t->source))
        tuner_infer_no_more(t);
    return tuner_to_original(t);
}

bool tuner_rests(const struct tuner *t)
{
    return t->state == TUNER_WAIT && loop_now_ns(t->o.loop) < t->rest_ns;
}

int do_void(struct tuner *t, const void *what)
{
    (void)what;
    return tuner_event(t, ON_VOID, NULL);
}

int do_again(struct tuner *t, const void *what)
{
    t->void_windows++;
    return do_measure(t, what);
}

int do_again_anew(struct tuner *t, const void *what)
{
    t->void_windows = 0;
    return do_measure(t, what);
}

int do_named_anew(struct tuner *t, const void *what)
{
    t->void_windows = 0;
    return do_named(t, what);
}

/* The energy of all pieces is known: evaluates the window. */
static int window_told(struct tuner *t)
{
    struct search_window out = {
        .cap_mw = board_caps_in_force_mw(&t->caps),
        .length = step_length(t),
    };

    if (out.cap_mw > t->ceiling_mw)
        out.cap_mw = t->ceiling_mw; /* others' claims limit the cap */
    if (!window_energy_step(&t->energy, &out) ||
        (t->step.kind == SEARCH_MEASURE && !(out.energy_rse < 1)))
        return tuner_event(t, ON_VOID, NULL);
    t->void_windows = 0;
    t->rest_s = 0;
    return tuner_event(t, ON_JOULES, &out);
}

int tuner_on_piece(const char *lost, void *user)
{
    struct tuner *t = user;

    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    if (t->state != TUNER_ENERGY)
        return 0;
    if (lost)
        tuner_note(&t->notes, true, "a window was lost: %s", lost);
    return t->energy.pending == 0 ? window_told(t) : 0;
}

int do_joules(struct tuner *t, const void *what)
{
    (void)what;
    window_energy_ask(&t->energy, &t->window);
    return t->energy.pending == 0 ? window_told(t) : 0;
}

int tuner_on_window(struct tuner *t, uint64_t now)
{
    enum window_state was = t->window.state;
    size_t pieces = t->window.n_pieces;
    enum window_state is = window_feed(&t->window, &t->steps, now);

    if (is == WINDOW_OPEN && was != WINDOW_OPEN)
        energy_sum_mark(t->o.meters, t->window.from.at_ns);
    if (t->window.n_pieces > pieces)
        energy_sum_mark(t->o.meters, t->window.piece[t->window.n_pieces - 1].to.at_ns);
    return is == WINDOW_CLOSED ? tuner_event(t, ON_WINDOW, NULL) : 0;
}
