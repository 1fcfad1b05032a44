/* The limits of a policy, and what one does on a board. */
#ifndef CORE_POLICY_LIMIT_H
#define CORE_POLICY_LIMIT_H

#include <stdbool.h>

#include "base/names.h"

enum limit_state { LIMIT_STATES(NAME_ENUM) };

/* What a policy asks for; 0: no such limit. */
struct policy_limits {
    double temperature_c; /* of each board */
    double rise_w_s;      /* of the node */
};

static inline bool policy_has_limits(const struct policy_limits *l)
{
    return l->temperature_c > 0 || l->rise_w_s > 0;
}

#endif
