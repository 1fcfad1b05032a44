#include "core/optimum/level.h"

#include <math.h>

/* Combines two estimates of one mean, weighted by precision. */
static void blend(double *mean, double *var, double mean2, double var2)
{
    double w = *var / (*var + var2);
    *mean += w * (mean2 - *mean);
    *var *= 1 - w;
}

void level_join(struct level *l, const struct level *other)
{
    if (l->windows == 0) {
        l->log_t = other->log_t;
        l->log_e = other->log_e;
        l->var_t = other->var_t;
        l->var_e = other->var_e;
    } else {
        blend(&l->log_t, &l->var_t, other->log_t, other->var_t);
        blend(&l->log_e, &l->var_e, other->log_e, other->var_e);
    }
    l->windows += other->windows;
}

struct level *levels_near(const struct level *all, size_t n, double cap_w, double near_w)
{
    for (size_t i = 0; i < n; i++)
        if (!all[i].stale && fabs(all[i].cap_w - cap_w) < near_w)
            return (struct level *)&all[i];
    return NULL;
}

size_t levels_fresh(const struct level *all, size_t n, struct level *ret,
                    size_t *reference)
{
    size_t k = 0, at = 0;

    for (size_t i = 0; i < n; i++) {
        if (all[i].stale)
            continue;
        if (i == *reference)
            at = k;
        ret[k++] = all[i];
    }
    *reference = at;
    return k;
}

size_t levels_move_reference(struct level *all, size_t n, size_t *reference, double cap_w)
{
    struct level r = all[*reference];
    size_t k = 0, at = 0;

    for (size_t i = 0; i < n; i++) {
        struct level l = all[i];
        if (i == *reference)
            at = k++;
        else if (l.stale || l.cap_w < cap_w)
            all[k++] = l;
        else
            level_join(&r, &l);
    }
    r.cap_w = cap_w;
    all[at] = r;
    *reference = at;
    return k;
}
