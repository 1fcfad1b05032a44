#include "core/optimum/propose.h"

#include <math.h>
#include <stdio.h>

#include "core/optimum/pchip.h"

#define STEP 0.11  /* of the demand, between measured caps */
#define GAIN 0.002 /* expected improvement worth another window */

/* Share of the demand at which the optimum usually lies. */
static double start_share(const struct scene *s)
{
    switch (s->goal.kind) {
    case GOAL_EDP:
        return 0.78;
    case GOAL_EDS:
        return fmin(1, 0.62 + 0.36 / s->goal.param);
    case GOAL_COST:
        return fmin(1, 0.66 + 0.36 * (1 - s->goal.param));
    case GOAL_SLOWDOWN:
        return fmax(0.66, 1 - 1.7 * (s->goal.param - 1) - 0.02);
    case GOAL_TIME:
        return 1.1;
    case GOAL_ENERGY:
    default:
        return 0.66;
    }
}

static double on_grain(const struct scene *s, double cap_w)
{
    cap_w = round(cap_w / s->grain_w) * s->grain_w;
    return fmin(fmax(cap_w, s->lo_w), s->hi_w);
}

/* Levels that count, by cap; the reference last or not. */
static size_t sorted(const struct scene *s, const struct level *out[LEVELS_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < s->n && n < LEVELS_MAX; i++) {
        if (s->levels[i].stale)
            continue;
        size_t k = n++;
        for (; k > 0 && out[k - 1]->cap_w > s->levels[i].cap_w; k--)
            out[k] = out[k - 1];
        out[k] = &s->levels[i];
    }
    return n;
}

static double value_at(const struct scene *s, double log_t, double log_e)
{
    const struct level *r = &s->levels[s->reference];
    struct goal_ref ref = {exp(r->log_e), exp(r->log_t), s->pmax_w};
    return goal_relative(&s->goal, exp(log_e), exp(log_t), &ref);
}

struct fit {
    size_t n;
    double x[LEVELS_MAX], t[LEVELS_MAX], p[LEVELS_MAX], dt[LEVELS_MAX], dp[LEVELS_MAX];
};

static void fit_levels(struct fit *f, const struct level *const *l, size_t n)
{
    f->n = n;
    for (size_t i = 0; i < n; i++) {
        f->x[i] = l[i]->cap_w;
        f->t[i] = l[i]->log_t;
        f->p[i] = exp(l[i]->log_e - l[i]->log_t);
    }
    if (n >= 2) {
        pchip_slopes(f->x, f->t, n, f->dt);
        pchip_slopes(f->x, f->p, n, f->dp);
    }
}

static void fit_at(const struct fit *f, double cap_w, double *ret_t, double *ret_e)
{
    if (f->n < 2) {
        *ret_t = f->t[0];
        *ret_e = f->t[0] + log(f->p[0]);
        return;
    }
    *ret_t = pchip_value(f->x, f->t, f->dt, f->n, cap_w);
    *ret_e = *ret_t + log(pchip_value(f->x, f->p, f->dp, f->n, cap_w));
}

/* The fit's minimum over the caps between lo and hi. */
static double fit_best(const struct scene *s, const struct fit *f, double lo, double hi,
                       double *ret_value)
{
    double best = hi, least = INFINITY;
    for (double c = hi; c >= lo - 1e-9; c -= s->grain_w) {
        double t, e;
        fit_at(f, c, &t, &e);
        double v = value_at(s, t, e);
        if (v < least) {
            least = v;
            best = c;
        }
    }
    *ret_value = least;
    return best;
}

static void say(const struct scene *s, const struct fit *f, struct proposal *ret,
                bool hold, double cap_w, const char *why)
{
    double v;
    double lo = fmax(s->lo_w, f->x[0]);
    ret->best_w = fit_best(s, f, fmin(lo, s->hi_w), s->hi_w, &v);
    ret->hold = hold;
    ret->cap_w = hold ? ret->best_w : cap_w;
    fit_at(f, ret->best_w, &ret->log_t, &ret->log_e);
    (void)snprintf(ret->why, sizeof ret->why, "%s", why);
}

void propose(const struct scene *s, struct proposal *ret)
{
    const struct level *l[LEVELS_MAX];
    struct fit f;
    size_t n = sorted(s, l), b = 0;
    double demand = exp(s->levels[s->reference].log_e - s->levels[s->reference].log_t);
    double step = STEP * demand, near = 0.4 * step, least = INFINITY;

    fit_levels(&f, l, n);
    for (size_t i = 0; i < n; i++) {
        double v = value_at(s, l[i]->log_t, l[i]->log_e);
        if (l[i]->cap_w <= s->hi_w + 1e-9 && l[i]->cap_w >= s->lo_w - 1e-9 &&
            v <= least) {
            least = v;
            b = i;
        }
    }
    if (s->windows_left == 0 || s->goal.kind == GOAL_TIME) {
        say(s, &f, ret, true, 0, "nothing more to measure");
        return;
    }
    if (n == 1) {
        double start = s->hint_w > 0 ? s->hint_w : start_share(s) * demand;
        say(s, &f, ret, false, on_grain(s, start), "where the best cap usually lies");
        if (ret->cap_w >= l[0]->cap_w - near)
            say(s, &f, ret, false, on_grain(s, l[0]->cap_w - step), "one step down");
        return;
    }
    if (b == 0 && l[0]->cap_w > s->lo_w + near) {
        say(s, &f, ret, false, on_grain(s, l[0]->cap_w - step), "the lowest was best");
        return;
    }
    if (b + 1 < n && l[b + 1]->cap_w - l[b]->cap_w > 1.6 * step &&
        l[b]->cap_w + 1.5 * step < s->hi_w) {
        say(s, &f, ret, false, on_grain(s, l[b]->cap_w + step), "bracket from above");
        return;
    }
    if (b > 0 && l[b]->cap_w - l[b - 1]->cap_w > 1.6 * step) {
        say(s, &f, ret, false, on_grain(s, l[b]->cap_w - step), "bracket from below");
        return;
    }
    double lo = fmax(s->lo_w, l[b > 0 ? b - 1 : 0]->cap_w), v;
    double hi = fmin(s->hi_w, l[b + 1 < n ? b + 1 : b]->cap_w);
    double at = fit_best(s, &f, fmin(lo, hi), hi, &v);
    bool fresh = n < 6;
    for (size_t i = 0; i < n; i++)
        fresh &= fabs(l[i]->cap_w - at) > 0.25 * near;
    if (fresh && v < least - GAIN)
        say(s, &f, ret, false, at, "the fit's minimum");
    else
        say(s, &f, ret, true, 0, "the valley is found");
}
