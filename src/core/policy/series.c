#include "core/policy/series.h"

#include <math.h>

struct window {
    const struct policy_points *points;
    double from_s, to_s; /* since the time of the first point */
};

/* How long the i-th value counts. */
static double weight(const struct window *w, size_t i)
{
    const struct policy_points *p = w->points;
    double first_s = (double)p->point[0].utc_s;
    double from_s = (double)p->point[i].utc_s - first_s;
    double to_s = (double)(i + 1 < p->n ? p->point[i + 1].utc_s : p->end_utc_s) - first_s;

    if (!isfinite(p->point[i].v))
        return 0;
    return fmax(fmin(to_s, w->to_s) - fmax(from_s, w->from_s), 0);
}

static double weight_up_to(const struct window *w, double v)
{
    double sum = 0;

    for (size_t i = 0; i < w->points->n; i++)
        if (w->points->point[i].v <= v)
            sum += weight(w, i);
    return sum;
}

/* The lowest and the highest value, the mean. */
struct moments {
    double covered_s, mean, min, max;
};

static struct moments moments(const struct window *w)
{
    struct moments m = {.min = INFINITY, .max = -INFINITY};

    for (size_t i = 0; i < w->points->n; i++) {
        double v = w->points->point[i].v, s = weight(w, i);
        if (s <= 0)
            continue;
        m.covered_s += s;
        m.mean += (v - m.mean) * s / m.covered_s;
        m.min = fmin(m.min, v);
        m.max = fmax(m.max, v);
    }
    return m;
}

/* Bisects the values' range, then takes the value that is there. */
static double percentile(const struct window *w, const struct moments *m, double share)
{
    double low = m->min, high = m->max, want = share * m->covered_s, best = m->max;

    if (weight_up_to(w, low) >= want)
        return low;
    for (int i = 0; i < 60 && low < high; i++) {
        double mid = low + (high - low) / 2;
        if (weight_up_to(w, mid) >= want)
            high = mid;
        else
            low = mid;
    }
    for (size_t i = 0; i < w->points->n; i++) {
        double v = w->points->point[i].v;
        if (v > low && v < best && weight(w, i) > 0)
            best = v;
    }
    return best;
}

void policy_series_fold(const struct policy_points *points, enum policy_series series,
                        const struct policy_read *read, int64_t utc_s,
                        struct policy_folded *ret)
{
    double step_s = fmax(ceil(read->window_s / 100), 1);
    double first_s = points->n ? (double)points->point[0].utc_s : 0;
    double now_s = (double)utc_s - first_s;
    struct window w = {.points = points};

    *ret = (struct policy_folded){.next_utc_s = utc_s + (int64_t)step_s};
    w.from_s = series == POLICY_FORECAST ? now_s : now_s - read->window_s;
    w.to_s = w.from_s + read->window_s;
    struct moments m = moments(&w);
    if (m.covered_s <= 0 || m.covered_s < read->window_s / 2)
        return;
    ret->v = read->fold == POLICY_MEAN  ? m.mean
             : read->fold == POLICY_MIN ? m.min
             : read->fold == POLICY_MAX ? m.max
                                        : percentile(&w, &m, read->percent / 100);
    ret->known = isfinite(ret->v);
}
