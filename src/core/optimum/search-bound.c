/* slowdown:F over the whole job: the cap that the time left allows now (search.h). */
#include "core/optimum/search-state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

bool search_takes_at_most(const struct search *s, uint32_t cap_mw, double most)
{
    const struct outlook *o = &s->outlook;

    return cap_mw >= search_highest(s) ||
           (s->has_reference && o->n > 0 &&
            outlook_takes_at_most(o, outlook_nearest(o, w_of_mw(cap_mw)), most));
}

/* The best measured cap that takes at most what the bound allows; else the highest. */
static uint32_t best_within(const struct search *s)
{
    const struct outlook *o = &s->outlook;

    if (!s->has_reference || o->n == 0)
        return search_highest(s);
    size_t at = outlook_best(o, true, w_of_mw(search_lowest(s)), s->setup.goal.param);
    uint32_t mw = mw_of_w(o->cap_w[at]);
    return mw < search_effective(s, s->reference_mw) ? mw : search_highest(s);
}

/* Holds cap_mw until the search continues.  With F = 1 it never does, because no time
 * can be saved up.
 */
static void wait_at(struct search *s, uint32_t cap_mw, const char *why)
{
    const struct outlook *o = &s->outlook;
    size_t at = outlook_nearest(o, w_of_mw(cap_mw));

    s->best.mw = cap_mw;
    s->best.log_t = o->spot[at].mean_t + o->model.ref_t;
    s->best.log_e = o->spot[at].mean_e + o->model.ref_e;
    s->best.var = o->var[at];
    search_go(s, SEARCH_HOLD, cap_mw, "%s", why);
    s->waits = s->setup.goal.param > 1;
}

void search_afford(struct search *s, double most)
{
    uint32_t cap_mw = s->step.cap_mw, hi = search_highest(s);
    char why[SEARCH_WHY_MAX];

    if (s->holding || cap_mw >= hi ||
        (cap_mw > s->dear_mw && search_takes_at_most(s, cap_mw, most)))
        return;
    uint32_t above = cap_mw > s->dear_mw ? cap_mw : s->dear_mw;
    double new_w =
        s->has_reference ? outlook_new_above(&s->outlook, w_of_mw(above), most) : 0;
    uint32_t mw = search_up_to_grain(s, new_w * MW_PER_W);
    uint32_t best = best_within(s);
    (void)snprintf(why, sizeof why, "%s to try %.0f W",
                   s->setup.goal.param > 1 ? "until the bound leaves time"
                                           : "the bound leaves no time",
                   w_of_mw(cap_mw));
    s->waits_mw = cap_mw;
    if (mw > 0) {
        search_go(s, SEARCH_MEASURE, mw, "%s", why);
    } else if (s->held.mw && (best == hi || best == s->held.mw)) {
        search_end_look(s); /* to wait is the same as to hold */
    } else if (cap_mw <= s->dear_mw &&
               !(outlook_new_above(&s->outlook, w_of_mw(above), INFINITY) > 0)) {
        s->spent = s->windows_max; /* no new cap would end the wait */
        search_go_next(s);
    } else if (best < hi) {
        wait_at(s, best, why);
    } else {
        search_go(s, SEARCH_MEASURE, hi, "%s", why);
        s->waits = s->setup.goal.param > 1; /* otherwise steps there save no time */
    }
}

bool search_is_over(const struct search *s)
{
    return s->held.mw || (s->holding && !s->waits);
}

bool search_waits(const struct search *s)
{
    return s->holding && s->waits;
}

void search_go_on(struct search *s)
{
    uint32_t cap_mw = s->step.cap_mw;
    char why[SEARCH_WHY_MAX];

    if (!search_waits(s))
        return;
    if (s->waited >= s->setup.max_windows)
        s->spent = s->windows_max; /* the search has waited long enough and ends */
    search_go_next(s);
    if (s->holding || s->step.cap_mw != cap_mw ||
        !search_takes_at_most(s, cap_mw, s->setup.goal.param))
        return;
    memcpy(why, s->step.why, sizeof why);
    wait_at(s, cap_mw, why); /* a window of the hold counts as one of the search */
}

const char *search_last_why(struct search *s)
{
    if (search_waits(s))
        (void)snprintf(s->step.why, sizeof s->step.why,
                       "the bound left no time to try %.0f W", w_of_mw(s->waits_mw));
    return s->step.why;
}

void search_untried(const struct search *s, char ret[SEARCH_UNTRIED_MAX])
{
    bool lower = s->waits_mw > 0;

    for (size_t i = 0; i < s->n_levels; i++)
        if (!s->levels[i].stale && mw_of_w(s->levels[i].cap_w) <= s->waits_mw)
            lower = false;
    ret[0] = '\0';
    if (!lower)
        return;
    (void)snprintf(ret, SEARCH_UNTRIED_MAX, "; %.0f W not tried%s", w_of_mw(s->waits_mw),
                   s->spent < s->windows_max ? "" : ": the bound left no time for it");
}

void search_on_spent(struct search *s)
{
    uint32_t cap_mw = s->step.cap_mw, hi = search_highest(s);

    s->dear_mw = hi > cap_mw ? cap_mw + (hi - cap_mw) / 4 : 0;
}
