/* Mean power from counters and readings. */
#include "core/meter/mean.h"

#include "base/units.h"
#include "tap.h"

static double known(const struct mean_power *m)
{
    double w = -1;

    (void)mean_known(m, 0, &w);
    return w;
}

static void test_counter(void)
{
    struct mean_power m = {.n = 0};
    double w = -1;

    ok(!mean_known(&m, 0, &w) && w < 0, "unknown at first");
    mean_reading(&m, 100);
    mean_reading(&m, 300);
    mean_reading(&m, -1);
    mean_tick(&m, true, 5000, 10 * NS_PER_S);
    is_near(known(&m), 200, 1e-9, "the mean of readings; what is no power is left out");
    mean_reading(&m, 900);
    mean_tick(&m, true, 255000, 11 * NS_PER_S);
    is_near(known(&m), 250, 1e-9, "the counter's difference, whatever was read");
    mean_tick(&m, true, 305000, 11 * NS_PER_S + 500 * NS_PER_MS);
    is_near(known(&m), 200, 1e-9, "never over less than a second");
}

static void test_trouble(void)
{
    struct mean_power m = {.n = 0};
    double w = -1;

    mean_tick(&m, true, 5000, 10 * NS_PER_S);
    mean_reading(&m, 80);
    mean_tick(&m, true, 100, 13 * NS_PER_S);
    is_near(known(&m), 80, 1e-9, "a counter that went back: the readings");
    mean_tick(&m, true, 60100, 14 * NS_PER_S);
    is_near(known(&m), 60, 1e-9, "and the counter again from there");
    mean_reading(&m, 70);
    mean_tick(&m, true, 60100, 15 * NS_PER_S);
    is_near(known(&m), 70, 1e-9, "a counter that stands still: the readings");
    mean_tick(&m, false, 0, 16 * NS_PER_S);
    ok(!mean_known(&m, 16 * NS_PER_S, &w), "nothing new: nothing known since then");
    ok(mean_known(&m, 15 * NS_PER_S, &w), "but before");
    mean_reading(&m, 10);
    mean_tick(&m, false, 0, 17 * NS_PER_S);
    is_near(known(&m), 10, 1e-9, "no counter at all");
}

int main(void)
{
    test_counter();
    test_trouble();
    return done();
}
