/* Rules that can never act: against trying all values, and what is not known. */
#include "core/policy/never.h"

#include <stdlib.h>

#include "base/rng.h"
#include "core/policy/match.h"
#include "policy-signals.h"
#include "tap.h"

static struct test_values t;

static struct policy_condition condition_of(const char *text)
{
    struct policy_condition c = {.n_ops = 0};
    uw_error err = {""};

    if (policy_condition_read(text, &test_catalogue, &t.reads, &c, &err) < 0)
        ok(false, "%s: %s", text, err.text);
    return c;
}

static void test_cases(void)
{
    /* clang-format off */
    static const struct {
        const char *when, *until;
        bool never;
    } cases[] = {
        {"carbon > 4 g/kWh and carbon < 3 g/kWh", NULL, true},
        {"carbon > 4 g/kWh and carbon < 5 g/kWh", NULL, false},
        {"carbon >= 4 g/kWh and carbon <= 4 g/kWh", NULL, false},
        {"carbon > 4 g/kWh and carbon <= 0.004 kg/kWh", NULL, true},
        {"4 g/kWh > carbon and 5 g/kWh < carbon", NULL, true},
        {"carbon > 400 g/kWh", "carbon > 300 g/kWh", true},
        {"carbon > 400 g/kWh", "carbon < 370 g/kWh", false},
        {"carbon > 400 g/kWh", "carbon > 500 g/kWh", false},
        {"carbon > 400 g/kWh", "not known(carbon)", false},
        {"known(carbon)", "known(carbon)", true},
        {"not known(carbon) and carbon > 3 g/kWh", NULL, true},
        {"job.phase == 'train' and job.phase == 'validate'", NULL, true},
        {"job.phase == 'train' or job.phase == 'validate'", NULL, false},
        {"shut and not shut", NULL, true},
        {"shut", "shut", true},
        {"shut", "queue.depth > 0", false},
        {"outside < -10 °C and outside > -5 °C", NULL, true},
        /* not known: they calculate, or compare two signals */
        {"price > price.mean(24 h) and price < price.mean(24 h)", NULL, false},
        {"carbon + carbon > 4 g/kWh and carbon < 1 g/kWh", NULL, false},
        {"abs(queue.depth) < 0", NULL, false},
    };
    /* clang-format on */

    for (size_t i = 0; i < n_elements(cases); i++) {
        struct policy_condition when = condition_of(cases[i].when), until = {.n_ops = 0};
        if (cases[i].until)
            until = condition_of(cases[i].until);
        ok(policy_never(&when, cases[i].until ? &until : NULL, &test_catalogue,
                        &t.reads) == cases[i].never,
           "%s; until %s: %s", cases[i].when, cases[i].until ? cases[i].until : "-",
           cases[i].never ? "never" : "may act");
    }
}

/* ---- at random ---- */

static void add(char *text, size_t size, const char *more)
{
    size_t n = strlen(text);

    (void)snprintf(text + n, size - n, "%s", more);
}

static void add_atom(struct rng *g, char *text, size_t size)
{
    static const char *const orders[] = {"<", "<=", ">", ">=", "==", "!="};
    char atom[60];

    switch (rng_below(g, 6)) {
    case 0:
        (void)snprintf(atom, sizeof atom, "shut");
        break;
    case 1:
        (void)snprintf(atom, sizeof atom, "known(queue.depth)");
        break;
    case 2:
        (void)snprintf(atom, sizeof atom, "job.phase == '%s'",
                       rng_below(g, 2) ? "train" : "validate");
        break;
    default:
        (void)snprintf(atom, sizeof atom, "queue.depth %s %u", orders[rng_below(g, 6)],
                       (unsigned)rng_below(g, 4));
    }
    if (rng_below(g, 4) == 0)
        add(text, size, "not ");
    add(text, size, atom);
}

static void make(struct rng *g, char text[400])
{
    size_t n = 1 + rng_below(g, 4);

    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        if (i)
            add(text, 400, rng_below(g, 3) ? " and " : " or ");
        add_atom(g, text, 400);
    }
}

static struct policy_value *value_of(const char *name)
{
    int at = policy_signal_find(&test_catalogue, name, strlen(name));

    for (size_t i = 0; i < t.reads.n; i++)
        if (t.reads.read[i].signal == at && t.reads.read[i].fold == POLICY_NOW)
            return &t.value[i];
    return &t.value[POLICY_READS_MAX - 1]; /* nothing reads it */
}

static bool acts(const struct policy_condition *when,
                 const struct policy_condition *until)
{
    struct policy_result result;

    policy_evaluate(when, t.value, 0, 0, &result);
    if (result.truth != POLICY_TRUE)
        return false;
    policy_evaluate(until, t.value, 0, 0, &result);
    return result.truth == POLICY_FALSE;
}

static bool some_acts(const struct policy_condition *when,
                      const struct policy_condition *until)
{
    static const char *const phases[] = {NULL, "train", "validate", "other"};
    struct policy_value *depth = value_of("queue.depth"), *shut = value_of("shut"),
                        *phase = value_of("job.phase");

    for (int d = -4; d < 10; d++)
        for (int s = 0; s < 3; s++)
            for (size_t p = 0; p < n_elements(phases); p++) {
                *depth = (struct policy_value){
                    .known = d > -4, .number = d / 2.0, .until_ns = UINT64_MAX};
                *shut = (struct policy_value){
                    .known = s > 0, .truth = s == 2, .until_ns = UINT64_MAX};
                *phase = (struct policy_value){
                    .known = p > 0, .text = phases[p], .until_ns = UINT64_MAX};
                if (acts(when, until))
                    return true;
            }
    return false;
}

static void test_random(void)
{
    char when_text[400], until_text[400];
    unsigned wrong = 0, never = 0;
    struct rng g;

    rng_init(&g, 15);
    for (int i = 0; i < 3000; i++) {
        t = (struct test_values){.reads = {.n = 0}};
        make(&g, when_text);
        make(&g, until_text);
        struct policy_condition when = condition_of(when_text),
                                until = condition_of(until_text);
        bool said = policy_never(&when, &until, &test_catalogue, &t.reads);
        bool is = !some_acts(&when, &until);
        never += is;
        wrong += said != is;
        if (said != is)
            printf("# %s; until %s: said %d\n", when_text, until_text, said);
    }
    ok(wrong == 0 && never > 300 && never < 2700, "%u of 3000 never act, %u wrong", never,
       wrong);
}

/* ---- matches ---- */

static void test_covers(void)
{
    /* clang-format off */
    static const struct {
        const char *wide, *narrow;
        bool covers;
    } cases[] = {
        {"x", "x", true}, {"x*", "xa", true}, {"x*", "xa*", true}, {"xa*", "x*", false}, {"*", "*x", true},
        {"*c", "a*c", true}, {"a*c", "a*", false}, {"a*b*", "a*", false}, {"xa", "x*", false}, {"**", "*", true},
    };
    /* clang-format on */
    for (size_t i = 0; i < n_elements(cases); i++) {
        const struct policy_term wide = {"user", &cases[i].wide, 1},
                                 narrow[] = {{"group", &cases[i].wide, 1},
                                             {"user", &cases[i].narrow, 1}};
        ok(policy_match_covers(&(struct policy_match){&wide, 1},
                               &(struct policy_match){narrow, 2}) == cases[i].covers,
           "%s %s %s", cases[i].wide, cases[i].covers ? "covers" : "does not cover",
           cases[i].narrow);
        ok(!policy_match_covers(&(struct policy_match){narrow, 2},
                                &(struct policy_match){&wide, 1}),
           "... and a key more is narrower");
    }
    ok(policy_match_covers(&(struct policy_match){NULL, 0},
                           &(struct policy_match){NULL, 0}),
       "every job");
}

int main(void)
{
    test_cases();
    test_random();
    test_covers();
    return done();
}
