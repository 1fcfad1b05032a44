#include <string.h>

#include "base/auto.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/before.h"
#include "cli/sweep.h"

static int check(const struct sweep_args *a, const struct opts_rest *rest)
{
    if (!a->sim && rest->argc == 0)
        return cli_fail(EXIT_USAGE,
                        "sweep: no command: usage: underwatt sweep [OPTIONS] -- CMD, or "
                        "--sim BOARD --workload NAME");
    if (a->sim && rest->argc > 0)
        return cli_fail(EXIT_USAGE, "sweep: --sim runs no command, but '%s' is given",
                        rest->argv[0]);
    if (!a->sim && a->workload)
        return cli_fail(EXIT_USAGE, "sweep: --workload needs --sim BOARD");
    if (a->runs < 1 || a->runs > SWEEP_RUNS_MAX)
        return cli_fail(EXIT_USAGE, "sweep: --runs: %llu is outside 1..%d",
                        (unsigned long long)a->runs, SWEEP_RUNS_MAX);
    if (!(a->noise >= 0 && a->noise <= 0.2))
        return cli_fail(EXIT_USAGE, "sweep: --noise: %g is outside 0..0.2", a->noise);
    if (a->seed > INT64_MAX)
        return cli_fail(EXIT_USAGE, "sweep: --seed: %llu is outside 0..%lld",
                        (unsigned long long)a->seed, (long long)INT64_MAX);
    if (a->sim && (a->state || a->gpus))
        return cli_fail(EXIT_USAGE, "sweep: %s does not go with --sim",
                        a->state ? "--state" : "--gpus");
    if (a->state && strcmp(a->state, "-") == 0)
        return cli_fail(EXIT_USAGE, "sweep: --state: '-' is standard output, not a file");
    return EXIT_OK;
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct sweep_args a = {
        .env = env,
        .step = {.mw = 5000},
        .runs = UINT64_MAX,
        .seed = 1,
        .settle = {.most_ns = 3600 * NS_PER_S, .ns = NS_PER_S},
        .goal = {.param = -1},
        .boards = env->boards,
    };
    const struct opt opts[] = {
        {"goal", 0, "GOAL",
         "mark the best cap for it, too: " GOAL_FORMS " (slowdown:1.05)", opt_goal,
         &a.goal},
        {"from", 0, "W", "lowest cap (the board's least)", opt_watts, &a.from},
        {"to", 0, "W", "highest cap (the board's most)", opt_watts, &a.to},
        {"step", 0, "W", "step between caps (5 W)", opt_watts, &a.step},
        {"runs", 'n', "N", "runs at each cap (5; 1 with --sim and no noise)", opt_u64,
         &a.runs},
        {"seed", 0, "N", "seed of the order of the runs (1)", opt_u64, &a.seed},
        {"correct-drift", 0, NULL, "correct all figures for a drift of the reference",
         opt_flag, &a.correct},
        {"state", 0, "FILE", "store runs there; resume after an interruption", opt_output,
         &a.state},
        {"settle", 0, "TIME", "pause between a new cap and the start of CMD (1 s)",
         opt_time, &a.settle},
        OPT_GPUS(&a.gpus),
        OPT_BOARDS(&a.boards),
        {"sim", 0, "BOARD", "simulate instead of running a command: rtx6000, v100, …",
         opt_text, &a.sim},
        {"workload", 0, "NAME", "workload to simulate: resnet50, vgg19, …", opt_text,
         &a.workload},
        {"noise", 0, "SD", "with --sim: relative noise of a run (0)", opt_double,
         &a.noise},
        {"csv", 0, "FILE|-", "write the points as CSV", opt_output, &a.csv},
        OPT_JSON(&a.json),
        {"svg", 0, "FILE|-", "write the picture as SVG", opt_output, &a.svg},
        {"png", 0, "FILE|-", "write the picture as PNG", opt_output, &a.png},
        {"html", 0, "FILE|-", "write a page with picture, tables and method", opt_output,
         &a.html},
        {"report", 0, "FILE|-", "write the table there", opt_output, &a.report},
        {"quiet", 'q', NULL, "no progress", opt_flag, &a.quiet},
    };
    struct opts_rest rest;
    int r = opts_parse(&cmd_sweep, opts, n_elements(opts), argc, argv, &rest);
    if (r != OPTS_GO)
        return r;
    if (a.runs == UINT64_MAX)
        a.runs = a.sim && !(a.noise > 0) ? 1 : 5;
    int code = check(&a, &rest);
    if (code == EXIT_OK)
        code = sweep_outputs_check(&a);
    if (code != EXIT_OK)
        return code;
    if (a.sim)
        return sweep_simulated(&a);
    code = before_program(&cmd_sweep, env, rest.argv[0]);
    if (code == EXIT_OK)
        code = sweep_check_daemon(&a);
    return code == EXIT_OK ? sweep_command(&a, (const char *const *)rest.argv) : code;
}

const struct cmd cmd_sweep = {
    "sweep",
    "[OPTIONS] -- CMD [ARG…] | --sim BOARD --workload NAME [OPTIONS]",
    "Run CMD at many power caps: curve, best caps, Pareto front, pictures",
    run,
};
