#include "core/optimum/outlook.h"

#include <math.h>
#include <stdlib.h>

#include "core/optimum/prior.h"

/* SURE where few windows have told the noise, whose estimate then has long tails
 * [1 % noise of 5 s, slowdown:1.02: overshoot].
 */
#define SURE_FEW 2.8
/* Standard errors up to the 97.5 % limit [no row: safety of a job's bound] */
#define UPPER 1.96
/* Where windows have errors the confidence applies to F x 1.002, the expectation to F. */
#define SLACK 0.002 /* [recorded, 1 % noise, slowdown:1.02: mean regret] */

static const struct model_mix time_alone = {1, 0};

static double worth(const struct goal_shape *s, double t, double e)
{
    return s->product ? exp(t + e) : s->we * exp(e) + s->wt * exp(t);
}

static struct model_mix slope(const struct goal_shape *s, double t, double e)
{
    if (s->product)
        return (struct model_mix){exp(t + e), exp(t + e)};
    return (struct model_mix){s->wt * exp(t), s->we * exp(e)};
}

static bool bounded(const struct outlook *o)
{
    return !isinf(o->shape.bound);
}

static bool exact(const struct outlook *o)
{
    return o->var_t[0] <= EXACT;
}

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* A lower limit of a cap's excess from its own windows, as the smooth model averages over
 * a jump between two caps: their own lower confidence limit, or, if higher, the model's
 * excess plus the part of their deviation that is roughness of the curve and not noise.
 */
static double seen_alone(const struct outlook *o, const struct level *l, double mean_t)
{
    if (!l || fabs(l->cap_w - o->ref_level.cap_w) < 0.5 * o->grain_w)
        return -INFINITY;
    double own = l->log_t - o->ref_level.log_t;
    double surely = own - o->sure * sqrt(l->var_t + o->ref_level.var_t);
    if (exact(o))
        return surely;
    double rough = o->model.rough_t * o->model.rough_t;
    double part = rough / (rough + l->var_t);
    return fmax(surely, mean_t + part * (own - mean_t) - o->ref.mean_t);
}

/* Sorts ascending and removes duplicates. */
static void sort_caps(struct outlook *o, size_t n)
{
    size_t k = 0;

    qsort(o->cap_w, n, sizeof *o->cap_w, ascending);
    for (size_t i = 0; i < n; i++) {
        bool same = k > 0 && o->cap_w[i] - o->cap_w[k - 1] < 0.5 * o->grain_w;
        if (!same)
            o->cap_w[k++] = o->cap_w[i];
    }
    o->n = k;
}

/* Equal steps of whole grains over the allowed range, both ends, all measured caps. */
static void choose_caps(struct outlook *o)
{
    double grains = (o->hi_w - o->lo_w) / o->grain_w;
    double by = fmax(ceil(grains / (OUTLOOK_STEPS - 1)), 1) * o->grain_w;
    double top = floor(o->hi_w / o->grain_w + 1e-9) * o->grain_w;
    size_t n = 0;

    o->cap_w[n++] = o->hi_w;
    o->cap_w[n++] = o->lo_w;
    int steps = (int)floor((top - o->lo_w) / by + 1e-9);
    for (int i = 0; i <= steps && n < OUTLOOK_STEPS; i++)
        o->cap_w[n++] = top - i * by;
    for (size_t i = 0; i < o->model.n; i++) {
        double c = o->model.levels[i].cap_w;
        if (!o->model.levels[i].stale && c > o->lo_w - 1e-9 && c < o->hi_w + 1e-9 &&
            n < OUTLOOK_CAPS)
            o->cap_w[n++] = c;
    }
    sort_caps(o, n);
}

static double excess_var(const struct outlook *o, const struct model_spot *p)
{
    const struct model *m = &o->model;
    return fmax(model_cov(m, p, time_alone, p, time_alone) +
                    model_cov(m, &o->ref, time_alone, &o->ref, time_alone) -
                    2 * model_cov(m, p, time_alone, &o->ref, time_alone),
                0);
}

static void make_covariances(struct outlook *o)
{
    const struct model *m = &o->model;

    for (size_t i = 0; i < o->n; i++) {
        const struct model_spot *p = &o->spot[i];
        for (size_t k = 0; k <= i && !bounded(o); k++)
            o->cov[i][k] = o->cov[k][i] =
                model_cov(m, p, o->mix[i], &o->spot[k], o->mix[k]);
        for (size_t k = 0; k < o->n && bounded(o); k++) {
            const struct model_spot *q = &o->spot[k];
            o->cov[k][i] = model_cov(m, p, o->mix[i], q, time_alone);
            o->cov_excess[k][i] = model_cov(m, p, time_alone, q, time_alone) -
                                  model_cov(m, &o->ref, time_alone, q, time_alone);
        }
        o->shown[i] = fmax(
            bounded(o) ? model_cov(m, p, time_alone, p, time_alone) : o->cov[i][i], 0);
    }
}

static bool allowed(const struct outlook *o, double excess, double var)
{
    return !bounded(o) || (excess <= o->log_bound &&
                           excess + o->sure * sqrt(var) <= o->log_bound + o->slack);
}

bool outlook_allows(const struct outlook *o, size_t i)
{
    if (bounded(o) && o->seen_excess[i] > o->log_bound + o->slack)
        return false;
    return allowed(o, o->excess[i], o->var[i]);
}

bool outlook_takes_at_most(const struct outlook *o, size_t i, double most)
{
    return o->excess[i] + UPPER * sqrt(o->var[i]) <= log(most);
}

double outlook_new_above(const struct outlook *o, double cap_w, double most)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->cap_w[i] > cap_w + 0.5 * o->grain_w && outlook_takes_at_most(o, i, most))
            return o->measured[i] || o->cap_w[i] > o->hi_w - 1.5 * o->grain_w
                       ? 0
                       : o->cap_w[i];
    return 0;
}

size_t outlook_best(const struct outlook *o, bool measured, double lo_w, double most)
{
    size_t best = o->n - 1;
    double least = INFINITY;

    for (size_t i = o->n; i-- > 0;)
        if ((o->measured[i] || !measured) && o->value[i] < least &&
            o->cap_w[i] > lo_w - 0.5 * o->grain_w && outlook_allows(o, i) &&
            outlook_takes_at_most(o, i, most)) {
            least = o->value[i];
            best = i;
        }
    return best;
}

size_t outlook_nearest(const struct outlook *o, double cap_w)
{
    size_t at = 0;
    for (size_t i = 1; i < o->n; i++)
        if (fabs(o->cap_w[i] - cap_w) < fabs(o->cap_w[at] - cap_w))
            at = i;
    return at;
}

size_t outlook_best_measured(const struct outlook *o)
{
    return outlook_best(o, true, 0, INFINITY);
}

size_t outlook_expected(const struct outlook *o)
{
    size_t best = o->n - 1;

    for (size_t i = o->n; i-- > 0;)
        if (o->excess[i] <= o->log_bound && o->value[i] < o->value[best])
            best = i;
    return best;
}

/* Computes everything but the covariances at the chosen caps. */
static void fill(struct outlook *o)
{
    for (size_t i = 0; i < o->n; i++) {
        struct model_spot *p = &o->spot[i];
        model_at(&o->model, o->cap_w[i], p);
        o->value[i] = worth(&o->shape, p->mean_t, p->mean_e);
        o->mix[i] = slope(&o->shape, p->mean_t, p->mean_e);
        const struct level *l =
            levels_near(o->model.levels, o->model.n, o->cap_w[i], 0.5 * o->grain_w);
        o->measured[i] = l != NULL;
        o->seen_excess[i] = seen_alone(o, l, p->mean_t);
        o->excess[i] = p->mean_t - o->ref.mean_t;
        o->var[i] = bounded(o) ? excess_var(o, p) : 0;
        if (l && exact(o)) { /* known exactly, whatever the model expects */
            o->excess[i] = l->log_t - o->ref_level.log_t;
            o->var[i] = 0;
        }
    }
    o->best = outlook_best(o, false, 0, INFINITY);
}

/* Adds caps around the one that reaches the bound, as the bound lies between steps. */
static void refine(struct outlook *o)
{
    size_t at = o->quiet ? outlook_expected(o) : o->best;
    double lo = o->cap_w[at > 0 ? at - 1 : at];
    double hi = o->cap_w[at + 1 < o->n ? at + 1 : at];
    double by = fmax(ceil((hi - lo) / o->grain_w / OUTLOOK_FINE), 1) * o->grain_w;
    size_t n = o->n;

    int steps = (int)floor((hi - lo) / by + 1e-9);
    for (int i = 1; i < steps && n < OUTLOOK_CAPS; i++)
        o->cap_w[n++] = hi - i * by;
    sort_caps(o, n);
    fill(o);
}

/* The largest variance that noise adds to a measured excess, at least that of one window
 * of each cap.
 */
static double noise_of_excess(const struct outlook *o, const struct scene *s)
{
    unsigned r = s->levels[s->reference].side, k;
    double most = r > 0 ? 2 * o->var_t[0] : INFINITY;

    for (size_t i = 0; i < s->n && r > 0; i++)
        if ((k = s->levels[i].side) > 0) {
            const double(*cov)[COMPARE_SIDES] = s->noise->t.cov;
            most =
                fmax(most, cov[k - 1][k - 1] + cov[r - 1][r - 1] - 2 * cov[k - 1][r - 1]);
        }
    return most;
}

void outlook_make(struct outlook *o, const struct scene *s)
{
    const struct level *r = &s->levels[s->reference];
    struct goal_ref ref = {exp(r->log_e), exp(r->log_t), s->pmax_w};

    o->shape = goal_shape_of(&s->goal, &ref);
    o->log_bound = log(o->shape.bound);
    o->ref_level = *r;
    o->lo_w = s->lo_w;
    o->hi_w = s->hi_w;
    o->grain_w = s->grain_w;
    o->again = s->again;
    o->sure = s->noise ? SURE_FEW : SURE;
    o->var_e = r->var_e * r->windows;
    for (unsigned k = 0; k < COMPARE_LENGTHS; k++)
        o->var_t[k] = s->noise ? fmax(s->noise->t.again_var[k], 2 * EXACT)
                               : r->var_t * r->windows / (1u << k);
    o->slack = exact(o) ? 0 : SLACK;
    o->quiet = exact(o) || (s->noise && o->sure * sqrt(noise_of_excess(o, s)) <= SLACK);
    model_fit(&o->model, s->prior ? s->prior : &prior_recorded, s);
    model_at(&o->model, r->cap_w, &o->ref);
    choose_caps(o);
    fill(o);
    if (bounded(o))
        refine(o);
    make_covariances(o);
}

/* Nodes and weights of a Gauss-Hermite quadrature over a normal variable. */
static const double nodes[] = {-3.750440, -2.366759, -1.154405, 0,
                               1.154405,  2.366759,  3.750440};
static const double weights[] = {0.000548, 0.030757, 0.240123, 0.457143,
                                 0.240123, 0.030757, 0.000548};

static double gain_free(const struct outlook *o, size_t c, double sd)
{
    double now = INFINITY, sum = 0;

    for (size_t i = 0; i < o->n; i++)
        now = o->value[i] < now ? o->value[i] : now;
    for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
        double least = INFINITY, z = nodes[k] / sd;
        for (size_t i = 0; i < o->n; i++) {
            double v = o->value[i] + o->cov[c][i] * z;
            least = v < least ? v : least;
        }
        sum += weights[k] * (now - least);
    }
    return sum;
}

/* gain_free() under a bound: only caps allowed after the window may be held. */
static double gain_bounded(const struct outlook *o, size_t c, double sd, bool measured)
{
    enum { NODES = 15 };
    double sum = 0, total = 0, room[OUTLOOK_CAPS];
    double now = o->value[measured ? outlook_best_measured(o) : o->best];

    for (size_t i = 0; i < o->n; i++) {
        double b = o->cov_excess[c][i] / sd;
        room[i] = o->log_bound - o->excess[i] +
                  fmin(o->slack - o->sure * sqrt(fmax(o->var[i] - b * b, 0)), 0);
    }
    for (int k = 0; k < NODES; k++) {
        double z = -2.8 + 0.4 * k, w = exp(-0.5 * z * z), least = INFINITY;
        double by = z / sd;
        for (size_t i = 0; i < o->n; i++) {
            double v = o->value[i] + o->cov[c][i] * by;
            if (measured && !o->measured[i] && i != c)
                continue;
            if (v < least && o->cov_excess[c][i] * by <= room[i])
                least = v;
        }
        total += w;
        sum += isinf(least) ? 0 : w * (now - least);
    }
    return sum / total;
}

double outlook_gain(const struct outlook *o, size_t c, unsigned windows, bool measured)
{
    struct model_mix m = bounded(o) ? time_alone : o->mix[c];
    double noise = m.t * m.t * o->var_t[windows / 2] + m.e * m.e * o->var_e / windows;
    double sd = sqrt(o->shown[c] + noise);

    if (sd < 1e-7 || o->shown[c] < 0.01 * noise)
        return 0;
    return bounded(o) ? gain_bounded(o, c, sd, measured) : gain_free(o, c, sd);
}

double outlook_refined(const struct outlook *o, size_t best, double *ret_log_t,
                       double *ret_log_e)
{
    double lo = o->cap_w[best > 0 ? best - 1 : best];
    double hi = o->cap_w[best + 1 < o->n ? best + 1 : best];
    double at = o->cap_w[best], least = o->value[best];
    struct model_spot keep = o->spot[best];

    double first = ceil(lo / o->grain_w) * o->grain_w;
    int grains = (int)floor((hi - first) / o->grain_w + 1e-9);
    for (int i = 0; i <= grains; i++) {
        double c = first + i * o->grain_w;
        struct model_spot p;
        if (c < o->lo_w || c > o->hi_w)
            continue;
        model_at(&o->model, c, &p);
        double v = worth(&o->shape, p.mean_t, p.mean_e);
        double var = bounded(o) ? excess_var(o, &p) : 0;
        if (v < least - 1e-7 && allowed(o, p.mean_t - o->ref.mean_t, var)) {
            least = v;
            at = c;
            keep = p;
        }
    }
    *ret_log_t = keep.mean_t + o->model.ref_t;
    *ret_log_e = keep.mean_e + o->model.ref_e;
    return at;
}
