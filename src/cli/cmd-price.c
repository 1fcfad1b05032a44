/* `underwatt price`: the price of electricity, now and to come. */
#include <stddef.h>

#include "cli/sight-show.h"

static int run(const struct cli_env *env, int argc, char **argv)
{
    return sight_command(&cmd_price, env, argc, argv, NULL);
}

const struct cmd cmd_price = {
    "price",
    "now | forecast [OPTIONS]",
    "Show the price of electricity, and when it is lowest",
    run,
};
