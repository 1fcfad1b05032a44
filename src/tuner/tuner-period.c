/* A job that reports no steps: one period of its boards' power, or a number of its
 * launches, stands for a step; if neither is certain, the safe static cap applies.
 */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

enum {
    POLL_S = 10,       /* interval of analyses before a search */
    POLL_SAFE_S = 30,  /* the same while the safe cap is held */
    POLL_WINDOW_S = 5, /* the same in a window */
    UNKNOWN_S = 120,   /* without a result for this time, progress is unknown */
    PEAK_S = 60,       /* interval in which the peak for the safe cap is measured */
    MISSED_MOST = 3,   /* successive windows of a hold without a period */
};
#define OTHER 0.05    /* least relative change of the period at one cap: a new regime */
#define NEAR 1.15     /* largest ratio of two periods at the same cap */
#define GAP_ALIKE 0.2 /* tolerance of power in the stretch before a window */

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
    if (t->source == TUNER_BY_LAUNCHES)
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

    if (!anew && t->unit != TUNER_BY_STEPS && t->holding && hold->windows > 0) {
        want.least_s = savings_mean_time(hold) / NEAR;
        want.most_s = savings_mean_time(hold) * NEAR;
        want.from_ns = loop_now_ns(t->o.loop);
        want.first_s = every_s;
    }
    t->period.candidate_s = 0;
    t->rate.from_ns = want.from_ns;
    progress_period_listen(t->o.period, &want);
}

int do_listen(struct tuner *t, const void *what)
{
    (void)what;
    if (t->unit == TUNER_BY_STEPS) /* the held cap was found by reported steps */
        (void)tuner_blind(t);
    t->source = TUNER_BY_NOTHING;
    t->period.since_ns = loop_now_ns(t->o.loop);
    listen(t, false, POLL_S);
    return 0;
}

/* Listens for any period, with samples from now on. */
static void listen_anew(struct tuner *t)
{
    t->source = TUNER_BY_NOTHING;
    t->at = ACTIVITY_SEARCH;
    t->holding = false;
    t->period.since_ns = loop_now_ns(t->o.loop);
    listen(t, true, POLL_S);
}

int do_listen_again(struct tuner *t, const void *what)
{
    (void)what;
    listen_anew(t);
    return 0;
}

void tuner_infer_no_more(struct tuner *t)
{
    t->period.booked_ns = 0;
    listen_anew(t);
}

int do_unresume(struct tuner *t, const void *what)
{
    int r = tuner_blind(t);

    (void)what;
    listen_anew(t);
    return r;
}

int do_blind(struct tuner *t, const void *what)
{
    window_cancel(&t->window);
    tuner_note(&t->notes, true,
               "the job's steps cannot be followed any more: back to the original cap");
    tuner_end_check(t);
    t->at = ACTIVITY_SEARCH;
    regimes_turn(&t->regimes, STRETCH_SEARCH);
    t->holding = false;
    (void)snprintf(t->report.unknown, sizeof t->report.unknown,
                   "the job's steps cannot be followed any more");
    t->waits_ns = loop_now_ns(t->o.loop);
    int r = tuner_to_original(t);
    return r < 0 ? r : do_listen(t, what);
}

/* ---- progress unknown: the safe static cap ---- */

static int on_peak(const struct energy_sum_window *w, void *user)
{
    struct tuner *t = user;

    t->peaks_asked--;
    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    return w->r < 0 || !(w->peak_w > 0) || t->stopped ? 0 : tuner_event(t, ON_PEAK, w);
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
    safe_cap_why(t->report.unknown, why, sizeof why);
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
        tuner_note(&t->notes, true,
                   "the job's progress is unknown (%s): it is not capped, as a bound on "
                   "its time could not be checked",
                   t->report.unknown);
        t->at = ACTIVITY_SAFE;
        listen(t, false, POLL_SAFE_S);
        return 0;
    }
    if (energy_sum_window(t->o.meters, from, now, on_peak, t) == 0)
        t->peaks_asked++;
    return 0;
}

/* ---- before a search ---- */

int do_begin_inferred(struct tuner *t, const void *what)
{
    const struct progress_period_heard *h = what;
    bool changed, same = launch_rate_begin(&t->rate, t->unit, &changed);
    bool launches = t->rate.likely == TUNER_BY_LAUNCHES;

    t->report.changes += changed;
    if (!same && t->report.reference_mw) /* the unit of a step has changed */
        tuner_new_regime(t, NULL);
    const struct savings_mean *ref = &regimes_savings(&t->regimes)->reference;
    if (ref->windows > 0 && !t->holding &&
        fabs(h->period_s / savings_mean_time(ref) - 1) > OTHER) {
        t->report.changes++;
        tuner_new_regime(t, NULL);
    }
    if (launches)
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
    t->source = t->unit = t->rate.likely;
    t->at = ACTIVITY_SEARCH;
    t->period.missed = 0;
    if (launches)
        steps_init(&t->steps); /* estimated steps are ignored from now on */
    t->period.period_s = h->period_s;
    t->period.at_mw = t->caps.commanded_mw;
    t->period.booked_ns = h->from_ns;
    t->started = true;
    tell_known(t, h);
    return do_go(t, NULL);
}

static int heard_waiting(struct tuner *t, const struct progress_period_heard *h)
{
    if (!h->known) {
        t->period.candidate_s = 0;
        tell_unknown(t, h);
        if (s_between(t->period.since_ns, h->at_ns) < UNKNOWN_S)
            return 0;
        return t->at == ACTIVITY_SAFE ? 0 : tuner_event(t, ON_DUE, NULL);
    }
    if (tuner_rests(t))
        return 0;
    return period_window_agrees(&t->period, h) ? tuner_event(t, ON_SURE, h) : 0;
}

/* While the safe cap is held: once a period is certain, restores the original cap. */
static int heard_safe(struct tuner *t, const struct progress_period_heard *h)
{
    if (!h->known) {
        t->period.candidate_s = 0;
        tell_unknown(t, h);
        return 0;
    }
    return period_window_agrees(&t->period, h) ? tuner_event(t, ON_SURE, h) : 0;
}

int do_unsafe(struct tuner *t, const void *what)
{
    (void)what;
    tuner_note(&t->notes, true, "%s: back to the original cap",
               t->rate.likely == TUNER_BY_LAUNCHES ? "the job's launches are even now"
                                                   : "the job's power has a period now");
    listen_anew(t);
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
    bool launches = t->source == TUNER_BY_LAUNCHES;
    double settle_s = launches ? launch_rate_settle_s(&t->rate) : 0;
    struct progress_period_want want = {
        .from_ns = now + ns_of_s(fmax(t->step.settle_s, settle_s)),
        .first_s = tuner_window_s(t),
        .every_s = POLL_WINDOW_S,
        .fn = on_heard,
        .user = t,
    };

    if (t->at == ACTIVITY_SAFE) {
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
    return tuner_event(t, ON_WINDOW, NULL);
}

/* The period was lost, but not because of the cap: restores the original and listens for
 * any period.
 */
int do_unheard(struct tuner *t, const void *what)
{
    (void)what;
    tuner_note(&t->notes, true, "the job's %s (%s): back to the original cap",
               t->source == TUNER_BY_LAUNCHES ? "launches are not even any more"
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
    return tuner_event(t, ON_DEAF, NULL);
}

bool tuner_missed_many(const struct tuner *t)
{
    return t->period.missed >= (t->step.kind == SEARCH_HOLD ? MISSED_MOST : 2);
}

int do_listen_on(struct tuner *t, const void *what)
{
    (void)what;
    tuner_listen_window(t, loop_now_ns(t->o.loop)); /* the job may have paused */
    return 0;
}

int do_deaf_stall(struct tuner *t, const void *what)
{
    uint32_t in_force_mw = board_caps_in_force_mw(&t->caps);

    t->report.stalls++;
    t->period.missed = 0;
    tuner_note(&t->notes, true, "no %s at %.0f W: goes up",
               t->source == TUNER_BY_LAUNCHES ? "even launches" : "period",
               w_of_mw(in_force_mw));
    search_on_stall(t->search, in_force_mw);
    return do_go(t, what);
}

/* Whether the time per step is outside of what a cap can cause, so that the launches may
 * be other work.
 */
static bool is_other_work(const struct tuner *t, const struct progress_period_heard *h)
{
    double least_s, most_s;

    return t->source == TUNER_BY_LAUNCHES && h->known && bounds(t, &least_s, &most_s) &&
           (h->period_s < least_s || h->period_s > most_s);
}

static int heard_window(struct tuner *t, const struct progress_period_heard *h, bool gone)
{
    if (gone) {
        tell_unknown(t, h);
        return tuner_event(t, ON_LOST, NULL);
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
    enum launch_rate_news news;

    if (t->stopped)
        return 0;
    h = launch_rate_hear(&t->rate, t->source, h, &own, &news);
    if (news == LAUNCH_RATE_OTHER_UNIT) /* the last result has another unit */
        t->period.candidate_s = 0;
    if (t->state == TUNER_WAIT && t->source == TUNER_BY_NOTHING)
        return heard_waiting(t, h);
    if (t->state == TUNER_MEASURE && t->at == ACTIVITY_SAFE)
        return heard_safe(t, h);
    if (t->state == TUNER_MEASURE && is_inferred(t->source))
        return heard_window(t, h, news == LAUNCH_RATE_GONE);
    return 0;
}

/* ---- steps after all ---- */

/* The job reports steps: nothing is inferred any more. */
static void count_steps(struct tuner *t)
{
    t->source = TUNER_BY_STEPS;
    if (t->at == ACTIVITY_SAFE)
        t->at = ACTIVITY_SEARCH;
    t->rate.likely = TUNER_BY_PERIOD;
    progress_period_rest(t->o.period);
}

int do_told(struct tuner *t, const void *what)
{
    (void)what;
    count_steps(t);
    return 0;
}

static void note_better(struct tuner *t)
{
    tuner_note(&t->notes, true,
               "the job reports its steps now: the search begins again with them");
    count_steps(t);
    t->unit = TUNER_BY_STEPS;
    t->period.booked_ns = 0;
    window_cancel(&t->window);
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
