/* The daemon's knowledge of the boards that `underwatt list` shows. */
#ifndef CLI_LIST_DAEMON_H
#define CLI_LIST_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "cli/cmd.h"
#include "io/json.h"

struct list_daemon {
    struct json *gpus, *jobs; /* NULL: no daemon answered in time */
};
/* Waits at most 1 s for each answer; a daemon that does not answer causes one line on
 * stderr.
 */
void list_daemon_ask(const struct cli_env *env, const char *boards,
                     struct list_daemon *ret);
void list_daemon_fini(struct list_daemon *d);
static inline void list_daemon_fini_p(struct list_daemon *p)
{
    list_daemon_fini(p);
}

/* Returns the board in the daemon's answer, or NULL. */
const struct json_value *list_daemon_board(const struct list_daemon *d, const char *uuid);
/* Writes the reason for the limit; false: the daemon does not control the board. */
bool list_daemon_cap(const struct json_value *board, char *ret, size_t size);
/* "job 12 (anna), job 14 (bert)"; "" none. */
void list_daemon_jobs(const struct list_daemon *d, const struct json_value *board,
                      char *ret, size_t size);

#endif
