#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/names.h"
#include "core/meter/state.h"

#define PIECE_S 0.1
#define LOOK_BACK_S 120.0
#define SURE 0.1   /* periods by which a length may be off: their number is known */
#define CLOSE 0.05 /* by which a length may be off, of itself */

enum { PIECES = 1200 };

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Power from tick to tick of the counter; over several ticks where their times are less
 * certain.
 */
static size_t tick_pieces(const struct meter *m, double a, double b, double *ret)
{
    const struct series *s = &m->c;
    double period = m->c_edges.period_s;
    size_t n = 0, from = 0;

    while (from < s->at.n && series_at(s, from)->t < a - 1e-9)
        from++;
    for (size_t i = from + 1; i < s->at.n && n < PIECES; i++) {
        const struct point *p = series_at(s, from), *q = series_at(s, i);
        if (q->t > b + 1e-9)
            break;
        double length = q->t - p->t, off = hypot(p->own, q->own);
        bool sure = off <= SURE * period;
        if (sure)
            length = period * fmax(round(length / period), 1);
        if (sure || off <= CLOSE * length)
            ret[n++] = (q->e - p->e) / length;
        else if (q->own > p->own / 2)
            continue;
        from = i;
    }
    return n;
}

/* Power of pieces of 100 ms: from the counter where it is usable, else one piece per
 * reading (from the readings' integral for faster sensors).
 */
static size_t pieces(const struct meter *m, double a, double b, double *ret)
{
    bool counter = counter_usable(m) && m->c_edges.period_s <= 1.05 * PIECE_S;
    size_t n = 0;

    if (!counter && m->sensor.update_s >= 0.95 * PIECE_S) {
        for (size_t i = 0; i < m->at.n && n < PIECES; i++) {
            const struct reading *r = reading_at(m, i);
            if (r->end - m->sensor.window_s >= a - 1e-9 && r->end <= b + 1e-9)
                ret[n++] = r->w;
        }
        return n;
    }
    const struct series *s = counter ? &m->c : &m->r;
    if (counter && m->c_edges.period_s > 0.9 * PIECE_S &&
        (n = tick_pieces(m, a, b, ret)) > 0)
        return n;
    struct levels may = meter_may(m);
    size_t most = (size_t)((b - a) / PIECE_S + 1e-6);
    for (size_t i = 0; i < most && n < PIECES; i++) {
        double t = a + (double)i * PIECE_S;
        double e0, e1, sd;
        if (series_energy(s, t, &may, &e0, &sd) &&
            series_energy(s, t + PIECE_S, &may, &e1, &sd))
            ret[n++] = (e1 - e0) / PIECE_S;
    }
    return n;
}

int meter_quantile(const struct meter *m, uint64_t begin_ns, uint64_t end_ns,
                   double quantile, double *ret_w, uw_error *err)
{
    double w[PIECES];

    if (end_ns <= begin_ns || !(quantile >= 0 && quantile <= 1))
        return fail(err, -EINVAL, "no quantile %g exists of a window of %.1f s", quantile,
                    meter_s(m, end_ns) - meter_s(m, begin_ns));
    double a = meter_s(m, begin_ns), b = meter_s(m, end_ns);
    size_t n = m->any ? pieces(m, fmax(a, b - LOOK_BACK_S), b, w) : 0;
    if (n == 0)
        return fail(err, -ENODATA, "no readings lie within the window of %.1f s", b - a);
    qsort(w, n, sizeof *w, ascending);
    *ret_w = w[(size_t)lround(quantile * (double)(n - 1))];
    return 0;
}

int meter_peak(const struct meter *m, uint64_t begin_ns, uint64_t end_ns, double *ret_w,
               uw_error *err)
{
    return meter_quantile(m, begin_ns, end_ns, 0.99, ret_w, err);
}

const char *meter_why_text(uint32_t why, char *ret, size_t size)
{
    size_t used = 0;

    if (size)
        ret[0] = '\0';
    for (unsigned i = 0; 1u << i <= METER_WHY_COARSE; i++) {
        if (!(why & 1u << i) || used >= size)
            continue;
        int n = snprintf(ret + used, size - used, "%s%s", used ? ", " : "",
                         names_word(NAMES_METER_WHY, i));
        used += n > 0 ? (size_t)n : 0;
    }
    return ret;
}

const char *meter_why_words(uint32_t why)
{
    for (unsigned i = 0; 1u << i <= METER_WHY_COARSE; i++)
        if (why & 1u << i)
            return names_text(NAMES_METER_WHY, i);
    return NULL;
}
