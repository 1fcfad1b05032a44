#include <math.h>

#include "core/meter/state.h"

void series_add(struct series *s, struct point p)
{
    if (s->n && p.t <= s->last.t) { /* two edges in one: the later tells all */
        s->head = (s->head + POINTS - 1) % POINTS;
        s->n--;
        p.t = s->last.t;
    }
    s->p[s->head] = s->last = p;
    s->head = (s->head + 1) % POINTS;
    if (s->n < POINTS)
        s->n++;
}

const struct point *series_at(const struct series *s, size_t i)
{
    return &s->p[(s->head + POINTS - s->n + i) % POINTS];
}

/* Number of points at or before t. */
static size_t before(const struct series *s, double t)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (series_at(s, mid)->t <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Mean power between points i - 1 and i. */
static double mean_w(const struct series *s, size_t i)
{
    const struct point *a = series_at(s, i - 1), *b = series_at(s, i);
    return (b->e - a->e) / fmax(b->t - a->t, 1e-9);
}

void series_range(const struct series *s, double a, double b, double *ret_lo,
                  double *ret_hi)
{
    size_t i = before(s, a), end = before(s, b);
    double lo = HUGE_VAL, hi = 0;

    for (i = i < 1 ? 1 : i; i < s->n && i <= end; i++) {
        lo = fmin(lo, mean_w(s, i));
        hi = fmax(hi, mean_w(s, i));
    }
    *ret_lo = hi > 0 ? lo : 0;
    *ret_hi = hi;
}

bool series_energy(const struct series *s, double t, double *ret_j, double *ret_sd)
{
    size_t i = before(s, t);

    if (s->n < 2 || i == 0 || (i == s->n && t > s->last.t))
        return false;
    if (i == s->n)
        i--;

    /* Within the tick the board is taken to go between the lowest and the highest
     * power round here once; the neighbours tell in which order.
     */
    const struct point *a = series_at(s, i - 1), *b = series_at(s, i);
    double len = b->t - a->t, x = (t - a->t) / len, p = mean_w(s, i), lo, hi;
    double previous = i > 1 ? mean_w(s, i - 1) : p;
    double following = i + 1 < s->n ? mean_w(s, i + 1) : p;

    series_range(s, t - 2, t + 2, &lo, &hi);
    double swing = fmax(hi - lo, 1e-6), f = (p - lo) / swing;
    double most = swing * len * fmax(fmin(x * (1 - f), f * (1 - x)), 0);
    double order = fmin(fmax((previous - following) / swing, -1), 1);
    double shape =
        hypot(most * sqrt(1 - order * order), 0.22 * swing * len * sqrt(x * (1 - x)));
    double place = b->dt * (0.3 * p + 0.5 * swing);
    *ret_j = a->e + x * (b->e - a->e) + order * most;
    *ret_sd = sqrt(shape * shape + place * place);
    return true;
}
