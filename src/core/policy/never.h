/* Whether a rule can act at all.  Pure. */
#ifndef CORE_POLICY_NEVER_H
#define CORE_POLICY_NEVER_H

#include "core/policy/condition.h"

/* Whether no values of the signals make `when` true and `until` (NULL: none) false. Tries
 * all relevant values: each side of each number, each text, unknown.  false: some values
 * do, or this is undecided, as a condition calculates or compares two signals, or there
 * are too many values.
 */
bool policy_never(const struct policy_condition *when,
                  const struct policy_condition *until,
                  const struct policy_catalogue *catalogue,
                  const struct policy_reads *reads);

#endif
