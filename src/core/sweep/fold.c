#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/units.h"
#include "core/sweep/sweep.h"

static const struct goal goals[SWEEP_OPTIMA] = {
    {GOAL_ENERGY, 0}, {GOAL_EDP, 0},         {GOAL_EDS, 2},
    {GOAL_EDS, 1.5},  {GOAL_SLOWDOWN, 1.05}, /* unless another one is chosen */
};
static const double buys[SWEEP_BUYS] = {0.01, 0.02, 0.05, 0.10};

struct moments {
    double sum, sum2; /* of differences from the first value: exact if all are equal */
    double first;
};

static void moments_add(struct moments *m, unsigned n_before, double v)
{
    if (n_before == 0)
        m->first = v;
    double d = v - m->first;
    m->sum += d;
    m->sum2 += d * d;
}

static double moments_mean(const struct moments *m, unsigned n)
{
    return m->first + m->sum / n;
}

static double moments_sd(const struct moments *m, unsigned n)
{
    if (n < 2)
        return 0;
    double var = (m->sum2 - m->sum * m->sum / n) / (n - 1);
    return var > 0 ? sqrt(var) : 0;
}

static int by_cap(const void *a, const void *b)
{
    const struct sweep_run *x = a, *y = b;
    return (x->cap_mw > y->cap_mw) - (x->cap_mw < y->cap_mw);
}

/* runs: n >= 1 runs at one cap. */
static struct sweep_point point_of(const struct sweep_run *runs, unsigned n)
{
    struct moments t = {0}, e = {0}, p = {0};
    double root = sqrt(n);

    for (unsigned i = 0; i < n; i++) {
        moments_add(&t, i, runs[i].time_s);
        moments_add(&e, i, runs[i].energy_j);
        moments_add(&p, i, runs[i].energy_j / runs[i].time_s);
    }
    struct sweep_point point = {
        .cap_mw = runs[0].cap_mw,
        .runs = n,
        .time_s = moments_mean(&t, n),
        .energy_j = moments_mean(&e, n),
        .time_sd_s = moments_sd(&t, n),
        .energy_sd_j = moments_sd(&e, n),
        .power_sd_w = moments_sd(&p, n),
    };
    point.power_w = point.energy_j / point.time_s;
    point.time_se_s = point.time_sd_s / root;
    point.energy_se_j = point.energy_sd_j / root;
    return point;
}

/* Whether no other point is at least as good in both and better in one. */
static bool on_front(const struct sweep *s, size_t i)
{
    const struct sweep_point *p = &s->point[i];

    for (size_t k = 0; k < s->n; k++) {
        const struct sweep_point *q = &s->point[k];
        bool as_good = q->time_s <= p->time_s && q->energy_j <= p->energy_j;
        bool better = q->time_s < p->time_s || q->energy_j < p->energy_j;
        if (as_good && better)
            return false;
    }
    return true;
}

static struct goal_ref reference_of(const struct sweep *s)
{
    const struct sweep_point *ref = &s->point[s->ref];
    return (struct goal_ref){
        .energy_j = ref->energy_j, .time_s = ref->time_s, .pmax_w = s->pmax_w};
}

double sweep_value(const struct sweep *s, const struct goal *goal, size_t point)
{
    struct goal_ref ref = reference_of(s);
    return goal_relative(goal, s->point[point].energy_j, s->point[point].time_s, &ref);
}

struct goal_shape sweep_shape(const struct sweep *s, const struct goal *goal)
{
    struct goal_ref ref = reference_of(s);
    return goal_shape_of(goal, &ref);
}

size_t sweep_best(const struct sweep *s, const struct goal *goal)
{
    size_t best = 0;
    double least = INFINITY;

    for (size_t i = 0; i < s->n; i++) {
        double v = sweep_value(s, goal, i);
        if (v <= least) {
            least = v;
            best = i;
        }
    }
    return best;
}

double sweep_value_se(const struct sweep *s, const struct goal *goal, size_t point)
{
    const struct sweep_point *p = &s->point[point], *ref = &s->point[s->ref];
    struct goal_shape shape = sweep_shape(s, goal);
    double e = p->energy_j / ref->energy_j, t = p->time_s / ref->time_s;

    if (point == s->ref)
        return 0;
    double se_e =
        e * hypot(p->energy_se_j / p->energy_j, ref->energy_se_j / ref->energy_j);
    double se_t = t * hypot(p->time_se_s / p->time_s, ref->time_se_s / ref->time_s);
    return shape.product ? hypot(t * se_e, e * se_t)
                         : hypot(shape.we * se_e, shape.wt * se_t);
}

/* The goal that is marked in addition to the metrics. */
static const struct goal *beside(const struct sweep_choice *choice)
{
    const struct goal *usual = &goals[SWEEP_METRICS];

    for (size_t g = 0; choice && g < SWEEP_METRICS; g++)
        if (goals[g].kind == choice->goal.kind && goals[g].param == choice->goal.param)
            return usual;
    return choice ? &choice->goal : usual;
}

static void find_optima(struct sweep *s, const struct sweep_choice *choice)
{
    const struct sweep_point *ref = &s->point[s->ref];

    for (size_t i = 0; i < s->n; i++)
        s->point[i].pareto = on_front(s, i);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++) {
        const struct goal *goal = g == SWEEP_METRICS ? beside(choice) : &goals[g];
        size_t best = sweep_best(s, goal);
        s->optimum[g] = (struct sweep_optimum){
            .goal = *goal,
            .point = best,
            .value = sweep_value(s, goal, best),
            .energy_change = s->point[best].energy_j / ref->energy_j - 1,
            .time_change = s->point[best].time_s / ref->time_s - 1,
        };
    }
    for (size_t i = 0; i < SWEEP_BUYS; i++) {
        struct goal within = {GOAL_SLOWDOWN, 1 + buys[i]};
        s->buy[i] = (struct sweep_buy){buys[i], sweep_best(s, &within)};
    }
}

static int check_runs(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
                      uw_error *err)
{
    bool has_reference = false;

    if (n > (size_t)SWEEP_CAPS_MAX * SWEEP_RUNS_MAX)
        return fail(err, -E2BIG, "%zu runs are more than %zu", n,
                    (size_t)SWEEP_CAPS_MAX * SWEEP_RUNS_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct sweep_run *r = &runs[i];
        if (!isfinite(r->time_s) || r->time_s <= 0)
            return fail(err, -EINVAL, "run %zu at %g W: time %g s is not positive", i + 1,
                        w_of_mw(r->cap_mw), r->time_s);
        if (!isfinite(r->energy_j) || r->energy_j <= 0)
            return fail(err, -EINVAL, "run %zu at %g W: energy %g J is not positive",
                        i + 1, w_of_mw(r->cap_mw), r->energy_j);
        has_reference |= r->cap_mw == reference_mw;
    }
    if (!has_reference)
        return fail(err, -EINVAL, "no run at the reference of %g W",
                    w_of_mw(reference_mw));
    return 0;
}

int sweep_fold(const struct sweep_run *runs, size_t n, uint32_t reference_mw,
               const struct sweep_choice *choice, struct sweep **ret, uw_error *err)
{
    int r = check_runs(runs, n, reference_mw, err);
    if (r < 0)
        return r;

    auto_(mem_free) struct sweep_run *sorted = calloc(n, sizeof *sorted);
    auto_(sweep_free) struct sweep *s = calloc(1, sizeof *s);
    if (s)
        s->point = calloc(n, sizeof *s->point);
    if (!sorted || !s || !s->point)
        return fail(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        sorted[i] = runs[i];
    qsort(sorted, n, sizeof *sorted, by_cap);
    for (size_t i = 0; i < n;) {
        unsigned same = 1;
        while (i + same < n && sorted[i + same].cap_mw == sorted[i].cap_mw)
            same++;
        if (sorted[i].cap_mw == reference_mw)
            s->ref = s->n;
        s->point[s->n++] = point_of(&sorted[i], same);
        i += same;
    }
    s->pmax_w = choice ? choice->pmax_w : 0;
    find_optima(s, choice);
    *ret = take(s);
    return 0;
}

void sweep_free(struct sweep *s)
{
    if (!s)
        return;
    free(s->point);
    free(s);
}
