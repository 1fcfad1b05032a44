/* A second search, after the job has changed. */
#include <math.h>
#include <stdlib.h>

#include "base/auto.h"
#include "core/optimum/model.h"
#include "core/optimum/prior.h"
#include "core/optimum/propose.h"
#include "core/optimum/search.h"
#include "search-job.h"
#include "tap.h"

/* The search is told of a change, with a window at the cap that is held. */
static void changes(struct search *s, struct job *j)
{
    struct search_window w = window_at(j, search_step(s)->cap_mw);
    search_on_change(s, &w);
}

/* Steps wait for a slow network: the kernels between, and so the cap, are what they were,
 * though the mean power is far less.
 */
static void test_waits(void)
{
    struct job j = plain;
    auto_(search_free) struct search *s = search_of(&v100);
    struct search_result known;
    unsigned first = run(s, &j);
    uint32_t best = search_step(s)->cap_mw;

    j.wait = 0.3;
    changes(s, &j);
    search_result(s, &known);
    is_int(known.caps, 1, "a change: what is measured at the held cap counts");
    is_int(search_step(s)->cap_mw, 300000, "… then the reference");
    unsigned again = run(s, &j);
    ok(again < first, "waits: %u windows, %u at first", again, first);
    is_near(search_step(s)->cap_mw, best, 12000, "… and about the same watts are held");
}

/* Old levels of the curve `plain`, and new ones that are `by` of it to the right; the
 * share of their own demand that the model makes their scale.
 */
static double scale_of_old(double by)
{
    static const double caps[] = {300, 240, 200, 170, 140};
    struct level levels[2 * n_elements(caps)];
    const struct job j = plain;
    struct model *m = calloc(1, sizeof *m);
    struct scene scene = {.peak_w = 220, .levels = levels, .n = n_elements(levels)};
    double share = -1;

    for (size_t i = 0; i < n_elements(levels); i++) {
        bool old = i >= n_elements(caps);
        double cap_w = caps[i % n_elements(caps)], at_w = old ? cap_w : cap_w * by;
        levels[i] = (struct level){.cap_w = cap_w,
                                   .log_t = log(true_time(&j, at_w)),
                                   .log_e = log(true_energy(&j, at_w)),
                                   .var_t = 1e-8,
                                   .var_e = 1e-8,
                                   .windows = 1,
                                   .stale = old,
                                   .demand_w = 280};
        levels[i].log_t += old ? 0 : 0.4;
        levels[i].log_e += old ? 0 : 0.4 + log(200 / 280.0);
    }
    if (m) {
        model_fit(m, &prior_recorded, &scene);
        share = m->stale_by_demand;
    }
    free(m);
    return share;
}

static void test_scale(void)
{
    is_near(scale_of_old(1), 0, 0, "held by the same watts: old caps count in watts");
    ok(scale_of_old(1.4) >= 0.5, "by the same share of demand: not in watts");
}

/* Waits that come and go are searched once. */
static void test_comes_and_goes(void)
{
    struct job j = plain;
    auto_(search_free) struct search *s = search_of(&v100);
    struct search_window known[LEVELS_MAX];
    uint32_t best[2];
    unsigned again = 0;

    (void)run(s, &j);
    best[0] = search_step(s)->cap_mw;
    j.wait = 0.3;
    changes(s, &j);
    (void)run(s, &j);
    best[1] = search_step(s)->cap_mw;
    for (int i = 0; i < 6; i++) {
        j.wait = i % 2 ? 0.3 : 0;
        changes(s, &j);
        is_int(search_step(s)->kind, SEARCH_HOLD, "turn %d: known", i);
        is_int(search_step(s)->cap_mw, best[i % 2], "… and what was found is held");
        again += run(s, &j);
    }
    is_int(again, 0, "without a window");
    ok(search_known(s, known, LEVELS_MAX) >= 3 && known[0].cap_mw == 300000,
       "what was measured then is known, the reference first");
    is_int((long long)search_known(s, known, 1), 1, "… as many as asked for");
    search_on_stall(s, best[0]);
    (void)run(s, &j);
    j.wait = 0;
    changes(s, &j);
    is_int(search_step(s)->kind, SEARCH_MEASURE, "a cap that stalled is not held again");
    (void)run(s, &j);
    j.wait = 0.3;
    search_on_change(s, NULL);
    is_int(search_step(s)->kind, SEARCH_MEASURE, "nor is what had other units of work");
}

/* A regime that is near to one of before, and no nearer, is another one. */
static void test_not_the_same(void)
{
    struct job j = plain;
    auto_(search_free) struct search *s = search_of(&v100);

    for (int i = 0; i < 8; i++) { /* more than are remembered */
        (void)run(s, &j);
        j.wait += 0.1;
        changes(s, &j);
        is_int(search_step(s)->kind, SEARCH_MEASURE, "waits of %.1f: new", j.wait);
    }
}

int main(void)
{
    test_waits();
    test_scale();
    test_comes_and_goes();
    test_not_the_same();
    return done();
}
