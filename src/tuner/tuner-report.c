#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "tuner/tuner-table.h"

/* The goal's value of each measured cap. */
static void value_caps(struct tuner *t)
{
    const struct savings_mean *ref = &regimes_savings(&t->regimes)->reference;
    struct goal_ref of = {.energy_j = savings_mean_energy(ref),
                          .time_s = savings_mean_time(ref)};

    for (size_t i = 0; i < t->o.n; i++)
        of.pmax_w += w_of_mw(board_view(t->o.boards[i])->limits.max_mw);
    for (size_t i = 0; i < t->regimes.n_caps; i++) {
        struct tuner_cap *c = &t->regimes.cap[i];
        const struct goal_step step = {
            .energy_j = savings_mean_energy(&c->mean),
            .time_s = savings_mean_time(&c->mean),
            .energy_rse = savings_mean_energy_rse(&c->mean),
            .time_rse = savings_mean_time_rse(&c->mean),
        };
        c->value = t->search ? goal_value_of(&t->o.goal, &step, &of)
                             : (struct goal_value){NAN, NAN};
    }
}

bool tuner_lacks_boards(const struct tuner *t)
{
    return t->state == TUNER_BOARDS || (t->state == TUNER_LEFT && t->lost);
}

void tuner_count_away(struct tuner *t)
{
    uint64_t now = loop_now_ns(t->o.loop);
    double s = s_between(t->counted_ns, now);

    if (t->stopped && t->state < TUNER_LEFT)
        t->report.stopped_s += s;
    else if (tuner_lacks_boards(t))
        t->report.waited_s += s;
    t->counted_ns = now;
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
    t->report.by = t->progress.by;
    t->report.period_s = t->progress.period_s;
    t->report.confidence = t->progress.confidence;
    (void)snprintf(t->report.unknown, sizeof t->report.unknown, "%s",
                   t->progress.unknown);
    t->report.busy = t->progress.busy;
    t->report.started = t->started;
    t->report.holding = t->holding;
    t->report.searching = t->search && !search_is_over(t->search);
    t->report.board_lost = t->left_for == TUNER_LEFT_FOR_BOARDS;
    t->report.n_regimes = t->regimes.n;
    t->report.n_caps = t->regimes.n_caps;
    value_caps(t);
    t->report.checks = t->check.checks;
    t->report.gap_checks = t->gap.probes;
    savings_saved(t->regimes.savings, t->regimes.n, &t->report.saved);
    tuner_count_away(t);
    t->report.ruled_s = 0;
    for (size_t i = 0; i < t->regimes.n; i++)
        t->report.ruled_s += t->regimes.savings[i].sum[STRETCH_RULED].time_s;
    return &t->report;
}

/* Writes a status as text. */
#define SAY(status, ...) ((void)snprintf(ret, size, __VA_ARGS__), (status))

/* The state to show: for an interruption, the state that it interrupts. */
static enum tuner_state shown(const struct tuner *t)
{
    return t->state == TUNER_LATE || t->state == TUNER_PAUSED ? t->from : t->state;
}

/* The status by state only; not of TUNER_WAIT. */
static enum search_status plain_status(const struct tuner *t, char *ret, size_t size)
{
    static const struct {
        enum search_status is;
        const char *text;
    } by[] = {
        [TUNER_WALK] = {SEARCH_WALKS, "on the way to"},
        [TUNER_MEASURE] = {SEARCH_MEASURES, "measures at"},
        [TUNER_ENERGY] = {SEARCH_MEASURES, "measures at"},
        [TUNER_BOARDS] = {SEARCH_WAITS_FOR_BOARDS, "waits for its boards"},
        [TUNER_LEFT] = {SEARCH_HAS_LEFT, "measures only"},
        [TUNER_OVER] = {SEARCH_IS_OVER, "over"},
    };

    enum tuner_state s = shown(t);

    if (s == TUNER_OVER && t->caps.pending) /* what it has restored is not known yet */
        return SAY(SEARCH_WALKS, "restores the original limits");
    uint32_t mw = t->step.cap_mw;
    uint32_t low = by[s].is == SEARCH_MEASURES ? board_caps_below_mw(&t->caps, mw) : 0;
    char window[24] = "";
    if (t->search) /* a cap by name has the windows before it alone */
        (void)snprintf(window, sizeof window, " (window %u)", t->report.windows + 1);
    if (by[s].is == SEARCH_WALKS || by[s].is == SEARCH_MEASURES)
        (void)snprintf(ret, size, "%s %.0f W%s", by[s].text, w_of_mw(low ? low : mw),
                       window);
    else
        (void)snprintf(ret, size, "%s", by[s].text);
    return by[s].is;
}

static enum search_status awaited_status(const struct tuner *t, char *ret, size_t size)
{
    bool seen = steps_known(&t->progress.steps);
    char what[80];

    progress_awaits(&t->progress, what, sizeof what);
    if (t->holding && !t->report.reached)
        return SAY(SEARCH_WALKS, "on the way to %.0f W, %s", w_of_mw(t->report.held_mw),
                   what);
    return t->holding
               ? SAY(SEARCH_HOLDS, "holds %.0f W, %s", w_of_mw(t->report.held_mw), what)
               : SAY(SEARCH_WAITS_PROGRESS, "%s%s", what,
                     seen ? "" : " (UNDERWATT_PROGRESS)");
}

enum search_status tuner_status(const struct tuner *t, char *ret, size_t size)
{
    bool hold = t->step.kind == SEARCH_HOLD && t->holding;
    enum tuner_state s = shown(t);
    bool waits = s == TUNER_WAIT, safe = t->at == ACTIVITY_SAFE;
    bool works = s == TUNER_WALK || s == TUNER_MEASURE || s == TUNER_ENERGY;
    bool compares = activity_lock.measures(&t->lock);
    double held_w = w_of_mw(t->report.held_mw);

    if (works && t->report.ruled)
        return SAY(SEARCH_IS_RULED, "paused at %.0f W: the policy sets a lower cap",
                   w_of_mw(t->step.cap_mw));
    if (tuner_rests(t))
        return SAY(SEARCH_RESTS, "cannot be measured: not capped for now");
    if (t->state == TUNER_PAUSED && !t->stopped)
        return SAY(SEARCH_IS_PAUSED,
                   "no step for a long time: not capped until the next step");
    if (waits && t->progress.by == TUNER_BY_NOTHING && !t->holding)
        return SAY(safe ? SEARCH_IS_SAFE : SEARCH_WAITS_PROGRESS, "%s",
                   safe ? "no steps, no period: not capped"
                        : "reports no steps: looks for a period");
    if (safe && s == TUNER_MEASURE)
        return SAY(SEARCH_IS_SAFE, "no steps, no period: safe cap %.0f W", held_w);
    if (waits)
        return awaited_status(t, ret, size);
    if (works && hold && t->lock.asked_mhz && !t->lock.asked_ns)
        return SAY(compares ? SEARCH_COMPARES : SEARCH_HOLDS,
                   "%s %.0f W, %" PRIu32 " MHz", compares ? "compares" : "holds",
                   w_of_mw(t->caps.commanded_mw), t->lock.asked_mhz);
    if (works && hold && s != TUNER_WALK)
        return SAY(SEARCH_HOLDS, "holds %.0f W", w_of_mw(t->step.cap_mw));
    return plain_status(t, ret, size);
}

uint32_t tuner_lower_mw(const struct tuner *t)
{
    return t->search ? 0 : board_caps_other_mw(&t->caps);
}
