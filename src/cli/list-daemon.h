/* What the daemon knows of the boards that `underwatt list` shows. */
#ifndef CLI_LIST_DAEMON_H
#define CLI_LIST_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "cli/cmd.h"
#include "io/json.h"

struct list_daemon {
    struct json *gpus, *jobs; /* NULL: no daemon, or it does not answer in time */
};
/* Waits for 1 s at most for each answer; a daemon that runs and does not answer costs a
 * line on stderr, no more.
 */
void list_daemon_ask(const struct cli_env *env, const char *boards,
                     struct list_daemon *ret);
void list_daemon_fini(struct list_daemon *d);
static inline void list_daemon_fini_p(struct list_daemon *p)
{
    list_daemon_fini(p);
}

/* The board of the daemon's answer, or NULL. */
const struct json_value *list_daemon_board(const struct list_daemon *d, const char *uuid);
/* Why its limit is what it is: true where the daemon has a hand in it. */
bool list_daemon_cap(const struct json_value *board, char *ret, size_t size);
/* "job 12 (anna), job 14 (bert)"; "" none. */
void list_daemon_jobs(const struct list_daemon *d, const struct json_value *board,
                      char *ret, size_t size);

#endif
