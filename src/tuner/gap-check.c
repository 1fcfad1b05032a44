#include "tuner/gap-check.h"

#include "base/units.h"
#include "tuner/activity.h"

enum { HOLD_WINDOWS = 8 }; /* windows of the hold from one attempt to the next */

static enum activity_verdict on_hold(void *self, const struct activity_now *now)
{
    struct gap_check *g = self;
    const struct savings *s = now->savings;

    if (now->rules_mw < now->reference_mw) /* a gap's cap may be above a rule's */
        return ACTIVITY_STAYS;
    if (!now->search || now->moved || now->measures || s->hold.windows % HOLD_WINDOWS)
        return ACTIVITY_STAYS;
    double worse = gap_probes_allow(&g->probes, savings_time_s(s, 1),
                                    SEARCH_SETTLE_S + now->window_s);
    if (!(worse > 0) || !search_probe_gap(now->search, worse))
        return ACTIVITY_STAYS;
    g->since_ns = now->now_ns;
    g->windows = now->windows;
    return ACTIVITY_BEGINS;
}

void gap_check_end(struct gap_check *g, unsigned windows, bool moved, uint64_t now_ns)
{
    if (windows > g->windows || moved)
        gap_probes_made(&g->probes, s_between(g->since_ns, now_ns), windows - g->windows);
}

static bool on_news(void *self, enum activity_news news)
{
    struct gap_check *g = self;

    if (news == ACTIVITY_REGIME) {
        g->probes.n = 0;
        g->probes.last_s = 0;
    }
    return false;
}

static const struct saved_field saved[] = {
    {"looks", COUNT, .at = offsetof(struct activity_kept, gap_checks.n), "looks"},
    {"look_s", NUMBER, .at = offsetof(struct activity_kept, gap_checks.last_s), "looks"},
};

const struct tuner_activity activity_gap = {
    .name = "gap",
    .on_hold = on_hold,
    .on_news = on_news,
    .saved = saved,
    .n_saved = n_elements(saved),
};
