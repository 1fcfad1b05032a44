#include "cli/job-run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/before.h"
#include "cli/daemon.h"
#include "cli/job-node.h"

/* Checks before CMD runs that the report can be written. */
static int check_output(const struct job_run *j, const char *option, const char *path)
{
    char copy[4096];

    if (!path || strcmp(path, "-") == 0)
        return EXIT_OK;
    int n = snprintf(copy, sizeof copy, "%s", path);
    if (n < 0 || (size_t)n >= sizeof copy)
        return cli_fail(EXIT_USAGE, "%s: %s: the path is too long", j->cmd->name, option);
    bool there = access(path, F_OK) == 0;
    char *slash = strrchr(copy, '/');
    if (slash)
        slash[slash == copy] = '\0';
    const char *probe = there ? path : slash ? copy : ".";
    if (access(probe, W_OK) != 0)
        return cli_fail(EXIT_USAGE, "%s: %s: cannot write %s: %s", j->cmd->name, option,
                        path, strerror(errno));
    return EXIT_OK;
}

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
    int bad = check_output(j, "--json", j->json);
    if (bad == EXIT_OK)
        bad = check_output(j, "--report", j->report);
    if (bad == EXIT_OK)
        bad = before_program(j->cmd, j->env, rest->argv[0]);
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
        return cli_fail(EXIT_USAGE, "%s: --class needs the daemon, which does not answer",
                        j->cmd->name);
    return job_node_run(j, rest, NULL);
}
