/* The search, or a cap by name, as an activity: the steps up to the hold.  The search
 * keeps its own state (core/optimum/search.h).
 */
#include <stdio.h>

#include "base/units.h"
#include "tuner/activity.h"

enum { REFERENCE_WINDOWS = 2 };

/* The step for a cap by name: two reference windows, then the cap.  The job's class says
 * how the cap goes down.
 */
static void named_step(const struct activity_now *now, struct search_step *ret)
{
    bool known = now->savings->reference.windows >= REFERENCE_WINDOWS;

    *ret = (struct search_step){
        .kind = known ? SEARCH_HOLD : SEARCH_MEASURE,
        .cap_mw = known ? now->caps->named_mw : now->original_mw,
        .settle_s = 2,
        .settle_steps = 1,
    };
    (void)snprintf(ret->why, sizeof ret->why, known ? "requested" : "reference");
}

static void want(const void *self, const struct activity_now *now,
                 struct search_step *ret)
{
    (void)self;
    if (now->search)
        *ret = *search_step(now->search);
    else
        named_step(now, ret);
}

const struct tuner_activity activity_search = {.name = "search", .want = want};
