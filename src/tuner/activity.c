#include "tuner/activity.h"

const struct tuner_activity *const activities[ACTIVITIES_N] = {
    [ACTIVITY_SEARCH] = &activity_search, [ACTIVITY_SAFE] = &activity_safe,
    [ACTIVITY_REST] = &activity_rest,     [ACTIVITY_SLACK] = &activity_slack,
    [ACTIVITY_LOCK] = &activity_lock,     [ACTIVITY_CHECK] = &activity_check,
    [ACTIVITY_GAP] = &activity_gap,
};

bool activities_moved(void *const *self)
{
    for (size_t i = 0; i < ACTIVITIES_N; i++)
        if (activities[i]->moved && activities[i]->moved(self[i]))
            return true;
    return false;
}

static bool measure(void *const *self)
{
    for (size_t i = 0; i < ACTIVITIES_N; i++)
        if (activities[i]->measures && activities[i]->measures(self[i]))
            return true;
    return false;
}

enum activity_verdict activities_on_hold(void *const *self, struct activity_now *now,
                                         enum activity_id *ret_id)
{
    for (size_t i = 0; i < ACTIVITIES_N; i++) {
        if (!activities[i]->on_hold)
            continue;
        now->moved = activities_moved(self);
        now->measures = measure(self);
        enum activity_verdict v = activities[i]->on_hold(self[i], now);
        *ret_id = (enum activity_id)i;
        if (v != ACTIVITY_STAYS)
            return v;
    }
    return ACTIVITY_STAYS;
}

uint32_t activities_target(void *const *self, const struct activity_target *step)
{
    uint32_t mw = step->cap_mw;

    for (size_t i = 0; i < ACTIVITIES_N; i++)
        if (activities[i]->target)
            mw = activities[i]->target(self[i], step, mw);
    return mw;
}

uint32_t activities_board_mw(void *const *self, size_t i, uint32_t mw)
{
    for (size_t k = 0; k < ACTIVITIES_N; k++)
        if (activities[k]->board_mw)
            mw = activities[k]->board_mw(self[k], i, mw);
    return mw;
}

enum activity_way activities_walk(void *const *self, bool hold, uint64_t now_ns)
{
    enum activity_way way = ACTIVITY_THERE;

    for (size_t i = 0; i < ACTIVITIES_N && way == ACTIVITY_THERE; i++)
        if (activities[i]->walk)
            way = activities[i]->walk(self[i], hold, now_ns);
    return way;
}

uint64_t activities_late_ns(void *const *self)
{
    uint64_t next = UINT64_MAX;

    for (size_t i = 0; i < ACTIVITIES_N; i++) {
        uint64_t at =
            activities[i]->late_ns ? activities[i]->late_ns(self[i]) : UINT64_MAX;
        if (at < next)
            next = at;
    }
    return next;
}

void activities_see(void *const *self)
{
    for (size_t i = 0; i < ACTIVITIES_N; i++)
        if (activities[i]->see)
            activities[i]->see(self[i]);
}

bool activities_on_news(void *const *self, enum activity_news news)
{
    for (size_t i = 0; i < ACTIVITIES_N; i++)
        if (activities[i]->on_news && activities[i]->on_news(self[i], news))
            return true;
    return false;
}
