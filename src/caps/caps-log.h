/* What happens to caps and to the budget, in the log. */
#ifndef CAPS_CAPS_LOG_H
#define CAPS_CAPS_LOG_H

#include "caps/caps.h"

void caps_log(const struct caps *c, const struct gpu_info *info,
              const struct caps_what *what);

struct caps_budget_log {
    char state[8]; /* logged last; "" nothing yet */
};
/* The budget's state, once each time that it changes.  Returns a line for people, NULL:
 * nothing has changed.
 */
const char *caps_log_budget(const struct caps *c, struct caps_budget_log *log);

#endif
