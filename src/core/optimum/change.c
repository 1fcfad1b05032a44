#include "core/optimum/change.h"

#include <math.h>
#include <stdbool.h>

/* The threshold, as a fraction of the change to detect.  With windows of a standard error
 * of NEEDS x that change, it is 4 standard errors of the mean of three windows away from
 * the baseline.
 */
#define LINE 0.6
#define NEEDS 0.25
#define LEAST_RSE 1e-3 /* smaller errors count as this */

void change_init(struct change *c, double least)
{
    *c = (struct change){.least = least > 0 ? least : 0.05};
}

double change_needs_rse(const struct change *c)
{
    return NEEDS * c->least;
}

static double line_of(const struct change *c)
{
    return LINE * log1p(c->least);
}

static double median3(const double v[CHANGE_RECENT])
{
    return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

/* Adds the newest value and moves the oldest of the three into the baseline.  The
 * baseline starts as their median; later values are clipped to the threshold around it,
 * so that outliers hardly move it.
 */
static void track_push(struct change_track *t, const struct change *c, double value)
{
    if (c->recent_n == CHANGE_RECENT && c->base_n == 0) {
        t->base = median3(t->recent);
    } else if (c->recent_n == CHANGE_RECENT && c->base_n < CHANGE_BASE_MAX) {
        double off = t->recent[CHANGE_RECENT - 1] - t->base, most = line_of(c);
        t->base += fmax(-most, fmin(off, most)) / (c->base_n + 1);
    }
    for (int i = CHANGE_RECENT - 1; i > 0; i--)
        t->recent[i] = t->recent[i - 1];
    t->recent[0] = value;
}

static bool track_changed(const struct change_track *t, double line)
{
    double mean = (t->recent[0] + t->recent[1] + t->recent[2]) / CHANGE_RECENT;
    double a = mean - t->base, b = median3(t->recent) - t->base;
    return (a > line && b > line) || (a < -line && b < -line);
}

int change_on_window(struct change *c, double time_s, double energy_j)
{
    if (!(isfinite(time_s) && time_s > 0 && isfinite(energy_j) && energy_j > 0))
        return CHANGE_NONE;

    track_push(&c->time, c, log(time_s));
    track_push(&c->energy, c, log(energy_j));
    if (c->recent_n == CHANGE_RECENT && c->base_n < CHANGE_BASE_MAX)
        c->base_n++;
    if (c->recent_n < CHANGE_RECENT)
        c->recent_n++;
    if (c->base_n < CHANGE_BASE_MIN)
        return CHANGE_NONE;

    double line = line_of(c);
    int what = (track_changed(&c->time, line) ? CHANGE_TIME : 0) |
               (track_changed(&c->energy, line) ? CHANGE_ENERGY : 0);
    if (what) {
        c->base_n = 0;
    }
    return what;
}

static void mean_add(struct change_mean *m, double value, double rse)
{
    double w = 1 / (fmax(rse, LEAST_RSE) * fmax(rse, LEAST_RSE));

    m->w += w;
    m->sum += w * log(value);
}

static bool is_sure(const struct change_mean *m, double needs)
{
    return 1 / sqrt(m->w) <= needs * (1 + 1e-9);
}

int change_on_unsure(struct change *c, double time_s, double energy_j, double time_rse,
                     double energy_rse)
{
    double needs = change_needs_rse(c);

    if (!(isfinite(time_s) && time_s > 0 && isfinite(energy_j) && energy_j > 0 &&
          isfinite(time_rse) && time_rse >= 0 && isfinite(energy_rse) && energy_rse >= 0))
        return CHANGE_NONE;
    mean_add(&c->part_t, time_s, time_rse);
    mean_add(&c->part_e, energy_j, energy_rse);
    mean_add(&c->usual_e, energy_j, energy_rse);
    if (!is_sure(&c->part_t, needs))
        return CHANGE_NONE;
    const struct change_mean *e = is_sure(&c->part_e, needs) ? &c->part_e : &c->usual_e;
    double t = exp(c->part_t.sum / c->part_t.w);
    int what = change_on_window(c, t, exp(e->sum / e->w));
    c->part_t = c->part_e = (struct change_mean){0};
    if (what)
        c->usual_e = (struct change_mean){0};
    return what;
}
