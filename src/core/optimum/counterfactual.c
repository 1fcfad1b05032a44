#include "core/optimum/counterfactual.h"

#include <math.h>

#define LEAST_RSE 0.001
#define CLAIM_COUNTS 4 /* pairs */
#define UNEVEN 0.5     /* a visit comes up to this part of its turn later */

static struct pair_window pair_window(double time_s, double energy_j, double time_rse,
                                      double energy_rse)
{
    bool usable = isfinite(time_s) && time_s > 0 && isfinite(energy_j) && energy_j > 0;

    if (!usable)
        return (struct pair_window){0};
    time_rse = fmax(time_rse, LEAST_RSE);
    energy_rse = fmax(energy_rse, LEAST_RSE);
    return (struct pair_window){true, log(time_s), log(energy_j), time_rse * time_rse,
                                energy_rse * energy_rse};
}

static void merge(double *value, double *var, double other, double other_var)
{
    double w = 1 / *var, w2 = 1 / other_var;

    *value = (w * *value + w2 * other) / (w + w2);
    *var = 1 / (w + w2);
}

static void add(struct pair_sums *s, double d, double var)
{
    s->w += 1 / var;
    s->wd += d / var;
    s->wdd += d * d / var;
}

bool counterfactual_on_hold(struct counterfactual *c, double time_s, double energy_j,
                            double time_rse, double energy_rse)
{
    struct pair_window w = pair_window(time_s, energy_j, time_rse, energy_rse);

    if (!w.known)
        return false;
    bool complete = c->reference.known;
    if (complete) {
        struct pair_window hold = w;
        if (c->before.known) { /* the plain mean: what drifts evenly falls out */
            hold.log_t = (w.log_t + c->before.log_t) / 2;
            hold.log_e = (w.log_e + c->before.log_e) / 2;
            hold.var_t = (w.var_t + c->before.var_t) / 4;
            hold.var_e = (w.var_e + c->before.var_e) / 4;
        }
        add(&c->t, c->reference.log_t - hold.log_t, c->reference.var_t + hold.var_t);
        add(&c->e, c->reference.log_e - hold.log_e, c->reference.var_e + hold.var_e);
        c->pairs++;
        c->reference.known = false;
    }
    c->before = w;
    return complete;
}

void counterfactual_on_reference(struct counterfactual *c, double time_s, double energy_j,
                                 double time_rse, double energy_rse)
{
    struct pair_window w = pair_window(time_s, energy_j, time_rse, energy_rse);

    if (!w.known)
        return;
    if (c->reference.known) {
        merge(&w.log_t, &w.var_t, c->reference.log_t, c->reference.var_t);
        merge(&w.log_e, &w.var_e, c->reference.log_e, c->reference.var_e);
    }
    c->reference = w;
}

void counterfactual_break(struct counterfactual *c)
{
    c->before.known = c->reference.known = false;
}

/* The 97.5 % quantile of Student's t with n degrees of freedom, n >= CLAIM_COUNTS: the
 * expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5), within 0.003 there.
 */
static double student(double n)
{
    const double z = 1.959964, z2 = z * z;
    double g1 = z * (z2 + 1) / 4;
    double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
    double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
    double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;

    return z + g1 / n + g2 / (n * n) + g3 / (n * n * n) + g4 / (n * n * n * n);
}

static void said(const struct pair_sums *s, unsigned pairs, double *ret, double *ret_half)
{
    double mean = s->wd / s->w, freedom = CLAIM_COUNTS + pairs - 1;
    double seen = fmax(s->wdd - s->wd * mean, 0); /* 1 a degree of freedom as claimed */
    double stretch = fmax((CLAIM_COUNTS + seen) / freedom, 1);

    *ret = exp(mean);
    *ret_half = *ret * student(freedom) * sqrt(stretch / s->w);
}

struct counterfactual_said counterfactual_said(const struct counterfactual *c)
{
    struct counterfactual_said out = {.pairs = c->pairs};

    if (c->pairs == 0)
        return out;
    said(&c->t, c->pairs, &out.time, &out.time_half);
    said(&c->e, c->pairs, &out.energy, &out.energy_half);
    return out;
}

/* Evenly spread over 0..1 by the number of the visit: multiples of the golden ratio. */
static double spread(unsigned n)
{
    double v = (n + 1) * 0.6180339887498949;

    return v - floor(v);
}

bool visits_due(const struct visits *v, double elapsed_s, double least_s)
{
    double needs_s = fmax(v->last_s, least_s);

    if (!(v->share > 0))
        return false;
    return v->spent_s + needs_s * (1 + UNEVEN * spread(v->n)) <= v->share * elapsed_s;
}

void visits_made(struct visits *v, double took_s)
{
    v->spent_s += took_s;
    v->last_s = took_s;
    v->n++;
}
