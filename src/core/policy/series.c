#include "core/policy/series.h"

#include <math.h>
#include <string.h>

struct window {
    const struct policy_points *points;
    double from_s, to_s; /* since the time of the first point */
};

/* The time for which the i-th value counts. */
static double weight(const struct window *w, size_t i)
{
    const struct policy_points *p = w->points;
    double first_s = (double)p->point[0].utc_s;
    double from_s = (double)p->point[i].utc_s - first_s;
    double to_s = (double)(i + 1 < p->n ? p->point[i + 1].utc_s : p->end_utc_s) - first_s;

    if (!isfinite(p->point[i].v))
        return 0;
    from_s = from_s < w->from_s ? w->from_s : from_s;
    to_s = to_s > w->to_s ? w->to_s : to_s;
    return to_s > from_s ? to_s - from_s : 0;
}

/* The minimum, the maximum and the mean. */
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

/* Maps finite numbers to integers in the same order; 0 and -0 are equal. */
static uint64_t rank_of(double v)
{
    uint64_t bits;

    v += 0.0;
    memcpy(&bits, &v, sizeof bits);
    return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static double of_rank(uint64_t rank)
{
    uint64_t bits = rank >> 63 ? rank & ~(1ull << 63) : ~rank;
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

enum { BUCKET_BITS = 9, BUCKETS = 1 << BUCKET_BITS };

struct bucket {
    double weight_s;
    uint64_t low, high; /* the lowest and highest value in it */
};

/* Sorts the values from `low` to `high` into buckets. */
static void fill(const struct window *w, uint64_t low, uint64_t high,
                 struct bucket bucket[BUCKETS])
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(high - low);
    unsigned shift = bits > BUCKET_BITS ? bits - BUCKET_BITS : 0;

    memset(bucket, 0, BUCKETS * sizeof *bucket);
    for (size_t i = 0; i < w->points->n; i++) {
        double s = weight(w, i);
        uint64_t rank = s > 0 ? rank_of(w->points->point[i].v) : 0;
        if (s <= 0 || rank < low || rank > high)
            continue;
        struct bucket *b = &bucket[(rank - low) >> shift];
        if (b->weight_s <= 0 || rank < b->low)
            b->low = rank;
        if (rank > b->high)
            b->high = rank;
        b->weight_s += s;
    }
}

/* The value below which the given share of the time lies, with values in ascending
 * order: sorts into buckets, then sorts the bucket of that value, until one value is
 * left.
 */
static double percentile(const struct window *w, const struct moments *m, double share)
{
    uint64_t low = rank_of(m->min), high = rank_of(m->max);
    double want_s = share * m->covered_s, below_s = 0;
    struct bucket bucket[BUCKETS];

    while (low < high) {
        fill(w, low, high, bucket);
        const struct bucket *b = bucket, *last = bucket + BUCKETS - 1;
        while (last->weight_s <= 0)
            last--;
        for (; b < last && below_s + b->weight_s < want_s; b++)
            below_s += b->weight_s;
        low = b->low;
        high = b->high;
    }
    return of_rank(low);
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
