/* `underwatt carbon`: the grid's carbon intensity, now and to come. */
#include <stddef.h>

#include "cli/sight-show.h"

static int run(const struct cli_env *env, int argc, char **argv)
{
    static const char *const others[] = {"carbon.marginal", NULL};

    return sight_command(&cmd_carbon, env, argc, argv, others);
}

const struct cmd cmd_carbon = {
    "carbon",
    "now | forecast [OPTIONS]",
    "Show the grid's carbon intensity, and when it is lowest",
    run,
};
