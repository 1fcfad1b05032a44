#include "core/optimum/window-log.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

/* Adds b, the next window at a's cap, to a; means are weighted by duration. */
static void join(struct log_window *a, const struct log_window *b)
{
    double part = b->t.lasted_s / (a->t.lasted_s + b->t.lasted_s);

    a->t.lasted_s = b->t.start_s + b->t.lasted_s - a->t.start_s;
    a->t.log_v += part * (b->t.log_v - a->t.log_v);
    a->t.rse = hypot((1 - part) * a->t.rse, part * b->t.rse);
    a->t.parts = 0;
    a->log_p += part * (b->log_p - a->log_p);
    a->power_rse = hypot((1 - part) * a->power_rse, part * b->power_rse);
}

/* Joins the two shortest neighbours at one cap; if there are none, drops the oldest
 * window.
 */
static void make_room(struct window_log *l)
{
    size_t at = 0;
    double least_s = INFINITY;

    for (size_t i = 1; i < l->n; i++) {
        const struct log_window *a = &l->w[i - 1], *b = &l->w[i];
        double long_s = b->t.start_s + b->t.lasted_s - a->t.start_s;
        if (a->cap_mw == b->cap_mw && long_s < least_s) {
            least_s = long_s;
            at = i;
        }
    }
    if (at > 0)
        join(&l->w[at - 1], &l->w[at]);
    l->n--;
    memmove(&l->w[at], &l->w[at + 1], (l->n - at) * sizeof *l->w);
}

void window_log_add(struct window_log *l, const struct log_window *w)
{
    if (!(w->t.lasted_s > 0)) {
        l->untimed = true;
        return;
    }
    l->most_rse = fmax(l->most_rse, w->t.rse);
    if (l->n == COMPARE_WINDOWS)
        make_room(l);
    l->w[l->n++] = *w;
}

bool window_log_tells(const struct window_log *l)
{
    return !l->untimed && l->most_rse > 0;
}

void window_log_levels(const struct window_log *l, struct level *levels, size_t n,
                       size_t reference, struct noise *ret)
{
    struct compare_window t[COMPARE_WINDOWS], p[COMPARE_WINDOWS];

    assert(l->n > 0);

    for (size_t i = 0; i < n; i++)
        levels[i].side = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct log_window *w = &l->w[i];
        struct level *v = levels_near(levels, n, w_of_mw(w->cap_mw), 0.5 / MW_PER_W);
        unsigned side = v ? (unsigned)(v - levels) : (unsigned)reference;
        levels[side].side = side + 1;
        t[i] = w->t;
        t[i].side = side;
        p[i] = t[i];
        p[i].parts = 0;
        p[i].log_v = w->log_p;
        p[i].rse = w->power_rse;
    }
    compare_levels(t, l->n, &ret->t);
    compare_levels(p, l->n, &ret->p);
    for (size_t i = 0; i < n; i++) {
        struct level *v = &levels[i];
        if (v->side == 0)
            continue;
        v->log_t = ret->t.level[i];
        v->log_e = v->log_t + ret->p.level[i];
        v->var_t = fmax(ret->t.cov[i][i], EXACT_VAR);
        v->var_e = v->var_t + fmax(ret->p.cov[i][i], EXACT_VAR);
    }
}
