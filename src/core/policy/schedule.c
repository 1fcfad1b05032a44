#include "core/policy/schedule.h"

enum { DAYS = 7, EPOCH_DAY = 3 /* 1 January 1970 was a Thursday */ };
#define DAY_S INT64_C(86400)
#define MINUTE_S INT64_C(60)

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool has_day(const struct policy_schedule *s, int64_t day)
{
    return s->days >> (((day + EPOCH_DAY) % DAYS + DAYS) % DAYS) & 1;
}

/* wall_s: local time as if it were UTC. */
static bool is_inside(const struct policy_schedule *s, int64_t wall_s)
{
    int64_t day = floor_div(wall_s, DAY_S), second = wall_s - day * DAY_S;
    int64_t from_s = s->from_min * MINUTE_S, to_s = s->to_min * MINUTE_S;

    if (from_s < to_s)
        return has_day(s, day) && second >= from_s && second < to_s;
    return (has_day(s, day) && second >= from_s) ||
           (has_day(s, day - 1) && second < to_s);
}

/* The first time after wall_s, within 8 days, at which is_inside() is not `inside`. */
static int64_t next_edge(const struct policy_schedule *s, int64_t wall_s, bool inside)
{
    int64_t today = floor_div(wall_s, DAY_S);
    int64_t low = s->from_min < s->to_min ? s->from_min : s->to_min;
    int64_t high = s->from_min < s->to_min ? s->to_min : s->from_min;

    for (int64_t day = today; day <= today + DAYS + 1; day++) {
        int64_t edges[] = {day * DAY_S + low * MINUTE_S, day * DAY_S + high * MINUTE_S};
        for (int i = 0; i < 2; i++)
            if (edges[i] > wall_s && is_inside(s, edges[i]) != inside)
                return edges[i];
    }
    return INT64_MAX;
}

void policy_schedule_at(const struct policy_schedule *s, const struct policy_zone *zone,
                        int64_t utc_s, struct policy_hours *ret)
{
    bool changed = utc_s >= zone->change_utc_s;
    int64_t offset_s = changed ? zone->after_s : zone->offset_s;
    bool inside = is_inside(s, utc_s + offset_s);
    int64_t edge = next_edge(s, utc_s + offset_s, inside);

    *ret = (struct policy_hours){.inside = inside, .edge_utc_s = INT64_MAX};
    if (edge != INT64_MAX)
        ret->edge_utc_s = edge - offset_s;
    if (changed || ret->edge_utc_s < zone->change_utc_s ||
        zone->change_utc_s == INT64_MAX)
        return;
    /* the clock is set before the edge */
    int64_t wall_s = zone->change_utc_s + zone->after_s;
    if (is_inside(s, wall_s) != inside) {
        ret->edge_utc_s = zone->change_utc_s;
        return;
    }
    edge = next_edge(s, wall_s, inside);
    ret->edge_utc_s = edge == INT64_MAX ? INT64_MAX : edge - zone->after_s;
}

uint32_t policy_schedule_longest_s(const struct policy_schedule *s)
{
    int64_t longest = 0;

    for (int64_t day = 0; day < DAYS; day++) {
        int64_t begin = day * DAY_S + s->from_min * MINUTE_S;
        if (!has_day(s, day))
            continue;
        int64_t end = next_edge(s, begin, true);
        if (end == INT64_MAX)
            return UINT32_MAX;
        longest = end - begin > longest ? end - begin : longest;
    }
    return (uint32_t)longest;
}
