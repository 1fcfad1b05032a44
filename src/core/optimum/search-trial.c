/* What a finished trial of a search showed, as one line for a human. */
#include "core/optimum/search-state.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "base/within.h"

#define SAME 5e-4 /* smaller relative differences and half intervals are none */

enum { TOLD = 96 };

static double value_of(const struct search *s, const struct search_window *w,
                       const struct search_window *ref)
{
    struct goal_ref r = {ref->energy_j, ref->time_s,
                         s->setup.gpus * w_of_mw(s->setup.max_mw)};

    return goal_relative(&s->setup.goal, w->energy_j, w->time_s, &r);
}

static bool is_at(const struct search *s, const struct search_window *w, uint32_t cap_mw)
{
    uint32_t off = w->cap_mw > cap_mw ? w->cap_mw - cap_mw : cap_mw - w->cap_mw;

    return off <= s->setup.grain_mw / 2;
}

/* "12.13 ± 0.83 % lower": the goal's value at `tried` against that at the reference, with
 * half of the 95 % interval; the errors of energy and time are independent.
 */
static void compare(const struct search *s, const struct goal *goal,
                    const struct search_window *ref, const struct search_window *tried,
                    const char *more, const char *less, char ret[TOLD])
{
    struct goal_ref r = {ref->energy_j, ref->time_s,
                         s->setup.gpus * w_of_mw(s->setup.max_mw)};
    struct goal_shape shape = goal_shape_of(goal, &r);
    double e = tried->energy_j / ref->energy_j, t = tried->time_s / ref->time_s;
    double v = goal_shape_value(&shape, e, t);
    double by_e = shape.product ? v : shape.we * e,
           by_t = shape.product ? v : shape.wt * t;
    double half = WITHIN_95 * hypot(by_e * hypot(tried->energy_rse, ref->energy_rse),
                                    by_t * hypot(tried->time_rse, ref->time_rse));
    char text[WITHIN_TEXT];

    if (fabs(v - 1) < SAME && half < SAME)
        (void)snprintf(ret, TOLD, "same");
    else
        (void)snprintf(ret, TOLD, "%s %% %s",
                       within_text(100 * fabs(v - 1), 100 * half, text),
                       v < 1 ? less : more);
}

/* "19.0 ± 2.1 % slower, 5 % allowed", "4.1 ± 0.5 % lower EDP than at 300
 * W".
 */
static void judge(const struct search *s, const struct search_window *ref,
                  const struct search_window *tried, char ret[SEARCH_WHY_MAX])
{
    const struct goal *goal = &s->setup.goal;
    struct goal energy = {.kind = GOAL_ENERGY}, time = {.kind = GOAL_TIME};
    double ref_w = w_of_mw(ref->cap_mw);
    char text[TOLD];

    if (isinf(value_of(s, tried, ref))) {
        compare(s, &time, ref, tried, "slower", "faster", text);
        if (*text == 's')
            (void)snprintf(text, sizeof text, "not faster");
        (void)snprintf(ret, SEARCH_WHY_MAX, "%s, %.3g %% allowed", text,
                       100 * (goal->param - 1));
        return;
    }
    compare(s, goal->kind == GOAL_SLOWDOWN ? &energy : goal, ref, tried, "higher",
            "lower", text);
    (void)snprintf(ret, SEARCH_WHY_MAX, "%s %s %s at %.0f W", text, goal_noun(goal->kind),
                   *text == 's' ? "as" : "than", ref_w);
}

void search_trial(const struct search *s, uint32_t cap_mw, uint32_t held_mw,
                  char ret[SEARCH_WHY_MAX])
{
    struct search_window known[LEVELS_MAX];
    const struct search_window *tried = NULL, *best = known;
    size_t n = search_known(s, known, LEVELS_MAX);
    const struct search_step *next = &s->step;
    char text[SEARCH_WHY_MAX] = "no effect", end[40] = "";

    ret[0] = '\0';
    for (size_t i = 1; i < n; i++) {
        if (is_at(s, &known[i], cap_mw))
            tried = &known[i];
        if (value_of(s, &known[i], known) < value_of(s, best, known))
            best = &known[i];
    }
    if (n == 0 || (!tried && !(s->unbound_mw && cap_mw >= s->unbound_mw)))
        return;
    if (tried)
        judge(s, known, tried, text);
    if (next->kind == SEARCH_HOLD && next->cap_mw == held_mw)
        (void)snprintf(end, sizeof end, "; back to %.0f W", w_of_mw(held_mw));
    else if (tried && tried == best)
        (void)snprintf(end, sizeof end, "; best so far");
    else if (tried)
        (void)snprintf(end, sizeof end, "; best: %.0f W", w_of_mw(best->cap_mw));
    (void)snprintf(ret, SEARCH_WHY_MAX, "%.0f W: %.120s%s", w_of_mw(cap_mw), text, end);
}
