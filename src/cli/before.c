#include "cli/before.h"

#include <limits.h>
#include <string.h>

#include "io/file.h"
#include "io/program.h"

int before_program(const struct cmd *cmd, const struct cli_env *env, const char *name)
{
    char path[PATH_MAX];
    uw_error err;

    int r = program_find(name, env->path, path, sizeof path, &err);
    return r < 0 ? cli_fail(cli_exit_of_exec(r), "%s: %s", cmd->name, err.text) : EXIT_OK;
}

int before_output(const struct cmd *cmd, const char *option, const char *path)
{
    uw_error err;

    if (!path || strcmp(path, "-") == 0 || file_check_write(path, &err) == 0)
        return EXIT_OK;
    return cli_fail(EXIT_USAGE, "%s: %s: %s", cmd->name, option, err.text);
}
