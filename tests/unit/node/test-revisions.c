/* Which quarters are to be revised, as values of factors come and change. */
#include "node/revisions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "tap.h"

#define T0 INT64_C(1767225600) /* 2026-01-01T00:00:00Z */
enum { HOUR = 3600, DAY = 86400 };

/* Hourly values of the day before T0 and of T0's first hours, `more` in the last one. */
static void tell(struct revisions *r, const char *name, const char *source, double v,
                 double more)
{
    enum { N = 26 };
    struct source_point point[N];

    for (int i = 0; i < N; i++)
        point[i] = (struct source_point){T0 - DAY + i * HOUR, T0 - DAY + (i + 1) * HOUR,
                                         i == N - 1 ? more : v, i == N - 1};
    revisions_values(
        r, &(struct signal_values){
               .name = name, .source = source, .unit = "g/kWh", .point = point, .n = N});
}

static int count(struct revisions *r, int64_t utc_s, struct ledger_revision *last)
{
    int n = 0;

    while (n < 1000 && revisions_next(r, utc_s * (int64_t)NS_PER_S, last))
        n++;
    return n;
}

/* Four a tick, as the writer asks, while rows are lost before each tick. */
static void test_losing(void)
{
    enum { QUARTERS = 24 * 4 - 1, TICKS = QUARTERS / 4 + 1 };
    auto_(revisions_free) struct revisions *r = NULL;
    struct ledger_revision rev;
    bool seen[QUARTERS] = {false};
    int quarters = 0, again = 0;

    is_int(revisions_new(&r), 0, "made");
    tell(r, "carbon", "grid", 300, 300);
    for (uint64_t tick = 0; tick < 2 * TICKS; tick++) {
        revisions_lost(r, tick + 1);
        for (int i = 0; i < 4 && revisions_next(r, T0 * (int64_t)NS_PER_S, &rev); i++) {
            int64_t q = (rev.begin_utc_ns / (int64_t)NS_PER_S - (T0 - DAY)) / 900;
            again += seen[q];
            quarters += !seen[q];
            seen[q] = true;
        }
        if (tick == TICKS - 1)
            is_int(quarters, QUARTERS, "each quarter in %d ticks", TICKS);
    }
    is_int(again, 2 * TICKS * 4 - QUARTERS, "then all over again");
    revisions_lost(r, 2 * TICKS);
    (void)count(r, T0, &rev);
    is_int(count(r, T0, &rev), 0, "until no more rows are lost");
}

int main(void)
{
    auto_(revisions_free) struct revisions *r = NULL;
    struct ledger_revision rev;

    is_int(revisions_new(&r), 0, "made");
    is_int(count(r, T0, &rev), 0, "no values: nothing");
    tell(r, "carbon.forecast", "grid", 300, 300);
    is_int(count(r, T0, &rev), 0, "another signal: nothing");
    tell(r, "carbon", "grid", 300, 300);
    is_int(count(r, 5, &rev), 0, "in 1970: nothing");
    is_int(count(r, T0, &rev), 24 * 4 - 1, "each quarter of the day that is over");
    ok(rev.begin_utc_ns == (T0 - 2 * 900) * (int64_t)NS_PER_S &&
           strcmp(rev.signal, "carbon") == 0 && strcmp(rev.source, "grid") == 0 &&
           rev.charge == LEDGER_CO2 && rev.n == 1 &&
           rev.value[0].factor == 300 * INT64_C(1000000),
       "the last one is over since a quarter");
    is_int(count(r, T0, &rev), 0, "once");
    revisions_lost(r, 0);
    is_int(count(r, T0, &rev), 0, "no row is lost: nothing");
    revisions_lost(r, 3);
    is_int(count(r, T0, &rev), 24 * 4 - 1, "rows are lost: each quarter again");
    revisions_lost(r, 3);
    is_int(count(r, T0, &rev), 0, "once");
    is_int(count(r, T0 + 899, &rev), 0, "nor a moment before the next is");
    is_int(count(r, T0 + 900, &rev), 1, "then that");
    tell(r, "carbon", "grid", 300, 300);
    is_int(count(r, T0 + 900, &rev), 0, "the same values: nothing");
    is_int(count(r, T0 + 2 * HOUR + 900, &rev), 8, "time goes on");
    tell(r, "carbon", "grid", 300, 310);
    is_int(count(r, T0 + 2 * HOUR + 900, &rev), 5,
           "another value: its quarters, and the one before, whose last row may reach");
    ok(rev.value[0].estimated && rev.value[0].factor == 310 * INT64_C(1000000),
       "an estimate");
    tell(r, "carbon", "grid", 301, 310);
    is_int(count(r, T0 + 2 * HOUR + 900, &rev), 25 * 4,
           "all others: theirs, not more than two days back");
    tell(r, "carbon", "other", 301, (double)NAN);
    is_int(count(r, T0 + 2 * HOUR + 900, &rev), 25 * 4,
           "another source: all that it knows");
    tell(r, "price", "market", 0.25, 1e300);
    is_int(count(r, T0 + 2 * HOUR + 900, &rev), 25 * 4, "prices are apart");
    is_int(rev.value[0].factor, INT64_C(250000000), "in millionths");
    is_int(count(r, T0 + 3 * DAY, &rev), 0, "three days later it is too late");
    tell(r, "carbon", "grid", 500, 500);
    is_int(count(r, T0 + DAY + HOUR, &rev), 26 * 4 - 5,
           "of the last two days alone, after the clock was set back");
    test_losing();
    return done();
}
