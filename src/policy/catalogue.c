#include "policy/catalogue.h"

#include <string.h>

#include "base/names.h"

#define PHASE(id, number, word, text) {word, word},
/* The words of base/names.h, and synonyms for some of them. */
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
#define NUMBER(id, scope_, name_, unit_, ...) [CATALOGUE_##id] = {.name = name_, .unit = unit_, .scope = POLICY_OF_##scope_, __VA_ARGS__}
#define HISTORY .series = POLICY_HISTORY
#define MOVES .moves = true
static const struct policy_signal built_in[CATALOGUE_BUILT_IN] = {
    NUMBER(CARBON, NODE, "carbon", "g/kWh", HISTORY),
    NUMBER(CARBON_FORECAST, NODE, "carbon.forecast", "g/kWh", .series = POLICY_FORECAST),
    NUMBER(CARBON_MARGINAL, NODE, "carbon.marginal", "g/kWh", HISTORY),
    NUMBER(PRICE, NODE, "price", "EUR/kWh", HISTORY),
    NUMBER(PRICE_FORECAST, NODE, "price.forecast", "EUR/kWh", .series = POLICY_FORECAST),
    NUMBER(QUEUE_DEPTH, NODE, "queue.depth", NULL, HISTORY),
    NUMBER(QUEUE_WAIT, NODE, "queue.wait", "s", HISTORY),
    NUMBER(QUEUE_GPUS, NODE, "queue.gpus", NULL, HISTORY),
    NUMBER(RACK_POWER, NODE, "rack.power", "kW", HISTORY, MOVES),
    NUMBER(NODE_POWER, NODE, "node.power", "W", MOVES),
    NUMBER(NODE_HEADROOM, NODE, "node.headroom", "W", MOVES),
    NUMBER(BOARD_POWER, BOARD, "board.power", "W", MOVES),
    NUMBER(BOARD_LIMIT, BOARD, "board.limit", "W", MOVES),
    NUMBER(BOARD_TEMPERATURE, BOARD, "board.temperature", "°C", MOVES),
    NUMBER(BOARD_CLOCK, BOARD, "board.clock", "MHz", MOVES),
    NUMBER(BOARD_UTILIZATION, BOARD, "board.utilization", "%", MOVES),
    [CATALOGUE_BOARD_HOT] = {.name = "board.hot", .type = POLICY_TRUTH, .scope = POLICY_OF_BOARD, MOVES},
    [CATALOGUE_JOB_PHASE] = {.name = "job.phase", .type = POLICY_TEXT, .scope = POLICY_OF_JOB, .words = phases},
    NUMBER(JOB_CONFIDENCE, JOB, "job.confidence", "%", .words = NULL),
    [CATALOGUE_JOB_CLASS] = {.name = "job.class", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    [CATALOGUE_JOB_KIND] = {.name = "job.kind", .type = POLICY_TEXT, .scope = POLICY_OF_JOB, .words = kinds},
    [CATALOGUE_JOB_USER] = {.name = "job.user", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    [CATALOGUE_JOB_NAME] = {.name = "job.name", .type = POLICY_TEXT, .scope = POLICY_OF_JOB},
    [CATALOGUE_JOB_CRITICAL] = {.name = "job.critical", .type = POLICY_TRUTH, .scope = POLICY_OF_JOB},
    NUMBER(JOB_BOARDS, JOB, "job.boards", NULL),
    NUMBER(JOB_AGE, JOB, "job.age", "s"),
    NUMBER(JOB_LEFT, JOB, "job.left", "s"),
    NUMBER(JOB_DEADLINE, JOB, "job.deadline", "s"),
    NUMBER(JOB_POWER, JOB, "job.power", "W", MOVES),
    NUMBER(JOB_DEMAND, JOB, "job.demand", "W"),
    NUMBER(JOB_ENERGY, JOB, "job.energy", "kWh"),
};
#undef NUMBER
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
