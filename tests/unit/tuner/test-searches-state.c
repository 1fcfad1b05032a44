/* What is kept of a search across daemons: written, read back, the same. */
#include <errno.h>
#include <stdlib.h>

#include "base/auto.h"
#include "tap.h"
#include "tuner/searches-inside.h"

enum { REGIMES = 2 };

static void on_hold(struct savings *a, double at_s, double time_s, double energy_j,
                    double rse)
{
    struct pair_seen seen = {at_s, time_s, energy_j, rse, rse};
    (void)counterfactual_on_hold(&a->pairs, &seen);
}

static void on_reference(struct savings *a, double at_s, double time_s, double energy_j,
                         double rse)
{
    struct pair_seen seen = {at_s, time_s, energy_j, rse, rse};
    counterfactual_on_reference(&a->pairs, &seen);
}

/* Two holds, a visit in each, and windows that wander. */
static void fill(struct tuner_report *r, struct savings *a, struct tuner_cap *caps)
{
    for (size_t i = 0; i < REGIMES + 1; i++) {
        a[i] = (struct savings){.sum = {{40, 20.25, 9000.5, 12},
                                        {80, 41, 16000, 3},
                                        {900.5, 470, 190000, 7}}};
        savings_mean_add(&a[i].reference, 0.5, 225, 0.003, 0.004);
        savings_mean_add(&a[i].reference, 0.51, 226, 0.003, 0.004);
        savings_mean_add(&a[i].hold, 0.52, 200, 0.002, 0.002);
        on_reference(&a[i], 0, 0.5, 225, 0.004);
        for (unsigned k = 0; k < 12; k++)
            on_hold(&a[i], 100 + 12 * k, 0.53, 201 + k, 0.002);
        on_reference(&a[i], 300, 0.5, 225, 0.004);
        on_hold(&a[i], 400, 0.53, 201, 0.002);
        savings_hold_anew(&a[i]);
        a[i].sum[STRETCH_HOLD] = (struct savings_sum){500.5, 270, 100000, 7};
        a[i].sum[STRETCH_REFERENCE_CHECK] = (struct savings_sum){30, 15, 6700, 2};
        a[i].sum[STRETCH_BACK] = (struct savings_sum){20, 11, 4000, 2};
        on_hold(&a[i], 500, 0.52, 200, 0.002);
        on_reference(&a[i], 510, 0.5, 225, 0.004);
        on_hold(&a[i], 520, 0.52, 200, 0.002);
        savings_mean_add(&a[i].hold, 0.52, 200, 0.002, 0.002);
    }
    savings_merge(a, REGIMES + 1);
    for (size_t i = 0; i < 3; i++) {
        caps[i].cap_mw = 300000 - (uint32_t)i * 50000;
        savings_mean_add(&caps[i].mean, 0.5 + 0.01 * (double)i, 225, 0.003, 0.004);
    }
    *r = (struct tuner_report){
        .holding = true,
        .searching = true,
        .held_mw = 200000,
        .reference_mw = 300000,
        .allowed_mw = 300500,
        .lifted_mw = 310000,
        .demand_w = 240.5,
        .peak_w = 261.25,
        .windows = 11,
        .changes = 1,
        .stalls = 2,
        .stopped_s = 330.5,
        .waited_s = 40.25,
        .account = a,
        .n_regimes = REGIMES,
        .cap = caps,
        .n_caps = 3,
        .checks = {.share = 0.005, .spent_s = 42.5, .last_s = 14.25, .n = 3},
        .gap_checks = {.most = 4, .n = 2, .last_s = 31.5},
    };
}

static void there_and_back(bool search)
{
    static struct searches_memory m, got;
    struct savings a[REGIMES + 1];
    struct tuner_cap caps[3] = {{0}};
    struct tuner_report report;
    struct cap_class cls = {0.88, 0.55, 0.01}, got_cls = {0};
    struct searches_ask ask = {.search = search, .cls = &cls}, got_ask;
    auto_(mem_free) char *text = NULL;
    struct savings_saved want, is;
    uw_error err = {""};

    if (search)
        ask.goal = (struct goal){GOAL_SLOWDOWN, 1.1};
    else
        ask.cap.percent = 85;
    fill(&report, a, caps);
    searches_memory_take(&m, &report);
    m.n_uuids = 1;
    (void)snprintf(m.uuid[0], sizeof m.uuid[0], "GPU-a");
    ok(searches_state_write(&ask, &m, &text, &err) == 0 && !strchr(text, '\n'),
       "written, on one line");
    ok(searches_state_read(text, &got_ask, &got_cls, &got, &err) == 0, "read back %s",
       err.text);
    ok(got_ask.search == search && got_ask.goal.kind == ask.goal.kind &&
           got_ask.goal.param == ask.goal.param && got_ask.cap.percent == ask.cap.percent,
       "what was asked for");
    ok(got_ask.cls == &got_cls && got_cls.first == 0.88 && got_cls.floor == 0.55 &&
           got_cls.rate == 0.01,
       "its class");
    ok(got.held_mw == 200000 && got.known.reference_mw == 300000 &&
           got.known.demand_w == 240.5 && got.known.peak_w == 261.25 &&
           got.known.windows == 11 && got.known.changes == 1 && got.known.stalls == 2,
       "what was found");
    ok(got.known.allowed_mw == 300500 && got.known.lifted_mw == 310000,
       "what others allowed");
    ok(got.known.stopped_s == 330.5 && got.known.waited_s == 40.25, "stops and waits");
    ok(got.known.searching, "the search is not over");
    ok(got.known.kept.checks.n == 3 && got.known.kept.checks.spent_s == 42.5 &&
           got.known.kept.checks.last_s == 14.25,
       "the visits to the reference");
    ok(got.known.kept.gap_checks.n == 2 && got.known.kept.gap_checks.last_s == 31.5,
       "the looks into gaps");
    ok(got.n_uuids == 1 && strcmp(got.uuid[0], "GPU-a") == 0, "on which boards");
    bool same = got.known.n_caps == 3;
    for (size_t i = 0; i < 3 && same; i++)
        same = got.cap[i].cap_mw == caps[i].cap_mw &&
               got.cap[i].mean.windows == caps[i].mean.windows &&
               got.cap[i].mean.sum_t == caps[i].mean.sum_t &&
               got.cap[i].mean.sum_e2 == caps[i].mean.sum_e2 &&
               got.cap[i].mean.sum_we == caps[i].mean.sum_we;
    ok(same, "each cap, to the last bit");
    savings_saved(a, REGIMES, &want);
    savings_saved(got.known.regime, got.known.n_regimes, &is);
    ok(want.known && is.known && want.energy_j == is.energy_j &&
           want.half_j == is.half_j && want.slowdown == is.slowdown &&
           want.cost_j == is.cost_j && want.pairs == 6 && is.pairs == 6 &&
           want.visits_s == is.visits_s && want.search_steps == is.search_steps &&
           want.visits_cost_j == is.visits_cost_j && want.back_s == 33 && is.back_s == 33,
       "what was saved: %g J", is.energy_j);
    ok(got.regime[0].older.regimes == 1 && got.regime[0].older.held == 1 &&
           savings_time_s(&got.regime[0], 1) == savings_time_s(&a[0], 1) &&
           got.regime[1].older.regimes == 0,
       "… a regime in it that was merged");
}

/* A state of before the energies had weights of their own. */
static void one_weight(void)
{
    static struct searches_memory m, got;
    struct savings a[REGIMES + 1];
    struct tuner_cap caps[3] = {{0}};
    struct tuner_report report;
    struct searches_ask ask = {.cap.percent = 85}, got_ask;
    struct cap_class cls;
    auto_(mem_free) char *text = NULL;
    uw_error err = {""};

    fill(&report, a, caps);
    searches_memory_take(&m, &report);
    ok(searches_state_write(&ask, &m, &text, &err) == 0, "written");
    for (char *key = text; (key = strstr(key, "weight_e"));)
        key[0] = 'W';
    ok(searches_state_read(text, &got_ask, &cls, &got, &err) == 0 &&
           got.cap[0].mean.sum_we == caps[0].mean.sum_wt &&
           got.regime[1].hold.sum_we == a[1].hold.sum_wt,
       "an older state: the weights of the times %s", err.text);
}

#define NOTHING "{\"0\":0,\"1\":0,\"2\":0,\"3\":0}"
#define NO_PAST \
    "{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0}"
#define NO_MEAN "{\"windows\":0,\"sums\":{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0}}"

static void refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "state"},
        {"{}", "underwatt_tuning"},
        {"{\"underwatt_tuning\":2}", "version 2"},
        {"{\"underwatt_tuning\":1,\"cap_mw\":0,\"cap_percent\":0}", "neither a goal nor"},
        {"{\"underwatt_tuning\":1,\"goal\":\"speed\",\"cap_mw\":0,\"cap_percent\":0}",
         "speed"},
        {"{\"underwatt_tuning\":1,\"cap_mw\":-1,\"cap_percent\":0}", "cap_mw"},
        {"{\"underwatt_tuning\":1,\"cap_mw\":99999999999,\"cap_percent\":0}",
         "too large"},
        {"{\"underwatt_tuning\":1,\"cap_mw\":200000,\"cap_percent\":0,\"held_mw\":0,"
         "\"reference_mw\":0,\"demand_w\":0,\"peak_w\":0,\"windows\":0,\"changes\":0,"
         "\"stalls\":0,\"boards\":[],\"regimes\":[],\"caps\":[{\"cap_mw\":1,\"mean\":"
         "{\"windows\":1,\"sums\":{\"0\":0,\"1\":0,\"2\":0,\"3\":0,\"4\":0}}}]}",
         "without a weight"},
        {"{\"underwatt_tuning\":1,\"cap_mw\":200000,\"cap_percent\":0,\"held_mw\":0,"
         "\"reference_mw\":0,\"demand_w\":0,\"peak_w\":0,\"windows\":0,\"changes\":0,"
         "\"stalls\":0,\"boards\":[],\"caps\":[],\"regimes\":[{"
         "\"reference_steps\":" NOTHING ",\"search_steps\":" NOTHING
         ",\"hold_steps\":" NOTHING ",\"reference\":" NO_MEAN ",\"hold\":" NO_MEAN
         ",\"older\":{\"regimes\":1,\"compared\":2,\"held\":0,\"pairs\":0,"
         "\"sums\":" NOTHING ",\"costs\":" NOTHING ",\"past\":" NO_PAST "}}]}",
         "older: 0 held, 2 compared, 1 in all"},
    };
    static struct searches_memory m;

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct searches_ask ask;
        struct cap_class cls;
        uw_error err = {""};
        memset(&m, 7, sizeof m);
        int r = searches_state_read(cases[i].text, &ask, &cls, &m, &err);
        ok(r < 0 && strstr(err.text, cases[i].want) && m.held_mw == 0x07070707,
           "refused, nothing written: %s", err.text);
    }
}

int main(void)
{
    there_and_back(true);
    there_and_back(false);
    one_weight();
    refused();
    return done();
}
