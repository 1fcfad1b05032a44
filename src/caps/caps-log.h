/* Logs events of caps and of the budget. */
#ifndef CAPS_CAPS_LOG_H
#define CAPS_CAPS_LOG_H

#include "caps/budget.h"
#include "caps/caps.h"

void caps_log(const struct caps *c, const struct gpu_info *info,
              const struct caps_what *what);

struct caps_budget_log {
    char state[8]; /* last logged; "" none yet */
};
/* Logs the budget's state after a change.  Returns a line for people; NULL: no change. */
const char *caps_log_budget(const struct budget *b, struct caps_budget_log *log);

#endif
