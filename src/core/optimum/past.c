#include "core/optimum/past.h"

#include <math.h>
#include <string.h>

#include "core/optimum/model.h"

/* Two logarithms agree if they differ by less than SAME, half the smallest change
 * detected (3 %, change.c), or by less than SAME_SE standard errors, but at most by
 * SAME_MOST.  [SAME: changes, edp, at 0.1 % noise: windows]
 */
#define SAME 0.015
#define SAME_SE 3.0 /* [changes, edp: lost] */
/* Also the largest standard deviation of a prediction in use [changes, edp: lost] */
#define SAME_MOST 0.04

void past_keep(struct past *p, const struct past_regime *regime)
{
    if (p->n < PAST_MOST)
        p->n++;
    memmove(&p->regime[1], &p->regime[0], (p->n - 1) * sizeof *p->regime);
    p->regime[0] = *regime;
}

/* The difference, relative to the largest one that still agrees. */
static double apart(double a, double b, double var)
{
    return fabs(a - b) / fmin(fmax(SAME, SAME_SE * sqrt(var)), SAME_MOST);
}

static double misfit(const struct past_regime *r, const struct prior *prior,
                     const struct level *now, struct model *m)
{
    static const struct model_mix time = {1, 0}, energy = {0, 1};
    struct scene scene = {
        .peak_w = r->peak_w, .levels = r->levels, .n = r->n, .reference = r->reference};
    struct model_spot at;

    model_fit(m, prior, &scene);
    model_at(m, now->cap_w, &at);
    double var_t = fmax(model_cov(m, &at, time, &at, time), 0);
    double var_e = fmax(model_cov(m, &at, energy, &at, energy), 0);
    if (fmax(var_t, var_e) > SAME_MOST * SAME_MOST)
        return INFINITY;
    return fmax(apart(at.mean_t + m->ref_t, now->log_t, var_t + now->var_t),
                apart(at.mean_e + m->ref_e, now->log_e, var_e + now->var_e));
}

bool past_take(struct past *p, const struct prior *prior, const struct level *now,
               struct model *scratch, struct past_regime *ret)
{
    double least = 1;
    size_t at = p->n;

    for (size_t k = 0; k < p->n; k++) {
        double off = misfit(&p->regime[k], prior, now, scratch);
        if (off < least) {
            least = off;
            at = k;
        }
    }
    if (at == p->n)
        return false;
    *ret = p->regime[at];
    p->n--;
    memmove(&p->regime[at], &p->regime[at + 1], (p->n - at) * sizeof *p->regime);
    return true;
}
