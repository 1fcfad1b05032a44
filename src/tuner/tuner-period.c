/* Progress of a job that tells of none: the period of its boards' power, or so many of
 * its launches (tuner-rate.c), stand for a step, or the job is told that nothing does.
 */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/tuner-inside.h"

enum {
    LOOK_S = 10,         /* between looks for any period */
    LOOK_SAFE_S = 30,    /* … while the safe cap is held */
    LOOK_WINDOW_S = 5,   /* … for the one that is known, in a window */
    UNKNOWN_S = 120,     /* listened for so long in vain: unknown */
    PEAK_S = 60,         /* over which the peak for the safe cap is seen */
    WINDOW_LEAST_S = 60, /* a window without a period is given up after this, … */
    WINDOW_MOST_S = 900,
    WINDOW_PERIODS = 12, /* … and so many periods */
    DEAF_MOST = 3,       /* windows of a hold in a row */
};
#define SAFE_SHARE 0.80 /* of the default limit: no lower, whatever the peak was */
#define SAME 0.02       /* two looks agree */
#define OTHER 0.05      /* a period at the same cap that is another job's, so to say */
#define TARGET_RSE 0.003
#define COARSE_RSE 0.01
#define FASTER 0.985 /* than at the reference no cap makes a job */
#define NEAR 1.15    /* the same cap again */
#define SLOWER 1.3   /* than in proportion to the cap neither */
#define GAP_ALIKE 0.2

static int on_heard(const struct progress_period_heard *h, void *user);

static const char *why_word(const struct progress_period_heard *h)
{
    switch (h->why) {
    case PERIOD_FOUND:
        return "a period is seen in its power, but not surely";
    case PERIOD_FEW:
        return "too little of it was seen yet";
    case PERIOD_FLAT:
        return "its power does not move";
    case PERIOD_ALIAS:
        return "its power repeats faster than the boards can be read";
    case PERIOD_MIXED:
        return "two patterns lie over each other in its power";
    default:
        return "nothing in its power repeats surely";
    }
}

static void tell_unknown(struct tuner *t, const struct progress_period_heard *h)
{
    if (t->beat && t->rate.on)
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

/* For any period (anew: in what is heard from now on), or for that of a hold resumed. */
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

    const struct savings_mean *hold = &tuner_savings(t)->hold;

    if (!anew && t->known_by_period && t->report.holding && hold->windows > 0) {
        want.least_s = savings_mean_time(hold) / NEAR;
        want.most_s = savings_mean_time(hold) * NEAR;
        want.from_ns = loop_now_ns(t->o.loop);
        want.first_s = every_s;
    }
    t->heard_s = 0;
    t->rate.from_ns = want.from_ns;
    progress_period_listen(t->o.pulse, &want);
}

bool tuner_listen(struct tuner *t)
{
    if (!t->o.pulse || !t->search || t->state != TUNER_WAIT)
        return false;
    if (t->listening)
        return true;
    if (!t->known_by_period) /* what was held was found by steps */
        (void)tuner_blind(t);
    t->listening = true;
    t->listen_ns = loop_now_ns(t->o.loop);
    t->report.by = TUNER_BY_NOTHING;
    listen(t, false, LOOK_S);
    return true;
}

void tuner_listen_anew(struct tuner *t)
{
    t->safe = false;
    t->report.holding = false;
    t->state = TUNER_WAIT;
    t->listen_ns = loop_now_ns(t->o.loop);
    listen(t, true, LOOK_S);
}

void tuner_beat_over(struct tuner *t)
{
    t->beat = false;
    t->report.by = TUNER_BY_NOTHING;
    t->beat_ns = 0;
    tuner_listen_anew(t);
}

/* ---- nothing is sure: the safe static rule ---- */

/* Can it be kept in view?  A bound on time cannot, without a measure of time. */
static bool may_be_capped(const struct tuner *t)
{
    return t->o.goal.kind != GOAL_TIME && t->o.goal.kind != GOAL_SLOWDOWN;
}

static uint32_t safe_mw(const struct tuner *t, double peak_w)
{
    uint32_t most = 0;

    for (size_t i = 0; i < t->o.n; i++)
        if (board_view(t->o.boards[i])->limits.default_mw > most)
            most = board_view(t->o.boards[i])->limits.default_mw;
    peak_w = fmin(peak_w, w_of_mw(tuner_reference_mw(t))); /* a reading may err upwards */
    double w = fmax(SEARCH_FIRST * peak_w, SAFE_SHARE * w_of_mw(most));
    uint32_t mw = mw_of_w(ceil(w));
    return mw < tuner_reference_mw(t) ? mw : tuner_reference_mw(t);
}

static int on_peak(const struct energy_sum_window *w, void *user)
{
    struct tuner *t = user;
    char why[TUNER_TEXT];

    t->stretches--;
    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    if (w->r < 0 || !(w->peak_w > 0) || t->state != TUNER_WAIT || !t->listening ||
        t->stopped)
        return 0;
    t->report.peak_w = w->peak_w;
    uint32_t mw = safe_mw(t, w->peak_w);
    (void)snprintf(why, sizeof why,
                   "its progress is unknown (%s): the safe cap, %.2f of its observed "
                   "peak or %.2f of the default limit",
                   t->report.unknown, SEARCH_FIRST, SAFE_SHARE);
    tuner_note(t, true, "holds %.0f W: %s", w_of_mw(mw), why);
    t->safe = true;
    return tuner_hold_unseen(t, mw, why);
}

static int go_safe(struct tuner *t, uint64_t now)
{
    uint64_t from = now - ns_of_s(PEAK_S);

    if (!may_be_capped(t)) {
        if (!t->safe)
            tuner_note(t, true,
                       "its progress is unknown (%s): a bound on its time could not be "
                       "kept in view, so it is not capped",
                       t->report.unknown);
        t->safe = true;
        listen(t, false, LOOK_SAFE_S);
        return 0;
    }
    if (energy_sum_window(t->o.meters, from, now, on_peak, t) == 0)
        t->stretches++;
    return 0;
}

/* ---- before a search: any period ---- */

static int begin_beat(struct tuner *t, const struct progress_period_heard *h)
{
    bool same = tuner_rate_begins(t);
    if (!same && t->report.reference_mw) /* other units */
        tuner_new_regime(t, NULL);
    const struct savings_mean *ref = &tuner_savings(t)->reference;
    if (ref->windows > 0 && !t->report.holding &&
        fabs(h->period_s / savings_mean_time(ref) - 1) > OTHER) {
        t->report.changes++;
        tuner_new_regime(t, NULL);
    } else if (ref->windows > 0) {
        t->beat_ref_s = savings_mean_time(ref);
    }
    if (t->rate.on)
        tuner_note(t, true,
                   "it tells of no steps, and its launches never rest: %.0f of them, "
                   "%.3g s, stand for a step (confidence %.2f)",
                   t->rate.unit, h->period_s, h->confidence);
    else
        tuner_note(t, true,
                   "it tells of no steps: one period of its power, %.3g s, stands for a "
                   "step (confidence %.2f)",
                   h->period_s, h->confidence);
    t->beat = t->known_by_period = true;
    t->safe = false;
    t->deaf = 0;
    if (t->rate.on)
        steps_init(&t->steps); /* none are taken from now on */
    t->beat_s = h->period_s;
    t->beat_mw = t->commanded_mw;
    t->beat_ns = h->from_ns;
    t->report.by = t->rate.on ? TUNER_BY_LAUNCHES : TUNER_BY_PERIOD;
    t->report.started = true;
    tell_known(t, h);
    return tuner_next(t);
}

static int heard_waiting(struct tuner *t, const struct progress_period_heard *h)
{
    if (!h->known) {
        t->heard_s = 0;
        tell_unknown(t, h);
        if (s_between(t->listen_ns, h->at_ns) < UNKNOWN_S)
            return 0;
        if (t->report.holding && !t->safe) { /* resumed, and not seen again */
            int r = tuner_blind(t);
            tuner_listen_anew(t);
            return r;
        }
        return t->safe ? 0 : go_safe(t, h->at_ns);
    }
    if (tuner_rests(t))
        return 0;
    if (t->heard_s > 0 && fabs(h->period_s / t->heard_s - 1) <= SAME + 3 * h->rse)
        return begin_beat(t, h);
    t->heard_s = h->period_s;
    return 0;
}

/* The safe cap is held: a period that shows under it sends the job to its reference. */
static int heard_safe(struct tuner *t, const struct progress_period_heard *h)
{
    if (!h->known) {
        t->heard_s = 0;
        tell_unknown(t, h);
        return 0;
    }
    if (!(t->heard_s > 0 && fabs(h->period_s / t->heard_s - 1) <= SAME + 3 * h->rse)) {
        t->heard_s = h->period_s;
        return 0;
    }
    tuner_note(t, true, "%s: back to the original cap",
               t->rate.on ? "its launches come evenly now"
                          : "a period shows in its power");
    tuner_listen_anew(t);
    return tuner_to_original(t);
}

/* ---- windows ---- */

static uint32_t in_force(const struct tuner *t)
{
    return t->enforced_mw ? t->enforced_mw : t->commanded_mw;
}

/* Where the period can be at the cap in force: near what it was there, else between what
 * it was at the next higher and the next lower cap that were measured.  False: anywhere.
 */
static bool bounds(const struct tuner *t, double *ret_least_s, double *ret_most_s)
{
    uint32_t mw = in_force(t), below_mw = 0, above_mw = UINT32_MAX;

    if (t->beat_mw == mw && t->beat_s > 0) {
        *ret_least_s = t->beat_s / NEAR;
        *ret_most_s = t->beat_s * NEAR;
        return true;
    }
    for (size_t i = 0; i < t->report.n_caps; i++) {
        const struct tuner_cap *c = &t->caps[i];
        double s = savings_mean_time(&c->mean);
        if (c->cap_mw + MW_PER_W >= mw && c->cap_mw < above_mw) {
            above_mw = c->cap_mw;
            *ret_least_s = s * FASTER;
        }
        if (c->cap_mw <= mw + MW_PER_W && c->cap_mw > below_mw) {
            below_mw = c->cap_mw;
            *ret_most_s = s / FASTER;
        }
    }
    if (above_mw == UINT32_MAX && below_mw == 0)
        return false;
    if (above_mw == UINT32_MAX) /* raised: no slower than below, and not much faster */
        *ret_least_s = *ret_most_s / SLOWER * below_mw / mw;
    if (below_mw == 0)
        *ret_most_s = *ret_least_s / FASTER * SLOWER * above_mw / mw;
    return true;
}

void tuner_hear_window(struct tuner *t, uint64_t now)
{
    struct progress_period_want want = {
        .from_ns = now + ns_of_s(fmax(t->step.settle_s, tuner_rate_settle_s(t))),
        .first_s = t->o.window_s > 0 ? t->o.window_s : 10,
        .every_s = LOOK_WINDOW_S,
        .fn = on_heard,
        .user = t,
    };

    if (t->safe) {
        listen(t, true, LOOK_SAFE_S);
        return;
    }
    want.first_s = fmax(want.first_s, 3 * t->beat_s);
    want.anew = !bounds(t, &want.least_s, &want.most_s);
    t->listen_ns = t->rate.from_ns = want.from_ns;
    progress_period_listen(t->o.pulse, &want);
}

static double mean_w(const struct tuner *t)
{
    return t->report.demand_w * (double)t->o.n;
}

/* The stretch before the window, where it drew as a job between the two periods would,
 * and the window's own.
 */
static void book(struct tuner *t, const struct progress_period_heard *h)
{
    struct stretch_done d = {
        .kind = t->stretch.kind, .begin_ns = t->beat_ns, .end_ns = h->from_ns};

    if (t->beat_ns && h->from_ns > t->beat_ns && mean_w(t) > 0) {
        d.steps = s_between(d.begin_ns, d.end_ns) * (1 / t->beat_s + 1 / h->period_s) / 2;
        double share = in_force(t) / fmax(1, t->report.reference_mw);
        tuner_book(t, &d, (1 - GAP_ALIKE) * fmin(1, share) * mean_w(t),
                   (1 + GAP_ALIKE) * mean_w(t));
    }
    d.begin_ns = h->from_ns > t->beat_ns ? h->from_ns : t->beat_ns;
    d.end_ns = h->to_ns;
    t->beat_ns = h->to_ns;
    if (d.end_ns <= d.begin_ns)
        return;
    d.steps = s_between(d.begin_ns, d.end_ns) / h->period_s;
    tuner_book(t, &d, 0, 0);
}

static int close_window(struct tuner *t, const struct progress_period_heard *h)
{
    struct step_mark from = {.steps = 1, .at_ns = h->from_ns},
                     to = {.steps = 1 + (uint64_t)h->cycles, .at_ns = h->to_ns};

    progress_period_rest(t->o.pulse);
    tell_known(t, h);
    book(t, h);
    t->deaf = 0;
    t->beat_s = h->period_s;
    t->beat_mw = in_force(t);
    if (t->step.kind == SEARCH_MEASURE && t->beat_mw + MW_PER_W >= tuner_reference_mw(t))
        t->beat_ref_s = h->period_s;
    t->window.state = WINDOW_CLOSED;
    t->window.n_pieces = 1;
    t->window.piece[0] = (struct window_piece){from, to};
    t->window.steps = h->cycles;
    t->window.time_s = h->period_s;
    t->window.time_rse = h->rse;
    return tuner_ask_window(t);
}

/* It has no period any more, at a cap that is not to blame: back to the original, and
 * listened to as at first.
 */
static int lost(struct tuner *t)
{
    tuner_note(t, true, "%s no more (%s): back to the original cap",
               t->rate.on ? "its launches tell" : "its period is seen",
               t->report.unknown);
    reference_check_over(t);
    window_cancel(&t->window);
    tuner_turn(t, STRETCH_SEARCH);
    tuner_beat_over(t);
    return tuner_to_original(t);
}

/* No period came up in this window. */
static int deaf(struct tuner *t, const struct progress_period_heard *h)
{
    tell_unknown(t, h);
    t->deaf++;
    t->beat_ns = 0; /* what it did meanwhile is not known */
    if (t->visiting) {
        reference_check_over(t);
        window_cancel(&t->window);
        return tuner_next(t);
    }
    if (t->deaf < (t->step.kind == SEARCH_HOLD ? DEAF_MOST : 2)) {
        tuner_hear_window(t, h->at_ns); /* it may have paused */
        return 0;
    }
    bool below = in_force(t) + MW_PER_W < tuner_reference_mw(t);
    if (t->step.kind == SEARCH_HOLD || !below)
        return lost(t);
    t->report.stalls++;
    t->deaf = 0;
    tuner_note(t, true, "no %s at %.0f W: goes up",
               t->rate.on ? "even launches" : "period", w_of_mw(in_force(t)));
    search_on_stall(t->search, in_force(t));
    return tuner_next(t);
}

static bool is_enough(const struct tuner *t, const struct progress_period_heard *h)
{
    double window_s = t->o.window_s > 0 ? t->o.window_s : 10;
    double heard_s = s_between(t->listen_ns, h->at_ns);

    if (!h->known || s_between(h->from_ns, h->to_ns) < 0.7 * window_s)
        return false;
    return h->rse <= TARGET_RSE || heard_s >= 6 * window_s ||
           (heard_s >= 3 * window_s && h->rse <= COARSE_RSE);
}

/* Launches whose time no cap can have made: perhaps of other work. */
static bool is_other_work(const struct tuner *t, const struct progress_period_heard *h)
{
    double least_s, most_s;

    return t->rate.on && h->known && bounds(t, &least_s, &most_s) &&
           (h->period_s < least_s || h->period_s > most_s);
}

static int heard_window(struct tuner *t, const struct progress_period_heard *h)
{
    double window_s = t->o.window_s > 0 ? t->o.window_s : 10;
    double most = fmax(WINDOW_LEAST_S, fmax(7 * window_s, WINDOW_PERIODS * t->beat_s));

    if (t->rate.on && t->rate.gone) {
        tell_unknown(t, h);
        return lost(t);
    }
    if (is_enough(t, h) && !is_other_work(t, h))
        return close_window(t, h);
    if (s_between(t->listen_ns, h->at_ns) >= fmin(most, WINDOW_MOST_S))
        return deaf(t, h);
    return 0;
}

static int on_heard(const struct progress_period_heard *h, void *user)
{
    struct tuner *t = user;
    struct progress_period_heard own;

    if (t->stopped)
        return 0;
    h = tuner_rate_hear(t, h, &own);
    if (t->state == TUNER_WAIT && t->listening)
        return heard_waiting(t, h);
    if (t->state == TUNER_WINDOW && t->safe)
        return heard_safe(t, h);
    if (t->state == TUNER_WINDOW && t->beat)
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
        progress_period_rest(t->o.pulse);
        return false;
    }
    if (!on_the_way)
        return t->beat;
    tuner_note(t, true,
               "it tells of its steps now: they count, and it is looked at anew");
    bool beat = t->beat;
    t->listening = t->safe = t->beat = t->known_by_period = false;
    t->rate.in_regime = t->rate.on = false;
    t->report.by = TUNER_BY_STEPS;
    t->beat_ns = 0;
    progress_period_rest(t->o.pulse);
    window_cancel(&t->window);
    if (beat) {
        reference_check_over(t);
        tuner_new_regime(t, NULL);
        (void)tuner_next(t);
    } else { /* the safe cap was held */
        t->report.holding = false;
        t->state = TUNER_WAIT;
        (void)tuner_to_original(t);
    }
    return true;
}
