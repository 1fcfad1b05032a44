/* Forecasts and their judges: errors that are known beforehand, when a verdict is told,
 * who begins anew, places, and the file.
 */
#include "signal/judge-list.h"

#include <errno.h>
#include <stdlib.h>

#include "tap.h"

#define T0 INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
enum { HOUR = 3600, DAY = 86400, N = 14 * 24, WRONG = 25, SWING = 10 };

static struct judge_list list;

/* The actual value: from hour to hour it swings, so that persistence is wrong by SWING an
 * odd number of hours ahead, and right an even one.
 */
static double came_at(int64_t utc_s)
{
    return 300 + (utc_s / HOUR % 2 ? SWING : 0);
}

static struct judge_series hours(struct judge_point *p, int64_t from, int64_t to,
                                 double wrong)
{
    size_t n = 0;

    for (int64_t at = from; at < to; at += HOUR)
        p[n++] = (struct judge_point){at, at + HOUR, came_at(at) + wrong, false};
    return (struct judge_series){p, n};
}

static int step(const char *signal, const char *source, const char *unit, int64_t now)
{
    static struct judge_point ahead[N], came[N];
    int64_t hour = now - now % HOUR;
    int64_t since = hour > T0 + 12 * DAY ? hour - 12 * DAY : T0;
    const struct judge_forecast f = {.signal = signal,
                                     .source = source,
                                     .unit = unit,
                                     .ahead = hours(ahead, hour, hour + 2 * DAY, WRONG),
                                     .came = hours(came, since, hour + HOUR, 0)};

    judge_list_begin(&list);
    return judge_list_step(&list, &f, now);
}

static const struct signal_judged *judged(int64_t now, size_t i)
{
    static struct signal_facts f;

    f.n_judged = 0;
    judge_list_facts(&list, "carbon.forecast", now, &f);
    return i < f.n_judged ? &f.judged[i] : NULL;
}

/* An issue an hour.  Returns when the first verdict was told, in hours; -1: never. */
static int run(int from, int to, const char *source)
{
    int told = -1;

    for (int h = from; h < to; h++)
        if (step("carbon.forecast", source, "g/kWh", T0 + h * (int64_t)HOUR) ==
                JUDGE_LIST_VERDICT &&
            told < 0)
            told = h;
    return told;
}

static void errors(void)
{
    char worse[FACTS_WORSE];
    struct signal_facts f = {.n_judged = 0};

    ok(!judged(T0, 0), "nothing is known at first");
    is_int(run(0, 5 * 24, "gb"), 48, "the verdict is told with 48 values of 3 days");
    int64_t now = T0 + INT64_C(119) * HOUR;
    for (size_t i = 0; i < JUDGE_HORIZONS; i++) {
        const struct signal_judged *j = judged(now, i);
        bool odd = judge_horizon_s(i) / HOUR % 2;
        ok(j && j->score.n == 120 - (uint64_t)(j->horizon_s / HOUR) &&
               fabs(j->score.forecast - WRONG) < 1e-9 &&
               fabs(j->score.last - (odd ? SWING : 0)) < 1e-9 && j->worse,
           "%g h ahead: wrong by %d, persistence by %d: worse",
           (double)judge_horizon_s(i) / HOUR, WRONG, odd ? SWING : 0);
    }
    judge_list_facts(&list, "carbon.forecast", now, &f);
    is_str(facts_worse(&f, worse), "1 h, 3 h, 6 h, 12 h, 24 h", "… in words");
    ok(list.changed, "… and to be kept");
    list.changed = false;
    is_int(run(119, 120, "gb"), -1, "the same again tells nothing");
    ok(!list.changed, "… and there is nothing to keep");
}

static void file(void)
{
    const int64_t now = T0 + INT64_C(119) * HOUR;
    char *text = NULL;
    uw_error err = {""};

    ok(judge_list_write(&list, &text, &err) == 0, "written: %s", err.text);
    is_int(judge_list_read(&list, "x", text, strlen(text) - 30, now, &err), -EINVAL,
           "torn: refused");
    ok(judged(now, 0)->score.n == 119, "… and what was there stays");
    judge_list_fini(&list);
    ok(judge_list_read(&list, "x", text, strlen(text), now, &err) == 0 &&
           judged(now, 0)->score.n == 119 && judged(now, 0)->worse,
       "read back: %s", err.text);
    is_int(run(119, 120, "gb"), -1, "it goes on, and tells nothing twice");
    is_int(run(120, 121, "gb"), -1, "an hour later as well");
    ok(judged(now + HOUR, 0)->score.n == 120, "… one value more");
    ok(judge_list_read(&list, "x", text, strlen(text), now + 60 * DAY, &err) == 0 &&
           list.n == 0,
       "after 60 days: over, it takes no place");
    free(text);
}

static void anew(void)
{
    const int64_t now = T0 + INT64_C(5) * DAY;
    char longer[300];

    judge_list_fini(&list);
    (void)run(0, 30, "gb");
    ok(judged(now, 0) != NULL, "judged");
    (void)step("carbon.forecast", "file /srv/a.csv", "g/kWh", now);
    ok(!judged(now, 0), "another source: begun anew");
    (void)run(121, 130, "file /srv/a.csv");
    ok(judged(now + DAY, 0) != NULL, "… judged again");
    (void)step("carbon.forecast", "file /srv/a.csv", "kg/kWh", now + DAY);
    ok(!judged(now + DAY, 0), "another unit: begun anew");
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)run(150, 160, longer);
    ok(judged(now + 2 * DAY, 0) != NULL, "a source that is cut does not begin anew");
}

static void places(void)
{
    char name[32];
    int told = 0;

    judge_list_fini(&list);
    for (int i = 0; i < JUDGED_MAX; i++) {
        (void)snprintf(name, sizeof name, "x%d.forecast", i);
        told += step(name, "a", "kW", T0 + DAY);
    }
    ok(told == 0 && list.n == JUDGED_MAX, "as many as there are places");
    is_int(step("y.forecast", "a", "kW", T0 + DAY), JUDGE_LIST_FULL, "one more: told");
    (void)step("x0.forecast", "a", "kW", T0 + DAY);
    is_int(step("y.forecast", "a", "kW", T0 + DAY), JUDGE_LIST_FULL,
           "again after a round without it");
    is_int(step("y.forecast", "a", "kW", T0 + DAY), 0, "… and not in the next one");
    (void)step("y.forecast", "a", "kW", T0 + 60 * DAY);
    is_int(list.n, 1, "others that are over leave their places");
}

int main(void)
{
    char name[SIGNAL_NAME];

    judge_list_foretold("rack.a.forecast", name);
    is_str(name, "rack.a", "what a forecast foretells");
    errors();
    file();
    anew();
    places();
    judge_list_fini(&list);
    return done();
}
