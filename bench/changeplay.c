#include "changeplay.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/optimum/change.h"
#include "core/optimum/gap-probe.h"
#include "core/optimum/search.h"

enum { CAPS_MAX = 256, WINDOWS_MOST = 80, LOOK_TRIES = 8 };
#define WINDOW_S 10.0
#define SETTLE_S 2.0
#define CHECK_S 3.0 /* at the first cap of a ramp down */
#define SLICE_S 1.0 /* step of the sums */
#define PEAK 1.1

struct world {
    struct regimes *r;
    const struct changeplay *p;
    struct search *search;
    struct search_setup setup;
    struct change change;
    struct gap_probes looks;
    struct rng rng;
    double now_s, regime_s; /* regime_s: when the current search of the regime was held */
    uint32_t cap_mw, held_mw;
    double paid, paid_s;    /* worth and time since the search began … */
    double lost_s, since_s; /* regret and time since the change */
    double again_s;
    uint32_t seen_mw[CAPS_MAX];
    unsigned caps, windows; /* of the current search */
    unsigned since;         /* windows of holds since the change */
};

static double change_s(const struct world *w)
{
    return w->r->turn_s[0];
}

/* Runs for for_s at this cap; returns steps done and energy drawn. */
static void pass(struct world *w, uint32_t cap_mw, double for_s, double *ret_steps,
                 double *ret_j)
{
    double end_s = w->now_s + for_s, was = -1, worth = 0;
    struct curve_value v = {0};

    w->cap_mw = cap_mw;
    while (w->now_s < end_s - 1e-9) {
        double dt = fmin(SLICE_S, end_s - w->now_s);
        double part = regimes_part(w->r, w->now_s), cap_w = w_of_mw(cap_mw);
        if (fabs(part - was) > 1e-4) {
            v = regimes_at(w->r, cap_w, part);
            worth = regimes_worth(w->r, cap_w, part);
            was = part;
        }
        *ret_steps += dt / v.time_s;
        *ret_j += dt * v.power_w;
        w->paid += dt * worth;
        w->paid_s += dt;
        if (w->now_s >= change_s(w)) {
            w->lost_s += dt * (worth - 1);
            w->since_s += dt;
        }
        w->now_s += dt;
    }
}

/* Moves to the cap of the step: up at once, down by the step's ramp; then settles. */
static void walk(struct world *w, const struct search_step *t)
{
    double steps = 0, j = 0;

    if (t->cap_mw < w->cap_mw && w->cap_mw > t->first_mw) {
        pass(w, t->first_mw, CHECK_S, &steps, &j);
    }
    while (w->cap_mw > t->cap_mw) {
        double down = fmin(t->ramp_mw_s * SLICE_S, w->cap_mw - t->cap_mw);
        pass(w, w->cap_mw - (uint32_t)ceil(down), SLICE_S, &steps, &j);
        if (w->cap_mw < t->cap_mw)
            w->cap_mw = t->cap_mw;
    }
    if (w->cap_mw != t->cap_mw)
        w->cap_mw = t->cap_mw;
    pass(w, t->cap_mw, SETTLE_S, &steps, &j);
}

static struct search_window measure(struct world *w, uint32_t cap_mw, unsigned length)
{
    double steps = 0, j = 0, by = 1 / sqrt(length);
    double noise = w->p->noise * by, told = w->p->told * by;

    pass(w, cap_mw, length * WINDOW_S, &steps, &j);
    double top_w =
        regimes_at(w->r, w->r->before->max_w, regimes_part(w->r, w->now_s)).power_w;
    return (struct search_window){
        .cap_mw = cap_mw,
        .time_s = length * WINDOW_S / steps * fmax(0.05, 1 + noise * rng_normal(&w->rng)),
        .energy_j = j / steps * fmax(0.05, 1 + noise * rng_normal(&w->rng)),
        .time_rse = told,
        .energy_rse = told,
        .peak_w = fmin(PEAK * top_w, w->r->before->max_w),
        .length = length,
    };
}

static void trace(const struct world *w, const char *what)
{
    const struct search_step *t = search_step(w->search);

    if (w->p->trace)
        (void)fprintf(w->p->trace, "%s: %.0f s: %s %g W x %u: %s\n", w->r->before->name,
                      w->now_s, what, w_of_mw(t->cap_mw), t->length, t->why);
}

static void count_cap(struct world *w, uint32_t mw)
{
    for (unsigned i = 0; i < w->caps; i++)
        if (w->seen_mw[i] == mw)
            return;
    if (w->caps < CAPS_MAX)
        w->seen_mw[w->caps++] = mw;
}

/* Steps the search until it holds, and moves to the held cap. */
static int until_held(struct world *w, uw_error *err)
{
    unsigned n = 0;

    w->caps = w->windows = 0;
    while (search_step(w->search)->kind == SEARCH_MEASURE) {
        struct search_step t = *search_step(w->search);
        trace(w, "measures");
        walk(w, &t);
        struct search_window win = measure(w, t.cap_mw, t.length);
        count_cap(w, t.cap_mw);
        w->windows += t.length;
        int r = search_on_window(w->search, &win, err);
        if (r < 0)
            return r;
        if (++n > WINDOWS_MOST)
            return fail(err, -EPROTO, "%s: the search does not end", w->r->before->name);
    }
    trace(w, "holds");
    walk(w, search_step(w->search));
    return 0;
}

/* A search from the current state to its hold, with its cost and result. */
static int searches(struct world *w, struct searched *ret, uw_error *err)
{
    struct searched s = {.began_s = w->now_s};

    w->paid = w->paid_s = 0;
    int r = until_held(w, err);
    if (r < 0)
        return r;
    double part = regimes_part(w->r, w->now_s);
    s.took_s = w->now_s - s.began_s;
    s.caps = w->caps;
    s.windows = w->windows;
    s.cap_w = w_of_mw(w->cap_mw);
    double kept = regimes_worth(w->r, s.cap_w, part);
    s.regret = kept - 1;
    s.slowdown = regimes_slowdown(w->r, s.cap_w, part);
    s.cost = (w->paid / kept - w->paid_s) / 3600;
    w->held_mw = w->cap_mw;
    change_init(&w->change, 0);
    w->looks = (struct gap_probes){.most = w->p->looks};
    w->regime_s = s.began_s;
    *ret = s;
    return 0;
}

static int begin(struct world *w, uw_error *err)
{
    uint32_t max_mw = mw_of_w(w->r->before->max_w);

    w->setup = (struct search_setup){
        .goal = w->p->goal,
        .min_mw = mw_of_w(w->r->before->min_w),
        .max_mw = max_mw,
        .default_mw = max_mw,
        .original_mw = max_mw,
    };
    w->cap_mw = max_mw;
    return search_new(&w->setup, &w->search, err);
}

/* Called when the detector reports a change of the job. */
static int answer(struct world *w, const struct search_window *now, struct played *ret,
                  uw_error *err)
{
    struct searched s = {0};
    int r = 0;

    if (isinf(ret->found_s) && w->now_s >= change_s(w)) {
        ret->found_s = w->now_s - change_s(w);
        ret->found_windows = w->since;
    }
    if (w->p->answer == ANSWER_NONE)
        return 0;
    if (w->p->answer == ANSWER_ANEW) {
        search_free(w->search);
        w->search = NULL;
        r = search_new(&w->setup, &w->search, err);
    } else {
        search_on_change(w->search, now);
    }
    if (r >= 0)
        r = searches(w, &s, err);
    if (r < 0)
        return r;
    w->again_s += s.took_s;
    if (ret->n_again < SEARCHED_MAX)
        ret->again[ret->n_again] = s;
    ret->n_again++;
    return 0;
}

/* A look during the hold, as the daemon makes it. */
static int look(struct world *w, unsigned n, uw_error *err)
{
    double worse =
        gap_probes_allow(&w->looks, w->now_s - w->regime_s, WINDOW_S + SEARCH_SETTLE_S);
    double from_s = w->now_s;

    if (n % LOOK_TRIES || !(worse > 0) || !search_probe_gap(w->search, worse))
        return 0;
    int r = until_held(w, err);
    gap_probes_made(&w->looks, w->now_s - from_s, w->windows);
    if (w->held_mw != w->cap_mw)
        change_init(&w->change, 0);
    w->held_mw = w->cap_mw;
    return r;
}

static int hold(struct world *w, double end_s, struct played *ret, uw_error *err)
{
    int r = 0;

    for (unsigned n = 1; r >= 0 && w->now_s < end_s; n++) {
        struct search_window win = measure(w, w->cap_mw, 1);
        w->since += w->now_s > change_s(w);
        if (change_on_window(&w->change, win.time_s, win.energy_j, win.time_rse,
                             win.energy_rse) != CHANGE_NONE) {
            r = answer(w, &win, ret, err);
            n = 0;
            continue;
        }
        r = search_on_window(w->search, &win, err);
        if (r >= 0)
            r = look(w, n, err);
    }
    return r;
}

int changeplay(struct regimes *r, const struct changeplay *p, struct played *ret,
               uw_error *err)
{
    struct world w = {.r = r, .p = p};
    struct played out = {.found_s = INFINITY};
    double at_s = r->turn_s[0];

    rng_init(&w.rng, p->seed);
    int res = begin(&w, err);
    if (res >= 0)
        res = searches(&w, &out.first, err);
    if (res >= 0)
        res = hold(&w, fmin(at_s, p->end_s), &out, err);
    uint32_t old_mw = w.cap_mw;
    if (res >= 0 && !isinf(at_s)) {
        out.n_again = 0; /* before the change */
        w.again_s = 0;
        res = hold(&w, p->end_s, &out, err);
    }
    search_free(w.search);
    if (res < 0)
        return fail_in(err, res, "%s", r->before->name);
    double part = regimes_part(r, w.now_s);
    out.old_regret = regimes_worth(r, w_of_mw(old_mw), part) - 1;
    out.old_slowdown = regimes_slowdown(r, w_of_mw(old_mw), part);
    out.end_regret = regimes_worth(r, w_of_mw(w.cap_mw), part) - 1;
    out.end_slowdown = regimes_slowdown(r, w_of_mw(w.cap_mw), part);
    out.since_s = isinf(at_s) ? w.now_s : w.since_s;
    out.lost = w.since_s > 0 ? w.lost_s / w.since_s : 0;
    out.again_s = w.again_s;
    *ret = out;
    return 0;
}
