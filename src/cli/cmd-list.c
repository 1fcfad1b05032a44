#include "cli/cmd.h"
#include "cli/options.h"

static int run(const struct cli_env *env, int argc, char **argv)
{
    const char *json = NULL, *nvml = env->nvml, *gpus = NULL;
    const struct opt opts[] = {
        OPT_GPUS(&gpus),
        OPT_JSON(&json),
        OPT_NVML(&nvml),
    };
    struct opts_rest rest;

    int r = opts_parse(&cmd_list, opts, sizeof opts / sizeof *opts, argc, argv, &rest);
    if (r == OPTS_GO)
        r = opts_no_more(&cmd_list, &rest);
    if (r != OPTS_GO)
        return r;
    return cli_fail(EXIT_FAIL, "list: not built yet");
}

const struct cmd cmd_list = {
    "list",
    "[OPTIONS]",
    "Show the boards of this machine: limits, power, energy, owner, cap",
    run,
};
