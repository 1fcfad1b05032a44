/* Simulated telemetry of jobs whose phases are known: a schedule of phases with their
 * own patterns of power, what a generation's sensor makes of it (src/plant), and how it
 * was read.
 */
#ifndef BENCH_SCHEDULE_H
#define BENCH_SCHEDULE_H

#include "core/progress/activity.h"
#include "underwatt/error.h"
#include "watch.h"

enum plot {
    PLOT_JOB,     /* start-up, training with pauses and validations, idle at the end */
    PLOT_POWER_5, /* training, then with so many percent less or more power … */
    PLOT_POWER_10,
    PLOT_POWER_30,
    PLOT_PERIOD_5, /* … or another period */
    PLOT_PERIOD_10,
    PLOT_PERIOD_30,
    PLOTS_CHANGING,
    /* an hour each, in which nothing happens: */
    PLOT_STEADY = PLOTS_CHANGING, /* steps of 0.3 to 60 s */
    PLOT_SLOW,                    /* … of 10 to 60 s */
    PLOT_WARMING,                 /* and power drifts up by 6 % */
    PLOT_CONSTANT,
    PLOT_IDLE,
    PLOTS,
};

struct schedule {
    enum plot plot;
    const char *generation;
    double period_s, rate_hz, noise, wander;
    double high_w, low_w, idle_w;
    bool has_util;
    uint64_t seed;
};

struct schedule_trace {
    struct activity *items;
    size_t n, cap;
    struct truths truths;
};

const char *plot_name(enum plot plot);
/* Everything but the plot drawn from the seed. */
struct schedule schedule_draw(enum plot plot, const char *generation, uint64_t seed);
int schedule_play(const struct schedule *s, struct schedule_trace *ret, uw_error *err);
void schedule_trace_free(struct schedule_trace *t);

#endif
