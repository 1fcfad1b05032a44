#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "core/meter/half-sum.h"
#include "core/meter/state.h"

#define BEYOND_S 2.0    /* a window may extend this far beyond the samples */
#define LEAVING_S 15.0  /* samples this close to leaving the ring are settled */
#define REFIT_S 0.3     /* length of the readings for which fits are kept */
#define SETTLED_S 10.0  /* shorter readings are fitted again with each new one */
#define DIRECT_S 20.0   /* windows up to this long are folded as a whole */
#define EARLY_WIDER 1.1 /* by how much an interval may grow to avoid a wait */
#define LONG_S 1.0      /* a stretch in which more than one change may happen */
#define LEVELS_S 10.0   /* the power within this time of a window's end is considered */
#define MULTIPLES 25    /* of a sensor's period: bands round them are apart */
#define HIDDEN 0.5      /* of the swing that a sensor in step with the load never shows */
#define FEW_LOOKS 5     /* readings in a step from which its course is known */
#define UNSURE 0.02     /* of a power: readings and counter agree */

/* Energy, the standard deviation of its error, and the reasons for a larger one. */
struct piece {
    double e, sd, period_s;
    double var; /* of a place of the readings: what nobody saw before it */
    uint32_t why;
    bool folded;
};

/* ---- differences of a series ---- */

static void extrapolate(const struct series *s, double t, const struct levels *may,
                        struct piece *ret)
{
    const struct point *first = series_at(s, 0), *edge = &s->last;
    double lo, hi, p;

    if (t < first->t)
        edge = first;
    bool far = fabs(t - edge->t) > LONG_S || edge->dt + edge->own > 0.1;
    series_range(s, edge->t - 2, edge->t + 2, &lo, &hi);
    double ea = 0, eb = 0, sd, from = fmax(edge->t - 0.3, first->t);
    double to = fmin(from + 0.3, s->last.t);
    (void)series_energy(s, from, may, &ea, &sd);
    (void)series_energy(s, to, may, &eb, &sd);
    p = to > from ? (eb - ea) / (to - from) : 0;
    if (far) {
        lo = may->lo;
        hi = may->hi;
    }
    double beyond = (0.4 * (hi - lo) + 0.02 * p) * fabs(t - edge->t);
    double place = hypot(edge->dt * (0.3 * p + 0.5 * (hi - lo)), edge->own * p);
    *ret = (struct piece){.e = edge->e + p * (t - edge->t),
                          .sd = hypot(beyond, place),
                          .var = ret->var,
                          .why = t < first->t ? 0 : METER_WHY_EARLY};
}

static const struct mark *mark_at(const struct meter *m, double t)
{
    for (size_t i = 0; i < m->n_marks; i++)
        if (m->marks[i].settled && fabs(m->marks[i].t - t) < 1e-6)
            return &m->marks[i];
    return NULL;
}

/* A series between the last chunk and the ring, or before the first chunk: from the mean
 * power between that chunk and the ring.
 */
static bool place_beyond(const struct meter *m, bool counter, double t, struct piece *ret)
{
    const struct series *s = counter ? &m->c : &m->r;
    const struct point *first = series_at(s, 0);

    if (m->n_chunks == 0)
        return false;
    const struct chunk *c = &m->chunks[m->n_chunks - 1];
    bool after = t > c->t1;
    if (!after)
        c = &m->chunks[0];
    double e = counter ? c->counter_j : c->read_j, span = first->t - c->t1;
    if (span <= 0)
        return false;
    double mean_w = (first->e - e) / span;
    double inside = after ? (t - c->t1) * (first->t - t) / span : c->t1 - t;
    *ret = (struct piece){.e = e + mean_w * (t - c->t1),
                          .sd = 0.5 * mean_w * fmax(inside, 0),
                          .var = c->read_var,
                          .why = METER_WHY_COARSE};
    return true;
}

/* The series at t, from marks and chunks: t has left the ring. */
static bool place_old(const struct meter *m, bool counter, double t, struct piece *ret)
{
    const struct mark *mark = mark_at(m, t);

    if (mark) {
        *ret = (struct piece){.e = counter ? mark->counter_j : mark->read_j,
                              .sd = counter ? mark->counter_sd : mark->read_sd,
                              .var = counter ? 0 : mark->read_var};
        return true;
    }
    for (size_t i = 1; i < m->n_chunks; i++) {
        const struct chunk *a = &m->chunks[i - 1], *b = &m->chunks[i];
        if (t < a->t1 || t > b->t1)
            continue;
        double ea = counter ? a->counter_j : a->read_j,
               eb = counter ? b->counter_j : b->read_j, x = (t - a->t1) / (b->t1 - a->t1);
        *ret = (struct piece){.e = ea + x * (eb - ea),
                              .sd = 0.5 * (eb - ea) * x * (1 - x),
                              .var = a->read_var + x * (b->read_var - a->read_var),
                              .why = METER_WHY_COARSE};
        return true;
    }
    return place_beyond(m, counter, t, ret);
}

/* After the end of a counter that stands still: uses the readings from there on.  If
 * these stand still, too, the power may be anywhere in its range.
 */
static void place_stuck(const struct meter *m, double t, struct piece *ret)
{
    double sd, from = m->c.last.t, e = meter_read_energy(m, from, t, &sd);
    double any = meter_frozen_s(m) > 0 ? 0.3 * meter_swing(m) * (t - from) : 0;

    *ret = (struct piece){
        .e = m->c.last.e + e, .sd = hypot(sd, any), .why = METER_WHY_STUCK};
}

/* The range of the board's power near t: that of the readings, if these are finer than
 * the counter's ticks and no tick exceeds it; else the whole range of the board.
 */
static struct levels levels_near(const struct meter *m, bool counter, double t)
{
    double T = m->c_edges.period_s, lo = HUGE_VAL, hi = 0, least, most;
    size_t i = meter_readings_before(m, t - LEVELS_S);

    if (!counter || m->sensor.response_s > 0 || m->sensor.window_s > T / 2)
        return meter_may(m);
    for (; i < m->at.n && reading_at(m, i)->end < t + LEVELS_S; i++) {
        lo = fmin(lo, reading_at(m, i)->w);
        hi = fmax(hi, reading_at(m, i)->w);
    }
    series_range(&m->c, t - LEVELS_S, t + LEVELS_S, &least, &most);
    if (least < lo - UNSURE * lo || most > hi + UNSURE * hi)
        return meter_may(m);
    return (struct levels){lo, hi};
}

static bool place(const struct meter *m, bool counter, double t, struct piece *ret)
{
    const struct series *s = counter ? &m->c : &m->r;

    if (s->at.n < 2)
        return false;
    *ret = (struct piece){.var = counter ? 0 : series_var(s, t)};
    struct levels may = levels_near(m, counter, t);
    if (series_energy(s, t, &may, &ret->e, &ret->sd))
        return true;
    if (counter && m->c_stuck && t > s->last.t) {
        place_stuck(m, t, ret);
        return true;
    }
    if (t > s->last.t || (!s->at.full && t < series_at(s, 0)->t)) {
        extrapolate(s, t, &may, ret);
        return true;
    }
    return place_old(m, counter, t, ret);
}

bool meter_energy_at(const struct meter *m, bool counter, double t, double *ret_j)
{
    struct piece p;

    if (!place(m, counter, t, &p))
        return false;
    *ret_j = p.e;
    return true;
}

/* Error at a window's end, from a sensor that averages over more than its period. */
static double blur(const struct meter *m, double t)
{
    double lo, hi;

    if (m->sensor.window_s <= 1.05 * m->sensor.update_s)
        return 0;
    series_range(&m->r, t - 2 * m->sensor.window_s, t + 2 * m->sensor.window_s, &lo, &hi);
    return 0.25 * (hi - lo) * m->sensor.window_s;
}

static bool difference(const struct meter *m, bool counter, double a, double b,
                       struct piece *ret)
{
    struct levels may = meter_may(m);
    struct piece pa, pb;
    double blurred = 0;

    if (!place(m, counter, a, &pa) || !place(m, counter, b, &pb))
        return false;
    if (!counter)
        blurred = hypot(blur(m, a), blur(m, b));
    double any = (may.hi - may.lo) * (b - a) / sqrt(12); /* any power in between */
    *ret = (struct piece){.e = pb.e - pa.e,
                          .sd = fmin(hypot(hypot(pa.sd, pb.sd), blurred), any),
                          .var = fmax(pb.var - pa.var, 0),
                          .why = pa.why | pb.why};
    ret->sd = hypot(ret->sd, sqrt(ret->var));
    return true;
}

/* ---- a part-time sensor ---- */

/* The end of a reading's time, by the current estimate of the sensor's phase. */
static double placed(const struct meter *m, const struct reading *r)
{
    return r->end + edges_nearest(&m->r_edges, r->published) - r->published;
}

/* Readings of [a, b] and up to FOLD_AROUND_S around it, as FOLD_MAX allows. */
static size_t gather(const struct meter *m, double a, double b, struct fold_obs *obs)
{
    size_t i = meter_readings_before(m, a), j = meter_readings_before(m, b), n = 0;
    size_t lo = meter_readings_before(m, a - FOLD_AROUND_S),
           hi = meter_readings_before(m, b + FOLD_AROUND_S);

    if (hi < m->at.n)
        hi++;
    size_t pair = j - i > FOLD_MAX / 2 && m->r_edges.locked ? 2 : 1;
    while (hi - lo > pair * FOLD_MAX) { /* trim the longer side, or the window itself */
        if (i > lo && i - lo >= (hi > j ? hi - j : 0))
            lo++;
        else if (hi > j)
            hi--;
        else
            lo++;
    }
    for (; lo + pair <= hi; lo += pair) {
        const struct reading *r = reading_at(m, lo), *q = reading_at(m, lo + pair - 1);
        double end = placed(m, r), step = placed(m, q) - end;
        obs[n++] = (struct fold_obs){end - m->sensor.window_s, end, step, (unsigned)pair,
                                     (r->w + q->w) / 2};
    }
    return n;
}

/* Which parts of a period readings cover. */
struct seen {
    bool cell[200];
    double period_s;
};

static void see(struct seen *s, double t0, double t1)
{
    const size_t cells = n_elements(s->cell);
    double from = t0 / s->period_s, to = t1 / s->period_s;
    size_t first = (size_t)((from - floor(from)) * (double)cells),
           count = (size_t)(fmin(to - from, 1) * (double)cells) + 1;

    for (size_t k = first; k < first + count; k++)
        s->cell[k % cells] = true;
}

/* Longest part of the period that no reading covers, in s. */
static double unseen(const struct seen *s)
{
    const size_t cells = n_elements(s->cell);
    size_t longest = 0, run = 0;

    for (size_t i = 0; i < 2 * cells; i++) {
        run = s->cell[i % cells] ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return (double)(longest < cells ? longest : cells) / (double)cells * s->period_s;
}

bool meter_hides(const struct meter *m, double step_s, double length_s)
{
    double T = m->r_edges.locked ? m->r_edges.period_s : m->sensor.update_s;
    double window_s = m->sensor.window_s;
    struct seen seen = {.period_s = step_s};
    if (counter_certain(m) || !sensor_part_time(m) || !(step_s > 0) ||
        step_s >= (FEW_LOOKS - 0.5) * T)
        return false;
    size_t looks = (size_t)ceil(length_s / T);
    for (size_t i = 0; i < looks; i++)
        see(&seen, (double)i * T, (double)i * T + window_s);
    return unseen(&seen) > HIDDEN * (T - window_s);
}

/* Widens the interval if a part of the period is not covered by readings: an edge of the
 * load may be anywhere in it.
 */
static void aliases(const struct meter *m, const struct fold_obs *obs, size_t n,
                    double length, struct piece *p)
{
    double T = m->sensor.update_s, k = round(p->period_s / T), lo = HUGE_VAL, hi = 0;
    struct seen seen = {.period_s = p->period_s};

    for (size_t i = 0; i < n; i++)
        see(&seen, obs[i].t0, obs[i].t1);
    double hidden = unseen(&seen);
    if (k >= 1 && k < MULTIPLES && fabs(p->period_s - k * T) <= 0.02 * k * T)
        p->why |= METER_WHY_ALIAS;
    if (hidden <= 0.25 * (T - m->sensor.window_s))
        return;
    for (size_t i = 0; i < n; i++) {
        lo = fmin(lo, obs[i].mean_w);
        hi = fmax(hi, obs[i].mean_w);
    }
    p->why |= METER_WHY_ALIAS;
    p->sd = hypot(p->sd, 0.3 * (hi - lo) * hidden / p->period_s * length);
}

/* Whether the fits found for the last window apply to these readings: finding new ones
 * takes about ten milliseconds, and a program may query twenty windows a second.
 */
static bool fits_hold(const struct meter *m, const struct fold_obs *obs, size_t n)
{
    const struct fitted *f = &m->fitted;
    double span = obs[n - 1].t1 - obs[0].t0;

    if (f->set.n == 0 || span < SETTLED_S || fabs(obs[n - 1].t1 - f->to) > REFIT_S ||
        fabs(span - f->span) > 0.1 * f->span)
        return false;
    for (size_t i = 0; i < n; i++)
        if (obs[i].mean_w < f->lo || obs[i].mean_w > f->hi)
            return false;
    return true;
}

static void keep_fits(struct meter *m, const struct fold_obs *obs, size_t n,
                      const struct fold_set *set)
{
    struct fitted *f = &m->fitted;

    *f = (struct fitted){.set = *set,
                         .to = obs[n - 1].t1,
                         .span = obs[n - 1].t1 - obs[0].t0,
                         .lo = HUGE_VAL};
    for (size_t i = 0; i < n; i++) {
        f->lo = fmin(f->lo, obs[i].mean_w);
        f->hi = fmax(f->hi, obs[i].mean_w);
    }
}

static int fold_piece(struct meter *m, double a, double b, struct piece *ret)
{
    struct fold_obs obs[FOLD_MAX];
    struct fold_set set = {0};
    struct piece p = {0};
    auto_(fold_free) struct fold *f = NULL;
    size_t n = gather(m, a, b, obs), best = 0;

    if (n < 2)
        return -ENODATA;
    int r = fold_new(obs, n, m->r_edges.locked ? m->r_edges.period_s : 0, &f);
    if (r == 0 && fits_hold(m, obs, n)) {
        set = m->fitted.set;
    } else if (r == 0) {
        r = fold_find(f, m->period_s, &set);
        if (r == 0)
            keep_fits(m, obs, n, &set);
    }
    if (r == 0)
        r = fold_mixed(f, &set, a, b, &p.e, &p.sd);
    if (r < 0)
        return r;
    for (size_t i = 1; i < set.n; i++)
        if (set.fits[i].weight > set.fits[best].weight)
            best = i;
    m->period_s = p.period_s = set.fits[best].period_s;
    p.folded = p.period_s > 0;
    if (p.folded)
        aliases(m, obs, n, b - a, &p);
    else if (p.sd > 0.01 * p.e)
        p.why |= METER_WHY_IRREGULAR;
    if (b > reading_at(m, m->at.n - 1)->end + m->sensor.update_s)
        p.why |= METER_WHY_EARLY;
    *ret = p;
    return 0;
}

/* As fold_piece(); if a gap left no readings, interpolates across it. add_events() widens
 * the interval for the gap.
 */
static int fold_or_line(struct meter *m, double a, double b, struct piece *ret)
{
    int r = fold_piece(m, a, b, ret);

    if (r != -ENODATA)
        return r;
    return difference(m, false, a, b, ret) ? 0 : -ENODATA;
}

static void add(struct piece *sum, struct piece p)
{
    sum->e += p.e;
    if ((sum->why | p.why) & METER_WHY_ALIAS) /* correlated errors */
        sum->sd += p.sd;
    else
        sum->sd = hypot(sum->sd, p.sd);
    sum->why |= p.why;
    sum->folded |= p.folded;
    if (p.period_s > 0)
        sum->period_s = p.period_s;
}

/* [a, b] within one chunk whose readings have left the ring. */
static struct piece part_of(const struct meter *m, const struct chunk *c, double a,
                            double b)
{
    double share = (b - a) / (c->t1 - c->t0);
    const struct mark *mark = mark_at(m, a);
    struct piece p = {.e = c->e * share, .sd = c->sd, .why = c->why};

    if (share >= 1)
        return p;
    if (mark && b >= c->t1)
        return (struct piece){.e = mark->tail_j, .sd = mark->tail_sd, .why = c->why};
    p.sd = hypot(c->sd, 0.5 * c->e * share * (1 - share));
    p.why |= METER_WHY_COARSE;
    return p;
}

static int fold_long(struct meter *m, double a, double b, struct piece *ret)
{
    double ring = m->at.n ? reading_at(m, 0)->end : 0;
    struct piece sum = {0};

    for (size_t i = 0; i < m->n_chunks && a < b; i++) {
        const struct chunk *c = &m->chunks[i];
        double to = fmin(b, c->t1);
        if (c->t1 <= a)
            continue;
        bool whole = a <= c->t0 && b >= c->t1;
        struct piece p = part_of(m, c, fmax(a, c->t0), to);
        if (!whole && (!m->at.full || a > ring + 1)) {
            int r = fold_or_line(m, a, to, &p);
            if (r < 0)
                return r;
        }
        add(&sum, p);
        a = to;
    }
    while (a < b) { /* not settled yet */
        double to = b - a > DIRECT_S ? a + DIRECT_S / 2 : b;
        struct piece p;
        int r = fold_or_line(m, a, to, &p);
        if (r < 0)
            return r;
        add(&sum, p);
        a = to;
    }
    *ret = sum;
    return 0;
}

static int fold_window(struct meter *m, double a, double b, struct piece *ret)
{
    bool in_ring = m->at.n && (!m->at.full || a > reading_at(m, 0)->end + 1);

    if (b - a <= DIRECT_S && in_ring)
        return fold_or_line(m, a, b, ret);
    return fold_long(m, a, b, ret);
}

/* ---- events within a window ---- */

static void add_events(const struct meter *m, bool counter, double a, double b,
                       struct piece *p)
{
    double lo, hi, var = p->sd * p->sd;

    for (size_t i = 0; i < m->n_events; i++) {
        const struct event *e = &m->events[i];
        double from = fmax(a, e->t0), to = fmin(b, e->t1);
        if (to <= from)
            continue;
        double blind2 = e->blind2 * (to - from) / (e->t1 - e->t0);
        if (e->why == METER_WHY_GAP) {
            bool end_in = (a > e->t0 && a < e->t1) || (b > e->t0 && b < e->t1);
            if (counter && !end_in)
                continue;
            series_range(&m->r, e->t0 - 5, e->t1 + 5, &lo, &hi);
            if (!counter)
                var += pow(0.4 * fmax(hi - lo, e->swing), 2) * blind2;
            else
                var += e->sd_j * e->sd_j;
        } else if (e->counter != counter) {
            continue;
        } else if (e->why == METER_WHY_STUCK && !counter) {
            var += pow(0.3 * p->e / (b - a), 2) * blind2;
        } else {
            var += e->sd_j * e->sd_j;
        }
        p->why |= e->why;
    }
    p->sd = sqrt(var);
}

/* ---- chunks and marks ---- */

static void merge(struct meter *m)
{
    size_t n = 0;

    for (size_t i = 0; i + 1 < m->n_chunks; i += 2) {
        struct chunk a = m->chunks[i], b = m->chunks[i + 1];
        b.t0 = a.t0;
        b.e += a.e;
        b.sd = (a.why | b.why) & METER_WHY_ALIAS ? a.sd + b.sd : hypot(a.sd, b.sd);
        b.why |= a.why;
        m->chunks[n++] = b;
    }
    m->n_chunks = n;
    m->chunk_s *= 2;
}

/* Room for one more chunk: drops the older half where the history is bounded and they are
 * too old, else grows, or merges pairs at COARSE chunks. false: no memory.
 */
static bool chunk_room(struct meter *m)
{
    if (m->n_chunks < m->chunks_room)
        return true;
    if (m->opts.history_s > 0) {
        size_t half = m->n_chunks / 2;
        if ((double)half * m->chunk_s >= m->opts.history_s) {
            memmove(m->chunks, m->chunks + half,
                    (m->n_chunks - half) * sizeof *m->chunks);
            m->n_chunks -= half;
            m->chunks_lost = true;
            return true;
        }
    }
    if (m->chunks_room == COARSE) {
        merge(m);
        return true;
    }
    size_t room = m->chunks_room ? 2 * m->chunks_room : COARSE_FEW;
    struct chunk *more = realloc(m->chunks, room * sizeof *more);
    if (!more)
        return false;
    m->chunks = more;
    m->chunks_room = room;
    return true;
}

/* Energy of the samples that leave the ring, with a part-time sensor: from the counter
 * if it is in use now, because it may not be later.  With a short history, windows never
 * reach that far back, so readings are not folded.
 */
static int settle_piece(struct meter *m, double a, double b, struct piece *ret)
{
    if (counter_usable(m) && difference(m, true, a, b, ret)) {
        add_events(m, true, a, b, ret);
        return 0;
    }
    if (m->opts.history_s <= 0)
        return fold_or_line(m, a, b, ret);
    return difference(m, false, a, b, ret) ? 0 : -ENODATA;
}

static int settle_mark(struct meter *m, struct mark *k, const struct chunk *c,
                       bool part_time)
{
    struct piece p = {0};

    if (k->settled || k->t < c->t0 || k->t >= c->t1)
        return 0;
    k->settled = true;
    if (place(m, true, k->t, &p)) {
        k->counter_j = p.e;
        k->counter_sd = p.sd;
    }
    if (place(m, false, k->t, &p)) {
        k->read_j = p.e;
        k->read_sd = p.sd;
        k->read_var = p.var;
    }
    if (!part_time)
        return 0;
    int r = settle_piece(m, k->t, c->t1, &p);
    if (r == -ENODATA)
        return 0;
    k->tail_j = p.e;
    k->tail_sd = p.sd;
    return r;
}

/* The oldest time for which all samples are kept; -HUGE_VAL while none was lost. */
static double oldest(const struct meter *m)
{
    double t = -HUGE_VAL;

    if (m->at.full)
        t = fmax(reading_at(m, 0)->end, series_at(&m->r, 0)->t);
    if (m->c.at.full)
        t = fmax(t, series_at(&m->c, 0)->t);
    return t;
}

int meter_settle(struct meter *m)
{
    double from = m->n_chunks ? m->chunks[m->n_chunks - 1].t1 : 0;
    struct chunk c = {.t0 = from, .t1 = from + m->chunk_s};
    bool part_time = sensor_part_time(m) && m->at.n > 1;
    struct piece p = {0};
    int r = 0;

    if (c.t0 > oldest(m) + LEAVING_S)
        return 0;
    if (part_time) {
        r = settle_piece(m, c.t0, c.t1, &p);
        if (r < 0 && r != -ENODATA)
            return r;
        c.e = p.e;
        c.sd = p.sd;
        c.why = p.why;
    }
    for (size_t i = 0; i < m->n_marks; i++) {
        r = settle_mark(m, &m->marks[i], &c, part_time);
        if (r < 0)
            return r;
    }
    if (place(m, true, c.t1, &p))
        c.counter_j = p.e;
    if (place(m, false, c.t1, &p)) {
        c.read_j = p.e;
        c.read_var = p.var;
    }
    if (!chunk_room(m))
        return -ENOMEM;
    m->chunks[m->n_chunks++] = c;
    return 0;
}

/* ---- the answer ---- */

bool meter_knows(const struct meter *m, bool counter, double a, double b)
{
    const struct series *s = counter ? &m->c : &m->r;

    double last = counter && m->c_stuck ? m->r.last.t : s->last.t;

    if (s->at.n < 2 || b > last + BEYOND_S || (m->chunks_lost && a < m->chunks[0].t0))
        return false;
    return s->at.full || a > series_at(s, 0)->t - BEYOND_S;
}

/* Factors above a normal's 1.96 for 95 %, as the errors are not normal. */
static double half_of(const struct meter *m, bool counter, const struct piece *p,
                      double length)
{
    double lo, hi, floor_j = METER_FLOOR * p->e;

    if (!counter && sensor_part_time(m)) {
        series_range(&m->r, m->r.last.t - 20, m->r.last.t, &lo, &hi);
        floor_j += (hi - lo) * (0.03 + 0.002 * length);
    }
    double wide = p->why & METER_WHY_ALIAS ? 3.0 : 2.5;
    return hypot(wide * p->sd, floor_j);
}

/* Variance of the energy not observed within [a, b]. */
static double unseen_between(const struct meter *m, double a, double b)
{
    struct piece pa = {0}, pb = {0};

    (void)place(m, false, a, &pa);
    (void)place(m, false, b, &pb);
    return fmax(pb.var - pa.var, 0);
}

/* A window within the samples, in the meter's time. */
struct within {
    double a, b;
    bool counter; /* from the counter */
    bool fold;    /* from readings of a part-time sensor */
};

static int find_window(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                       struct within *ret, uw_error *err)
{
    if (end_ns <= begin_ns)
        return fail(err, -EINVAL, "the window ends before it begins");

    double a = meter_s(m, begin_ns), b = meter_s(m, end_ns);
    bool counter = counter_usable(m) && meter_knows(m, true, a, b);

    if (!m->any || (!counter && !meter_knows(m, false, a, b)))
        return fail(err, -ENODATA, "the window of %.1f s lies outside the samples",
                    b - a);
    *ret = (struct within){a, b, counter, !counter && sensor_part_time(m)};
    return 0;
}

/* r: 0, or -ENODATA: then the other source is used, without a fold. */
static int finish_window(const struct meter *m, const struct within *w, int r,
                         struct piece p, struct meter_result *ret, uw_error *err)
{
    double a = w->a, b = w->b;
    bool counter = w->counter;

    if (r == -ENODATA) {
        counter = !counter && m->proved;
        r = difference(m, counter, a, b, &p) ? 0 : -ENODATA;
        p.why |= METER_WHY_GAP;
    }
    if (r < 0)
        return fail(err, r, "the energy of the window of %.1f s is unknown", b - a);

    if (!counter && sensor_part_time(m)) /* the fold knows nothing of gaps */
        p.sd = hypot(p.sd, sqrt(unseen_between(m, a, b)));
    double T = counter ? m->c_edges.period_s : m->sensor.update_s;
    add_events(m, counter, a, b, &p);
    if (b - a < 10 * T)
        p.why |= METER_WHY_SHORT;
    if (!counter && m->opts.model.counter_update_s > 0 && !m->proved)
        p.why |= METER_WHY_UNPROVED;
    double half = half_of(m, counter, &p, b - a);
    *ret = (struct meter_result){
        .energy_j = p.e,
        .power_w = p.e / (b - a),
        .half_j = half,
        .period_s = p.period_s,
        .method = counter    ? METER_COUNTER
                  : p.folded ? METER_FOLDED
                             : METER_INTEGRATED,
        .why = p.why,
    };
    return 0;
}

int meter_window_known(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                       struct meter_result *ret, uw_error *err)
{
    struct within w = {0};
    struct piece p = {0};

    int r = find_window(m, begin_ns, end_ns, &w, err);
    if (r < 0)
        return r;
    if (w.fold)
        return METER_E_FOLDS;
    r = difference(m, w.counter, w.a, w.b, &p) ? 0 : -ENODATA;
    return finish_window(m, &w, r, p, ret, err);
}

int meter_window(struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                 struct meter_result *ret, uw_error *err)
{
    struct within w = {0};
    struct piece p = {0};

    int r = meter_window_known(m, begin_ns, end_ns, ret, err);
    if (r != METER_E_FOLDS)
        return r;
    r = find_window(m, begin_ns, end_ns, &w, err);
    if (r >= 0)
        r = fold_window(m, w.a, w.b, &p);
    return finish_window(m, &w, r, p, ret, err);
}

int meter_window_early(struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                       struct meter_result *ret)
{
    struct meter_result w = {.energy_j = 0};
    double lo, hi, end = meter_s(m, end_ns);

    if (!counter_usable(m) || m->c_stuck || m->c.last.t <= meter_s(m, begin_ns))
        return METER_E_EARLY;
    uint64_t known_ns = m->origin_ns + (uint64_t)(m->c.last.t * 1e9);
    int r =
        meter_window_known(m, begin_ns, known_ns < end_ns ? known_ns : end_ns, &w, NULL);
    if (r < 0)
        return r;
    if (r == METER_E_FOLDS)
        return METER_E_EARLY;
    series_range(&m->c, m->c.last.t - 2, m->c.last.t, &lo, &hi);
    /* The energy after the last value is between 0 and most_j. */
    double most_j = fmax(hi, w.power_w) * fmax(end - m->c.last.t, 0);
    double half = hypot(w.half_j, most_j / 2);
    bool shown = most_j <= 0 && meter_shows(m, end_ns) != UINT64_MAX;
    bool little = half <= EARLY_WIDER * fmin(w.half_j, METER_FLOOR * w.energy_j);
    if (w.method != METER_COUNTER || !(shown || little))
        return METER_E_EARLY;
    w.energy_j += most_j / 2;
    w.power_w = w.energy_j / (end - meter_s(m, begin_ns));
    w.half_j = half;
    w.why &= ~(uint32_t)METER_WHY_EARLY;
    *ret = w;
    return 0;
}
