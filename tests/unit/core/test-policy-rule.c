/* Rules over time, and the choice of a goal. */
#include "core/policy/rule.h"

#include <stdlib.h>

#include "base/names.h"
#include "base/rng.h"
#include "policy-signals.h"
#include "tap.h"

#define S(s) ((uint64_t)(s)*NS_PER_S)

enum { GONE = -1, LINES = 12 };

struct moment {
    unsigned at_s;
    int carbon; /* GONE: unknown */
    const char *state;
    unsigned since_s, due_s; /* due 0: never */
};
struct story {
    const char *name, *when, *until;
    unsigned for_s, release_s;
    struct moment moment[LINES];
};

/* clang-format off */
static const struct story stories[] = {
    {"begins at once, ends at once", "carbon > 400 g/kWh", NULL, 0, 0,
     {{10, 400, "false", 10, 0}, {20, 401, "acts", 20, 0}, {25, 381, "acts", 20, 0}, {30, 379, "false", 30, 0}, {40, 390, "false", 30, 0}}},
    {"`for` and `release`", "carbon > 400 g/kWh", NULL, 60, 30,
     {{100, 500, "waits", 100, 160}, {159, 500, "waits", 100, 160}, {160, 500, "acts", 160, 0}, {170, 300, "acts", 160, 200},
      {180, 390, "acts", 160, 0}, {190, 300, "acts", 160, 220}, {219, 300, "acts", 160, 220}, {220, 300, "false", 220, 0}}},
    {"an interruption begins the wait anew", "carbon > 400 g/kWh", NULL, 60, 0,
     {{100, 500, "waits", 100, 160}, {130, 390, "false", 130, 0}, {150, 500, "waits", 150, 210}, {210, 500, "acts", 210, 0}}},
    {"unknown begins nothing", "carbon > 400 g/kWh", NULL, 60, 60,
     {{100, 500, "waits", 100, 160}, {130, GONE, "unknown", 130, 0}, {150, 500, "waits", 150, 210}}},
    {"unknown ends at once", "carbon > 400 g/kWh", NULL, 0, 60,
     {{100, 500, "acts", 100, 0}, {130, GONE, "unknown", 130, 0}, {140, 500, "acts", 140, 0}}},
    {"until", "carbon > 400 g/kWh", "carbon < 370 g/kWh", 0, 600,
     {{100, 500, "acts", 100, 0}, {110, 371, "acts", 100, 0}, {120, 369, "until", 120, 0}, {130, 371, "false", 130, 0}}},
    {"until: unknown ends it", "carbon > 400 g/kWh", "carbon < 370 g/kWh", 0, 600,
     {{100, 500, "acts", 100, 0}, {110, GONE, "unknown", 110, 0}}},
    {"an `until` that is true lets nothing begin", "carbon > 300 g/kWh", "carbon < 370 g/kWh", 10, 0,
     {{100, 310, "until", 100, 0}, {110, 380, "waits", 110, 120}, {115, 310, "until", 115, 0}, {130, 380, "waits", 130, 140}, {140, 380, "acts", 140, 0}}},
    {"known() of what is unknown", "not known(carbon)", NULL, 0, 0,
     {{100, GONE, "acts", 100, 0}, {110, 5, "false", 110, 0}}},
};
/* clang-format on */

static struct policy_rule rule_of(const struct story *story, struct test_values *t)
{
    struct policy_rule rule = {.name = story->name,
                               .has_when = true,
                               .has_until = story->until != NULL,
                               .for_ns = S(story->for_s),
                               .release_ns = S(story->release_s),
                               .hysteresis = 0.05};
    uw_error err;

    if (policy_condition_read(story->when, &test_catalogue, &t->reads, &rule.when, &err) <
            0 ||
        (story->until && policy_condition_read(story->until, &test_catalogue, &t->reads,
                                               &rule.until, &err) < 0))
        ok(false, "%s: %s", story->name, err.text);
    return rule;
}

static struct policy_instant instant(const struct test_values *t, unsigned at_s)
{
    return (struct policy_instant){.now_ns = S(at_s),
                                   .values = t->value,
                                   .is_for_job = true,
                                   .inside = true,
                                   .edge_ns = UINT64_MAX};
}

static void test_stories(void)
{
    for (size_t i = 0; i < n_elements(stories); i++) {
        struct test_values t = {0};
        struct policy_rule rule = rule_of(&stories[i], &t);
        struct policy_progress p = {0};
        for (const struct moment *m = stories[i].moment; m->state; m++) {
            struct policy_instant at = instant(&t, m->at_s);
            struct policy_verdict v;
            if (m->carbon == GONE)
                t.value[0].known = false;
            else
                give_number(&t, "carbon", m->carbon);
            policy_rule_step(&rule, &p, &at, &v);
            is_str(names_word(NAMES_RULE_STATE, v.state), m->state, stories[i].name);
            ok(v.since_ns == S(m->since_s) &&
                   v.due_ns == (m->due_s ? S(m->due_s) : UINT64_MAX) &&
                   v.on == (v.state == RULE_ACTS) &&
                   v.slot == (v.state == RULE_UNKNOWN ? 0 : POLICY_NO_SLOT),
               "… at %u s: since %g s, due %g s", m->at_s, s_of_ns(v.since_ns),
               s_of_ns(v.due_ns));
        }
    }
}

static const char *step(const struct policy_rule *rule, struct policy_progress *p,
                        const struct policy_instant *at, struct policy_verdict *ret)
{
    policy_rule_step(rule, p, at, ret);
    return names_word(NAMES_RULE_STATE, ret->state);
}

static void test_schedule(void)
{
    struct policy_rule rule = {.name = "night", .has_schedule = true, .for_ns = S(5)};
    struct policy_progress p = {0};
    struct test_values t = {0};
    struct policy_instant at = instant(&t, 10);
    struct policy_verdict v;

    at.inside = false;
    at.edge_ns = S(20);
    is_str(step(&rule, &p, &at, &v), "out-of-hours", "outside its schedule");
    is_int(v.since_ns, S(10), "… since it was asked first");
    at.now_ns = S(15);
    (void)step(&rule, &p, &at, &v);
    is_int(v.since_ns, S(10), "… and not since it was asked again");
    is_int(v.due_ns, S(20), "… until it begins");
    at = instant(&t, 20);
    at.edge_ns = S(100);
    is_str(step(&rule, &p, &at, &v), "waits", "`for` counts inside the schedule");
    at.now_ns = S(25);
    is_str(step(&rule, &p, &at, &v), "acts", "a rule of a schedule alone");
    is_int(v.due_ns, S(100), "… until it ends");
    at.is_for_job = false;
    is_str(step(&rule, &p, &at, &v), "other-job", "the board has another job now");
    is_int(v.since_ns, S(25), "… since then");
    at.now_ns = S(26);
    at.no_job = true;
    is_str(step(&rule, &p, &at, &v), "no-job", "… and now none");
    is_int(v.since_ns, S(26), "… which is another reason, and another time");
    at.now_ns = S(25);
    at.no_job = false;
    ok(!v.on && v.due_ns == UINT64_MAX, "… and nothing is due");
    at.is_for_job = true;
    rule.dry_run = true;
    (void)step(&rule, &p, &at, &v);
    at.now_ns = S(31);
    is_str(step(&rule, &p, &at, &v), "dry-run", "a dry run is on and does not act");
    ok(v.on, "… it is on");
}

static void test_phase(void)
{
    /* clang-format off */
    static const struct {
        const char *name, *phase, *state;
        bool told;
        double confidence, least_s, break_even_s, phase_s; /* least 0: auto; phase 0: unknown */
    } cases[] = {
        {"seen, not surely enough", "validate", "unsure", false, 0.89, 0, 0, 0},
        {"seen surely enough", "validate", "acts", false, 0.9, 0, 0, 0},
        {"not sure any more", "validate", "unsure", false, 0, 0, 0, 0},
        {"told by the job", "validate", "acts", true, 0, 0, 0.4, 0},
        {"shorter than the break-even", "validate", "short", true, 0, 0, 0.4, 0.3},
        {"as long as that", "validate", "acts", true, 0, 0, 0.4, 0.4},
        {"shorter than the rule says", "validate", "short", true, 0, 2, 0.4, 0.4},
        {"of unknown length", "validate", "acts", true, 0, 2, 0.4, 0},
        {"shorter than any rule acts on", "validate", "short", true, 0, 0.1, 0.05, 0.29},
        {"… on boards for which it would pay", "validate", "short", true, 0, 0, 0.05, 0.29},
        {"as long as that", "validate", "acts", true, 0, 0, 0.05, 0.3},
        {"ends with the phase", "train", "false", true, 0, 2, 0.4, 0},
    };
    /* clang-format on */
    struct test_values t = {0};
    struct policy_rule rule = rule_of(
        &(struct story){"validation", "job.phase == 'validate'", NULL, 0, 0, {{0}}}, &t);
    struct policy_progress p = {0};
    struct policy_instant at = instant(&t, 10);
    struct policy_verdict v;

    rule.phase = true;
    rule.confidence = 0.9;
    for (size_t i = 0; i < n_elements(cases); i++) {
        rule.least_auto = cases[i].least_s == 0;
        rule.least_s = cases[i].least_s;
        at.phase_told = cases[i].told;
        at.confidence = cases[i].confidence;
        at.break_even_s = cases[i].break_even_s;
        at.phase_s = (struct maybe){cases[i].phase_s > 0, cases[i].phase_s};
        give_text(&t, "job.phase", cases[i].phase);
        is_str(step(&rule, &p, &at, &v), cases[i].state, cases[i].name);
    }
}

static void test_for_job(void)
{
    static const char *const users[] = {"prod", "svc-*"}, *const classes[] = {"dev",
                                                                              "other"};
    const struct policy_term term = {"user", users, n_elements(users)};
    struct policy_rule rule = {.cls = classes, .n_cls = 2, .jobs = {&term, 1}};
    struct policy_fact fact[] = {{"name", "prod"}, {"user", "svc-web"}};
    struct policy_facts facts = {fact, n_elements(fact)};

    ok(policy_rule_is_for(&rule, "dev", &facts), "class and user match");
    ok(!policy_rule_is_for(&rule, "prod", &facts), "another class");
    fact[1].value = "anna";
    ok(!policy_rule_is_for(&rule, "dev", &facts), "another user");
    rule.jobs.n = rule.n_cls = 0;
    ok(policy_rule_is_for(&rule, "prod", &facts), "a rule for all jobs");
}

static void test_wildcards(void)
{
    static const struct {
        const char *pattern, *text;
        bool is;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"*", "", true},
        {"*", "abc", true},
        {"a*", "abc", true},
        {"a*", "ba", false},
        {"*c", "abc", true},
        {"*c", "abcd", false},
        {"a*c", "abcbc", true},
        {"a**c", "ac", true},
        {"*b*", "abc", true},
        {"*x*", "abc", false},
        {"abc", "abc", true},
        {"abc", "ab", false},
        {"ab", "abc", false},
        {"a*b*c", "axbybz", false},
        {"a*b*c", "axbybzc", true},
        {"a?c", "abc", false},
    };

    for (size_t i = 0; i < n_elements(cases); i++)
        ok(policy_wildcard(cases[i].pattern, cases[i].text) == cases[i].is,
           "'%s' and '%s'", cases[i].pattern, cases[i].text);
}

static void test_goals(void)
{
    struct policy_rule rules[] = {
        {.name = "cap", .priority = 99},
        {.name = "low", .has_goal = true, .priority = 1, .hold_ns = S(60)},
        {.name = "high", .has_goal = true, .priority = 10}};
    struct policy_goal_choice choice = {0};
    bool acts[] = {true, false, false};

    is_int(policy_goal_choose(rules, acts, 3, &choice, S(1)), UINT64_MAX, "no goal acts");
    ok(!choice.rule, "… the job's own");
    acts[1] = true;
    (void)policy_goal_choose(rules, acts, 3, &choice, S(10));
    ok(choice.rule == &rules[1] && choice.since_ns == S(10), "the goal that acts");
    acts[2] = true;
    is_int(policy_goal_choose(rules, acts, 3, &choice, S(20)), S(70),
           "it stays for its hold");
    ok(choice.rule == &rules[1], "… although a higher one acts");
    (void)policy_goal_choose(rules, acts, 3, &choice, S(70));
    ok(choice.rule == &rules[2], "then the highest");
    acts[1] = acts[2] = false;
    (void)policy_goal_choose(rules, acts, 3, &choice, S(71));
    ok(!choice.rule && choice.since_ns == S(71), "none acts: the job's own again");
}

/* At random: a rule acts only after its condition was known to be true, all its `for`;
 * nothing changes before what is due unless a value does.
 */
static void test_random(void)
{
    struct test_values t = {0};
    struct policy_rule rule = rule_of(
        &(struct story){
            "random", "carbon > 400 g/kWh or price > 1 EUR/kWh", NULL, 7, 5, {{0}}},
        &t);
    struct policy_progress p = {0};
    struct policy_verdict v = {.due_ns = UINT64_MAX}, before;
    unsigned steps = 0, early = 0, unfounded = 0, acted = 0;
    uint64_t true_since = UINT64_MAX;
    struct rng g;

    rng_init(&g, 3);
    for (unsigned s = 0; s < 20000; s++) {
        struct policy_instant at = instant(&t, s);
        bool changed = rng_below(&g, 4) == 0;
        struct policy_result result;
        if (changed) {
            give_number(&t, "carbon", 370 + (double)rng_below(&g, 60));
            give_number(&t, "price", rng_uniform(&g) * 1.1);
            t.value[0].known = rng_below(&g, 6) > 0;
        }
        policy_evaluate(&rule.when, t.value, 0, at.now_ns, &result);
        true_since = result.truth != POLICY_TRUE ? UINT64_MAX
                     : true_since == UINT64_MAX  ? at.now_ns
                                                 : true_since;
        before = v;
        policy_rule_step(&rule, &p, &at, &v);
        steps++;
        acted += v.on;
        early += v.on != before.on && !changed && at.now_ns < before.due_ns;
        unfounded += v.on && !before.on && at.now_ns < true_since + rule.for_ns;
    }
    ok(acted > 1000 && acted < steps - 1000, "acts in %u of %u s", acted, steps);
    is_int(early, 0, "nothing changes by itself before it is due");
    is_int(unfounded, 0, "it begins after its condition was true for `for`");
}

static void test_unmeasured(void)
{
    static const struct policy_board board = {.original_mw = 300000, .min_mw = 100000};
    struct policy_rule rule = {.asks.cap = {.measure = POLICY_OF_DEMAND, .share = 0.5}};
    struct policy_claims claims;
    uint32_t each_mw = 7;

    policy_claims_of(&board, &rule.asks, 1, &each_mw, &claims);
    ok(each_mw == 0 && policy_rule_unmeasured(&rule) == RULE_NO_DEMAND,
       "no demand is known");
    rule.asks.cap.measure = POLICY_OF_DEFAULT;
    policy_claims_of(&board, &rule.asks, 1, &each_mw, &claims);
    ok(each_mw == 0 && policy_rule_unmeasured(&rule) == RULE_NO_DEFAULT,
       "no default limit is known");
}

int main(void)
{
    test_unmeasured();
    test_stories();
    test_schedule();
    test_phase();
    test_for_job();
    test_wildcards();
    test_goals();
    test_random();
    return done();
}
