#include "core/optimum/wander.h"

#include <math.h>
#include <stddef.h>

#define LEAST_LAG_S 20.0
#define NEAR 1.5  /* a bin also serves times longer by up to this factor */
#define LEAST_N 2 /* pairs that a bin needs */

static double lag_s_of(unsigned i)
{
    return ldexp(LEAST_LAG_S, (int)i);
}

static double squared(double v)
{
    return v * v;
}

void wander_on_window(struct wander *w, const struct pair_window *window)
{
    for (unsigned i = 0; i < WANDER_LAGS; i++) {
        struct pair_window *from = &w->from[i];
        struct wander_lag *lag = &w->lag[i];
        double apart_s = window->at_s - from->at_s;
        if (from->known && apart_s < lag_s_of(i))
            continue;
        if (from->known && apart_s < 2 * lag_s_of(i)) {
            lag->n++;
            lag->t += squared(window->log_t - from->log_t);
            lag->e += squared(window->log_e - from->log_e);
            lag->claimed_t += window->var_t + from->var_t;
            lag->claimed_e += window->var_e + from->var_e;
        }
        *from = *window;
    }
}

void wander_break(struct wander *w)
{
    for (unsigned i = 0; i < WANDER_LAGS; i++)
        w->from[i].known = false;
}

static double unclaimed(double sum, double claimed, unsigned n)
{
    return fmax(sum - claimed, 0) / n;
}

struct wander_vars wander_over(const struct wander *w, double lag_s)
{
    const struct wander_lag *best = NULL;
    double grown = 1;

    for (unsigned i = 0; i < WANDER_LAGS; i++) {
        if (w->lag[i].n < LEAST_N)
            continue;
        best = &w->lag[i];
        grown = fmax(lag_s / (NEAR * lag_s_of(i)), 1);
        if (grown <= 1)
            break;
    }
    if (!best)
        return (struct wander_vars){0};
    return (struct wander_vars){grown * unclaimed(best->t, best->claimed_t, best->n),
                                grown * unclaimed(best->e, best->claimed_e, best->n),
                                best->n};
}
