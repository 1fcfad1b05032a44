#include "cli/before.h"

#include <limits.h>

#include "io/program.h"

int before_program(const struct cmd *cmd, const struct cli_env *env, const char *name)
{
    char path[PATH_MAX];
    uw_error err;

    int r = program_find(name, env->path, path, sizeof path, &err);
    return r < 0 ? cli_fail(cli_exit_of_exec(r), "%s: %s", cmd->name, err.text) : EXIT_OK;
}
