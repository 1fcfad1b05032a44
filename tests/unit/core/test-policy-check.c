/* What is wrong with a policy as a whole; classes of jobs. */
#include "core/policy/policy.h"

#include <stdlib.h>

#include "policy-signals.h"
#include "tap.h"

enum { RULES = 4, CLASSES = 4 };

struct said {
    char text[600];
    size_t n;
};

static void hear(enum policy_about about, size_t i, bool error, const char *text,
                 void *user)
{
    struct said *s = user;

    s->n += (size_t)snprintf(
        s->text + s->n, sizeof s->text - s->n, "%s%s %zu: %s%s", s->n ? "\n" : "",
        about == POLICY_ABOUT_RULE ? "rule" : "class", i, error ? "" : "warning: ", text);
}

struct given {
    const char *name, *when, *until;
    struct policy_rule rule; /* the rest */
};
struct given_class {
    const char *name;
    bool matches_some; /* else all */
    double floor;
};

#define DEMAND(share_)                                 \
    {                                                  \
        .measure = POLICY_OF_DEMAND, .share = (share_) \
    }
static const char *const of_dev[] = {"dev"}, *const of_dve[] = {"dve"},
                         *const of_other[] = {"other"};

static const struct {
    const char *name;
    struct given rule[RULES];
    struct given_class cls[CLASSES];
    bool hard;
    size_t errors;
    const char *said;
} cases[] = {
    /* clang-format off */
    {"nothing is wrong", {{"a", "carbon > 1 g/kWh", NULL, {.n_cls = 1, .cls = of_dev}}, {"b", NULL, NULL, {.has_schedule = true, .schedule = {1, 0, 60}, .n_cls = 1, .cls = of_other}}},
     {{"dev", true, 0}, {"rest", false, 0}}, false, 0, ""},
    {"a name twice", {{"a", "shut", NULL, {0}}, {"b", "shut", NULL, {0}}, {"a", "shut", NULL, {0}}}, {{0}}, false, 1,
     "rule 2: a: an earlier rule has this name"},
    {"two goals of one priority", {{"a", "shut", NULL, {.has_goal = true, .priority = 3}}, {"b", "shut", NULL, {.priority = 3}}, {"c", "shut", NULL, {.has_goal = true, .priority = 3}}}, {{0}}, false, 1,
     "rule 2: c: its goal has priority 3, as that of a: one has to be higher"},
    {"a class that is not there", {{"a", "shut", NULL, {.n_cls = 1, .cls = of_dve}}}, {{"dev", true, 0}}, false, 1,
     "rule 0: a: class 'dve' is none of: dev, other: did you mean 'dev'?"},
    {"false for ever", {{"a", "shut and 1 > 2", NULL, {0}}}, {{0}}, false, 1,
     "rule 0: a: never acts: its condition is false whatever the signals are"},
    {"true for ever", {{"a", "shut or true", NULL, {0}}}, {{0}}, false, 0,
     "rule 0: warning: a: its condition is true whatever the signals are"},
    {"ended for ever", {{"a", "shut", "not shut or true", {0}}}, {{0}}, false, 1,
     "rule 0: a: never acts: its `until` is true whatever the signals are"},
    {"reads what caps move", {{"a", "board.power > 100 W", NULL, {0}}, {"b", "shut", "board.power < 3 W", {0}}, {"c", "board.power > 100 W", "board.power < 90 W", {0}}}, {{0}}, false, 1,
     "rule 0: a: reads board.power, which caps change: it needs an `until`"},
    {"waits longer than its schedule", {{"a", "shut", NULL, {.has_schedule = true, .schedule = {1, 60, 120}, .for_ns = 3600 * NS_PER_S}}, {"b", "shut", NULL, {.has_schedule = true, .schedule = {1, 60, 120}, .for_ns = 3599 * NS_PER_S}}}, {{0}}, false, 1,
     "rule 0: a: never acts: `for` is 3600 s, its schedule lasts 3600 s at most"},
    {"hard without a right to it", {{"a", "shut", NULL, {.asks = {.hard = true}}}}, {{0}}, false, 1,
     "rule 0: a: a hard rule needs `hard: true` in the file"},
    {"hard with it", {{"a", "shut", NULL, {.asks = {.hard = true}}}}, {{0}}, true, 0, ""},
    {"a floor above the cap", {{"a", "shut", NULL, {.asks = {.cap = DEMAND(0.5), .floor = 0.6}}}}, {{0}}, false, 1,
     "rule 0: a: its floor, 60 % of demand, is above its cap, 50 % of demand"},
    {"a class's floor above the cap", {{"a", "shut", NULL, {.asks = {.cap = DEMAND(0.5)}}}}, {{"dev", true, 0.7}}, false, 0,
     "rule 0: warning: a: has no effect in class dev, whose floor is 70 % of demand"},
    {"a class behind one that takes all", {{0}}, {{"all", false, 0}, {"dev", true, 0}, {"x", true, 0}}, false, 0,
     "class 1: warning: dev: no job is of this class: all before it matches every job\n"
     "class 2: warning: x: no job is of this class: all before it matches every job"},
    {"a class twice", {{0}}, {{"dev", true, 0}, {"dev", true, 0}}, false, 1, "class 1: dev: an earlier class has this name"},
    /* clang-format on */
};

static void read_into(const char *text, struct policy *p, bool *has,
                      struct policy_condition *ret)
{
    uw_error err;

    *has = text != NULL;
    if (text && policy_condition_read(text, p->catalogue, &p->reads, ret, &err) < 0)
        ok(false, "%s: %s", text, err.text);
}

static void test_check(void)
{
    static const char *const prod[] = {"prod"};
    static const struct policy_term some = {"user", prod, 1};
    static struct policy_rule rule[RULES];
    static struct policy_class cls[CLASSES];
    static struct policy p;

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct said said = {{0}, 0};
        p = (struct policy){.catalogue = &test_catalogue,
                            .rule = rule,
                            .cls = cls,
                            .hard = cases[i].hard};
        for (; p.n_rules < RULES && cases[i].rule[p.n_rules].name; p.n_rules++) {
            const struct given *g = &cases[i].rule[p.n_rules];
            struct policy_rule *r = &rule[p.n_rules];
            *r = g->rule;
            r->name = g->name;
            read_into(g->when, &p, &r->has_when, &r->when);
            read_into(g->until, &p, &r->has_until, &r->until);
        }
        for (; p.n_classes < CLASSES && cases[i].cls[p.n_classes].name; p.n_classes++) {
            const struct given_class *g = &cases[i].cls[p.n_classes];
            cls[p.n_classes] = (struct policy_class){
                .name = g->name, .match = {&some, g->matches_some}, .floor = g->floor};
        }
        is_int(policy_check(&p, hear, &said), cases[i].errors, "%s", cases[i].name);
        is_str(said.text, cases[i].said, "… and what is said");
    }
}

static void test_classes(void)
{
    static const char *const users[] = {"prod", "svc-*"}, *const parts[] = {"gpu",
                                                                            "gpu-long"};
    static const struct policy_term terms[] = {{"user", users, 2},
                                               {"slurm.partition", parts, 2}};
    struct policy_class cls[] = {
        {.name = "both", .match = {terms, 2}, .rule_goals = true},
        {.name = "user", .match = {terms, 1}}};
    struct policy p = {.cls = cls, .n_classes = 2};
    struct policy_fact fact[] = {
        {"user", "svc-a"}, {"group", "x"}, {"slurm.partition", "gpu"}};
    struct policy_facts facts = {fact, 3};

    is_int(policy_class_of(&p, &facts), 0, "the first class of which all matches");
    facts.n = 2;
    is_int(policy_class_of(&p, &facts), 1, "a fact that is not known does not match");
    fact[0].value = "anna";
    is_int(policy_class_of(&p, &facts), -1, "no class");
    facts.n = 0;
    is_int(policy_class_of(&p, &facts), -1, "nothing is known of the job");
    ok(policy_goal_may(&p, -1, false) && policy_goal_may(&p, 1, false),
       "a job that asked for no goal gets the rule's");
    ok(policy_goal_may(&p, 0, true), "one that asked, where its class lets rules do so");
    ok(!policy_goal_may(&p, 1, true) && !policy_goal_may(&p, -1, true),
       "… and nowhere else");
}

int main(void)
{
    test_check();
    test_classes();
    return done();
}
