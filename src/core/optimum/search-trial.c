/* What a finished trial of a search showed, as one line for a human. */
#include "core/optimum/search-state.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"

#define SAME 5e-4 /* a smaller relative difference is none */

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

/* "19.2 % slower than allowed", "4.1 % lower EDP than 300 W". */
static void judge(const struct search *s, const struct search_window *ref,
                  const struct search_window *tried, const struct search_window *other,
                  char ret[80])
{
    double v = value_of(s, tried, ref);
    const char *noun = goal_noun(s->setup.goal.kind);

    if (isinf(v)) {
        double over = tried->time_s / ref->time_s / s->setup.goal.param - 1;
        (void)snprintf(ret, 80, "%.*f %% slower than allowed", over < 1e-3 ? 3 : 1,
                       100 * over);
        return;
    }
    double differs = v / value_of(s, other, ref) - 1;
    if (fabs(differs) < SAME)
        (void)snprintf(ret, 80, "same %s as at %.0f W", noun, w_of_mw(other->cap_mw));
    else
        (void)snprintf(ret, 80, "%.1f %% %s %s than at %.0f W", 100 * fabs(differs),
                       differs < 0 ? "lower" : "higher", noun, w_of_mw(other->cap_mw));
}

void search_trial(const struct search *s, uint32_t cap_mw, uint32_t held_mw,
                  char ret[SEARCH_WHY_MAX])
{
    struct search_window known[LEVELS_MAX];
    const struct search_window *tried = NULL, *other = known;
    size_t n = search_known(s, known, LEVELS_MAX);
    const struct search_step *next = &s->step;
    char text[80] = "no effect", end[32] = "";

    ret[0] = '\0';
    for (size_t i = 1; i < n; i++) {
        if (is_at(s, &known[i], cap_mw))
            tried = &known[i];
        else if (value_of(s, &known[i], known) < value_of(s, other, known))
            other = &known[i];
    }
    if (n == 0 || (!tried && !(s->unbound_mw && cap_mw >= s->unbound_mw)))
        return;
    if (tried)
        judge(s, known, tried, other, text);
    if (next->kind == SEARCH_HOLD && next->cap_mw == held_mw)
        (void)snprintf(end, sizeof end, ", back to %.0f W", w_of_mw(held_mw));
    (void)snprintf(ret, SEARCH_WHY_MAX, "%.0f W: %s%s", w_of_mw(cap_mw), text, end);
}
