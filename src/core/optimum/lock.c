#include "core/optimum/lock.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/units.h"
#include "core/cap/clock.h"
#include "core/optimum/climb.h"
#include "core/optimum/compare.h"

enum {
    TRIES_MAX = CLIMB_POINTS_MAX + 1,
    BLOCK = 3,        /* windows: two of the setting tried, then one of the cap alone */
    MISSES_MAX = 2,   /* windows at a cap not asked for; in a hold: consecutive ones */
    LEAST_BLOCKS = 2, /* unless windows are exact: one block hardly shows the scatter */
    CAP_ALONE = 0     /* its side in the comparison; a trial's: its index + 1 */
};
#define SURE 2.45     /* standard errors */
#define SLACK 0.002   /* of a bound, where windows have errors: outlook.c */
#define EXACT 1e-7    /* variances up to this are those of exact windows */
#define MAY_COST 0.02 /* assumed worst loss of a setting not yet measured */
#define HOPE 0.015    /* smallest gain that a new setting must be able to show */
#define HOPE_EDP 2    /* factor for EDP: it is a product of time and energy */
#define HOUR_S 3600.0

/* Logarithms of the ratios to the reference; GOAL: of the goal's value without the
 * bound.
 */
enum { TIME, ENERGY, GOAL, SERIES };

/* A setting compared with the cap alone. */
struct trial {
    uint32_t cap_mw, mhz;
    unsigned blocks;
    bool good; /* better, and allowed */
};

enum phase { PHASE_CAP, PHASE_TRY, PHASE_HOLD, PHASE_CHECK, PHASE_OVER };

struct lock {
    struct lock_setup setup;
    struct goal_shape shape;
    double log_bound, held_excess, held_var;
    enum phase phase;
    struct lock_step step;
    struct lock_result result;
    struct trial trial[TRIES_MAX];
    unsigned n, at; /* trials; index of the current or held one */
    bool beside;    /* a lock together with the cap was tried */
    unsigned alike; /* windows in a row of the setting tried, or in a check of the cap */
    unsigned misses, since; /* windows of a hold since the last check */
    struct compare_window window[SERIES][LOCK_WINDOWS]; /* the latest */
    size_t n_windows;
    struct compare_levels levels[SERIES];
};

/* ---- steps ---- */

__attribute__((format(printf, 3, 4))) static void say(struct lock *l, uint32_t mhz,
                                                      const char *format, ...)
{
    va_list args;
    int n = snprintf(l->step.why, sizeof l->step.why, "clock: ");

    va_start(args, format);
    n += vsnprintf(l->step.why + n, sizeof l->step.why - (size_t)n, format, args);
    va_end(args);
    if (mhz && n > 0 && (size_t)n < sizeof l->step.why)
        (void)snprintf(l->step.why + n, sizeof l->step.why - (size_t)n,
                       " (%" PRIu32 " MHz, %g W)", mhz, w_of_mw(l->step.cap_mw));
}

static void go(struct lock *l, enum phase phase, uint32_t cap_mw, uint32_t mhz)
{
    l->phase = phase;
    l->step.kind = phase == PHASE_CAP || phase == PHASE_TRY ? LOCK_MEASURE : LOCK_HOLD;
    l->step.check = phase == PHASE_CHECK;
    l->step.over = phase == PHASE_OVER;
    l->step.cap_mw = cap_mw;
    l->step.clock_mhz = mhz;
}

void lock_end(struct lock *l, const char *why)
{
    if (l->phase == PHASE_OVER)
        return;
    l->result.kept = false;
    go(l, PHASE_OVER, l->setup.held_mw, 0);
    say(l, 0, "the cap alone: %s", why);
}

static void go_cap(struct lock *l)
{
    go(l, PHASE_CAP, l->setup.held_mw, 0);
    say(l, 0, "the cap alone, for comparison");
}

static void go_trial(struct lock *l)
{
    const struct trial *t = &l->trial[l->at];

    l->alike = 0;
    go(l, PHASE_TRY, t->cap_mw, t->mhz);
    say(l, t->mhz, "%s",
        t->cap_mw == l->setup.most_mw ? "tries a lock instead of the cap"
                                      : "tries a lock together with the cap");
}

/* ---- comparing ---- */

/* The ratio of trial t to the cap alone. */
static double ratio_of(const struct lock *l, const struct trial *t, int series)
{
    const double *level = l->levels[series].level;

    return level[t - l->trial + 1] - level[CAP_ALONE];
}

static double var_of(const struct lock *l, const struct trial *t, int series)
{
    const struct compare_levels *c = &l->levels[series];
    ptrdiff_t i = t - l->trial + 1;

    return c->cov[i][i] + c->cov[CAP_ALONE][CAP_ALONE] - 2 * c->cov[i][CAP_ALONE];
}

static unsigned blocks_left(const struct lock *l)
{
    return l->result.windows < LOCK_WINDOWS ? (LOCK_WINDOWS - l->result.windows) / BLOCK
                                            : 0;
}

/* The ratio of a comparison's variance over so many consecutive blocks to the variance
 * of one window.
 */
static double part_of_var(double blocks)
{
    return (blocks - 0.5) / (blocks * blocks) + 0.5 / blocks;
}

/* The same for a trial that begins now and takes all remaining blocks.  For a single
 * window, only its stated noise is known.
 */
static double end_var(const struct lock *l, int series)
{
    double rse = l->window[series][0].rse;
    double window_var = l->n > 0 ? l->levels[series].again_var[0] : rse * rse;

    return window_var * part_of_var(fmax(blocks_left(l), 1));
}

static bool within(const struct lock *l, double log_t, double var_t)
{
    double excess = l->held_excess + log_t, var = l->held_var + var_t;

    if (isinf(l->log_bound))
        return true;
    if (var <= EXACT)
        return excess <= l->log_bound;
    return excess <= l->log_bound && excess + SURE * sqrt(var) <= l->log_bound + SLACK;
}

enum verdict { OPEN, GOOD, SLOW, WORSE };

/* OPEN only while the remaining windows could still prove a trial that is better by one
 * standard error than its estimate.
 */
static enum verdict judge(const struct lock *l, const struct trial *t)
{
    double d = ratio_of(l, t, GOAL), var = var_of(l, t, GOAL);
    double dt = ratio_of(l, t, TIME), var_t = var_of(l, t, TIME);
    unsigned left = blocks_left(l);
    double part =
        (double)t->blocks / (t->blocks + left); /* of the variances at the end */
    bool enough = t->blocks >= LEAST_BLOCKS || var_t <= EXACT;

    if (d + SURE * sqrt(var) <= -LOCK_MARGIN && within(l, dt, var_t) && enough)
        return GOOD;
    if (!within(l, dt - sqrt(var_t), part * var_t))
        return SLOW;
    if (d - sqrt(var) + SURE * sqrt(part * var) > -LOCK_MARGIN || left == 0)
        return WORSE;
    return OPEN;
}

/* ---- what to try ---- */

/* Log of the longest permitted time with a lock, relative to the held cap's time. */
static double most_log_t(const struct lock *l)
{
    double var = l->held_var + end_var(l, TIME);
    double room = l->log_bound - l->held_excess;

    if (isinf(l->log_bound) || var <= EXACT)
        return room;
    return fmin(room, room + SLACK - SURE * sqrt(var));
}

static uint32_t lowest_mhz(const struct lock *l)
{
    return l->setup.floor_mhz > l->setup.min_mhz ? l->setup.floor_mhz : l->setup.min_mhz;
}

static uint32_t next_mhz(const struct lock *l)
{
    struct climb_point point[CLIMB_POINTS_MAX];
    struct climb c = {
        .min_mhz = lowest_mhz(l),
        .max_mhz = l->setup.max_mhz,
        .step_mhz = l->setup.step_mhz,
        .seen_mhz = l->setup.seen_mhz,
        .most_log_t = most_log_t(l),
        .least_gain = LOCK_MARGIN,
        .point = point,
    };
    const struct goal_ref *ref = &l->setup.ref;
    double held_t = l->setup.held_time_s / ref->time_s;
    double held_e = l->setup.held_energy_j / ref->energy_j;

    c.top = (struct climb_point){
        .mhz = l->setup.seen_ref_mhz,
        .log_t = -log(held_t),
        .log_g = log(goal_shape_value(&l->shape, 1, 1) /
                     goal_shape_value(&l->shape, held_e, held_t)),
    };
    for (unsigned i = 0; i < l->n && c.n < CLIMB_POINTS_MAX; i++) {
        const struct trial *t = &l->trial[i];
        if (t->cap_mw == l->setup.most_mw)
            point[c.n++] = (struct climb_point){
                .mhz = t->mhz,
                .log_t = ratio_of(l, t, TIME),
                .log_g = ratio_of(l, t, GOAL),
                .var_t = var_of(l, t, TIME),
            };
    }
    return climb_next(&c);
}

/* The best trial that may be kept; NULL: none. */
static const struct trial *best_trial(const struct lock *l)
{
    const struct trial *best = NULL;

    for (unsigned i = 0; i < l->n; i++) {
        const struct trial *t = &l->trial[i];
        if (t->good &&
            (!best || ratio_of(l, t, GOAL) < ratio_of(l, best, GOAL) - LOCK_MARGIN))
            best = t;
    }
    return best;
}

/* Whether the next two windows may cost this much. */
static bool affordable(const struct lock *l, double worse)
{
    return l->result.lost_s + 2 * fmax(worse, 0) * l->setup.window_s <=
           LOCK_COST * HOUR_S;
}

/* Whether the remaining windows can prove a gain of HOPE. */
static bool can_tell(const struct lock *l)
{
    double se = sqrt(end_var(l, GOAL));
    double hope = HOPE * (l->shape.product ? HOPE_EDP : 1);

    return blocks_left(l) > 0 && l->n < TRIES_MAX && affordable(l, MAY_COST) &&
           SURE * se + LOCK_MARGIN <= hope;
}

static void begin_trial(struct lock *l, uint32_t cap_mw, uint32_t mhz)
{
    l->trial[l->n] = (struct trial){.cap_mw = cap_mw, .mhz = mhz};
    l->at = l->n++;
    l->result.tried++;
    go_trial(l);
}

static void hold(struct lock *l, const struct trial *t)
{
    l->at = (unsigned)(t - l->trial);
    l->alike = l->misses = 0;
    l->since = LOCK_CHECK_EVERY - LOCK_CHECK_FIRST;
    l->result.kept = true;
    go(l, PHASE_HOLD, t->cap_mw, t->mhz);
    say(l, t->mhz, "holds a lock %s, %.1f %% better than the cap alone",
        t->cap_mw == l->setup.most_mw ? "instead of the cap" : "together with the cap",
        -100 * expm1(ratio_of(l, t, GOAL)));
}

/* Starts the next trial, or holds the best one, or ends. */
static void next(struct lock *l)
{
    const struct trial *best = best_trial(l);
    uint32_t mhz = 0;

    if (l->n == 0 || can_tell(l))
        mhz = next_mhz(l);
    if (mhz) {
        begin_trial(l, l->setup.most_mw, mhz);
    } else if (!l->beside && l->n > 0 && l->setup.held_mw < l->setup.most_mw &&
               can_tell(l)) {
        l->beside = true;
        begin_trial(l, l->setup.held_mw, best ? best->mhz : l->trial[0].mhz);
    } else if (best) {
        hold(l, best);
    } else {
        lock_end(l, l->n ? "no lock is better" : "no usable clock");
    }
}

/* ---- windows ---- */

/* Adds a window of this side, in place of the oldest if there is no room.  The error of
 * the goal follows from those of time and energy by linear error propagation.
 */
static void add(struct lock *l, unsigned side, const struct lock_window *w)
{
    double t = w->time_s / l->setup.ref.time_s, e = w->energy_j / l->setup.ref.energy_j;
    double value = goal_shape_value(&l->shape, e, t);
    double of_t = l->shape.product ? 1 : l->shape.wt * t / value;
    double of_e = l->shape.product ? 1 : l->shape.we * e / value;
    const double v[] = {log(t), log(e), log(value)};
    const double rse[] = {w->time_rse, w->energy_rse,
                          hypot(of_t * w->time_rse, of_e * w->energy_rse)};

    bool full = l->n_windows == LOCK_WINDOWS;
    l->n_windows += !full;
    for (int i = 0; i < SERIES; i++) {
        if (full)
            memmove(l->window[i], l->window[i] + 1,
                    (LOCK_WINDOWS - 1) * sizeof *l->window[i]);
        l->window[i][l->n_windows - 1] =
            (struct compare_window){side, w->start_s, w->lasted_s, v[i], rse[i], 0};
    }
}

static void estimate(struct lock *l)
{
    for (int i = 0; i < SERIES; i++)
        compare_levels(l->window[i], l->n_windows, &l->levels[i]);
}

/* The difference shown by the latest block alone: two windows of the setting tried
 * between two of the cap alone.
 */
static double block(const struct lock *l, int series)
{
    const struct compare_window *w = &l->window[series][l->n_windows - 4];

    return (w[1].log_v + w[2].log_v - w[0].log_v - w[3].log_v) / 2;
}

/* Adds the loss of the two windows against the cap alone: of the goal, or beyond the
 * bound.
 */
static void count_loss(struct lock *l)
{
    double late =
        isinf(l->log_bound) ? 0 : l->held_excess + block(l, TIME) - l->log_bound;

    l->result.lost_s +=
        2 * l->setup.window_s * fmax(0, fmax(expm1(block(l, GOAL)), late));
}

static void on_block(struct lock *l)
{
    struct trial *t = &l->trial[l->at];

    t->blocks++;
    estimate(l);
    count_loss(l);
    enum verdict v = judge(l, t);
    t->good = v == GOOD;
    if (v == OPEN && affordable(l, ratio_of(l, t, GOAL)))
        go_trial(l);
    else
        next(l);
}

/* Compares the lock with the cap alone again. */
static void on_check(struct lock *l)
{
    const struct trial *t = &l->trial[l->at];

    estimate(l);
    l->result.checks++;
    double late = l->held_excess + ratio_of(l, t, TIME) - l->log_bound;
    double slack = l->held_var + var_of(l, t, TIME) > EXACT ? SLACK : 0;
    if (ratio_of(l, t, GOAL) > -LOCK_MARGIN)
        lock_end(l, "the lock is no longer better");
    else if (!isinf(l->log_bound) && late > slack)
        lock_end(l, "the lock has become too slow");
}

static void on_hold(struct lock *l, const struct lock_window *w)
{
    if (l->alike == 2) {
        l->alike = 0;
        add(l, l->at + 1, w);
        on_check(l);
    }
    if (l->phase != PHASE_HOLD || ++l->since < LOCK_CHECK_EVERY)
        return;
    l->since = 0;
    add(l, l->at + 1, w);
    go(l, PHASE_CHECK, l->setup.held_mw, 0);
    say(l, 0, "two windows of the cap alone, for comparison");
}

static void on_seen(struct lock *l, const struct lock_window *w)
{
    const struct trial *t = &l->trial[l->at];

    if (l->step.kind == LOCK_MEASURE)
        l->result.windows++;
    else
        l->misses = 0;
    switch (l->phase) {
    case PHASE_CAP:
        add(l, CAP_ALONE, w);
        if (l->n > 0)
            on_block(l);
        else
            next(l);
        break;
    case PHASE_TRY:
        add(l, l->at + 1, w);
        if (++l->alike == 2)
            go_cap(l);
        break;
    case PHASE_HOLD:
        on_hold(l, w);
        break;
    case PHASE_CHECK:
        add(l, CAP_ALONE, w);
        if (++l->alike < 2)
            break;
        go(l, PHASE_HOLD, t->cap_mw, t->mhz);
        say(l, t->mhz, "holds the lock, compares it with the cap alone");
        break;
    case PHASE_OVER:
        break;
    }
}

static bool good(double v)
{
    return isfinite(v) && v > 0;
}

int lock_on_window(struct lock *l, const struct lock_window *w, uw_error *err)
{
    const struct lock_step *s = &l->step;

    if (!good(w->time_s) || !good(w->energy_j))
        return fail(err, -EINVAL, "window at %" PRIu32 " MHz: %g s, %g J: not positive",
                    s->clock_mhz, w->time_s, w->energy_j);
    if (!(w->time_rse >= 0 && w->time_rse < 1 && w->energy_rse >= 0 && w->energy_rse < 1))
        return fail(err, -EINVAL, "window at %" PRIu32 " MHz: errors %g, %g: not in 0..1",
                    s->clock_mhz, w->time_rse, w->energy_rse);
    if (!good(w->lasted_s))
        return fail(err, -EINVAL, "window at %" PRIu32 " MHz of %g s: not positive",
                    s->clock_mhz, w->lasted_s);
    if (l->phase == PHASE_OVER)
        return 0;
    uint32_t off = w->cap_mw > s->cap_mw ? w->cap_mw - s->cap_mw : s->cap_mw - w->cap_mw;
    if (s->clock_mhz && w->seen_mhz && !clock_is_obeyed(s->clock_mhz, w->seen_mhz)) {
        lock_end(l, "the board does not obey a lock");
    } else if (off > MW_PER_W) {
        if (++l->misses >= MISSES_MAX)
            lock_end(l, "a cap other than the requested one is in force");
    } else {
        on_seen(l, w);
    }
    return 0;
}

/* ---- life ---- */

static int check_setup(const struct lock_setup *o, uw_error *err)
{
    if (o->held_mw == 0 || o->held_mw > o->most_mw)
        return fail(err, -ERANGE, "held cap %" PRIu32 " mW is outside 1..%" PRIu32,
                    o->held_mw, o->most_mw);
    if (!good(o->ref.time_s) || !good(o->ref.energy_j) || !good(o->held_time_s) ||
        !good(o->held_energy_j))
        return fail(err, -EINVAL, "reference %g s, %g J, held %g s, %g J: not positive",
                    o->ref.time_s, o->ref.energy_j, o->held_time_s, o->held_energy_j);
    if (!(o->held_time_rse >= 0 && o->held_time_rse < 1))
        return fail(err, -EINVAL, "relative error %g is outside 0..1", o->held_time_rse);
    if (o->min_mhz > o->max_mhz)
        return fail(err, -EINVAL, "clock range %" PRIu32 "..%" PRIu32 " MHz is empty",
                    o->min_mhz, o->max_mhz);
    return 0;
}

static void begin(struct lock *l)
{
    struct lock_setup *o = &l->setup;

    o->step_mhz = o->step_mhz ? o->step_mhz : 15;
    o->window_s = o->window_s > 0 ? o->window_s : 10;
    if (!(o->seen_ref_mhz > 0) || o->seen_ref_mhz > o->max_mhz)
        o->seen_ref_mhz = o->max_mhz;
    if (o->floor_mhz == 0)
        o->floor_mhz = (uint32_t)ceil(LOCK_FLOOR * o->seen_ref_mhz);
    l->shape = goal_shape_of(&o->goal, &o->ref);
    l->log_bound = log(l->shape.bound);
    l->shape.bound = INFINITY; /* within() applies the bound */
    l->held_excess = log(o->held_time_s / o->ref.time_s);
    l->held_var = o->held_time_rse * o->held_time_rse;
    go_cap(l);
    if (o->goal.kind == GOAL_TIME)
        lock_end(l, "a clock lock cannot shorten a job");
    else if (o->min_mhz == 0 || !(o->seen_mhz > 0))
        lock_end(l, "the board's clocks are unknown");
    else if (lowest_mhz(l) >= o->max_mhz)
        lock_end(l, "no usable clock");
}

int lock_new(const struct lock_setup *setup, struct lock **ret, uw_error *err)
{
    int r = check_setup(setup, err);
    if (r < 0)
        return r;
    struct lock *l = calloc(1, sizeof *l);
    if (!l)
        return fail(err, -ENOMEM, "no memory for a lock");
    l->setup = *setup;
    begin(l);
    *ret = l;
    return 0;
}

void lock_free(struct lock *l)
{
    free(l);
}

const struct lock_step *lock_step(const struct lock *l)
{
    return &l->step;
}

void lock_result(const struct lock *l, struct lock_result *ret)
{
    *ret = l->result;
    ret->value = ret->time = ret->energy = 1;
    ret->cap_mw = l->setup.held_mw;
    ret->clock_mhz = 0;
    ret->value_se = 0;
    if (!l->result.kept)
        return;
    const struct trial *t = &l->trial[l->at];
    ret->cap_mw = t->cap_mw;
    ret->clock_mhz = t->mhz;
    ret->value = exp(ratio_of(l, t, GOAL));
    ret->value_se = ret->value * sqrt(var_of(l, t, GOAL));
    ret->time = exp(ratio_of(l, t, TIME));
    ret->energy = exp(ratio_of(l, t, ENERGY));
}
