#include "policy/catalogue.h"

#include <string.h>

#include "base/names.h"

#define PHASE(id, number, word, text) {word, word},
/* The words of base/names.h, and those of people for some of them. */
static const struct policy_word phases[] = {JOB_PHASES(PHASE){"training", "train"},
                                            {"validation", "validate"},
                                            {"loading", "load"},
                                            {NULL, NULL}};
static const struct policy_word kinds[] = {{"development", "development"},
                                           {"training", "training"},
                                           {"inference", "inference"},
                                           {"unknown", "unknown"},
                                           {NULL, NULL}};

/* clang-format off */
static const struct policy_signal built_in[CATALOGUE_BUILT_IN] = {
    {.name = "carbon", .unit = "g/kWh", .series = POLICY_HISTORY},
    {.name = "carbon.forecast", .unit = "g/kWh", .series = POLICY_FORECAST},
    {.name = "carbon.marginal", .unit = "g/kWh", .series = POLICY_HISTORY},
    {.name = "price", .unit = "EUR/kWh", .series = POLICY_HISTORY},
    {.name = "price.forecast", .unit = "EUR/kWh", .series = POLICY_FORECAST},
    {.name = "queue.depth", .series = POLICY_HISTORY},
    {.name = "queue.wait", .unit = "s", .series = POLICY_HISTORY},
    {.name = "rack.power", .unit = "kW", .series = POLICY_HISTORY, .moves = true},
    {.name = "node.power", .unit = "W", .series = POLICY_HISTORY, .moves = true},
    {.name = "board.power", .unit = "W", .scope = POLICY_OF_BOARD, .series = POLICY_HISTORY, .moves = true},
    {.name = "board.temperature", .unit = "°C", .scope = POLICY_OF_BOARD, .series = POLICY_HISTORY, .moves = true},
    {.name = "board.clock", .unit = "MHz", .scope = POLICY_OF_BOARD, .series = POLICY_HISTORY, .moves = true},
    {.name = "board.utilization", .unit = "%", .scope = POLICY_OF_BOARD, .series = POLICY_HISTORY, .moves = true},
    {.name = "job.phase", .type = POLICY_TEXT, .scope = POLICY_OF_JOB, .words = phases},
    {.name = "job.class", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    {.name = "job.kind", .type = POLICY_TEXT, .scope = POLICY_OF_JOB, .words = kinds},
    {.name = "job.user", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    {.name = "job.name", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    {.name = "job.critical", .type = POLICY_TRUTH, .scope = POLICY_OF_JOB},
    {.name = "job.boards", .scope = POLICY_OF_JOB},
    {.name = "job.age", .unit = "s", .scope = POLICY_OF_JOB},
};
/* clang-format on */

void catalogue_built_in(const char *price_unit, const struct policy_word *classes,
                        struct policy_signal ret[CATALOGUE_BUILT_IN])
{
    memcpy(ret, built_in, sizeof built_in);
    for (size_t i = 0; i < CATALOGUE_BUILT_IN; i++) {
        if (strncmp(ret[i].name, "price", 5) == 0)
            ret[i].unit = price_unit;
        if (strcmp(ret[i].name, "job.class") == 0)
            ret[i].words = classes;
    }
}
