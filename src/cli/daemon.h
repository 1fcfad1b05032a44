/* Access of the commands to the daemon of this node (its sockets:
 * config/daemon-address.h).
 */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "ask/ask.h"
#include "cli/cmd.h"
#include "config/daemon-address.h"
#include "io/httpc.h"
#include "underwatt/error.h"

enum { DAEMON_ABSENT = 1, DAEMON_START_TEXT = 320 };

/* Opens a client at daemon_address(env->socket) and waits for an answer.  DAEMON_ABSENT:
 * no socket was named and no daemon answers; *err says which socket.  -EACCES: the user
 * may not use the socket; -ETIMEDOUT: the daemon hangs; -ENOENT, -ECONNREFUSED: the
 * named socket is absent.
 */
int daemon_open(const struct cli_env *env, const char *boards, struct httpc **ret,
                uw_error *err);
/* The same, with a timeout for each answer. */
int daemon_open_within(const struct cli_env *env, const char *boards, uint64_t timeout_ns,
                       struct httpc **ret, uw_error *err);
/* As daemon_open(): requests to it on this loop. */
int daemon_ask(const struct cli_env *env, const char *boards, struct loop *loop,
               struct ask **ret, uw_error *err);
/* GETs path into *ret, and writes the body to the file `json` ("-": standard output;
 * NULL: nowhere).  Fails as httpc_ask() does.
 */
int daemon_get(struct httpc *c, const char *path, const char *json, struct json **ret,
               uw_error *err);
/* Writes a document that was put together from answers, likewise. */
int daemon_write(const char *json, const struct json *doc, uw_error *err);
/* Whether word can be a board's index or UUID in a path. */
bool daemon_is_board(const char *word);
/* " (--local …)" if r means that no daemon answered, else "": a refusal must not be
 * bypassed.
 */
const char *daemon_local_hint(int r);
/* The command line that starts a daemon for these simulated or recorded boards; "" for
 * others.
 */
void daemon_start_simulated(const struct cli_env *env, const char *boards,
                            char ret[DAEMON_START_TEXT]);
/* Says why daemon_open() failed, and how to start a daemon that is absent; the exit code.
 */
int daemon_failed(const struct cmd *cmd, const struct cli_env *env, const char *boards,
                  int r, const uw_error *err);
/* For commands that require the daemon, with a timeout for each answer; 0: the default.
 * EXIT_OK, or daemon_failed().
 */
int daemon_need_within(const struct cmd *cmd, const struct cli_env *env,
                       const char *boards, uint64_t timeout_ns, struct httpc **ret);

#endif
