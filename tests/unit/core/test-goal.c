#include "core/optimum/goal.h"

#include <errno.h>
#include <float.h>

#include "base/auto.h"
#include "tap.h"

static const struct {
    const char *text;
    int r;
    enum goal_kind kind;
    double param;
    const char *back; /* goal_text(), or words that the error must hold */
} parses[] = {
    {"energy", 0, GOAL_ENERGY, 0, "energy"},
    {"edp", 0, GOAL_EDP, 0, "edp"},
    {"eds:2", 0, GOAL_EDS, 2, "eds:2"},
    {"eds:1.5", 0, GOAL_EDS, 1.5, "eds:1.5"},
    {"eds:1", 0, GOAL_EDS, 1, "eds:1"},
    {"cost:0.5", 0, GOAL_COST, 0.5, "cost:0.5"},
    {"cost:.5", 0, GOAL_COST, 0.5, "cost:0.5"},
    {"cost:0", 0, GOAL_COST, 0, "cost:0"},
    {"cost:1", 0, GOAL_COST, 1, "cost:1"},
    {"slowdown:1.1", 0, GOAL_SLOWDOWN, 1.1, "slowdown:1.1"},
    {"slowdown:1.0123456789", 0, GOAL_SLOWDOWN, 1.0123456789, "slowdown:1.0123456789"},
    {"time", 0, GOAL_TIME, 0, "time"},
    {"", -EINVAL, 0, 0, "is none of energy, edp, eds:K"},
    {"Energy", 0, GOAL_ENERGY, 0, "energy"},
    {"SlowDown:5%", 0, GOAL_SLOWDOWN, 1.05, "slowdown:1.05"},
    {"slowdown:-5%", -ERANGE, 0, 0, "1..2"},
    {"slowdown:100%", 0, GOAL_SLOWDOWN, 2, "slowdown:2"},
    {"slowdown:105%", -ERANGE, 0, 0,
     "F = 2.05 is outside 1..2: 5 % more time is slowdown:5% or slowdown:1.05"},
    {"slowdown:5", -ERANGE, 0, 0, "F = 5 is outside 1..2: 5 % more"},
    {"edp:5%", -EINVAL, 0, 0, "no parameter"},
    {"ed", -EINVAL, 0, 0, "'ed' is none of"},
    {"edp:2", -EINVAL, 0, 0, "edp takes no parameter"},
    {"energy:", -EINVAL, 0, 0, "energy takes no parameter"},
    {"eds", -EINVAL, 0, 0, "eds needs K in 1..1000"},
    {"eds:", -EINVAL, 0, 0, "'' is not a number in 1..1000"},
    {"eds:two", -EINVAL, 0, 0, "'two' is not a number in 1..1000"},
    {"eds:0.9", -ERANGE, 0, 0, "K = 0.9 is outside 1..1000"},
    {"eds:1001", -ERANGE, 0, 0, "outside 1..1000"},
    {"cost:1.5", -ERANGE, 0, 0, "ETA = 1.5 is outside 0..1"},
    {"cost:-0.1", -ERANGE, 0, 0, "outside 0..1"},
    {"slowdown:0.5", -ERANGE, 0, 0, "F = 0.5 is outside 1..2"},
    {"slowdown:1.1x", -EINVAL, 0, 0, "'1.1x' is not a number"},
};

static void test_parse(void)
{
    for (size_t i = 0; i < n_elements(parses); i++) {
        struct goal g = {GOAL_TIME, 42};
        char buf[GOAL_TEXT_MAX];
        uw_error err = {""};
        int r = goal_parse(parses[i].text, &g, &err);
        is_int(r, parses[i].r, "'%s': result", parses[i].text);
        if (parses[i].r < 0) {
            ok(strstr(err.text, parses[i].back) != NULL, "'%s': %s", parses[i].text,
               err.text);
            ok(g.kind == GOAL_TIME && g.param > 41, "'%s': nothing changed",
               parses[i].text);
            continue;
        }
        ok(g.kind == parses[i].kind, "'%s': kind", parses[i].text);
        is_near(g.param, parses[i].param, 0, "'%s': parameter", parses[i].text);
        is_str(goal_text(&g, buf), parses[i].back, "back to text");
    }
}

static void test_values(void)
{
    static const struct goal_ref ref = {.energy_j = 200, .time_s = 2, .pmax_w = 300};
    static const struct {
        const char *goal;
        double relative; /* at 150 J, 2.1 s: the value there / that at the reference */
    } cases[] = {
        {"energy", 0.75},
        {"edp", 315.0 / 400},
        {"eds:2", 0.5 * 0.75 + 0.5 * 1.05},
        {"eds:1.5", (0.5 * 0.75 + 1.05) / 1.5},
        {"cost:0.5", (0.5 * 150 + 0.5 * 300 * 2.1) / (0.5 * 200 + 0.5 * 300 * 2)},
        {"cost:1", 0.75},
        {"cost:0", 1.05},
        {"slowdown:1.05", 0.75},
        {"slowdown:1.04", INFINITY},
        {"time", 1.05},
    };
    for (size_t i = 0; i < n_elements(cases); i++) {
        struct goal g;
        ok(goal_parse(cases[i].goal, &g, NULL) == 0, "%s", cases[i].goal);
        double rel = goal_relative(&g, 150, 2.1, &ref);
        if (isinf(cases[i].relative)) {
            ok(isinf(rel), "%s: outside its bound", cases[i].goal);
            continue;
        }
        is_near(rel, cases[i].relative, 1e-9, "%s: relative", cases[i].goal);
        is_near(goal_relative(&g, 200, 2, &ref), 1, 1e-12, "%s: 1 at the reference",
                cases[i].goal);
    }
}

/* EDS(K) is cost with ETA = (K-1)/K and Pmax = Pref. */
static void test_family(void)
{
    static const struct goal_ref ref = {.energy_j = 200, .time_s = 2, .pmax_w = 100};
    for (int i = 2; i < 12; i++) {
        double k = 0.5 * i;
        struct goal eds = {GOAL_EDS, k}, cost = {GOAL_COST, (k - 1) / k};
        is_near(goal_relative(&eds, 123, 2.3, &ref), goal_relative(&cost, 123, 2.3, &ref),
                1e-12, "EDS(%g) is cost(%.3f)", k, cost.param);
    }
}

/* The value of a step, and its error: 3 % of the energy, 4 % of the time. */
static void test_value_of(void)
{
    static const struct goal_ref ref = {.energy_j = 200, .time_s = 2, .pmax_w = 300};
    static const struct goal_step step = {150, 2.5, 0.03, 0.04};
    static const struct {
        const char *goal;
        double v, error; /* error: absolute; NAN: no value of its own */
    } cases[] = {
        {"energy", NAN, NAN},           {"time", NAN, NAN},
        {"slowdown:1.1", NAN, NAN},     {"edp", 375, 0.05 * 375}, /* 150 x 2.5 */
        {"eds:2", 1.0, 0.02741464025},  /* 0.375 +- 0.01125, 0.625 +- 0.025 */
        {"cost:0.5", 450, 15.16781111}, /* 75 +- 2.25, 375 +- 15 */
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct goal g;
        if (!ok(goal_parse(cases[i].goal, &g, NULL) == 0, "%s", cases[i].goal))
            continue;
        struct goal_value got = goal_value_of(&g, &step, &ref);
        if (isnan(cases[i].v)) {
            ok(isnan(got.v) && isnan(got.rse), "%s: none of its own", cases[i].goal);
            continue;
        }
        is_near(got.v, cases[i].v, 1e-9, "%s: value", cases[i].goal);
        is_near(got.v * got.rse, cases[i].error, 1e-6, "%s: error", cases[i].goal);
    }
}

int main(void)
{
    test_value_of();
    test_parse();
    test_values();
    test_family();
    return done();
}
