#include "core/policy/phase-curve.h"

#include <math.h>
#include <string.h>

#define SAME 0.015  /* caps that differ by less are one point */
#define NEAR 0.2    /* of a cap: only points this near tell its power and time */
#define MOST_S 60.0 /* largest weight of older measurements */
#define SMALL 0.05  /* a phase with less of the energy is the same under each cap */
#define GAIN_LEAST 0.005
enum { IN_A_ROW = 3 };

/* ---- points ---- */

static void merge(struct curve_point *p, const struct phase_stretch *s)
{
    double old_s = fmin(p->seen_s, MOST_S), all_s = old_s + s->time_s;
    double unit_s = s->time_s / s->units;

    p->cap_w += (s->cap_w - p->cap_w) * s->time_s / all_s;
    p->power_w += (s->power_w - p->power_w) * s->time_s / all_s;
    p->unit_s += (unit_s - p->unit_s) * s->time_s / all_s;
    p->seen_s = all_s;
}

static void drop_least(struct phase_curve *c)
{
    size_t least = 0;

    for (size_t i = 1; i < c->n; i++)
        if (c->point[i].seen_s < c->point[least].seen_s)
            least = i;
    c->n--;
    memmove(&c->point[least], &c->point[least + 1], (c->n - least) * sizeof c->point[0]);
}

static void add_point(struct phase_curve *c, const struct phase_stretch *s)
{
    size_t at = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (fabs(c->point[i].cap_w - s->cap_w) > SAME * s->cap_w)
            continue;
        merge(&c->point[i], s);
        return;
    }
    if (c->n == CURVE_POINTS)
        drop_least(c);
    while (at < c->n && c->point[at].cap_w < s->cap_w)
        at++;
    memmove(&c->point[at + 1], &c->point[at], (c->n - at) * sizeof c->point[0]);
    c->point[at] =
        (struct curve_point){s->cap_w, s->power_w, s->time_s / s->units, s->time_s};
    c->n++;
}

void phase_curve_add(struct phase_curve *c, const struct phase_stretch *s)
{
    if (!(s->units > 0) || !(s->time_s > 0))
        return;
    if (s->by_steps && !c->by_steps) /* the steps were not known before */
        *c = (struct phase_curve){.by_steps = true};
    if (c->by_steps != s->by_steps)
        return;
    c->units += s->units;
    if (!s->whole || !(s->cap_w > 0) || !(s->power_w > 0))
        return;
    if (s->ruled)
        c->ruled_w = s->cap_w;
    else
        c->free_w = s->cap_w;
    if (!s->ruled && !s->barred)
        c->ruled_w = 0;
    add_point(c, s);
}

/* ---- sums ---- */

struct sum {
    double time_s, energy_j;
};

/* Power and time of a unit under a cap: of the line through the points near it, weighted
 * by measured time and by distance (a local linear regression).  Single points are means
 * of seconds.
 */
static struct curve_point near_cap(const struct phase_curve *c, double cap_w,
                                   double far_w)
{
    double n = 0, x = 0, xx = 0;
    struct curve_point y = {0}, xy = {0};

    for (size_t i = 0; i < c->n; i++) {
        const struct curve_point *p = &c->point[i];
        double d = p->cap_w - cap_w;
        double w = p->seen_s * fmax(1 - fabs(d) / far_w, 0);
        n += w;
        x += w * d;
        xx += w * d * d;
        y.power_w += w * p->power_w;
        y.unit_s += w * p->unit_s;
        xy.power_w += w * d * p->power_w;
        xy.unit_s += w * d * p->unit_s;
    }
    double det = n * xx - x * x;
    bool line = det > 1e-9 * n * xx;
    double of_y = line ? xx / det : 1 / n, of_xy = line ? -x / det : 0;
    return (struct curve_point){.power_w = of_y * y.power_w + of_xy * xy.power_w,
                                .unit_s = of_y * y.unit_s + of_xy * xy.unit_s};
}

/* Adds the phase's work under a cap; false: the cap is outside the measured points. */
static bool add_work(const struct phase_curve *c, double cap_w, struct sum *sum)
{
    size_t i = 0;

    if (c->n == 0)
        return false;
    while (i < c->n && c->point[i].cap_w < cap_w * (1 - 1e-9))
        i++;
    if (i == c->n && (i == 0 || cap_w > c->point[i - 1].cap_w * (1 + SAME)))
        return false;
    if (i == 0 && cap_w < c->point[0].cap_w * (1 - SAME))
        return false;
    const struct curve_point *b = &c->point[i < c->n ? i : i - 1];
    const struct curve_point *a = i > 0 ? &c->point[i - 1] : b;
    cap_w = fmin(fmax(cap_w, a->cap_w), b->cap_w);
    struct curve_point at = near_cap(c, cap_w, fmax(NEAR * cap_w, b->cap_w - a->cap_w));
    sum->time_s += c->units * at.unit_s;
    sum->energy_j += c->units * at.unit_s * at.power_w;
    return true;
}

/* Adds the mean of the phase's points, whatever their caps. */
static void add_mean(const struct phase_curve *c, struct sum *sum)
{
    double seen_s = 0, power = 0, unit = 0;

    for (size_t i = 0; i < c->n; i++) {
        seen_s += c->point[i].seen_s;
        power += c->point[i].power_w * c->point[i].seen_s;
        unit += c->point[i].unit_s * c->point[i].seen_s;
    }
    if (seen_s <= 0)
        return;
    sum->time_s += c->units * unit / seen_s;
    sum->energy_j += c->units * unit / seen_s * power / seen_s;
}

struct work {
    const struct phase_curve *curve;
    size_t n;
    double small_j; /* a phase with less energy counts as the same under each cap */
};

/* Sums up all phases under one cap. */
static bool under(const struct work *w, double cap_w, struct sum *ret)
{
    *ret = (struct sum){0};
    for (size_t i = 0; i < w->n; i++) {
        struct sum own = {0};
        add_mean(&w->curve[i], &own);
        if (own.energy_j <= w->small_j) {
            ret->time_s += own.time_s;
            ret->energy_j += own.energy_j;
        } else if (!add_work(&w->curve[i], cap_w, ret)) {
            return false;
        }
    }
    return true;
}

/* Sums up all phases under the caps of phase rules (ruled), or without these. */
static bool under_phases(const struct work *w, bool ruled, struct sum *ret)
{
    *ret = (struct sum){0};
    for (size_t i = 0; i < w->n; i++) {
        const struct phase_curve *c = &w->curve[i];
        double cap_w = ruled && c->ruled_w > 0 ? c->ruled_w : c->free_w;
        if (c->n > 0 && !add_work(c, cap_w, ret))
            return false;
    }
    return true;
}

/* The range of caps within the measured points of all phases that have much energy. */
static bool range_of(const struct work *w, double *ret_low, double *ret_high)
{
    double low = 0, high = INFINITY;

    for (size_t i = 0; i < w->n; i++) {
        struct sum own = {0};
        const struct phase_curve *c = &w->curve[i];
        add_mean(c, &own);
        if (own.energy_j <= w->small_j)
            continue;
        low = fmax(low, c->point[0].cap_w);
        high = fmin(high, c->point[c->n - 1].cap_w);
    }
    *ret_low = low;
    *ret_high = high;
    return low > 0 && low < high;
}

void phase_compare(const struct phase_curve *curve, size_t n, double lost_s,
                   struct phase_compared *ret)
{
    struct work w = {curve, n, 0};
    struct sum all = {0}, ruled, without, at = {0};
    double low, high;
    bool any = false;

    *ret = (struct phase_compared){0};
    for (size_t i = 0; i < n; i++) {
        add_mean(&curve[i], &all);
        any |= curve[i].ruled_w > 0;
    }
    w.small_j = SMALL * all.energy_j;
    if (!any || !under_phases(&w, true, &ruled) || !range_of(&w, &low, &high))
        return;
    double time_s = ruled.time_s + lost_s;
    if (!under(&w, low, &at) || at.time_s < time_s)
        return; /* the ruled job is slower than at the lowest measured cap */
    for (unsigned i = 0; i < 50; i++) {
        double middle = (low + high) / 2;
        if (!under(&w, middle, &at))
            return;
        if (at.time_s > time_s)
            low = middle;
        else
            high = middle;
    }
    ret->known = true;
    ret->static_w = high;
    ret->saved = 1 - ruled.energy_j / at.energy_j;
    if (under_phases(&w, false, &without) && without.time_s > 0)
        ret->slower = time_s / without.time_s - 1;
}

void phase_gain_step(struct phase_gain *g, const struct phase_compared *c)
{
    if (!c->known)
        return;
    bool otherwise = g->none ? c->saved > GAIN_LEAST : c->saved <= 0;
    g->contrary = otherwise ? g->contrary + 1 : 0;
    if (g->contrary < IN_A_ROW)
        return;
    g->none = !g->none;
    g->contrary = 0;
}
