#include <math.h>

#include "base/auto.h"
#include "core/sweep/sweep.h"

/* A linear regression of y over x - mean_x. */
struct line {
    double n, mean_x, sxx, slope, slope_se;
};

/* Two-sided 95 % quantile of Student's t: table, then an approximation. */
static double student_95(double df)
{
    static const double t[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                               2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                               2.131,  2.120, 2.110, 2.101, 2.093, 2.086};

    static const size_t most = n_elements(t);
    if (df < 1)
        return INFINITY;
    if (df < (double)most + 0.5)
        return t[(size_t)df - 1];
    return 1.96 + 2.4 / df; /* within 0.2 % of the table */
}

double sweep_half(double se, unsigned runs)
{
    return runs > 1 ? student_95(runs - 1) * se : 0;
}

static double log_of(const struct sweep_run *run, bool energy)
{
    return log(energy ? run->energy_j : run->time_s);
}

static struct line fit(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
                       bool energy)
{
    struct line l = {0};
    double mean_y = 0, sxy = 0, syy = 0;

    for (size_t i = 0; i < n; i++) {
        if (runs[i].cap_mw != reference_mw)
            continue;
        l.n++;
        l.mean_x += (runs[i].at_s - l.mean_x) / l.n;
        mean_y += (log_of(&runs[i], energy) - mean_y) / l.n;
    }
    for (size_t i = 0; i < n; i++) {
        if (runs[i].cap_mw != reference_mw)
            continue;
        double dx = runs[i].at_s - l.mean_x, dy = log_of(&runs[i], energy) - mean_y;
        l.sxx += dx * dx;
        sxy += dx * dy;
        syy += dy * dy;
    }
    if (l.sxx > 0)
        l.slope = sxy / l.sxx;
    double rest = syy - l.slope * sxy;
    l.slope_se =
        l.n > 2 && l.sxx > 0 ? sqrt((rest > 0 ? rest : 0) / (l.n - 2) / l.sxx) : INFINITY;
    return l;
}

static bool is_drift(double change, double half)
{
    if (isinf(half))
        return fabs(change) > 0.03;
    return fabs(change) > 0.01 && fabs(change) > 1.5 * half;
}

void sweep_drift(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
                 struct sweep_drift *ret)
{
    double first = INFINITY, last = -INFINITY;

    *ret = (struct sweep_drift){0};
    for (size_t i = 0; i < n; i++) {
        if (runs[i].cap_mw != reference_mw)
            continue;
        ret->refs++;
        first = fmin(first, runs[i].at_s);
        last = fmax(last, runs[i].at_s);
    }
    if (ret->refs < 2 || last <= first)
        return;
    struct line t = fit(runs, n, reference_mw, false);
    struct line e = fit(runs, n, reference_mw, true);
    double q = student_95(t.n - 2);
    ret->known = true;
    ret->span_s = last - first;
    ret->time_change = expm1(t.slope * ret->span_s);
    ret->energy_change = expm1(e.slope * ret->span_s);
    ret->time_half = q * t.slope_se * ret->span_s;
    ret->energy_half = q * e.slope_se * ret->span_s;
    ret->drifts = is_drift(ret->time_change, ret->time_half) ||
                  is_drift(ret->energy_change, ret->energy_half);
}

void sweep_correct(struct sweep_run *runs, size_t n, uint32_t reference_mw,
                   const struct sweep_drift *drift)
{
    if (!drift->known)
        return;
    struct line t = fit(runs, n, reference_mw, false);
    struct line e = fit(runs, n, reference_mw, true);
    for (size_t i = 0; i < n; i++) {
        runs[i].time_s *= exp(-t.slope * (runs[i].at_s - t.mean_x));
        runs[i].energy_j *= exp(-e.slope * (runs[i].at_s - e.mean_x));
    }
}
