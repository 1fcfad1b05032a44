#include "base/auto.h"
#include "cli/job-run.h"

static int opt_goal(const char *text, void *ret, uw_error *err)
{
    return goal_parse(text, ret, err);
}

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct job_run j = {.cmd = &cmd_run, .env = env, .nvml = env->nvml};
    struct goal goal = {.param = -1};
    uint64_t window_ns = 0;
    const struct opt opts[] = {
        {"goal", 'g', "GOAL", "find and hold the best cap: " GOAL_FORMS, opt_goal, &goal},
        {"cap", 'c', "W|N%", "hold this cap: watts, or percent of the default limit",
         opt_cap, &j.cap},
        {"window", 0, "TIME", "length of a measuring window (10 s)", opt_duration,
         &window_ns},
        JOB_RUN_OPTS(j),
    };
    struct opts_rest rest;

    int r = opts_parse(&cmd_run, opts, n_elements(opts), argc, argv, &rest);
    if (r != OPTS_GO)
        return r;
    bool has_goal = goal.param >= 0, has_cap = j.cap.mw > 0 || j.cap.percent > 0;
    if (has_goal == has_cap)
        return cli_fail(EXIT_USAGE, "run: give one of --goal (%s) and --cap (W or N%%)",
                        GOAL_FORMS);
    if (window_ns && (window_ns < 1 * NS_PER_S || window_ns > 600 * NS_PER_S))
        return cli_fail(EXIT_USAGE, "run: --window %.3g s is outside 1 s..600 s",
                        s_of_ns(window_ns));
    j.caps = has_goal ? SESSION_SEARCH : SESSION_FIXED;
    j.goal = goal;
    j.window_s = s_of_ns(window_ns);
    return job_run(&j, &rest);
}

const struct cmd cmd_run = {
    "run",
    "--goal GOAL | --cap W|N% [OPTIONS] -- CMD [ARG…]",
    "Run CMD with its best power cap found and held, or with a given one",
    run,
};
