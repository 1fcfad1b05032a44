/* `underwatt signals`: all signals from outside, or one of them. */
#include "base/units.h"
#include "cli/options.h"
#include "cli/sight-show.h"

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct sight_opts o = {.boards = env->boards};
    const struct opt opts[] = {
        SIGHT_OPTIONS(o),
    };
    bool has_name = argc > 1 && argv[1][0] != '-'; /* options follow the name */
    struct opts_rest rest;
    int code = opts_parse(&cmd_signals, opts, n_elements(opts), argc - has_name,
                          argv + has_name, &rest);

    if (code != OPTS_GO)
        return code;
    if (rest.argc > 0)
        return opts_unexpected(&cmd_signals, rest.argv[0], cmd_signals.args);
    if (!has_name && o.for_ns)
        return cli_fail(EXIT_USAGE, "signals: --for needs the NAME of a forecast");
    if (!has_name)
        return sight_all(&cmd_signals, env, &o);
    if (!sight_is_name(argv[1]))
        return cli_fail(EXIT_USAGE, "signals: '%s' is not the name of a signal", argv[1]);
    if (o.for_ns && !signal_is_forecast(argv[1]))
        return cli_fail(EXIT_USAGE, "signals: --for: %s is no forecast", argv[1]);
    return sight_one(&cmd_signals, env, &o, argv[1], NULL);
}

const struct cmd cmd_signals = {
    "signals",
    "[NAME] [OPTIONS]",
    "Show all signals from outside, or one with a chart",
    run,
};
