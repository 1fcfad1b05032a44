/* The daemon of this node, as commands reach it (config/daemon-address.h: where its
 * sockets are). */
#ifndef CLI_DAEMON_H
#define CLI_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/cmd.h"
#include "config/daemon-address.h"
#include "io/httpc.h"
#include "underwatt/error.h"

enum { DAEMON_ABSENT = 1 };

/* A client of the daemon, at daemon_address(env->socket), once that has answered.
 * DAEMON_ABSENT: nobody answers where it was not named: *err says where was looked.
 * -EACCES: the socket is not ours to use; -ETIMEDOUT: it hangs; -ENOENT, -ECONNREFUSED:
 * named and not there.
 */
int daemon_open(const struct cli_env *env, const char *boards, struct httpc **ret,
                uw_error *err);
/* The same, where an answer may take timeout_ns at most. */
int daemon_open_within(const struct cli_env *env, const char *boards, uint64_t timeout_ns,
                       struct httpc **ret, uw_error *err);
/* GET path: the answer read into *ret, and written as it came to json (a file; "-"
 * standard output; NULL: nowhere).  Fails as httpc_ask() does.
 */
int daemon_get(struct httpc *c, const char *path, const char *json, struct json **ret,
               uw_error *err);
/* Fit to stand in a path as a board's index or UUID. */
bool daemon_is_board(const char *word);
/* " (--local …)" where no daemon answered (r: the fault); "" after its refusal, which
 * nobody is told to go round.
 */
const char *daemon_local_hint(int r);
/* For commands that cannot do without: EXIT_OK, or EXIT_FAIL after a line that says how
 * to start it.
 */
int daemon_need(const struct cmd *cmd, const struct cli_env *env, const char *boards,
                struct httpc **ret);
/* The same, where an answer may take timeout_ns at most; 0: as usual. */
int daemon_need_within(const struct cmd *cmd, const struct cli_env *env,
                       const char *boards, uint64_t timeout_ns, struct httpc **ret);

#endif
