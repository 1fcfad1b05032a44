/* A job on boards for tests of the search, in the file that includes it. */
#ifndef TESTS_SEARCH_JOB_H
#define TESTS_SEARCH_JOB_H

#include <math.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/units.h"
#include "core/optimum/search.h"
#include "tap.h"

/* A job on boards, for tests: pauses, work that follows the clock and work that
 * does not; the clock is the highest whose power the cap allows.
 */
struct job {
    double power_w; /* at the highest clock */
    double clocked; /* share of the time at the highest clock that follows it */
    double rough, noise;
    unsigned gpus;
    uint32_t deaf_mw; /* the board holds this cap whatever it is told; 0: obeys */
    double change;    /* time x this */
    double wait;      /* … and so long waits, at little power */
    double now_s;     /* windows of ordinary length last 10 s, 2 s apart */
    double dip_w;     /* around this cap time is 12 % less, 16 W wide; 0: nowhere */
    struct rng rng;
};

static double power_at(const struct job *j, double clock)
{
    double volt = fmax(0.72, 1 - 0.5 * (1 - clock));
    return j->power_w * (0.28 + 0.72 * clock * volt * volt);
}

static double clock_at(const struct job *j, double cap_w)
{
    double lo = 0.2, hi = 1;
    if (power_at(j, 1) <= cap_w)
        return 1;
    for (int i = 0; i < 40; i++) {
        double mid = (lo + hi) / 2;
        if (power_at(j, mid) <= cap_w)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static double true_time(const struct job *j, double cap_w)
{
    double bump = 1 + j->rough * sin(cap_w * 0.21) * cos(cap_w * 0.083);
    double t = 0.08 + (0.92 - j->clocked) + j->clocked / clock_at(j, cap_w);
    double off_w = fabs(cap_w - j->dip_w);
    if (j->dip_w > 0 && off_w < 8)
        bump *= 1 - 0.12 * (1 - off_w / 8);
    return j->change * (t * bump + j->wait);
}

static double true_energy(const struct job *j, double cap_w)
{
    double idle = j->change * (0.08 + j->wait), work = true_time(j, cap_w) - idle;
    return j->gpus * (work * power_at(j, clock_at(j, cap_w)) + idle * 0.3 * j->power_w);
}

static double error_of(struct job *j)
{
    return j->noise > 0 ? j->noise * rng_normal(&j->rng) : 0;
}

static struct search_window window_at(struct job *j, uint32_t cap_mw)
{
    uint32_t mw = j->deaf_mw ? j->deaf_mw : cap_mw;
    double start_s = j->now_s;
    j->now_s += 12;
    return (struct search_window){
        .cap_mw = mw,
        .time_s = true_time(j, w_of_mw(mw)) * (1 + error_of(j)),
        .energy_j = true_energy(j, w_of_mw(mw)) * (1 + error_of(j)),
        .time_rse = j->noise,
        .energy_rse = j->noise,
        .peak_w = fmin(j->power_w, w_of_mw(mw)),
        .start_s = start_s,
        .lasted_s = 10,
    };
}

static const struct search_setup v100 = {
    .goal = {GOAL_EDP, 0},
    .min_mw = 100000,
    .max_mw = 300000,
    .default_mw = 300000,
    .original_mw = 300000,
};
static const struct job plain = {.power_w = 310, .clocked = 0.35, .gpus = 1, .change = 1};

static inline struct search *search_of(const struct search_setup *setup)
{
    struct search *s = NULL;
    uw_error err = {""};
    if (search_new(setup, &s, &err) != 0)
        ok(false, "search_new: %s", err.text);
    return s;
}

/* Until it holds; the windows it took. */
static inline unsigned run(struct search *s, struct job *j)
{
    unsigned n = 0;
    while (search_step(s)->kind == SEARCH_MEASURE && n < 200) {
        struct search_window w = window_at(j, search_step(s)->cap_mw);
        (void)search_on_window(s, &w, NULL);
        n++;
    }
    return n;
}

#endif
