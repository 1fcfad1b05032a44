/* Mean power of a long time, in stretches that are longer the longer they are ago. */
#include "base/units.h"
#include "core/meter/power-log.h"
#include "tap.h"

#define S(s) ((uint64_t)((s)*1e9))

static struct meter_power buf[POWER_LOG_MAX];

static double sum_j(size_t n)
{
    double j = 0;

    for (size_t i = 0; i < n; i++)
        j += buf[i].power_w * buf[i].over_s;
    return j;
}

static void few(void)
{
    struct power_log l = {.n = 0};

    is_int(power_log_between(&l, S(0), S(100), buf), 0, "nothing yet");
    is_int(power_log_end_from(&l, S(0)), 0, "nor an end");
    power_log_add(&l, S(10), S(20), 1000);
    power_log_add(&l, S(20), S(30), 2000);
    power_log_add(&l, S(25), S(40), 9000);
    power_log_add(&l, S(40), S(40), 9000);
    power_log_add(&l, S(40), S(50), 4000); /* a gap before it */
    is_int(l.n, 3, "what is no later is left out");
    is_int(power_log_between(&l, S(0), S(50), buf), 3, "all of them");
    is_near(buf[2].end_s, 50, 1e-9, "since the time that is asked for");
    is_near(buf[2].over_s, 10, 1e-9, "how long");
    is_near(buf[2].power_w, 400, 1e-9, "their power");
    is_int(power_log_between(&l, S(15), S(45), buf), 3, "from the middle to the middle");
    is_near(buf[0].end_s, 5, 1e-9, "the first one ends there");
    is_near(buf[0].over_s, 10, 1e-9, "and has begun before");
    is_near(buf[2].over_s, 5, 1e-9, "the last one is cut off");
    is_near(sum_j(3), 1000 + 2000 + 2000, 1e-9, "its power stays");
    is_int(power_log_between(&l, S(50), S(60), buf), 0, "after the last");
    is_int(power_log_end_from(&l, S(20)), S(20), "an end at that time");
    is_int(power_log_end_from(&l, S(21)), S(30), "or the next");
    is_int(power_log_end_from(&l, S(51)), 0, "there is none");
    power_log_fini(&l);
    is_int(l.n, 0, "it is empty then");
}

/* Four weeks of 10 s each, i W in the i-th. */
static void weeks(void)
{
    enum { N = 4 * 7 * 8640 };
    struct power_log l = {.n = 0};
    double j = 0;

    for (unsigned i = 0; i < N; i++) {
        power_log_add(&l, S(10.0 * i), S(10.0 * (i + 1)), 10.0 * i);
        j += 10.0 * i;
    }
    size_t n = power_log_between(&l, 0, S(10.0 * N), buf);
    ok(n > POWER_LOG_MAX / 2 && n <= POWER_LOG_MAX, "%zu stretches of four weeks", n);
    is_near(sum_j(n) / j, 1, 1e-9, "their energy");
    double end = 0, widest = 0;
    bool touch = true;
    for (size_t i = 0; i < n; i++) {
        double age = 10.0 * N - buf[i].end_s + buf[i].over_s;
        touch &= fabs(buf[i].end_s - buf[i].over_s - end) < 1e-6;
        end = buf[i].end_s;
        if (buf[i].over_s > 10.5)
            widest = fmax(widest, buf[i].over_s / age);
    }
    ok(touch, "each follows the one before");
    ok(widest < 0.05, "each spans %.1f %% of its age at most", 100 * widest);
    n = power_log_between(&l, S(10.0 * (N - 30)), S(10.0 * N), buf);
    is_int(n, 30, "the last five minutes are there in full");
    n = power_log_between(&l, S(10.0 * (N - 360)), S(10.0 * N), buf);
    ok(n > 100, "the last hour in %zu", n);
    power_log_fini(&l);
}

/* Nothing touches: the oldest go. */
static void gaps(void)
{
    struct power_log l = {.n = 0};

    for (unsigned i = 0; i < POWER_LOG_MAX + 5; i++)
        power_log_add(&l, S(10.0 * i), S(10.0 * i + 5), 1);
    is_int(l.n, POWER_LOG_MAX, "as many as it has room for");
    is_int(power_log_end_from(&l, 0), S(55), "the oldest are gone");
    power_log_fini(&l);
}

/* What joins means. */
static void joins(void)
{
    struct meter_power p[] = {
        {1, 1, 100}, {2, 1, 200}, {2.5, 0.5, 300}, {4, 1, 400}, {4.25, 0.25, 100}};
    size_t n = meter_powers_join(p, n_elements(p), 2);

    is_int(n, 3, "five means of 2 s each are three");
    is_near(p[0].power_w, 150, 1e-9, "the first");
    is_near(p[1].over_s, 1.5, 1e-9, "a gap is in none");
    is_near(p[1].power_w, 550 / 1.5, 1e-9, "nor in its power");
    is_near(p[1].end_s, 4, 1e-9, "though it ends behind it");
    is_near(p[2].over_s, 0.25, 1e-9, "the last may be short");
    is_int(meter_powers_join(p, n, 100), 1, "all are one");
    is_near(p[0].power_w * p[0].over_s, 300 + 150 + 400 + 25, 1e-9, "the same energy");
    is_int(meter_powers_join(p, 0, 1), 0, "none is none");
}

int main(void)
{
    few();
    weeks();
    gaps();
    joins();
    return done();
}
