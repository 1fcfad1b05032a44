#include "vfplay.h"

#include <errno.h>
#include <math.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/optimum/lock.h"
#include "core/optimum/search.h"

enum { HOUR_WINDOWS = 360 };
#define WINDOW_S 10.0
#define SETTLE_S 2.0
#define HOUR_S 3600.0

struct world {
    const struct vfplay *p;
    struct plant_steady ref;
    struct rng rng;
    double now_s;
};

static struct goal_ref ref_of(const struct world *w)
{
    return (struct goal_ref){w->ref.energy_j, w->ref.time_s, w->p->max_w};
}

static struct plant_steady steady(const struct vfplay *p, uint32_t cap_mw, uint32_t mhz)
{
    return plant_vf_step(p->vf, w_of_mw(cap_mw), mhz);
}

struct vfplay_kept vfplay_worth(const struct vfplay *p, uint32_t cap_mw, uint32_t mhz)
{
    struct world w = {.p = p, .ref = steady(p, mw_of_w(p->max_w), 0)};
    struct plant_steady at = steady(p, cap_mw, mhz);
    struct goal_ref ref = ref_of(&w);
    struct goal_shape shape = goal_shape_of(&p->goal, &ref);
    double t = at.time_s / ref.time_s, e = at.energy_j / ref.energy_j;

    shape.bound = INFINITY;
    return (struct vfplay_kept){cap_mw, mhz, goal_shape_value(&shape, e, t), t};
}

static double noisy(struct world *w, double v, double noise)
{
    return noise > 0 ? v * fmax(0.05, 1 + noise * rng_normal(&w->rng)) : v;
}

static int until_held(struct world *w, struct search *s, unsigned *ret_windows,
                      uw_error *err)
{
    int r = 0;

    while (r == 0 && search_step(s)->kind == SEARCH_MEASURE) {
        const struct search_step *t = search_step(s);
        double noise = w->p->noise / sqrt(t->length);
        struct plant_steady at = steady(w->p, t->cap_mw, 0);
        struct search_window win = {
            .cap_mw = t->cap_mw,
            .time_s = noisy(w, at.time_s, noise),
            .energy_j = noisy(w, at.energy_j, noise),
            .time_rse = noise,
            .energy_rse = noise,
            .peak_w = fmin(1.1 * w->ref.power_w, w->p->max_w),
            .length = t->length,
            .start_s = w->now_s,
            .lasted_s = t->length * WINDOW_S,
        };
        w->now_s += win.lasted_s + SETTLE_S;
        *ret_windows += t->length;
        if (*ret_windows > 2 * SEARCH_WINDOWS_MAX)
            return fail(err, -EPROTO, "the search does not end");
        r = search_on_window(s, &win, err);
    }
    return r;
}

static struct lock_setup setup_of(const struct world *w, const struct search *s)
{
    const struct plant_vf *vf = w->p->vf;
    uint32_t held_mw = search_step(s)->cap_mw;
    struct search_result r;

    search_result(s, &r);
    return (struct lock_setup){
        .goal = w->p->goal,
        .ref = {r.ref_energy_j, r.ref_time_s, w->p->max_w},
        .held_time_s = r.best_time_s,
        .held_energy_j = r.best_energy_j,
        .held_time_rse = r.best_time_rse,
        .held_mw = held_mw,
        .most_mw = mw_of_w(w->p->max_w),
        .min_mhz = vf->sm_min_mhz,
        .max_mhz = vf->sm_max_mhz,
        .step_mhz = vf->sm_step_mhz,
        .seen_mhz = steady(w->p, held_mw, 0).x * vf->sm_max_mhz,
        .seen_ref_mhz = w->ref.x * vf->sm_max_mhz,
        .window_s = WINDOW_S,
    };
}

/* A window at the caps and clocks that the machine requests. */
static int one_window(struct world *w, struct lock *l, struct vfplay_score *ret,
                      uw_error *err)
{
    const struct lock_step *t = lock_step(l);
    struct plant_steady at = steady(w->p, t->cap_mw, t->clock_mhz);
    struct vfplay_kept now = vfplay_worth(w->p, t->cap_mw, t->clock_mhz);
    double worse = now.value / ret->cap.value - 1;
    struct lock_window win = {
        .cap_mw = t->cap_mw,
        .seen_mhz = t->clock_mhz,
        .time_s = noisy(w, at.time_s, w->p->noise),
        .energy_j = noisy(w, at.energy_j, w->p->noise),
        .time_rse = w->p->noise,
        .energy_rse = w->p->noise,
        .start_s = w->now_s,
        .lasted_s = WINDOW_S,
    };

    w->now_s += WINDOW_S + SETTLE_S;
    if (w->p->goal.kind == GOAL_SLOWDOWN)
        worse = fmax(worse, now.time / fmax(w->p->goal.param, ret->cap.time) - 1);
    ret->cost += fmax(0, worse) * WINDOW_S / HOUR_S;
    int r = lock_on_window(l, &win, err);
    t = lock_step(l);
    ret->ever |= t->kind == LOCK_HOLD && t->clock_mhz > 0;
    if (w->p->trace)
        (void)fprintf(w->p->trace, "  value %.4f time %.4f -> %s\n",
                      win.energy_j / w->ref.energy_j, win.time_s / w->ref.time_s, t->why);
    return r;
}

/* Runs until it holds or ends, and the rest of an hour. */
static int play_lock(struct world *w, const struct search *s, struct vfplay_score *ret,
                     uw_error *err)
{
    auto_(lock_free) struct lock *l = NULL;
    struct lock_setup setup = setup_of(w, s);
    struct lock_result known;
    int r = lock_new(&setup, &l, err);

    for (unsigned i = 0; r == 0 && i < HOUR_WINDOWS && !lock_step(l)->over; i++)
        r = one_window(w, l, ret, err);
    if (r < 0)
        return r;
    if (lock_step(l)->kind != LOCK_HOLD)
        return fail(err, -EPROTO, "the choice of a lock does not end");
    lock_result(l, &known);
    ret->windows = known.windows;
    ret->checks = known.checks;
    ret->end = vfplay_worth(w->p, known.cap_mw, known.clock_mhz);
    return 0;
}

int vfplay(const struct vfplay *p, struct vfplay_score *ret, uw_error *err)
{
    struct world w = {.p = p, .ref = steady(p, mw_of_w(p->max_w), 0)};
    struct search_setup setup = {
        .goal = p->goal,
        .min_mw = mw_of_w(p->min_w),
        .max_mw = mw_of_w(p->max_w),
        .default_mw = mw_of_w(p->max_w),
        .original_mw = mw_of_w(p->max_w),
    };
    auto_(search_free) struct search *s = NULL;
    int r = search_new(&setup, &s, err);

    *ret = (struct vfplay_score){0};
    rng_init(&w.rng, p->seed);
    if (r == 0)
        r = until_held(&w, s, &ret->search_windows, err);
    if (r < 0)
        return r;
    ret->cap = vfplay_worth(p, search_step(s)->cap_mw, 0);
    return play_lock(&w, s, ret, err);
}
