/* The signals that conditions of this node's policy may read.
 *
 * Owns nothing but the table of built-in signals.
 */
#ifndef POLICY_CATALOGUE_H
#define POLICY_CATALOGUE_H

#include <stddef.h>

#include "core/policy/signal.h"

/* The built-in signals: those of the outside first, then the facts of the node, its
 * boards and jobs.  Facts have no history.
 */
enum catalogue_signal {
    CATALOGUE_CARBON,
    CATALOGUE_CARBON_FORECAST,
    CATALOGUE_CARBON_MARGINAL,
    CATALOGUE_PRICE,
    CATALOGUE_PRICE_FORECAST,
    CATALOGUE_QUEUE_DEPTH,
    CATALOGUE_QUEUE_WAIT,
    CATALOGUE_QUEUE_GPUS,
    CATALOGUE_RACK_POWER,
    CATALOGUE_NODE_POWER,
    CATALOGUE_NODE_HEADROOM,
    CATALOGUE_BOARD_POWER,
    CATALOGUE_BOARD_LIMIT,
    CATALOGUE_BOARD_TEMPERATURE,
    CATALOGUE_BOARD_CLOCK,
    CATALOGUE_BOARD_UTILIZATION,
    CATALOGUE_BOARD_HOT,
    CATALOGUE_JOB_PHASE,
    CATALOGUE_JOB_CONFIDENCE,
    CATALOGUE_JOB_CLASS,
    CATALOGUE_JOB_KIND,
    CATALOGUE_JOB_USER,
    CATALOGUE_JOB_NAME,
    CATALOGUE_JOB_CRITICAL,
    CATALOGUE_JOB_BOARDS,
    CATALOGUE_JOB_AGE,
    CATALOGUE_JOB_LEFT,
    CATALOGUE_JOB_DEADLINE,
    CATALOGUE_JOB_POWER,
    CATALOGUE_JOB_DEMAND,
    CATALOGUE_JOB_ENERGY,
    CATALOGUE_BUILT_IN,
    CATALOGUE_FACTS = CATALOGUE_NODE_POWER, /* the first fact */
};

/* Copies the built-in signals to ret: prices in `price_unit` ("EUR/kWh"), job.class one
 * of `classes` (ends with word NULL); both borrowed.
 */
void catalogue_built_in(const char *price_unit, const struct policy_word *classes,
                        struct policy_signal ret[CATALOGUE_BUILT_IN]);

#endif
