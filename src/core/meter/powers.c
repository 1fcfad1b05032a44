/* Power over time from the samples that the meter keeps: meter_powers(). */
#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "core/meter/state.h"

#define TICK 0.9 /* of a source's period: shorter means tell when it ticked */
#define PLACED 5 /* least length of a mean, in errors of the times of its ends */

/* The times within a window at which a series is known, in order: first the ends of
 * chunks that are older than the ring, then the ring's points.
 */
struct walk {
    const struct meter *m;
    const struct series *s;
    bool counter;
    double from, to;
    size_t chunk, point;
};

static void walk_begin(struct walk *w, const struct meter *m, bool counter, double from,
                       double to)
{
    *w = (struct walk){.m = m, .s = counter ? &m->c : &m->r, .counter = counter};
    w->from = from;
    w->to = to;
}

/* False: no time is left.  *ret_dt: the error of the time. */
static bool walk_next(struct walk *w, double *ret_t, double *ret_j, double *ret_dt)
{
    double ring = w->s->at.n ? series_at(w->s, 0)->t : HUGE_VAL;

    while (w->chunk < w->m->n_chunks) {
        const struct chunk *c = &w->m->chunks[w->chunk++];
        if (c->t1 <= w->from || c->t1 >= w->to || c->t1 >= ring)
            continue;
        *ret_t = c->t1;
        *ret_j = w->counter ? c->counter_j : c->read_j;
        *ret_dt = 0;
        return true;
    }
    while (w->point < w->s->at.n) {
        const struct point *p = series_at(w->s, w->point++);
        if (p->t <= w->from || p->t >= w->to)
            continue;
        *ret_t = p->t;
        *ret_j = p->e;
        *ret_dt = p->dt + p->own;
        return true;
    }
    return false;
}

/* The mean under way. */
struct mean {
    double begin, end, j; /* end == begin: empty */
};

static struct meter_power power_of(const struct mean *mean, double from)
{
    double over = mean->end - mean->begin;

    return (struct meter_power){mean->end - from, over, fmax(mean->j, 0) / over};
}

/* Means from w->from, where the series has j0, to w->to; each spans at least least_s. */
static size_t fill(struct walk *w, double j0, double j1, double least_s,
                   struct meter_power *buf, size_t room)
{
    struct mean mean = {.begin = w->from, .end = w->from};
    double t, j, last = j0, dt, begin_dt = 0;
    bool more = true;
    size_t n = 0;

    while (more) {
        dt = 0;
        more = walk_next(w, &t, &j, &dt);
        mean.end = more ? t : w->to;
        mean.j += (more ? j : j1) - last;
        last = more ? j : last;
        /* the last mean takes the rest, if the rest is not too short */
        double least = fmax(least_s, PLACED * (begin_dt + dt));
        if (mean.end - mean.begin >= least && w->to - mean.end >= (more ? least_s : 0) &&
            n + 1 < room) {
            buf[n++] = power_of(&mean, w->from);
            mean = (struct mean){.begin = mean.end, .end = mean.end};
            begin_dt = dt;
        }
    }
    if (mean.end > mean.begin)
        buf[n++] = power_of(&mean, w->from);
    return n;
}

int meter_powers(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                 struct meter_power *buf, size_t room, size_t *ret_n, uw_error *err)
{
    if (end_ns <= begin_ns || room < 1)
        return fail(err, -EINVAL, "the window ends before it begins");

    double a = meter_s(m, begin_ns), b = meter_s(m, end_ns), ja = 0, jb = 0;
    bool counter = counter_usable(m) && meter_knows(m, true, a, b);
    double T = counter ? m->c_edges.period_s : m->sensor.update_s;
    struct walk w;

    if (!m->any || (!counter && !meter_knows(m, false, a, b)) ||
        !meter_energy_at(m, counter, a, &ja) || !meter_energy_at(m, counter, b, &jb))
        return fail(err, -ENODATA, "the window of %.1f s lies outside the samples",
                    b - a);
    walk_begin(&w, m, counter, a, b);
    *ret_n = fill(&w, ja, jb, fmax(TICK * T, (b - a) / (double)room), buf, room);
    return 0;
}

uint64_t meter_since(const struct meter *m)
{
    const struct series *s = counter_usable(m) ? &m->c : &m->r;
    double t = m->n_chunks ? m->chunks[0].t0 : s->at.n ? series_at(s, 0)->t : 0;

    if (!m->any || s->at.n < 2)
        return UINT64_MAX;
    return m->origin_ns + (uint64_t)(fmax(t, 0) * 1e9);
}

size_t meter_powers_join(struct meter_power *p, size_t n, double least_s)
{
    struct meter_power one = {.over_s = 0};
    double begin = 0;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        double over = one.over_s + p[i].over_s;
        if (one.over_s > 0)
            one.power_w = (one.power_w * one.over_s + p[i].power_w * p[i].over_s) / over;
        else {
            one.power_w = p[i].power_w;
            begin = p[i].end_s - p[i].over_s;
        }
        one.over_s = over;
        one.end_s = p[i].end_s;
        if (one.end_s - begin < least_s && i + 1 < n)
            continue;
        p[kept++] = one;
        one.over_s = 0;
    }
    return kept;
}
