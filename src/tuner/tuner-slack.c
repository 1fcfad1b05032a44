/* Slack between the boards of a job whose searched cap is held: core/slack/slack.h says
 * which board gets which cap, here they are walked to and their windows told.  Never
 * above the cap that is held; the ramp is the hold's, from the highest board that goes
 * down to the lowest.
 *
 * Under a node's budget, where the goal is time: the cap held is every board's share, and
 * watts move between these shares.  The claims of the search stay at the originals, what
 * each board gets is the budget's doing (tuner_caps.split).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "core/slack/slack.h"
#include "tuner/tuner-inside.h"

#define BOUND_SLIP 0.002
#define MOVING_S 30.0 /* watts that do not come for so long do not come */

/* The cap that is held is every board's share of a budget: who gives watts away makes
 * room for others.
 */
static bool has_shares(const struct tuner *t)
{
    for (size_t i = 0; i < t->o.n; i++) {
        uint32_t in_force;
        uint32_t share =
            t->o.caps->share ? t->o.caps->share(t->o.caps_of, i, &in_force) : 0;
        if (!share || share != t->step.cap_mw)
            return false;
    }
    return true;
}

static bool wanted(const struct tuner *t)
{
    return t->o.slack > 0 && t->search && t->o.n >= 2 && t->o.n <= SLACK_BOARDS_MAX &&
           !t->slack.out && t->step.kind == SEARCH_HOLD && !t->visiting &&
           !t->beat && /* a period is no measure of one per cent */
           (t->o.goal.kind != GOAL_TIME || has_shares(t));
}

bool tuner_slack_moved(const struct tuner *t)
{
    for (size_t i = 0; t->slack.machine && i < t->o.n; i++)
        if (t->slack.cap_mw[i] != t->slack.held_mw)
            return true;
    return false;
}

bool tuner_slack_measures(const struct tuner *t)
{
    const struct slack_step *step;

    if (!t->slack.machine)
        return false;
    step = slack_step(t->slack.machine);
    return step->kind != SLACK_HOLD || step->visit;
}

uint32_t tuner_slack_cap(const struct tuner *t, size_t i, uint32_t mw)
{
    const struct tuner_slack *s = &t->slack;

    if (!s->machine || t->visiting || tuner_halted(t) || t->step.kind != SEARCH_HOLD)
        return mw;
    if (s->budget)
        return t->o.original_mw[i];
    uint32_t high = s->from_mw[i] > s->cap_mw[i] ? s->from_mw[i] : s->cap_mw[i];
    if (mw < s->cap_mw[i])
        return s->cap_mw[i];
    return mw > high ? high : mw;
}

void tuner_slack_end(struct tuner *t)
{
    if (t->slack.budget)
        t->o.caps->split(t->o.caps_of, NULL);
    slack_free(t->slack.machine);
    t->slack = (struct tuner_slack){0};
}

bool tuner_slack_stall(struct tuner *t)
{
    if (!tuner_slack_moved(t))
        return false;
    tuner_slack_end(t);
    t->slack.out = true;
    return true;
}

static uint32_t lowest(const uint32_t *v, size_t n)
{
    uint32_t low = UINT32_MAX;

    for (size_t i = 0; i < n; i++)
        if (v[i] < low)
            low = v[i];
    return low;
}

uint32_t tuner_slack_target(struct tuner *t)
{
    struct tuner_slack *s = &t->slack;

    if (t->visiting)
        return t->step.cap_mw;
    if (t->step.kind != SEARCH_HOLD || (s->machine && t->step.cap_mw != s->held_mw))
        tuner_slack_end(t);
    if (!s->machine || s->budget)
        return t->step.cap_mw;
    for (size_t i = 0; i < t->o.n; i++)
        s->from_mw[i] = t->o.original_mw[i]; /* back from wherever it was */
    return lowest(s->cap_mw, t->o.n);
}

/* No more than the goal's own bound has left; what the search may break it by is left in
 * any case (core/optimum/search.h).
 */
static double allowance(const struct tuner *t)
{
    const struct savings *a = &t->regime[t->report.n_regimes - 1];
    double most = t->o.slack;

    if (t->o.goal.kind == GOAL_SLOWDOWN && a->reference.windows && a->hold.windows) {
        double so_far = savings_mean_time(&a->hold) / savings_mean_time(&a->reference);
        most = fmin(most, t->o.goal.param / so_far - 1);
    }
    return fmax(BOUND_SLIP, most);
}

static bool begin(struct tuner *t)
{
    struct slack_range range[SLACK_BOARDS_MAX];
    struct slack_setup setup = {
        .board = range, .n = t->o.n, .allowance = allowance(t), .grain_mw = MW_PER_W};
    struct search_result known;
    uw_error err;

    search_result(t->search, &known);
    t->slack.held_mw = t->step.cap_mw;
    t->slack.budget = t->o.goal.kind == GOAL_TIME;
    for (size_t i = 0; i < t->o.n; i++) {
        uint32_t least = tuner_limits(t, i).min_mw, most = t->o.original_mw[i];
        if (most > tuner_top_mw(t, i))
            most = tuner_top_mw(t, i);
        if (least < known.floor_mw)
            least = known.floor_mw;
        if (least > t->slack.held_mw)
            least = t->slack.held_mw;
        if (most < t->slack.held_mw)
            most = t->slack.held_mw;
        range[i] = (struct slack_range){least, t->slack.held_mw, most};
        setup.budget_mw += t->slack.budget ? t->slack.held_mw : 0;
        t->slack.cap_mw[i] = t->slack.from_mw[i] = t->slack.held_mw;
    }
    if (slack_new(&setup, &t->slack.machine, &err) >= 0)
        return true;
    tuner_note(t, true, "slack: not looked for: %s", err.text);
    t->slack.budget = false;
    t->slack.out = true;
    return false;
}

bool tuner_slack_walks(struct tuner *t, uint64_t now)
{
    struct tuner_slack *s = &t->slack;
    bool there = true;
    uint32_t in_force;

    if (!s->machine || !s->budget || !s->moving)
        return false;
    for (size_t i = 0; i < t->o.n; i++) {
        (void)t->o.caps->share(t->o.caps_of, i, &in_force);
        there = there && in_force == s->cap_mw[i];
        t->got_mw[i] = in_force;
    }
    if (!there && s_between(s->moving_ns, now) < MOVING_S)
        return true;
    s->moving = false;
    if (there) {
        t->enforced_mw = lowest(s->cap_mw, t->o.n);
        return false;
    }
    tuner_note(t, true, "slack: over: the budget does not move the watts");
    tuner_slack_end(t);
    s->out = true;
    return false;
}

/* … between the shares of a budget. */
static int move(struct tuner *t, const struct slack_step *step)
{
    struct tuner_slack *s = &t->slack;
    bool first = !tuner_slack_moved(t);

    memcpy(s->cap_mw, step->cap_mw, t->o.n * sizeof *s->cap_mw);
    t->o.caps->split(t->o.caps_of, s->cap_mw);
    s->moving = true;
    s->moving_ns = loop_now_ns(t->o.loop);
    t->first_seen = false;
    t->state = TUNER_WALK;
    return first ? tuner_command(t, t->commanded_mw) : 0;
}

/* What the machine does, and which board waits: it knows the job's boards by place. */
static void tell(struct tuner *t, const struct slack_step *step)
{
    size_t most = 0;

    for (size_t i = 1; i < t->o.n; i++)
        if (step->waits[i] > step->waits[most])
            most = i;
    if (step->waits[most] > 0)
        tuner_note(t, step->kind == SLACK_MEASURE,
                   "%s; GPU %u waits most, %.0f %% of its time", step->why,
                   board_view(t->o.boards[most])->info->index, 100 * step->waits[most]);
    else
        tuner_note(t, step->kind == SLACK_MEASURE, "%s", step->why);
}

/* To the caps of the machine's step: up at once, down by the ramp. */
static int go(struct tuner *t)
{
    const struct slack_step *step = slack_step(t->slack.machine);
    uint64_t now = loop_now_ns(t->o.loop);
    uint32_t high = 0;

    tell(t, step);
    change_init(&t->change, 0);
    savings_hold_anew(tuner_savings(t));
    t->hold_at_mw = 0;
    if (t->slack.budget)
        return move(t, step);
    for (size_t i = 0; i < t->o.n; i++) {
        t->slack.from_mw[i] = t->slack.cap_mw[i];
        t->slack.cap_mw[i] = step->cap_mw[i];
        if (t->slack.cap_mw[i] < t->slack.from_mw[i] && t->slack.from_mw[i] > high)
            high = t->slack.from_mw[i];
    }
    uint32_t low = lowest(t->slack.cap_mw, t->o.n);
    ramp_init(&t->ramp, high ? high : low, MW_PER_W, now);
    ramp_to(&t->ramp, low, 0, tuner_ramp_rate(t), false, now);
    t->first_seen = false;
    t->state = TUNER_WALK;
    return tuner_command(t, t->ramp.at_mw);
}

static bool same_caps(const struct tuner *t)
{
    return memcmp(slack_step(t->slack.machine)->cap_mw, t->slack.cap_mw,
                  t->o.n * sizeof *t->slack.cap_mw) == 0;
}

int tuner_slack_on_window(struct tuner *t, const struct search_window *w, bool *ret_moved)
{
    struct slack_seen seen[SLACK_BOARDS_MAX];
    double took_s = t->closed.time_s * t->closed.steps;
    uw_error err;

    *ret_moved = false;
    if (!wanted(t) || (!t->slack.machine && !begin(t)))
        return 0;
    for (size_t i = 0; i < t->o.n; i++)
        seen[i] = (struct slack_seen){.cap_w = w_of_mw(t->got_mw[i]),
                                      .power_w = t->closed_board_j[i] / took_s};
    struct slack_window window = {w->time_s, w->time_rse, seen};
    if (slack_on_window(t->slack.machine, &window, &err) < 0) {
        tuner_note(t, true, "slack: over: %s", err.text);
        *ret_moved = tuner_slack_moved(t);
        tuner_slack_end(t);
        t->slack.out = true;
        return *ret_moved ? tuner_next(t) : 0;
    }
    if (same_caps(t))
        return 0;
    *ret_moved = true;
    return go(t);
}
