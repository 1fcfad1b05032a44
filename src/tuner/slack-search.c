#include "tuner/slack-search.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

#define BOUND_SLIP 0.002
#define MOVING_S 30.0 /* longest time until a new split is in force */

/* Whether the held cap is every board's share of a budget, so that lowering one board's
 * cap allows a higher one elsewhere.
 */
static bool has_shares(const struct slack_search *s, uint32_t cap_mw)
{
    const struct board_caps *b = s->caps;

    for (size_t i = 0; i < b->n; i++) {
        uint32_t in_force;
        uint32_t share = b->table->share ? b->table->share(b->of, i, &in_force) : 0;
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

bool slack_search_moved(const struct slack_search *s)
{
    for (size_t i = 0; s->machine && i < s->caps->n; i++)
        if (s->cap_mw[i] != s->held_mw)
            return true;
    return false;
}

bool slack_search_measures(const struct slack_search *s)
{
    const struct slack_step *step;

    if (!s->machine)
        return false;
    step = slack_step(s->machine);
    return step->kind != SLACK_HOLD || step->visit;
}

uint32_t slack_search_cap(const struct slack_search *s, size_t i, uint32_t mw)
{
    if (!s->machine)
        return mw;
    if (in_budget(s))
        return s->caps->original_mw[i];
    uint32_t high = s->from_mw[i] > s->cap_mw[i] ? s->from_mw[i] : s->cap_mw[i];
    if (mw < s->cap_mw[i])
        return s->cap_mw[i];
    return mw > high ? high : mw;
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

void slack_search_end(struct slack_search *s)
{
    end(s, SLACK_IDLE);
}

bool slack_search_stall(struct slack_search *s)
{
    if (!slack_search_moved(s))
        return false;
    end(s, SLACK_OUT);
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

uint32_t slack_search_target(struct slack_search *s, bool hold, uint32_t cap_mw)
{
    if (!hold || (s->machine && cap_mw != s->held_mw))
        slack_search_end(s);
    if (!s->machine || in_budget(s))
        return cap_mw;
    for (size_t i = 0; i < s->caps->n; i++)
        s->from_mw[i] = s->caps->original_mw[i]; /* the ramp may begin anywhere */
    return lowest(s->cap_mw, s->caps->n);
}

/* The part by which the time may grow: no more than the goal's bound leaves, but at least
 * the search's own tolerance of that bound (core/optimum/search.h).
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

static bool begin(struct slack_search *s, const struct slack_search_seen *seen)
{
    struct slack_range range[SLACK_BOARDS_MAX];
    struct slack_setup setup = {.board = range,
                                .n = s->caps->n,
                                .allowance = allowance(s, seen->savings),
                                .grain_mw = MW_PER_W};
    struct search_result known;
    uint32_t held_mw = seen->cap_mw;
    uw_error err;

    search_result(seen->search, &known);
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
        s->cap_mw[i] = s->from_mw[i] = held_mw;
    }
    s->phase = slack_new(&setup, &s->machine, &err) >= 0 ? SLACK_WORKS : SLACK_OUT;
    if (s->phase == SLACK_WORKS)
        return true;
    tuner_note(s->notes, true, "slack: not searched for: %s", err.text);
    return false;
}

bool slack_search_walks(struct slack_search *s, uint64_t now_ns)
{
    struct board_caps *b = s->caps;
    bool there = true;

    if (s->phase != SLACK_MOVING)
        return false;
    for (size_t i = 0; i < b->n; i++) {
        (void)b->table->share(b->of, i, &b->got_mw[i]);
        there = there && b->got_mw[i] == s->cap_mw[i];
    }
    if (!there && s_between(s->moving_ns, now_ns) < MOVING_S)
        return true;
    s->phase = SLACK_WORKS;
    if (there) {
        b->enforced_mw = lowest(s->cap_mw, b->n);
        return false;
    }
    tuner_note(s->notes, true, "slack: ended: the budget's new split is not in force");
    end(s, SLACK_OUT);
    return false;
}

/* Tells the machine's step, and which board waits most. */
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

/* Goes to the caps of the machine's step: up at once, down by the ramp. */
static enum slack_search_verdict go(struct slack_search *s, uint64_t now_ns,
                                    uint32_t *ret_from_mw, uint32_t *ret_to_mw)
{
    const struct slack_step *step = slack_step(s->machine);
    size_t n = s->caps->n;
    bool first = !slack_search_moved(s);
    uint32_t high = 0;

    tell(s, step);
    if (!in_budget(s))
        memcpy(s->from_mw, s->cap_mw, n * sizeof *s->cap_mw);
    memcpy(s->cap_mw, step->cap_mw, n * sizeof *s->cap_mw);
    if (in_budget(s)) {
        s->caps->table->split(s->caps->of, s->cap_mw);
        s->phase = SLACK_MOVING;
        s->moving_ns = now_ns;
        return first ? SLACK_SEARCH_BEGINS : SLACK_SEARCH_MOVES;
    }
    for (size_t i = 0; i < n; i++)
        if (s->cap_mw[i] < s->from_mw[i] && s->from_mw[i] > high)
            high = s->from_mw[i];
    *ret_to_mw = lowest(s->cap_mw, n);
    *ret_from_mw = high ? high : *ret_to_mw;
    return SLACK_SEARCH_WALKS;
}

enum slack_search_verdict slack_search_on_window(struct slack_search *s,
                                                 const struct slack_search_seen *seen,
                                                 uint32_t *ret_from_mw,
                                                 uint32_t *ret_to_mw)
{
    struct slack_seen board[SLACK_BOARDS_MAX];
    const struct search_window *w = seen->window;
    size_t n = s->caps->n;
    uw_error err;

    if (!wanted(s, seen->cap_mw) || (!s->machine && !begin(s, seen)))
        return SLACK_SEARCH_STAYS;
    for (size_t i = 0; i < n; i++)
        board[i] = (struct slack_seen){.cap_w = w_of_mw(s->caps->got_mw[i]),
                                       .power_w = seen->board_j[i] / seen->took_s};
    struct slack_window window = {w->time_s, w->time_rse, board};
    if (slack_on_window(s->machine, &window, &err) < 0) {
        tuner_note(s->notes, true, "slack: ended: %s", err.text);
        bool moved = slack_search_moved(s);
        end(s, SLACK_OUT);
        return moved ? SLACK_SEARCH_OVER : SLACK_SEARCH_STAYS;
    }
    if (memcmp(slack_step(s->machine)->cap_mw, s->cap_mw, n * sizeof *s->cap_mw) == 0)
        return SLACK_SEARCH_STAYS;
    return go(s, seen->now_ns, ret_from_mw, ret_to_mw);
}
