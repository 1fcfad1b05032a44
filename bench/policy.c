/* What the evaluation of a policy costs: RULES rules for each of 8 boards and 16 jobs,
 * all of whose values change each second, and of the claims that follow; beside it 256
 * percentiles of full histories, which may be due at once.  Prints JSON; exits 1 where
 * rules and claims use more than 0.1 % of a processor.
 *
 *     policy [RULES [SECONDS]]      200 100
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/auto.h"
#include "base/rng.h"
#include "base/units.h"
#include "core/policy/rule.h"
#include "core/policy/series.h"

enum { BOARDS = 8, JOBS = 16, RULES_MAX = 256, PAIRS = BOARDS * JOBS, POINTS = 10240 };

/* clang-format off */
static const struct policy_signal signals[] = {
    {.name = "carbon", .unit = "g/kWh", .series = POLICY_HISTORY},
    {.name = "price", .unit = "EUR/kWh", .series = POLICY_HISTORY},
    {.name = "queue.depth"},
    {.name = "queue.wait", .unit = "s"},
    {.name = "rack.power", .unit = "kW"},
    {.name = "job.phase", .type = POLICY_TEXT},
    {.name = "job.class", .type = POLICY_TEXT},
    {.name = "job.critical", .type = POLICY_TRUTH},
};
static const char *const conditions[] = {
    "carbon > %d g/kWh and not job.critical",
    "price > 0.%d EUR/kWh or price > 1.5 * price.mean(24 h)",
    "job.phase == 'validate' and queue.depth < %d",
    "queue.depth == 0 and queue.wait < %d s",
    "job.class == 'other' and carbon < %d g/kWh",
    "rack.power > %d kW",
};
/* clang-format on */

struct bench {
    struct policy_reads reads;
    struct policy_rule rule[RULES_MAX];
    struct policy_progress progress[PAIRS][RULES_MAX];
    struct policy_asks asks[PAIRS][RULES_MAX]; /* of the rules with an action */
    size_t n_asks[PAIRS];
    size_t n;
    struct policy_value value[PAIRS][POLICY_READS_MAX];
    struct rng rng;
};

static int read_rules(struct bench *b, size_t n)
{
    static const struct policy_catalogue catalogue = {signals, n_elements(signals)};
    uw_error err;
    char text[100];

    for (b->n = 0; b->n < n; b->n++) {
/* the format comes from the table */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void)snprintf(text, sizeof text, conditions[b->n % n_elements(conditions)],
                       (int)(b->n % 90) + 10);
#pragma GCC diagnostic pop
        struct policy_rule *rule = &b->rule[b->n];
        *rule = (struct policy_rule){.name = "rule",
                                     .has_when = true,
                                     .for_ns = b->n % 3 * NS_PER_S,
                                     .release_ns = 2 * NS_PER_S,
                                     .hysteresis = 0.05};
        rule->asks.cap = (struct policy_cap){
            .measure = b->n % 2 ? POLICY_LESS_SHARE : POLICY_OF_DEFAULT, .share = 0.3};
        if (policy_condition_read(text, &catalogue, &b->reads, &rule->when, &err) < 0) {
            (void)fprintf(stderr, "policy: %s: %s\n", text, err.text);
            return -1;
        }
    }
    return 0;
}

static void change(struct bench *b)
{
    static const char *const texts[] = {"train", "validate", "other"};

    for (size_t i = 0; i < PAIRS; i++) {
        for (size_t k = 0; k < b->reads.n; k++) {
            const struct policy_signal *s = &signals[b->reads.read[k].signal];
            struct policy_value *v = &b->value[i][k];
            *v = (struct policy_value){.known = rng_below(&b->rng, 10) > 0,
                                       .until_ns = UINT64_MAX};
            if (s->type == POLICY_NUMBER)
                v->number = rng_uniform(&b->rng) * 100;
            else if (s->type == POLICY_TEXT)
                v->text = texts[rng_below(&b->rng, 3)];
            else
                v->truth = rng_below(&b->rng, 2) > 0;
        }
    }
}

static double now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

struct spent {
    double conditions_s, rules_s, claims_s;
    unsigned long true_, acting, claims;
};

static void evaluate(struct bench *b, uint64_t now_ns, struct spent *spent)
{
    double from_s = now_s();
    struct policy_result result;

    for (size_t i = 0; i < PAIRS; i++) {
        for (size_t k = 0; k < b->n; k++) {
            policy_evaluate(&b->rule[k].when, b->value[i], 0.05, now_ns, &result);
            spent->true_ += result.truth == POLICY_TRUE;
        }
    }
    spent->conditions_s += now_s() - from_s;
}

/* Evaluates the conditions as well. */
static void step(struct bench *b, uint64_t now_ns, struct spent *spent)
{
    double from_s = now_s();
    struct policy_verdict verdict;

    for (size_t i = 0; i < PAIRS; i++) {
        const struct policy_instant at = {.now_ns = now_ns,
                                          .values = b->value[i],
                                          .is_for_job = true,
                                          .inside = true,
                                          .edge_ns = UINT64_MAX};
        b->n_asks[i] = 0;
        for (size_t k = 0; k < b->n; k++) {
            policy_rule_step(&b->rule[k], &b->progress[i][k], &at, &verdict);
            if (verdict.state == RULE_ACTS)
                b->asks[i][b->n_asks[i]++] = b->rule[k].asks;
        }
        spent->acting += b->n_asks[i];
    }
    spent->rules_s += now_s() - from_s;
}

static void claim(struct bench *b, struct spent *spent)
{
    static const struct policy_board board = {.original_mw = 700000,
                                              .default_mw = 700000,
                                              .min_mw = 200000,
                                              .demand_mw = 600000};
    double from_s = now_s();
    struct policy_claims claims;

    for (size_t i = 0; i < PAIRS; i++) {
        policy_claims_of(&board, b->asks[i], b->n_asks[i], NULL, &claims);
        spent->claims += claims.soft.asks >= 0;
    }
    spent->claims_s += now_s() - from_s;
}

/* Computed on as many histories as a policy can read, with a value a second in each. */
static double percentiles_s(struct rng *rng)
{
    static struct policy_point point[POINTS];
    const struct policy_points points = {point, POINTS, POINTS};
    double from_s, spent_s = 0;
    struct policy_folded folded;

    for (size_t i = 0; i < POLICY_READS_MAX; i++) {
        for (size_t k = 0; k < POINTS; k++)
            point[k] = (struct policy_point){(int64_t)k, rng_uniform(rng) * 100};
        const struct policy_read read = {0, POLICY_PERCENTILE, rng_uniform(rng) * 100,
                                         POINTS};
        from_s = now_s();
        policy_series_fold(&points, POLICY_HISTORY, &read, POINTS, &folded);
        spent_s += now_s() - from_s;
    }
    return spent_s;
}

static int play(size_t rules, uint64_t seconds)
{
    static struct bench b;
    struct spent spent = {0};

    rng_init(&b.rng, 1);
    if (read_rules(&b, rules) < 0)
        return 1;
    for (uint64_t s = 1; s <= seconds; s++) {
        change(&b);
        evaluate(&b, s * NS_PER_S, &spent);
        change(&b);
        step(&b, s * NS_PER_S, &spent);
        claim(&b, &spent);
    }
    double n = (double)seconds, steps = n * PAIRS * (double)rules;
    double ms = (spent.rules_s + spent.claims_s) / n * 1e3;
    printf("{\"rules\": %zu, \"boards\": %d, \"jobs\": %d, \"seconds\": %llu, "
           "\"true\": %.3f, \"acting\": %.3f, \"claims\": %.1f, \"conditions_ms\": %.4f, "
           "\"condition_ns\": %.1f, \"rules_ms\": %.4f, \"claims_ms\": %.4f, "
           "\"percent_of_a_core\": %.4f, \"percentiles_ms\": %.1f}\n",
           rules, BOARDS, JOBS, (unsigned long long)seconds, (double)spent.true_ / steps,
           (double)spent.acting / steps, (double)spent.claims / n,
           spent.conditions_s / n * 1e3, spent.conditions_s / steps * 1e9,
           spent.rules_s / n * 1e3, spent.claims_s / n * 1e3, ms / 10,
           percentiles_s(&b.rng) * 1e3);
    return ms > 1;
}

int main(int argc, char **argv)
{
    uint64_t rules = 200, seconds = 100;
    uw_error err = {{0}};

    if ((argc > 1 && parse_u64(argv[1], &rules, &err) < 0) ||
        (argc > 2 && parse_u64(argv[2], &seconds, &err) < 0) || rules == 0 ||
        rules > RULES_MAX || seconds == 0) {
        (void)fprintf(stderr, "policy: %s\n",
                      err.text[0] ? err.text : "1 to 256 rules, 1 s or more");
        return 2;
    }
    return play((size_t)rules, seconds);
}
