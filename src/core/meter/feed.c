#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "core/meter/state.h"

#define TOP_W 1e5     /* above the power of any board */
#define SWING_S 60.0  /* the board's range of power is that of this last time */
#define UNSEEN_SD 0.3 /* of the swing: a power anywhere in it, all the time */
#define OVERDUE 0.1   /* periods by which a counter may be late */
#define LATE_S 60.0   /* time after which the counter's largest delay is forgotten */
#define UNLIKE 0.02   /* of an energy: readings and counter, over a few periods */

int meter_new(const struct meter_opts *opts, struct meter **ret, uw_error *err)
{
    const struct sensor_model *model = &opts->model;
    bool instant = model->instant.update_s > 0;
    const struct sensor *s = instant ? &model->instant : &model->power;

    if (s->update_s <= 0 && model->counter_update_s <= 0)
        return fail(err, -EINVAL, "the model has neither a power reading nor a counter");
    if (s->update_s < 0 || s->update_s > 10 || s->window_s < 0 || s->window_s > 10 ||
        model->counter_update_s < 0 || model->counter_update_s > 10)
        return fail(err, -EINVAL, "the model's periods are outside 0..10 s");
    if (model->counter_update_s > 0 && !(model->counter_unit_j > 0))
        return fail(err, -EINVAL, "the counter's unit is %g J", model->counter_unit_j);

    auto_(meter_free) struct meter *m = calloc(1, sizeof *m);
    double keep_s =
        opts->history_s > 0 ? fmax(opts->history_s, HISTORY_LEAST_S) : HUGE_VAL;
    if (!m || !series_init(&m->c, keep_s) || !series_init(&m->r, keep_s))
        return fail(err, -ENOMEM, "no memory for a meter");
    m->ring = malloc(FEW * sizeof *m->ring);
    m->at = (struct ring){.room = FEW, .keep_s = keep_s};
    m->chunks = malloc(COARSE_FEW * sizeof *m->chunks);
    m->chunks_room = COARSE_FEW;
    if (!m->ring || !m->chunks)
        return fail(err, -ENOMEM, "no memory for a meter");
    m->opts = *opts;
    if (!m->opts.period_ns)
        m->opts.period_ns = 50000000;
    m->sensor = *s;
    m->sensor_has = instant ? METER_HAS_INSTANT : METER_HAS_POWER;
    m->chunk_s = COARSE_S;
    m->c_late = -HUGE_VAL;
    rng_init(&m->rng, opts->seed);
    edges_init(&m->c_edges, fmax(model->counter_update_s, 1e-3));
    edges_init(&m->r_edges, fmax(s->update_s, 1e-3));
    *ret = take(m);
    return 0;
}

void meter_free(struct meter *m)
{
    if (!m)
        return;
    free(m->c.p);
    free(m->r.p);
    free(m->ring);
    free(m->chunks);
    free(m);
}

double meter_s(const struct meter *m, uint64_t ns)
{
    return (double)(int64_t)(ns - m->origin_ns) * 1e-9;
}

/* Merges the two oldest events of the same kind. */
static void join_events(struct meter *m)
{
    for (size_t i = 0; i < m->n_events; i++)
        for (size_t k = i + 1; k < m->n_events; k++) {
            struct event *a = &m->events[i], b = m->events[k];
            if (a->why != b.why || a->counter != b.counter)
                continue;
            a->t0 = fmin(a->t0, b.t0);
            a->t1 = fmax(a->t1, b.t1);
            a->sd_j = hypot(a->sd_j, b.sd_j);
            a->blind2 += b.blind2;
            a->swing = fmax(a->swing, b.swing);
            for (m->n_events--; k < m->n_events; k++)
                m->events[k] = m->events[k + 1];
            return;
        }
}

void meter_event(struct meter *m, struct event e)
{
    if (m->n_events == EVENTS)
        join_events(m); /* there are fewer kinds than that */
    e.blind2 = (e.t1 - e.t0) * (e.t1 - e.t0);
    e.swing = meter_swing(m);
    m->events[m->n_events++] = e;
}

struct levels meter_may(const struct meter *m)
{
    double most = m->opts.most_w > 0 ? m->opts.most_w : 1.5 * m->r_top;

    return (struct levels){0, fmax(most, m->r_top)};
}

double meter_swing(const struct meter *m)
{
    double lo, hi;

    series_range(&m->r, m->r.last.t - SWING_S, m->r.last.t, &lo, &hi);
    return m->r_any ? fmax(hi, m->w) - fmin(lo, m->w) : 0;
}

bool sensor_part_time(const struct meter *m)
{
    const struct sensor *s = &m->sensor;
    return s->update_s > 0 && s->response_s <= 0 && s->window_s < 0.95 * s->update_s;
}

/* A call's value may be from any moment of the call.  Returns half of the call's length,
 * or 0 if that is negligible.
 */
static double late_by(const struct edges *e, double began, double at)
{
    return at - began > 0.1 * e->period_s ? (at - began) / 2 : 0;
}

/* ---- readings ---- */

static void keep_reading(struct meter *m, struct reading r)
{
    double old = m->at.n ? r.end - reading_at(m, 0)->end : 0;
    double last = m->at.n ? reading_at(m, m->at.n - 1)->w : -1;
    void *items = m->ring;
    size_t at = ring_next(&m->at, &items, sizeof r, old);

    m->ring = items;
    m->ring[at] = r;
    m->r_calm = meter_differs(r.w, last, 0.5 * r.w + 1) ? 0 : m->r_calm + 1;
}

/* Variance of the energy that a step between two readings leaves unobserved.  For a
 * part-time sensor the fold estimates it.
 */
static double unseen_var(const struct meter *m, double step)
{
    const struct sensor *s = &m->sensor;
    double unseen = step - fmax(fmax(1.5 * s->update_s, s->window_s), s->response_s);

    if (unseen <= 0 || sensor_part_time(m))
        return 0;
    return pow(UNSEEN_SD * meter_swing(m) * unseen, 2);
}

static void add_reading(struct meter *m, double end, double w)
{
    const struct sensor *s = &m->sensor;
    struct point p = m->r.last;
    double step = end - p.t, old = m->w;

    if (m->r.at.n && s->response_s > 0 && step < 1.75 * s->update_s)
        return; /* noise of the correction would grow with the number of points */

    keep_reading(m, (struct reading){.end = end, .w = w, .published = m->r_changed});
    m->w = w;
    m->r_top = fmax(m->r_top, w);
    if (m->r.at.n == 0) {
        series_add(&m->r, (struct point){.t = end, .dt = 0.2 * s->update_s});
        return;
    }
    if (step <= 0)
        return;

    /* A reading that averages its whole period gives that period's energy; other readings
     * are integrated by trapezoids, corrected for an exponential response.
     */
    if (s->response_s > 0)
        p.e += (w + old) / 2 * step + s->response_s * (w - old);
    else if (sensor_part_time(m) || s->window_s > 1.05 * s->update_s)
        p.e += (w + old) / 2 * step;
    else
        p.e += w * fmin(step, 1.5 * s->update_s) +
               (w + old) / 2 * fmax(step - 1.5 * s->update_s, 0);
    p.t = end;
    p.var += unseen_var(m, step);
    p.dt = fmax(m->r_edges.locked ? m->r_edges.error_s : 0.29 * s->update_s, 1e-3);
    series_add(&m->r, p);
}

/* The delay from the time that a reading represents to its publication. */
static double reading_lag(const struct meter *m)
{
    const struct sensor *s = &m->sensor;

    if (s->window_s > 1.05 * s->update_s) /* a long average stands for its middle */
        return s->lag_s + s->window_s / 2;
    return s->lag_s;
}

/* Extends the event of a reading that does not change up to `at`. */
static void stuck_until(struct meter *m, double at)
{
    for (size_t i = m->n_events; i-- > 0;) {
        struct event *e = &m->events[i];
        if (e->why != METER_WHY_STUCK || e->counter)
            continue;
        e->blind2 +=
            2 * (e->t1 - m->r_stuck_from) * (at - e->t1) + (at - e->t1) * (at - e->t1);
        e->t1 = at;
        return;
    }
}

static void take_reading(struct meter *m, double began, double at, double w)
{
    double edge, sd, T = m->sensor.update_s;
    bool first = !m->r_any;

    if (first || w != m->w) {
        edge = first ? at - T / 2
                     : edges_change(&m->r_edges, m->r_same_from,
                                    at - late_by(&m->r_edges, began, at), &sd);
        m->fresh += m->same < 200;
        m->r_moves++;
        m->same = 0;
        m->r_stuck = false;
        m->r_changed = edge;
        add_reading(m, edge - reading_lag(m), w);
    } else {
        m->same++;
        if (at - m->r_changed > 1.5 * T) { /* published again with the same value */
            m->r_changed = fmax(m->r_changed + T * floor((at - m->r_changed) / T - 0.5),
                                m->r_changed);
            add_reading(m, m->r_changed - reading_lag(m), w);
        }
        if (!m->r_stuck && m->same > 100 && m->fresh > 100 && at - m->r_same_at < 1 &&
            w > 0) {
            m->r_stuck = true;
            m->r_stuck_from = at - m->same * 0.03;
            meter_event(m, (struct event){
                               .t0 = m->r_stuck_from, .t1 = at, .why = METER_WHY_STUCK});
        }
    }
    if (m->r_stuck)
        stuck_until(m, at);
    m->r_any = true;
    m->r_same_from = began;
    m->r_same_at = at;
}

/* ---- the counter ---- */

double meter_read_energy(const struct meter *m, double a, double b, double *ret_sd)
{
    double ea, eb, sa, sb, lo, hi, last = m->r.last.t;
    struct levels may = meter_may(m);

    *ret_sd = 0.5 * m->w * (b - a);
    if (!m->r_any || b <= a)
        return 0;
    if (!series_energy(&m->r, fmin(a, last), &may, &ea, &sa) ||
        !series_energy(&m->r, fmin(b, last), &may, &eb, &sb))
        return m->w * (b - a);
    series_range(&m->r, a - 2, b, &lo, &hi);
    double beyond = fmax(b - fmax(a, last), 0);
    double T = m->sensor.update_s;
    double var = fmax(series_var(&m->r, b) - series_var(&m->r, a), 0);
    *ret_sd = sqrt(sa * sa + sb * sb + var) + 0.3 * (hi - lo) * beyond +
              (sensor_part_time(m) ? 0.3 * (hi - lo) * sqrt((b - a) * T) : 0);
    return eb - ea + m->w * beyond;
}

/* The counter is invalid between its last point and this one: the readings give the
 * energy.  more_sd: uncertainty in addition to theirs.
 */
static void bridge(struct meter *m, const struct point *to, uint32_t why, double more_sd)
{
    struct point p = m->c.last;
    double sd;

    if (to->t <= p.t)
        return;
    double e = meter_read_energy(m, p.t, to->t, &sd);
    if (!m->r_any)
        sd = m->c.at.n > 1 ? 0.5 * (to->t - p.t) * m->r_top : 0;
    meter_event(m, (struct event){.t0 = p.t,
                                  .t1 = to->t,
                                  .sd_j = hypot(sd, more_sd),
                                  .why = why,
                                  .counter = true});
    p.e += e;
    p.t = to->t;
    p.own = to->own;
    p.dt = m->opts.model.counter_update_s;
    series_add(&m->c, p);
}

/* Energy counted since the last poll, wraps included; false: the counter was reset. */
static bool counted(struct meter *m, uint64_t raw, double span, double *ret_j)
{
    const struct sensor_model *model = &m->opts.model;
    double unit = model->counter_unit_j, most = fmax(4 * m->r_top, 2000);

    if (raw > m->raw) {
        *ret_j = (double)(raw - m->raw) * unit;
        return true;
    }
    if (model->counter_wrap > m->raw) {
        *ret_j = (double)(model->counter_wrap - m->raw + raw) * unit;
        if (*ret_j <= most * (span + 0.2)) {
            m->wraps++;
            return true;
        }
    } else if (model->counter_wrap == 0 && m->raw > UINT64_MAX - (1ull << 40)) {
        *ret_j = ((double)(UINT64_MAX - m->raw) + (double)raw + 1) * unit;
        m->wraps++;
        return true;
    }
    m->resets++;
    return false;
}

/* A counter that stood still counts again, by j.  Whether it has lost the time in
 * between (j is the energy since the last poll) or has caught up.  Decided by readings
 * that changed meanwhile; if all stood still (a driver or a machine that was suspended),
 * by j.
 */
static bool lost_time(const struct meter *m, double j, double edge, double at,
                      bool frozen, double *ret_more_sd)
{
    double sd, e = meter_read_energy(m, m->c.last.t, edge, &sd);
    double since = m->w * (at - m->c_same_from + m->c_edges.period_s);
    bool lost, doubt;

    if (frozen) {
        lost = doubt = j <= 2 * since && j < 0.5 * e;
    } else {
        lost = fabs(j - since) < fabs(j - e);
        doubt = !lost && fabs(j - e) > 0.15 * e + 3 * sd; /* it may have lost a part */
    }
    *ret_more_sd = doubt ? 0.5 * fabs(j - e) : 0;
    return lost;
}

/* A counter that stood still counts again.  True: its count is used. */
static bool moved_on(struct meter *m, double j, const struct point *to, double at,
                     bool frozen)
{
    double more_sd;

    if (lost_time(m, j, to->t, at, frozen, &more_sd)) {
        bridge(m, to, METER_WHY_STUCK, more_sd);
        return false;
    }
    if (to->t > m->c.last.t)
        meter_event(m, (struct event){.t0 = m->c.last.t,
                                      .t1 = to->t,
                                      .sd_j = more_sd,
                                      .why = frozen ? METER_WHY_GAP : METER_WHY_STUCK,
                                      .counter = true});
    return true;
}

double meter_frozen_s(const struct meter *m)
{
    double T = m->c_edges.period_s, still = m->c_same_at - m->c_changed;
    double due = (still - 1.5 * T) / fmax(m->sensor.update_s, 1e-3);

    if (!m->c_moved || !m->r_any || still < 2.5 * T)
        return 0;
    return m->r_moves - m->c_moves <= 1 + 0.3 * due ? still : 0;
}

/* If the first change came late, the first poll is taken as the start: it returned the
 * count of the tick before, or of a tick that was earlier by as much time as the counter
 * stood still later.
 */
static void begin_early(struct meter *m)
{
    double T = m->c_edges.period_s, still = m->c_same_at - m->c_changed;

    if (still < 2 * T)
        return;
    series_add(&m->c,
               (struct point){.t = m->c_changed - T / 2 - m->opts.model.counter_lag_s,
                              .dt = hypot(T / sqrt(12), still / 2)});
}

/* The number of the edge (`first` or the next one) up to which the readings sum up to j
 * joules since the last point; NAN: the readings do not decide.
 */
static double edge_of_energy(const struct meter *m, double j, double first)
{
    double T = m->c_edges.period_s, sd, from = m->c.last.t;
    double at = m->c_edges.phase_s + T * first - m->opts.model.counter_lag_s;
    double least = meter_read_energy(m, from, at, &sd);
    double most = meter_read_energy(m, from, at + T, &sd);
    double unsure = hypot(hypot(sd, UNLIKE * j), m->w * m->c.last.own);
    bool next = fabs(j - most) < fabs(j - least);

    if (m->c.at.n == 0 ||
        fabs(j - (next ? most : least)) + 2 * unsure > (most - least) / 2)
        return NAN;
    return next ? first + 1 : first;
}

/* Assigns a change to the edge at which the value was published that a call from `began`
 * to `at` returned.  An edge within the call may be before or after the moment of
 * reading, which shifts the energy of a whole period.
 */
static void put_to_edge(const struct meter *m, double j, double began, double at,
                        struct point *p)
{
    const struct edges *e = &m->c_edges;
    double T = e->period_s, first, last;

    if (!edges_read(e, began, at, &first, &last, &p->dt)) {
        p->t = (began + at - T) / 2;
        p->own = hypot(T, at - began) / sqrt(12);
        p->dt = 0;
        return;
    }
    double least = ceil((m->c_same_from - 2 * p->dt - e->phase_s) / T);
    first = fmin(fmax(first, least), last);
    double n = last - first + 1, k = last;
    if (n > 1)
        k = n > 2 ? NAN : edge_of_energy(m, j, first);
    p->own = isnan(k) ? T * sqrt((n * n - 1) / 12) : 0;
    p->t = fmax(e->phase_s + T * (isnan(k) ? (first + last) / 2 : k), m->c_same_from);
}

/* The time, with its error, at which the counter had increased by j since the last
 * point.
 */
static struct point place_change(struct meter *m, double j, double began, double at)
{
    double T = m->c_edges.period_s, half = late_by(&m->c_edges, began, at), sd;
    double from = m->c_same_from, edge = edges_change(&m->c_edges, from, at - half, &sd);
    struct point p = {.t = edge, .dt = hypot(sd, half / sqrt(3))};
    bool wide = at - from >= EDGES_WIDE * T;

    if (meter_overdue_s(m) > 0 &&
        (wide || !m->c_edges.locked || m->c_late > m->c_changed))
        p = (struct point){.t = (from + at - T) / 2,
                           .own = hypot(at - from, T) / sqrt(12)};
    else if (wide)
        put_to_edge(m, j, began, at, &p);
    p.t -= m->opts.model.counter_lag_s;
    return p;
}

/* The counter has changed in a call from `began` to `at`. */
static void changed(struct meter *m, uint64_t raw, double began, double at)
{
    double j = 0, still = meter_frozen_s(m);

    if (still > 0)
        series_doubt(&m->r, m->c_changed, pow(UNSEEN_SD * meter_swing(m) * still, 2));
    bool whole = counted(m, raw, at - m->c_changed, &j);
    if (!m->c_moved && whole)
        begin_early(m);
    struct point p = place_change(m, j, began, at);
    double edge = p.t;
    if (m->c.at.n == 0) {
        series_add(&m->c, p);
    } else if (!whole) {
        bridge(m, &p, METER_WHY_RESET, 0);
    } else if (!m->c_stuck || moved_on(m, j, &p, at, still > 0)) {
        p.e = m->c.last.e + j;
        if (!m->r_any && j > 0 && edge > m->c.last.t)
            m->r_top = fmax(m->r_top, j / fmax(edge - m->c.last.t, 0.05));
        series_add(&m->c, p);
    }
    m->c_moved = true;
    m->c_stuck = false;
    m->c_moves = m->r_moves;
    m->raw = raw;
    m->c_changed = at;
}

double meter_overdue_s(const struct meter *m)
{
    return meter_s(m, m->last_ns) - m->c_late < LATE_S ? m->c_overdue : 0;
}

/* The counter has not changed in a call from `began` to `at`. */
static void stood_still(struct meter *m, double began, double at)
{
    double period = (double)m->opts.period_ns * 1e-9;
    double patience = fmax(fmax(8 * m->opts.model.counter_update_s, 1), 3 * period);

    double T = m->c_edges.period_s, overdue = began - m->c_changed - T;

    if (!m->c_moved || m->w <= 3)
        return;
    if (overdue > OVERDUE * T) {
        m->c_overdue = fmax(meter_overdue_s(m), overdue);
        m->c_late = at;
    }
    if (at - m->c_changed > patience && at - m->c_same_at < patience)
        m->c_stuck = true; /* from there on, meter_window() uses the readings */
}

static void take_counter(struct meter *m, double began, double at, uint64_t raw)
{
    if (!m->c_any) {
        m->raw = raw;
        m->c_any = true;
        m->c_changed = at;
    } else if (raw != m->raw) {
        changed(m, raw, began, at);
    } else {
        stood_still(m, began, at);
    }
    if (at - m->c_changed < 1.5 * m->c_edges.period_s)
        m->c_moves = m->r_moves;
    m->c_same_from = began;
    m->c_same_at = at;
}

/* ---- samples ---- */

static bool good(double w)
{
    return isfinite(w) && w >= 0 && w < TOP_W;
}

static bool backwards(const struct meter *m, const struct meter_sample *s)
{
    if (s->power_at_ns < s->power_began_ns ||
        ((s->has & METER_HAS_COUNTER) && s->counter_at_ns < s->counter_began_ns))
        return true;
    uint64_t at = s->power_at_ns;
    if ((s->has & METER_HAS_COUNTER) && s->counter_at_ns > at)
        at = s->counter_at_ns;
    return m->any && at <= m->last_ns;
}

int meter_feed(struct meter *m, const struct meter_sample *s, uw_error *err)
{
    bool has_w = s->has & m->sensor_has, has_c = s->has & METER_HAS_COUNTER;
    double w = m->sensor_has == METER_HAS_INSTANT ? s->instant_w : s->power_w;
    int r = 0;

    if (backwards(m, s)) {
        m->refused++;
        return fail(err, METER_E_OLD, "a sample is older than the last one");
    }
    uint64_t now_ns =
        has_c && s->counter_at_ns > s->power_at_ns ? s->counter_at_ns : s->power_at_ns;
    if (!m->any) {
        m->origin_ns = now_ns;
        m->next_at = 0;
    }
    double now = meter_s(m, now_ns), gap = m->any ? now - meter_s(m, m->last_ns) : 0;
    if (gap > fmax(1, 20e-9 * (double)m->opts.period_ns)) {
        m->gaps++;
        meter_event(m, (struct event){.t0 = now - gap, .t1 = now, .why = METER_WHY_GAP});
    }
    if (has_w && good(w))
        take_reading(m, meter_s(m, s->power_began_ns), meter_s(m, s->power_at_ns), w);
    else if (has_w)
        r = fail(err, METER_E_BAD, "%g W is not a plausible power of a board", w);
    if (has_c && m->opts.model.counter_update_s > 0)
        take_counter(m, meter_s(m, s->counter_began_ns), meter_s(m, s->counter_at_ns),
                     s->counter);
    m->any = true;
    m->last_ns = now_ns;
    meter_judge(m, now);
    int settled = meter_settle(m);
    return settled < 0 ? fail(err, settled, "no memory to settle a window") : r;
}
