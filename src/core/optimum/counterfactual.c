#include "core/optimum/counterfactual.h"

#include <math.h>
#include <string.h>

#define LEAST_RSE 0.001
#define CLAIM_COUNTS 4 /* weight of the stated variance, in pairs */
/* Lower power lowers the leakage by 2.6 % of the difference (V100: 0.13 K/W, and 0.4 % of
 * some 50 W per K), with a time constant of 20 to 60 s.
 */
#define COOL 0.025
#define COOL_S 40.0
#define LINK_WINDOWS 6 /* windows of the hold in a link */
#define RECENT 0.2     /* weight of a new window in the moving average */
#define UNEVEN 0.5     /* largest delay of a check, as a fraction of the interval */

static double squared(double v)
{
    return v * v;
}

static struct pair_window pair_window(const struct pair_seen *s)
{
    bool usable =
        isfinite(s->time_s) && s->time_s > 0 && isfinite(s->energy_j) && s->energy_j > 0;

    if (!usable)
        return (struct pair_window){0};
    double time_rse = fmax(s->time_rse, LEAST_RSE);
    double energy_rse = fmax(s->energy_rse, LEAST_RSE);
    return (struct pair_window){.known = true,
                                .at_s = s->at_s,
                                .log_t = log(s->time_s),
                                .log_e = log(s->energy_j),
                                .var_t = time_rse * time_rse,
                                .var_e = energy_rse * energy_rse};
}

static void merge(double *value, double *var, double other, double other_var)
{
    double w = 1 / *var, w2 = 1 / other_var;

    *value = (w * *value + w2 * other) / (w + w2);
    *var = 1 / (w + w2);
}

/* Sets *w to the weighted mean of both. */
static void merge_window(struct pair_window *w, const struct pair_window *other)
{
    double at_var = w->var_e;

    if (!w->known) {
        *w = *other;
        return;
    }
    merge(&w->at_s, &at_var, other->at_s, other->var_e);
    merge(&w->log_t, &w->var_t, other->log_t, other->var_t);
    merge(&w->log_e, &w->var_e, other->log_e, other->var_e);
}

static void add(struct pair_sums *s, double reference, double hold, double var)
{
    double d = reference - hold;

    s->w += 1 / var;
    s->wd += d / var;
    s->wdd += d * d / var;
    s->wh += hold / var;
}

/* Adds a check's pair.  An unweighted mean of both neighbours cancels linear drift. */
static void add_pair(struct counterfactual *c, const struct pair_window *after)
{
    const struct pair_window *before = &c->before, *ref = &c->reference;

    add(&c->t, ref->log_t, (before->log_t + after->log_t) / 2,
        ref->var_t + (before->var_t + after->var_t) / 4);
    add(&c->e, ref->log_e, (before->log_e + after->log_e) / 2,
        ref->var_e + (before->var_e + after->var_e) / 4);
    c->lag_s += (after->at_s - before->at_s) / 2;
    c->pairs++;
}

/* Enters windows into the variogram with a delay of LATE_WINDOWS. */
static void wander_late(struct counterfactual *c, const struct pair_window *w)
{
    if (c->late[LATE_WINDOWS - 1].known)
        wander_on_window(&c->wander, &c->late[LATE_WINDOWS - 1]);
    for (unsigned i = LATE_WINDOWS - 1; i > 0; i--)
        c->late[i] = c->late[i - 1];
    c->late[0] = *w;
}

static void wander_now(struct counterfactual *c)
{
    static const struct pair_window none;

    for (unsigned i = 0; i < LATE_WINDOWS; i++)
        wander_late(c, &none);
}

static double mixed(double old, double new)
{
    return (1 - RECENT) * old + RECENT * new;
}

static void add_recent(struct pair_window *r, const struct pair_window *w)
{
    if (!r->known) {
        *r = *w;
        return;
    }
    r->at_s = mixed(r->at_s, w->at_s);
    r->log_t = mixed(r->log_t, w->log_t);
    r->log_e = mixed(r->log_e, w->log_e);
    r->var_t = squared(1 - RECENT) * r->var_t + squared(RECENT) * w->var_t;
    r->var_e = squared(1 - RECENT) * r->var_e + squared(RECENT) * w->var_e;
}

bool counterfactual_on_hold(struct counterfactual *c, const struct pair_seen *seen)
{
    struct pair_window w = pair_window(seen);

    if (!w.known)
        return false;
    bool complete = c->reference.known && c->before.known;
    if (complete)
        add_pair(c, &w);
    else if (c->reference.known)
        c->link = (struct pair_link){.reference = c->reference};
    c->reference.known = false;
    if (c->link.reference.known && c->link.windows < LINK_WINDOWS) {
        merge_window(&c->link.hold, &w);
        c->link.windows++;
    }
    c->holds++;
    c->hold_t += w.log_t;
    c->hold_e += w.log_e;
    wander_late(c, &w);
    add_recent(&c->recent, &w);
    c->before = w;
    return complete;
}

void counterfactual_on_reference(struct counterfactual *c, const struct pair_seen *seen)
{
    struct pair_window w = pair_window(seen);

    if (w.known)
        merge_window(&c->reference, &w);
}

void counterfactual_break(struct counterfactual *c)
{
    memset(c->late, 0, sizeof c->late);
    c->recent.known = c->before.known = c->reference.known = false;
    wander_break(&c->wander);
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

/* The estimate of log(reference / hold) from the checks or from the link, for time or for
 * energy.
 */
struct side {
    unsigned n; /* pairs; 0: no estimate */
    double value, var;
    double off;     /* the hold's mean logarithm minus that of the compared windows */
    double off2;    /* off squared, minus its expected variance by chance */
    double seen;    /* chi-squared of the pairs */
    unsigned tests; /* pairs behind the job's variation: further degrees of freedom */
};

static struct side side_of_visits(const struct pair_sums *s, unsigned pairs,
                                  double wanders, unsigned tests, double hold)
{
    if (pairs == 0)
        return (struct side){0};
    double claimed = 1 / s->w, value = s->wd / s->w, off = hold - s->wh / s->w;
    double seen = fmax(s->wdd - s->wd * value, 0);
    struct side out = {
        .n = pairs, .value = value, .var = claimed + wanders / pairs, .off = off};
    out.tests = tests;
    out.off2 = fmax(squared(off) - out.var, 0);
    out.seen = seen * claimed / out.var;
    return out;
}

static struct side side_of_link(double reference, double reference_var, double hold,
                                double hold_var, double wanders, double whole)
{
    struct side out = {.n = 1, .value = reference - hold, .off = whole - hold};

    out.var = reference_var + hold_var + wanders;
    out.off2 = fmax(squared(out.off) - hold_var - wanders, 0);
    return out;
}

/* The variance of a pair due to the job's variation: of a second-order difference, in
 * which linear drift cancels.
 */
static double wanders_across(double near, double far)
{
    return fmax(near - far / 4, near / 2);
}

static void sides_of(const struct counterfactual *c, struct side t[2], struct side e[2])
{
    double lag_s = c->pairs > 0 ? c->lag_s / c->pairs : 0;
    double hold_t = c->holds > 0 ? c->hold_t / c->holds : 0;
    double hold_e = c->holds > 0 ? c->hold_e / c->holds : 0;
    struct wander_vars near = wander_over(&c->wander, lag_s);
    struct wander_vars far = wander_over(&c->wander, 2 * lag_s);
    const struct pair_window *ref = &c->link.reference, *hold = &c->link.hold;
    struct wander_vars apart = wander_over(&c->wander, hold->at_s - ref->at_s);

    t[0] = side_of_visits(&c->t, c->pairs, wanders_across(near.t, far.t), near.n, hold_t);
    e[0] = side_of_visits(&c->e, c->pairs, wanders_across(near.e, far.e), near.n, hold_e);
    t[1] = e[1] = (struct side){0};
    if (c->link.windows == 0)
        return;
    t[1] =
        side_of_link(ref->log_t, ref->var_t, hold->log_t, hold->var_t, apart.t, hold_t);
    e[1] =
        side_of_link(ref->log_e, ref->var_e, hold->log_e, hold->var_e, apart.e, hold_e);
    t[1].tests = e[1].tests = apart.n;
}

/* The weighted mean of both estimates; n == 0: there is none. */
static struct side both(const struct side s[2])
{
    struct side out = s[0].n > 0 ? s[0] : s[1];
    double part = 0, var[2], freedom;

    if (s[0].n > 0 && s[1].n > 0) {
        for (int i = 0; i < 2; i++)
            var[i] = s[i].var + s[i].off2;
        part = var[0] / (var[0] + var[1]); /* of the link */
        out.n += s[1].n;
        out.tests = part > 0.5 ? s[1].tests : s[0].tests;
        out.value += part * (s[1].value - s[0].value);
        out.off2 = squared((1 - part) * copysign(sqrt(s[0].off2), s[0].off) +
                           part * copysign(sqrt(s[1].off2), s[1].off));
        out.var = squared(1 - part) * s[0].var + squared(part) * s[1].var;
        out.seen += squared(s[1].value - s[0].value) / (var[0] + var[1]);
    }
    freedom = CLAIM_COUNTS + out.n - 1;
    out.var += out.off2;
    out.var *= fmax((CLAIM_COUNTS + out.seen) / freedom, 1);
    return out;
}

static void set_ratio(const struct side *s, double *ret, double *ret_half)
{
    unsigned freedom = CLAIM_COUNTS + s->n - 1 + s->tests;

    *ret = exp(s->value);
    *ret_half = *ret * student(freedom) * sqrt(s->var);
}

struct counterfactual_said counterfactual_said(const struct counterfactual *c)
{
    struct counterfactual_said out = {.pairs = c->pairs};
    struct side t[2], e[2];

    sides_of(c, t, e);
    struct side time = both(t), energy = both(e);
    out.known = time.n > 0;
    if (!out.known)
        return out;
    set_ratio(&time, &out.time, &out.time_half);
    set_ratio(&energy, &out.energy, &out.energy_half);
    return out;
}

void counterfactual_hold_anew(struct counterfactual *c)
{
    struct side t[2], e[2];

    sides_of(c, t, e);
    struct side time = both(t), energy = both(e);
    wander_now(c);
    if (!c->reference.known && c->recent.known && time.n > 0) {
        struct pair_window *ref = &c->reference;
        *ref = c->recent;
        ref->log_t += time.value;
        ref->log_e += energy.value;
        ref->var_t += time.var;
        ref->var_e += energy.var;
    }
    c->pairs = c->holds = 0;
    c->t = c->e = (struct pair_sums){0};
    c->lag_s = c->hold_t = c->hold_e = 0;
    c->link = (struct pair_link){0};
    c->recent.known = c->before.known = false;
    wander_break(&c->wander);
}

double counterfactual_cool_rse(double lower, double since_s)
{
    return COOL * fmin(fmax(lower, 0), 1) * exp(-fmax(since_s, 0) / COOL_S);
}

/* Multiples of the golden ratio modulo 1: a low-discrepancy sequence. */
static double spread(unsigned n)
{
    double v = (n + 1) * 0.6180339887498949;

    return v - floor(v);
}

bool reference_checks_due(const struct reference_checks *v, double elapsed_s,
                          double least_s)
{
    double needs_s = fmax(v->last_s, least_s);

    if (!(v->share > 0))
        return false;
    double later = v->n > 0 ? UNEVEN * spread(v->n) : 0; /* a short job needs one check */
    return v->spent_s + needs_s * (1 + later) <= v->share * elapsed_s;
}

void visits_made(struct reference_checks *v, double took_s)
{
    v->spent_s += took_s;
    v->last_s = took_s;
    v->n++;
}
