#include "tuner/slack-search.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "tuner/activity.h"

#define BOUND_SLIP 0.002
#define MOVING_S 30.0 /* longest time until a new split is in force */

/* Whether the held cap is every board's share of a budget, so that lowering one board's
 * cap allows a higher one elsewhere.
 */
static bool has_shares(const struct slack_search *s, uint32_t cap_mw)
{
    const struct board_caps *b = s->caps;

    for (size_t i = 0; i < b->n; i++) {
        uint32_t share = b->table->share ? b->table->share(b->of, i) : 0;
        if (!share || share != cap_mw)
            return false;
    }
    return true;
}

static bool wanted(const struct slack_search *s, uint32_t cap_mw)
{
    return s->most > 0 && s->caps->n >= 2 && s->caps->n <= SLACK_BOARDS_MAX &&
           s->phase != SLACK_OUT && (s->goal.kind != GOAL_TIME || has_shares(s, cap_mw));
}

/* Whether watts move inside the job's part of a budget. */
static bool in_budget(const struct slack_search *s)
{
    return s->machine && s->goal.kind == GOAL_TIME;
}

static bool moved(const void *self)
{
    const struct slack_search *s = self;

    for (size_t i = 0; s->machine && i < s->caps->n; i++)
        if (s->cap_mw[i] != s->held_mw)
            return true;
    return false;
}

static bool measures(const void *self)
{
    const struct slack_search *s = self;
    const struct slack_step *step;

    if (!s->machine)
        return false;
    step = slack_step(s->machine);
    return step->kind != SLACK_HOLD || step->visit;
}

static uint32_t board_mw(const void *self, size_t i, uint32_t mw)
{
    const struct slack_search *s = self;

    if (!s->machine)
        return mw;
    return in_budget(s) ? s->caps->original_mw[i] : s->cap_mw[i];
}

/* phase: SLACK_IDLE or SLACK_OUT. */
static void end(struct slack_search *s, enum slack_phase phase)
{
    if (in_budget(s))
        s->caps->table->split(s->caps->of, NULL);
    slack_free(s->machine);
    *s = (struct slack_search){.caps = s->caps,
                               .notes = s->notes,
                               .goal = s->goal,
                               .most = s->most,
                               .phase = phase};
}

static bool on_news(void *self, enum activity_news news)
{
    struct slack_search *s = self;

    if (news == ACTIVITY_END)
        end(s, SLACK_IDLE);
    if (news != ACTIVITY_STALL || !moved(s))
        return false;
    end(s, SLACK_OUT);
    return true;
}

/* Any step other than that hold ends slack. */
static uint32_t target(void *self, const struct activity_target *step, uint32_t mw)
{
    struct slack_search *s = self;

    if (!step->hold || (s->machine && step->cap_mw != s->held_mw))
        end(s, SLACK_IDLE);
    return mw;
}

/* The part by which the time may grow: at most what the goal's bound leaves, but at
 * least the search's own tolerance of that bound (core/optimum/search.h).
 */
static double allowance(const struct slack_search *s, const struct savings *a)
{
    double most = s->most;

    if (s->goal.kind == GOAL_SLOWDOWN && a->reference.windows && a->hold.windows) {
        double so_far = savings_mean_time(&a->hold) / savings_mean_time(&a->reference);
        most = fmin(most, s->goal.param / so_far - 1);
    }
    return fmax(BOUND_SLIP, most);
}

static bool begin(struct slack_search *s, const struct activity_now *now)
{
    struct slack_range range[SLACK_BOARDS_MAX];
    struct slack_setup setup = {.board = range,
                                .n = s->caps->n,
                                .allowance = allowance(s, now->savings),
                                .grain_mw = MW_PER_W};
    struct search_result known;
    uint32_t held_mw = now->cap_mw;
    uw_error err;

    search_result(now->search, &known);
    s->held_mw = held_mw;
    bool budget = s->goal.kind == GOAL_TIME;
    for (size_t i = 0; i < s->caps->n; i++) {
        uint32_t least = board_caps_limits(s->caps, i).min_mw;
        uint32_t most = s->caps->original_mw[i], top = board_caps_top_mw(s->caps, i);
        if (most > top)
            most = top;
        if (least < known.floor_mw)
            least = known.floor_mw;
        if (least > held_mw)
            least = held_mw;
        if (most < held_mw)
            most = held_mw;
        range[i] = (struct slack_range){least, held_mw, most};
        setup.budget_mw += budget ? held_mw : 0;
        s->cap_mw[i] = held_mw;
    }
    s->phase = slack_new(&setup, &s->machine, &err) >= 0 ? SLACK_WORKS : SLACK_OUT;
    if (s->phase == SLACK_WORKS)
        return true;
    tuner_note(s->notes, true, "slack: not searched for: %s", err.text);
    return false;
}

/* Whether a new split of the budget is in force. */
static enum activity_way walk(void *self, bool hold, uint64_t now_ns)
{
    struct slack_search *s = self;
    const struct board_caps *b = s->caps;
    bool there = true;
    (void)hold;

    if (s->phase != SLACK_MOVING)
        return ACTIVITY_THERE;
    for (size_t i = 0; i < b->n; i++)
        there = there && b->told[i].in_force_mw == s->cap_mw[i];
    if (!there && s_between(s->moving_ns, now_ns) < MOVING_S)
        return ACTIVITY_WALKS;
    s->phase = SLACK_WORKS;
    if (there)
        return ACTIVITY_THERE;
    tuner_note(s->notes, true, "slack: ended: the budget's new split is not in force");
    end(s, SLACK_OUT);
    return ACTIVITY_THERE;
}

static uint64_t late_ns(const void *self)
{
    const struct slack_search *s = self;

    return s->phase == SLACK_MOVING ? s->moving_ns + ns_of_s(MOVING_S) : UINT64_MAX;
}

/* Notes the machine's step, and the board with the longest waits. */
static void tell(const struct slack_search *s, const struct slack_step *step)
{
    size_t most = 0;
    bool important = step->kind == SLACK_MEASURE;

    for (size_t i = 1; i < s->caps->n; i++)
        if (step->waits[i] > step->waits[most])
            most = i;
    if (step->waits[most] > 0)
        tuner_note(s->notes, important, "%s; GPU %u waits most, %.0f %% of its time",
                   step->why, board_view(s->caps->boards[most])->info->index,
                   100 * step->waits[most]);
    else
        tuner_note(s->notes, important, "%s", step->why);
}

/* Claims the caps of the machine's step. */
static void go(struct slack_search *s, uint64_t now_ns)
{
    const struct slack_step *step = slack_step(s->machine);

    tell(s, step);
    memcpy(s->cap_mw, step->cap_mw, s->caps->n * sizeof *s->cap_mw);
    if (!in_budget(s))
        return;
    s->caps->table->split(s->caps->of, s->cap_mw);
    s->phase = SLACK_MOVING;
    s->moving_ns = now_ns;
}

static enum activity_verdict on_hold(void *self, const struct activity_now *now)
{
    struct slack_search *s = self;
    struct slack_seen board[SLACK_BOARDS_MAX];
    const struct search_window *w = now->window;
    const struct window *whole = &now->energy->window;
    size_t n = s->caps->n;
    uw_error err;

    if (!now->search || now->inferred) /* inferred steps are too inaccurate */
        return ACTIVITY_STAYS;
    if (!wanted(s, now->cap_mw) || search_waits(now->search) ||
        (!s->machine && !begin(s, now)))
        return ACTIVITY_STAYS;
    for (size_t i = 0; i < n; i++)
        board[i] = (struct slack_seen){.cap_w = w_of_mw(s->caps->told[i].in_force_mw),
                                       .power_w = now->energy->board_j[i] /
                                                  (whole->time_s * whole->steps)};
    struct slack_window window = {w->time_s, w->time_rse, board};
    if (slack_on_window(s->machine, &window, &err) < 0) {
        tuner_note(s->notes, true, "slack: ended: %s", err.text);
        bool was_moved = moved(s);
        end(s, SLACK_OUT);
        return was_moved ? ACTIVITY_OVER : ACTIVITY_STAYS;
    }
    if (memcmp(slack_step(s->machine)->cap_mw, s->cap_mw, n * sizeof *s->cap_mw) == 0)
        return ACTIVITY_STAYS;
    go(s, now->now_ns);
    return ACTIVITY_GOES;
}

const struct tuner_activity activity_slack = {
    .name = "slack",
    .on_hold = on_hold,
    .target = target,
    .board_mw = board_mw,
    .walk = walk,
    .late_ns = late_ns,
    .moved = moved,
    .measures = measures,
    .on_news = on_news,
};
