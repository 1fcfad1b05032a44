/* Slack inside a job: who waits, which way watts go, and what is kept. */
#include "core/slack/slack.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/slack/balance.h"
#include "tap.h"

enum { BOARDS = 4 };
#define SPINS_W 100.0

/* ---- who waits ---- */

static void waits(void)
{
    static const struct {
        const char *name;
        struct slack_seen seen;
        double reference_w, waiting_w, busy;
    } cases[] = {
        {"works all the time", {300, 300, 0, 1}, 300, 135, 1},
        {"half of its time", {300, 217.5, 0, 1}, 300, 135, 0.5},
        {"waiting power was seen", {300, 200, 100, 1}, 300, 100, 0.5},
        {"hardly draws more than waiting", {300, 140, 0, 1}, 300, 119, 21.0 / 181},
        {"never below what it draws", {300, 100, 0, 1}, 300, 85, 15.0 / 215},
        {"asleep, as utilisation says", {300, 270, 0, 0.4}, 300, 135, 0.4},
        {"utilisation near 1 says nothing", {300, 217.5, 0, 0.98}, 300, 135, 0.5},
        {"draws less than its cap ever lets it", {300, 301, 0, 0}, 300, 135, 1},
    };

    for (size_t i = 0; i < n_elements(cases); i++) {
        double w = waits_power(&cases[i].seen, cases[i].reference_w);
        is_near(w, cases[i].waiting_w, 1e-9, "%s: waits at %g W", cases[i].name, w);
        is_near(waits_busy(&cases[i].seen, w), cases[i].busy, 1e-9, "%s: busy",
                cases[i].name);
    }
}

/* ---- which way watts go ---- */

static void down(void)
{
    static const struct balance_rule rule = {1, 0.15, 0.01, 1000};
    struct balance_board b[BOARDS] = {
        {300000, 100000, 300000, 1.0, 1}, /* sets the pace */
        {300000, 100000, 300000, 0.9, 1}, /* waits */
        {300000, 100000, 300000, 0.5, 1}, /* waits: no more than 15 % at once */
        {300000, 290000, 300000, 0.5, 1}, /* … but its floor is near */
    };
    uint32_t mw[BOARDS];

    is_int(balance_down(b, BOARDS, 1, &rule, mw), 3, "three caps go down");
    is_int(mw[0], 300000, "who is waited for keeps its cap");
    is_int(mw[1], 270000, "who waits a tenth loses a tenth");
    is_int(mw[2], 255000, "nobody more than 15 %% at once");
    is_int(mw[3], 290000, "… and none below its floor");
    b[1].busy = b[2].busy = b[3].busy = 0.995;
    is_int(balance_down(b, BOARDS, 1, &rule, mw), 0, "nobody waits: nothing moves");
    for (size_t i = 0; i < BOARDS; i++)
        is_int(mw[i], 300000, "board %zu as it was", i);
}

/* Whatever the boards: the sum is never above the budget, nothing outside its range. */
static void within(void)
{
    struct rng rng;
    bool in_range = true, in_budget = true, near = true, right = true;

    rng_init(&rng, 5);
    for (int k = 0; k < 3000; k++) {
        struct balance_rule rule = {0.2 + rng_uniform(&rng), 0.15, 0.01, 1000};
        struct balance_board b[8];
        size_t n = 2 + rng_below(&rng, 7), busiest = 0, idlest = 0;
        uint64_t budget = 0, most = 0, sum = 0, least = 0;
        uint32_t mw[8];
        for (size_t i = 0; i < n; i++) {
            uint32_t low = 100500 + (uint32_t)rng_below(&rng, 50000);
            uint32_t high = low + (uint32_t)rng_below(&rng, 200000);
            uint32_t cap = low + (uint32_t)rng_below(&rng, high - low + 1);
            b[i] = (struct balance_board){cap, low, high, 0.3 + 0.7 * rng_uniform(&rng),
                                          0.3 + rng_uniform(&rng)};
            budget += cap;
            most += high;
            least += low;
            busiest = b[i].busy > b[busiest].busy ? i : busiest;
            idlest = b[i].busy < b[idlest].busy ? i : idlest;
        }
        (void)balance_within(b, n, budget, &rule, mw);
        for (size_t i = 0; i < n; i++) {
            in_range &= mw[i] >= b[i].least_mw && mw[i] <= b[i].most_mw;
            sum += mw[i];
        }
        in_budget &= sum <= budget;
        near &= sum + n * 1000 >= budget || sum == most;
        right &=
            mw[busiest] + 1000 >= b[busiest].cap_mw && mw[idlest] <= b[idlest].cap_mw;
    }
    ok(in_range, "every cap is in its range");
    ok(in_budget, "no sum is above its budget");
    ok(near, "… nor further below it than the grain asks");
    ok(right, "the busiest loses nothing, the idlest wins nothing");

    struct balance_board b[2] = {{200000, 200000, 300000, 1, 1},
                                 {200000, 200000, 300000, 1, 1}};
    struct balance_rule rule = {1, 0.15, 0.01, 1000};
    uint32_t mw[2];
    (void)balance_within(b, 2, 300000, &rule, mw);
    ok(mw[0] == 200000 && mw[1] == 200000, "minimums that do not fit are given");

    struct balance_board alike[4];
    uint32_t each[4], sum = 0;
    for (size_t i = 0; i < 4; i++)
        alike[i] = (struct balance_board){200875, 150000, 300000, 1, 1};
    (void)balance_within(alike, 4, 803500, &rule, each);
    for (size_t i = 0; i < 4; i++)
        sum += each[i];
    ok(sum == 803000, "boards that are busy alike share what rounding leaves: %u mW",
       sum);
}

/* ---- a job ---- */

struct toy {
    double work[BOARDS];  /* s of a step at 300 W */
    double steep[BOARDS]; /* time goes with cap ^ -steep */
    double gap_s;         /* of a step: nobody computes */
};

static double toy_own_s(const struct toy *t, size_t i, double cap_w)
{
    return t->work[i] * pow(300 / cap_w, t->steep[i]);
}

static double toy_time_s(const struct toy *t, const uint32_t *cap_mw)
{
    double slowest = 0;
    for (size_t i = 0; i < BOARDS; i++)
        slowest = fmax(slowest, toy_own_s(t, i, w_of_mw(cap_mw[i])));
    return slowest + t->gap_s;
}

/* A window at the step's caps; ret_energy_j: without noise. */
static int toy_window(const struct toy *t, struct slack *s, double noise, struct rng *rng,
                      double *ret_energy_j)
{
    const struct slack_step *step = slack_step(s);
    double time_s = toy_time_s(t, step->cap_mw), energy_j = 0;
    struct slack_seen seen[BOARDS];

    for (size_t i = 0; i < BOARDS; i++) {
        double cap_w = w_of_mw(step->cap_mw[i]), own_s = toy_own_s(t, i, cap_w);
        double power_w = (own_s * cap_w + (time_s - own_s) * SPINS_W) / time_s;
        energy_j += power_w * time_s;
        seen[i] =
            (struct slack_seen){cap_w, power_w * (1 + noise * rng_normal(rng)), 0, 1};
    }
    if (ret_energy_j)
        *ret_energy_j = energy_j;
    struct slack_window w = {time_s * (1 + noise * rng_normal(rng)), noise, seen};
    return slack_on_window(s, &w, NULL);
}

static struct slack *toy_slack(double allowance, uint64_t budget_mw, uint32_t start_mw)
{
    struct slack_range range[BOARDS];
    struct slack *s = NULL;

    for (size_t i = 0; i < BOARDS; i++)
        range[i] = (struct slack_range){100000, start_mw, 300000};
    struct slack_setup setup = {range, BOARDS, allowance, budget_mw, 0};
    (void)slack_new(&setup, &s, NULL);
    return s;
}

static const struct toy pipeline = {{1.0, 0.85, 0.7, 0.9}, {0.4, 0.5, 0.6, 0.4}, 0.05};
/* Under 200 W: 10 % between the fastest and the slowest. */
static const struct toy hot_slot = {{1.05, 0.95, 0.98, 1.02}, {0.6, 0.6, 0.6, 0.6}, 0};

static void saves(void)
{
    auto_(slack_free) struct slack *s = toy_slack(0.01, 0, 300000);
    uint32_t first[BOARDS] = {300000, 300000, 300000, 300000};
    double first_s = toy_time_s(&pipeline, first), first_j = 0, energy_j = 0, worst = 0;
    struct slack_result result;
    struct rng rng;
    bool up = false;

    rng_init(&rng, 1);
    for (int k = 0; k < 200; k++) {
        const struct slack_step *step = slack_step(s);
        for (size_t i = 0; i < BOARDS; i++)
            up |= step->cap_mw[i] > first[i];
        if (step->kind == SLACK_HOLD)
            worst = fmax(worst, toy_time_s(&pipeline, step->cap_mw) / first_s);
        (void)toy_window(&pipeline, s, 0, &rng, k ? &energy_j : &first_j);
    }
    while (slack_step(s)->reference)
        (void)toy_window(&pipeline, s, 0, &rng, NULL);
    (void)toy_window(&pipeline, s, 0, &rng, &energy_j);
    slack_result(s, &result);
    is_int(slack_step(s)->kind, SLACK_HOLD, "comes to a hold (%u windows, %u steps)",
           result.hold_windows, result.tried);
    ok(!up, "no cap ever rises over its first");
    ok(worst <= 1.01 + 1e-9, "nothing is held that is too slow: %+.2f %%",
       100 * (worst - 1));
    ok(energy_j < 0.9 * first_j, "energy saved: %.1f %%", 100 * (1 - energy_j / first_j));
    ok(result.known && fabs(result.time_ratio - worst) < 0.002 && result.watts_mw < 0,
       "… and said so: time %+.2f %%, %.0f W", 100 * (result.time_ratio - 1),
       (double)result.watts_mw / 1e3);
    is_int(slack_step(s)->role[0], SLACK_PACE, "the largest stage sets the pace");
    ok(strncmp(slack_step(s)->why, "slack: ", 7) == 0, "… in words: %s",
       slack_step(s)->why);
}

static void faster(void)
{
    auto_(slack_free) struct slack *s = toy_slack(0, 800000, 200000);
    uint32_t first[BOARDS] = {200000, 200000, 200000, 200000};
    double first_s = toy_time_s(&hot_slot, first);
    struct rng rng;
    bool over = false;

    rng_init(&rng, 1);
    for (int k = 0; k < 120; k++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < BOARDS; i++)
            sum += slack_step(s)->cap_mw[i];
        over |= sum > 800000;
        (void)toy_window(&hot_slot, s, 0, &rng, NULL);
    }
    while (slack_step(s)->reference)
        (void)toy_window(&hot_slot, s, 0, &rng, NULL);
    double gain = first_s / toy_time_s(&hot_slot, slack_step(s)->cap_mw) - 1;
    ok(!over, "no step is above the budget");
    ok(gain >= 0.04, "faster than with equal caps: %.1f %% of the 5 %% there are",
       100 * gain);
    ok(slack_step(s)->cap_mw[0] > 200000 && slack_step(s)->cap_mw[1] < 200000,
       "who was waited for got watts of who waited");
}

/* One per cent of noise: what is held is not slower than allowed, in the large. */
static void noisy(void)
{
    unsigned over = 0, saved = 0;
    enum { SEEDS = 40 };

    for (unsigned k = 0; k < SEEDS; k++) {
        auto_(slack_free) struct slack *s = toy_slack(0.01, 0, 300000);
        uint32_t first[BOARDS] = {300000, 300000, 300000, 300000};
        double first_s = toy_time_s(&pipeline, first), sum_s = 0;
        double first_j = 0, sum_j = 0, energy_j = 0;
        struct rng rng;
        rng_init(&rng, k + 1);
        for (int i = 0; i < 600; i++) {
            sum_s += toy_time_s(&pipeline, slack_step(s)->cap_mw) / 600;
            (void)toy_window(&pipeline, s, 0.01, &rng, i ? &energy_j : &first_j);
            sum_j += (i ? energy_j : first_j) / 600;
        }
        over += sum_s > 1.012 * first_s;
        saved += sum_j < 0.95 * first_j;
    }
    ok(over <= 1, "whole jobs 1.2 %% slower: %u of %d", over, SEEDS);
    ok(saved >= SEEDS - 2, "… that saved 5 %% and more: %u", saved);
}

/* Another board becomes the slowest: the first caps are back within a few windows. */
static void straggler_moves(void)
{
    auto_(slack_free) struct slack *s = toy_slack(0.01, 0, 300000);
    struct toy later = pipeline;
    uint32_t first[BOARDS] = {300000, 300000, 300000, 300000};
    struct slack_result result;
    struct rng rng;
    unsigned back = 0;

    rng_init(&rng, 9);
    for (int k = 0; k < 150; k++)
        (void)toy_window(&pipeline, s, 0.003, &rng, NULL);
    is_int(slack_step(s)->kind, SLACK_HOLD, "holds");
    later.work[2] = 1.0;
    for (unsigned k = 1; k <= 30 && !back; k++) {
        (void)toy_window(&later, s, 0.003, &rng, NULL);
        back = slack_step(s)->kind == SLACK_MEASURE && slack_step(s)->reference ? k : 0;
    }
    ok(back > 0 && back <= 5, "the first caps are back after %u windows", back);
    for (int k = 0; k < 150; k++)
        (void)toy_window(&later, s, 0.003, &rng, NULL);
    while (slack_step(s)->reference)
        (void)toy_window(&later, s, 0.003, &rng, NULL);
    double ratio = toy_time_s(&later, slack_step(s)->cap_mw) / toy_time_s(&later, first);
    slack_result(s, &result);
    is_int((long long)result.restarts, 1, "it began anew once");
    ok(ratio <= 1.012, "… and holds within what may be lost: %+.2f %%",
       100 * (ratio - 1));
    ok(slack_step(s)->cap_mw[2] > slack_step(s)->cap_mw[1],
       "the new straggler keeps its watts");
}

/* A board that frees up is found in a hold. */
static void waits_anew(void)
{
    auto_(slack_free) struct slack *s = toy_slack(0.01, 0, 300000);
    struct toy later = pipeline;
    struct rng rng;

    rng_init(&rng, 3);
    for (int k = 0; k < 150; k++)
        (void)toy_window(&pipeline, s, 0.003, &rng, NULL);
    while (slack_step(s)->reference)
        (void)toy_window(&pipeline, s, 0.003, &rng, NULL);
    uint32_t before = slack_step(s)->cap_mw[3];
    later.work[3] = 0.75;
    for (int k = 0; k < 150; k++)
        (void)toy_window(&later, s, 0.003, &rng, NULL);
    while (slack_step(s)->reference)
        (void)toy_window(&later, s, 0.003, &rng, NULL);
    ok(slack_step(s)->cap_mw[3] + 10000 < before, "its cap goes down: %.0f W, was %.0f W",
       w_of_mw(slack_step(s)->cap_mw[3]), w_of_mw(before));
}

static void refused(void)
{
    static const struct slack_range good[2] = {{100000, 200000, 300000},
                                               {100000, 200000, 300000}};
    static const struct slack_range low[2] = {{100000, 200000, 300000},
                                              {100000, 90000, 300000}};
    static const struct {
        const char *name;
        struct slack_setup setup;
        int r;
        const char *says;
    } cases[] = {
        {"one board", {good, 1, 0.01, 0, 0}, -EINVAL, "slack needs 2..64 boards, not 1"},
        {"an allowance",
         {good, 2, 0.5, 0, 0},
         -ERANGE,
         "an allowance of 0.5 is outside 0..0.2"},
        {"a first cap",
         {low, 2, 0.01, 0, 0},
         -ERANGE,
         "board 1: a first cap of 90000 mW is outside 100000..90000"},
        {"a budget",
         {good, 2, 0.01, 399000, 0},
         -ERANGE,
         "the first caps sum up to 400000 mW, above the budget of 399000 mW"},
    };
    struct slack *s = NULL;
    uw_error err;

    for (size_t i = 0; i < n_elements(cases); i++) {
        is_int(slack_new(&cases[i].setup, &s, &err), cases[i].r, "%s is refused",
               cases[i].name);
        is_str(err.text, cases[i].says, "… with its value and limit");
        ok(!s, "… and nothing made");
    }
    struct slack_setup setup = {good, 2, 0.01, 0, 0};
    is_int(slack_new(&setup, &s, &err), 0, "two boards are fine");
    struct slack_seen seen[2] = {{200, 150, 0, 0}, {200, 150, 0, 0}};
    struct slack_window w = {1, 0.01, seen};
    w.time_s = NAN;
    is_int(slack_on_window(s, &w, &err), -EINVAL, "a time that is none");
    w.time_s = 1;
    w.time_rse = -1;
    is_int(slack_on_window(s, &w, &err), -EINVAL, "an error that is none");
    w.time_rse = 0.01;
    seen[1].power_w = 0;
    is_int(slack_on_window(s, &w, &err), -EINVAL, "a power that is none");
    seen[1].power_w = 150;
    seen[1].cap_w = 180;
    is_int(slack_on_window(s, &w, &err), -EINVAL, "a cap that was not asked for");
    is_str(err.text, "board 1: its cap was 180 W, not 200 W", "… which");
    struct slack_result result;
    slack_result(s, &result);
    is_int(result.windows, 0, "none of them counts");
    slack_free(s);
}

int main(void)
{
    waits();
    down();
    within();
    saves();
    faster();
    noisy();
    straggler_moves();
    waits_anew();
    refused();
    return done();
}
