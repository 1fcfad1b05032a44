/* Checks of a command line before anything runs. */
#ifndef CLI_BEFORE_H
#define CLI_BEFORE_H

#include "cli/cmd.h"

/* Whether CMD can be executed, as far as its file shows: EXIT_OK, EXIT_NOT_FOUND or
 * EXIT_CANNOT_RUN after a line.
 */
int before_program(const struct cmd *cmd, const struct cli_env *env, const char *name);

#endif
