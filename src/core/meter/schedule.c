#include <math.h>

#include "core/meter/state.h"

#define BURST_S 0.003      /* between samples of a burst */
#define LEARN_S 2.0        /* longest burst at the start */
#define OVERDUE_MOST_S 2.0 /* longest delay of a counter considered at a window's end */
#define SHOWN_S 0.003      /* from a publication to a call that surely reads it */

enum { LEARN_EDGES = 10 };

void meter_mark(struct meter *m, uint64_t at_ns)
{
    double t = m->any ? meter_s(m, at_ns) : 0;

    if (!m->any)
        return;                /* the start is sampled densely anyway */
    if (m->n_marks == MARKS) { /* keep the first mark, the start of a run */
        for (size_t i = 2; i < MARKS; i++)
            m->marks[i - 1] = m->marks[i];
        m->n_marks--;
    }
    m->marks[m->n_marks++] = (struct mark){.t = t};
}

static const struct edges *followed(const struct meter *m)
{
    return m->opts.model.counter_update_s > 0 && (!m->c_stuck) ? &m->c_edges
                                                               : &m->r_edges;
}

/* Whether to sample densely: at the start, or around a mark while the edges' times are
 * uncertain.
 */
static bool hunting(const struct meter *m, double now)
{
    const struct edges *e = followed(m);
    double period = e->period_s;

    if (now < LEARN_S && (e->n < LEARN_EDGES || !e->locked))
        return true;
    if (edges_error(e, now) < 0.03 * period)
        return false;
    for (size_t i = 0; i < m->n_marks; i++)
        if (now >= m->marks[i].t - 0.2 * period &&
            now <= m->marks[i].t + 1.3 * fmin(period, 0.2))
            return true;
    return false;
}

void meter_pace(struct meter *m, uint64_t period_ns)
{
    m->paced = true;
    if (m->opts.period_ns != period_ns)
        m->next_at = 0; /* replan */
    m->opts.period_ns = period_ns;
}

/* Whether the period alone determines the next sample, without reading each published
 * value.
 */
static bool at_ease(const struct meter *m)
{
    return m->paced && (m->opts.period_ns >= METER_REST_NS ||
                        (counter_usable(m) && m->class == CLASS_TRUE));
}

static bool at_rest(const struct meter *m, double now)
{
    return m->paced && m->opts.period_ns >= METER_REST_NS && now > LEARN_S;
}

/* Whether the exact time of the next sample matters. */
static bool intent(const struct meter *m)
{
    double now = m->any ? meter_s(m, m->last_ns) : 0;

    if (at_rest(m, now))
        return false;
    bool ahead = false;
    for (size_t i = 0; i < m->n_marks; i++)
        ahead |= m->marks[i].t > now;
    return hunting(m, now) || (ahead && !followed(m)->locked);
}

uint64_t meter_next(struct meter *m, uint64_t now_ns)
{
    if (!m->any)
        return now_ns;

    double now = meter_s(m, now_ns), last = meter_s(m, m->last_ns);
    double period = (double)m->opts.period_ns * 1e-9, soonest;
    const struct edges *e = followed(m);

    if (sensor_part_time(m) && m->sensor.update_s < 0.05 && !counter_usable(m) &&
        !at_rest(m, now))
        period = fmin(period, 1.25 * m->sensor.update_s); /* else most values go unread */
    if (!at_rest(m, now) && hunting(m, now)) {
        m->next_at = last + BURST_S;
    } else if (m->next_at <= last || m->next_at > last + 2 * period) {
        double step = period * (0.6 + 0.8 * rng_uniform(&m->rng));
        m->next_at = last + step;
        if (e->period_s > 0.06 && !at_ease(m)) /* read each published value once */
            m->next_at = fmin(m->next_at, last + 0.85 * e->period_s);
    }
    soonest = m->next_at;
    for (size_t i = 0; i < m->n_marks; i++) /* do not miss a mark */
        if (m->marks[i].t > now && m->marks[i].t < soonest && !e->locked)
            soonest = m->marks[i].t;
    double ns = soonest * 1e9;
    return m->origin_ns + (uint64_t)(ns > 0 ? ns : 0);
}

uint64_t meter_ready(const struct meter *m, uint64_t end_ns)
{
    const struct sensor_model *model = &m->opts.model;
    double wait = 0;

    if (model->counter_update_s > 0)
        wait = m->c_edges.period_s + model->counter_lag_s +
               fmin(meter_overdue_s(m), OVERDUE_MOST_S);
    if (m->sensor.update_s > 0 && !(counter_usable(m) && m->class == CLASS_TRUE))
        wait = fmax(wait, 2 * m->sensor.update_s + m->sensor.lag_s +
                              (m->sensor.window_s > 0.2 ? m->sensor.window_s / 2 : 0));
    return end_ns + (uint64_t)((wait + 0.01) * 1e9);
}

void meter_state(struct meter *m, struct meter_state *ret)
{
    *ret = (struct meter_state){
        .counter_proved = m->proved,
        .counter_fed = m->class == CLASS_FED,
        .counter_true = m->proved && m->class == CLASS_TRUE,
        .counter_stuck = m->c_stuck,
        .sensor_stuck = m->r_stuck,
        .counter_update_s = m->c_edges.locked ? m->c_edges.period_s : 0,
        .period_s = m->period_s,
        .mismatch = m->mismatch,
        .resets = m->resets,
        .wraps = m->wraps,
        .refused = m->refused,
        .gaps = m->gaps,
        .last_ns = m->last_ns,
        .counter_used = counter_usable(m),
        .intent = intent(m),
    };
}

uint64_t meter_shows(const struct meter *m, uint64_t end_ns)
{
    double end = meter_s(m, end_ns) + m->opts.model.counter_lag_s, next;

    if (!counter_certain(m) || m->c_stuck || meter_overdue_s(m) > 0 ||
        !edges_after(&m->c_edges, end, &next))
        return UINT64_MAX;
    return m->origin_ns + (uint64_t)((next + SHOWN_S) * 1e9);
}
