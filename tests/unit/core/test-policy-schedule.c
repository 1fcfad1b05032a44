/* Hours of a schedule, over the changes of a clock; series. */
#include "core/policy/schedule.h"

#include "base/auto.h"
#include "core/policy/series.h"
#include "tap.h"

enum { MON_FRI = 0x1f, SUNDAY = 0x40 };
#define HOUR INT64_C(3600)
#define DAY (24 * HOUR)
/* 2026-11-23 00:00 UTC, a Monday */
#define MONDAY INT64_C(1795392000)
/* 2026-10-25 01:00 UTC, a Sunday: Berlin's clock goes from 03:00 back to 02:00 */
#define BACK INT64_C(1792890000)
/* 2026-03-29 01:00 UTC, a Sunday: Berlin's clock goes from 02:00 to 03:00 */
#define AHEAD INT64_C(1774746000)

static const struct policy_zone utc = {.change_utc_s = INT64_MAX};
static const struct policy_zone berlin_autumn = {2 * HOUR, HOUR, BACK};
static const struct policy_zone berlin_spring = {HOUR, 2 * HOUR, AHEAD};
#define HM(h, m) ((h)*60 + (m))

static const struct {
    const char *name;
    struct policy_schedule s;
    const struct policy_zone *zone;
    int64_t utc_s;
    bool inside;
    int64_t edge_utc_s;
} cases[] = {
    /* clang-format off */
    {"before the first minute", {MON_FRI, HM(8, 0), HM(18, 0)}, &utc, MONDAY + 8 * HOUR - 1, false, MONDAY + 8 * HOUR},
    {"the first minute is inside", {MON_FRI, HM(8, 0), HM(18, 0)}, &utc, MONDAY + 8 * HOUR, true, MONDAY + 18 * HOUR},
    {"the last one is not", {MON_FRI, HM(8, 0), HM(18, 0)}, &utc, MONDAY + 18 * HOUR, false, MONDAY + DAY + 8 * HOUR},
    {"over the weekend", {MON_FRI, HM(8, 0), HM(18, 0)}, &utc, MONDAY + 4 * DAY + 18 * HOUR, false, MONDAY + 7 * DAY + 8 * HOUR},
    {"night: before midnight", {MON_FRI, HM(22, 0), HM(6, 0)}, &utc, MONDAY + 23 * HOUR, true, MONDAY + 30 * HOUR},
    {"night: Friday's goes on", {MON_FRI, HM(22, 0), HM(6, 0)}, &utc, MONDAY + 5 * DAY + 5 * HOUR, true, MONDAY + 5 * DAY + 6 * HOUR},
    {"night: Sunday's does not begin", {MON_FRI, HM(22, 0), HM(6, 0)}, &utc, MONDAY + 6 * DAY + 23 * HOUR, false, MONDAY + 7 * DAY + 22 * HOUR},
    {"night: Monday's early hours are Sunday's", {MON_FRI, HM(22, 0), HM(6, 0)}, &utc, MONDAY + 3 * HOUR, false, MONDAY + 22 * HOUR},
    {"whole days", {MON_FRI, 0, POLICY_DAY_MIN}, &utc, MONDAY + 5, true, MONDAY + 5 * DAY},
    {"whole days, outside", {MON_FRI, 0, POLICY_DAY_MIN}, &utc, MONDAY + 5 * DAY, false, MONDAY + 7 * DAY},
    {"always", {0x7f, 0, POLICY_DAY_MIN}, &utc, MONDAY + 5, true, INT64_MAX},
    {"one day, the same hour: until the next day", {1, HM(8, 0), HM(8, 0)}, &utc, MONDAY + 9 * HOUR, true, MONDAY + 32 * HOUR},
    {"never", {0, HM(8, 0), HM(9, 0)}, &utc, MONDAY, false, INT64_MAX},
    {"before 1970", {MON_FRI, HM(8, 0), HM(18, 0)}, &utc, -2 * DAY - HOUR, false, -2 * DAY + 8 * HOUR},
    {"an hour that comes twice: the first time", {SUNDAY, HM(2, 30), HM(4, 0)}, &berlin_autumn, BACK - 1860, false, BACK - 1800},
    {"… ends where the clock is set back", {SUNDAY, HM(2, 30), HM(4, 0)}, &berlin_autumn, BACK - 1800, true, BACK},
    {"… and begins again", {SUNDAY, HM(2, 30), HM(4, 0)}, &berlin_autumn, BACK, false, BACK + 1800},
    {"… and lasts", {SUNDAY, HM(2, 30), HM(4, 0)}, &berlin_autumn, BACK + 1800, true, BACK + 2 * HOUR},
    {"an edge behind the change", {SUNDAY, HM(1, 0), HM(6, 0)}, &berlin_autumn, BACK - 5400, true, BACK + 4 * HOUR},
    {"an hour that does not exist begins with the next", {SUNDAY, HM(2, 30), HM(4, 0)}, &berlin_spring, AHEAD - 60, false, AHEAD},
    {"… and ends by the new clock", {SUNDAY, HM(2, 30), HM(4, 0)}, &berlin_spring, AHEAD, true, AHEAD + HOUR},
    {"a window inside the hour that does not exist is left out", {SUNDAY, HM(2, 10), HM(2, 50)}, &berlin_spring, AHEAD - 60, false, AHEAD + 7 * DAY - HOUR + 600},
    /* clang-format on */
};

static void test_schedule(void)
{
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct policy_hours h;
        policy_schedule_at(&cases[i].s, cases[i].zone, cases[i].utc_s, &h);
        ok(h.inside == cases[i].inside, "%s", cases[i].name);
        is_int(h.edge_utc_s, cases[i].edge_utc_s, "%s: the edge", cases[i].name);
    }
}

/* Second by second around a change, the edge is where the answer changes. */
static void test_edges(void)
{
    const struct policy_schedule s = {SUNDAY, HM(2, 30), HM(4, 0)};
    unsigned wrong = 0, changes = 0;
    struct policy_hours h, next;

    for (int64_t t = BACK - 2 * HOUR; t < BACK + 4 * HOUR; t++) {
        policy_schedule_at(&s, &berlin_autumn, t, &h);
        policy_schedule_at(&s, &berlin_autumn, t + 1, &next);
        changes += h.inside != next.inside;
        wrong += (h.inside != next.inside) != (h.edge_utc_s == t + 1);
    }
    is_int(wrong, 0, "each edge is told in the second before it, and no other");
    is_int(changes, 4, "two windows in the night of the change");
}

static void test_longest(void)
{
    static const struct {
        struct policy_schedule s;
        uint32_t longest_s;
    } cases_[] = {{{MON_FRI, HM(8, 0), HM(18, 0)}, 10 * HOUR},
                  {{MON_FRI, HM(22, 0), HM(6, 0)}, 8 * HOUR},
                  {{MON_FRI, 0, POLICY_DAY_MIN}, 5 * DAY},
                  {{0x7f, 0, POLICY_DAY_MIN}, UINT32_MAX},
                  {{0x7f, HM(6, 0), HM(6, 0)}, UINT32_MAX},
                  {{0, 0, 1}, 0}};

    for (size_t i = 0; i < n_elements(cases_); i++)
        is_int(policy_schedule_longest_s(&cases_[i].s), cases_[i].longest_s,
               "the longest time inside, case %zu", i);
}

/* 10 for 1 h, 20 for 2 h, 40 for 1 h, 0 for 4 h */
static const struct policy_point points[] = {
    {MONDAY, 10}, {MONDAY + HOUR, 20}, {MONDAY + 3 * HOUR, 40}, {MONDAY + 4 * HOUR, 0}};
static const struct policy_points day = {points, n_elements(points), MONDAY + 8 * HOUR};

static void test_series(void)
{
    static const struct {
        const char *name;
        enum policy_series series;
        struct policy_read read;
        int64_t at_h;
        bool known;
        double v;
    } cases_[] = {
        /* clang-format off */
        {"mean of a history", POLICY_HISTORY, {0, POLICY_MEAN, 0, 4 * HOUR}, 4, true, 22.5},
        {"mean of a forecast", POLICY_FORECAST, {0, POLICY_MEAN, 0, 4 * HOUR}, 0, true, 22.5},
        {"lowest", POLICY_HISTORY, {0, POLICY_MIN, 0, 3 * HOUR}, 4, true, 20},
        {"highest", POLICY_FORECAST, {0, POLICY_MAX, 0, 8 * HOUR}, 0, true, 40},
        {"a part of the window is covered", POLICY_HISTORY, {0, POLICY_MEAN, 0, 4 * HOUR}, 2, true, 15},
        {"too small a part", POLICY_HISTORY, {0, POLICY_MEAN, 0, 4 * HOUR}, 1, false, 0},
        {"beyond the end", POLICY_FORECAST, {0, POLICY_MEAN, 0, 4 * HOUR}, 7, false, 0},
        {"median", POLICY_HISTORY, {0, POLICY_PERCENTILE, 50, 4 * HOUR}, 4, true, 20},
        {"75 %", POLICY_HISTORY, {0, POLICY_PERCENTILE, 75, 4 * HOUR}, 4, true, 20},
        {"76 %", POLICY_HISTORY, {0, POLICY_PERCENTILE, 76, 4 * HOUR}, 4, true, 40},
        {"0 %", POLICY_HISTORY, {0, POLICY_PERCENTILE, 0, 4 * HOUR}, 4, true, 10},
        {"100 %", POLICY_HISTORY, {0, POLICY_PERCENTILE, 100, 4 * HOUR}, 4, true, 40},
        /* clang-format on */
    };
    struct policy_folded f;

    for (size_t i = 0; i < n_elements(cases_); i++) {
        policy_series_fold(&day, cases_[i].series, &cases_[i].read,
                           MONDAY + cases_[i].at_h * HOUR, &f);
        ok(f.known == cases_[i].known && (!f.known || fabs(f.v - cases_[i].v) < 1e-9),
           "%s: %g", cases_[i].name, f.v);
    }
    is_int(f.next_utc_s, MONDAY + 4 * HOUR + 144, "anew a hundredth of the window later");
    struct policy_point odd[] = {{MONDAY, NAN}, {MONDAY + HOUR, 3}};
    policy_series_fold(&(struct policy_points){odd, 2, MONDAY + 3 * HOUR},
                       POLICY_FORECAST,
                       &(struct policy_read){0, POLICY_MEAN, 0, 3 * HOUR}, MONDAY, &f);
    ok(f.known && f.v == 3, "what is no number does not count");
    policy_series_fold(&(struct policy_points){NULL, 0, 0}, POLICY_HISTORY,
                       &cases_[0].read, MONDAY, &f);
    ok(!f.known, "nothing is known of no points");
}

int main(void)
{
    test_schedule();
    test_edges();
    test_longest();
    test_series();
    return done();
}
