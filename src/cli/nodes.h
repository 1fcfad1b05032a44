/* The nodes that a command can ask: the daemon's or, where no daemon answers, those of
 * the user's own commands, which are asked one after the other and answer together.
 */
#ifndef CLI_NODES_H
#define CLI_NODES_H

#include <stdbool.h>

#include "base/auto.h"
#include "cli/cmd.h"
#include "io/json.h"
#include "underwatt/error.h"

struct nodes;

/* EXIT_OK, or EXIT_FAIL after a line that says how to start the daemon. */
int nodes_need(const struct cmd *cmd, const struct cli_env *env, const char *boards,
               struct nodes **ret);
void nodes_free(struct nodes *n);
DEFINE_AUTO(struct nodes *, nodes_free);

/* Whether they are those of commands. */
bool nodes_are_own(const struct nodes *n);
/* Looks again which commands run; the daemon stays. */
void nodes_look(struct nodes *n);
/* As daemon_get().  Lists of several nodes are merged (json_extend()), beginning with
 * nodes that have claims; a board is reported by the node that claims it; a node that
 * fails is left out if another one answers.
 */
int nodes_get(struct nodes *n, const char *path, const char *json, struct json **ret,
              uw_error *err);

#endif
