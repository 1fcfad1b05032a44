/* The search on boards whose time rises like a cliff below some cap: what lies
 * between the cliff and the top must still be looked at, and no cap be asked for
 * again that an exact window has told all about.
 */
#include <stdlib.h>

#include "base/auto.h"
#include "base/units.h"
#include "core/optimum/search.h"
#include "tap.h"

struct curve {
    double top_w;   /* the job draws this where the cap allows it */
    double rise;    /* of log time per log cap below that … */
    double cliff_w; /* … and below this … */
    double fall;    /* … so much more log time at once */
};

static double log_time(const struct curve *c, double cap_w)
{
    double t = c->rise * fmax(log(c->top_w / cap_w), 0);
    return cap_w < c->cliff_w ? t + c->fall : t;
}

static struct search_window window_at(const struct curve *c, uint32_t cap_mw)
{
    double cap_w = w_of_mw(cap_mw), time_s = exp(log_time(c, cap_w));
    return (struct search_window){
        .cap_mw = cap_mw,
        .time_s = time_s,
        .energy_j = time_s * fmin(cap_w, c->top_w),
        .peak_w = fmin(cap_w, c->top_w),
    };
}

enum { NEAR_MW = 3000 }; /* what is kept lies between two caps of the grid */

struct played {
    unsigned windows, twice; /* caps asked for again */
    bool behind;             /* looked between a cliff and the best */
    bool measured;           /* within NEAR_MW of what is kept */
    double kept_w;
};

static struct played play(const struct curve *c, const char *goal, unsigned most)
{
    struct search_setup u = {.min_mw = 100000,
                             .max_mw = 260000,
                             .default_mw = 260000,
                             .original_mw = 260000,
                             .max_windows = most};
    struct played p = {0};
    uint32_t seen[64];
    uw_error err;
    struct search *s = NULL;
    if (goal_parse(goal, &u.goal, &err) < 0 || search_new(&u, &s, &err) < 0)
        return p;

    for (; search_step(s)->kind == SEARCH_MEASURE && p.windows < 64; p.windows++) {
        const struct search_step *t = search_step(s);
        p.behind |= strstr(t->why, "between a cliff") != NULL;
        for (unsigned i = 0; i < p.windows; i++)
            p.twice += seen[i] == t->cap_mw;
        seen[p.windows] = t->cap_mw;
        struct search_window w = window_at(c, t->cap_mw);
        (void)search_on_window(s, &w, NULL);
    }
    p.kept_w = w_of_mw(search_step(s)->cap_mw);
    for (unsigned i = 0; i < p.windows; i++)
        p.measured |= llabs((long long)seen[i] - search_step(s)->cap_mw) <= NEAR_MW;
    search_free(s);
    return p;
}

static double worth(const struct curve *c, const char *goal_text, double cap_w)
{
    struct goal goal = {0};
    struct goal_ref ref = {c->top_w, 1, 260};
    double time_s = exp(log_time(c, cap_w));
    (void)goal_parse(goal_text, &goal, NULL);
    return goal_relative(&goal, time_s * fmin(cap_w, c->top_w), time_s, &ref);
}

/* The valley lies between a flat top and a cliff that the first probe fell off. */
static void test_behind(void)
{
    static const double cliffs[] = {0.66, 0.70, 0.74, 0.78};

    for (size_t i = 0; i < n_elements(cliffs); i++) {
        struct curve c = {182, 0.3, cliffs[i] * 182, 0.7};
        struct played p = play(&c, "cost:0.5", 0);
        double least = HUGE_VAL;
        for (int w = 100; w <= 260; w++)
            least = fmin(least, worth(&c, "cost:0.5", w));
        double v = worth(&c, "cost:0.5", p.kept_w);
        ok(p.behind && v <= 1.01 * least,
           "a cliff at %.0f W: keeps %.0f W, %.2f %% above the least", c.cliff_w,
           p.kept_w, 100 * (v / least - 1));
    }
}

/* A neighbour that fell off the cliff is no neighbour, and no cap to ask for again. */
static void test_once(void)
{
    static const struct curve curves[] = {
        {182, 0.1, 0.82 * 182, 0.7}, {182, 0.1, 0.86 * 182, 0.7},
        {182, 0.7, 0.82 * 182, 0.5}, {258, 0.9, 0.86 * 258, 0.9},
        {258, 0.9, 0.82 * 258, 0.7},
    };

    for (size_t i = 0; i < n_elements(curves); i++) {
        struct played p = play(&curves[i], "energy", 0);
        ok(p.windows > 1 && p.twice == 0,
           "exact windows, cliff at %.0f W: %u of %u asked for again", curves[i].cliff_w,
           p.twice, p.windows);
    }
}

/* Where the windows have run out, what is kept was measured. */
static void test_exhausted(void)
{
    static const char *const goals[] = {"energy", "edp", "eds:2", "cost:0.5"};
    struct curve c = {194, 0.7, 0.70 * 194, 0.9};
    struct played p = play(&c, "edp", 4);
    double v = worth(&c, "edp", p.kept_w);
    ok(p.windows == 4 && v <= 1.01, "all windows used: keeps %.0f W, %.3f of the top's",
       p.kept_w, v);
    for (unsigned most = 2; most <= 8; most++) {
        unsigned n = 0, measured = 0;
        for (unsigned i = 0; i < 8 * n_elements(goals); i++, n++) {
            c = (struct curve){180 + 10 * (i % 8), 0.3 + 0.05 * (i % 8), 120, 0.3};
            p = play(&c, goals[i / 8], most);
            measured += p.windows < most || p.measured;
        }
        ok(measured == n, "%u windows at most: %u of %u keep what was measured", most,
           measured, n);
    }
}

int main(void)
{
    test_behind();
    test_once();
    test_exhausted();
    return done();
}
