/* A signal's history: what is kept, what becomes a mean, what is forgotten. */
#include <math.h>
#include <string.h>

#include "policy/signal-history.h"
#include "tap.h"

enum { T0 = 1700000100 }; /* a multiple of 300 */

static double fold(const struct signal_history *h, enum policy_fold fold, double window_s,
                   int64_t at)
{
    struct policy_points p = {h->point, h->n, at};
    struct policy_read read = {.fold = fold, .window_s = window_s, .percent = 50};
    struct policy_folded f;

    policy_series_fold(&p, POLICY_HISTORY, &read, at, &f);
    return f.known ? f.v : (double)NAN;
}

static void steps(void)
{
    struct signal_history h = {0};

    signal_history_add(&h, T0, 1);
    signal_history_add(&h, T0 + 10, 1);
    is_int(h.n, 1, "a value that goes on is one point");
    signal_history_add(&h, T0 + 20, 3);
    signal_history_add(&h, T0 + 30, (double)NAN);
    signal_history_add(&h, T0 + 35, (double)NAN);
    is_int(h.n, 3, "so is a gap");
    is_near(fold(&h, POLICY_MEAN, 30, T0 + 30), 5.0 / 3, 1e-12,
            "the mean is weighted by time");
    signal_history_add(&h, T0 + 20, 5);
    is_int(h.n, 2, "a clock that is set back takes what lies ahead");
    is_near(h.point[1].v, 5, 0, "… and the new value is there");
    signal_history_fini(&h);
    ok(!h.point && h.n == 0, "freed");
}

/* A value each second for four days, 1 in each first half hour and 3 in each second. */
static void long_run(void)
{
    const int64_t span = 4 * 86400;
    struct signal_history h = {0};
    size_t most = 0;
    bool fine = true;

    for (int64_t s = 0; s < span; s++) {
        double base = s / 1800 % 2 ? 3 : 1;
        signal_history_add(&h, T0 + s, base + (s % 2 ? 0.5 : -0.5));
        most = h.n > most ? h.n : most;
    }
    int64_t now = T0 + span;
    ok(most <= SIGNAL_HISTORY_MAX, "at most %d points, %zu", SIGNAL_HISTORY_MAX, most);
    for (size_t i = 1; i < h.n; i++)
        fine &= h.point[i].utc_s > h.point[i - 1].utc_s;
    ok(fine, "in the order of time");
    is_near(fold(&h, POLICY_MEAN, 86400, now), 2, 1e-9, "the mean of a day is exact");
    is_near(fold(&h, POLICY_MEAN, 3 * 86400, now), 2, 1e-9, "of three days, too");
    is_near(fold(&h, POLICY_MAX, 1800, now), 3.5, 0, "the last hour is as it was");
    is_near(fold(&h, POLICY_MAX, 1800, now - 86400), 3, 1e-9,
            "and means over five minutes before");
    signal_history_fini(&h);
}

static void gaps(void)
{
    struct signal_history h = {0};

    /* known for a quarter of each five minutes, then full */
    for (int64_t s = 0; s < SIGNAL_HISTORY_MAX * 5; s += 300) {
        signal_history_add(&h, T0 + s, (double)(s % 600));
        signal_history_add(&h, T0 + s + 75, (double)NAN);
    }
    for (int64_t s = SIGNAL_HISTORY_MAX * 5; h.n < SIGNAL_HISTORY_MAX; s++)
        signal_history_add(&h, T0 + s, (double)(s % 7));
    int64_t now = h.point[h.n - 1].utc_s + 1;
    signal_history_add(&h, now, 99);
    ok(isnan(fold(&h, POLICY_MEAN, 3600, T0 + 4 * 3600)),
       "what was unknown for the most part stays unknown");
    is_near(h.point[h.n - 1].v, 99, 0, "the newest is there");
    signal_history_fini(&h);
}

static void old(void)
{
    struct signal_history h = {0};

    for (int64_t s = 0; s < 40 * 86400; s += 60)
        signal_history_add(&h, T0 + s, (double)(s / 60 % 2));
    ok(h.n <= SIGNAL_HISTORY_MAX, "40 days fit");
    ok(h.point[0].utc_s >= T0 + 19 * 86400, "older than 14 days is forgotten in time");
    is_near(fold(&h, POLICY_MEAN, 13 * 86400, T0 + 40 * 86400), 0.5, 1e-9,
            "the mean of 13 days is exact");
    signal_history_fini(&h);
}

int main(void)
{
    steps();
    long_run();
    gaps();
    old();
    return done();
}
