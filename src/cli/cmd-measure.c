#include "base/auto.h"
#include "cli/job-run.h"

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct job_run j = {.cmd = &cmd_measure, .env = env, .boards = env->boards};
    const struct opt opts[] = {JOB_RUN_OPTS(j)};
    struct opts_rest rest;

    int r = opts_parse(&cmd_measure, opts, n_elements(opts), argc, argv, &rest);
    return r == OPTS_GO ? job_run(&j, &rest) : r;
}

const struct cmd cmd_measure = {
    "measure",
    "[OPTIONS] -- CMD [ARG…]",
    "Measure time, energy by board and mean power of one run of CMD",
    run,
};
