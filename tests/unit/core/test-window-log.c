/* The windows of a search and the noise that they show. */
#include "core/optimum/window-log.h"

#include <math.h>

#include "base/auto.h"
#include "base/units.h"
#include "tap.h"

static struct log_window window(uint32_t cap_mw, double start_s, double log_t)
{
    return (struct log_window){.cap_mw = cap_mw,
                               .log_p = 5,
                               .power_rse = 0.001,
                               .t = {.start_s = start_s,
                                     .lasted_s = 10,
                                     .log_v = log_t,
                                     .rse = 0.001,
                                     .parts = 10}};
}

static void test_room(void)
{
    struct window_log l = {.n = 0};
    double lasted_s = 0;

    for (unsigned i = 0; i < 3 * COMPARE_WINDOWS; i++) {
        struct log_window w = window(i % 12 < 10 ? 200000 : 300000, 10.0 * i, i);
        window_log_add(&l, &w);
    }
    is_int(l.n, COMPARE_WINDOWS, "as many windows as there is room for");
    bool ordered = true, apart = true;
    for (size_t i = 0; i < l.n; i++) {
        const struct compare_window *w = &l.w[i].t;
        double mid = (w->start_s + w->lasted_s / 2) / 10 - 0.5;
        lasted_s += w->lasted_s;
        ordered = ordered && fabs(w->log_v - mid) < 1e-9;
        apart = apart && (w->lasted_s < 11 || (w->parts == 0 && w->rse < 0.001));
    }
    ok(ordered, "neighbours at one cap are joined to their mean");
    ok(apart, "… with a smaller error, and nothing is known of the scatter within");
    is_near(lasted_s, 30.0 * COMPARE_WINDOWS, 1e-6, "… and none is lost");
}

static void test_tells(void)
{
    struct window_log l = {.n = 0};
    struct log_window w = window(200000, 0, 0);

    ok(!window_log_tells(&l), "no window tells nothing");
    w.t.rse = 0;
    window_log_add(&l, &w);
    ok(!window_log_tells(&l), "nor do exact ones");
    w = window(200000, 20, 0);
    window_log_add(&l, &w);
    ok(window_log_tells(&l), "one with an error does");
    w.t.lasted_s = 0;
    window_log_add(&l, &w);
    ok(!window_log_tells(&l), "… until one comes without its time");
}

/* Levels of three caps, the windows of a fourth among those of the reference. */
static void test_levels(void)
{
    static const uint32_t caps_mw[] = {300000, 200000, 200000, 280000, 150000, 150000};
    static const double log_t[] = {0, 0.1, 0.1, 0.002, 0.2, 0.2};
    struct level levels[4] = {{.cap_w = 150, .windows = 2},
                              {.cap_w = 170, .stale = true, .log_t = 7, .var_t = 3},
                              {.cap_w = 200, .windows = 2},
                              {.cap_w = 300, .windows = 2}};
    struct window_log l = {.n = 0};
    static struct noise noise;

    for (unsigned i = 0; i < n_elements(caps_mw); i++) {
        struct log_window w = window(caps_mw[i], 12.0 * i, log_t[i]);
        window_log_add(&l, &w);
    }
    window_log_levels(&l, levels, 4, 3, &noise);
    is_near(levels[0].log_t - levels[3].log_t, 0.199, 0.001, "the lowest cap's time");
    is_near(levels[2].log_t - levels[3].log_t, 0.099, 0.001, "… and the middle one's");
    is_near(levels[2].log_e - levels[2].log_t, 5, 1e-6, "… and its power");
    ok(levels[1].log_t == 7 && levels[1].var_t == 3 && levels[1].side == 0,
       "a stale level stays");
    double var =
        noise.t.cov[0][0] + noise.t.cov[3][3] - 2 * noise.t.cov[levels[0].side - 1][3];
    ok(var > 0 && var < 0.005 * 0.005, "their ratio is known to %.3f %%",
       100 * sqrt(var));
}

int main(void)
{
    test_room();
    test_tells();
    test_levels();
    return done();
}
