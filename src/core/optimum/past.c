#include "core/optimum/past.h"

#include <math.h>
#include <string.h>

#include "core/optimum/model.h"

/* A change is noticed from 3 % on (change.c): closer than half of that is the same, … */
#define SAME 0.015
#define SAME_SE 3.0    /* … or than so many standard errors … */
#define SAME_MOST 0.04 /* … but no further; nor where it is known less */

void past_keep(struct past *p, const struct past_regime *regime)
{
    if (p->n < PAST_MOST)
        p->n++;
    memmove(&p->regime[1], &p->regime[0], (p->n - 1) * sizeof *p->regime);
    p->regime[0] = *regime;
}

/* How far apart, 1 at the most that counts as the same; more where it is not. */
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
               struct model *room, struct past_regime *ret)
{
    double least = 1;
    size_t at = p->n;

    for (size_t k = 0; k < p->n; k++) {
        double off = misfit(&p->regime[k], prior, now, room);
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
