#include "core/optimum/gap-probe.h"

#include <math.h>

#include "core/optimum/propose.h"

/* From the start of the regime to the probe after n probes. */
static double due_s(unsigned n)
{
    return n < GAP_PROBES_EVEN ? (n + 1) * GAP_PROBES_EVERY_S
                               : ldexp(GAP_PROBES_EVEN * GAP_PROBES_EVERY_S,
                                       (int)(n + 1 - GAP_PROBES_EVEN));
}

double gap_probes_allow(const struct gap_probes *l, double regime_s, double least_s)
{
    if (l->n >= l->most || regime_s < due_s(l->n))
        return 0;
    return GAP_PROBES_SHARE * regime_s / fmax(l->last_s, least_s);
}

void gap_probes_made(struct gap_probes *l, double took_s, unsigned windows)
{
    l->n++;
    l->last_s = took_s / (windows ? windows : 1);
}

/* The lowest measured cap above at_w; hi_w where there is none. */
static double next_above(const struct level *levels, unsigned n, double at_w, double hi_w)
{
    double next = hi_w;

    for (unsigned i = 0; i < n; i++)
        if (!levels[i].stale && levels[i].cap_w > at_w && levels[i].cap_w < next)
            next = levels[i].cap_w;
    return next;
}

double gap_probe_w(const struct level *levels, unsigned n, double lo_w, double hi_w,
                   double grain_w, double *wide_w)
{
    double widest = GAP_PROBE_LEAST_W, at = 0;

    for (double below = lo_w; below < hi_w;) {
        double above = next_above(levels, n, below, hi_w);
        if (above - below > widest && above - below < *wide_w) {
            widest = above - below;
            at = (above + below) / 2;
        }
        below = above;
    }
    if (!(at > 0))
        return 0;
    *wide_w = widest;
    return fmin(fmax(round(at / grain_w) * grain_w, lo_w), hi_w);
}
