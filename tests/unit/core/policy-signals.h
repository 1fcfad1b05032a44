/* A catalogue for tests of policies, and a way to give its signals values. */
#ifndef UNIT_CORE_POLICY_SIGNALS_H
#define UNIT_CORE_POLICY_SIGNALS_H

#include <string.h>

#include "base/auto.h"
#include "core/policy/condition.h"

static const struct policy_word test_phases[] = {
    {"train", "train"},         {"training", "train"},        {"validate", "validate"},
    {"validation", "validate"}, {"checkpoint", "checkpoint"}, {NULL, NULL}};

/* clang-format off */
static const struct policy_signal test_signals[] = {
    {.name = "carbon", .unit = "g/kWh", .series = POLICY_HISTORY},
    {.name = "carbon.forecast", .unit = "g/kWh", .series = POLICY_FORECAST},
    {.name = "price", .unit = "EUR/kWh", .series = POLICY_HISTORY},
    {.name = "tariff", .unit = "USD/kWh"},
    {.name = "queue.depth"},
    {.name = "queue.wait", .unit = "s"},
    {.name = "rack.power", .unit = "kW", .series = POLICY_HISTORY},
    {.name = "board.power", .unit = "W", .scope = POLICY_OF_BOARD, .moves = true},
    {.name = "board.temperature", .unit = "°C", .scope = POLICY_OF_BOARD, .moves = true},
    {.name = "outside", .unit = "°C"},
    {.name = "load", .unit = "%"},
    {.name = "job.phase", .type = POLICY_TEXT, .scope = POLICY_OF_JOB, .words = test_phases},
    {.name = "job.class", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    {.name = "job.user", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    {.name = "job.critical", .type = POLICY_TRUTH, .scope = POLICY_OF_JOB},
    {.name = "shut", .type = POLICY_TRUTH},
};
/* clang-format on */
static const struct policy_catalogue test_catalogue = {test_signals,
                                                       n_elements(test_signals)};

struct test_values {
    struct policy_reads reads;
    struct policy_value value[POLICY_READS_MAX];
};

/* Values of the signal, in its unit; every read of it, its folds too. */
__attribute__((unused)) static void give(struct test_values *t, const char *name,
                                         struct policy_value v)
{
    int at = policy_signal_find(&test_catalogue, name, strlen(name));
    struct policy_unit unit;
    double factor = 1;

    (void)policy_signal_unit(&test_signals[at], &unit, &factor);
    if (test_signals[at].type == POLICY_NUMBER)
        v.number *= factor;
    v.known = true;
    if (!v.until_ns)
        v.until_ns = UINT64_MAX;
    for (size_t i = 0; i < t->reads.n; i++)
        if (t->reads.read[i].signal == at)
            t->value[i] = v;
}
#define give_number(t, name, v) give((t), (name), (struct policy_value){.number = (v)})
#define give_text(t, name, v) give((t), (name), (struct policy_value){.text = (v)})
#define give_truth(t, name, v) give((t), (name), (struct policy_value){.truth = (v)})

#endif
