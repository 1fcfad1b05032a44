/* A job that reports no steps: one period of its boards' power, or a number of its
 * launches, stands for a step; if neither is certain, the safe static cap applies.
 */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-inside.h"

enum {
    POLL_S = 10,       /* interval of analyses before a search */
    POLL_SAFE_S = 30,  /* the same while the safe cap is held */
    POLL_WINDOW_S = 5, /* the same in a window */
    UNKNOWN_S = 120,   /* without a result for this time, progress is unknown */
    PEAK_S = 60,       /* interval in which the peak for the safe cap is measured */
    MISSED_MOST = 3,   /* successive windows of a hold without a period */
};
#define SAFE_SHARE 0.80 /* the safe cap is at least this part of the default limit */
#define OTHER 0.05      /* least relative change of the period at one cap: a new regime */
#define NEAR 1.15       /* largest ratio of two periods at the same cap */
#define GAP_ALIKE 0.2   /* tolerance of power in the stretch before a window */

static int on_heard(const struct progress_period_heard *h, void *user);

static const char *why_word(const struct progress_period_heard *h)
{
    switch (h->why) {
    case PERIOD_FOUND:
        return "a period is seen in its power, but is not certain";
    case PERIOD_FEW:
        return "too little power data yet";
    case PERIOD_FLAT:
        return "its power does not move";
    case PERIOD_ALIAS:
        return "its power repeats faster than the boards can be read";
    case PERIOD_MIXED:
        return "two patterns overlap in its power";
    default:
        return "no certain repetition in its power";
    }
}

static void tell_unknown(struct tuner *t, const struct progress_period_heard *h)
{
    if (t->inferred && t->rate.on)
        (void)snprintf(t->report.unknown, sizeof t->report.unknown, "%s",
                       t->rate.word ? t->rate.word : "it launches nothing");
    else
        (void)snprintf(t->report.unknown, sizeof t->report.unknown, "%s%s%s", why_word(h),
                       t->rate.word ? "; " : "", t->rate.word ? t->rate.word : "");
    t->report.busy = h->busy;
}

static void tell_known(struct tuner *t, const struct progress_period_heard *h)
{
    t->report.unknown[0] = '\0';
    t->report.busy = NAN;
    t->report.period_s = h->period_s;
    t->report.confidence = h->confidence;
}

/* Listens for any period (anew: in samples from now on), or, for a resumed hold, for the
 * period of the hold.
 */
static void listen(struct tuner *t, bool anew, double every_s)
{
    struct progress_period_want want = {
        .from_ns = anew ? loop_now_ns(t->o.loop) : 0,
        .anew = anew,
        .first_s = anew ? every_s : 0,
        .every_s = every_s,
        .fn = on_heard,
        .user = t,
    };

    const struct savings_mean *hold = &regimes_savings(&t->regimes)->hold;

    if (!anew && t->was_inferred && t->report.holding && hold->windows > 0) {
        want.least_s = savings_mean_time(hold) / NEAR;
        want.most_s = savings_mean_time(hold) * NEAR;
        want.from_ns = loop_now_ns(t->o.loop);
        want.first_s = every_s;
    }
    t->period.candidate_s = 0;
    t->rate.from_ns = want.from_ns;
    progress_period_listen(t->o.period, &want);
}

bool tuner_listen(struct tuner *t)
{
    if (!t->o.period || !t->search || t->state != TUNER_WAIT)
        return false;
    if (t->listening)
        return true;
    if (!t->was_inferred) /* the held cap was found by reported steps */
        (void)tuner_blind(t);
    t->listening = true;
    t->period.since_ns = loop_now_ns(t->o.loop);
    t->report.by = TUNER_BY_NOTHING;
    listen(t, false, POLL_S);
    return true;
}

void tuner_listen_again(struct tuner *t)
{
    t->safe = false;
    t->report.holding = false;
    t->state = TUNER_WAIT;
    t->period.since_ns = loop_now_ns(t->o.loop);
    listen(t, true, POLL_S);
}

void tuner_infer_no_more(struct tuner *t)
{
    t->inferred = false;
    t->report.by = TUNER_BY_NOTHING;
    t->period.booked_ns = 0;
    tuner_listen_again(t);
}

/* ---- progress unknown: the safe static cap ---- */

/* A goal with a bound on time needs a measure of time. */
static bool may_be_capped(const struct tuner *t)
{
    return t->o.goal.kind != GOAL_TIME && t->o.goal.kind != GOAL_SLOWDOWN;
}

static uint32_t safe_mw(const struct tuner *t, double peak_w)
{
    uint32_t most = board_caps_most_default_mw(&t->caps);

    peak_w = fmin(peak_w, w_of_mw(tuner_reference_mw(t))); /* readings may be too high */
    double w = fmax(SEARCH_FIRST * peak_w, SAFE_SHARE * w_of_mw(most));
    uint32_t mw = mw_of_w(ceil(w));
    return mw < tuner_reference_mw(t) ? mw : tuner_reference_mw(t);
}

static int on_peak(const struct energy_sum_window *w, void *user)
{
    struct tuner *t = user;
    char why[TUNER_TEXT];

    t->peaks_asked--;
    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    if (w->r < 0 || !(w->peak_w > 0) || t->state != TUNER_WAIT || !t->listening ||
        t->stopped)
        return 0;
    t->report.peak_w = w->peak_w;
    uint32_t mw = safe_mw(t, w->peak_w);
    (void)snprintf(why, sizeof why,
                   "the job's progress is unknown (%s): the safe cap, %.2f of its "
                   "observed peak or %.2f of the default limit",
                   t->report.unknown, SEARCH_FIRST, SAFE_SHARE);
    tuner_note(&t->notes, true, "holds %.0f W: %s", w_of_mw(mw), why);
    t->safe = true;
    return tuner_hold_unseen(t, mw, why);
}

static int go_safe(struct tuner *t, uint64_t now)
{
    uint64_t from = now - ns_of_s(PEAK_S);

    if (!may_be_capped(t)) {
        if (!t->safe)
            tuner_note(
                &t->notes, true,
                "the job's progress is unknown (%s): it is not capped, as a bound on "
                "its time could not be checked",
                t->report.unknown);
        t->safe = true;
        listen(t, false, POLL_SAFE_S);
        return 0;
    }
    if (energy_sum_window(t->o.meters, from, now, on_peak, t) == 0)
        t->peaks_asked++;
    return 0;
}

/* ---- before a search ---- */

static int begin_inferred(struct tuner *t, const struct progress_period_heard *h)
{
    bool changed, same = launch_rate_begin(&t->rate, t->was_inferred, &changed);

    t->report.changes += changed;
    if (!same && t->report.reference_mw) /* the unit of a step has changed */
        tuner_new_regime(t, NULL);
    const struct savings_mean *ref = &regimes_savings(&t->regimes)->reference;
    if (ref->windows > 0 && !t->report.holding &&
        fabs(h->period_s / savings_mean_time(ref) - 1) > OTHER) {
        t->report.changes++;
        tuner_new_regime(t, NULL);
    }
    if (t->rate.on)
        tuner_note(
            &t->notes, true,
            "the job reports no steps and launches without a pause: %.0f launches, "
            "%.3g s, stand for a step (confidence %.2f)",
            t->rate.unit, h->period_s, h->confidence);
    else
        tuner_note(
            &t->notes, true,
            "the job reports no steps: one period of its power, %.3g s, stands for a "
            "step (confidence %.2f)",
            h->period_s, h->confidence);
    t->inferred = t->was_inferred = true;
    t->safe = false;
    t->period.missed = 0;
    if (t->rate.on)
        steps_init(&t->steps); /* estimated steps are ignored from now on */
    t->period.period_s = h->period_s;
    t->period.at_mw = t->caps.commanded_mw;
    t->period.booked_ns = h->from_ns;
    t->report.by = t->rate.on ? TUNER_BY_LAUNCHES : TUNER_BY_PERIOD;
    t->report.started = true;
    tell_known(t, h);
    return tuner_next(t);
}

static int heard_waiting(struct tuner *t, const struct progress_period_heard *h)
{
    if (!h->known) {
        t->period.candidate_s = 0;
        tell_unknown(t, h);
        if (s_between(t->period.since_ns, h->at_ns) < UNKNOWN_S)
            return 0;
        if (t->report.holding && !t->safe) { /* a resumed hold without its period */
            int r = tuner_blind(t);
            tuner_listen_again(t);
            return r;
        }
        return t->safe ? 0 : go_safe(t, h->at_ns);
    }
    if (tuner_rests(t))
        return 0;
    return period_window_agrees(&t->period, h) ? begin_inferred(t, h) : 0;
}

/* While the safe cap is held: once a period is certain, restores the original cap. */
static int heard_safe(struct tuner *t, const struct progress_period_heard *h)
{
    if (!h->known) {
        t->period.candidate_s = 0;
        tell_unknown(t, h);
        return 0;
    }
    if (!period_window_agrees(&t->period, h))
        return 0;
    tuner_note(&t->notes, true, "%s: back to the original cap",
               t->rate.on ? "the job's launches are even now"
                          : "the job's power has a period now");
    tuner_listen_again(t);
    return tuner_to_original(t);
}

/* ---- windows ---- */

static bool bounds(const struct tuner *t, double *ret_least_s, double *ret_most_s)
{
    return period_window_bounds(&t->period, &t->regimes, board_caps_in_force_mw(&t->caps),
                                ret_least_s, ret_most_s);
}

void tuner_listen_window(struct tuner *t, uint64_t now)
{
    double settle_s = t->inferred ? launch_rate_settle_s(&t->rate) : 0;
    struct progress_period_want want = {
        .from_ns = now + ns_of_s(fmax(t->step.settle_s, settle_s)),
        .first_s = tuner_window_s(t),
        .every_s = POLL_WINDOW_S,
        .fn = on_heard,
        .user = t,
    };

    if (t->safe) {
        listen(t, true, POLL_SAFE_S);
        return;
    }
    want.first_s = fmax(want.first_s, 3 * t->period.period_s);
    want.anew = !bounds(t, &want.least_s, &want.most_s);
    t->period.since_ns = t->rate.from_ns = want.from_ns;
    progress_period_listen(t->o.period, &want);
}

/* Books the window's stretch, and the stretch before it if its power is plausible for the
 * job.
 */
static void book(struct tuner *t, const struct progress_period_heard *h)
{
    uint32_t in_force_mw = board_caps_in_force_mw(&t->caps);
    double mean_w = t->report.demand_w * (double)t->caps.n;
    double share = in_force_mw / fmax(1, t->report.reference_mw);
    struct stretch_done d[2];

    period_window_close(&t->period, h, in_force_mw, d);
    d[0].kind = d[1].kind = t->regimes.stretch.kind;
    if (d[0].end_ns && mean_w > 0)
        regimes_book(&t->regimes, &d[0], (1 - GAP_ALIKE) * fmin(1, share) * mean_w,
                     (1 + GAP_ALIKE) * mean_w);
    if (d[1].end_ns)
        regimes_book(&t->regimes, &d[1], 0, 0);
}

static int close_window(struct tuner *t, const struct progress_period_heard *h)
{
    struct step_mark from = {.steps = 1, .at_ns = h->from_ns},
                     to = {.steps = 1 + (uint64_t)h->cycles, .at_ns = h->to_ns};

    progress_period_rest(t->o.period);
    tell_known(t, h);
    book(t, h);
    t->window.state = WINDOW_CLOSED;
    t->window.n_pieces = 1;
    t->window.piece[0] = (struct window_piece){from, to};
    t->window.steps = h->cycles;
    t->window.time_s = h->period_s;
    t->window.time_rse = h->rse;
    return tuner_ask_window(t);
}

/* The period was lost, but not because of the cap: restores the original and listens for
 * any period.
 */
static int lost(struct tuner *t)
{
    tuner_note(&t->notes, true, "the job's %s (%s): back to the original cap",
               t->rate.on ? "launches are not even any more"
                          : "period is not seen any more",
               t->report.unknown);
    tuner_end_check(t);
    window_cancel(&t->window);
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    tuner_infer_no_more(t);
    return tuner_to_original(t);
}

/* No period was found in this window. */
static int missed(struct tuner *t, const struct progress_period_heard *h)
{
    tell_unknown(t, h);
    t->period.missed++;
    t->period.booked_ns = 0; /* steps since then are unknown */
    if (t->check.on) {
        tuner_end_check(t);
        window_cancel(&t->window);
        return tuner_next(t);
    }
    if (t->period.missed < (t->step.kind == SEARCH_HOLD ? MISSED_MOST : 2)) {
        tuner_listen_window(t, h->at_ns); /* the job may have paused */
        return 0;
    }
    bool below = board_caps_in_force_mw(&t->caps) + MW_PER_W < tuner_reference_mw(t);
    if (t->step.kind == SEARCH_HOLD || !below)
        return lost(t);
    t->report.stalls++;
    t->period.missed = 0;
    tuner_note(&t->notes, true, "no %s at %.0f W: goes up",
               t->rate.on ? "even launches" : "period",
               w_of_mw(board_caps_in_force_mw(&t->caps)));
    search_on_stall(t->search, board_caps_in_force_mw(&t->caps));
    return tuner_next(t);
}

/* Whether the time per step is outside of what a cap can cause, so that the launches may
 * be other work.
 */
static bool is_other_work(const struct tuner *t, const struct progress_period_heard *h)
{
    double least_s, most_s;

    return t->rate.on && h->known && bounds(t, &least_s, &most_s) &&
           (h->period_s < least_s || h->period_s > most_s);
}

static int heard_window(struct tuner *t, const struct progress_period_heard *h)
{
    if (t->rate.on && t->rate.gone) {
        tell_unknown(t, h);
        return lost(t);
    }
    switch (period_window_judge(&t->period, h, !is_other_work(t, h), tuner_window_s(t))) {
    case PERIOD_WINDOW_ENOUGH:
        return close_window(t, h);
    case PERIOD_WINDOW_MISSED:
        return missed(t, h);
    default:
        return 0;
    }
}

static int on_heard(const struct progress_period_heard *h, void *user)
{
    struct tuner *t = user;
    struct progress_period_heard own;
    bool other;

    if (t->stopped)
        return 0;
    h = launch_rate_hear(&t->rate, t->inferred, h, &own, &other);
    if (other) /* the last result has another unit */
        t->period.candidate_s = 0;
    if (t->state == TUNER_WAIT && t->listening)
        return heard_waiting(t, h);
    if (t->state == TUNER_WINDOW && t->safe)
        return heard_safe(t, h);
    if (t->state == TUNER_WINDOW && t->inferred)
        return heard_window(t, h);
    return 0;
}

bool tuner_on_told(struct tuner *t)
{
    bool on_the_way =
        t->state == TUNER_WALK || t->state == TUNER_WINDOW || t->state == TUNER_ENERGY;

    if (!t->listening || t->state >= TUNER_LEFT || t->stopped)
        return false;
    if (t->state == TUNER_WAIT) {
        t->listening = t->safe = false;
        t->report.by = TUNER_BY_STEPS;
        t->rate.on = false;
        progress_period_rest(t->o.period);
        return false;
    }
    if (!on_the_way)
        return t->inferred;
    tuner_note(&t->notes, true,
               "the job reports its steps now: the search begins again with them");
    bool inferred = t->inferred;
    t->listening = t->safe = t->inferred = t->was_inferred = false;
    t->rate.in_regime = t->rate.on = false;
    t->report.by = TUNER_BY_STEPS;
    t->period.booked_ns = 0;
    progress_period_rest(t->o.period);
    window_cancel(&t->window);
    if (inferred) {
        tuner_end_check(t);
        tuner_new_regime(t, NULL);
        (void)tuner_next(t);
    } else { /* the safe cap was held */
        t->report.holding = false;
        t->state = TUNER_WAIT;
        (void)tuner_to_original(t);
    }
    return true;
}
