#include "core/optimum/climb.h"

#include <math.h>

#define FIRST 0.96     /* first lock / seen_mhz, unless a bound requires a higher one */
#define SAME_TIME 0.98 /* prior: lock / seen_mhz that is as fast as the held cap */
#define SAME_TIME_SD 0.01 /* its standard deviation, in time */
#define CLOCKED 0.6       /* prior: fraction of the time that scales with 1 / clock */
#define CLOCKED_SD 0.3
#define STEP 0.04     /* relative distance of a new neighbour */
#define NEIGHBOUR 0.1 /* largest relative distance of points in a parabola */
#define EXACT_VAR 1e-6

static double u_of(const struct climb *c, double mhz)
{
    return 1 / mhz - 1 / c->top.mhz;
}

/* d time / d (1 / clock): least squares over the priors and the measured locks. */
static double slope(const struct climb *c)
{
    double top_t = exp(c->top.log_t), most = top_t * c->top.mhz;
    double sd = CLOCKED_SD * most, w = 1 / (sd * sd), sum = w * CLOCKED * most, u;

    u = u_of(c, fmin(SAME_TIME * c->seen_mhz, c->top.mhz));
    w += u * u / (SAME_TIME_SD * SAME_TIME_SD);
    sum += u * (1 - top_t) / (SAME_TIME_SD * SAME_TIME_SD);
    for (size_t i = 0; i < c->n; i++) {
        double var = c->point[i].var_t + EXACT_VAR;
        u = u_of(c, c->point[i].mhz);
        w += u * u / var;
        sum += u * (exp(c->point[i].log_t) - top_t) / var;
    }
    return fmin(fmax(sum / w, 0.02 * most), most);
}

/* The lowest clock expected to be within most_log_t. */
static double lowest_mhz(const struct climb *c)
{
    double lo = c->min_mhz;

    if (isinf(c->most_log_t))
        return lo;
    double room = exp(c->most_log_t) - exp(c->top.log_t);
    if (room <= 0)
        return c->max_mhz;
    return fmax(lo, 1 / (1 / c->top.mhz + room / slope(c)));
}

/* Rounds up to a clock of the board. */
static uint32_t snap(const struct climb *c, double mhz)
{
    double down = floor((c->max_mhz - mhz) / c->step_mhz + 1e-6);

    if (down < 0)
        return c->max_mhz;
    double most = floor((double)(c->max_mhz - c->min_mhz) / c->step_mhz);
    return c->max_mhz - (uint32_t)fmin(down, most) * c->step_mhz;
}

static bool tried(const struct climb *c, uint32_t mhz)
{
    for (size_t i = 0; i < c->n; i++)
        if (fabs(c->point[i].mhz - mhz) < 0.5 * c->step_mhz)
            return true;
    return mhz + 0.5 * c->step_mhz >= c->top.mhz;
}

/* The best measured lock within most_log_t; NULL: none. */
static const struct climb_point *best_of(const struct climb *c)
{
    const struct climb_point *best = NULL;

    for (size_t i = 0; i < c->n; i++)
        if (c->point[i].log_t <= c->most_log_t &&
            (!best || c->point[i].log_g < best->log_g))
            best = &c->point[i];
    return best;
}

/* The nearest point on this side (+1: above), including the top; NULL: none within
 * NEIGHBOUR.
 */
static const struct climb_point *beside(const struct climb *c,
                                        const struct climb_point *best, int side)
{
    const struct climb_point *near = NULL;

    for (size_t i = 0; i <= c->n; i++) {
        const struct climb_point *p = i < c->n ? &c->point[i] : &c->top;
        double away = side * (p->mhz / best->mhz - 1);
        if (away > 0.001 && away < NEIGHBOUR &&
            (!near || away < side * (near->mhz / best->mhz - 1)))
            near = p;
    }
    return near;
}

/* The minimum of the parabola through three points; 0: it gains less than least_gain. */
static double valley_mhz(const struct climb *c, const struct climb_point *low,
                         const struct climb_point *best, const struct climb_point *high)
{
    double a = log(low->mhz / best->mhz), b = log(high->mhz / best->mhz);
    double fa = low->log_g - best->log_g, fb = high->log_g - best->log_g;
    double bend = (fb / b - fa / a) / (b - a), tilt = fa / a - bend * a;

    if (bend <= 0 || tilt * tilt / (4 * bend) < c->least_gain)
        return 0;
    return best->mhz * exp(fmin(fmax(-tilt / (2 * bend), a), b));
}

uint32_t climb_next(const struct climb *c)
{
    double lowest = lowest_mhz(c);
    const struct climb_point *best = best_of(c);
    uint32_t next;

    if (c->n == CLIMB_POINTS_MAX)
        return 0;
    if (c->n == 0 || !best) {
        double first = c->n == 0 ? FIRST * c->seen_mhz : 0;
        next = snap(c, fmax(first, lowest));
        return tried(c, next) ? 0 : next;
    }
    const struct climb_point *low = beside(c, best, -1), *high = beside(c, best, 1);
    bool at_bound = !isinf(c->most_log_t) && best->mhz - lowest < 1.5 * c->step_mhz;
    if (!low || low->log_t > c->most_log_t) {
        next = snap(c, fmax(best->mhz * (1 - STEP), lowest));
        if (next < best->mhz && !tried(c, next))
            return next;
    }
    if (!high && !at_bound) {
        next = snap(c, best->mhz * (1 + STEP));
        return tried(c, next) ? 0 : next;
    }
    double valley = low && high ? valley_mhz(c, low, best, high) : 0;
    next = valley > 0 ? snap(c, fmax(valley, lowest)) : 0;
    return next && !tried(c, next) ? next : 0;
}
