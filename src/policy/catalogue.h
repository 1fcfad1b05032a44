/* The signals that conditions of this node's policy may read.
 *
 * Owns nothing but the table of built-in signals.
 */
#ifndef POLICY_CATALOGUE_H
#define POLICY_CATALOGUE_H

#include <stddef.h>

#include "core/policy/signal.h"

enum { CATALOGUE_BUILT_IN = 21 };

/* Copies the built-in signals to ret: prices in `price_unit` ("EUR/kWh"), job.class one
 * of `classes` (ends with word NULL); both borrowed.
 */
void catalogue_built_in(const char *price_unit, const struct policy_word *classes,
                        struct policy_signal ret[CATALOGUE_BUILT_IN]);

#endif
