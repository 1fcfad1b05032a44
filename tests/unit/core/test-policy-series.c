/* Percentiles of series made at random, against the definition: the lowest value that is
 * not exceeded in so much of the time.
 *
 * Usage: test-core-policy-series [SEED [SERIES]]
 */
#include <float.h>
#include <math.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/policy/series.h"
#include "tap.h"

enum { POINTS = 60 };

struct made {
    struct policy_point point[POINTS];
    struct policy_points points;
    struct policy_read read;
    int64_t utc_s;
};

/* Numbers as signals have them, few that come often, and what is hard to tell apart. */
static double make_value(struct rng *g, uint64_t kind)
{
    static const double odd[] = {0,       -0.0,    DBL_MIN,  -DBL_MIN, 5e-324,
                                 -5e-324, DBL_MAX, -DBL_MAX, 1,        1 + DBL_EPSILON,
                                 1e300,   -1e300,  1e-300,   NAN,      INFINITY};

    if (kind == 0)
        return (double)rng_below(g, 5) - 2;
    if (kind == 1)
        return odd[rng_below(g, n_elements(odd))];
    if (kind == 2)
        return ldexp(rng_normal(g), (int)rng_below(g, 600) - 300);
    return rng_normal(g) * 100;
}

static void make(struct rng *g, struct made *m)
{
    int64_t utc_s = 1700000000;
    uint64_t kind = rng_below(g, 4);
    size_t n = 1 + rng_below(g, POINTS);

    for (size_t i = 0; i < n; i++) {
        m->point[i] = (struct policy_point){utc_s, make_value(g, kind)};
        utc_s += 1 + (int64_t)rng_below(g, 100);
    }
    m->points = (struct policy_points){m->point, n, utc_s};
    m->utc_s = utc_s + (int64_t)rng_below(g, 50);
    m->read = (struct policy_read){
        .fold = POLICY_PERCENTILE,
        .percent = rng_below(g, 2) ? (double)rng_below(g, 11) * 10 : rng_uniform(g) * 100,
        .window_s = 0.5 * (double)(1 + rng_below(g, (uint64_t)(utc_s - 1700000000) * 3))};
}

/* How long the i-th value counts. */
static double weight(const struct made *m, size_t i)
{
    double to_s =
        (double)(i + 1 < m->points.n ? m->point[i + 1].utc_s : m->points.end_utc_s);
    double from_s = fmax((double)m->point[i].utc_s, (double)m->utc_s - m->read.window_s);

    return isfinite(m->point[i].v) ? fmax(fmin(to_s, (double)m->utc_s) - from_s, 0) : 0;
}

/* How long no value above v is there. */
static double time_up_to(const struct made *m, double v)
{
    double sum = 0;

    for (size_t i = 0; i < m->points.n; i++)
        if (m->point[i].v <= v)
            sum += weight(m, i);
    return sum;
}

static bool is_right(const struct made *m)
{
    double covered_s = time_up_to(m, DBL_MAX), want = INFINITY;
    struct policy_folded f;

    for (size_t i = 0; i < m->points.n; i++) {
        double v = m->point[i].v;
        if (weight(m, i) > 0 && v < want &&
            time_up_to(m, v) >= m->read.percent / 100 * covered_s)
            want = v;
    }
    policy_series_fold(&m->points, POLICY_HISTORY, &m->read, m->utc_s, &f);
    if (covered_s <= 0 || covered_s < m->read.window_s / 2)
        return !f.known;
    if (!f.known || f.v < want || f.v > want)
        printf("# %g %% of %g s, %zu points: %g, not %g\n", m->read.percent,
               m->read.window_s, m->points.n, f.v, want);
    return f.known && f.v >= want && f.v <= want;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1, n = 20000, right = 0;
    struct made m;
    struct rng g;

    if ((argc > 1 && parse_u64(argv[1], &seed, NULL) < 0) ||
        (argc > 2 && parse_u64(argv[2], &n, NULL) < 0))
        return 2;
    rng_init(&g, seed);
    for (uint64_t i = 0; i < n; i++) {
        make(&g, &m);
        right += is_right(&m);
    }
    ok(right == n, "%ju of %ju percentiles of seed %ju", (uintmax_t)right, (uintmax_t)n,
       (uintmax_t)seed);
    return done();
}
