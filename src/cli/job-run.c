#include "cli/job-run.h"

#include "cli/before.h"
#include "cli/daemon.h"
#include "cli/job-node.h"

/* Runs with the daemon if one answers and caps are wanted: returns its exit code, else <
 * 0.
 */
static int with_daemon(struct job_run *j, const struct opts_rest *rest)
{
    struct httpc *daemon = NULL;
    uw_error err = {""};

    if (j->caps == JOB_CAPS_NONE || j->local)
        return -1;
    int r = daemon_open(j->env, j->boards, &daemon, &err);
    if (r < 0)
        return cli_fail(EXIT_BEFORE, "%s: %s%s", j->cmd->name, err.text,
                        daemon_local_hint(r));
    return r == DAEMON_ABSENT ? -1 : job_node_run(j, rest, daemon);
}

int job_run(struct job_run *j, const struct opts_rest *rest)
{
    uw_error err;

    if (rest->argc == 0)
        return cli_fail(EXIT_USAGE, "%s: no command: usage: underwatt %s %s",
                        j->cmd->name, j->cmd->name, j->cmd->args);
    int bad = before_program(j->cmd, j->env, rest->argv[0]);
    if (bad != EXIT_OK)
        return bad;
    if (inject_prepare(j->env, j->count_launches, &j->inject, &err) < 0)
        return cli_fail(EXIT_BEFORE, "%s: --count-launches: %s", j->cmd->name, err.text);
    if (j->inject.note && !j->quiet)
        cli_say("%s", j->inject.note);
    int done = with_daemon(j, rest);
    if (done >= 0)
        return done;
    if (j->cls)
        return cli_fail(EXIT_USAGE, "%s: --class needs the daemon, which %s",
                        j->cmd->name,
                        j->local ? "--local does not use" : "does not answer");
    return job_node_run(j, rest, NULL);
}
