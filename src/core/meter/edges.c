#include "core/meter/edges.h"

#include <math.h>

#define SURE 0.05 /* periods by which an edge may be off and still have a number */

#define MISS 0.28 /* of the misses expected with a random phase */

enum { ROUNDS = 8, ENOUGH = 6, SELDOM = 8 };

void edges_init(struct edges *e, double nominal_s)
{
    *e = (struct edges){.nominal_s = nominal_s, .period_s = nominal_s};
}

/* Least squares.  A bracket's target is its nearest bound if the line misses the
 * bracket, else a point towards the bracket's middle, with a low weight.
 */
static void fit(struct edges *e)
{
    double p = e->period_s, f = e->phase_s, k0 = e->kept[0].k, weight[EDGES_KEPT];

    for (size_t i = 0; i < e->n; i++) {
        double width = e->kept[i].v - e->kept[i].u + 1e-4;
        weight[i] = 1e-6 / (width * width) + 0.01;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double sw = 0, sk = 0, skk = 0, st = 0, skt = 0;
        for (size_t i = 0; i < e->n; i++) {
            double k = e->kept[i].k - k0, at = f + e->kept[i].k * p, w = 1, t;
            if (at < e->kept[i].u) {
                t = e->kept[i].u;
            } else if (at > e->kept[i].v) {
                t = e->kept[i].v;
            } else {
                t = 0.5 * at + 0.25 * (e->kept[i].u + e->kept[i].v);
                w = 0.01;
            }
            w *= weight[i];
            sw += w;
            sk += w * k;
            skk += w * k * k;
            st += w * t;
            skt += w * k * t;
        }
        double det = sw * skk - sk * sk;
        if (det <= 1e-12 * sw * skk)
            return;
        p = (sw * skt - sk * st) / det;
        f = (st - p * sk) / sw - k0 * p;
    }
    e->period_s = p;
    e->phase_s = f;
}

static void judge(struct edges *e)
{
    double miss = 0, narrow = 1, by_chance = 0;

    for (size_t i = 0; i < e->n; i++) {
        double at = e->phase_s + e->kept[i].k * e->period_s;
        double early = e->kept[i].u - at, late = at - e->kept[i].v;
        double out = early > 0 ? early : late > 0 ? late : 0; /* not both: u <= v */
        double width = e->kept[i].v - e->kept[i].u;
        double left = fmax(e->period_s - width, 0);
        miss += out * out / (double)e->n;
        by_chance += left * left * left / (12 * e->period_s * (double)e->n);
        narrow = width < narrow ? width : narrow;
    }
    miss = sqrt(miss);
    e->error_s = miss + fmin(narrow, e->nominal_s / (double)(e->n + 1)) / 2 + 2e-4;
    e->locked = e->n >= ENOUGH && miss < MISS * sqrt(by_chance) &&
                fabs(e->period_s / e->nominal_s - 1) < 0.35;
    if (!e->locked && e->n >= 2 * (size_t)ENOUGH) { /* no lock: start over */
        e->n = e->next = 0;
        e->period_s = e->nominal_s;
    }
}

double edges_change(struct edges *e, double u, double v, double *ret_sd)
{
    double middle = (u + v) / 2, width = v - u;

    if (width >= EDGES_WIDE * e->period_s) { /* several edges are possible */
        double last = v - e->period_s / 2;
        if (e->locked)
            last = e->phase_s + e->period_s * floor((v - e->phase_s) / e->period_s);
        *ret_sd = e->locked ? e->error_s : e->period_s / sqrt(12);
        return fmax(last, u);
    }
    if (e->n == 0)
        e->phase_s = middle;
    e->order = round((middle - e->phase_s) / e->period_s);
    e->kept[e->next].u = u;
    e->kept[e->next].v = v;
    e->kept[e->next].k = e->order;
    e->next = (e->next + 1) % EDGES_KEPT;
    if (e->n < EDGES_KEPT)
        e->n++;
    /* With many brackets and a lock, refit at every SELDOM-th change only. */
    if (e->n < EDGES_KEPT || !e->locked || e->next % SELDOM == 0) {
        if (e->n >= 2)
            fit(e);
        judge(e);
    }
    if (!e->locked) {
        *ret_sd = width / sqrt(12);
        return middle;
    }
    *ret_sd = fmin(e->error_s, width / sqrt(12));
    return fmin(fmax(e->phase_s + e->order * e->period_s, u), v);
}

/* Standard deviation of an edge's time at t.  The error of the slope grows with the time
 * since the last bracket.
 */
static double error_at(const struct edges *e, double t)
{
    size_t oldest = e->n < EDGES_KEPT ? 0 : e->next;
    size_t newest = (e->next + EDGES_KEPT - 1) % EDGES_KEPT;
    double from = e->kept[oldest].u, to = e->kept[newest].v;
    double slope = e->error_s * sqrt(12 / (double)e->n) / (to - from + 1e-9);

    return e->error_s + slope * fmax(t - to, 0);
}

bool edges_read(const struct edges *e, double began, double at, double *ret_first,
                double *ret_last, double *ret_sd)
{
    double sd = e->locked ? error_at(e, at) : HUGE_VAL;

    if (sd > SURE * e->period_s)
        return false;
    *ret_first = floor((began - 2 * sd - e->phase_s) / e->period_s);
    *ret_last = floor((at + 2 * sd - e->phase_s) / e->period_s);
    *ret_sd = sd;
    return true;
}

bool edges_after(const struct edges *e, double t, double *ret)
{
    double sd = e->locked ? error_at(e, t) : HUGE_VAL, T = e->period_s;

    if (sd > SURE * T)
        return false;
    *ret = e->phase_s + T * ceil((t + 2 * sd - e->phase_s) / T) + 2 * sd;
    return true;
}

double edges_nearest(const struct edges *e, double t)
{
    if (!e->locked)
        return t;
    return e->phase_s + e->period_s * round((t - e->phase_s) / e->period_s);
}
