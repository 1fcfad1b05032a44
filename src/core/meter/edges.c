#include "core/meter/edges.h"

#include <math.h>

#define SURE 0.05    /* periods by which an edge may be off and still have a number */
#define NARROW 0.5   /* periods up to which a bracket is better than a lost phase */
#define READ_S 2e-4  /* by which the time of a poll may be off */
#define NOMINAL 0.35 /* of the model's period, by which that of the board may differ */
#define DRIFT 0.005  /* of a learnt period, by which it may differ later */
#define MISS 0.28    /* of the misses expected with a random phase */

enum {
    ROUNDS = 8,
    ENOUGH = 6,
    OFTEN = 64,
    SELDOM = 8,
    HALVINGS = 10,
    CENTRES = 4,
    TRIES = 100
};

void edges_init(struct edges *e, double nominal_s)
{
    *e = (struct edges){
        .nominal_s = nominal_s, .known_s = nominal_s, .period_s = nominal_s};
}

static const struct bracket *first_kept(const struct edges *e)
{
    return &e->kept[e->n < EDGES_KEPT ? 0 : e->next];
}

static const struct bracket *last_kept(const struct edges *e)
{
    return &e->kept[(e->next + EDGES_KEPT - 1) % EDGES_KEPT];
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

/* The longest time by which the line misses a bracket. */
static double worst_miss(const struct edges *e)
{
    double worst = 0;

    for (size_t i = 0; i < e->n; i++) {
        double at = e->phase_s + e->kept[i].k * e->period_s;
        worst = fmax(worst, fmax(e->kept[i].u - at, at - e->kept[i].v));
    }
    return worst;
}

/* By how much a line may be later than the fitted one at the newest bracket, where it has
 * `slope` more seconds an edge, and meet all brackets, widened by `wide`; none if
 * *ret_least is above *ret_most.
 */
static void shifts(const struct edges *e, double wide, double slope, double *ret_least,
                   double *ret_most)
{
    double last = last_kept(e)->k, least = -HUGE_VAL, most = HUGE_VAL;

    for (size_t i = 0; i < e->n; i++) {
        double at = e->phase_s + e->kept[i].k * e->period_s;
        double turn = slope * (last - e->kept[i].k);
        double early = e->kept[i].u - at + turn, late = e->kept[i].v - at + turn;
        least = early > least ? early : least;
        most = late < most ? late : most;
    }
    *ret_least = least - wide;
    *ret_most = most + wide;
}

/* Which lines meet all brackets, as differences from the fitted line. */
struct slack {
    double slope_least, slope_most; /* s an edge */
    double least, most;             /* s, at the newest bracket */
};

/* The slope farthest from 0, up to `far`, with which a line meets all brackets. */
static double farthest(const struct edges *e, double wide, double far)
{
    double near = 0, least, most;

    for (int i = 0; i < HALVINGS; i++) {
        double slope = (near + far) / 2;
        shifts(e, wide, slope, &least, &most);
        if (least <= most)
            near = slope;
        else
            far = slope;
    }
    return far;
}

/* The fitted line misses no bracket by more than `wide`. */
static struct slack slack(const struct edges *e, double wide)
{
    const struct bracket *a = first_kept(e), *b = last_kept(e);
    double far = (a->v - a->u + b->v - b->u + 4 * wide) / fmax(b->k - a->k, 1), any;
    struct slack s;

    /* A line is latest at the newest bracket with the steepest slope. */
    s.slope_most = farthest(e, wide, far);
    s.slope_least = farthest(e, wide, -far);
    shifts(e, wide, s.slope_most, &any, &s.most);
    shifts(e, wide, s.slope_least, &s.least, &any);
    return s;
}

static struct slack centre(struct edges *e, double wide)
{
    struct slack s = slack(e, wide);
    double slope = (s.slope_least + s.slope_most) / 2, least, most;

    shifts(e, wide, slope, &least, &most);
    double shift = (least + most) / 2;
    e->phase_s += shift - last_kept(e)->k * slope;
    e->period_s += slope;
    return (struct slack){s.slope_least - slope, s.slope_most - slope, s.least - shift,
                          s.most - shift};
}

/* The line to the middle of those that meet all brackets; by least squares where there is
 * none, as with a driver that publishes unevenly.
 */
static struct slack refit(struct edges *e)
{
    double worst = worst_miss(e);
    struct slack s;

    for (int i = 0; i < CENTRES; i++) {
        s = centre(e, fmax(worst, READ_S));
        worst = worst_miss(e);
        if (worst <= READ_S)
            return s;
    }
    fit(e);
    return slack(e, fmax(worst_miss(e), READ_S));
}

static void judge(struct edges *e, const struct slack *s)
{
    double miss = 0, by_chance = 0;

    for (size_t i = 0; i < e->n; i++) {
        double at = e->phase_s + e->kept[i].k * e->period_s;
        double early = e->kept[i].u - at, late = at - e->kept[i].v;
        double out = early > 0 ? early : late > 0 ? late : 0; /* not both: u <= v */
        double width = e->kept[i].v - e->kept[i].u;
        double left = fmax(e->period_s - width, 0);
        miss += out * out / (double)e->n;
        by_chance += left * left * left / (12 * e->period_s * (double)e->n);
    }
    miss = sqrt(miss);
    e->error_s = miss + fmax(s->most, -s->least) / sqrt(3) + READ_S;
    e->slope_error = fmax(s->slope_most, -s->slope_least) / sqrt(3) / e->period_s;
    e->locked = miss < MISS * sqrt(by_chance) &&
                fabs(e->period_s / e->known_s - 1) < (e->learnt ? DRIFT : NOMINAL);
    if (e->locked && e->slope_error < DRIFT / 2) {
        e->tries = 0;
        e->learnt = true;
        e->known_s = e->period_s;
    }
    if (!e->locked && e->n >= 2 * (size_t)ENOUGH) { /* no lock: start over */
        e->n = e->next = 0;
        if (++e->tries >= TRIES) { /* the period may have changed */
            e->learnt = false;
            e->known_s = e->nominal_s;
        }
        e->period_s = e->known_s;
    }
}

double edges_error(const struct edges *e, double t)
{
    if (!e->locked)
        return HUGE_VAL;
    return e->error_s + e->slope_error * fmax(t - last_kept(e)->v, 0);
}

/* How many edges may lie in [u, v], where each is off by at most `may`. */
static double numbers(const struct edges *e, double u, double v, double may)
{
    double T = e->period_s, p = e->phase_s;

    return floor((v + may - p) / T) - ceil((u - may - p) / T) + 1;
}

double edges_change(struct edges *e, double u, double v, double *ret_sd)
{
    double middle = (u + v) / 2, width = v - u, T = e->period_s;

    if (width >= EDGES_WIDE * T) { /* several edges are possible */
        double last = v - T / 2;
        if (e->locked)
            last = e->phase_s + T * floor((v - e->phase_s) / T);
        *ret_sd = e->locked ? e->error_s : T / sqrt(12);
        return fmax(last, u);
    }
    double may = e->locked ? sqrt(3) * edges_error(e, v) : 0;
    if (e->locked && numbers(e, u, v, may) > 1) {
        *ret_sd = width / sqrt(12);
        if (width > NARROW * T)
            return middle;
        e->n = e->next = 0; /* the phase is lost */
        e->locked = false;
    }
    if (e->n == 0)
        e->phase_s = middle;
    e->order = round((middle - e->phase_s) / T);
    e->kept[e->next].u = u;
    e->kept[e->next].v = v;
    e->kept[e->next].k = e->order;
    e->next = (e->next + 1) % EDGES_KEPT;
    if (e->n < EDGES_KEPT)
        e->n++;
    /* With many brackets and a lock, refit at every SELDOM-th change only. */
    if (e->n < OFTEN || !e->locked || e->next % SELDOM == 0) {
        if (e->n < ENOUGH) {
            fit(e);
        } else {
            struct slack s = refit(e);
            judge(e, &s);
        }
    }
    if (!e->locked) {
        *ret_sd = width / sqrt(12);
        return middle;
    }
    *ret_sd = fmin(e->error_s, width / sqrt(12));
    return fmin(fmax(e->phase_s + e->order * e->period_s, u), v);
}

bool edges_read(const struct edges *e, double began, double at, double *ret_first,
                double *ret_last, double *ret_sd)
{
    double sd = edges_error(e, at);

    if (sd > SURE * e->period_s)
        return false;
    *ret_first = floor((began - 2 * sd - e->phase_s) / e->period_s);
    *ret_last = floor((at + 2 * sd - e->phase_s) / e->period_s);
    *ret_sd = sd;
    return true;
}

bool edges_after(const struct edges *e, double t, double *ret)
{
    double sd = edges_error(e, t), T = e->period_s;

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
