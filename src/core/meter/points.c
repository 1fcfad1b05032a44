#include "core/meter/points.h"

#include <math.h>
#include <string.h>

#include "base/units.h"

static void drop(struct points *p, size_t i)
{
    memmove(&p->at[i], &p->at[i + 1], (p->n - i - 1) * sizeof p->at[0]);
    p->n--;
}

/* The oldest of the new values becomes an old one, or is dropped. */
static void age(struct points *p)
{
    if (p->passed++ % (p->stride ? p->stride : 1) != 0) {
        drop(p, p->n_old);
        return;
    }
    p->n_old++;
    if (p->n_old < POINTS_OLD)
        return;
    for (size_t i = 1; i < p->n_old; i++, p->n_old--) /* drop every other one */
        drop(p, i);
    p->stride = (p->stride ? p->stride : 1) * 2;
}

void points_add(struct points *p, uint64_t at_ns, double j)
{
    if (p->n > 0 && at_ns <= p->at[p->n - 1].at_ns)
        return;
    if (p->n - p->n_old == POINTS_NEW)
        age(p);
    p->at[p->n].at_ns = at_ns;
    p->at[p->n++].j = j;
}

/* The counter's value at at_ns, and its largest error. */
static bool value(const struct points *p, uint64_t at_ns, uint64_t fresh_ns,
                  double *ret_j, double *ret_off)
{
    size_t i = 1;

    if (p->n < 2 || at_ns < p->at[0].at_ns || at_ns > p->at[p->n - 1].at_ns + fresh_ns)
        return false;
    while (i < p->n - 1 && p->at[i].at_ns < at_ns)
        i++;
    double len = s_between(p->at[i - 1].at_ns, p->at[i].at_ns);
    double j = p->at[i].j - p->at[i - 1].j;
    double x = s_between(p->at[i - 1].at_ns, at_ns) / len;
    *ret_j = p->at[i - 1].j + x * j;
    *ret_off = j * (x <= 1 ? 2 * x * (1 - x) : x - 1);
    return true;
}

bool points_between(const struct points *p, uint64_t begin_ns, uint64_t end_ns,
                    double step_j, uint64_t fresh_ns, double *ret_j, double *ret_half_j)
{
    double a, b, a_off, b_off;

    if (!value(p, begin_ns, fresh_ns, &a, &a_off) ||
        !value(p, end_ns, fresh_ns, &b, &b_off))
        return false;
    *ret_j = fmax(b - a, 0);
    *ret_half_j = a_off + b_off + step_j;
    return true;
}
