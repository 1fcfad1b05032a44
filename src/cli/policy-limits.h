/* `underwatt policy check`: the limits of a policy, and what they would hold now. */
#ifndef CLI_POLICY_LIMITS_H
#define CLI_POLICY_LIMITS_H

#include "cli/cmd.h"
#include "core/policy/limit.h"

/* Where a daemon answers, of its boards. */
void policy_limits_print(const struct cli_env *env, const struct policy_limits *limits);

#endif
