/* A board that a command without the daemon holds, while a daemon answers: the daemon has
 * no claim on it, and does not know whose limit is in force.
 */
#ifndef CLI_LOCAL_HOLD_H
#define CLI_LOCAL_HOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/json.h"

struct local_hold {
    char text[120];       /* "set by underwatt (pid 4711), original 300 W" */
    uint32_t original_mw; /* 0: unknown */
    int64_t pid;
};

/* boards: the source of the boards; uuid, cap: of the daemon's answer.  False: no such
 * command holds the board, or this user cannot see it.
 */
bool local_hold_look(const char *boards, const char *uuid, const struct json_value *cap,
                     struct local_hold *ret);

#endif
