#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "core/sweep/sweep.h"
#include "tap.h"

#define W(w) ((uint32_t)(w)*1000u)

/* clang-format off */
static const struct {
    const char *name;
    struct sweep_range range;
    int r;
    const char *text; /* part of the error's */
    size_t n;
    uint32_t cap[8];
} grids[] = {
    {"whole range", {W(150), W(300), W(300), 0, 0, W(50), NULL, NULL, NULL}, 0, NULL,
     4, {W(150), W(200), W(250), W(300)}},
    {"default off the grid", {W(100), W(300), W(275), 0, 0, W(100), NULL, NULL, NULL}, 0, NULL,
     4, {W(100), W(200), W(275), W(300)}},
    {"default above the range asked for", {W(100), W(300), W(300), W(120), W(140), W(10), NULL, NULL, NULL}, 0, NULL,
     4, {W(120), W(130), W(140), W(300)}},
    {"default below it", {W(100), W(300), W(110), W(120), W(140), W(10), NULL, NULL, NULL}, 0, NULL,
     4, {W(110), W(120), W(130), W(140)}},
    {"the end lies off the grid", {W(100), W(300), W(100), W(100), W(119), W(10), NULL, NULL, NULL}, 0, NULL,
     2, {W(100), W(110)}},
    {"one cap", {W(100), W(300), W(200), W(200), W(200), W(10), NULL, NULL, NULL}, 0, NULL, 1, {W(200)}},
    {"as it was typed", {W(100), W(300), W(300), W(90), 0, W(50), "0.09kW", NULL, "50W"}, -ERANGE,
     "--from: '0.09kW' (90 W) is outside 100 W..300 W", 0, {0}},
    {"no step", {W(100), W(300), W(300), 0, 0, 0, NULL, NULL, NULL}, -ERANGE, "--step: 0 W is outside", 0, {0}},
    {"from too low", {W(100), W(300), W(300), W(90), 0, W(5), NULL, NULL, NULL}, -ERANGE,
     "--from: 90 W is outside 100 W..300 W", 0, {0}},
    {"to too high", {W(100), W(300), W(300), 0, W(301), W(5), NULL, NULL, NULL}, -ERANGE,
     "--to: 301 W is outside 100 W..300 W", 0, {0}},
    {"to under from", {W(100), W(300), W(300), W(200), W(150), W(5), NULL, NULL, NULL}, -ERANGE,
     "--to: 150 W is below --from, 200 W", 0, {0}},
    {"to under the range", {W(100), W(300), W(300), W(100), W(90), W(5), NULL, NULL, NULL}, -ERANGE,
     "--to: 90 W is outside 100 W..300 W", 0, {0}},
    {"too many", {W(100), W(300), W(300), 0, 0, 50, NULL, NULL, NULL}, -ERANGE, "--step: 0.05 W makes more", 0, {0}},
};
/* clang-format on */

static void test_grid(void)
{
    for (size_t i = 0; i < n_elements(grids); i++) {
        uint32_t canary = 0, *caps = &canary;
        size_t n = 77;
        uw_error err = {{0}};
        int r = sweep_grid(&grids[i].range, &caps, &n, &err);
        is_int(r, grids[i].r, "grid, %s: result", grids[i].name);
        if (r < 0) {
            ok(caps == &canary && n == 77, "grid, %s: nothing written", grids[i].name);
            ok(strstr(err.text, grids[i].text) != NULL, "grid, %s: says '%s'",
               grids[i].name, err.text);
            continue;
        }
        bool same = n == grids[i].n;
        for (size_t k = 0; same && k < n; k++)
            same = caps[k] == grids[i].cap[k];
        ok(same, "grid, %s: the caps", grids[i].name);
        free(caps);
    }
}

static void test_plan(void)
{
    enum { N = 31, RUNS = 5 };
    uint32_t caps[N], *plan = NULL, *again = NULL, *other = NULL;
    size_t n = 0, n2 = 0, n3 = 0, gap = 0, longest = 0;
    unsigned seen[N] = {0};
    uw_error err;

    for (size_t i = 0; i < N; i++)
        caps[i] = W(150 + 5 * i);
    is_int(sweep_plan(caps, N, &(struct sweep_order){W(300), RUNS, 7}, &plan, &n, &err),
           0, "plan: made");
    (void)sweep_plan(caps, N, &(struct sweep_order){W(300), RUNS, 7}, &again, &n2, &err);
    (void)sweep_plan(caps, N, &(struct sweep_order){W(300), RUNS, 8}, &other, &n3, &err);
    ok(n == n2 && memcmp(plan, again, n * sizeof *plan) == 0,
       "plan: same seed, same order");
    ok(n == n3 && memcmp(plan, other, n * sizeof *plan) != 0,
       "plan: another seed, another");
    for (size_t i = 0; i < n; i++) {
        seen[(plan[i] / 1000 - 150) / 5]++;
        gap = plan[i] == W(300) ? 0 : gap + 1;
        longest = gap > longest ? gap : longest;
    }
    bool all = true;
    for (size_t i = 0; i < N - 1; i++)
        all &= seen[i] == RUNS;
    ok(all, "plan: every other cap %d times", RUNS);
    is_int(seen[N - 1], 5 * 4 + 1,
           "plan: the reference four times a round and at the end");
    ok(plan[0] == W(300) && plan[n - 1] == W(300), "plan: begins and ends with it");
    ok(longest <= SWEEP_REF_EVERY, "plan: never more than %d runs between",
       SWEEP_REF_EVERY);
    ok(memcmp(plan, plan + (n - 1) / RUNS, (n - 1) / RUNS * sizeof *plan) != 0,
       "plan: rounds differ in order");
    free(plan);
    free(again);
    free(other);

    plan = NULL;
    is_int(sweep_plan(caps, 1, &(struct sweep_order){caps[0], 3, 1}, &plan, &n, &err), 0,
           "plan: reference alone");
    is_int(n, 3, "plan: as many runs as asked for");
    free(plan);
    plan = caps;
    is_int(sweep_plan(caps, N, &(struct sweep_order){W(300), 0, 1}, &plan, &n, &err),
           -ERANGE, "plan: no runs");
    is_str(err.text, "--runs: 0 is outside 1..1000", "plan: says so");
    ok(plan == caps, "plan: nothing written");
}

/* Time halves the way up, energy has its least in the middle. */
static const struct sweep_run some[] = {
    {W(300), 100, 30000, 0},  {W(100), 220, 27000, 10}, {W(200), 110, 22000, 20},
    {W(150), 140, 21000, 30}, {W(300), 102, 30600, 40}, {W(200), 112, 22400, 50},
    {W(250), 112, 26000, 60}, /* worse than 200 W in both */
};

/* The goal that is asked for is marked in the place of slowdown:1.05. */
static void test_choice(void)
{
    static const struct {
        struct sweep_choice choice;
        uint32_t best;
    } cases[] = {
        {{{GOAL_SLOWDOWN, 1.1}, 0}, W(200)}, {{{GOAL_SLOWDOWN, 1.39}, 0}, W(150)},
        {{{GOAL_TIME, 0}, 0}, W(300)},       {{{GOAL_COST, 0.5}, 300}, W(200)},
        {{{GOAL_COST, 0.5}, 0}, W(150)}, /* time costs nothing */
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        auto_(sweep_free) struct sweep *s = NULL;
        char text[GOAL_TEXT_MAX];
        (void)sweep_fold(some, n_elements(some), W(300), &cases[i].choice, &s, NULL);
        if (s)
            is_int(s->point[s->optimum[SWEEP_METRICS].point].cap_mw, cases[i].best,
                   "choice: %s", goal_text(&cases[i].choice.goal, text));
    }
    auto_(sweep_free) struct sweep *s = NULL;
    struct sweep_choice edp = {{GOAL_EDP, 0}, 0};
    (void)sweep_fold(some, n_elements(some), W(300), &edp, &s, NULL);
    ok(s && s->optimum[SWEEP_METRICS].goal.kind == GOAL_SLOWDOWN,
       "choice: a metric is marked once");
}

static void test_fold(void)
{
    auto_(sweep_free) struct sweep *s = NULL;
    uw_error err;

    is_int(sweep_fold(some, n_elements(some), W(300), NULL, &s, &err), 0, "fold: made");
    is_int(s->n, 5, "fold: a point a cap");
    ok(s->point[0].cap_mw == W(100) && s->point[4].cap_mw == W(300), "fold: ascending");
    is_int(s->ref, 4, "fold: the reference");
    const struct sweep_point *p = &s->point[2];
    is_int(p->runs, 2, "fold: two runs at 200 W");
    is_near(p->time_s, 111, 1e-9, "fold: mean time");
    is_near(p->energy_j, 22200, 1e-9, "fold: mean energy");
    is_near(p->power_w, 200, 1e-9, "fold: power is energy by time");
    is_near(p->time_sd_s, sqrt(2), 1e-9, "fold: sample standard deviation");
    is_near(p->time_se_s, 1, 1e-9, "fold: standard error");
    ok(s->point[0].time_sd_s == 0, "fold: one run has none"); /* NOLINT */
    static const bool front[] = {false, true, true, false, true};
    for (size_t i = 0; i < s->n; i++)
        ok(s->point[i].pareto == front[i], "fold: %u mW is %son the front",
           s->point[i].cap_mw, front[i] ? "" : "not ");
    static const uint32_t best[] = {W(150), W(200), W(200), W(200), W(300)};
    for (size_t g = 0; g < SWEEP_OPTIMA; g++)
        is_int(s->point[s->optimum[g].point].cap_mw, best[g], "fold: optimum %zu", g);
    ok(s->optimum[SWEEP_METRICS].goal.kind == GOAL_SLOWDOWN,
       "fold: slowdown:1.05 beside");
    static const uint32_t buys[] = {W(300), W(300), W(300), W(200)};
    for (size_t i = 0; i < SWEEP_BUYS; i++)
        is_int(s->point[s->buy[i].point].cap_mw, buys[i], "fold: what %g %% of time buys",
               100 * s->buy[i].time);
    is_near(s->optimum[0].energy_change, 21000 / 30300.0 - 1, 1e-9,
            "fold: energy change");
    is_near(s->optimum[0].time_change, 140 / 101.0 - 1, 1e-9, "fold: time change");
    is_near(s->optimum[1].value, 22200 / 30300.0 * 111 / 101, 1e-9, "fold: EDP's value");
    struct goal eds = {GOAL_EDS, 2};
    is_near(sweep_value(s, &eds, 1), (21000 / 30300.0 + 140 / 101.0) / 2, 1e-9,
            "fold: EDS(2) at 150 W");
    ok(fabs(sweep_value(s, &eds, s->ref) - 1) < 1e-12, "fold: 1 at the reference");
    double se = sweep_value_se(s, &eds, 2);
    ok(se > 0.007 && se < 0.015, "fold: its standard error, %g", se);
}

static void test_fold_bad(void)
{
    static const struct {
        const char *name, *text;
        struct sweep_run run[2];
        size_t n;
    } bad[] = {
        {"no reference", "no run at the reference of 300 W", {{W(200), 1, 1, 0}}, 1},
        {"nothing", "no run at the reference of 300 W", {{W(300), 1, 1, 0}}, 0},
        {"no time",
         "run 2 at 200 W: time 0 s",
         {{W(300), 1, 1, 0}, {W(200), 0, 1, 0}},
         2},
        {"no number",
         "run 2 at 200 W: energy nan J",
         {{W(300), 1, 1, 0}, {W(200), 1, NAN, 0}},
         2},
    };
    for (size_t i = 0; i < n_elements(bad); i++) {
        struct sweep *s = NULL;
        uw_error err;
        is_int(sweep_fold(bad[i].run, bad[i].n, W(300), NULL, &s, &err), -EINVAL,
               "bad runs, %s: refused", bad[i].name);
        ok(s == NULL && strstr(err.text, bad[i].text), "bad runs, %s: '%s'", bad[i].name,
           err.text);
    }
}

static void test_ties(void)
{
    static const struct sweep_run flat[] = {
        {W(100), 10, 500, 0}, {W(200), 10, 500, 1}, {W(300), 10, 500, 2}};
    auto_(sweep_free) struct sweep *s = NULL;

    (void)sweep_fold(flat, 3, W(300), NULL, &s, NULL);
    for (size_t g = 0; g < SWEEP_OPTIMA; g++)
        is_int(s->optimum[g].point, 2, "ties: the highest of equal caps, goal %zu", g);
    ok(s->point[0].pareto && s->point[2].pareto,
       "ties: equal points are all on the front");
}

/* References whose time grows by 5 % over 1000 s, energy is steady; others along. */
static void drifting(struct sweep_run *runs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double at = 1000.0 * (double)i / (double)(n - 1);
        double wobble = i % 2 ? 1.001 : 0.999;
        runs[i] = (struct sweep_run){i % 4 ? W(200) : W(300),
                                     (i % 4 ? 120 : 100) * pow(1.05, at / 1000) * wobble,
                                     5000 * wobble, at};
    }
}

static void test_drift(void)
{
    struct sweep_run runs[25];
    struct sweep_drift d;

    drifting(runs, n_elements(runs));
    sweep_drift(runs, n_elements(runs), W(300), &d);
    is_int(d.refs, 7, "drift: reference runs");
    is_near(d.span_s, 1000, 1e-9, "drift: span");
    is_near(d.time_change, 0.05, 0.001, "drift: time");
    is_near(d.energy_change, 0, 0.001, "drift: energy");
    ok(d.known && d.drifts, "drift: said");
    sweep_correct(runs, n_elements(runs), W(300), &d);
    bool level = true;
    for (size_t i = 0; i < n_elements(runs); i++)
        level &= fabs(runs[i].time_s / ((i % 4 ? 120 : 100) * sqrt(1.05)) - 1) < 0.003;
    ok(level, "drift: corrected to the middle, all caps alike");
    sweep_drift(runs, n_elements(runs), W(300), &d);
    is_near(d.time_change, 0, 1e-9, "drift: none left");
    ok(d.known && !d.drifts, "drift: nothing said any more");

    is_near(sweep_half(2, 5), 2 * 2.776, 1e-9, "half of a mean of 5 runs: Student's t");
    is_near(sweep_half(2, 1), 0, 0, "one run has none");

    /* Scatter alone is no drift. */
    static const double scatter[] = {100, 103, 99, 102, 98, 101, 100.5};
    for (size_t i = 0; i < 7; i++)
        runs[i] = (struct sweep_run){W(300), scatter[i], 5000, (double)i};
    sweep_drift(runs, 7, W(300), &d);
    ok(d.known && !d.drifts && d.time_half > fabs(d.time_change),
       "drift: scatter is none (%g +- %g)", d.time_change, d.time_half);

    sweep_drift(some, n_elements(some), W(300), &d);
    ok(d.known && d.refs == 2 && isinf(d.time_half) && !d.drifts,
       "drift: two references 2 %% apart are no proof");
    sweep_drift(some, 1, W(300), &d);
    ok(!d.known && !d.drifts && d.refs == 1, "drift: one tells nothing");
    struct sweep_run one = some[0];
    sweep_correct(&one, 1, W(300), &d);
    ok(one.cap_mw == some[0].cap_mw && fabs(one.time_s - some[0].time_s) <= 0,
       "drift: nothing to correct by");
}

int main(void)
{
    test_grid();
    test_plan();
    test_fold();
    test_choice();
    test_fold_bad();
    test_ties();
    test_drift();
    return done();
}
