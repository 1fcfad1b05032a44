#include "tuner/safe-cap.h"

#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "tuner/activity.h"

#define SAFE_SHARE 0.80 /* the safe cap is at least this part of the default limit */

bool safe_cap_allowed(const struct safe_cap *s)
{
    return s->goal.kind != GOAL_TIME && s->goal.kind != GOAL_SLOWDOWN;
}

void safe_cap_choose(struct safe_cap *s, double peak_w, uint32_t reference_mw)
{
    uint32_t most = board_caps_most_default_mw(s->caps);

    peak_w = fmin(peak_w, w_of_mw(reference_mw)); /* readings may be too high */
    double w = fmax(SEARCH_FIRST * peak_w, SAFE_SHARE * w_of_mw(most));
    uint32_t mw = mw_of_w(ceil(w));
    s->mw = mw < reference_mw ? mw : reference_mw;
}

void safe_cap_why(const char *unknown, char *ret, size_t size)
{
    (void)snprintf(ret, size,
                   "the job's progress is unknown (%s): the safe cap, %.2f of its "
                   "observed peak or %.2f of the default limit",
                   unknown, SEARCH_FIRST, SAFE_SHARE);
}

static void want(const void *self, const struct activity_now *now,
                 struct search_step *ret)
{
    const struct safe_cap *s = self;

    *ret = (struct search_step){
        .kind = SEARCH_HOLD, .cap_mw = s->mw, .ramp_mw_s = now->ramp_mw_s};
}

const struct tuner_activity activity_safe = {.name = "safe", .want = want};
