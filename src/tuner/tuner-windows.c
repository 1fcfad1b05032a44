#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "tuner/tuner-inside.h"

enum {
    LOOK_TRIES = 8,   /* windows of a hold, from one try to the next */
    USELESS_MOST = 8, /* windows in a row that tell nothing */
};
#define Z95 1.96
#define REST_S 300.0 /* at the original where no window tells anything; then twice … */
#define REST_MOST_S 3600.0
#define TARGET_RSE 0.003 /* of an ordinary window's time a step */

/* ---- stretches ---- */

struct stretch_ask {
    struct stretch_ask *next;
    struct tuner *t;
    struct stretch_done d;
    double least_w, most_w;
    size_t regime; /* of all that the job has had */
};

/* Its account; of one that was merged, that of the oldest. */
static struct savings *savings_of(struct tuner *t, size_t regime)
{
    return &t->regime[regime > t->merged ? regime - t->merged : 0];
}

static bool in_bounds(const struct stretch_ask *ask, const struct energy_sum_window *w)
{
    double power_w = w->energy_j / s_between(w->begin_ns, w->end_ns);

    return power_w >= ask->least_w && (ask->most_w <= 0 || power_w <= ask->most_w);
}

struct savings *tuner_savings(struct tuner *t)
{
    return &t->regime[t->report.n_regimes - 1];
}

static void drop_ask(struct stretch_ask *ask)
{
    struct stretch_ask **p = &ask->t->asks;

    while (*p != ask)
        p = &(*p)->next;
    *p = ask->next;
    free(ask);
}

void tuner_drop_asks(struct tuner *t)
{
    while (t->asks)
        drop_ask(t->asks);
}

static int tuner_on_stretch(const struct energy_sum_window *w, void *user)
{
    struct stretch_ask *ask = user;
    struct tuner *t = ask->t;

    if (w->r == 0 && in_bounds(ask, w)) {
        struct savings_sum *sum = &savings_of(t, ask->regime)->sum[ask->d.kind];
        sum->steps += ask->d.steps;
        sum->time_s += s_between(w->begin_ns, w->end_ns);
        sum->energy_j += w->energy_j;
        sum->half2_j2 += w->half_j * w->half_j;
    }
    drop_ask(ask);
    t->stretches--;
    return t->state == TUNER_OVER ? tuner_maybe_done(t) : 0;
}

void tuner_book(struct tuner *t, const struct stretch_done *d, double least_w,
                double most_w)
{
    struct stretch_ask *ask = malloc(sizeof *ask);

    if (!ask)
        return; /* steps that are not booked are not claimed either */
    *ask = (struct stretch_ask){t->asks, t,      *d,
                                least_w, most_w, t->merged + t->report.n_regimes - 1};
    t->asks = ask;
    if (energy_sum_window(t->o.meters, d->begin_ns, d->end_ns, tuner_on_stretch, ask) < 0)
        drop_ask(ask);
    else
        t->stretches++;
}

void tuner_turn(struct tuner *t, enum stretch_kind kind)
{
    const struct savings *a = tuner_savings(t);
    bool search = kind == STRETCH_SEARCH || kind == STRETCH_REFERENCE;
    struct stretch_done d;

    if (search && (a->hold.windows > 0 || a->past.steps > 0))
        kind = STRETCH_AWAY;
    if (stretch_turn(&t->stretch, kind, &d))
        tuner_book(t, &d, 0, 0);
}

/* ---- windows ---- */

/* Ordinary after a window that told nothing: a cap that cannot be measured is not held
 * for long.
 */
static unsigned step_length(const struct tuner *t)
{
    return t->step.length && t->useless == 0 ? t->step.length : 1;
}

int tuner_arrived(struct tuner *t, uint64_t now)
{
    unsigned length = step_length(t);
    double window_s = length * (t->o.window_s > 0 ? t->o.window_s : 10);
    struct window_rule rule = {
        .settle_s = t->step.settle_s,
        .settle_steps = t->step.settle_steps,
        .least_s = window_s,
        .least_steps = length * LEAST_STEPS,
        .target_rse = TARGET_RSE / sqrt(length),
        .most_s = (t->visiting && t->quick ? 1 : 3) * window_s,
    };

    if (t->step.kind == SEARCH_HOLD)
        tuner_turn(t, STRETCH_HOLD);
    t->state = TUNER_WINDOW;
    window_arm(&t->window, &rule, now);
    if (t->beat || t->safe)
        tuner_hear_window(t, now);
    return 0;
}

static struct tuner_cap *cap_record(struct tuner *t, uint32_t mw)
{
    for (size_t i = 0; i < t->report.n_caps; i++)
        if (t->caps[i].cap_mw == mw)
            return &t->caps[i];
    if (t->report.n_caps == TUNER_CAPS_MAX)
        return NULL;
    struct tuner_cap *c = &t->caps[t->report.n_caps++];
    *c = (struct tuner_cap){.cap_mw = mw};
    return c;
}

void tuner_add_savings(struct tuner *t)
{
    if (t->report.n_regimes == TUNER_REGIMES_MAX) {
        savings_merge(t->regime, TUNER_REGIMES_MAX);
        t->report.n_regimes--;
        t->merged++;
    }
    t->regime[t->report.n_regimes++] = (struct savings){0};
}

/* A regime of before is back, and the search holds what it had found then: so do the
 * books.
 */
static void take_back(struct tuner *t)
{
    struct search_window known[TUNER_CAPS_MAX];
    size_t n = search_known(t->search, known, TUNER_CAPS_MAX);

    for (size_t i = 0; i < n; i++) {
        const struct search_window *w = &known[i];
        struct tuner_cap *c = cap_record(t, w->cap_mw);
        if (c)
            savings_mean_add(&c->mean, w->time_s, w->energy_j, w->time_rse,
                             w->energy_rse);
        if (i > 0)
            continue;
        t->report.reference_mw = w->cap_mw;
        t->report.demand_w = w->energy_j / w->time_s / (double)t->o.n;
        savings_mean_add(&tuner_savings(t)->reference, w->time_s, w->energy_j,
                         w->time_rse, w->energy_rse);
        if (t->beat)
            t->beat_ref_s = w->time_s;
    }
}

void tuner_new_regime(struct tuner *t, const struct search_window *now)
{
    tuner_turn(t, STRETCH_SEARCH); /* what is under way belongs to the old regime */
    counterfactual_break(&tuner_savings(t)->pairs);
    tuner_add_savings(t);
    tuner_turn(t, STRETCH_SEARCH);
    t->report.reference_mw = 0;
    t->report.n_caps = 0;
    t->report.looks.n = 0;
    t->report.looks.last_s = 0;
    t->looking = false;
    tuner_lock_forget(t);
    t->beat_ref_s = 0;
    if (!t->search)
        return;
    search_on_change(t->search, now);
    if (search_step(t->search)->kind == SEARCH_HOLD)
        take_back(t);
}

/* w: the window that showed it; it is in force on all boards where `one` is set. */
static int changed(struct tuner *t, const struct search_window *w, bool one)
{
    t->report.changes++;
    tuner_note(t, true, "the job has changed: looks again");
    tuner_new_regime(t, one && w->energy_rse < 1 ? w : NULL);
    t->report.holding = false; /* of another regime, whatever is held next */
    return tuner_next(t);
}

/* A window at the highest cap that may be had now.  Where others forbid the original
 * that is a lower one; once a higher one is allowed, it is the reference.
 */
static void judge_reference(struct tuner *t, const struct search_window *w)
{
    struct savings *a = tuner_savings(t);
    double boards = (double)t->o.n;

    if (a->reference.windows > 0 && w->cap_mw + MW_PER_W < t->report.reference_mw)
        return;
    if (w->cap_mw > t->report.reference_mw + MW_PER_W)
        savings_reference_anew(a);
    if (a->reference.windows == 0)
        t->report.reference_mw = w->cap_mw;
    savings_mean_add(&a->reference, w->time_s, w->energy_j, w->time_rse, w->energy_rse);
    if (t->step.kind != SEARCH_HOLD) {
        struct pair_seen seen = tuner_seen_warming(t, w);
        counterfactual_on_reference(&a->pairs, &seen);
    }
    t->report.demand_w =
        savings_mean_energy(&a->reference) / savings_mean_time(&a->reference) / boards;
    if (w->peak_w > 0)
        t->report.peak_w = w->peak_w;
}

/* A window of the hold.  True: the job has changed for good. */
static bool judge_hold(struct tuner *t, const struct search_window *w)
{
    struct savings *a = tuner_savings(t);

    if (t->hold_at_mw != w->cap_mw) { /* others' claims came or went */
        if (t->hold_at_mw)
            change_init(&t->change, 0);
        if (t->hold_at_mw)
            savings_hold_anew(a);
        t->hold_at_mw = w->cap_mw;
    }
    savings_mean_add(&a->hold, w->time_s, w->energy_j, w->time_rse, w->energy_rse);
    struct pair_seen seen = tuner_seen(t, w);
    (void)counterfactual_on_hold(&a->pairs, &seen);
    return change_on_unsure(&t->change, w->time_s, w->energy_j, w->time_rse,
                            w->energy_rse) != CHANGE_NONE;
}

/* The reference once more, next to windows of the hold.  A higher cap than the
 * reference's of before (others allow more now) begins anew.
 */
static void judge_visit(struct tuner *t, const struct search_window *w)
{
    struct pair_seen seen = tuner_seen_warming(t, w);

    if (w->cap_mw > t->report.reference_mw + MW_PER_W)
        judge_reference(t, w);
    else if (w->cap_mw + MW_PER_W >= t->report.reference_mw)
        counterfactual_on_reference(&tuner_savings(t)->pairs, &seen);
    reference_check_over(t);
}

/* A look takes this long at the least. */
static double look_least_s(const struct tuner *t, const struct savings *a)
{
    double window_s = t->o.window_s > 0 ? t->o.window_s : 10;

    return SEARCH_SETTLE_S + fmax(window_s, LEAST_STEPS * savings_mean_time(&a->hold));
}

/* A look into a gap between measured caps, if one is due (else t->looking stays false).
 */
static int look(struct tuner *t)
{
    const struct savings *a = tuner_savings(t);

    if (!t->search || a->hold.windows % LOOK_TRIES || tuner_slack_moved(t) ||
        tuner_slack_measures(t) || tuner_lock_moved(t) || tuner_lock_measures(t))
        return 0;
    double worse =
        gap_probes_allow(&t->report.looks, savings_time_s(a), look_least_s(t, a));
    if (!(worse > 0) || !search_look(t->search, worse))
        return 0;
    t->looking = true;
    t->look_ns = loop_now_ns(t->o.loop);
    t->look_windows = t->report.windows;
    return tuner_next(t);
}

/* A measured window at a cap: into the books, and to whoever decides. */
static int judge(struct tuner *t, const struct search_window *w)
{
    bool hold = t->step.kind == SEARCH_HOLD;
    uw_error err;

    t->report.windows++;
    bool locked = tuner_lock_moved(t) && !t->visiting;
    bool one = t->visiting || (!tuner_slack_moved(t) && !locked); /* cap of all boards */
    struct tuner_cap *c = one ? cap_record(t, w->cap_mw) : NULL;
    if (c)
        savings_mean_add(&c->mean, w->time_s, w->energy_j, w->time_rse, w->energy_rse);
    if (t->visiting)
        judge_visit(t, w);
    else if (w->cap_mw >= tuner_reference_mw(t) && !locked)
        judge_reference(t, w);
    if (hold && judge_hold(t, w))
        return changed(t, w, one);
    if (t->search && one && w->energy_rse < 1) {
        int r = search_on_window(t->search, w, &err);
        if (r < 0)
            tuner_note(t, true, "a window was left out: %s", err.text);
    }
    if (!hold || (t->search && search_step(t->search)->cap_mw != t->step.cap_mw))
        return tuner_next(t);
    bool moved;
    int r = tuner_slack_on_window(t, w, &moved);
    if (r < 0 || moved)
        return r;
    r = tuner_lock_on_window(t, w, &moved);
    if (r < 0 || moved)
        return r;
    r = reference_check(t);
    if (r >= 0 && !t->visiting)
        r = look(t);
    if (r < 0 || t->visiting || t->looking)
        return r;
    return tuner_arrived(t, loop_now_ns(t->o.loop)); /* the next window of the hold */
}

/* What is in force cannot be measured: the original cap for a while, then it goes on. */
static int rest(struct tuner *t)
{
    t->rest_s = t->rest_s > 0 ? fmin(2 * t->rest_s, REST_MOST_S) : REST_S;
    t->rest_ns = loop_now_ns(t->o.loop) + ns_of_s(t->rest_s);
    tuner_note(t, true, "it cannot be measured at %.0f W: the original cap for %.0f min",
               w_of_mw(t->step.cap_mw), t->rest_s / 60);
    reference_check_over(t);
    tuner_turn(t, STRETCH_SEARCH);
    t->report.holding = false;
    t->looking = false;
    t->has_begun = false;
    t->state = TUNER_WAIT;
    if (t->beat)
        tuner_beat_over(t);
    return tuner_to_original(t);
}

bool tuner_rests(const struct tuner *t)
{
    return t->state == TUNER_WAIT && loop_now_ns(t->o.loop) < t->rest_ns;
}

int tuner_useless(struct tuner *t)
{
    uint64_t now = loop_now_ns(t->o.loop);
    bool hold = t->step.kind == SEARCH_HOLD;

    if (++t->useless < USELESS_MOST)
        return tuner_arrived(t, now);
    t->useless = 0;
    if (!t->search && !hold)
        return tuner_hold_unseen(t, t->asked_mw, "asked for");
    if (!t->search || (!hold && t->step.cap_mw >= tuner_reference_mw(t)))
        return tuner_arrived(t, now);
    return rest(t);
}

/* Every piece of the window is told: judge the whole. */
static int window_told(struct tuner *t)
{
    double half = sqrt(t->closed_half2);
    struct search_window out = {
        .cap_mw = t->enforced_mw ? t->enforced_mw : t->commanded_mw,
        .time_s = t->closed.time_s,
        .energy_j = t->closed_j / t->closed.steps,
        .time_rse = t->closed.time_rse,
        .energy_rse = half / Z95 / t->closed_j,
        .peak_w = t->closed_peak_w,
        .length = step_length(t),
    };

    if (out.cap_mw > t->ceiling_mw)
        out.cap_mw = t->ceiling_mw; /* others' claims hold, whatever was asked for */
    if (t->closed_lost || !(t->closed_j > 0))
        return tuner_useless(t);
    if (out.energy_rse < out.time_rse)
        out.energy_rse = out.time_rse;
    if (t->step.kind == SEARCH_MEASURE && !(out.energy_rse < 1))
        return tuner_useless(t);
    t->useless = 0;
    t->rest_s = 0;
    return judge(t, &out);
}

static int tuner_on_energy(const struct energy_sum_window *w, void *user)
{
    struct tuner *t = user;

    t->pieces_asked--;
    if (t->state == TUNER_OVER)
        return tuner_maybe_done(t);
    if (w->r < 0) {
        t->closed_lost = true;
        if (t->state == TUNER_ENERGY)
            tuner_note(t, true, "a window was lost: %s", w->error.text);
    } else {
        t->closed_j += w->energy_j;
        for (size_t i = 0; i < t->o.n; i++)
            t->closed_board_j[i] += w->board_j[i];
        t->closed_half2 += w->half_j * w->half_j;
        if (w->peak_w > t->closed_peak_w)
            t->closed_peak_w = w->peak_w;
    }
    return t->pieces_asked == 0 && t->state == TUNER_ENERGY ? window_told(t) : 0;
}

int tuner_ask_window(struct tuner *t)
{
    if (t->pieces_asked > 0) /* of a window that was given up: not to be mixed */
        return tuner_arrived(t, loop_now_ns(t->o.loop));
    t->state = TUNER_ENERGY;
    t->closed = t->window;
    t->closed_j = t->closed_half2 = t->closed_peak_w = 0;
    memset(t->closed_board_j, 0, sizeof t->closed_board_j);
    t->closed_lost = false;
    for (size_t i = 0; i < t->closed.n_pieces; i++) {
        const struct window_piece *p = &t->closed.piece[i];
        if (energy_sum_window(t->o.meters, p->from.at_ns, p->to.at_ns, tuner_on_energy,
                              t) == 0)
            t->pieces_asked++;
        else
            t->closed_lost = true;
    }
    return t->pieces_asked == 0 ? window_told(t) : 0;
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
    return is == WINDOW_CLOSED ? tuner_ask_window(t) : 0;
}
