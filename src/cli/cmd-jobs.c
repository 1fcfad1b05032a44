/* `underwatt jobs`: the daemon's jobs, their searches and savings. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "cli/figures.h"
#include "cli/jobs-text.h"
#include "cli/nodes.h"
#include "cli/options.h"

struct jobs {
    const char *boards, *json;
    bool all;
};

static int run(const struct cli_env *env, int argc, char **argv)
{
    struct jobs j = {.boards = env->boards};
    const struct opt opts[] = {
        {"all", 'a', NULL, "include jobs that ended in the last minute", opt_flag,
         &j.all},
        OPT_JSON(&j.json),
        OPT_BOARDS(&j.boards),
    };
    auto_(nodes_free) struct nodes *nodes = NULL;
    auto_(json_free) struct json *doc = NULL, *gpus = NULL;
    uw_error err = {""};

    int r = opts_parse(&cmd_jobs, opts, n_elements(opts), argc, argv, NULL);
    if (r != OPTS_GO)
        return r;
    r = nodes_need(&cmd_jobs, env, j.boards, &nodes);
    if (r != EXIT_OK)
        return r;
    r = nodes_get(nodes, "/v1/jobs", j.json, &doc, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "jobs: %s", err.text);
    if (j.json && strcmp(j.json, "-") == 0)
        return EXIT_OK;
    r = nodes_get(nodes, "/v1/gpus", NULL, &gpus, &err);
    if (r < 0)
        return cli_fail(cli_exit_of(r), "jobs: %s", err.text);
    jobs_text(json_root(doc), json_root(gpus), j.all, text_width(), stdout);
    return EXIT_OK;
}

const struct cmd cmd_jobs = {
    "jobs",
    "[OPTIONS]",
    "Show the daemon's jobs: state, goal, cap, energy, what was saved",
    run,
};
