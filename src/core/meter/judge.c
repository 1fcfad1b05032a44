/* Whether the counter can be trusted, and whether it integrates true power or the
 * sensor's readings.
 */
#include <math.h>

#include "core/meter/state.h"

enum { TICKS = 300, ENOUGH = 4 };

/* A counter fed by a sensor of 20 ms is as accurate as one of true power (bench/meter,
 * rows volta and volta-sensed): only slower sensors need the distinction.
 */
#define FAST_S 0.05
/* Fewer readings a second than this cannot disprove a proved counter. */
#define SPARSE 4.0

bool counter_certain(const struct meter *m)
{
    return m->proved && (!sensor_part_time(m) || m->class == CLASS_TRUE ||
                         (m->sensor.update_s > 0 && m->sensor.update_s < FAST_S));
}

bool counter_usable(const struct meter *m)
{
    return counter_certain(m) || (m->proved && m->class == CLASS_UNKNOWN && !m->varies);
}

/* Power of the reading whose end is nearest to t. *lo, the first reading not before t, is
 * kept between calls: t must not decrease.
 */
static bool reading_near(const struct meter *m, double t, size_t *lo, double *ret_w)
{
    while (*lo < m->at.n && reading_at(m, *lo)->end < t)
        ++*lo;
    if (*lo == m->at.n || *lo == 0)
        return false;
    const struct reading *a = reading_at(m, *lo - 1), *b = reading_at(m, *lo);
    *ret_w = t - a->end < b->end - t ? a->w : b->w;
    return true;
}

size_t meter_readings_before(const struct meter *m, double t)
{
    size_t lo = 0, hi = m->at.n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (reading_at(m, mid)->end < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The first of the ticks that are judged. */
static size_t first_tick(const struct meter *m)
{
    return m->c.at.n > TICKS ? m->c.at.n - TICKS : 1;
}

/* The power of tick i; false: ticks before it were lost, or the times of its ends are
 * uncertain.
 */
static bool tick_power(const struct meter *m, size_t i, double *ret_w)
{
    const struct point *a = series_at(&m->c, i - 1), *b = series_at(&m->c, i);
    double T = m->c_edges.period_s;

    *ret_w = (b->e - a->e) / T;
    return fabs(b->t - a->t - T) <= 0.5 * T && a->own + b->own < 0.1 * T;
}

bool meter_differs(double w, double last, double level)
{
    return last >= 0 && fabs(w - last) > 0.08 * level;
}

/* Whether no tick after `first` differs from the one before.  The result is kept for all
 * ticks but the newest, which may still be replaced.
 */
static bool ticks_calm(struct meter *m, size_t first)
{
    struct calm *k = &m->calm;
    size_t n = m->c.at.n, i = n - 1;
    double w;

    if (k->period_s != m->c_edges.period_s)
        *k = (struct calm){.period_s = m->c_edges.period_s, .to = -HUGE_VAL};
    while (i > 1 && series_at(&m->c, i - 1)->t > k->to)
        i--;
    if (series_at(&m->c, i - 1)->t != k->to)
        k->tick_w = -1; /* the tick before tick i is unknown */
    for (; i < n; i++) {
        bool whole = tick_power(m, i, &w);
        bool differs = whole && meter_differs(w, k->tick_w, 0.5 * w + 1);
        if (i + 1 == n)
            return (!differs || i == first) && k->n + first + 2 >= n;
        k->n = differs ? 0 : k->n + 1;
        k->tick_w = whole ? w : -1;
        k->to = series_at(&m->c, i)->t;
    }
    return true;
}

/* Whether no shift of the readings can make a tick or a reading differ: the level is
 * lowest where the other value is 0 W.
 */
static bool steady(struct meter *m)
{
    size_t first = first_tick(m);

    if (first >= m->c.at.n)
        return true;
    if (!ticks_calm(m, first))
        return false;
    size_t i = meter_readings_before(m, series_at(&m->c, first)->t);
    return m->r_calm + i + 1 >= m->at.n;
}

struct match {
    double changes, misses;
};

/* Counts ticks where the counter or the shifted readings differ from the previous tick,
 * and ticks that the readings do not match.  Stops at `most` of the latter.
 */
static struct match matching(const struct meter *m, double shift, double most)
{
    struct match k = {0};
    double c, r, last = -1, last_r = -1;
    size_t first = first_tick(m);
    size_t near = first < m->c.at.n
                      ? meter_readings_before(m, series_at(&m->c, first)->t + shift)
                      : 0;

    for (size_t i = first; i < m->c.at.n && k.misses < most; i++) {
        if (!tick_power(m, i, &c) ||
            !reading_near(m, series_at(&m->c, i)->t + shift, &near, &r)) {
            last = last_r = -1;
            continue;
        }
        double level = 0.5 * (c + r) + 1;
        k.changes += meter_differs(c, last, level) || meter_differs(r, last_r, level);
        k.misses += fabs(c - r) > 0.04 * level;
        last = c;
        last_r = r;
    }
    return k;
}

/* Number of readings since t. */
static size_t readings_since(const struct meter *m, double t)
{
    size_t n = 0;

    while (n < m->at.n && reading_at(m, m->at.n - 1 - n)->end >= t)
        n++;
    return n;
}

static bool sparse(const struct meter *m, double since)
{
    return (double)readings_since(m, since) < SPARSE * (m->r.last.t - since);
}

/* A counter fed by a part-time sensor follows its readings exactly; one that integrates
 * true power lies between readings whenever the load changes.
 */
static void classify(struct meter *m)
{
    struct match best = {.misses = INFINITY};
    double T = m->sensor.update_s;

    m->varies = false;
    if (steady(m))
        return;
    for (int i = -4; i <= 4; i++) {
        struct match k = matching(m, i * T / 4, best.misses);
        if (k.misses < best.misses)
            best = k;
    }
    m->varies = best.changes > 0;
    if (sparse(m, m->r.last.t - 5))
        return;
    if (best.changes >= ENOUGH && best.misses <= 0.12 * best.changes)
        m->class = CLASS_FED;
    else if (best.misses >= fmax(0.3 * best.changes, ENOUGH))
        m->class = CLASS_TRUE;
}

static void prove(struct meter *m)
{
    struct levels may = meter_may(m);
    double ca, cb, ra, rb, sd, to = fmin(m->c.last.t, m->r.last.t), from = to - 5;

    if (m->c.at.n < 3 || m->c_stuck)
        return;
    if (m->opts.model.counter_true && !m->r_any) {
        m->proved = true;
        return;
    }
    if (from < series_at(&m->c, 0)->t || from < series_at(&m->r, 0)->t)
        from = fmax(series_at(&m->c, 0)->t, series_at(&m->r, 0)->t);
    if (to - from < 0.8 || !series_energy(&m->c, from, &may, &ca, &sd) ||
        !series_energy(&m->c, to, &may, &cb, &sd) ||
        !series_energy(&m->r, from, &may, &ra, &sd) ||
        !series_energy(&m->r, to, &may, &rb, &sd) || rb - ra < 1e-3)
        return;
    if (m->proved && sparse(m, from))
        return;
    double unsure = 2 * sqrt(fmax(series_var(&m->r, to) - series_var(&m->r, from), 0));
    double allowed = sensor_part_time(m) ? 0.7 : 0.15;
    m->mismatch = (cb - ca) / (rb - ra) - 1;
    if (m->r_stuck)
        return;
    if (fabs(m->mismatch) < allowed)
        m->proved = true;
    else if (to - from > 4 && fabs(m->mismatch) > allowed + unsure / (rb - ra))
        m->proved = false; /* by readings that are sure enough themselves */
}

void meter_judge(struct meter *m, double now)
{
    bool known = m->paced && m->proved && m->class != CLASS_UNKNOWN;

    if (!m->c_any || now - m->judged < (known ? 4 : 0.5))
        return;
    m->judged = now;
    prove(m);
    if (m->opts.model.counter_true)
        m->class = CLASS_TRUE;
    else if (sensor_part_time(m))
        classify(m);
}
