/* `underwatt policy show`: what the daemon's rules do. */
#ifndef CLI_POLICY_SHOW_H
#define CLI_POLICY_SHOW_H

#include "cli/cmd.h"

/* Prints what this policy would do now, if a daemon answers and lets the user ask;
 * whether it did.
 */
bool policy_would(const struct cli_env *env, const char *text);
/* json: the file for the daemon's answer, "-": standard output; NULL: lines for people.
 * Returns the exit code.
 */
int policy_show(const struct cmd *cmd, const struct cli_env *env, const char *json);

#endif
