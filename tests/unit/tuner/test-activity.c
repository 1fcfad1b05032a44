/* What the activities of a tuner have in common, and when those of a hold begin. */
#include "tuner/activity.h"

#include "base/units.h"
#include "tap.h"
#include "tuner/gap-check.h"
#include "tuner/reference-check.h"
#include "tuner/rest.h"
#include "tuner/safe-cap.h"

static void rows(void)
{
    for (size_t i = 0; i < ACTIVITIES_N; i++) {
        bool unique = activities[i]->name && activities[i]->name[0];
        for (size_t k = 0; k < i; k++)
            unique = unique && strcmp(activities[i]->name, activities[k]->name) != 0;
        ok(unique, "%s has a name of its own", activities[i]->name);
    }
}

/* Two activities do not write one member of the saved state. */
static void saved_keys(void)
{
    const char *seen[32];
    size_t n = 0;

    for (size_t i = 0; i < ACTIVITIES_N; i++)
        for (size_t k = 0; k < activities[i]->n_saved && n < n_elements(seen); k++) {
            const char *key = activities[i]->saved[k].key;
            for (size_t j = 0; j < n; j++)
                if (strcmp(seen[j], key) == 0)
                    ok(false, "%s is saved twice", key);
            seen[n++] = key;
        }
    ok(n == 5, "%zu members are saved", n);
}

/* A hold of an hour at 200 W, whose reference of 300 W was measured. */
struct hold {
    struct savings savings;
    struct window_energy energy;
    struct reference_check check;
    struct activity_now now;
};

static int somewhere; /* a search is under way */

static void hold_init(struct hold *h)
{
    *h = (struct hold){.check.checks.share = 0.005};
    savings_mean_add(&h->savings.hold, 1, 200, 0.001, 0.001);
    h->energy.window.kept_s = 10;
    h->now = (struct activity_now){
        .search = (struct search *)&somewhere,
        .savings = &h->savings,
        .energy = &h->energy,
        .reference_mw = 300000,
        .rules_mw = UINT32_MAX,
        .measured_mw = 300000,
        .held_mw = 200000,
        .cap_mw = 200000,
        .trained_s = 100000,
        .window_s = 10,
        .now_ns = NS_PER_S,
    };
}

static enum activity_verdict ask_check(struct hold *h)
{
    return activity_check.on_hold(&h->check, &h->now);
}

static void checks(void)
{
    struct hold h;
    struct search_step step;

    hold_init(&h);
    ok(ask_check(&h) == ACTIVITY_BEGINS, "a reference check is due");
    activity_check.want(&h.check, &h.now, &step);
    ok(step.kind == SEARCH_MEASURE && step.cap_mw == 300000 &&
           step.settle_s >= REFERENCE_CHECK_SETTLE_S,
       "… goes to the reference and waits until the boards are warm: %.0f s",
       step.settle_s);
    hold_init(&h);
    h.now.trained_s = 6000;
    ok(ask_check(&h) == ACTIVITY_BEGINS && h.check.settle_s < REFERENCE_CHECK_SETTLE_S,
       "the first of a short job is brief");
    h.check.checks.n = 1;
    ok(ask_check(&h) == ACTIVITY_STAYS, "… and there is no second one");
    hold_init(&h);
    h.now.measures = true;
    ok(ask_check(&h) == ACTIVITY_STAYS, "it waits while another activity measures");
    hold_init(&h);
    h.now.reference_mw = 200000;
    ok(ask_check(&h) == ACTIVITY_STAYS, "no check where no higher cap is possible");
    hold_init(&h);
    h.now.measured_mw = 320000;
    ok(ask_check(&h) == ACTIVITY_STAYS, "… nor where the reference was higher");
    hold_init(&h);
    h.now.rules_mw = 250000;
    ok(ask_check(&h) == ACTIVITY_STAYS, "… nor where a rule asks for less");
    hold_init(&h);
    h.now.search = NULL;
    ok(ask_check(&h) == ACTIVITY_STAYS, "… nor for a cap by name");
}

static void gaps(void)
{
    struct gap_check gap = {.probes.most = 4};
    struct hold h;

    hold_init(&h);
    h.now.moved = true;
    ok(activity_gap.on_hold(&gap, &h.now) == ACTIVITY_STAYS,
       "no gap is measured while boards have caps of their own");
    gap.probes.n = 3;
    (void)activity_gap.on_news(&gap, ACTIVITY_REGIME);
    ok(gap.probes.n == 0 && gap.probes.most == 4, "a job that changed has gaps again");
}

static void rests(void)
{
    struct rest r = {0};
    double first_s = rest_begin(&r, NS_PER_S);

    ok(rest_lasts(&r, NS_PER_S + ns_of_s(first_s) - 1) &&
           !rest_lasts(&r, NS_PER_S + ns_of_s(first_s)),
       "a rest of %.0f s", first_s);
    ok(rest_begin(&r, NS_PER_S) == 2 * first_s, "the next is twice as long");
    for (int i = 0; i < 10; i++)
        (void)rest_begin(&r, NS_PER_S);
    ok(r.length_s == 3600, "… up to an hour");
    rest_forget(&r);
    ok(rest_begin(&r, NS_PER_S) == first_s, "… until a window has a result");
}

static void safe(void)
{
    static const struct {
        enum goal_kind kind;
        bool allowed;
    } cases[] = {{GOAL_ENERGY, true}, {GOAL_TIME, false}, {GOAL_SLOWDOWN, false}};

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct safe_cap s = {.goal.kind = cases[i].kind};
        ok(safe_cap_allowed(&s) == cases[i].allowed, "goal %d: %s safe cap",
           (int)cases[i].kind, cases[i].allowed ? "a" : "no");
    }
}

int main(void)
{
    rows();
    saved_keys();
    checks();
    gaps();
    rests();
    safe();
    return done();
}
