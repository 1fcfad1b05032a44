#include "core/optimum/model.h"

#include <assert.h>
#include <math.h>

#include "base/auto.h"

/* Prior variance of the curve's offset: practically unknown [recorded, 1 % noise, edp:
 * windows] */
#define FREE_VAR 1.0
/* Candidates of stale_var: the shape has changed by 0.5, 2, 6 or 30 %.  In brackets: a
 * row of bench/constants that gets worse with half or twice of a number, and the figure.
 * [another run remembered: energy: caps, caps; eds:2: mean regret; slowdown:1.1: mean
 * regret]
 */
static const double stale_vars[] = {2.5e-5, 4e-4, 4e-3, 9e-2};
/* Stale levels are trusted with at least TRUST_LEVELS new levels, if the log evidence of
 * the least stale_var tried exceeds that of any other by `evidence`.  Those of an earlier
 * run may be another job's: a stricter test.  A change of the job changes the shape as
 * well: candidates start at 6 %.  [TRUST_LEVELS: another run remembered, edp: mean
 * regret; evidence: another run remembered, energy: mean regret; from: changes, edp:
 * lost]
 */
enum { TRUST_LEVELS = 4 };
static const struct trust {
    double evidence;
    size_t from; /* index into stale_vars */
} trust_changed = {0, 2}, trust_earlier = {3, 0};
/* Candidates of stale_by_demand after a change: waits and light work lower a job's demand
 * while the same watts as before limit its kernels.  Levels of an earlier run are always
 * scaled by their demand: that run may have used other boards.
 * [changes, edp: lost, windows]
 */
static const double stale_scales[] = {0, 0.5, 1};
/* Reference cap / demand up to which the demand is the scale [recorded, energy: max
 * regret] */
#define BUSY_X 1.31
/* Peak / demand of such boards [limits 3 x demand, told, slowdown:1.1: mean regret] */
#define PEAK 1.2
/* Exponent of the scale's prior in reference cap / demand [limits 3 x demand, told, edp:
 * max regret] */
#define SCALE_POWER 0.7
/* Standard deviation of the prior of log scale [generated, slowdown:1.1: caps] */
#define SCALE_SD 0.3
#define SCALE_STEP 1.1    /* [limits 3 x demand, told, edp: caps] */
#define LEAST_ROUGH 0.002 /* lower limit of the roughness [recorded, energy: caps] */

static double level_x(const struct model *m, const struct level *l)
{
    if (!l->stale)
        return l->cap_w / m->demand_w;
    return l->cap_w /
           exp(log(m->demand_w) + m->stale_by_demand * log(l->demand_w / m->demand_w));
}

static double height_cov(const struct level *a, const struct level *b)
{
    return a->stale == b->stale ? FREE_VAR : 0;
}

/* In place.  The noise on its diagonal makes a positive definite. */
static void cholesky(double *a, size_t n, size_t stride)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double v = a[i * stride + j];
            for (size_t k = 0; k < j; k++)
                v -= a[i * stride + k] * a[j * stride + k];
            a[i * stride + j] = i == j ? sqrt(fmax(v, 1e-14)) : v / a[j * stride + j];
        }
    }
}

static void forward(const double *a, size_t n, size_t stride, double *v)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            v[i] -= a[i * stride + k] * v[k];
        v[i] /= a[i * stride + i];
    }
}

static void backward(const double *a, size_t n, size_t stride, double *v)
{
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            v[i] -= a[k * stride + i] * v[k];
        v[i] /= a[i * stride + i];
    }
}

/* The posterior mean of the squared roughness of one side, given its levels. */
static double rough_of(const struct model *m, const struct prior_side *s,
                       const struct prior_spot *spot, const double *y, const double *var)
{
    double a[MODEL_LEVELS * MODEL_LEVELS], l[PRIOR_ROUGHS], most = -INFINITY;
    double sum = 0, mean = 0;

    for (int k = 0; k < PRIOR_ROUGHS; k++) {
        double v[MODEL_LEVELS], rough = fmax(s->rough[k], LEAST_ROUGH);
        l[k] = log(s->weight[k]);
        for (size_t i = 0; i < m->n; i++) {
            v[i] = y[i];
            for (size_t j = 0; j < m->n; j++)
                a[i * MODEL_LEVELS + j] = prior_cov(s, rough, &spot[i], &spot[j]) +
                                          height_cov(&m->levels[i], &m->levels[j]) +
                                          (i == j ? var[i] : 0);
        }
        cholesky(a, m->n, MODEL_LEVELS);
        forward(a, m->n, MODEL_LEVELS, v);
        for (size_t i = 0; i < m->n; i++)
            l[k] -= 0.5 * v[i] * v[i] + log(a[i * MODEL_LEVELS + i]);
        most = fmax(most, l[k]);
    }
    for (int k = 0; k < PRIOR_ROUGHS; k++) {
        double w = exp(l[k] - most), rough = fmax(s->rough[k], LEAST_ROUGH);
        sum += w;
        mean += w * rough * rough;
    }
    return mean / sum;
}

static void fit_roughness(struct model *m)
{
    double t[MODEL_LEVELS], p[MODEL_LEVELS], vt[MODEL_LEVELS], vp[MODEL_LEVELS];

    for (size_t i = 0; i < m->n; i++) {
        const struct level *l = &m->levels[i];
        double x = level_x(m, l), extra = l->stale ? m->stale_var : 0;
        t[i] = l->log_t - m->ref_t - prior_mean(&m->prior->t, x);
        p[i] = l->log_e - m->ref_e - (l->log_t - m->ref_t) - prior_mean(&m->prior->p, x);
        vt[i] = l->var_t + extra;
        vp[i] = l->var_t + l->var_e + extra;
    }
    m->rough_t = sqrt(rough_of(m, &m->prior->t, m->spot_t, t, vt));
    m->rough_p = sqrt(rough_of(m, &m->prior->p, m->spot_p, p, vp));
}

/* Adds the errors of levels i and j to their block of the matrix. */
static void add_noise(const struct model *m, size_t i, size_t j, double *a)
{
    const struct level *l = &m->levels[i], *k = &m->levels[j];
    double extra = l->stale ? m->stale_var : 0;

    if (m->noise && l->side && k->side) {
        double t = m->noise->t.cov[l->side - 1][k->side - 1];
        a[0] += t;
        a[1] += t;
        a[MODEL_ROWS] += t;
        a[MODEL_ROWS + 1] += t + m->noise->p.cov[l->side - 1][k->side - 1];
    } else if (i == j) {
        a[0] += l->var_t + extra;
        a[MODEL_ROWS + 1] += l->var_e + extra;
    }
}

/* Fits the model with this scale of x; returns the log evidence of the levels. */
static double fit_scaled(struct model *m, double demand_w)
{
    const struct prior *prior = m->prior;
    double evidence = 0, misfit = 0;

    m->demand_w = demand_w;
    for (size_t i = 0; i < m->n; i++) {
        double x = level_x(m, &m->levels[i]);
        m->spot_t[i] = prior_spot(&prior->t, x);
        m->spot_p[i] = prior_spot(&prior->p, x);
    }
    fit_roughness(m);
    for (size_t i = 0; i < m->n; i++) {
        const struct level *l = &m->levels[i];
        double x = level_x(m, l), mt = prior_mean(&prior->t, x);
        for (size_t j = 0; j <= i; j++) {
            double h = height_cov(l, &m->levels[j]);
            double t = prior_cov(&prior->t, m->rough_t, &m->spot_t[i], &m->spot_t[j]) + h;
            double p = prior_cov(&prior->p, m->rough_p, &m->spot_p[i], &m->spot_p[j]) + h;
            double *a = &m->chol[2 * i * MODEL_ROWS + 2 * j];
            a[0] = a[1] = a[MODEL_ROWS] = t;
            a[MODEL_ROWS + 1] = t + p;
            add_noise(m, i, j, a);
        }
        m->alpha[2 * i] = l->log_t - m->ref_t - mt;
        m->alpha[2 * i + 1] = l->log_e - m->ref_e - mt - prior_mean(&prior->p, x);
    }
    cholesky(m->chol, 2 * m->n, MODEL_ROWS);
    forward(m->chol, 2 * m->n, MODEL_ROWS, m->alpha);
    for (size_t i = 0; i < 2 * m->n; i++) {
        misfit += m->alpha[i] * m->alpha[i];
        evidence -= log(m->chol[i * (MODEL_ROWS + 1)]);
    }
    backward(m->chol, 2 * m->n, MODEL_ROWS, m->alpha);
    return evidence - 0.5 * misfit;
}

/* The mean power shows where a cap takes effect only for busy boards: a job with pauses
 * between its kernels draws more while it works.  If the reference cap is far above the
 * demand, the scale of x is fitted to the levels, with a prior from the observed peak.
 */
static double best_scale(struct model *m, double demand_w, double ref_x, double peak_w)
{
    double guess = fmax(SCALE_POWER * log(ref_x / BUSY_X), log(peak_w / demand_w / PEAK));
    double best = 1, most = -INFINITY;

    int n = (int)fmax(0, log(ref_x / BUSY_X) / log(SCALE_STEP));
    for (int i = 0; i <= n; i++) {
        double scale = pow(SCALE_STEP, i);
        double off = (log(scale) - fmax(guess, 0)) / SCALE_SD;
        double e = fit_scaled(m, scale * demand_w) - 0.5 * off * off;
        if (e > most) {
            most = e;
            best = scale;
        }
    }
    return best;
}

/* Chooses stale_by_demand by the evidence, and returns the highest one. */
static double scale_old(struct model *m, double demand_w)
{
    double most = -INFINITY, keep = 0;

    for (size_t k = 0; k < n_elements(stale_scales); k++) {
        m->stale_by_demand = stale_scales[k];
        double e = fit_scaled(m, demand_w);
        if (e > most) {
            most = e;
            keep = stale_scales[k];
        }
    }
    m->stale_by_demand = keep;
    return most;
}

/* Chooses stale_var by the evidence, and decides whether stale levels are trusted. */
static void doubt_old(struct model *m, double demand_w, bool earlier)
{
    const struct trust *trust = earlier ? &trust_earlier : &trust_changed;
    double most = -INFINITY, keep = stale_vars[trust->from], first = 0, next = -INFINITY;
    double keep_scale = m->stale_by_demand;
    size_t old = 0;

    for (size_t i = 0; i < m->n; i++)
        old += m->levels[i].stale;
    for (size_t k = trust->from; k < n_elements(stale_vars) && old; k++) {
        m->stale_var = stale_vars[k];
        double e = earlier ? fit_scaled(m, demand_w) : scale_old(m, demand_w);
        if (k == trust->from)
            first = e;
        else
            next = fmax(next, e);
        if (e > most) {
            most = e;
            keep = stale_vars[k];
            keep_scale = m->stale_by_demand;
        }
    }
    m->stale_var = keep;
    m->stale_by_demand = keep_scale;
    m->evidence = first - next;
    m->verified = m->n - old >= TRUST_LEVELS;
    m->agrees = m->verified && m->evidence > trust->evidence;
}

void model_fit(struct model *m, const struct prior *prior, const struct scene *scene)
{
    const struct level *ref = &scene->levels[scene->reference];
    double demand_w = exp(ref->log_e - ref->log_t);

    *m = (struct model){
        .prior = prior, .ref_t = ref->log_t, .ref_e = ref->log_e, .noise = scene->noise};
    assert(scene->n <= MODEL_LEVELS);
    m->n = scene->n;
    m->levels = scene->levels;
    m->stale_var = stale_vars[0];
    m->stale_by_demand = scene->earlier ? 1 : 0;
    m->agrees = true;
    double scale =
        best_scale(m, demand_w, ref->cap_w / demand_w, fmax(scene->peak_w, demand_w));
    doubt_old(m, scale * demand_w, scene->earlier);
    (void)fit_scaled(m, scale * demand_w);
}

void model_at(const struct model *m, double cap_w, struct model_spot *ret)
{
    double x = cap_w / m->demand_w;

    ret->t = prior_spot(&m->prior->t, x);
    ret->p = prior_spot(&m->prior->p, x);
    ret->mean_t = prior_mean(&m->prior->t, x);
    ret->mean_e = ret->mean_t + prior_mean(&m->prior->p, x);
    for (size_t i = 0; i < m->n; i++) {
        double h = m->levels[i].stale ? 0 : FREE_VAR;
        double t = prior_cov(&m->prior->t, m->rough_t, &ret->t, &m->spot_t[i]) + h;
        double p = prior_cov(&m->prior->p, m->rough_p, &ret->p, &m->spot_p[i]) + h;
        ret->row_t[2 * i] = ret->row_t[2 * i + 1] = ret->row_e[2 * i] = t;
        ret->row_e[2 * i + 1] = t + p;
        ret->mean_t += t * (m->alpha[2 * i] + m->alpha[2 * i + 1]);
        ret->mean_e += t * m->alpha[2 * i] + (t + p) * m->alpha[2 * i + 1];
    }
    forward(m->chol, 2 * m->n, MODEL_ROWS, ret->row_t);
    forward(m->chol, 2 * m->n, MODEL_ROWS, ret->row_e);
}

double model_cov(const struct model *m, const struct model_spot *a, struct model_mix wa,
                 const struct model_spot *b, struct model_mix wb)
{
    double t = prior_cov(&m->prior->t, m->rough_t, &a->t, &b->t) + FREE_VAR;
    double p = prior_cov(&m->prior->p, m->rough_p, &a->p, &b->p) + FREE_VAR;
    double v = (wa.t + wa.e) * (wb.t + wb.e) * t + wa.e * wb.e * p;

    for (size_t i = 0; i < 2 * m->n; i++)
        v -= (wa.t * a->row_t[i] + wa.e * a->row_e[i]) *
             (wb.t * b->row_t[i] + wb.e * b->row_e[i]);
    return v;
}
